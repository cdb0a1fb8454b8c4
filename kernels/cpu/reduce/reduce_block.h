/* Reducing contiguous elements of a compute type: f32, f64 or i64, or f32 in f64 if the op says so.
 *
 * The tree depends on the number of elements alone, so that layout, slices and instruction set do not change the bits.
 * Elements are divided into blocks of EDDY_REDUCE_BLOCK. Within a block, element i is added to lane i % EDDY_REDUCE_LANES,
 * in order. Then the lanes are halved (lane l with lane l + 16, 8, 4, 2, 1, if both exist). Blocks are combined pairwise. */
#ifndef EDDY_KERNELS_CPU_REDUCE_BLOCK_H
#define EDDY_KERNELS_CPU_REDUCE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_REDUCE_LANES 32
#define EDDY_REDUCE_BLOCK 1024
/* Whole blocks that are reduced and combined in one call: a subtree of EDDY_REDUCE_GROUP_LEVELS levels. */
#define EDDY_REDUCE_GROUP_LEVELS 3
#define EDDY_REDUCE_GROUP (1 << EDDY_REDUCE_GROUP_LEVELS)
/* Distance in bytes at which memory is prefetched: the hardware prefetcher follows a stream only to the end of a page. */
#define EDDY_REDUCE_AHEAD 8192
/* Outputs that are reduced side by side when the reduced dims are the outer ones. */
#define EDDY_REDUCE_COLUMNS 128

/* Reduces one block, 1 <= count <= EDDY_REDUCE_BLOCK, to one value. Memory that is `ahead` elements behind the block is
 * prefetched; 0: none. */
typedef void eddy_reduce_block_fn(const void *elements, int64_t count, int64_t ahead, void *result);
/* Reduces a block of `columns` outputs side by side to one value each: 1 <= count <= EDDY_REDUCE_BLOCK rows, `apart`
 * elements from row to row. Memory behind the rows is prefetched. In a second sweep, `found` has the results of the first,
 * one number for each column. */
typedef void eddy_reduce_columns_fn(void *total, const void *rows, int64_t apart, int64_t count,
                                    int64_t columns, const void *found);
/* Adds one row of such a block to its lane, or starts the lane with it. */
typedef void eddy_reduce_row_fn(void *lane, bool is_first, const void *row, int64_t columns,
                                const void *found);
/* into[i] = into[i] op other[i] */
typedef void eddy_reduce_combine_fn(void *into, const void *other, int64_t count);

typedef struct eddy_reduce_op {
    eddy_reduce_block_fn *block;
    /* Reduces a group of whole blocks, of EDDY_REDUCE_BLOCK elements each, to one value. */
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

/* The second sweep of a reduction that reads each block twice. The first sweep finds one number (a mean, a maximum); the
 * second one sums a function of each element and that number. Blocks are then merged as pairs (first, second). */
typedef struct eddy_reduce_pair {
    /* Like eddy_reduce_op's block, with the result of the first sweep at *first. */
    void (*block)(const void *elements, int64_t count, const void *first, void *result);
    /* Lanes are combined as for sums. */
    eddy_reduce_columns_fn *columns;
    eddy_reduce_row_fn *row;
    /* Merges the pairs of `count` elements into the pairs of the `into_count` elements before them; NULL: pairs are never
     * merged. */
    void (*merge)(void *into_first, void *into_second, int64_t into_count, const void *first,
                  const void *second, int64_t count, int64_t columns);
} eddy_reduce_pair;

/* to[i] = f(from[i]); `to` is `from`, or they are apart. */
typedef void eddy_reduce_map(double *to, const double *from, int64_t count, double parameter);

/* If a row's element is better than `best` (argmax: larger, argmin: smaller; NaN is best of all), stores it there and sets
 * the index to `index`. */
typedef void eddy_reduce_pick_fn(void *best, int64_t *indices, const void *row, int64_t index,
                                 int64_t columns);

/* For one compute type. */
typedef struct eddy_reduce_blocks {
    eddy_reduce_op sum;           /* not of TRUTH */
    eddy_reduce_op prod;          /* for I64 alone: floats use the wide one */
    eddy_reduce_op max, min;      /* NaN wins */
    eddy_reduce_pair log_sum_exp; /* (max, sum of e^(x - max)), of F32 and F64 */
    /* max = log of the sum of e^x, of such pairs. */
    void (*add_log)(void *max, const void *sum, int64_t columns);
    eddy_reduce_pick_fn *argmax_row, *argmin_row; /* not of TRUTH */
    /* Index of the first of `count` elements that equals *value or, if that is NaN, is NaN; there is one. Not for TRUTH. */
    int64_t (*find)(const void *elements, int64_t count, const void *value);
} eddy_reduce_blocks;

/* In f64, for elements of F32 or F64. */
typedef struct eddy_reduce_wide_blocks {
    eddy_reduce_op sum, prod;
    /* Sums of squares, of magnitudes, and of 1 for each element that is not 0; the largest and the smallest magnitude. */
    eddy_reduce_op squares, magnitudes, nonzeros, max_magnitude, min_magnitude;
    eddy_reduce_pair variance;  /* (mean, sum of squared deviations) */
    eddy_reduce_pair deviation; /* sums of deviations from the mean; for F64 alone */
    eddy_reduce_map *power;     /* magnitudes to the power of the parameter; for F64 alone */
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
