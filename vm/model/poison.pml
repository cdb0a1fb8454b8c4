/* Section 11: poison and blame follow from data flow and the order of submission alone. A program of OPS
 * instructions is chosen at random; the sequential outcome is worked out first, with the rules written out once
 * more; then two runners execute ready instructions in any order, reading the words at one moment and writing them
 * at a later one. At the end values, kinds and roots must be equal.
 *
 * An instruction reads `source` and writes `target`: covers it, or changes it in place; it may fail; or it is a
 * recover. */
#include "primitives.pml"

#ifndef OPS
#define OPS 3
#endif
#define STORAGES 3
#define HEALTHY 0
#define POISONED 1
#define SKIPPED 2
#define TORN 3

#define COVER 0
#define IN_PLACE 1
#define RECOVER 2

typedef op_type {
    byte source, target, access;
    bool fails;
    byte waits;
};
op_type ops[OPS];
byte kind[STORAGES], root[STORAGES], value[STORAGES]; /* root: sequence number + 1 */
byte right_kind[STORAGES], right_root[STORAGES], right_value[STORAGES];
byte last_writer[STORAGES] = NOBODY;
byte readers[STORAGES];
byte live, started, fails_so_far;
bool is_set_up;

#define MIX(o, of_source, of_target) \
    ((ops[o].access == COVER -> 3 * (of_source) + (o) + 1 : 3 * (of_source) + 5 * (of_target) + (o) + 1) % 64)

inline choose(o)
{
    select(i : 0 .. STORAGES - 1);
    ops[o].target = i;
    if
    :: ops[o].access = RECOVER
    :: ops[o].access = COVER
    :: ops[o].access = IN_PLACE
    fi;
    if
    :: ops[o].access != RECOVER ->
        select(i : 0 .. STORAGES - 1);
        ops[o].source = i;
        if
        :: ops[o].fails = true
        :: ops[o].fails = false
        fi
    :: else -> ops[o].source = ops[o].target
    fi;
    i = 0
}

/* What a program run one instruction after the other leaves. */
inline run_sequentially(o)
{
    s = ops[o].source;
    t = ops[o].target;
    if
    :: ops[o].access == RECOVER ->
        if
        :: right_kind[t] == SKIPPED -> right_kind[t] = HEALTHY; right_root[t] = 0
        :: else -> skip
        fi
    :: ops[o].access == COVER && right_kind[s] != HEALTHY ->
        right_root[t] = right_root[s]; right_kind[t] = POISONED; right_value[t] = 0
    :: ops[o].access == COVER && right_kind[s] == HEALTHY && ops[o].fails ->
        right_root[t] = o + 1; right_kind[t] = POISONED; right_value[t] = 0
    :: ops[o].access == COVER && right_kind[s] == HEALTHY && !ops[o].fails ->
        right_value[t] = MIX(o, right_value[s], right_value[t]); right_root[t] = 0; right_kind[t] = HEALTHY
    :: ops[o].access == IN_PLACE && right_kind[t] != HEALTHY -> skip
    :: ops[o].access == IN_PLACE && right_kind[t] == HEALTHY && right_kind[s] != HEALTHY ->
        right_root[t] = right_root[s]; right_kind[t] = SKIPPED
    :: ops[o].access == IN_PLACE && right_kind[t] == HEALTHY && right_kind[s] == HEALTHY && ops[o].fails ->
        right_root[t] = o + 1; right_kind[t] = TORN; right_value[t] = 0
    :: ops[o].access == IN_PLACE && right_kind[t] == HEALTHY && right_kind[s] == HEALTHY && !ops[o].fails ->
        right_value[t] = MIX(o, right_value[s], right_value[t])
    fi
}

