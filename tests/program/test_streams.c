/* Streams of random steps: that rows and waits order what has to be ordered, and that no wait can be left out, by following every way through them; and the memory of
 * their storages, by every pair of uses. Nothing of the library but what is tested. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <program/accesses.h>
#include <program/streams.h>
#include <stdlib.h>
#include <string.h>
#include <tests/rounds.h>

#define STEPS 24
#define STORAGES 10
#define ACCESSES 4
#define CASES ROUNDS_OF(10000)

static uint32_t state;

static uint32_t below(uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * bound >> 24);
}

/* Few storages make many steps depend on each other, many storages few. */
static void make_accesses(eddy_accesses *a) {
    uint32_t steps = 1 + below(STEPS), storages = 1 + below(STORAGES), at = 0;
    uint32_t writes = 1 + below(4);
    cr_assert(eddy_accesses_init(a, steps, storages, steps * ACCESSES));
    for (uint32_t v = 0; v < storages; v++)
        a->bytes[v] = below(5000);
    for (uint32_t step = 0; step < steps; step++) {
        for (uint32_t count = below(ACCESSES + 1); count > 0; count--)
            a->items[at++] = (eddy_step_access){below(storages), below(4) < writes};
        a->at[step + 1] = at;
        a->costs_ps[step] = below(60000000);
    }
}

/* ---- every way ---- */

typedef struct order {
    bool is_before[STEPS][STEPS];
} order;

/* The steps one behind the other in a row, and those that a wait puts behind others; and so on from there. without: a wait that is left out, or -1. False where steps
 * would wait for themselves. */
static bool find_order(const eddy_streams *streams, int without, order *o) {
    memset(o, 0, sizeof(*o));
    for (uint32_t s = 0; s < streams->count; s++) {
        const eddy_stream_row *row = &streams->rows[s];
        for (uint32_t i = row->steps_at + 1; i < row->steps_at + row->step_count; i++)
            o->is_before[streams->steps[i - 1]][streams->steps[i]] = true;
        for (uint32_t k = 0; k < row->segment_count; k++) {
            const eddy_segment *segment = &streams->segments[row->segments_at + k];
            for (uint32_t w = segment->waits_at; w < segment->waits_at + segment->wait_count; w++) {
                const eddy_segment_wait *wait = &streams->waits[w];
                const eddy_segment *last =
                    &streams
                         ->segments[streams->rows[wait->stream].segments_at + wait->segments - 1];
                if ((int)w != without)
                    o->is_before[streams->steps[last->steps_at + last->step_count - 1]]
                                [streams->steps[segment->steps_at]] = true;
            }
        }
    }
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < STEPS; i++)
            for (int j = 0; j < STEPS && o->is_before[i][k]; j++)
                o->is_before[i][j] |= o->is_before[k][j];
    for (int i = 0; i < STEPS; i++)
        if (o->is_before[i][i])
            return false;
    return true;
}

static bool conflict(const eddy_accesses *a, uint32_t one, uint32_t other) {
    for (uint32_t i = a->at[one]; i < a->at[one + 1]; i++)
        for (uint32_t k = a->at[other]; k < a->at[other + 1]; k++)
            if (a->items[i].storage == a->items[k].storage &&
                (a->items[i].writes || a->items[k].writes))
                return true;
    return false;
}

static bool orders_all(const eddy_accesses *a, const order *o) {
    for (uint32_t i = 0; i < a->step_count; i++)
        for (uint32_t k = i + 1; k < a->step_count; k++)
            if (conflict(a, i, k) && !o->is_before[i][k])
                return false;
    return true;
}

static bool is_sound(const eddy_streams *streams, const eddy_accesses *a) {
    bool is_known, sound = eddy_streams_check(streams, a, &is_known);
    cr_assert(is_known);
    return sound;
}

static void make_streams(eddy_streams *streams, eddy_stream_clocks *clocks, const eddy_accesses *a,
                         int32_t count) {
    eddy_streams_wish wish = {.thread_count = 4, .stream_count = count};
    cr_assert(eddy_streams_make(streams, clocks, a, &wish));
    cr_assert_eq((int32_t)streams->count, count);
}

/* The clock of each step counts the steps of each row that come before it, and itself. */
static void expect_clocks(const eddy_streams *streams, const eddy_stream_clocks *clocks,
                          const order *o, uint32_t steps) {
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t counts[EDDY_STREAMS_MOST] = {0};
        for (uint32_t other = 0; other < steps; other++)
            counts[clocks->stream_of[other]] += other == step || o->is_before[other][step];
        for (uint32_t s = 0; s < streams->count; s++)
            cr_assert_eq(eddy_stream_clock(clocks, step)[s], counts[s]);
    }
}

