/* Section 10 and the end of a VM: issuers held back by the mark or a full ring (B1), and a destroyer that refuses
 * the rest and waits for what is in flight. In every run each issuer ends and the destroyer frees the VM once,
 * when nothing is in it.
 *
 * With one issuer the destroyer comes at any time, and a call is on any device; with two issuers there is no
 * destroyer, and their large calls are on a device of their own. The mark is on units (bytes in the code) of the
 * call's device; a device without any in flight takes any call. The mark on instructions is such a one, of all devices
 * together. Issuers and destroyer sleep on `progress`. The engine publishes within a tick, where it may spare the
 * wake-up, and at its end. Records of releases alone fill the ring and are nobody's instruction; an instruction behind
 * a lend counts as finished when it is linked and is live for as long as it likes.
 *
 * BUG_FINISHED_STORE_WAITS keeps the store of `finished` in a buffer while `throttled` is read: what a weaker
 * order than seq_cst would allow. */
#include "primitives.pml"

#ifndef ISSUERS
#define ISSUERS 1
#endif
#ifndef CALLS
#define CALLS 3 /* an issuer */
#endif
#ifndef HIGH
#define HIGH 2
#endif
#define LOW (HIGH / 2)
#define RING 2
#define DESTROYER 2
#define DEVICES 2

bool L, is_closing, is_freed;
byte issued, issued_units[DEVICES], written;    /* lock: L; instructions, units, records */
byte finished_seen, finished_units_seen[DEVICES], consumed_seen; /* lock: L; as last read */
byte finished, finished_units[DEVICES], consumed, retired; /* published */
byte taken, done, done_units[DEVICES], ended;   /* engine: what it will publish */
byte live;                                      /* engine: instructions held */
bool owes_wake;                                 /* engine: published since it last announced */
byte throttled;
bool is_progress_new[3];                        /* `progress` was raised since the sleeper read it: all its futex looks at */
bool sleeps[3];
bool finished_store_waits;
chan ring = [RING] of { byte, byte }; /* units and their device; 0: releases alone */

#define IS_FULL (written - consumed_seen == RING)
#define AHEAD (issued_units[device] - finished_units_seen[device])
#ifdef BUG_EMPTY_DEVICE_REFUSES
#define IS_ABOVE(mark) (AHEAD >= (mark))
#else
#define IS_ABOVE(mark) (AHEAD > 0 && AHEAD >= (mark))
#endif

/* All that wait_for_progress compares with: what stays old there looks like progress, and the wait never sleeps. */
inline refresh_seen()
{
    consumed_seen = consumed;
#ifdef BUG_UNITS_READ_FIRST
    finished_units_seen[device] = finished_units[device];
    finished_seen = finished
#else
    finished_seen = finished;
    finished_units_seen[device] = finished_units[device]
#endif
}

inline read_progress() { is_progress_new[me] = false }

/* L is held on entry and on return. */
inline wait_for_progress()
{
    throttled++;
#ifndef BUG_PROGRESS_READ_LATE
    read_progress();
#endif
#ifndef BUG_NO_SECOND_LOOK
    has_moved = finished != finished_seen || consumed != consumed_seen;
#endif
#ifdef BUG_PROGRESS_READ_LATE
    read_progress();
#endif
    L = false;
    if
    :: atomic { has_moved -> has_moved = false }
    :: !has_moved -> FUTEX_WAIT(is_progress_new[me], false, sleeps[me])
    fi;
    atomic { !L -> L = true };
    throttled--
}

proctype issuer(byte me)
{
    byte left = CALLS, units, device;
    bool has_moved;
    do
    :: left > 0 ->
        if /* a release that finds L free and the ring not full */
        :: atomic { me == 0 && left == CALLS && !L && !IS_FULL && !is_closing ->
            assert(!is_freed); written++; ring ! 0, 0 }
        :: true
        fi;
        atomic { !L -> L = true; left--; units = (left == 0 -> HIGH + 1 : 1);
#if ISSUERS > 1
            device = (left == 0 -> 1 : 0) };
#else
            if
            :: device = 0
            :: device = 1
            fi };
#endif
        if
        :: is_closing -> goto refused
        :: !is_closing
        fi;
        refresh_seen();
        if
        :: IS_ABOVE(HIGH) ->
            do
            :: IS_ABOVE(LOW) -> wait_for_progress();
#ifndef BUG_STATE_READ_ONCE
                if
                :: is_closing -> goto refused
                :: !is_closing
                fi;