inline link_op(o)
{
    if
    :: last_writer[ops[o].target] != NOBODY -> ADD(ops[o].waits, last_writer[ops[o].target])
    :: else -> skip
    fi;
#ifndef BUG_WRITE_PASSES_READERS
    ops[o].waits = ops[o].waits | readers[ops[o].target];
#endif
    last_writer[ops[o].target] = o;
    readers[ops[o].target] = 0;
    if
    :: last_writer[ops[o].source] != NOBODY && last_writer[ops[o].source] != o ->
        ADD(ops[o].waits, last_writer[ops[o].source])
    :: else -> skip
    fi;
    ADD(readers[ops[o].source], o);
    ADD(live, o)
}

/* The poison that keeps the instruction from running: lowest root of its inputs, 0 for none. */
inline read_inputs(o)
{
    of_source = value[ops[o].source];
    of_target = value[ops[o].target];
    found = root[ops[o].source];
    if
#ifdef BUG_IN_PLACE_TARGET_NOT_READ
    :: true -> skip
#elif defined(BUG_LAST_ROOT_BLAMED)
    :: ops[o].access == IN_PLACE && root[ops[o].target] != 0 -> found = root[ops[o].target]
#else
    :: ops[o].access == IN_PLACE && root[ops[o].target] != 0 && (found == 0 || root[ops[o].target] < found) ->
        found = root[ops[o].target]
#endif
    :: else -> skip
    fi
}

inline write_outcome(o)
{
    t = ops[o].target;
    if
    :: ops[o].access == RECOVER ->
        if
#ifdef BUG_RECOVER_HEALS_TORN
        :: kind[t] == SKIPPED || kind[t] == TORN -> kind[t] = HEALTHY; root[t] = 0
#else
        :: kind[t] == SKIPPED -> kind[t] = HEALTHY; root[t] = 0
#endif
        :: else -> skip
        fi
    :: ops[o].access != RECOVER && found != 0 ->
        if
        :: ops[o].access == COVER -> kind[t] = POISONED; root[t] = found; value[t] = 0
#ifdef BUG_LAST_ROOT_BLAMED
        :: ops[o].access == IN_PLACE -> kind[t] = SKIPPED; root[t] = found
#else
        :: ops[o].access == IN_PLACE && kind[t] == HEALTHY -> kind[t] = SKIPPED; root[t] = found
#endif
        :: else -> skip
        fi
    :: ops[o].access != RECOVER && found == 0 && ops[o].fails ->
        fails_so_far++;
        kind[t] = (ops[o].access == COVER -> POISONED : TORN);
#ifdef BUG_ROOTS_NUMBERED_BY_TIME
        root[t] = fails_so_far;
#else
        root[t] = o + 1;
#endif
        value[t] = 0
    :: ops[o].access != RECOVER && found == 0 && !ops[o].fails ->
        value[t] = MIX(o, of_source, of_target);
        kind[t] = HEALTHY;
        root[t] = 0
    fi
}

#define IS_READY(i) (HAS(live & ~started, i) && ops[i].waits == 0)

active [2] proctype runner()
{
    byte o, i, t, found, of_source, of_target;
    is_set_up;
    do
    :: atomic {
        if
        :: IS_READY(0) -> o = 0
        :: IS_READY(1) -> o = 1
        :: IS_READY(2) -> o = 2
#if OPS > 3
        :: IS_READY(3) -> o = 3
#endif
        fi;
        ADD(started, o);
        read_inputs(o) };
        atomic { write_outcome(o);
        DROP(live, o);
        i = 0;
        do
        :: i < OPS -> DROP(ops[i].waits, o); i++
        :: else -> break
        od;
        i = 0; t = 0; o = 0; found = 0; of_source = 0; of_target = 0 }
    :: atomic { (live & ~started) == 0 -> break }
    od
}

init
{
    byte o, i, s, t;
    atomic {
        do
        :: o < OPS ->
            choose(o);
            run_sequentially(o);
            link_op(o);
            o++
        :: else -> break
        od;
        o = 0;
        is_set_up = true
    }
    live == 0;
    d_step {
        i = 0;
        do
        :: i < STORAGES ->
            assert(kind[i] == right_kind[i]);
            assert(kind[i] == HEALTHY || root[i] == right_root[i]);
            assert(value[i] == right_value[i]);
            i++
        :: else -> break
        od
    }
}
