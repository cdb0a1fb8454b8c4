/* Plans of arenas: sound by a check that is written apart from the one in the library, near the bound, and of few blocks the best
 * there are. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <program/arena.h>
#include <stdlib.h>
#include <string.h>
#include <tests/rounds.h>

static uint32_t state;

static uint32_t below(uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(state >> 8) * bound >> 24);
}

static bool meet(const eddy_arena_block *a, const eddy_arena_block *b) {
    return a->bytes > 0 && b->bytes > 0 && a->first <= b->last && b->first <= a->last &&
           a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool is_sound(const eddy_arena_block *blocks, uint32_t count, int64_t bytes) {
    for (uint32_t i = 0; i < count; i++) {
        if (blocks[i].offset < 0 || blocks[i].offset + blocks[i].bytes > bytes ||
            blocks[i].offset % EDDY_ARENA_ALIGNMENT != 0)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (meet(&blocks[i], &blocks[k]))
                return false;
    }
    return true;
}

static void expect_sound(eddy_arena_block *blocks, uint32_t count, eddy_arena_plan *plan) {
    bool is_known;
    cr_assert(eddy_arena_make(blocks, count, plan));
    cr_assert(is_sound(blocks, count, plan->bytes), "planned by %s", plan->heuristic);
    cr_assert(eddy_arena_check(blocks, count, plan->bytes, &is_known));
    cr_assert(is_known);
    cr_assert_geq(plan->bytes, plan->bound);
}

/* ---- kinds of lifetimes ---- */

#define SPAN 40

static void any_lives(eddy_arena_block *blocks, uint32_t count) {
    uint32_t span = 1 + below(SPAN);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(span);
        blocks[i] = (eddy_arena_block){below(5) * 40, first, first + below(4), 0};
    }
}

/* Each lies within the one before it. */
static void stacks(eddy_arena_block *blocks, uint32_t count) {
    uint32_t first = 0, last = 2 * count;
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = (eddy_arena_block){1 + below(2000), first, last, 0};
        first += below(2);
        last -= below(2);
    }
}

/* Blocks live within a phase; every eighth from its phase to the end. */
static void phases(eddy_arena_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t phase = below(4) * 10, first = phase + below(10);
        blocks[i] = (eddy_arena_block){64 * below(50), first, phase + 9, 0};
        if (i % 8 == 0)
            blocks[i].last = SPAN;
    }
}

static void long_beside_short(eddy_arena_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(SPAN);
        blocks[i] = (eddy_arena_block){below(9000), first, first, 0};
        if (i % 3 == 0)
            blocks[i] = (eddy_arena_block){below(900), first / 4, SPAN - first / 4, 0};
    }
}

static void equal_sizes(eddy_arena_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(SPAN);
        blocks[i] = (eddy_arena_block){200, first, first + below(SPAN), 0};
    }
}

static void powers_of_two(eddy_arena_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(SPAN);
        blocks[i] = (eddy_arena_block){INT64_C(1) << below(20), first, first + below(9), 0};
    }
}

static void most_without_bytes(eddy_arena_block *blocks, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = below(SPAN);
        int64_t bytes = below(4) == 0 ? below(500) : 0;
        blocks[i] = (eddy_arena_block){bytes, first, first + below(9), 0};
    }
}

/* Cuts a rectangle of instructions and units of 64 bytes in parts, along either side. */
static void cut(eddy_arena_block *blocks, uint32_t count, eddy_arena_block whole) {
    uint32_t span = whole.last - whole.first + 1, units = (uint32_t)(whole.bytes / 64);
    if (count == 1 || (span == 1 && units == 1)) {
        for (uint32_t i = 0; i < count; i++)
            blocks[i] = i == 0 ? whole : (eddy_arena_block){0};
        return;
    }
    uint32_t parts = 1 + below(count - 1);
    eddy_arena_block one = whole, other = whole;
    if (units == 1 || (span > 1 && below(2) == 0)) {
        other.first = whole.first + 1 + below(span - 1);
        one.last = other.first - 1;
    } else {
        one.bytes = 64 * (1 + (int64_t)below(units - 1));
        other.bytes = whole.bytes - one.bytes;
    }
    cut(blocks, parts, one);
    cut(blocks + parts, count - parts, other);
}

