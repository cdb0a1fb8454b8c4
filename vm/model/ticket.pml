/* DEVICES.md sections 2, 3 and 5: tickets from dispatch to end, the words of a device, and poison that is decided by the engine at dispatch and
 * at the end, and by the device in between. Models eddy_device_dispatch, launch, reap, arrive and end (vm/device.c) and the edges of
 * vm/graph.c that are satisfied by dispatch. wait_list.pml is about more than two queues and memory.
 *
 * OPS instructions are chosen at random, each when it is dispatched. Each covers or changes a storage, reads the other one or none, is on
 * one of two queues, and may fail: its kernel, or its launch. What a run one after another would leave is worked out with the rules
 * of PROTOCOL.md section 11 at the same moment. At the end values, kinds and roots must be equal.
 *
 * Asserted as well: an instruction ends after its sources (T2); a word that is looked at is that of the ticket it is looked up for (W3);
 * a kernel that changes bytes in place has healthy inputs (P1); the launcher does not touch a node that has ended. One that never ends is
 * an invalid end state (T1).
 *
 * A `completed` that is stored late is a reaper that looks late, and each queue is looked at on its own: both are in the reaper's steps. */
#include "primitives.pml"

#ifndef OPS
#define OPS 3
#endif
#ifndef FAILS
#define FAILS 2 /* at most */
#endif
#ifndef WINDOW
#define WINDOW OPS
#endif
#ifdef BUG_WINDOW_TOO_LARGE
#define TAKEN (WINDOW + 1)
#else
#define TAKEN WINDOW
#endif
/* One less than twice the window suffices; the code has twice. */
#ifdef BUG_ONE_ROW_LESS
#define ROWS (2 * WINDOW - 2)
#else
#define ROWS (2 * WINDOW - 1)
#endif
#define ROW(o) ((o) % ROWS)

#define HEALTHY 0
#define POISONED 1
#define SKIPPED 2
#define TORN 3

/* What a word says, once its ticket is complete. */
#define RAN 0
#define DID_NOT_RUN 1
#define FAILED 2
#define NOT_LAUNCHED 3 /* the launch failed */

typedef op_type {
    bool covers, reads; /* reads the other storage */
    byte target, queue;
    byte fails;         /* FAILED, NOT_LAUNCHED, or not */
    bool is_launched;   /* the engine wants it to be */
    byte sources;       /* ghost: a set of instructions */
    byte unended;       /* those of the other queue; a count in the code */
    byte looks;         /* those that write what it reads */
    byte wait;          /* in the other queue, + 1; 0 for none */
#ifdef BUG_DECIDED_AT_DISPATCH
    byte found;
#endif
};
op_type ops[OPS];
byte value[2], kind[2], root[2]; /* the device's bytes; engine: poison; root: sequence number + 1 */
byte right_value[2], right_kind[2], right_root[2];
bool has_memory[2];              /* launcher */
bool is_made[2];                 /* an instruction that covers it has been issued */
byte last_writer[2] = NOBODY, readers[2], in_queue[2];
byte word[ROWS], ticket_of[ROWS]; /* the latter: ghost */
byte made, failed;
byte complete, ended; /* sets */
byte ran[2];          /* a set: since the queue's last mark */
byte unread[2];       /* complete on the queue and not read by the reaper: `completed`, as a difference */
byte unmarked;        /* launcher: the queues with a mark that waits */

chan dispatched = [OPS] of {byte};
chan launched[2] = [OPS] of {byte}; /* the lists of launched nodes */
#define LAUNCH 0 /* of an instruction */
#define MARK 1   /* stands for all that was launched on the queue since the last one */
chan on_device[2] = [2 * OPS] of {bit, byte};
chan completions = [OPS] of {byte};
chan arrived[2] = [OPS] of {byte};

#define MIX(o, of_other, of_target) \
    ((ops[o].covers -> 3 * (of_other) + (o) + 2 : 3 * (of_other) + 5 * (of_target) + (o) + 2) % 31)
#define OTHER(o) (1 - ops[o].target)
#define READ(o, of) (ops[o].reads -> of[OTHER(o)] : 0)
#define LOWER(a, b) ((b) != 0 && ((a) == 0 || (b) < (a)) -> (b) : (a))

/* ---- the program ---- */

