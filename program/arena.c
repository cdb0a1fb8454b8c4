#include <program/arena.h>

#include <base/memory.h>
#include <stdlib.h>
#include <string.h>

/* Beyond so many blocks only heuristics that take O(n log n) plan. */
#define QUADRATIC_BLOCKS 4096

static int64_t rounded(int64_t bytes) {
    return (bytes + EDDY_ARENA_ALIGNMENT - 1) / EDDY_ARENA_ALIGNMENT * EDDY_ARENA_ALIGNMENT;
}

/* A plan being made: blocks by number, their offsets, and arrays for the heuristics. */
typedef struct planner {
    const eddy_arena_block *blocks;
    uint32_t count;
    uint32_t used;    /* those that take memory */
    uint32_t *order;  /* their numbers, in the order in which a heuristic places them */
    uint32_t *placed; /* numbers of placed blocks, by offset */
    int64_t *offsets;
} planner;

/* ---- orders ---- */

/* qsort has no context; the calling thread's. */
static __thread const eddy_arena_block *sorted;

static int compare_numbers(uint32_t a, uint32_t b) {
    return a < b ? -1 : a > b;
}

static int by_first(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].first != sorted[b].first)
        return sorted[a].first < sorted[b].first ? -1 : 1;
    return compare_numbers(a, b);
}

static int by_last(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].last != sorted[b].last)
        return sorted[a].last < sorted[b].last ? -1 : 1;
    return compare_numbers(a, b);
}

/* Larger ones first (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). */
static int by_size(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].bytes != sorted[b].bytes)
        return sorted[a].bytes > sorted[b].bytes ? -1 : 1;
    return by_first(x, y);
}

static double area(const eddy_arena_block *block) {
    return (double)block->bytes * (double)(block->last - block->first + 1);
}

static int by_area(const void *x, const void *y) {
    const eddy_arena_block *a = &sorted[*(const uint32_t *)x], *b = &sorted[*(const uint32_t *)y];
    double first = area(a), second = area(b);
    if (first != second)
        return first > second ? -1 : 1;
    return by_first(x, y);
}

static int by_life(const void *x, const void *y) {
    const eddy_arena_block *a = &sorted[*(const uint32_t *)x], *b = &sorted[*(const uint32_t *)y];
    uint32_t first = a->last - a->first, second = b->last - b->first;
    if (first != second)
        return first > second ? -1 : 1;
    return by_size(x, y);
}

/* Of the blocks that take memory. */
static void sort(planner *p, int (*compare)(const void *, const void *)) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->blocks[i].bytes > 0)
            p->order[used++] = i;
    sorted = p->blocks;
    qsort(p->order, p->used, sizeof(*p->order), compare);
}

/* ---- placing in a given order: at the lowest offset where the block fits ---- */