/* What fits without any waste, in the manner of MiniMalloc's benchmark (1 MiB, hundreds of blocks), which these are not taken from. */
static void tilings(eddy_arena_block *blocks, uint32_t count) {
    cut(blocks, count, (eddy_arena_block){1 << 20, 0, 399, 0});
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t k = below(i + 1);
        eddy_arena_block block = blocks[i];
        blocks[i] = blocks[k];
        blocks[k] = block;
    }
}

static const struct {
    const char *name;
    void (*make)(eddy_arena_block *blocks, uint32_t count);
    double most; /* of the bound, for hundreds of blocks */
} kinds[] = {
    {"any", any_lives, 1.01},
    {"stacks", stacks, 1.01},
    {"phases", phases, 1.01},
    {"long beside short", long_beside_short, 1.01},
    {"equal", equal_sizes, 1.01},
    {"powers of two", powers_of_two, 1.02},
    {"empty", most_without_bytes, 1.01},
    {"tilings", tilings, 1.4},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

Test(arena, random_lives_never_overlap) {
    for (uint32_t seed = 1; seed <= ROUNDS_OF(10000); seed++) {
        state = seed;
        eddy_arena_block blocks[24];
        uint32_t count = below(24) + 1;
        kinds[seed % KINDS].make(blocks, count);
        eddy_arena_plan plan;
        expect_sound(blocks, count, &plan);
    }
}

Test(arena, plans_are_near_the_bound) {
    for (uint32_t seed = 1; seed <= 12 * KINDS; seed++) {
        state = seed;
        eddy_arena_block blocks[454];
        uint32_t kind = seed % KINDS, count = 154 + below(301);
        kinds[kind].make(blocks, count);
        eddy_arena_plan plan;
        expect_sound(blocks, count, &plan);
        cr_expect_leq((double)plan.bytes, kinds[kind].most * (double)plan.bound,
                      "%s, seed %u, %u blocks: %lld of %lld", kinds[kind].name, seed, count,
                      (long long)plan.bytes, (long long)plan.bound);
    }
}

/* The temporaries of the convolutional network's training step (bench/ours/network_step.c): the heuristics leave 5 % of the bound. */
Test(arena, a_search_comes_to_the_bound) {
    eddy_arena_block blocks[] = {
        {200704, 0, 1, 0},    {200704, 1, 22, 0},   {6422528, 2, 21, 0}, {1605632, 3, 20, 0},
        {3211264, 5, 16, 0},  {802816, 6, 15, 0},   {2560, 8, 11, 0},    {4, 10, 11, 0},
        {2560, 11, 14, 0},    {802816, 12, 16, 0},  {125440, 13, 24, 0}, {40, 14, 24, 0},
        {3211264, 16, 19, 0}, {1605632, 17, 21, 0}, {73728, 18, 24, 0},  {256, 19, 24, 0},
        {6422528, 21, 23, 0}, {1152, 22, 24, 0},    {128, 23, 24, 0},    {25856, 2, 2, 0},
        {336128, 5, 5, 0},    {512, 9, 9, 0},       {73728, 17, 17, 0},  {2359296, 18, 18, 0},
        {26728, 19, 19, 0},   {6912, 22, 22, 0},    {51400, 23, 23, 0}};
    eddy_arena_plan plan;
    expect_sound(blocks, sizeof(blocks) / sizeof(blocks[0]), &plan);
    cr_assert_str_eq(plan.heuristic, "search");
    cr_assert_leq(plan.bytes, plan.bound + plan.bound / 128);
}

/* ---- few blocks: the best plan there is ---- */

/* Whether the blocks from the i-th on fit `bytes`, with those before in place: every offset is tried. */
static bool fit(eddy_arena_block *blocks, uint32_t count, uint32_t i, int64_t bytes) {
    if (i == count)
        return true;
    for (int64_t offset = 0; offset + blocks[i].bytes <= bytes; offset += 64) {
        blocks[i].offset = offset;
        bool is_clear = true;
        for (uint32_t k = 0; k < i; k++)
            is_clear = is_clear && !meet(&blocks[i], &blocks[k]);
        if (is_clear && fit(blocks, count, i + 1, bytes))
            return true;
    }
    return false;
}

/* The search does not go through all orders, but of so few blocks it finds the best. */
Test(arena, nine_blocks_take_the_optimum) {
    uint32_t searched = 0;
    for (uint32_t seed = 1; seed <= ROUNDS_OF(3000); seed++) {
        state = seed;
        eddy_arena_block blocks[9];
        uint32_t count = 1 + below(9), span = 2 + below(8);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = below(span);
            blocks[i] = (eddy_arena_block){64 * (1 + below(5)), first, first + below(5), 0};
        }
        eddy_arena_plan plan;
        expect_sound(blocks, count, &plan);
        int64_t optimum = plan.bound;
        while (!fit(blocks, count, 0, optimum))
            optimum += 64;
        cr_assert_eq(plan.bytes, optimum, "seed %u: %lld, not %lld", seed, (long long)plan.bytes,
                     (long long)optimum);
        searched += strcmp(plan.heuristic, "search") == 0;
    }
    /* Of the fewer that there are with a sanitizer none may be hard enough. */
    cr_assert(searched > 5 || ROUNDS_OF(3000) < 3000, "%u", searched);
}