/* A copy of the streams without one of the waits. */
static void leave_out(const eddy_streams *streams, uint32_t without, eddy_streams *less,
                      eddy_segment *segments, eddy_segment_wait *waits) {
    *less = *streams;
    less->segments = segments;
    less->waits = waits;
    less->wait_count--;
    memcpy(segments, streams->segments, streams->segment_count * sizeof(*segments));
    for (uint32_t w = 0, at = 0; w < streams->wait_count; w++)
        if (w != without)
            waits[at++] = streams->waits[w];
    for (uint32_t i = 0; i < streams->segment_count; i++) {
        if (segments[i].waits_at > without)
            segments[i].waits_at--;
        else if (segments[i].waits_at + segments[i].wait_count > without)
            segments[i].wait_count--;
    }
}

Test(streams, waits_order_what_depends_and_none_of_them_can_be_left_out) {
    static order o;
    uint64_t waits = 0, dependencies = 0;
    for (uint32_t seed = 1; seed <= CASES; seed++) {
        eddy_accesses a;
        eddy_streams streams, less;
        eddy_stream_clocks clocks;
        eddy_segment segments[STEPS];
        eddy_segment_wait some[STEPS * EDDY_STREAMS_MOST];
        state = seed;
        make_accesses(&a);
        make_streams(&streams, &clocks, &a, 2 + (int32_t)below(3));
        cr_assert(find_order(&streams, -1, &o) && orders_all(&a, &o), "seed %u", seed);
        cr_assert(is_sound(&streams, &a), "seed %u", seed);
        expect_clocks(&streams, &clocks, &o, a.step_count);
        for (uint32_t w = 0; w < streams.wait_count; w++) {
            find_order(&streams, (int)w, &o);
            cr_assert_not(orders_all(&a, &o), "seed %u: wait %u says nothing", seed, w);
            leave_out(&streams, w, &less, segments, some);
            cr_assert_not(is_sound(&less, &a), "seed %u: wait %u is not missed", seed, w);
        }
        waits += streams.wait_count;
        dependencies += streams.dependency_count;
        cr_assert_leq(streams.wait_count, streams.dependency_count);
        eddy_streams_fini(&streams);
        eddy_stream_clocks_fini(&clocks);
        eddy_accesses_fini(&a);
    }
    /* The cases are such that clocks have something to save. */
    cr_assert_lt(waits, dependencies * 3 / 4);
}

/* A wait for more or fewer segments, one of another stream, or two steps that have changed places. */
static void damage(eddy_streams *streams, uint32_t steps) {
    if (streams->wait_count > 0 && below(3) > 0) {
        eddy_segment_wait *wait = &streams->waits[below(streams->wait_count)];
        if (below(2))
            wait->stream = below(streams->count);
        wait->segments = below(streams->segment_count + 2);
        return;
    }
    uint32_t one = below(steps), other = below(steps), step = streams->steps[one];
    streams->steps[one] = streams->steps[other];
    streams->steps[other] = step;
}

/* Whether find_order may go over the streams: each wait names segments that there are, of another stream, and rows rise. */
static bool may_be_followed(const eddy_streams *streams) {
    for (uint32_t w = 0; w < streams->wait_count; w++)
        if (streams->waits[w].segments == 0 ||
            streams->waits[w].segments > streams->rows[streams->waits[w].stream].segment_count)
            return false;
    for (uint32_t s = 0; s < streams->count; s++)
        for (uint32_t i = 1; i < streams->rows[s].step_count; i++)
            if (streams->steps[streams->rows[s].steps_at + i - 1] >=
                streams->steps[streams->rows[s].steps_at + i])
                return false;
    for (uint32_t s = 0; s < streams->count; s++)
        for (uint32_t k = 0; k < streams->rows[s].segment_count; k++) {
            const eddy_segment *segment = &streams->segments[streams->rows[s].segments_at + k];
            for (uint32_t w = 0; w < segment->wait_count; w++)
                if (streams->waits[segment->waits_at + w].stream == s)
                    return false;
        }
    return true;
}

Test(streams, the_check_of_streams_finds_all_that_is_wrong) {
    static order o;
    uint32_t wrong = 0;
    for (uint32_t seed = 1; seed <= CASES; seed++) {
        eddy_accesses a;
        eddy_streams streams;
        eddy_stream_clocks clocks;
        state = seed;
        make_accesses(&a);
        make_streams(&streams, &clocks, &a, 2 + (int32_t)below(3));
        damage(&streams, a.step_count);
        bool expected =
            may_be_followed(&streams) && find_order(&streams, -1, &o) && orders_all(&a, &o);
        cr_assert_eq(is_sound(&streams, &a), expected, "seed %u", seed);
        wrong += !expected;
        eddy_streams_fini(&streams);
        eddy_stream_clocks_fini(&clocks);
        eddy_accesses_fini(&a);
    }
    cr_assert(wrong > CASES / 4 && wrong < CASES);
}

