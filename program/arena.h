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

/* Of blocks that several streams use (streams.h): two of them are alive at once unless every use of one has ended for sure before the first of the other
 * begins. Per block and stream, in rows of `stream_count`: */
typedef struct eddy_arena_lives {
    uint32_t stream_count;
    uint32_t
        *begins;    /* how many of the stream's steps have run for sure when the first use begins */
    uint32_t *ends; /* how many have run when none of them uses it any more; 0: none does */
} eddy_arena_lives;

/* Plans the offsets, multiples of EDDY_ARENA_ALIGNMENT. False without memory, or if the sizes overflow. */
EDDY_MUST_USE bool eddy_arena_make(eddy_arena_block *blocks, uint32_t count, eddy_arena_plan *plan);

/* The same for blocks that several streams use; `first` and `last` are in the order of the code, of which theirs is a part. */
EDDY_MUST_USE bool eddy_arena_make_of_streams(eddy_arena_block *blocks, uint32_t count,
                                              const eddy_arena_lives *lives, eddy_arena_plan *plan);

/* Whether no two blocks that are alive at once overlap, and all lie within `bytes`, at aligned offsets. *is_known: false without memory. */
bool eddy_arena_check(const eddy_arena_block *blocks, uint32_t count, int64_t bytes,
                      bool *is_known);

#endif