Test(arena, same_blocks_same_plan) {
    for (uint32_t seed = 1; seed <= 200; seed++) {
        eddy_arena_block blocks[2][60];
        eddy_arena_plan plans[2];
        memset(blocks, 0, sizeof(blocks));
        for (int i = 0; i < 2; i++) {
            state = seed;
            kinds[seed % KINDS].make(blocks[i], 60);
            cr_assert(eddy_arena_make(blocks[i], 60, &plans[i]));
        }
        cr_assert_eq(plans[0].bytes, plans[1].bytes);
        cr_assert_str_eq(plans[0].heuristic, plans[1].heuristic);
        for (int i = 0; i < 60; i++)
            cr_assert_eq(blocks[0][i].offset, blocks[1][i].offset);
    }
}

/* ---- many blocks ---- */

#define MANY 5000

/* The blocks in the order of their first instruction, each in the tightest gap between those alive, of equal ones the lowest: by scans. */
static int64_t place_by_scans(eddy_arena_block *blocks, uint32_t count) {
    eddy_arena_block *alive[MANY];
    uint32_t alive_count = 0;
    int64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < alive_count; k++)
            if (alive[k]->last >= blocks[i].first)
                alive[kept++] = alive[k];
        int64_t bytes = (blocks[i].bytes + 63) / 64 * 64, end = 0, tightest = INT64_MAX;
        uint32_t at = kept;
        for (uint32_t k = 0; k < kept; k++) {
            int64_t gap = alive[k]->offset - end;
            if (gap >= bytes && gap < tightest) {
                tightest = gap;
                blocks[i].offset = end;
                at = k;
            }
            end = (alive[k]->offset + alive[k]->bytes + 63) / 64 * 64;
        }
        if (at == kept)
            blocks[i].offset = end;
        memmove(alive + at + 1, alive + at, (kept - at) * sizeof(*alive));
        alive[at] = &blocks[i];
        alive_count = kept + 1;
        most = blocks[i].offset + bytes > most ? blocks[i].offset + bytes : most;
    }
    return most;
}