/* ---- memory ---- */

static bool uses(const eddy_accesses *a, uint32_t step, uint32_t storage) {
    for (uint32_t i = a->at[step]; i < a->at[step + 1]; i++)
        if (a->items[i].storage == storage)
            return true;
    return false;
}

static bool is_over(const eddy_accesses *a, const order *o, uint32_t one, uint32_t other) {
    for (uint32_t i = 0; i < a->step_count; i++)
        for (uint32_t k = 0; k < a->step_count; k++)
            if (uses(a, i, one) && uses(a, k, other) && !o->is_before[i][k])
                return false;
    return true;
}

static bool are_apart(const eddy_accesses *a, const order *o, const eddy_arena_block *blocks) {
    for (uint32_t i = 0; i < a->storage_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (blocks[i].bytes > 0 && blocks[k].bytes > 0 &&
                blocks[i].offset < blocks[k].offset + blocks[k].bytes &&
                blocks[k].offset < blocks[i].offset + blocks[i].bytes && !is_over(a, o, i, k) &&
                !is_over(a, o, k, i))
                return false;
    return true;
}

static void make_blocks(const eddy_accesses *a, eddy_arena_block *blocks) {
    for (uint32_t v = 0; v < a->storage_count; v++) {
        blocks[v] = (eddy_arena_block){0};
        for (uint32_t step = a->step_count; step-- > 0;)
            if (uses(a, step, v)) {
                if (blocks[v].bytes == 0)
                    blocks[v] = (eddy_arena_block){.bytes = 1 + a->bytes[v], .last = step};
                blocks[v].first = step;
            }
    }
}

Test(streams, memory_is_shared_where_one_has_been_used_before_the_other) {
    static order o;
    uint32_t wrong = 0, shared = 0;
    for (uint32_t seed = 1; seed <= CASES; seed++) {
        eddy_accesses a;
        eddy_streams streams;
        eddy_stream_clocks clocks;
        eddy_arena_block blocks[STORAGES];
        eddy_arena_plan plan;
        uint32_t words[2][STORAGES * EDDY_STREAMS_MOST];
        eddy_arena_lives lives = {.begins = words[0], .ends = words[1]};
        bool is_known;
        state = seed;
        make_accesses(&a);
        make_streams(&streams, &clocks, &a, 2 + (int32_t)below(3));
        cr_assert(find_order(&streams, -1, &o));
        make_blocks(&a, blocks);
        eddy_streams_find_lives(&clocks, &a, a.storage_count, &lives);
        cr_assert(eddy_arena_make_of_streams(blocks, a.storage_count, &lives, &plan));
        cr_assert(are_apart(&a, &o, blocks), "seed %u", seed);
        cr_assert(eddy_streams_check_memory(&streams, &a, blocks, a.storage_count, &is_known));
        cr_assert(eddy_arena_check(blocks, a.storage_count, plan.bytes, &is_known));
        cr_assert_geq(plan.bytes, plan.bound);
        int64_t sum = 0;
        for (uint32_t v = 0; v < a.storage_count; v++)
            sum += (blocks[v].bytes + 63) / 64 * 64;
        shared += plan.bytes < sum;
        blocks[below(a.storage_count)].offset = 0;
        bool expected = are_apart(&a, &o, blocks);
        cr_assert_eq(eddy_streams_check_memory(&streams, &a, blocks, a.storage_count, &is_known),
                     expected, "seed %u", seed);
        wrong += !expected;
        eddy_streams_fini(&streams);
        eddy_stream_clocks_fini(&clocks);
        eddy_accesses_fini(&a);
    }
    cr_assert_gt(wrong, CASES / 8);
    cr_assert_gt(shared, CASES / 8);
}

/* ---- whether it pays ---- */

/* `towers` chains of `length` steps each, recorded one after the other. Each step reads what the one before it wrote. */
static void make_towers(eddy_accesses *a, uint32_t towers, uint32_t length, int64_t cost_ps,
                        int64_t bytes) {
    cr_assert(eddy_accesses_init(a, towers * length, towers * length, 2 * towers * length));
    for (uint32_t step = 0, at = 0; step < towers * length; step++) {
        if (step % length != 0)
            a->items[at++] = (eddy_step_access){step - 1, false};
        a->items[at++] = (eddy_step_access){step, true};
        a->at[step + 1] = at;
        a->costs_ps[step] = cost_ps;
        a->bytes[step] = bytes;
    }
}

static uint32_t streams_of_towers(uint32_t towers, uint32_t length, int64_t cost_ps,
                                  int32_t threads) {
    eddy_accesses a;
    eddy_streams streams = {.count = 1};
    eddy_stream_clocks clocks = {0};
    eddy_streams_wish wish = {.thread_count = threads};
    make_towers(&a, towers, length, cost_ps, 4096);
    if (eddy_streams_may_pay(towers * length * cost_ps, towers * length, &wish)) {
        cr_assert(eddy_streams_make(&streams, &clocks, &a, &wish));
        if (streams.count > 1)
            cr_assert_lt(streams.several_ps, streams.one_ps);
    }
    uint32_t count = streams.count;
    eddy_streams_fini(&streams);
    eddy_stream_clocks_fini(&clocks);
    eddy_accesses_fini(&a);
    return count;
}

#define US INT64_C(1000000)

Test(streams, streams_are_made_where_estimates_say_that_they_pay) {
    cr_assert_eq(streams_of_towers(2, 20, 5 * US, 2), 2);
    cr_assert_eq(streams_of_towers(2, 20, 5 * US, 4), 2);
    cr_assert_eq(streams_of_towers(4, 20, 5 * US, 4), 4);
    cr_assert_eq(streams_of_towers(4, 20, 5 * US, 2), 2);
    cr_assert_eq(streams_of_towers(8, 20, 5 * US, 64), EDDY_STREAMS_MOST);
    /* A row of steps that depend on each other, too little for a wake, steps that have helpers of their own, one thread. */
    cr_assert_eq(streams_of_towers(1, 40, 5 * US, 4), 1);
    cr_assert_eq(streams_of_towers(2, 4, 5 * US, 2), 1);
    cr_assert_eq(streams_of_towers(2, 20, 500 * US, 2), 1);
    cr_assert_eq(streams_of_towers(2, 20, 5 * US, 1), 1);
    /* So many that planning their memory would take long. */
    cr_assert_eq(streams_of_towers(2, EDDY_STREAMS_STEPS_MOST / 2, 5 * US, 2), 2);
    cr_assert_eq(streams_of_towers(2, EDDY_STREAMS_STEPS_MOST / 2 + 1, 5 * US, 2), 1);
}

/* Steps in turns of two towers: with little to move they go apart, with much they do not. */
static uint32_t streams_of_ladder(int64_t bytes) {
    eddy_accesses a;
    eddy_streams streams;
    eddy_stream_clocks clocks;
    eddy_streams_wish wish = {.thread_count = 2};
    cr_assert(eddy_accesses_init(&a, 60, 60, 180));
    for (uint32_t step = 0, at = 0; step < 60; step++) {
        for (uint32_t from = step / 2 * 2; from-- > 0 && from + 3 > step / 2 * 2;)
            a.items[at++] = (eddy_step_access){from, false};
        a.items[at++] = (eddy_step_access){step, true};
        a.at[step + 1] = at;
        a.costs_ps[step] = 8 * US;
        a.bytes[step] = bytes;
    }
    cr_assert(eddy_streams_make(&streams, &clocks, &a, &wish));
    uint32_t count = streams.count;
    eddy_streams_fini(&streams);
    eddy_stream_clocks_fini(&clocks);
    eddy_accesses_fini(&a);
    return count;
}

Test(streams, what_goes_from_core_to_core_counts) {
    cr_assert_eq(streams_of_ladder(64), 2);
    cr_assert_eq(streams_of_ladder(1 << 20), 1);
}

Test(streams, without_memory_there_are_no_streams) {
    eddy_accesses a;
    eddy_streams streams;
    eddy_stream_clocks clocks;
    eddy_streams_wish wish = {.thread_count = 2};
    bool has_made = false, is_known = false;
    make_towers(&a, 2, 20, 5 * US, 64);
    for (int64_t n = 0; !has_made; n++) {
        int64_t held = eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes;
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, n, 1);
        has_made = eddy_streams_make(&streams, &clocks, &a, &wish);
        cr_assert_eq(has_made, eddy_memory_failures_injected() == 0);
        if (!has_made)
            cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, held);
    }
    cr_assert_eq(streams.count, 2);
    eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 1);
    cr_assert_not(eddy_streams_check(&streams, &a, &is_known));
    cr_assert_not(is_known);
    eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 1);
    cr_assert_not(eddy_streams_check_memory(&streams, &a, NULL, 0, &is_known));
    cr_assert_not(is_known);
    eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
    cr_assert(is_sound(&streams, &a));
    eddy_streams_fini(&streams);
    eddy_stream_clocks_fini(&clocks);
    eddy_accesses_fini(&a);
}
