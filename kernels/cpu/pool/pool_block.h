/* The inner loops of pooling: windows that are alike, on f32 or f64 memory of any strides. Elements of a window are taken row by
 * row, so that the bits depend neither on the layout nor on the instruction set. */
#ifndef EDDY_KERNELS_CPU_POOL_BLOCK_H
#define EDDY_KERNELS_CPU_POOL_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* Steps in elements. `count` windows stand side by side (neighbours of a row, or channels), `places` times. */
typedef struct eddy_pool_run {
    int64_t rows, columns; /* of a window, 1 or more */
    int64_t row_step, column_step;
    int64_t count, step, out_step;
    int64_t places, place_step, out_place_step;
    bool in_sequence; /* averages: elements are added one after another */
} eddy_pool_run;

typedef void eddy_pool_fn(void *out, const void *x, const eddy_pool_run *run, double divisor);

/* Where the elements are within their plane, and where that goes: steps as those of the run. */
typedef struct eddy_pool_indices {
    int64_t *to;
    int64_t first; /* of the first window's first element */
    int64_t row_step, column_step;
    int64_t step, to_step;
    int64_t place_step, to_place_step;
} eddy_pool_indices;

typedef void eddy_pool_index_fn(void *out, const void *x, const eddy_pool_run *run,
                                const eddy_pool_indices *indices);

/* Two sweeps: first windows of one row each, with the distance to the element chosen beside it; then what windows have of rows,
 * one step apart, to rows that are contiguous. `at` has as many bits as the elements. */
typedef void eddy_pool_at_fn(void *out, void *at, const void *x, const eddy_pool_run *run);
typedef void eddy_pool_join_fn(void *out, const void *best, const void *at,
                               const eddy_pool_run *run, const eddy_pool_indices *indices);

/* Where windows are in the memory of the gradient: steps as those of the run, whose out_step and out_place_step are those of what
 * the windows were given. */
typedef struct eddy_pool_steps {
    int64_t row_step, column_step, step, place_step;
} eddy_pool_steps;

/* Windows that share no element: the largest of each gets what the window was given, the first of equals and of NaNs; the others
 * get 0. Windows span less than 2^31. */
typedef void eddy_pool_route_fn(void *dx, const void *grad, const void *x, const eddy_pool_run *run,
                                const eddy_pool_steps *to);

typedef struct eddy_pool_ops {
    eddy_pool_fn *max; /* NaN wins; no divisor */
    eddy_pool_index_fn
        *max_index; /* the same, and which element it is: the first of equals, and of NaNs */
    eddy_pool_fn *
        average; /* the sum of the sums of rows or, in sequence, of the elements, over the divisor */
    eddy_pool_at_fn *max_at;
    eddy_pool_join_fn *max_join;
    eddy_pool_route_fn *max_route;
} eddy_pool_ops;

EDDY_ISA_DECLARE(eddy_pool_ops, eddy_cpu_pool_f32)
EDDY_ISA_DECLARE(eddy_pool_ops, eddy_cpu_pool_f64)

typedef struct eddy_pool_blocks {
    bool (*is_plain)(const float *x, int64_t count); /* neither a NaN nor -infinity */
} eddy_pool_blocks;

EDDY_ISA_DECLARE(eddy_pool_blocks, eddy_cpu_pool_blocks)

#endif
