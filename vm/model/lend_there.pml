/* DEVICES.md section 7: a lend to code of the device, from its grant to the arrival of the ticket with which it settles. Models run_lend and lend_ended (vm/instruction_kinds.c),
 * eddy_device_stores, node_launch and reap_queue (vm/device.c), end_staging (vm/launch.c), eddy_vm_lend_begin_there and eddy_vm_lend_end_there (vm/wait.c), and what the backend
 * sees of a capture (streams/cuda/backend.c). The words of failures are ticket.pml's, the steps of closing closing.pml's.
 *
 * One storage, two queues. An issuer submits CALLS instructions: calls of either queue that write the storage, read it or use others, or a read of the host. LENDS threads each
 * ask for a lend on either queue, may give up, launch one kernel or none on the queue while it is open, which with CAPTURES they may capture, and end it. The device may be lost at any
 * moment. With CLOSES another thread closes the VM.
 *
 * Asserted: what runs comes after all that it has to come after, also after what a borrower has launched; a grant finds a healthy storage, and a device that is there; what was lent for writing
 * is healthy at its end only if all of that has run; nothing touches a VM that is freed. A lend, a wait or a closing that never ends is an invalid end state.
 *
 * A launch and its mark are one step: a capture that begins and ends between them is not seen (section 7). */
#include "primitives.pml"

#ifndef CALLS
#define CALLS 1
#endif
#ifndef LENDS
#define LENDS 2
#endif
#define OPS (CALLS + LENDS)
#define ALL (BIT(OPS) - 1)

#define CALL 0
#define HOST 1
#define LEND 2

#define PENDING 0
#define GRANTED 1
#define REFUSED 2
#define ABANDONED 3

/* Sets of instructions have a bit for each. */
typedef op_type {
    byte kind, queue;
    bool uses, writes;   /* the storage */
    byte waits_for;      /* edges that are not satisfied */
    byte wait_list;      /* what its queue lets it wait for */
    byte ahead;          /* ghost: all that it has to come after */
    byte waiter;         /* of a lend */
    bool is_launched, is_failed; /* the latter: the kernel, or the device was lost */
    byte under_way;      /* ghost: kernels of the borrower that have not run */
};
op_type ops[OPS];
byte issued;
byte started, ended;    /* sets: dispatched or granted; retired */
byte lent;              /* a set: by its borrower, who has not ended it */
byte quiet;             /* ghost, a set: nothing of it runs any more on the device */
byte complete;          /* a set: tickets */
bool is_healthy = true; /* engine: no poison */
bool is_lost;
byte unread[2], lends[2];
bool captures[2];
bool is_closing, is_freed;

chan dispatched = [OPS] of {byte};
chan launched[2] = [OPS] of {byte};     /* the lists of launched nodes */
chan on_device[2] = [2 * OPS] of {byte}; /* an instruction's launch with its mark, or, from OPS on, a kernel of a borrower */
chan completions = [OPS] of {byte};

/* ---- the engine: each use is one step of who has the role ---- */

#define BOTH_ORDERED(a, b) (ops[a].kind == CALL && ops[b].kind == CALL)
#define CONFLICT(a, b) (ops[a].uses && ops[b].uses && (ops[a].writes || ops[b].writes))

inline link(o)
{
    i = 0;
    do
    :: i < o ->
        if
#ifdef BUG_WRITER_AMONG_READERS
        :: CONFLICT(i, o) && !(ops[o].kind == LEND && !ops[i].writes) ->
#else
        :: CONFLICT(i, o) ->
#endif
            if
            :: HAS(ended, i) || (BOTH_ORDERED(i, o) && HAS(started, i))
            :: else -> ADD(ops[o].waits_for, i)
            fi
        :: else -> skip
        fi;
        ops[o].ahead = ops[o].ahead | (CONFLICT(i, o) -> BIT(i) : 0);
        i++
    :: else -> break
    od
}

/* What comes after it by an edge that dispatch satisfies, or its end. */
inline satisfy(o, by_dispatch)
{
    j = 0;
    do
    :: j < issued ->
        ops[j].waits_for = ops[j].waits_for & ((by_dispatch && !BOTH_ORDERED(o, j)) -> 255 : ~BIT(o));
        j++
    :: else -> break
    od
}

inline retire(o)
{
    ADD(ended, o);
    satisfy(o, false);
    /* Nothing of it is read again, but for the answer to who waits. */
    ops[o].queue = 0; ops[o].uses = false; ops[o].writes = false; ops[o].ahead = 0; ops[o].wait_list = 0;
    ops[o].is_launched = false; ops[o].is_failed = false
}