inline choose(o)
{
    if
    :: ops[o].target = 0
    :: o > 0 -> ops[o].target = 1
    fi;
    if
    :: ops[o].covers = true; is_made[ops[o].target] = true
    :: is_made[ops[o].target] -> ops[o].covers = false
    fi;
    if
    :: ops[o].reads = false
    :: is_made[OTHER(o)] -> ops[o].reads = true
    fi;
    if
    :: ops[o].queue = 0
    :: o > 0 -> ops[o].queue = 1
    fi;
    if
    :: ops[o].fails = RAN
    :: failed < FAILS -> ops[o].fails = FAILED; failed++
    :: failed < FAILS -> ops[o].fails = NOT_LAUNCHED; failed++
    fi
}

/* The table of PROTOCOL.md section 11: what becomes of a target that `was`, by the lowest root of the inputs or as a root. */
inline blame(o, was)
{
    if
    :: lowest != 0 && ops[o].covers -> its_kind = POISONED; its_root = lowest
    :: lowest != 0 && !ops[o].covers && was == HEALTHY -> its_kind = SKIPPED; its_root = lowest
    :: lowest == 0 && ops[o].fails != RAN && ops[o].covers -> its_kind = POISONED; its_root = o + 1
    :: lowest == 0 && ops[o].fails == FAILED && !ops[o].covers -> its_kind = TORN; its_root = o + 1
    :: lowest == 0 && ops[o].fails == NOT_LAUNCHED && !ops[o].covers -> its_kind = SKIPPED; its_root = o + 1
    :: lowest == 0 && ops[o].fails == RAN -> its_kind = HEALTHY; its_root = 0
    :: else -> skip
    fi
}

inline run_sequentially(o, to)
{
    lowest = (ops[o].covers -> READ(o, right_root) : LOWER(right_root[to], READ(o, right_root)));
    its_kind = right_kind[to]; its_root = right_root[to];
    blame(o, right_kind[to]);
    right_kind[to] = its_kind; right_root[to] = its_root;
    if
    :: its_kind == HEALTHY -> right_value[to] = MIX(o, READ(o, right_value), right_value[to])
    :: its_kind == POISONED || its_kind == TORN -> right_value[to] = 0
    :: else -> skip
    fi;
    lowest = 0; its_kind = 0; its_root = 0
}

/* ---- the engine ---- */

inline link(o, to)
{
    if
    :: last_writer[to] != NOBODY ->
        ADD(ops[o].sources, last_writer[to]);
        ops[o].looks = ops[o].looks | (ops[o].covers -> 0 : BIT(last_writer[to]))
    :: else -> skip
    fi;
    ops[o].sources = ops[o].sources | readers[to];
    if
    :: ops[o].reads && last_writer[1 - to] != NOBODY ->
        ADD(ops[o].sources, last_writer[1 - to]);
        ADD(ops[o].looks, last_writer[1 - to])
    :: else -> skip
    fi;
    last_writer[to] = o;
    readers[to] = 0;
    readers[1 - to] = readers[1 - to] | (ops[o].reads -> BIT(o) : 0)
}

/* An input that an instruction on its way writes is another one by the time it is read, whatever its word says now. */
#ifdef BUG_OLD_POISON_AT_DISPATCH
#define POISON_NOW(s) root[s]
#else
#define POISON_NOW(s) (last_writer[s] == NOBODY -> root[s] : 0)
#endif

inline dispatch(o, to)
{
    lowest = (ops[o].covers -> 0 : POISON_NOW(to));
    lowest = (ops[o].reads -> LOWER(lowest, POISON_NOW(1 - to)) : lowest);
    ops[o].is_launched = lowest == 0;
#ifdef BUG_DECIDED_AT_DISPATCH
    ops[o].found = lowest;
#endif
    link(o, to);
#ifdef BUG_OWN_QUEUE_NOT_LOOKED_AT
    ops[o].looks = ops[o].looks & ~in_queue[ops[o].queue];
#endif
    ops[o].unended = ops[o].sources & in_queue[1 - ops[o].queue];
    do
    :: (ops[o].unended >> ops[o].wait) != 0 -> ops[o].wait++
    :: else -> break
    od;
#ifdef BUG_WAIT_LEFT_OUT
    ops[o].wait = 0;
#endif
#ifdef BUG_NOT_LAUNCHED_DOES_NOT_WAIT
    ops[o].wait = (ops[o].is_launched -> ops[o].wait : 0);
#endif
    ADD(in_queue[ops[o].queue], o);
    lowest = 0;
    dispatched!o
}

