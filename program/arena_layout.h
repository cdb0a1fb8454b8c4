/* One arena for programs of several sizes: a place for each value and each workspace, with room for what it takes at the largest.
 *
 *   measured: room for the blocks of some sizes --plan--> offsets --place--> the blocks of a size, each at the offset of its room
 *
 * Any block that is no larger than its room lies within it, so that the plan holds for all such sizes; eddy_arena_check proves it anew for each.
 *
 * Made by one thread; const once it is planned. */
#ifndef EDDY_PROGRAM_ARENA_LAYOUT_H
#define EDDY_PROGRAM_ARENA_LAYOUT_H

#include <base/atomic.h>
#include <program/arena.h>

typedef struct eddy_arena_layout {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    uint32_t value_count, instruction_count;
    eddy_arena_plan plan;
    eddy_arena_block rooms[]; /* of values, then of the workspaces of instructions */
} eddy_arena_layout;

/* Without room, of one reference; NULL without memory. */
eddy_arena_layout *eddy_arena_layout_create(uint32_t value_count, uint32_t instruction_count);
eddy_arena_layout *eddy_arena_layout_retain(eddy_arena_layout *layout);
void eddy_arena_layout_release(eddy_arena_layout *layout); /* NULL is allowed */
int64_t eddy_arena_layout_bytes(const eddy_arena_layout *layout);

/* Room number `i` is at least as large as the block, which is alive as it is at all sizes. */
void eddy_arena_layout_widen(eddy_arena_layout *layout, uint32_t i, const eddy_arena_block *block);
/* False as eddy_arena_make. */
EDDY_MUST_USE bool eddy_arena_layout_plan(eddy_arena_layout *layout);
/* The block goes to room number `i`. False where that is too small. */
EDDY_MUST_USE bool eddy_arena_layout_place(const eddy_arena_layout *layout, uint32_t i,
                                           eddy_arena_block *block);

#endif