/* What reads it is not launched if it is poisoned and nobody on the way heals it. */
inline hand_over(o)
{
    ops[o].wait_list = ops[o].ahead & ~ended & ~complete;
    ops[o].is_launched = ops[o].writes || is_healthy || (ops[o].ahead & ~ended) != 0;
    ADD(started, o);
    satisfy(o, true);
    dispatched!o
}

#if defined(BUG_GRANTED_ON_A_LOST_DEVICE)
#define MAY_GRANT is_healthy
#elif defined(BUG_GRANTED_UNHEALTHY)
#define MAY_GRANT (!is_lost)
#else
#define MAY_GRANT (!is_lost && is_healthy)
#endif

inline grant(o)
{
    ADD(started, o);
    if
    :: MAY_GRANT && ops[o].waiter != ABANDONED ->
        assert(!is_lost && is_healthy);
        ops[o].waiter = GRANTED;
        ADD(lent, o)
#ifdef BUG_WHO_GAVE_UP_IS_LENT
    :: MAY_GRANT && ops[o].waiter == ABANDONED -> ADD(lent, o)
#endif
    :: else ->
        ops[o].waiter = (ops[o].waiter == PENDING -> REFUSED : ops[o].waiter);
        ADD(quiet, o);
        retire(o)
    fi
}

inline run_ready()
{
    i = 0;
    do
    :: i < issued ->
        if
        :: !HAS(started, i) && ops[i].waits_for == 0 ->
            if
            :: ops[i].kind == CALL -> hand_over(i)
            :: ops[i].kind == LEND -> grant(i)
            :: ops[i].kind == HOST ->
                assert(is_lost || (ops[i].ahead & ~quiet) == 0);
                ADD(started, i); ADD(quiet, i); retire(i)
            fi;
            i = 0
        :: else -> i++
        fi
    :: else -> break
    od;
    i = 0; j = 0
}

/* By the thread itself, under L and in the role. */
inline submit(o)
{
    o = issued;
    issued++;
    link(o);
    run_ready()
}

inline settle(o)
{
#ifdef BUG_OVER_AT_ITS_END
    retire(o)
#else
#ifdef BUG_SETTLES_ON_ANOTHER_QUEUE
    ops[o].queue = 1 - ops[o].queue;
#endif
#ifdef BUG_ITS_TICKET_ENDS_IT
    satisfy(o, false);
#endif
    ops[o].is_launched = false;
    ops[o].wait_list = 0;
    dispatched!o
#endif
}

/* The end of a call, or of a lend whose ticket has arrived. */
inline end_op(o)
{
    if
    :: ops[o].kind == CALL && ops[o].writes && ops[o].uses -> is_healthy = !ops[o].is_failed
    :: ops[o].kind == LEND && ops[o].writes ->
#ifndef BUG_A_LOSS_LEAVES_IT_HEALTHY
        is_healthy = !ops[o].is_failed;
#endif
        assert(!is_healthy || ops[o].under_way == 0)
    :: else -> skip
    fi;
    ops[o].under_way = 0;
    ADD(quiet, o); /* or lost */
    retire(o)
}

active proctype engine()
{
    byte o, i, j;
end:
    do
    :: atomic { completions?o ->
        assert(!is_freed);
        if
        :: HAS(lent, o) -> DROP(lent, o); settle(o)
        :: else -> end_op(o)
        fi;
        run_ready();
        o = 0 }
    od
}

/* ---- the launcher ---- */

active proctype launcher()
{
    byte o;
    bool failed;
end:
    do
    :: atomic { dispatched?o -> assert(!is_freed); failed = is_lost };
        atomic {
        ops[o].is_failed = failed;
        if
        :: failed
        :: !failed && captures[ops[o].queue] -> /* it goes nowhere, which is seen as long as the stream is lent */
            is_lost = is_lost || lends[ops[o].queue] > 0
        :: !failed && !captures[ops[o].queue] && !is_lost -> on_device[ops[o].queue]!o
        :: else -> skip
        fi;
#ifdef BUG_A_LAUNCH_THAT_FAILS_IS_NOT_NOTED
        if
        :: !failed -> launched[ops[o].queue]!o
        :: failed
        fi;
#else
        launched[ops[o].queue]!o;
#endif
        o = 0; failed = false }
    od
}

/* ---- the device ---- */