inline unlink(o, to)
{
    last_writer[to] = (last_writer[to] == o -> NOBODY : last_writer[to]);
    DROP(readers[1 - to], o);
    DROP(in_queue[ops[o].queue], o);
    i = 0;
    do
    :: i < OPS -> DROP(ops[i].unended, o); i++
    :: else -> break
    od;
    i = 0;
    ADD(ended, o)
}

/* Nothing of it is read again. */
inline recycle(o)
{
    ops[o].covers = 0; ops[o].reads = 0; ops[o].target = 0; ops[o].queue = 0; ops[o].fails = 0; ops[o].is_launched = 0;
    ops[o].sources = 0; ops[o].looks = 0; ops[o].wait = 0
}

inline end_op(o, to)
{
    assert((ops[o].sources & ~ended) == 0);
    assert(ticket_of[ROW(o)] == o);
#ifdef BUG_DECIDED_AT_DISPATCH
    lowest = ops[o].found; ops[o].found = 0;
#else
    lowest = (ops[o].covers -> READ(o, root) : LOWER(root[to], READ(o, root)));
#endif
#ifdef BUG_FAILED_LAUNCH_IS_ALWAYS_A_ROOT
    lowest = (word[ROW(o)] == NOT_LAUNCHED -> 0 : lowest);
#endif
    if
    :: lowest != 0 -> assert(ops[o].covers || word[ROW(o)] == DID_NOT_RUN || word[ROW(o)] == NOT_LAUNCHED)
    :: lowest == 0 -> assert(word[ROW(o)] == ops[o].fails)
    fi;
    its_kind = kind[to]; its_root = root[to];
    blame(o, kind[to]);
    kind[to] = its_kind; root[to] = its_root;
    lowest = 0; its_kind = 0; its_root = 0;
    unlink(o, to);
    recycle(o)
}

#ifdef BUG_UNENDED_IS_NOT_READ
#define IS_FIRST_READY true
#else
#define IS_FIRST_READY (ops[o].unended == 0)
#endif

inline end_arrived()
{
    do
    :: q < 2 ->
        if
        :: nempty(arrived[q]) ->
            arrived[q]?<o>;
            if
            :: IS_FIRST_READY -> arrived[q]?o; end_op(o, ops[o].target); q = 0 /* others may wait for it */
            :: else -> q++
            fi
        :: empty(arrived[q]) -> q++
        fi
    :: q == 2 -> break
    od;
    q = 0; o = 0
}

/* The window, counted from the oldest. */
#define MAY_DISPATCH (made < OPS && (made < TAKEN || ((BIT(made + 1 - TAKEN) - 1) & ~ended) == 0))

active proctype engine()
{
    byte o, q, i, lowest, its_kind, its_root;
    do
    :: atomic { MAY_DISPATCH ->
        choose(made);
        run_sequentially(made, ops[made].target);
        dispatch(made, ops[made].target);
        made++ }
    :: atomic { completions?o ->
#ifdef BUG_ARRIVED_OUT_OF_ORDER
        if
        :: ops[o].unended == 0 -> end_op(o, ops[o].target)
        :: else -> arrived[ops[o].queue]!o
        fi;
#else
        arrived[ops[o].queue]!o;
#endif
        end_arrived() }
    :: atomic { ended == BIT(OPS) - 1 -> break }
    od;
    atomic {
        q = 0;
        do
        :: q < 2 ->
            assert(kind[q] == right_kind[q]);
            assert(root[q] == right_root[q]);
            assert(kind[q] == POISONED || kind[q] == TORN || value[q] == right_value[q]);
            q++
        :: else -> break
        od
    }
}

/* ---- the launcher ---- */

inline mark(on)
{
    if
    :: HAS(unmarked, on) -> on_device[on]!MARK, 0; DROP(unmarked, on)
    :: else -> skip
    fi
}

inline launch_on(on, o)
{
    launched[on]!o; on_device[on]!LAUNCH, o; ADD(unmarked, on)
}

/* A mark may wait, and one stand for several launches, as long as another launch is to come. */
inline mark_now_or_later()
{
    if
    :: true -> mark(0); mark(1)
#ifdef BUG_THE_LAST_MARK_IS_LEFT_OUT
    :: true -> skip
#else
    :: nempty(dispatched) -> skip
#endif
    fi
}

#define HAS_INPUTS(o) ((ops[o].covers || has_memory[ops[o].target]) && (!ops[o].reads || has_memory[OTHER(o)]))

