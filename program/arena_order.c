/* Orders of blocks, and placing in a given order: each at the lowest offset where it fits. */
#include <program/arena_planner.h>

#include <stdlib.h>

/* qsort has no context; the calling thread's. */
static __thread const eddy_arena_block *sorted;

static int compare_numbers(uint32_t a, uint32_t b) {
    return a < b ? -1 : a > b;
}

int eddy_arena_by_first(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].first != sorted[b].first)
        return sorted[a].first < sorted[b].first ? -1 : 1;
    return compare_numbers(a, b);
}

int eddy_arena_by_last(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].last != sorted[b].last)
        return sorted[a].last < sorted[b].last ? -1 : 1;
    return compare_numbers(a, b);
}

/* Larger ones first (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020). */
int eddy_arena_by_size(const void *x, const void *y) {
    uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
    if (sorted[a].bytes != sorted[b].bytes)
        return sorted[a].bytes > sorted[b].bytes ? -1 : 1;
    return eddy_arena_by_first(x, y);
}

static double area(const eddy_arena_block *block) {
    return (double)block->bytes * (double)(block->last - block->first + 1);
}

int eddy_arena_by_area(const void *x, const void *y) {
    const eddy_arena_block *a = &sorted[*(const uint32_t *)x], *b = &sorted[*(const uint32_t *)y];
    double first = area(a), second = area(b);
    if (first != second)
        return first > second ? -1 : 1;
    return eddy_arena_by_first(x, y);
}

int eddy_arena_by_life(const void *x, const void *y) {
    const eddy_arena_block *a = &sorted[*(const uint32_t *)x], *b = &sorted[*(const uint32_t *)y];
    uint32_t first = a->last - a->first, second = b->last - b->first;
    if (first != second)
        return first > second ? -1 : 1;
    return eddy_arena_by_size(x, y);
}

void eddy_arena_sort(eddy_arena_planner *p, eddy_arena_compare compare) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->blocks[i].bytes > 0)
            p->order[used++] = i;
    sorted = p->blocks;
    qsort(p->order, p->used, sizeof(*p->order), compare);
}

static bool meet(const eddy_arena_block *a, const eddy_arena_placed *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Whether every use of one block has ended before the first of the other begins. */
static bool is_before(const eddy_arena_lives *lives, uint32_t one, uint32_t other) {
    const uint32_t *ends = lives->ends + (size_t)one * lives->stream_count,
                   *begins = lives->begins + (size_t)other * lives->stream_count;
    for (uint32_t s = 0; s < lives->stream_count; s++)
        if (ends[s] > begins[s])
            return false;
    return true;
}

static bool meet_in_streams(const eddy_arena_lives *lives, uint32_t a, uint32_t b) {
    return !is_before(lives, a, b) && !is_before(lives, b, a);
}

/* The lowest offset at which the block is clear of those placed. */
static int64_t lowest(eddy_arena_planner *p, uint32_t placed_count, uint32_t number) {
    const eddy_arena_block *block = &p->blocks[number];
    int64_t bytes = eddy_arena_rounded(block->bytes), end = 0;
    uint32_t i = 0;
    for (; i < placed_count; i++) {
        const eddy_arena_placed *other = &p->placed[i];
        if (p->lives ? !meet_in_streams(p->lives, number, other->number) : !meet(block, other))
            continue;
        if (other->offset - end >= bytes)
            break;
        end = other->end > end ? other->end : end;
    }
    p->steps += i + 1;
    return end;
}

int64_t eddy_arena_place_in_order(eddy_arena_planner *p) {
    int64_t most = 0;
    for (uint32_t i = 0; i < p->used; i++) {
        uint32_t number = p->order[i], at = i;
        const eddy_arena_block *block = &p->blocks[number];
        int64_t offset = lowest(p, i, number), end = offset + eddy_arena_rounded(block->bytes);
        p->offsets[number] = offset;
        for (; at > 0 && p->placed[at - 1].offset > offset; at--)
            p->placed[at] = p->placed[at - 1];
        p->placed[at] = (eddy_arena_placed){.offset = offset, .end = end};
        if (p->lives) {
            p->placed[at].number = number;
        } else {
            p->placed[at].first = block->first;
            p->placed[at].last = block->last;
        }
        most = end > most ? end : most;
    }
    return most;
}
