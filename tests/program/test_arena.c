/* Plans of arenas: sound by a check that is written apart from the one in the library, and near the bound. */
#include <criterion/criterion.h>
#include <program/arena.h>
#include <stdlib.h>
#include <string.h>

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

Test(arena, random_lives_never_overlap) {
    for (uint32_t seed = 1; seed <= 10000; seed++) {
        state = seed;
        eddy_arena_block blocks[24];
        uint32_t count = below(24) + 1, span = below(12) + 1;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = below(span);
            blocks[i] = (eddy_arena_block){
                .bytes = below(5) * 40, .first = first, .last = first + below(4)};
        }
        eddy_arena_plan plan;
        expect_sound(blocks, count, &plan);
    }
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
