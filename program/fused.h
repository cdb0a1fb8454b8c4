/* A fused call: the members of a group, tile by tile, or as one loop over all elements if they are one chain.
 *
 * A tile is some rows of the group's plane, or a part of one row, small enough that what one member writes is still in the first-level
 * cache when the next one reads it. Values that only live within the group have no other memory than a slot of the tile. Each
 * member is a call of its own loop, one of a chain whose loop keeps each op's rounding (superinstruction.h), or a reduction of the tile's
 * rows, so that every element has the bits that single calls give it. */
#ifndef EDDY_PROGRAM_FUSED_H
#define EDDY_PROGRAM_FUSED_H

#include <program/executable.h>
#include <program/group.h>
#include <program/superinstruction.h>

/* Of a tile: 1,024 floats. With two operands in memory and two slots it takes half of a first-level cache, so that what is on its way to and
 * from memory has room beside it: tiles of 2,048 took 1.7 times as long where the cache does not hold the operands. */
#define EDDY_FUSED_TILE_BYTES 4096
/* Operands of this size are in a cache. Tiles with reductions have two rows then: the results of one row are awaited while the other is computed. */
#define EDDY_FUSED_NEAR_BYTES (1 << 19)
/* Of a slot: the longest row of elements of 8 bytes, and one for each of as many rows. */
#define EDDY_FUSED_SLOT_BYTES (EDDY_KERNEL_ROW_ELEMENTS * 8)
#define EDDY_FUSED_ROW_SLOT_BYTES (EDDY_FUSED_SLOT_BYTES / EDDY_GROUP_LEAST_COLUMNS)

/* Where a member's operand lies. */
typedef struct eddy_fused_operand {
    int64_t offset; /* bytes: from the base, or of a slot from the tile's first */
    int64_t row_bytes, column_bytes;
    uint32_t base;
    bool is_in_tile;
} eddy_fused_operand;

typedef struct eddy_fused_member {
    eddy_loop_fn *loop; /* or, of a reduction, NULL and: */
    eddy_rows_fn *rows;
    const void *attributes;
    const eddy_patch *patches;
    uint32_t patch_count;
    uint32_t copy_at; /* words: where its attributes go in frame->copy, if a run changes them */
    uint32_t attribute_bytes;
    uint32_t operand_count;
    bool is_patched;                         /* a run changes its attributes */
    bool is_flat;                            /* rows follow each other without gaps */
    bool is_of_rows;                         /* one element for each row */
    const eddy_chain *chain;                 /* that it is a part of, or that it runs; or NULL */
    eddy_scalar numbers[EDDY_CHAIN_NUMBERS]; /* of the chain that it runs */
    uint32_t numbered[EDDY_CHAIN_NUMBERS];   /* the members whose numbers they are */
    uint32_t number_count;
    eddy_fused_operand operands[EDDY_PLANE_OPERANDS];
    int64_t strides[EDDY_PLANE_OPERANDS]; /* of its loop: of rows, if it has an element for each */
} eddy_fused_member;

/* How the plane is cut. */
typedef struct eddy_fused_tiles {
    int64_t rows, columns; /* of a tile; one of them is all there are of it, or 1 */
    int64_t count, in_row;
} eddy_fused_tiles;

struct eddy_fused {
    int64_t rows, columns;
    eddy_fused_tiles tiles; /* whose slots hold what lives within the group */
    eddy_fused_tiles
        calls; /* the same, or larger ones, if all is one chain, which needs no slots */
    bool is_one_chain;
    bool is_patched; /* a run changes attributes */
    bool wants_helpers;
    /* Of the loop that is all of it, in bytes: EDDY_STEP_PLACES within a row, then as many from row to row. */
    int64_t loop_strides[2 * EDDY_STEP_PLACES];
    uint32_t member_count, call_count;
    /* The members, and behind them the calls that run instead if none of them is skipped: chains, and members in none. */
    eddy_fused_member members[];
};

/* Makes the fused call of a group, acquired with EDDY_MEMORY_PROGRAM; NULL without memory. uses: eddy_group_count_uses. copied: the words of
 * frame->copy that it needs. The executable's places and prepared calls are there. */
eddy_fused *eddy_fused_create(const eddy_executable *executable, const eddy_code *code,
                              const uint32_t *bases, const uint32_t *uses,
                              const eddy_code_group *group, size_t *copied_bytes);
void eddy_fused_destroy(eddy_fused *fused);
size_t eddy_fused_bytes(const eddy_fused *fused);

/* Runs the members whose bits in frame->skipped are 0. */
void eddy_fused_run(const eddy_fused *fused, eddy_frame *frame);
/* Whether all members are one call of a loop, or one for each row, with attributes that no run changes. */
bool eddy_fused_is_loop(const eddy_fused *fused);

#endif
