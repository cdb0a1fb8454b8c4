/* Reducing contiguous elements of a compute type: f32, f64 or i64.
 *
 * The tree is fixed by the number of elements alone, so that layout, slices and instruction set never show in the bits:
 * elements are taken in blocks of EDDY_REDUCE_BLOCK; within a block element i goes to lane i % EDDY_REDUCE_LANES, lanes add
 * up in order and are then halved (lane l with lane l + 16, 8, 4, 2, 1, where both exist); blocks are combined pairwise. */
#ifndef EDDY_KERNELS_CPU_REDUCE_BLOCK_H
#define EDDY_KERNELS_CPU_REDUCE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

#define EDDY_REDUCE_LANES 32
#define EDDY_REDUCE_BLOCK 1024
/* Outputs that are reduced side by side when the reduced dims are the outer ones. */
#define EDDY_REDUCE_COLUMNS 128

typedef struct eddy_reduce_op {
    /* One block, 1 <= count <= EDDY_REDUCE_BLOCK, to one value. */
    void (*block)(const void *elements, int64_t count, void *result);
    /* Rows number `first` .. of a block, each of `columns` elements, into lanes[EDDY_REDUCE_LANES][EDDY_REDUCE_COLUMNS].
     * row_stride is in elements. */
    void (*rows)(void *lanes, const void *rows, int64_t row_stride, int64_t first, int64_t count, int64_t columns);
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

/* A reduction that goes over each block twice: the first sweep finds one number (a mean, a maximum), the second sums
 * something of each element and that number. Blocks are then merged as pairs (first, second). */
typedef struct eddy_reduce_pair {
    /* to[i] = what the second sweep sums of from[i], given *first; `to` is not `from` */
    void (*map)(void *to, const void *from, const void *first, int64_t count);
    /* the same with first[i]: outputs side by side */
    void (*map_columns)(void *to, const void *from, const void *first, int64_t columns);
    /* The pairs of `count` elements into those of the `into_count` elements before them. */
    void (*merge)(void *into_first, void *into_second, int64_t into_count, const void *first, const void *second,
                  int64_t count, int64_t columns);
} eddy_reduce_pair;

/* to[i] = f(from[i]); `to` may be `from`. */
typedef void eddy_reduce_map(double *to, const double *from, int64_t count, double parameter);

typedef struct eddy_reduce_blocks {
    eddy_reduce_op sum[EDDY_REDUCE_TYPES];
    eddy_reduce_op prod[EDDY_REDUCE_TYPES];
    eddy_reduce_op max[EDDY_REDUCE_TYPES]; /* NaN wins */
    eddy_reduce_op min[EDDY_REDUCE_TYPES]; /* NaN wins */
    /* Pairs (mean, sum of squared deviations) and (max, sum of e^(x - max)); the latter for F32 and F64. */
    eddy_reduce_pair variance;
    /* from[i] less the first sweep's number; not for merging */
    eddy_reduce_pair deviation;
    eddy_reduce_pair log_sum_exp[2];
    eddy_reduce_map *square, *absolute, *is_nonzero, *power;
    /* Where a row has a better element than `best` (argmax: larger, argmin: smaller, NaN before all), takes it and sets the
     * index to `index`. Not for TRUTH. */
    void (*argmax_row[EDDY_REDUCE_TYPES])(void *best, int64_t *indices, const void *row, int64_t index,
                                          int64_t columns);
    void (*argmin_row[EDDY_REDUCE_TYPES])(void *best, int64_t *indices, const void *row, int64_t index,
                                          int64_t columns);
    /* The first element that equals *value, or is NaN where that is; there is one. Not for TRUTH. */
    int64_t (*find[EDDY_REDUCE_TYPES])(const void *elements, const void *value);
} eddy_reduce_blocks;

EDDY_ISA_DECLARE(eddy_reduce_blocks, eddy_cpu_reduce_blocks)

#endif
