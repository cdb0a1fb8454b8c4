/* Section 11: poison and blame follow from data flow and the order of submission alone. A program of OPS
 * instructions is chosen at random; the sequential outcome is worked out first, with the rules written out once
 * more; then two runners execute ready instructions in any order, reading the words at one moment and writing them
 * at a later one. At the end values, kinds and roots must be equal.
 *
 * An instruction reads `source` and writes `target`: covers it, or changes it in place; it may fail; or it is a
 * recover. Some that follow each other may be the parts of a program's run: one instruction then, which reads the words
 * once, carries poison from part to part by a table of its own, and writes those of its targets at its end. */
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
    byte parts; /* all parts of its run: itself where it is none */
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

/* Which instructions are parts of one run: none, or all from one to another. A recover is never one. */
inline choose_run()
{
#ifdef FIRST_PART
    s = FIRST_PART;
    t = LAST_PART;
#else
    select(s : 0 .. OPS - 1);
    select(t : s .. OPS - 1);
#endif
    o = 0; i = 0;
    do
    :: o < OPS ->
        ops[o].parts = 1 << o;
        if
        :: o >= s && o <= t && ops[o].access != RECOVER -> i = i | (1 << o)
        :: o >= s && o <= t && ops[o].access == RECOVER -> i = 0; t = 0
        :: else -> skip
        fi;
        o++
    :: else -> break
    od;
    /* It waits for what its parts wait for. */
    o = 0; s = 0;
    do
    :: o < OPS ->
        s = s | (HAS(i, o) -> ops[o].waits & ~i : 0);
        o++
    :: else -> break
    od;
    o = 0;
    do
    :: o < OPS ->
        if
        :: HAS(i, o) -> ops[o].parts = i; ops[o].waits = s
        :: else -> skip
        fi;
        o++
    :: else -> break
    od;
    o = 0; i = 0; s = 0; t = 0
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
    found = roots[ops[o].source];
    if
#ifdef BUG_IN_PLACE_TARGET_NOT_READ
    :: true -> skip
#elif defined(BUG_LAST_ROOT_BLAMED)
    :: ops[o].access == IN_PLACE && roots[ops[o].target] != 0 -> found = roots[ops[o].target]
#else
    :: ops[o].access == IN_PLACE && roots[ops[o].target] != 0 && (found == 0 || roots[ops[o].target] < found) ->
        found = roots[ops[o].target]
#endif
    :: else -> skip
    fi;
#ifdef BUG_POISONED_RUN_IS_SKIPPED
    if
    :: at_begin == 0 -> at_begin = found + 1
    :: else -> skip
    fi;
    if
    :: at_begin > 1 -> found = at_begin - 1
    :: else -> skip
    fi
#endif
}

inline set_outcome(o)
{
    t = ops[o].target;
    if
    :: ops[o].access == RECOVER ->
        if
#ifdef BUG_RECOVER_HEALS_TORN
        :: kinds[t] == SKIPPED || kinds[t] == TORN -> kinds[t] = HEALTHY; roots[t] = 0
#else
        :: kinds[t] == SKIPPED -> kinds[t] = HEALTHY; roots[t] = 0
#endif
        :: else -> skip
        fi
    :: ops[o].access != RECOVER && found != 0 ->
        if
        :: ops[o].access == COVER -> kinds[t] = POISONED; roots[t] = found; values[t] = 0
#ifdef BUG_LAST_ROOT_BLAMED
        :: ops[o].access == IN_PLACE -> kinds[t] = SKIPPED; roots[t] = found
#else
        :: ops[o].access == IN_PLACE && kinds[t] == HEALTHY -> kinds[t] = SKIPPED; roots[t] = found
#endif
        :: else -> skip
        fi
    :: ops[o].access != RECOVER && found == 0 && ops[o].fails ->
        fails_so_far++;
        kinds[t] = (ops[o].access == COVER -> POISONED : TORN);
#ifdef BUG_ROOTS_NUMBERED_BY_TIME
        roots[t] = fails_so_far;
#elif defined(BUG_PARTS_HAVE_ONE_NUMBER)
        roots[t] = (HAS(mine, 2) -> 3 : (HAS(mine, 1) -> 2 : 1));
#else
        roots[t] = o + 1;
#endif
        values[t] = 0
    :: ops[o].access != RECOVER && found == 0 && !ops[o].fails ->
        values[t] = MIX(o, values[ops[o].source], values[t]);
        kinds[t] = HEALTHY;
        roots[t] = 0
    fi;
    ADD(written, t)
}

inline load_table()
{
    do
    :: i < STORAGES -> kinds[i] = kind[i]; roots[i] = root[i]; values[i] = value[i]; i++
    :: else -> break
    od;
    i = 0
}

inline store_table()
{
    do
    :: i < STORAGES ->
        if
#ifdef BUG_RUN_WRITES_ALL_WORDS
        :: true -> kind[i] = kinds[i]; root[i] = roots[i]; value[i] = values[i]
#else
        :: HAS(written, i) -> kind[i] = kinds[i]; root[i] = roots[i]; value[i] = values[i]
        :: else -> skip
#endif
        fi;
        kinds[i] = 0; roots[i] = 0; values[i] = 0;
        i++
    :: else -> break
    od;
    i = 0; written = 0
}

#define IS_READY(i) (HAS(live & ~started, i) && ops[i].waits == 0)

active [2] proctype runner()
{
    byte o, i, t, found, mine, written, at_begin;
    byte kinds[STORAGES], roots[STORAGES], values[STORAGES];
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
        mine = ops[o].parts;
        started = started | mine;
        o = 0;
        load_table() };
        atomic {
        do
        :: o < OPS ->
            if
            :: HAS(mine, o) -> read_inputs(o); set_outcome(o)
            :: else -> skip
            fi;
            o++
        :: else -> break
        od;
        store_table();
        live = live & ~mine;
        do
        :: i < OPS -> ops[i].waits = ops[i].waits & ~mine; i++
        :: else -> break
        od;
        i = 0; t = 0; o = 0; found = 0; mine = 0; at_begin = 0 }
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
        choose_run();
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