static bool meet(const eddy_arena_block *a, const eddy_arena_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

static int64_t place(planner *p, uint32_t placed_count, uint32_t number) {
    const eddy_arena_block *block = &p->blocks[number];
    int64_t bytes = rounded(block->bytes), end = 0;
    for (uint32_t i = 0; i < placed_count; i++) {
        uint32_t other = p->placed[i];
        if (!meet(block, &p->blocks[other]))
            continue;
        if (p->offsets[other] - end >= bytes)
            break;
        int64_t other_end = p->offsets[other] + rounded(p->blocks[other].bytes);
        end = other_end > end ? other_end : end;
    }
    return end;
}

static int64_t plan_in_order(planner *p, int (*compare)(const void *, const void *)) {
    int64_t most = 0;
    sort(p, compare);
    for (uint32_t i = 0; i < p->used; i++) {
        uint32_t number = p->order[i], at = i;
        int64_t offset = place(p, i, number), end = offset + rounded(p->blocks[number].bytes);
        p->offsets[number] = offset;
        for (; at > 0 && p->offsets[p->placed[at - 1]] > offset; at--)
            p->placed[at] = p->placed[at - 1];
        p->placed[at] = number;
        most = end > most ? end : most;
    }
    return most;
}

/* ---- as an allocator would: blocks come and go in the order of instructions, each takes the tightest gap ---- */

/* `placed` holds the blocks that are alive, by offset. */
static int64_t tightest(const planner *p, uint32_t alive, int64_t bytes) {
    int64_t end = 0, best = -1, best_gap = INT64_MAX;
    for (uint32_t i = 0; i < alive; i++) {
        int64_t gap = p->offsets[p->placed[i]] - end;
        if (gap >= bytes && gap < best_gap) {
            best = end;
            best_gap = gap;
        }
        end = p->offsets[p->placed[i]] + rounded(p->blocks[p->placed[i]].bytes);
    }
    return best >= 0 ? best : end;
}

static int64_t plan_as_allocator(planner *p) {
    int64_t most = 0;
    uint32_t alive = 0;
    sort(p, by_first);
    for (uint32_t i = 0; i < p->used; i++) {
        uint32_t number = p->order[i], kept = 0;
        for (uint32_t k = 0; k < alive; k++)
            if (p->blocks[p->placed[k]].last >= p->blocks[number].first)
                p->placed[kept++] = p->placed[k];
        alive = kept;
        int64_t bytes = rounded(p->blocks[number].bytes), offset = tightest(p, alive, bytes);
        uint32_t at = alive++;
        p->offsets[number] = offset;
        for (; at > 0 && p->offsets[p->placed[at - 1]] > offset; at--)
            p->placed[at] = p->placed[at - 1];
        p->placed[at] = number;
        most = offset + bytes > most ? offset + bytes : most;
    }
    return most;
}

/* ---- the bound ---- */

/* The most bytes alive at once: at the beginning of some block. */
static int64_t find_bound(planner *p) {
    int64_t alive = 0, most = 0;
    uint32_t *ends = p->placed, gone = 0;
    sort(p, by_last);
    memcpy(ends, p->order, p->used * sizeof(*ends));
    sort(p, by_first);
    for (uint32_t i = 0; i < p->used; i++) {
        const eddy_arena_block *block = &p->blocks[p->order[i]];
        for (; p->blocks[ends[gone]].last < block->first; gone++)
            alive -= rounded(p->blocks[ends[gone]].bytes);
        alive += rounded(block->bytes);
        most = alive > most ? alive : most;
    }
    return most;
}

/* ---- all of it ---- */

static void keep_better(planner *p, eddy_arena_block *blocks, eddy_arena_plan *plan, int64_t bytes,
                        const char *heuristic) {
    if (plan->heuristic && bytes >= plan->bytes)
        return;
    plan->bytes = bytes;
    plan->heuristic = heuristic;
    for (uint32_t i = 0; i < p->count; i++)
        blocks[i].offset = p->blocks[i].bytes > 0 ? p->offsets[i] : 0;
}

static void plan_all(planner *p, eddy_arena_block *blocks, eddy_arena_plan *plan) {
    static const struct {
        const char *name;
        int (*compare)(const void *, const void *);
    } orders[] = {{"size", by_size}, {"area", by_area}, {"life", by_life}, {"first", by_first}};
    plan->bound = find_bound(p);
    keep_better(p, blocks, plan, plan_as_allocator(p), "allocator");
    if (p->count > QUADRATIC_BLOCKS)
        return;
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]) && plan->bytes > plan->bound; i++)
        keep_better(p, blocks, plan, plan_in_order(p, orders[i].compare), orders[i].name);
}

static bool count_used(const eddy_arena_block *blocks, uint32_t count, uint32_t *used) {
    int64_t sum = 0;
    *used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (blocks[i].bytes < 0 || blocks[i].bytes > INT64_MAX / 4 ||
            __builtin_add_overflow(sum, rounded(blocks[i].bytes), &sum))
            return false;
        *used += blocks[i].bytes > 0;
    }
    return true;
}

bool eddy_arena_make(eddy_arena_block *blocks, uint32_t count, eddy_arena_plan *plan) {
    *plan = (eddy_arena_plan){0};
    uint32_t used;
    if (!count_used(blocks, count, &used))
        return false;
    size_t bytes = (size_t)count * (2 * sizeof(uint32_t) + sizeof(int64_t));
    int64_t *memory = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!memory)
        return false;
    planner p = {.blocks = blocks,
                 .count = count,
                 .used = used,
                 .offsets = memory,
                 .order = (uint32_t *)(void *)(memory + count)};
    p.placed = p.order + count;
    plan_all(&p, blocks, plan);
    eddy_memory_release(memory, bytes, EDDY_MEMORY_PROGRAM);
    return true;
}