/* Beyond 4,096 blocks no other heuristic runs. */
Test(arena, gaps_in_a_tree_are_gaps_found_by_scans) {
    static eddy_arena_block blocks[MANY], expected[MANY];
    for (uint32_t seed = 1; seed <= 12; seed++) {
        state = seed;
        for (uint32_t i = 0; i < MANY; i++)
            expected[i] = blocks[i] =
                (eddy_arena_block){1 + below(seed % 2 ? 9 : 900) * 64, i / seed,
                                   i / seed + below(300 * seed % 1000), 0};
        eddy_arena_plan plan;
        expect_sound(blocks, MANY, &plan);
        cr_assert_eq(plan.bytes, place_by_scans(expected, MANY));
        for (uint32_t i = 0; i < MANY; i++)
            cr_assert_eq(blocks[i].offset, expected[i].offset, "seed %u, block %u", seed, i);
    }
}

/* Each 50,000 alive at once takes what its neighbours leave: scans of all took seconds. */
Test(arena, many_alive_at_once_are_planned) {
    enum { COUNT = 50000 };
    eddy_arena_block *blocks = calloc(COUNT, sizeof(*blocks));
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = (eddy_arena_block){64 * (1 + i % 7), i, COUNT + i, 0};
    eddy_arena_plan plan;
    bool is_known;
    cr_assert(eddy_arena_make(blocks, COUNT, &plan));
    cr_assert(eddy_arena_check(blocks, COUNT, plan.bytes, &is_known));
    cr_assert_eq(plan.bytes, plan.bound);
    free(blocks);
}

Test(arena, a_chain_takes_two_links) {
    enum { COUNT = 100000 };
    eddy_arena_block *blocks = calloc(COUNT, sizeof(*blocks));
    for (uint32_t i = 0; i < COUNT; i++)
        blocks[i] = (eddy_arena_block){.bytes = 64, .first = i, .last = i + 1};
    eddy_arena_plan plan;
    bool is_known;
    cr_assert(eddy_arena_make(blocks, COUNT, &plan));
    cr_assert(eddy_arena_check(blocks, COUNT, plan.bytes, &is_known));
    cr_assert_eq(plan.bytes, 128);
    cr_assert_eq(plan.bound, 128);
    free(blocks);
}

/* Forward and backward of a deep network: what the first half makes lives until the second has come back to it. */
Test(arena, a_training_step_takes_its_bound) {
    enum { LAYERS = 100 };
    eddy_arena_block blocks[3 * LAYERS];
    for (uint32_t i = 0; i < LAYERS; i++) {
        uint32_t back = 2 * LAYERS - i;
        int64_t bytes = 64 * (1 + i * 7 % 13);
        blocks[3 * i] = (eddy_arena_block){.bytes = bytes, .first = i, .last = back};
        blocks[3 * i + 1] = (eddy_arena_block){.bytes = bytes, .first = back, .last = back + 1};
        blocks[3 * i + 2] = (eddy_arena_block){.bytes = 320, .first = back, .last = back};
    }
    eddy_arena_plan plan;
    expect_sound(blocks, 3 * LAYERS, &plan);
    cr_assert_leq(plan.bytes, plan.bound + plan.bound / 20, "%lld of %lld", (long long)plan.bytes,
                  (long long)plan.bound);
}

Test(arena, overlaps_are_found) {
    bool is_known;
    const eddy_arena_block apart[] = {{128, 0, 3, 0}, {64, 1, 2, 128}},
                           together[] = {{128, 0, 3, 0}, {64, 1, 2, 64}},
                           below_it[] = {{64, 0, 3, 64}, {128, 1, 2, 0}},
                           later[] = {{128, 0, 3, 0}, {64, 4, 5, 64}},
                           outside[] = {{128, 0, 3, 64}}, crooked[] = {{8, 0, 3, 8}},
                           reversed[] = {{8, 3, 0, 0}};
    cr_assert(eddy_arena_check(apart, 2, 192, &is_known));
    cr_assert_not(eddy_arena_check(together, 2, 192, &is_known));
    cr_assert_not(eddy_arena_check(below_it, 2, 192, &is_known));
    cr_assert(eddy_arena_check(later, 2, 192, &is_known));
    cr_assert_not(eddy_arena_check(outside, 1, 128, &is_known));
    cr_assert_not(eddy_arena_check(crooked, 1, 128, &is_known));
    cr_assert_not(eddy_arena_check(reversed, 1, 128, &is_known));
    cr_assert(is_known);
}

