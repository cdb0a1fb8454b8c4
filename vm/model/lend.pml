/* Sections 10 (B2) and 12: lends, what stands behind them, the mark, and waits that would never end. Two threads,
 * each with any program of ACTIONS actions out of: write a storage, write y from x, lend x or y, wait for x or y,
 * sync, gate (a stream wait on all that went before). A thread that was lent something ends it only after its last
 * action. No program may get stuck: neither in a wait (it is refused where a lend of the waiter's own stands in
 * the way, directly or through another lender that waits itself) nor at the mark.
 *
 * The engine's steps are atomic here: what happens between threads is in the other models. "Behind" is the closure
 * of edges and of positions (a barrier or gate waits for all live before it). */
#include "primitives.pml"

#ifndef ACTIONS
#define ACTIONS 3
#endif
#define THREADS 2
#define SLOTS 8
#define MARK 2

#define WRITE_X 0
#define WRITE_Y 1
#define X_TO_Y 2
#define LEND_X 3
#define LEND_Y 4
#define WAIT_X 5
#define WAIT_Y 6
#define SYNC 7
#define GATE 8

#define IS_LEND(k) ((k) == LEND_X || (k) == LEND_Y)
#define IS_WAIT(k) ((k) >= LEND_X && (k) <= SYNC) /* its thread waits */
#define USES_X(k) ((k) == WRITE_X || (k) == X_TO_Y || (k) == LEND_X || (k) == WAIT_X)
#define USES_Y(k) ((k) == WRITE_Y || (k) == X_TO_Y || (k) == LEND_Y || (k) == WAIT_Y)

typedef slot_type {
    byte kind;
    byte thread;
    short waits;  /* direct: edges and positions */
    short behind; /* all that must end before; a set of slots */
    bool is_exempt;
};
slot_type slots[SLOTS];
short live, granted;
byte in_flight;
byte waits_for[THREADS] = NOBODY; /* slot */
short last_on_x, last_on_y, gate; /* sets of one live slot or none; every use counts as a write here */
byte threads_done;

/* Lends that are under way for the thread: what it holds, or will hold when its lend_begin returns. */
inline own_lends(t, result)
{
    result = 0;
    i = 0;
    do
    :: i < SLOTS ->
        if
        :: HAS(live, i) && slots[i].thread == t && IS_LEND(slots[i].kind) -> ADD(result, i)
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0
}

