/* Squeaky wheel optimisation (Joslin and Clements, "Squeaky wheel optimization", JAIR 10, 1999): blocks are placed in an order, each at
 * the lowest offset; those that end above where all should end are in trouble and are placed sooner; and again. Each order is taken,
 * better or not, so that the search leaves poor ones by itself; the best plan is kept. Some order places no worse than any given plan:
 * that of the plan's offsets. Climbing, which takes back a move of the block at the peak that did not help (as TVM's memory planner does),
 * leaves more of the gap in the steps of networks and as much in tilings without waste, which are the hardest. */
#include <program/arena_planner.h>

#include <string.h>

/* A step takes some 1.5 ns. Hundreds of rounds, which are used^2 / 4 steps or less; thousands where they cost little; fewer where a program
 * would wait longer than a tenth of a second or two for its plan. */
#define MOST_STEPS_PER_PAIR 1024
#define FEW_STEPS 1000000
#define STEPS_PER_PAIR 96
#define MOST_STEPS 64000000

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t budget_of(uint32_t used) {
    uint64_t pairs = (uint64_t)used * used;
    return least(least(MOST_STEPS_PER_PAIR * pairs, FEW_STEPS + STEPS_PER_PAIR * pairs),
                 MOST_STEPS);
}

/* Below `end`, which is below 2^24 (the generator of Numerical Recipes): plans depend on nothing but the blocks. */
static uint32_t draw(uint32_t *random, uint32_t end) {
    *random = *random * 1664525U + 1013904223U;
    return (uint32_t)((uint64_t)(*random >> 8) * end >> 24);
}

/* The block in place `at` of the order is placed `by` blocks sooner. */
static void advance(eddy_arena_planner *p, uint32_t at, uint32_t by) {
    uint32_t number = p->order[at];
    memmove(p->order + at - by + 1, p->order + at - by, by * sizeof(*p->order));
    p->order[at - by] = number;
}

/* Blocks that end beyond the limit are placed sooner, by up to an eighth of all: with leaps through the whole order little of what was good
 * in it survives, with small ones the large blocks that come first never change places. So is any one block, without which the plans of few
 * blocks went round in circles. */
static void reorder(eddy_arena_planner *p, int64_t limit, uint32_t *random) {
    uint32_t reach = 4 + p->used / 8, any = draw(random, p->used);
    advance(p, any, draw(random, any < reach ? any + 1 : reach));
    for (uint32_t i = 1; i < p->used; i++) {
        uint32_t number = p->order[i];
        if (p->offsets[number] + eddy_arena_rounded(p->blocks[number].bytes) > limit)
            advance(p, i, 1 + draw(random, i < reach ? i : reach));
    }
}

int64_t eddy_arena_search(eddy_arena_planner *p, int64_t bound, int64_t enough, int64_t bytes,
                          int64_t *offsets) {
    uint64_t last_step = p->steps + budget_of(p->used);
    uint32_t random = 1;
    eddy_arena_place_in_order(p);
    while (bytes > enough && p->steps < last_step) {
        /* The limit is anywhere between the bound and the best plan, so that few or many are in trouble. */
        reorder(p, bound + (bytes - bound) / 1024 * draw(&random, 1024), &random);
        int64_t now = eddy_arena_place_in_order(p);
        if (now < bytes) {
            bytes = now;
            memcpy(offsets, p->offsets, p->count * sizeof(*offsets));
        }
    }
    return bytes;
}
