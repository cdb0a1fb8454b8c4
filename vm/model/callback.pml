/* Sections 10 (B2) and 12: user code that wants a lock of the user's, which issuers hold while they issue, as a binding with a lock of its
 * interpreter does. Models eddy_marks_wait_slow and wait_for_progress (vm/marks.c), is_users and is_behind_user in eddy_graph_link
 * (vm/graph.c), run_access (vm/instruction_kinds.c) and service_main (vm/service.c).
 *
 * Two issuers take the user's lock U and issue calls that are free, or behind the callback by an edge or as a marker; one of them issues
 * the callback, which takes U and issues too. Nobody may get stuck, or the verifier reports an invalid end state.
 *
 * What happens between engine and issuers at the mark is in pressure.pml: here it is one step. */
#include "primitives.pml"

#ifndef CALLS
#define CALLS 3 /* an issuer */
#endif
#ifndef MARK
#define MARK 1
#endif
#define ISSUERS 2

bool U, L;
byte in_flight;               /* that count for the mark */
byte free_calls;              /* linked, nothing in their way */
byte behind_calls, markers;   /* behind the callback */
bool is_issued, is_ready, is_over; /* the callback */

inline take(lock) { atomic { !lock -> lock = true } }
inline give(lock) { lock = false }

#ifdef BUG_CALLBACK_COUNTS
#define CALLBACK_COUNTS 1
#else
#define CALLBACK_COUNTS 0
#endif
#ifdef BUG_BEHIND_COUNTS
#define BEHIND_COUNTS 1
#else
#define BEHIND_COUNTS 0
#endif
#ifdef BUG_MARKER_COUNTS
#define MARKER_COUNTS 1
#else
#define MARKER_COUNTS 0
#endif

/* Under L. What comes after the callback is over is free again. */
inline link_call()
{
    atomic {
        if
        :: free_calls++; in_flight++
        :: is_issued && !is_over -> behind_calls++; in_flight = in_flight + BEHIND_COUNTS
        :: is_issued && !is_over -> markers++; in_flight = in_flight + MARKER_COUNTS
        fi
    }
}

inline issue()
{
    take(L);
    do
    :: in_flight >= MARK -> give(L); in_flight < MARK; take(L) /* progress */
    :: in_flight < MARK -> break
    od;
    link_call();
    give(L)
}

active [ISSUERS] proctype issuer()
{
    byte left = CALLS;
    take(U);
    if
    :: _pid == 0 ->
        take(L);
        atomic { is_issued = true; is_ready = true; in_flight = in_flight + CALLBACK_COUNTS };
        give(L)
    :: _pid != 0
    fi;
    do
    :: left > 0 -> issue(); left--
    :: left == 0 -> break
    od;
    give(U)
}

/* The user's: takes U, and issues, unbounded by the mark. */
inline run_callback()
{
#ifdef BUG_CALLED_UNDER_THE_LOCK
    take(L);
#endif
    take(U);
#ifndef BUG_CALLED_UNDER_THE_LOCK
    take(L);
#endif
    link_call();
#ifndef BUG_CALLED_UNDER_THE_LOCK
    give(L);
#endif
    give(U);
#ifdef BUG_CALLED_UNDER_THE_LOCK
    give(L);
#endif
    atomic {
        is_over = true;
        in_flight = in_flight - CALLBACK_COUNTS - BEHIND_COUNTS * behind_calls - MARKER_COUNTS * markers;
        behind_calls = 0;
        markers = 0
    }
}

active proctype engine()
{
end:
    do
    :: atomic { free_calls > 0 -> free_calls--; in_flight-- }
#ifdef BUG_ENGINE_RUNS_CALLBACK
    :: atomic { is_ready -> is_ready = false }; run_callback()
#endif
    od
}

active proctype service()
{
#ifndef BUG_ENGINE_RUNS_CALLBACK
    atomic { is_ready -> is_ready = false };
    run_callback()
#else
    skip
#endif
}

active proctype observer()
{
    is_over && in_flight == 0 && free_calls == 0 && behind_calls == 0 && markers == 0 && !U && !L
}
