/* program/crew.h: the threads of one run of a program with several streams. Models run_any, run_next, tell, await_move and work (program/crew.c), and of
 * streams/team.c only that the owner of a job returns when its helpers are out.
 *
 * What each segment waits for is any number of segments of the other stream that an order of all of them allows; any segment may fail. Helpers come, or do not, and leave
 * when they have looked in vain. The bounded sleep of the run's thread has no end here, so that a lost wake-up shows.
 *
 * Asserted: a segment runs once, by one thread, behind all that it waits for; no segment begins behind a failure of which its thread knows; nobody
 * touches the crew once its memory is given back. Reached in every run, or the verifier reports an invalid end state: the run's thread returns, and unless one
 * has failed all segments have run. */
#include "primitives.pml"

#ifndef SEGMENTS
#define SEGMENTS 2 /* of each stream */
#endif
#ifndef HELPERS
#define HELPERS 1
#endif
#define THREADS (HELPERS + 1) /* the last is the run's own */
#define OWNER HELPERS
#define STREAMS 2

/* need[s * SEGMENTS + k]: the segments of the other stream that segment k of stream s waits for. */
byte need[STREAMS * SEGMENTS];
bool is_held[STREAMS], is_stopped, is_asleep;
byte done[STREAMS];
bool moved[THREADS]; /* since that thread has read it */
bool sleeps;         /* the run's thread, on `moved` */
byte inside;         /* helpers in the job */
bool is_set, is_closed, is_freed; /* the job takes helpers until it is closed */
byte runs[STREAMS * SEGMENTS], running[STREAMS]; /* ghosts */
bool has_failed;

#define SEGMENT(s) ((s) * SEGMENTS + done[s])

inline touch() { assert(!is_freed) }

inline raise()
{
    atomic {
        touch();
        for (t : 0 .. THREADS - 1) { moved[t] = true }
    }
}

inline tell()
{
#ifdef BUG_LOOKS_BEFORE_IT_TELLS
    saw_asleep = is_asleep;
    raise();
#else
    raise();
    atomic { touch(); saw_asleep = is_asleep };
#endif
    if
    :: saw_asleep -> FUTEX_WAKE(sleeps)
    :: !saw_asleep
    fi
}

/* The next segment of a stream whose holder the thread is: it runs, or fails, if it may begin. */
inline run_next(s)
{
    may_begin = false;
    if
    :: atomic { done[s] < SEGMENTS -> touch() };
        /* A load of its own: what it waits for only grows. */
#ifdef BUG_WAITS_FOR_NOBODY
        may_begin = true
#else
        may_begin = done[1 - s] >= need[SEGMENT(s)]
#endif
    :: done[s] == SEGMENTS
    fi;
    if
    :: may_begin ->
        may_begin = !is_stopped;
    :: else
    fi;
    if
    :: may_begin ->
        has_run = true;
        atomic {
            touch();
            assert(running[s] == 0 && runs[SEGMENT(s)] == 0);
            assert(done[1 - s] >= need[SEGMENT(s)]);
            running[s]++;
            runs[SEGMENT(s)]++
        };
        if
        :: true ->
#ifdef BUG_TELLS_BEFORE_IT_IS_DONE
            tell();
            atomic { touch(); running[s]--; done[s]++ }
#else
            atomic { touch(); running[s]--; done[s]++ };
            tell()
#endif
        :: true -> /* it fails */
            atomic { touch(); running[s]--; has_failed = true };
            is_stopped = true;
            tell()
        fi
    :: else
    fi
}

inline run_held(s)
{
    do
    :: may_begin = false; run_next(s);
        if
        :: may_begin -> skip
        :: else -> break
        fi
    od
}

/* Whether it can have a segment to run is asked before the stream is taken, so that the holder asks again. */
inline try_stream(s)
{
    atomic { touch(); holds = false };
    if
    :: done[s] < SEGMENTS && !has_run ->
#ifdef BUG_HOLDS_NOTHING
        holds = true;
#else
        atomic {
            if
            :: !is_held[s] -> is_held[s] = true; holds = true
            :: else
            fi
        };
#endif
        if
        :: holds -> run_held(s); atomic { touch(); is_held[s] = false; holds = false }
        :: else
        fi
    :: else
    fi
}

inline look_whether_over()
{
    atomic { touch(); is_over = is_stopped };
    if
    :: !is_over -> is_over = done[0] == SEGMENTS; if :: is_over -> is_over = done[1] == SEGMENTS :: else fi
    :: else
    fi
}

/* A thread's part; leaves: whether it may when it has looked in vain. */
inline work(me, leaves)
{
    do
    ::
#ifndef BUG_LOOKS_BEFORE_IT_READS
        moved[me] = false;
#endif
        look_whether_over();
        if
        :: is_over -> break
        :: else
        fi;
        has_run = false;
        try_stream(0);
        try_stream(1);
#ifdef BUG_LOOKS_BEFORE_IT_READS
        moved[me] = false;
#endif
        if
        :: has_run
        :: !has_run && moved[me]
        :: !has_run && !moved[me] && leaves -> break
        :: !has_run && !moved[me] && !leaves ->
            is_asleep = true;
            FUTEX_WAIT(moved[me], false, sleeps);
            is_asleep = false
        fi
    od
}

active [HELPERS] proctype helper()
{
    bool may_begin, has_run, holds, is_over, saw_asleep;
    byte t;
    is_set;
    if
    :: atomic { !is_closed -> inside++ };
        work(_pid, true);
        inside--
    :: true /* it does not come */
    fi
}

active proctype owner()
{
    bool may_begin, has_run, holds, is_over, saw_asleep;
    byte t, k, count;
    atomic {
        for (k : 0 .. SEGMENTS - 1) {
            select(count : 0 .. k);
            need[k] = count;
            select(count : 0 .. k + 1);
            need[SEGMENTS + k] = count
        };
        is_set = true
    };
    work(OWNER, false);
    is_closed = true;
#ifndef BUG_OWNER_LEAVES_ITS_HELPERS
    inside == 0;
#endif
    atomic {
        is_freed = true;
        assert(has_failed || (done[0] == SEGMENTS && done[1] == SEGMENTS))
    }
}
