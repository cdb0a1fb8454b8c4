/* Reducing contiguous elements of a compute type: f32, f64 or i64; of f32 in f64 where the op says so.
 *
 * The tree is fixed by the number of elements alone, so that layout, slices and instruction set never show in the bits:
 * elements are taken in blocks of EDDY_REDUCE_BLOCK; within a block element i goes to lane i % EDDY_REDUCE_LANES, lanes add
 * up in order and are then halved (lane l with lane l + 16, 8, 4, 2, 1, where both exist); blocks are combined pairwise. */
#ifndef EDDY_KERNELS_CPU_REDUCE_BLOCK_H
#define EDDY_KERNELS_CPU_REDUCE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_REDUCE_LANES 32
#define EDDY_REDUCE_BLOCK 1024
/* Whole blocks that are reduced and combined in one call: a subtree of so many levels. */
#define EDDY_REDUCE_GROUP_LEVELS 3
#define EDDY_REDUCE_GROUP (1 << EDDY_REDUCE_GROUP_LEVELS)
/* How far ahead of what is read memory is prefetched, in bytes: the processor foresees a stream up to the
 * end of its page only. */
#define EDDY_REDUCE_AHEAD 8192
/* Outputs that are reduced side by side when the reduced dims are the outer ones. */
#define EDDY_REDUCE_COLUMNS 128

/* One block, 1 <= count <= EDDY_REDUCE_BLOCK, to one value. What is wanted soon lies `ahead` elements behind these, and is asked for;
 * 0: nothing is. */
typedef void eddy_reduce_block_fn(const void *elements, int64_t count, int64_t ahead, void *result);
/* A block of `columns` outputs side by side, to a value each: 1 <= count <= EDDY_REDUCE_BLOCK rows, `apart` elements from one to the
 * next. What lies behind them is asked for. A second sweep is given what the first one found, a number for each column. */
typedef void eddy_reduce_columns_fn(void *total, const void *rows, int64_t apart, int64_t count,
                                    int64_t columns, const void *found);
/* One row of such a block to what its lane has, or the first there. */
typedef void eddy_reduce_row_fn(void *lane, bool is_first, const void *row, int64_t columns,
                                const void *found);
/* into[i] = into[i] op other[i] */
typedef void eddy_reduce_combine_fn(void *into, const void *other, int64_t count);

typedef struct eddy_reduce_op {
    eddy_reduce_block_fn *block;
    /* A group of whole blocks, of EDDY_REDUCE_BLOCK elements each, to one value. */
    void (*group)(const void *elements, int64_t each, void *result);
    eddy_reduce_columns_fn *columns; /* `found` is NULL */
    eddy_reduce_row_fn *row;         /* the same */
    eddy_reduce_combine_fn *combine;
} eddy_reduce_op;

/* Compute types. TRUTH holds bool as bytes of 0 and 1: its max is "any" and its min "all", and it has no sum or prod. */
typedef enum eddy_reduce_type {
    EDDY_REDUCE_F32,
    EDDY_REDUCE_F64,
    EDDY_REDUCE_I64,
    EDDY_REDUCE_TRUTH,
    EDDY_REDUCE_TYPES
} eddy_reduce_type;

/* The second sweep of a reduction that goes over each block twice: the first sweep finds one number (a mean, a maximum), the
 * second sums something of each element and that number. Blocks are then merged as pairs (first, second). */
typedef struct eddy_reduce_pair {
    /* As eddy_reduce_op's, given *first. */
    void (*block)(const void *elements, int64_t count, const void *first, void *result);
    /* Lanes are combined as sums are. */
    eddy_reduce_columns_fn *columns;
    eddy_reduce_row_fn *row;
    /* The pairs of `count` elements into those of the `into_count` elements before them; NULL where nothing is merged. */
    void (*merge)(void *into_first, void *into_second, int64_t into_count, const void *first,
                  const void *second, int64_t count, int64_t columns);
} eddy_reduce_pair;

/* to[i] = f(from[i]); `to` may be `from`. */
typedef void eddy_reduce_map(double *to, const double *from, int64_t count, double parameter);

/* Where a row has a better element than `best` (argmax: larger, argmin: smaller, NaN before all), takes it and sets the index to
 * `index`. */
typedef void eddy_reduce_pick_fn(void *best, int64_t *indices, const void *row, int64_t index,
                                 int64_t columns);

/* Of one compute type. */
typedef struct eddy_reduce_blocks {
    eddy_reduce_op sum;                           /* not of TRUTH */
    eddy_reduce_op prod;                          /* of I64 alone: those of floats are wide */
    eddy_reduce_op max, min;                      /* NaN wins */
    eddy_reduce_pair log_sum_exp;                 /* (max, sum of e^(x - max)), of F32 and F64 */
    eddy_reduce_pick_fn *argmax_row, *argmin_row; /* not of TRUTH */
    /* The first of `count` elements that equals *value, or is NaN where that is; there is one. Not of TRUTH. */
    int64_t (*find)(const void *elements, int64_t count, const void *value);
} eddy_reduce_blocks;

/* In f64, of elements of F32 or F64. */
typedef struct eddy_reduce_wide_blocks {
    eddy_reduce_op sum, prod;
    /* Of their squares and magnitudes, 1 for each that is not 0. */
    eddy_reduce_op squares, magnitudes, nonzeros, max_magnitude, min_magnitude;
    eddy_reduce_pair variance;  /* (mean, sum of squared deviations) */
    eddy_reduce_pair deviation; /* sums of what the mean leaves, of F64 alone */
    eddy_reduce_map *power;     /* of magnitudes, to the parameter, of F64 alone */
} eddy_reduce_wide_blocks;

EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_f32)
EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_f64)
EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_i64)
EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_truth)
EDDY_ISA_DECLARE(eddy_reduce_wide_blocks, eddy_cpu_reduce_wide_f32)
EDDY_ISA_DECLARE(eddy_reduce_wide_blocks, eddy_cpu_reduce_wide_f64)

static inline const eddy_reduce_blocks *eddy_reduce_blocks_for(eddy_isa isa,
                                                               eddy_reduce_type type) {
    switch (type) {
    case EDDY_REDUCE_F32:
        return eddy_cpu_reduce_f32_for(isa);
    case EDDY_REDUCE_F64:
        return eddy_cpu_reduce_f64_for(isa);
    case EDDY_REDUCE_I64:
        return eddy_cpu_reduce_i64_for(isa);
    default:
        return eddy_cpu_reduce_truth_for(isa);
    }
}

static inline const eddy_reduce_blocks *eddy_reduce_blocks_of(eddy_reduce_type type) {
    return eddy_reduce_blocks_for(eddy_isa_chosen(), type);
}

/* F32 or F64. */
static inline const eddy_reduce_wide_blocks *eddy_reduce_wide_blocks_for(eddy_isa isa,
                                                                         eddy_reduce_type type) {
    return type == EDDY_REDUCE_F32 ? eddy_cpu_reduce_wide_f32_for(isa)
                                   : eddy_cpu_reduce_wide_f64_for(isa);
}

static inline const eddy_reduce_wide_blocks *eddy_reduce_wide_blocks_of(eddy_reduce_type type) {
    return eddy_reduce_wide_blocks_for(eddy_isa_chosen(), type);
}

#endif