inline retire(n)
{
    d_step {
        DROP(live, n);
        DROP(granted, n);
        last_on_x = last_on_x & live;
        last_on_y = last_on_y & live;
        gate = gate & live;
        if
        :: !slots[n].is_exempt -> in_flight--
        :: else -> skip
        fi;
        i = 0;
        do
        :: i < SLOTS -> DROP(slots[i].waits, n); DROP(slots[i].behind, n); i++
        :: else -> break
        od;
        i = 0;
        slots[n].kind = 0; slots[n].thread = 0; slots[n].waits = 0; slots[n].behind = 0; slots[n].is_exempt = false;
        i = 0;
        do
        :: i < THREADS ->
            if
            :: waits_for[i] == n -> waits_for[i] = NOBODY
            :: else -> skip
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

/* Sets `n` up in a free slot; refused: the wait would never end. */
inline link(me, action)
{
    n = 0;
    do
    :: HAS(live, n) -> n++; assert(n < SLOTS)
    :: else -> break
    od;
    slots[n].kind = action;
    slots[n].thread = me;
    /* storages: the edge; position: everything live; behind a gate: an edge from it */
    if
    :: action == SYNC || action == GATE -> slots[n].waits = live
    :: else ->
        slots[n].waits = gate;
        if
        :: USES_X(action) -> slots[n].waits = slots[n].waits | last_on_x
        :: else -> skip
        fi;
        if
        :: USES_Y(action) -> slots[n].waits = slots[n].waits | last_on_y
        :: else -> skip
        fi
    fi;
    i = 0;
    do
    :: i < SLOTS ->
        if
        :: HAS(slots[n].waits, i) -> ADD(slots[n].behind, i); slots[n].behind = slots[n].behind | slots[i].behind
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0;
#ifdef BUG_POSITION_NOT_WALKED
    if
    :: action == SYNC || action == GATE -> slots[n].behind = 0
    :: else -> skip
    fi;
#endif
    /* B2: handed on from what it waits for, by edge or by position */
    slots[n].is_exempt = IS_LEND(action);
    do
    :: i < SLOTS ->
        if
#ifdef BUG_ONLY_OPEN_LENDS_EXEMPT
        :: HAS(slots[n].waits, i) && (IS_LEND(slots[i].kind) -> HAS(granted, i) : slots[i].is_exempt) ->
            slots[n].is_exempt = true
#elif defined(BUG_POSITION_NOT_EXEMPT)
        :: HAS(slots[n].waits, i) && slots[i].is_exempt && action != SYNC && action != GATE ->
            slots[n].is_exempt = true
#elif defined(BUG_NOTHING_EXEMPT)
#else
        :: HAS(slots[n].waits, i) && slots[i].is_exempt -> slots[n].is_exempt = true
#endif
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0;
    if
    :: !slots[n].is_exempt -> in_flight++
    :: else -> skip
    fi;
    /* the waiter's own lends in the way, also through lenders that wait themselves */
    own_lends(me, lends);
    refused = false;
    reach = slots[n].behind;
#ifndef BUG_WALK_ENDS_AT_LENDS
    if
    :: waits_for[1 - me] != NOBODY ->
        own_lends(1 - me, others);
        if
        :: (reach & others) != 0 -> reach = reach | slots[waits_for[1 - me]].behind
        :: else -> skip
        fi;
        others = 0
    :: else -> skip
    fi;
#endif
#ifndef BUG_OWN_LEND_NOT_SEEN
    refused = IS_WAIT(action) && (reach & lends) != 0;
#endif
    lends = 0;
    reach = 0;
    ADD(live, n);
    if
    :: IS_WAIT(action) && !refused -> waits_for[me] = n
    :: else -> skip
    fi;
    if
    :: refused -> slots[n].kind = (USES_X(action) -> WRITE_X : (USES_Y(action) -> WRITE_Y : GATE)) /* nobody waits */
    :: else -> skip
    fi;
    if
    :: USES_X(action) -> last_on_x = BIT(n)
    :: else -> skip
    fi;
    if
    :: USES_Y(action) -> last_on_y = BIT(n)
    :: else -> skip
    fi;
    if
    :: action == GATE -> gate = BIT(n)
    :: else -> skip
    fi;
    refused = false;
    n = 0
}

active [THREADS] proctype lending_thread()
{
    byte left = ACTIONS, action, n, i;
    short reach, lends, others;
    bool refused;
    do
    :: left > 0 ->
        atomic {
            if
            :: in_flight < MARK -> skip
            fi;
            if
            :: action = WRITE_X
            :: action = WRITE_Y
            :: action = X_TO_Y
            :: action = LEND_X
            :: action = LEND_Y
            :: action = WAIT_X
            :: action = WAIT_Y
            :: action = SYNC
            :: action = GATE
            fi;
            left--;
            link(_pid, action);
            action = 0
        };
        waits_for[_pid] == NOBODY /* a wait is over; a lend is granted */
    :: left == 0 -> break
    od;
    do
    :: atomic {
        n = 0;
        do
        :: n < SLOTS && !(HAS(granted, n) && slots[n].thread == _pid) -> n++
        :: else -> break
        od;
        if
        :: n < SLOTS -> retire(n)
        :: else -> n = 0; break
        fi;
        n = 0 }
    od;
    threads_done++
}

#define IS_READY(i) (HAS(live & ~granted, i) && slots[i].waits == 0)

/* Any instruction whose predecessors have retired, at any time. */
active proctype engine()
{
    byte n, i;
end:
    do
    :: atomic {
        if
        :: IS_READY(0) -> n = 0
        :: IS_READY(1) -> n = 1
        :: IS_READY(2) -> n = 2
        :: IS_READY(3) -> n = 3
        :: IS_READY(4) -> n = 4
        :: IS_READY(5) -> n = 5
        :: IS_READY(6) -> n = 6
        :: IS_READY(7) -> n = 7
        fi;
        if
        :: IS_LEND(slots[n].kind) -> ADD(granted, n); waits_for[slots[n].thread] = NOBODY
        :: else -> retire(n)
        fi;
        n = 0 }
    od
}

active proctype observer()
{
    threads_done == THREADS && live == 0
}
