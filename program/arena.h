/* The arena of a program: one block of memory for all values that only live within a run, and an offset for each.
 *
 * Offline dynamic storage allocation, which is NP-hard (Garey and Johnson, problem SR2): several heuristics plan, the
 * best plan is kept, and an independent check, which shares no code with them, proves it. */
#ifndef EDDY_PROGRAM_ARENA_H
#define EDDY_PROGRAM_ARENA_H

#include <base/assert.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_ARENA_ALIGNMENT 64

typedef struct eddy_arena_block {
    int64_t bytes;        /* 0 or more */
    uint32_t first, last; /* the instructions between which it is alive, both included */
    int64_t offset;       /* planned */
} eddy_arena_block;

typedef struct eddy_arena_plan {
    int64_t bytes; /* of the arena */
    int64_t bound; /* the most that is alive at once: no plan is smaller */
    const char *heuristic;
} eddy_arena_plan;

/* Plans the offsets, multiples of EDDY_ARENA_ALIGNMENT. False without memory, or if the sizes overflow. */
EDDY_MUST_USE bool eddy_arena_make(eddy_arena_block *blocks, uint32_t count, eddy_arena_plan *plan);

/* Whether no two blocks that are alive at once overlap, and all lie within `bytes`, at aligned offsets. *is_known: false without memory. */
bool eddy_arena_check(const eddy_arena_block *blocks, uint32_t count, int64_t bytes,
                      bool *is_known);

#endif