proctype device_queue(byte q)
{
    byte x;
end:
    do
    :: atomic { !is_lost && nempty(on_device[q]) ->
        on_device[q]?x;
        (is_lost || x >= OPS || (ops[x].wait_list & ~complete) == 0);
        if
        :: x >= OPS -> assert((ops[x - OPS].ahead & ~quiet) == 0)
        :: x < OPS && ops[x].kind == CALL && ops[x].is_launched -> assert(is_lost || (ops[x].ahead & ~quiet) == 0)
        :: else -> skip
        fi };
        atomic {
        if
        :: is_lost
        :: !is_lost && x >= OPS ->
            ops[x - OPS].under_way--;
            quiet = quiet | ((ops[x - OPS].under_way == 0 && !HAS(lent, x - OPS)) -> BIT(x - OPS) : 0)
        :: !is_lost && x < OPS ->
            ADD(complete, x);
            quiet = quiet | (ops[x].kind == CALL -> BIT(x) : 0);
            if
            :: ops[x].kind == CALL && ops[x].is_launched && ops[x].uses && ops[x].writes -> ops[x].is_failed = true /* its word says so */
            :: skip
            fi;
            unread[q]++
        fi;
        x = 0 }
    od
}

/* Or never: what a loss would free is stuck. */
active proctype loser()
{
    if
    :: is_lost = true
    :: true
    fi
}

/* ---- the reaper ---- */

inline reap(q)
{
    atomic { unread[q] > 0 -> unread[q]--; launched[q]?o; assert(HAS(complete, o)); completions!o; o = 0 };
}

inline reap_lost(q)
{
    atomic { is_lost && unread[q] == 0 && nempty(launched[q]) ->
        launched[q]?o; ops[o].is_failed = true; completions!o; o = 0 };
}

active proctype reaper()
{
    byte o;
end:
    do
    :: reap(0)
    :: reap(1)
    :: reap_lost(0)
    :: reap_lost(1)
    od
}

/* ---- the threads of the program ---- */

active proctype issuer()
{
    byte left = CALLS, o, i, j;
    do
    :: atomic { left > 0 && !is_closing ->
        if
        :: ops[issued].kind = CALL; ops[issued].uses = true; ops[issued].writes = true
        :: ops[issued].kind = CALL; ops[issued].uses = true
        :: ops[issued].kind = CALL; ops[issued].writes = true /* another storage */
        :: ops[issued].kind = HOST; ops[issued].uses = true
        fi;
        if
        :: ops[issued].kind == CALL && issued > 0 -> ops[issued].queue = 1
        :: skip
        fi;
        submit(o);
        left--; o = 0 }
    :: atomic { left == 0 || is_closing -> left = 0; break }
    od
}

active [LENDS] proctype borrower()
{
    byte o, i, j;
    bool captured;
    atomic {
        if
        :: !is_closing
        :: is_closing -> goto refused
        fi;
        ops[issued].kind = LEND; ops[issued].uses = true;
        if
        :: ops[issued].writes = true
        :: skip
        fi;
        if
        :: issued > 0 -> ops[issued].queue = 1
        :: skip
        fi;
        submit(o) };
    /* until the grant, or until its time has passed */
    atomic {
        if
        :: ops[o].waiter != PENDING
        :: ops[o].waiter == PENDING -> ops[o].waiter = ABANDONED
        fi;
        if
        :: ops[o].waiter == GRANTED -> ops[o].waiter = PENDING
        :: ops[o].waiter == REFUSED -> ops[o].waiter = PENDING; goto refused
        :: ops[o].waiter == ABANDONED -> goto refused
        fi };
    atomic { assert(!is_freed); lends[ops[o].queue]++;
        if
        :: goto ends
        :: skip
        fi };
    atomic {
        if
        :: captures[ops[o].queue] -> captured = true /* goes where the other's go */
        :: !captures[ops[o].queue]
#ifdef CAPTURES
        :: !captures[ops[o].queue] -> captures[ops[o].queue] = true; captured = true
#endif
        fi;
        ops[o].under_way++;
        if
        :: !is_lost && !captured -> on_device[ops[o].queue]!(OPS + o)
        :: else -> skip
        fi };
ends:
    atomic { assert(!is_freed);
#ifndef BUG_END_DOES_NOT_LOOK
        is_lost = is_lost || captures[ops[o].queue];
        captures[ops[o].queue] = false;
#endif
        captured = false;
        lends[ops[o].queue]-- };
    atomic { assert(!is_freed); quiet = quiet | (ops[o].under_way == 0 -> BIT(o) : 0); completions!o };
refused:
    o = 0
}

#ifdef BUG_CLOSES_OVER_A_LEND
#define IS_ALL_OVER ((BIT(issued) - 1) & ~(ended | lent)) == 0
#else
#define IS_ALL_OVER ((BIT(issued) - 1) & ~ended) == 0
#endif

active proctype closer()
{
#ifdef CLOSES
    is_closing = true;
    atomic { IS_ALL_OVER -> is_freed = true }
#else
    issued == OPS && IS_ALL_OVER
#endif
}

init
{
    atomic { run device_queue(0); run device_queue(1) }
}
