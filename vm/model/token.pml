/* Sections 2 and 12, streams/cpu.c: the run token of an ordered stream, the reuse of a stream's number, and an engine that is short of
 * memory. Models dispatch_ordered, take, drain and destroy (streams/cpu.c), eddy_vm_stream_add (vm/stream.c), node_run (vm/engine.c) and
 * collect_kept (vm/starved.c).
 *
 * Asserted: one work of the stream runs at a time; nobody touches a stream that is freed; what issuers keep is touched under L alone.
 * Reached in every run, or the verifier reports an invalid end state: every work has run, what starved has its memory, the stream is
 * freed. */
#include "primitives.pml"

#ifndef WORKS
#define WORKS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif

bool L, has_engine;            /* who waits for the role is nobody: it is asked for, never waited for */
bool lock_of_stream, is_held;  /* the latter: the run token */
byte queue, drains;            /* lock_of_stream; the drain in the team's queue */
byte running;                  /* ghost */
byte completions, retired;
byte kept = 1, memory;         /* lock: L; engine */
byte starved;                  /* engine: instructions without memory; added to under L, as records are */
bool is_freed, is_added;

inline touch_stream() { assert(!is_freed) }
inline lock() { atomic { !L -> L = true } }
inline lock_stream() { atomic { touch_stream(); !lock_of_stream -> lock_of_stream = true } }
inline unlock_stream() { atomic { touch_stream(); lock_of_stream = false } }

/* ---- the engine's role ---- */

inline collect_kept()
{
    lock();
    atomic { memory = memory + kept; kept = 0 };
    L = false
}

inline work()
{
    do
    :: atomic { completions > 0 -> completions--; retired++ }
    :: starved > 0 -> collect_kept(); assert(memory > 0); starved--
    :: completions == 0 && starved == 0 -> break
    od
}

inline drive()
{
    if
    :: atomic { !has_engine -> has_engine = true }; work(); has_engine = false
    :: has_engine
    fi
}

inline dispatch()
{
    lock_stream();
    atomic { queue++; has_token = !is_held; is_held = true };
    unlock_stream();
    if
    :: has_token -> drains++
    :: !has_token
    fi;
    has_token = false
}

active proctype scheduler()
{
    byte left = WORKS;
    bool has_token;
end:
    do
    :: atomic { left > 0 && !has_engine -> has_engine = true };
        dispatch();
        left--;
        work();
        has_engine = false
    :: atomic { (completions > 0 || starved > 0) && !has_engine -> has_engine = true }; work(); has_engine = false
    od
}

/* ---- the stream's drain, on any worker ---- */

active [WORKERS] proctype worker()
{
    bool is_empty;
end:
    do
    :: atomic { drains > 0 -> drains-- };
        lock_stream();
        if
        :: atomic { queue > 0 -> queue--; is_empty = false }
        :: queue == 0 -> is_empty = true;
#ifndef BUG_TOKEN_GIVEN_UP_APART
            is_held = false
#endif
        fi;
        unlock_stream();
        if
        :: is_empty ->
#ifdef BUG_TOKEN_GIVEN_UP_APART
            atomic { touch_stream(); is_held = false };
#endif
#ifdef BUG_TOUCHED_AFTER_THE_TOKEN
            touch_stream();
#endif
            skip
        :: !is_empty -> /* node_run: the kernel, its completion, and the role where it is free */
            atomic { running++; assert(running == 1) };
            running--;
            completions++;
            drive();
            atomic { touch_stream(); drains++ } /* its turn is over: others get theirs */
        fi
    od
}

/* ---- issuers ---- */

/* Submits what will starve. */
active proctype issuer()
{
    byte left = 2;
    do
    :: left > 0 ->
        left--;
        lock();
        starved++;
#ifdef BUG_ROLE_AWAITED_UNDER_THE_LOCK
        atomic { !has_engine -> has_engine = true };
        L = false;
        work();
        has_engine = false
#else
        L = false;
        drive()
#endif
    :: left == 0 -> break
    od
}

/* Makes a stream; the old one's number serves it once all its instructions have retired. */
active proctype adder()
{
    bool may_reuse;
    retired == WORKS;
    lock();
    is_added = true;
#ifndef BUG_DESTROYED_UNDER_THE_LOCK
    L = false;
#endif
#ifndef BUG_TOKEN_NOT_AWAITED
    do
    :: lock_stream(); may_reuse = !is_held; unlock_stream();
        if
        :: may_reuse -> break
        :: !may_reuse -> !is_held
        fi
    od;
#endif
    is_freed = true;
#ifdef BUG_DESTROYED_UNDER_THE_LOCK
    L = false;
#endif
    skip
}

active proctype observer()
{
    is_freed && is_added && retired == WORKS && starved == 0 && kept == 0 && drains == 0
}