/* One block is moved: the check agrees with a comparison of all pairs, for blocks in one word of its set, in two, and in words far apart. */
Test(arena, overlaps_among_many_are_found) {
    static eddy_arena_block blocks[MANY];
    const uint32_t counts[] = {3, 60, 70, 300, MANY};
    uint32_t found = 0, missed = 0;
    for (uint32_t seed = 1; seed <= 100; seed++) {
        state = seed;
        uint32_t count = counts[seed % 5], moved = below(count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = below(2 * count);
            blocks[i] = (eddy_arena_block){1 + below(900), first, first + below(count / 2 + 1), 0};
        }
        eddy_arena_plan plan;
        bool is_known;
        cr_assert(eddy_arena_make(blocks, count, &plan));
        blocks[moved].offset = 64 * below((uint32_t)(plan.bytes / 64));
        bool expected = is_sound(blocks, count, plan.bytes);
        cr_assert_eq(eddy_arena_check(blocks, count, plan.bytes, &is_known), expected, "seed %u",
                     seed);
        found += !expected;
        missed += expected;
    }
    cr_assert_gt(found, 10);
    cr_assert_gt(missed, 10);
}

/* A block of all bytes and one at their end, of which either begins first, and between their offsets thousands that are alive later. */
Test(arena, overlaps_far_apart_are_found) {
    static eddy_arena_block blocks[MANY];
    for (uint32_t is_last_first = 0; is_last_first < 2; is_last_first++) {
        bool is_known;
        for (uint32_t i = 0; i < MANY; i++)
            blocks[i] = (eddy_arena_block){64, 2, 2, 64 * (int64_t)i};
        blocks[0] = (eddy_arena_block){64 * MANY, is_last_first, 1, 0};
        blocks[MANY - 1].first = 1 - is_last_first;
        cr_assert_not(eddy_arena_check(blocks, MANY, 64 * MANY, &is_known));
        cr_assert(is_known);
        blocks[0].bytes -= 64;
        cr_assert(eddy_arena_check(blocks, MANY, 64 * MANY, &is_known));
    }
}

Test(arena, each_allocation_may_fail) {
    eddy_arena_block blocks[40];
    eddy_arena_plan plan;
    bool is_known = true;
    int64_t failing = -1;
    for (bool has_made = false; !has_made; eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0)) {
        state = 9;
        tilings(blocks, 40);
        int64_t held = eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes;
        eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, ++failing, 1);
        has_made = eddy_arena_make(blocks, 40, &plan);
        cr_assert_eq(has_made, eddy_memory_failures_injected() == 0);
        cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, held);
    }
    cr_assert_geq(failing, 2);
    eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 1);
    cr_assert_not(eddy_arena_check(blocks, 40, plan.bytes, &is_known));
    cr_assert_not(is_known);
    eddy_memory_fail_at(EDDY_MEMORY_PROGRAM, 0, 0);
    cr_assert(eddy_arena_check(blocks, 40, plan.bytes, &is_known));
    cr_assert(is_known);
}

Test(arena, sizes_that_overflow_are_refused) {
    eddy_arena_block blocks[] = {{INT64_MAX / 2, 0, 1, 0}, {64, 0, 1, 0}};
    eddy_arena_plan plan;
    cr_assert_not(eddy_arena_make(blocks, 2, &plan));
    eddy_arena_block many[5];
    for (int i = 0; i < 5; i++)
        many[i] = (eddy_arena_block){INT64_MAX / 4, 0, 1, 0};
    cr_assert_not(eddy_arena_make(many, 5, &plan));
    cr_assert(eddy_arena_make(NULL, 0, &plan));
    cr_assert_eq(plan.bytes, 0);
}