#endif
                refresh_seen()
            :: !IS_ABOVE(LOW) -> break
            od
        :: !IS_ABOVE(HIGH)
        fi;
        do
        :: IS_FULL -> refresh_seen();
            if
            :: IS_FULL -> wait_for_progress();
#ifndef BUG_STATE_READ_ONCE
                if
                :: is_closing -> goto refused
                :: !is_closing
                fi
#endif
            :: !IS_FULL
            fi
        :: !IS_FULL -> break
        od;
        atomic {
            assert(!is_freed);
            issued++;
            issued_units[device] = issued_units[device] + units;
            written++;
            ring ! units, device
        };
        atomic { L = false; units = 0; device = 0 }
    :: left == 0 -> goto over
    od;
refused:
    L = false;
over:
    skip
}

#define IS_UNPUBLISHED (done != finished || ended != retired || taken != consumed)
#ifdef BUG_SPARED_WAKE_FORGOTTEN
#define HAS_NEWS IS_UNPUBLISHED
#else
#define HAS_NEWS (IS_UNPUBLISHED || owes_wake)
#endif

/* spares: within a tick the wake-up may be left to a later publishing. */
inline publish(spares)
{
    if
    :: atomic { HAS_NEWS -> consumed = taken; retired = ended;
        finished_units[0] = done_units[0]; finished_units[1] = done_units[1] };
#ifdef BUG_FINISHED_STORE_WAITS
        finished_store_waits = true;
#else
        finished = done;
#endif
        if
        :: throttled > 0 && !spares ->
            atomic {
                is_progress_new[0] = true; is_progress_new[1] = true; is_progress_new[DESTROYER] = true;
                FUTEX_WAKE(sleeps[0]); FUTEX_WAKE(sleeps[1]); FUTEX_WAKE(sleeps[DESTROYER]);
                owes_wake = false
            }
        :: throttled > 0 && spares -> owes_wake = true
        :: throttled == 0 -> owes_wake = false
        fi
    :: !HAS_NEWS
    fi
}

/* A tick reads what is there, finishes what it likes of it, and publishes. */
active proctype engine()
{
    byte units, device, running, running_units[DEVICES];
end:
    do
    :: atomic { nempty(ring) || live > 0 };
        do
        :: atomic { ring ? units, device -> assert(!is_freed); taken++;
            if
            :: units == 0
            :: units > 0 -> live++; running++; running_units[device] = running_units[device] + units
            :: units > 0 -> live++; done++; done_units[device] = done_units[device] + units /* behind a lend */
            fi;
            units = 0; device = 0 }
        :: atomic { live > running -> assert(!is_freed); live--; ended++ }
        :: atomic { running > 0 -> assert(!is_freed);
            done = done + running; live = live - running; ended = ended + running; running = 0;
            done_units[0] = done_units[0] + running_units[0]; running_units[0] = 0;
            done_units[1] = done_units[1] + running_units[1]; running_units[1] = 0 };
            if
            :: publish(true)
            :: true
            fi
        :: true -> break
        od;
#ifdef BUG_TICK_ENDS_UNPUBLISHED /* only every so often */
        if
        :: atomic { done - finished > 1 }; publish(false)
        :: atomic { done - finished <= 1 }
        fi
#else
        publish(false)
#endif
    od
}

active proctype store_buffer()
{
end:
    do
    :: atomic { finished_store_waits -> finished_store_waits = false; finished = done }
    od
}

proctype destroyer(byte me)
{
    atomic { !L -> L = true };
    is_closing = true;
    L = false;
    throttled++;
    do
    :: read_progress();
        if
#ifdef BUG_DESTROYER_TRUSTS_FINISHED
        :: atomic { issued == finished && consumed == written -> break }
        :: issued != finished || consumed != written
#elif defined(BUG_DESTROYER_FORGETS_RELEASES)
        :: atomic { issued == retired -> break }
        :: issued != retired
#else
        :: atomic { issued == retired && consumed == written -> break }
        :: issued != retired || consumed != written
#endif
        fi;
        FUTEX_WAIT(is_progress_new[me], false, sleeps[me])
    od;
    throttled--;
    atomic { assert(live == 0 && empty(ring)); is_freed = true }
}

init
{
    atomic {
        run issuer(0);
#if ISSUERS > 1
        run issuer(1);
#else
        run destroyer(DESTROYER)
#endif
    }
}
