/* Section 12: the end of a VM beside a lender who ends a lend, an issuer who comes late and a second closer. Models eddy_vm_close, drain,
 * wait_for_leavers, give_back and await_end (vm/vm.c), eddy_vm_lend_end (vm/wait.c), eddy_vm_enter and eddy_vm_leave_busy
 * (vm/submit.c), and publish (vm/engine.c).
 *
 * Asserted: nobody touches nodes and tables once they are given back, nor the VM itself once both closers and the issuer have returned,
 * since its user may destroy it then. Reached in every run, or the verifier reports an invalid end state: all that was issued has retired, and both
 * closers have returned.
 *
 * A lend and what is behind it count as finished for the marks when they are linked; the closer has to wait until they have retired. The
 * scheduler thread's sleep is in wake.pml. */
#include "primitives.pml"

#define RUNNING 0
#define CLOSING 1
#define CLOSED 2
#define CLOSERS 2
#define FIRST 3 /* process number of the first closer */

bool L, has_engine;
byte state;
byte issued = 2, finished = 2, retired; /* the lend, and one behind it */
byte throttled, inside;
bool is_progress_new; /* `progress` was raised since the closer read it */
bool lend_is_done, behind_is_ready, late_is_there;
bool is_ending, scheduler_is_gone, is_given_back, is_destroyed;
bool has_ended;       /* the word that the second closer sleeps on */
bool sleeps[CLOSERS];
byte closers_back;
bool issuer_is_back;

inline touch_vm() { assert(!is_destroyed) }
inline touch_nodes() { assert(!is_given_back && !is_destroyed) }
inline lock() { atomic { !L -> touch_vm(); L = true } }
inline unlock() { atomic { touch_vm(); L = false } }

/* ---- the engine's role ---- */

#define HAS_WORK (lend_is_done || behind_is_ready || late_is_there)

inline publish()
{
    if
    :: atomic { throttled > 0 -> is_progress_new = true; FUTEX_WAKE(sleeps[0]); FUTEX_WAKE(sleeps[1]) }
    :: throttled == 0
    fi
}

inline work()
{
    do
    :: atomic { lend_is_done -> touch_nodes(); lend_is_done = false; behind_is_ready = true; retired++ }
    :: atomic { behind_is_ready -> touch_nodes(); behind_is_ready = false; retired++ }
    :: atomic { late_is_there -> touch_nodes(); late_is_there = false; retired++; finished++ }
    :: !HAS_WORK -> break
    od;
    publish()
}

inline drive()
{
    if
    :: atomic { !has_engine -> touch_vm(); has_engine = true }; work(); has_engine = false
    :: has_engine -> touch_vm() /* its holder looks again (wake.pml) */
    fi
}

active proctype scheduler()
{
end:
    do
    :: atomic { HAS_WORK && !has_engine -> has_engine = true }; work(); has_engine = false
    :: is_ending -> break
    od;
    scheduler_is_gone = true
}

/* ---- who meets the end ---- */

active proctype lender()
{
#ifdef BUG_LEND_END_REFUSED
    if
    :: state != RUNNING -> goto over
    :: state == RUNNING
    fi;
#endif
#ifndef BUG_LEND_END_OUTSIDE
    inside++;
#endif
    atomic { touch_nodes(); lend_is_done = true };
    touch_vm(); /* pokes: the lend may have retired meanwhile */
#ifndef BUG_LEND_END_OUTSIDE
    inside--;
#endif
over:
    skip
}

active proctype late_issuer()
{
    bool is_accepted;
    lock();
    is_accepted = state == RUNNING;
    if
    :: is_accepted ->
        atomic { touch_nodes(); issued++; late_is_there = true };
#ifndef BUG_INSIDE_AFTER_UNLOCK
        inside++;
#endif
        unlock();
#ifdef BUG_INSIDE_AFTER_UNLOCK
        inside++;
#endif
        drive();
        touch_nodes(); /* one-thread mode: whether user code is due */
        inside--
    :: !is_accepted -> unlock()
    fi;
    issuer_is_back = true
}

inline leavers_are_out()
{
#ifndef BUG_LEAVERS_FORGOTTEN
    inside == 0
#else
    skip
#endif
}

inline drain()
{
#ifndef BUG_CLOSER_NOT_COUNTED
    throttled++;
#endif
    do
#ifndef BUG_PROGRESS_READ_LATE
    :: is_progress_new = false;
#else
    :: skip;
#endif
        drive();
        lock();
#ifdef BUG_TRUSTS_FINISHED
        is_drained = finished == issued;
#else
        is_drained = retired == issued;
#endif
        unlock();
        if
        :: is_drained -> break
        :: !is_drained -> skip
        fi;
#ifdef BUG_PROGRESS_READ_LATE
        is_progress_new = false;
#endif
        FUTEX_WAIT(is_progress_new, false, sleeps[_pid - FIRST])
    od;
#ifndef BUG_CLOSER_NOT_COUNTED
    throttled--
#endif
}

active [CLOSERS] proctype closer()
{
    bool is_first, is_drained;
    lock();
    atomic { is_first = state == RUNNING; state = (state == RUNNING -> CLOSING : state) };
    unlock();
    if
    :: is_first ->
        drain();
        leavers_are_out();
        is_ending = true;
        scheduler_is_gone;
        lock();
        state = CLOSED;
        unlock();
        leavers_are_out();
        atomic { !has_engine -> has_engine = true };
        work();
        atomic { assert(retired == issued); is_given_back = true };
        atomic { has_ended = true; FUTEX_WAKE(sleeps[0]); FUTEX_WAKE(sleeps[1]) }
#ifndef BUG_SECOND_DOES_NOT_WAIT
    :: !is_first ->
        do
        :: has_ended -> break
        :: !has_ended -> FUTEX_WAIT(has_ended, false, sleeps[_pid - FIRST])
        od
#else
    :: !is_first
#endif
    fi;
    atomic { touch_vm(); assert(is_given_back); closers_back++ }
}

active proctype user()
{
    closers_back == CLOSERS && issuer_is_back;
    is_destroyed = true
}
