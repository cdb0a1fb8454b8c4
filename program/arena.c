/* The plan of an arena: its bound, and the best of what the heuristics and the search find. */
#include <program/arena.h>

#include <base/memory.h>
#include <program/arena_planner.h>
#include <string.h>

/* Beyond so many blocks only what takes O(n log n) plans. */
#define QUADRATIC_BLOCKS 4096

/* Plans within this part of the bound are good enough: the search takes as long as the passes, or longer. */
#define GAP_PARTS 128

/* The most bytes alive at once: at the beginning of some block. Leaves p->order sorted by first, p->numbers by last. */
static int64_t find_bound(eddy_arena_planner *p) {
    int64_t alive = 0, most = 0;
    uint32_t *ends = p->numbers, gone = 0;
    eddy_arena_sort(p, eddy_arena_by_last);
    memcpy(ends, p->order, p->used * sizeof(*ends));
    eddy_arena_sort(p, eddy_arena_by_first);
    for (uint32_t i = 0; i < p->used; i++) {
        const eddy_arena_block *block = &p->blocks[p->order[i]];
        for (; p->blocks[ends[gone]].last < block->first; gone++)
            alive -= eddy_arena_rounded(p->blocks[ends[gone]].bytes);
        alive += eddy_arena_rounded(block->bytes);
        most = alive > most ? alive : most;
    }
    return most;
}

static void keep_better(const eddy_arena_planner *p, eddy_arena_block *blocks,
                        eddy_arena_plan *plan, int64_t bytes, const char *heuristic) {
    if (plan->heuristic && bytes >= plan->bytes)
        return;
    plan->bytes = bytes;
    plan->heuristic = heuristic;
    for (uint32_t i = 0; i < p->count; i++)
        blocks[i].offset = p->blocks[i].bytes > 0 ? p->offsets[i] : 0;
}

/* Where the best plan is far from the bound, the search begins with the best order. `best`: room for offsets. */
static void improve(eddy_arena_planner *p, eddy_arena_block *blocks, eddy_arena_plan *plan,
                    eddy_arena_compare order, int64_t *best) {
    int64_t enough = plan->bound + plan->bound / GAP_PARTS;
    if (plan->bytes <= enough)
        return;
    eddy_arena_sort(p, order);
    int64_t bytes = eddy_arena_search(p, plan->bound, enough, plan->bytes, best);
    p->offsets = best;
    keep_better(p, blocks, plan, bytes, "search");
}

static bool plan_all(eddy_arena_planner *p, eddy_arena_block *blocks, eddy_arena_plan *plan,
                     int64_t *best) {
    static const struct {
        const char *name;
        eddy_arena_compare compare;
    } orders[] = {{"size", eddy_arena_by_size},
                  {"area", eddy_arena_by_area},
                  {"life", eddy_arena_by_life},
                  {"first", eddy_arena_by_first}};
    plan->bound = find_bound(p);
    int64_t least = INT64_MAX;
    /* An allocator's blocks come and go in one order. */
    if (!p->lives) {
        int64_t bytes = eddy_arena_place_as_allocator(p);
        if (bytes < 0)
            return false;
        keep_better(p, blocks, plan, bytes, "allocator");
        if (p->count > QUADRATIC_BLOCKS)
            return true;
    }
    size_t least_at = 0;
    for (size_t i = 0;
         i < sizeof(orders) / sizeof(orders[0]) && (!plan->heuristic || plan->bytes > plan->bound);
         i++) {
        eddy_arena_sort(p, orders[i].compare);
        int64_t bytes = eddy_arena_place_in_order(p);
        keep_better(p, blocks, plan, bytes, orders[i].name);
        least_at = bytes < least ? i : least_at;
        least = bytes < least ? bytes : least;
    }
    improve(p, blocks, plan, orders[least_at].compare, best);
    return true;
}

static bool count_used(const eddy_arena_block *blocks, uint32_t count, uint32_t *used) {
    int64_t sum = 0;
    *used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (blocks[i].bytes < 0 || blocks[i].bytes > INT64_MAX / 4 ||
            __builtin_add_overflow(sum, eddy_arena_rounded(blocks[i].bytes), &sum))
            return false;
        *used += blocks[i].bytes > 0;
    }
    return true;
}

static bool make(eddy_arena_block *blocks, uint32_t count, const eddy_arena_lives *lives,
                 eddy_arena_plan *plan) {
    *plan = (eddy_arena_plan){0};
    uint32_t used;
    if (!count_used(blocks, count, &used))
        return false;
    size_t bytes =
        (size_t)count * (2 * sizeof(int64_t) + sizeof(eddy_arena_placed) + 2 * sizeof(uint32_t));
    int64_t *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    eddy_arena_planner p = {.blocks = blocks,
                            .lives = lives,
                            .count = count,
                            .used = used,
                            .offsets = memory,
                            .placed = (eddy_arena_placed *)(void *)(memory + 2 * (size_t)count)};
    p.order = (uint32_t *)(void *)(p.placed + count);
    p.numbers = p.order + count;
    bool has_planned = plan_all(&p, blocks, plan, memory + count);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return has_planned;
}

bool eddy_arena_make(eddy_arena_block *blocks, uint32_t count, eddy_arena_plan *plan) {
    return make(blocks, count, NULL, plan);
}

bool eddy_arena_make_of_streams(eddy_arena_block *blocks, uint32_t count,
                                const eddy_arena_lives *lives, eddy_arena_plan *plan) {
    return make(blocks, count, lives, plan);
}
