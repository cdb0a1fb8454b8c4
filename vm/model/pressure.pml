/* Section 10 and the end of a VM: issuers held back by a mark or a full ring (B1), an instruction larger than the mark,
 * and a destroyer that refuses the rest and waits for what is in flight. In every run each issuer ends and the destroyer
 * frees the VM once, when nothing is in it.
 *
 * Sizes are in units of the mark. Two issuers and the destroyer sleep on `progress`; the engine publishes when a tick ends.
 * Records of releases alone fill the ring and are nobody's instruction; an instruction behind a lend counts as finished
 * when it is linked and is live for as long as it likes.
 * BUG_FINISHED_STORE_WAITS keeps the store of `finished` in a buffer while `throttled` is read. */
#include "primitives.pml"

#define ISSUERS 2
#ifndef CALLS
#define CALLS 2 /* an issuer; its last is BIG */
#endif
#define HIGH 2
#define LOW 1
#define BIG 3
#define RING 2

bool L, is_closing, is_freed;
byte issued;                 /* lock: L */
byte finished, consumed;     /* published */
byte retired;                /* published; instructions, those behind a lend included */
byte taken, done, live, ended; /* engine: records read, units finished, instructions held and retired */
byte instructions;           /* lock: L; issued */
byte written;                /* lock: L; records */
byte throttled;
bool is_progress_new[3];     /* `progress` was raised since the sleeper read it: all that its futex looks at */
bool sleeps[3];              /* issuers, destroyer */
bool finished_store_waits;
chan ring = [RING] of { byte };

#define IN_FLIGHT (issued - finished)
#define IS_FULL (written - consumed == RING)
#ifdef BUG_EMPTY_VM_REFUSES_BIG
#define IS_OVER(units, mark) (IN_FLIGHT + (units) > (mark))
#else
#define IS_OVER(units, mark) (IN_FLIGHT > 0 && IN_FLIGHT + (units) > (mark))
#endif

proctype issuer(byte me)
{
    byte left = CALLS, units;
    do
    :: left > 0 ->
        if /* a release that finds L free and the ring not full */
        :: atomic { me == 0 && left == CALLS && !L && !IS_FULL && !is_closing -> assert(!is_freed); written++; ring ! 0 }
        :: true
        fi;
        atomic { units = (left == 1 -> BIG : 1); left-- };
        atomic { !L -> L = true };
        do
#ifdef BUG_STATE_READ_ONCE
        :: is_closing && left == CALLS - 1 -> L = false; goto over
        :: (!is_closing || left < CALLS - 1) && (IS_OVER(units, HIGH) || IS_FULL) ->
#else
        :: is_closing -> L = false; goto over
        :: !is_closing && (IS_OVER(units, HIGH) || IS_FULL) ->
#endif
            L = false;
            throttled++;
            do
            ::
#ifndef BUG_PROGRESS_READ_LATE
                is_progress_new[me] = false;
#endif
#ifdef BUG_NO_SECOND_LOOK
                FUTEX_WAIT(is_progress_new[me], false, sleeps[me]);
                break
#else
                if
                :: atomic { !(IS_OVER(units, LOW) || IS_FULL) -> break }
                :: IS_OVER(units, LOW) || IS_FULL
                fi;
#ifdef BUG_PROGRESS_READ_LATE
                is_progress_new[me] = false;
#endif
                FUTEX_WAIT(is_progress_new[me], false, sleeps[me])
#endif
            od;
            throttled--;
            atomic { !L -> L = true }
#ifdef BUG_STATE_READ_ONCE
        :: (!is_closing || left < CALLS - 1) && !(IS_OVER(units, HIGH) || IS_FULL) -> break
#else
        :: !is_closing && !(IS_OVER(units, HIGH) || IS_FULL) -> break
#endif
        od;
        atomic {
            assert(!is_freed);
            issued = issued + units;
            instructions++;
            written++;
            ring ! units
        };
        L = false
    :: left == 0 -> break
    od;
over:
    skip
}

inline announce()
{
    if
    :: throttled > 0 ->
        d_step { is_progress_new[0] = true; is_progress_new[1] = true; is_progress_new[2] = true };
        d_step { FUTEX_WAKE(sleeps[0]); FUTEX_WAKE(sleeps[1]); FUTEX_WAKE(sleeps[2]) }
    :: throttled == 0
    fi
}

inline publish()
{
    if
#ifdef BUG_TICK_ENDS_UNPUBLISHED /* only every so often */
    :: done - finished < BIG
#endif
#ifdef BUG_FINISHED_STORE_WAITS
    :: finished_store_waits = true; announce()
#else
    :: atomic { finished = done; retired = ended }; announce()
#endif
    fi
}

/* A tick reads what is there, finishes what it likes of it, and publishes. */
active proctype engine()
{
    byte units, running, running_units;
end:
    do
    :: atomic { ring ? units -> assert(!is_freed); taken++;
        if
        :: units == 0
        :: units > 0 -> live++; running++; running_units = running_units + units
        :: units > 0 -> live++; done = done + units /* behind a lend */
        fi;
        units = 0 };
        consumed = taken;
#ifndef BUG_RING_ROOM_UNANNOUNCED
        announce()
#endif
    :: atomic { live > running -> assert(!is_freed); live--; ended++ }; publish()
    :: atomic { running > 0 -> assert(!is_freed); done = done + running_units; running_units = 0;
        live = live - running; ended = ended + running; running = 0 };
        publish()
#ifndef BUG_TICK_ENDS_UNPUBLISHED
    :: done != finished && !finished_store_waits -> publish()
#endif
    od
}

active proctype store_buffer()
{
end:
    do
    :: atomic { finished_store_waits -> finished_store_waits = false; finished = done; retired = ended }
    od
}

proctype destroyer()
{
    atomic { !L -> L = true };
    is_closing = true;
    L = false;
    throttled++;
    do
    :: is_progress_new[2] = false;
        if
#ifdef BUG_DESTROYER_TRUSTS_FINISHED
        :: atomic { IN_FLIGHT == 0 && consumed == written -> break }
        :: IN_FLIGHT != 0 || consumed != written
#elif defined(BUG_DESTROYER_FORGETS_RELEASES)
        :: atomic { instructions == retired -> break }
        :: instructions != retired
#else
        :: atomic { instructions == retired && consumed == written -> break }
        :: instructions != retired || consumed != written
#endif
        fi;
        FUTEX_WAIT(is_progress_new[2], false, sleeps[2])
    od;
    throttled--;
    atomic { assert(live == 0 && empty(ring)); is_freed = true }
}

init
{
    atomic { run issuer(0); run issuer(1); run destroyer() }
}
