/* How a reduction is cut up: what sum, mean, max and argmax share.
 *
 *   outputs --> units of up to EDDY_REDUCE_COLUMNS outputs (1 where the reduced dims are the inner ones)
 *   reduced elements, in row-major order --> splits of a power of two of blocks, so that each is a subtree
 *
 * A task is one unit and one split. */
#ifndef EDDY_KERNELS_CPU_REDUCE_PLAN_H
#define EDDY_KERNELS_CPU_REDUCE_PLAN_H

#include <kernels/cpu/reduce_block.h>
#include <kernels/cpu/walk.h>

typedef struct eddy_reduce_plan {
    eddy_kernel_view in, out;
    eddy_walk kept;    /* in, out; without the column dim */
    eddy_walk reduced; /* in; order of elements kept */
    int64_t reduced_count;
    int64_t columns;               /* size of the column dim; 1 where outputs are reduced one by one */
    int64_t column_in, column_out; /* its strides */
    int64_t panels;                /* units along the column dim */
    int64_t units;
    int64_t splits;
    int64_t split_count; /* reduced elements in a split (the last may have fewer) */
    int64_t task_grain;
    eddy_dtype dtype; /* compute type */
    eddy_reduce_type type;
} eddy_reduce_plan;

/* Needs shapes, strides and dtypes only. views: in, out; attributes: eddy_attributes_reduce. */
void eddy_reduce_plan_init(eddy_reduce_plan *plan, const eddy_kernel_call *call);

/* Runs body over all tasks, on the team where it pays. */
void eddy_reduce_plan_run(const eddy_reduce_plan *plan, const eddy_kernel_call *call,
                          void (*body)(void *context, int64_t begin, int64_t end), void *context);

/* Offsets of a unit's first output, and how many outputs it has. */
typedef struct eddy_reduce_unit {
    int64_t in, out, columns;
} eddy_reduce_unit;
eddy_reduce_unit eddy_reduce_plan_unit(const eddy_reduce_plan *plan, int64_t unit);

#endif
