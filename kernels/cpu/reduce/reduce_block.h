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

typedef struct eddy_reduce_op {
    /* One block, 1 <= count <= EDDY_REDUCE_BLOCK, to one value. */
    void (*block)(const void *elements, int64_t count, void *result);
    /* The same; what is wanted soon lies `ahead` elements behind these, and is asked for. */
    void (*block_ahead)(const void *elements, int64_t count, int64_t ahead, void *result);
    /* A group of whole blocks, of EDDY_REDUCE_BLOCK elements each, to one value. */
    void (*group)(const void *elements, int64_t each, void *result);
    /* A block of `columns` outputs side by side, to a value each: 1 <= count <= EDDY_REDUCE_BLOCK rows, `apart` elements
     * from one to the next. What lies behind them is asked for. */
    void (*columns)(void *total, const void *rows, int64_t apart, int64_t count, int64_t columns);
    /* One row of such a block to what its lane has, or the first there. */
    void (*row)(void *lane, bool is_first, const void *row, int64_t columns);
    /* into[i] = into[i] op other[i] */
    void (*combine)(void *into, const void *other, int64_t count);
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
    /* The same, given a number for each column; lanes are combined as sums are. */
    void (*columns)(void *total, const void *rows, int64_t apart, int64_t count, int64_t columns,
                    const void *first_sweep);
    void (*row)(void *lane, bool is_first, const void *row, int64_t columns,
                const void *first_sweep);
    /* The pairs of `count` elements into those of the `into_count` elements before them; NULL where nothing is merged. */
    void (*merge)(void *into_first, void *into_second, int64_t into_count, const void *first,
                  const void *second, int64_t count, int64_t columns);
} eddy_reduce_pair;

/* to[i] = f(from[i]); `to` may be `from`. */
typedef void eddy_reduce_map(double *to, const double *from, int64_t count, double parameter);

typedef struct eddy_reduce_blocks {
    eddy_reduce_op sum[EDDY_REDUCE_TYPES];
    eddy_reduce_op prod[EDDY_REDUCE_TYPES];
    eddy_reduce_op max[EDDY_REDUCE_TYPES]; /* NaN wins */
    eddy_reduce_op min[EDDY_REDUCE_TYPES]; /* NaN wins */
    /* In f64, of elements of F32 or F64: themselves, their squares and magnitudes, 1 for each that is not 0. */
    eddy_reduce_op wide_sum[2], wide_prod[2], squares[2], magnitudes[2], nonzeros[2],
        max_magnitude[2], min_magnitude[2];
    /* (mean, sum of squared deviations), in f64 of elements of F32 or F64 */
    eddy_reduce_pair variance[2];
    /* Sums of what the mean leaves, F64. */
    eddy_reduce_pair deviation;
    /* (max, sum of e^(x - max)), F32 and F64 */
    eddy_reduce_pair log_sum_exp[2];
    eddy_reduce_map *power; /* of magnitudes, to the parameter */
    /* Where a row has a better element than `best` (argmax: larger, argmin: smaller, NaN before all), takes it and sets the
     * index to `index`. Not for TRUTH. */
    void (*argmax_row[EDDY_REDUCE_TYPES])(void *best, int64_t *indices, const void *row,
                                          int64_t index, int64_t columns);
    void (*argmin_row[EDDY_REDUCE_TYPES])(void *best, int64_t *indices, const void *row,
                                          int64_t index, int64_t columns);
    /* The first of `count` elements that equals *value, or is NaN where that is; there is one. Not for TRUTH. */
    int64_t (*find[EDDY_REDUCE_TYPES])(const void *elements, int64_t count, const void *value);
} eddy_reduce_blocks;

EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_blocks)

#endif
