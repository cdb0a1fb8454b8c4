/* What the planner's parts share: a plan being made, and the ways of placing blocks. One thread. */
#ifndef EDDY_PROGRAM_ARENA_PLANNER_H
#define EDDY_PROGRAM_ARENA_PLANNER_H

#include <program/arena.h>

/* Of a placed block, what placing the next ones asks; a scan of them is where the time goes. */
typedef struct eddy_arena_placed {
    int64_t offset, end; /* bytes */
    union {
        struct {
            uint32_t first, last;
        };
        uint32_t number; /* of the block, where streams use it */
    };
} eddy_arena_placed;

/* Blocks are known by number; those of no bytes take no part. */
typedef struct eddy_arena_planner {
    const eddy_arena_block *blocks;
    const eddy_arena_lives *lives; /* NULL: one stream uses them */
    uint32_t count;
    uint32_t used;             /* those that take memory */
    uint32_t *order;           /* [used]: their numbers, in the order in which they are placed */
    uint32_t *numbers;         /* [used]: for who needs a second order */
    eddy_arena_placed *placed; /* [used]: placed blocks, by offset */
    int64_t *offsets;          /* [count] */
    uint64_t steps;            /* placed blocks looked at so far */
} eddy_arena_planner;

static inline int64_t eddy_arena_rounded(int64_t bytes) {
    return (bytes + EDDY_ARENA_ALIGNMENT - 1) / EDDY_ARENA_ALIGNMENT * EDDY_ARENA_ALIGNMENT;
}

/* ---- arena_order.c ---- */

typedef int (*eddy_arena_compare)(const void *x, const void *y);

/* Numbers of blocks: the one that is alive earlier, that dies earlier, the larger, of the larger area, that lives longer comes first. */
int eddy_arena_by_first(const void *x, const void *y);
int eddy_arena_by_last(const void *x, const void *y);
int eddy_arena_by_size(const void *x, const void *y);
int eddy_arena_by_area(const void *x, const void *y);
int eddy_arena_by_life(const void *x, const void *y);

/* Puts the numbers of the blocks that take memory into p->order, sorted. */
void eddy_arena_sort(eddy_arena_planner *p, eddy_arena_compare compare);

/* Places them in p->order, each at the lowest offset where it fits; the bytes taken. O(used^2). */
int64_t eddy_arena_place_in_order(eddy_arena_planner *p);

/* ---- arena_fit.c ---- */

/* Places them as an allocator would: they come as p->order says, by first, and go as p->numbers says, by last; each takes the tightest gap, of equal ones the
 * lowest. The bytes taken, or -1 without memory. O(used log used). */
int64_t eddy_arena_place_as_allocator(eddy_arena_planner *p);

/* ---- arena_search.c ---- */

/* Searches for an order that takes fewer bytes than `bytes`, beginning with p->order, until they are at most `enough` or its budget of
 * steps is used up; the same blocks give the same plan. The bytes, with the offsets in `offsets`; `bytes`, and `offsets` untouched, if
 * none was found. */
int64_t eddy_arena_search(eddy_arena_planner *p, int64_t bound, int64_t enough, int64_t bytes,
                          int64_t *offsets);

#endif