active proctype launcher()
{
    byte o;
end:
    do
    :: atomic { dispatched?o ->
        ticket_of[ROW(o)] = o;
        if
#ifdef BUG_WORD_OF_NOT_LAUNCHED_IS_CLEAR
        :: !ops[o].is_launched -> word[ROW(o)] = RAN; ops[o].is_launched = false
        :: ops[o].is_launched && !HAS_INPUTS(o) -> word[ROW(o)] = RAN; ops[o].is_launched = false
#else
        :: !ops[o].is_launched || !HAS_INPUTS(o) -> word[ROW(o)] = DID_NOT_RUN; ops[o].is_launched = false
#endif
        :: ops[o].is_launched && HAS_INPUTS(o) && ops[o].fails == NOT_LAUNCHED ->
            word[ROW(o)] = NOT_LAUNCHED; ops[o].is_launched = false
        :: ops[o].is_launched && HAS_INPUTS(o) && ops[o].fails != NOT_LAUNCHED ->
            word[ROW(o)] = RAN;
            has_memory[ops[o].target] = true
        fi;
#ifdef BUG_NOT_LAUNCHED_IS_NOT_MARKED
        if
        :: ops[o].is_launched -> launch_on(ops[o].queue, o)
        :: else -> skip
        fi;
#else
        launch_on(ops[o].queue, o);
#endif
        mark_now_or_later()
#ifdef BUG_TOUCHED_AFTER_THE_MARK
        };
        atomic { assert(!HAS(ended, o));
#endif
        ;
        o = 0 }
    od
}

/* ---- the device ---- */

/* Before it runs: whether one of its sources has failed or did not run. With RUNS_ON a kernel that covers runs all the same; its word must
 * not say so. */
inline look(o)
{
    i = 0;
    do
    :: i < OPS ->
        if
        :: HAS(ops[o].looks, i) ->
            assert(ticket_of[ROW(i)] == i);
            is_lost = is_lost || word[ROW(i)] != RAN
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    i = 0
#ifdef BUG_KERNEL_DOES_NOT_LOOK
    ;
    is_lost = false
#endif
}

proctype queue(byte q)
{
    byte o, i, result;
    bool is_lost;
end:
    do
    :: atomic { on_device[q]?MARK, _ ->
        do
        :: ran[q] != 0 -> unread[q]++; ran[q] = ran[q] & (ran[q] - 1)
        :: else -> break
        od }
    :: atomic { on_device[q]?LAUNCH, o;
        (ops[o].wait == 0 || HAS(complete, ops[o].wait - 1));
        if
        :: ops[o].is_launched ->
            look(o);
            if
#ifdef RUNS_ON
            :: !is_lost || ops[o].covers ->
#else
            :: !is_lost ->
#endif
                result = MIX(o, READ(o, value), value[ops[o].target]);
                value[ops[o].target] = 31 /* in pieces */
            :: else -> skip
            fi
        :: else -> skip
        fi };
        atomic {
        if
#ifdef BUG_RUNS_ON_IN_SILENCE
        :: ops[o].is_launched && is_lost -> word[ROW(o)] = (ops[o].covers -> RAN : DID_NOT_RUN)
#else
        :: ops[o].is_launched && is_lost -> word[ROW(o)] = DID_NOT_RUN
#endif
        :: ops[o].is_launched && !is_lost && ops[o].fails == FAILED -> word[ROW(o)] = FAILED
        :: ops[o].is_launched && !is_lost && ops[o].fails != FAILED -> value[ops[o].target] = result
        :: !ops[o].is_launched
        fi;
        ADD(complete, o);
        ADD(ran[q], o);
        o = 0; result = 0; is_lost = false }
    od
}

/* ---- the reaper, and a thread that waits ---- */

/* Under the lock of the queue's list. */
inline reap(q)
{
#ifdef BUG_REAPED_WITHOUT_THE_LOCK
    atomic { unread[q] > 0 -> unread[q]--; launched[q]?o; assert(HAS(complete, o)) };
    atomic { completions!o; o = 0 }
#else
    atomic { unread[q] > 0 -> unread[q]--; launched[q]?o; assert(HAS(complete, o)); completions!o; o = 0 }
#endif
}

active [2] proctype reaper()
{
    byte o;
end:
    do
    :: reap(0)
    :: reap(1)
    od
}

init
{
    atomic { run queue(0); run queue(1) }
}
