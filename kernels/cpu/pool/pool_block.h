/* The inner loops of pooling: windows of one shape, on f32 or f64 memory of any strides. Elements of a window are
 * processed row by row, so that the bits depend neither on the layout nor on the instruction set. */
#ifndef EDDY_KERNELS_CPU_POOL_BLOCK_H
#define EDDY_KERNELS_CPU_POOL_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* Steps in elements. `count` windows are side by side (neighbours of a row, or channels), at each of `places` places. */
typedef struct eddy_pool_run {
    int64_t rows, columns; /* of a window, 1 or more */
    int64_t row_step, column_step;
    int64_t count, step, out_step;
    int64_t places, place_step, out_place_step;
    bool in_sequence; /* averages: elements are added one after another */
} eddy_pool_run;

typedef void eddy_pool_fn(void *out, const void *x, const eddy_pool_run *run, double divisor);

/* The indices of the elements within their plane, and the memory for the results' indices; steps as in eddy_pool_run. */
typedef struct eddy_pool_indices {
    int64_t *to;
    int64_t first; /* of the first window's first element */
    int64_t row_step, column_step;
    int64_t step, to_step;
    int64_t place_step, to_place_step;
} eddy_pool_indices;

typedef void eddy_pool_index_fn(void *out, const void *x, const eddy_pool_run *run,
                                const eddy_pool_indices *indices);

/* Two sweeps. max_at: windows of one row each; `at` is the distance to the chosen element. max_join: windows that join
 * such rows, one step apart; results are contiguous in a row. `at` has as many bits as the elements. */
typedef void eddy_pool_at_fn(void *out, void *at, const void *x, const eddy_pool_run *run);
typedef void eddy_pool_join_fn(void *out, const void *best, const void *at,
                               const eddy_pool_run *run, const eddy_pool_indices *indices);

/* Positions of windows in the gradient's memory; steps as in eddy_pool_run, whose out_step and out_place_step are those of
 * the windows' own gradients. */
typedef struct eddy_pool_steps {
    int64_t row_step, column_step, step, place_step;
} eddy_pool_steps;

/* For windows that share no element: the largest element of each (the first of equal ones, and of NaNs) gets the window's
 * gradient, the others get 0. Windows span less than 2^31. */
typedef void eddy_pool_route_fn(void *dx, const void *grad, const void *x, const eddy_pool_run *run,
                                const eddy_pool_steps *to);

typedef struct eddy_pool_ops {
    eddy_pool_fn *max; /* NaN wins; no divisor */
    eddy_pool_index_fn
        *max_index; /* the same, with the index of the element: of the first of equals, and NaNs */
    eddy_pool_fn *
        average; /* the sum of the rows' sums or, in sequence, of the elements, divided by the divisor */
    eddy_pool_at_fn *max_at;
    eddy_pool_join_fn *max_join;
    eddy_pool_route_fn *max_route;
} eddy_pool_ops;

EDDY_ISA_DECLARE(eddy_pool_ops, eddy_cpu_pool_f32)
EDDY_ISA_DECLARE(eddy_pool_ops, eddy_cpu_pool_f64)

typedef struct eddy_pool_blocks {
    bool (*is_plain)(const float *x, int64_t count); /* no element is NaN or -infinity */
} eddy_pool_blocks;

EDDY_ISA_DECLARE(eddy_pool_blocks, eddy_cpu_pool_blocks)

#endif
