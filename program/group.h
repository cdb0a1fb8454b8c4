/* What instructions must have in common to run tile by tile (fused.h).
 *
 * A plane is the joint shape of an elementwise instruction, if two dims are enough for it: rows of columns. One of a single dim fits each
 * plane with as many elements. The plane of a reduction is what it reads, if it reduces rows whose elements are contiguous: its result has an
 * element for each row, and so have elementwise instructions of as many elements that join it. Tiles consist of whole rows then. Members of
 * a group have one plane, and where one of them writes a value, the others see it with the same strides (0 within a row, where it has an
 * element for each row): element i of a tile is the same element for all of them, so that tiles do not depend on each other. */
#ifndef EDDY_PROGRAM_GROUP_H
#define EDDY_PROGRAM_GROUP_H

#include <program/code.h>

#define EDDY_PLANE_OPERANDS 4

typedef struct eddy_plane {
    int64_t rows, columns;
    bool is_flat;    /* one dim: rows is 1 */
    bool is_reduced; /* each row to one element */
    bool is_of_rows; /* elementwise, with one element for each row */
    /* Of each operand, in elements: from row to row, and within a row. */
    int64_t strides[EDDY_PLANE_OPERANDS][2];
} eddy_plane;

/* The plane of an instruction, if it can be a member of a group: elementwise, with one result, and a kernel that is just its loop; or a
 * reduction of rows in f32. */
bool eddy_plane_make(const eddy_code *code, const eddy_code_instruction *instruction,
                     eddy_plane *plane);
/* Gives a flat plane the shape of another, which has as many elements or as many rows. */
void eddy_plane_shape(eddy_plane *plane, int64_t rows, int64_t columns);

/* Whether the instructions may not change places: they have a value in common that one of them writes. */
bool eddy_group_orders(const eddy_code *code, const eddy_code_instruction *a,
                       const eddy_code_instruction *b);
/* Whether the instructions, whose planes have the same shape, may be members of one group. */
bool eddy_group_fits(const eddy_code *code, const eddy_code_instruction *a, const eddy_plane *x,
                     const eddy_code_instruction *b, const eddy_plane *y);

/* Shorter rows are not reduced in groups: they take longer one by one than what tiles save. */
#define EDDY_GROUP_LEAST_COLUMNS 64

/* The most members of a group, and the most values that only live within a tile at once: those with an element for each element of the tile, which
 * have the first slots, and those with one for each row. */
#define EDDY_GROUP_MEMBERS 32
#define EDDY_GROUP_SLOTS 4
#define EDDY_GROUP_ROW_SLOTS 8

/* Members in their order, and for each operand of each the slot of the tile where its value lives, or -1: in memory. */
typedef struct eddy_group_slots {
    const eddy_code_instruction *members[EDDY_GROUP_MEMBERS];
    uint32_t count;
    int64_t elements; /* of the plane */
    int8_t slots[EDDY_GROUP_MEMBERS][EDDY_PLANE_OPERANDS];
} eddy_group_slots;

/* Finds the slots. uses: per value, the operands of all instructions that name it. False if there are too few slots. */
bool eddy_group_find_slots(const eddy_code *code, const uint32_t *bases, const uint32_t *uses,
                           eddy_group_slots *group);
/* Whether the members of a group that was chosen at other sizes may be one at those of the code. uses: as above. */
bool eddy_group_holds(const eddy_code *code, const uint32_t *bases, const uint32_t *uses,
                      const eddy_code_group *group);
/* Counts the operands that name each value; `uses` is cleared. */
void eddy_group_count_uses(const eddy_code *code, uint32_t *uses);

#endif
