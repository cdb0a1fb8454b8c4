/* How reductions are cut into tasks.
 *
 *   outputs --> units of up to EDDY_REDUCE_COLUMNS outputs (1 if the reduced dims are the inner ones and long)
 *   reduced elements, in row-major order --> splits of a power of two of blocks, so that each is a subtree
 *
 * A task is one unit and one split. */
#ifndef EDDY_KERNELS_CPU_REDUCE_PLAN_H
#define EDDY_KERNELS_CPU_REDUCE_PLAN_H

#include <kernels/attributes.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/walk.h>

#define EDDY_REDUCE_OUTPUTS 2

typedef struct eddy_reduce_plan {
    /* Copied from `prepare` to `run` as they are. */
    int64_t reduced_count;
    int64_t outputs;
    int64_t columns;   /* size of the column dim; 1 if outputs are reduced one by one */
    int64_t column_in; /* its strides */
    int64_t column_outs[EDDY_REDUCE_OUTPUTS];
    int64_t panel;  /* outputs of a unit, except the last one */
    int64_t panels; /* units along the column dim */
    int64_t units;
    int64_t splits;
    int64_t split_count; /* reduced elements in a split (the last may have fewer) */
    int64_t task_grain;
    int32_t out_count;
    uint8_t dtype;   /* eddy_dtype: the compute type */
    uint8_t type;    /* eddy_reduce_type */
    bool is_by_rows; /* the column dim is outside the reduced ones: eddy_reduce_plan_by_rows */
    /* Copied as words. */
    eddy_walk kept;    /* in, outputs; without the column dim */
    eddy_walk reduced; /* in; order of elements kept */
    /* Set for each call. */
    const eddy_op_view *in, *outs;
} eddy_reduce_plan;

/* Bytes of this plan within a kernel's plan. */
#define EDDY_REDUCE_PLAN_BYTES                                                                     \
    (offsetof(eddy_reduce_plan, kept) +                                                            \
     sizeof(int64_t) * (EDDY_WALK_WORDS_MOST(1 + EDDY_REDUCE_OUTPUTS) + EDDY_WALK_WORDS_MOST(1)))

/* A small call whose elements are contiguous, row-major, output by output, and whose outputs are too. It consists of rows
 * that are reduced in one slice, and that are not so short that several are better reduced side by side. It needs no plan. */
typedef struct eddy_reduce_rows {
    int64_t rows, count; /* outputs, and elements of each */
} eddy_reduce_rows;
bool eddy_reduce_rows_find(eddy_reduce_rows *found, const eddy_kernel_call *call,
                           eddy_attributes_reduce attributes);

/* Uses shapes, strides and dtypes only. views: in, then one or two outputs, which share a shape. `dtype` is the compute
 * type: F32, F64, I64 or BOOL. */
void eddy_reduce_plan_init(eddy_reduce_plan *plan, const eddy_kernel_call *call,
                           eddy_attributes_reduce attributes, eddy_dtype dtype);

/* Writes the plan to `memory`, the last part of a kernel's plan; returns its bytes. */
size_t eddy_reduce_plan_write(const eddy_reduce_plan *plan, void *memory);
/* Reads the plan, for a call with data. */
void eddy_reduce_plan_read(eddy_reduce_plan *plan, const void *memory,
                           const eddy_kernel_call *call);

/* If each output is reduced by itself and has at most `most` elements, makes units of several outputs, or of the only one,
 * so that a task is worth its overhead; there is then one split. Only for kernels that handle is_by_rows. */
void eddy_reduce_plan_by_rows(eddy_reduce_plan *plan, int64_t most);

/* Estimate of a reduction: a time for each element and, if each output is reduced by itself, a time for each output. A
 * reduction across rows reads memory in panels, a part of each row. */
int64_t eddy_reduce_plan_cost(const eddy_reduce_plan *plan, const eddy_kernel_call *call,
                              uint32_t axes, int64_t element_ps, int64_t output_ps);

/* Runs body over all tasks, on the team if that pays. */
void eddy_reduce_plan_run(const eddy_reduce_plan *plan, const eddy_kernel_call *call,
                          void (*body)(void *context, int64_t begin, int64_t end), void *context);

/* Offsets of a unit's first output, and how many outputs it has. */
typedef struct eddy_reduce_unit {
    int64_t in, outs[EDDY_REDUCE_OUTPUTS], columns;
} eddy_reduce_unit;
eddy_reduce_unit eddy_reduce_plan_unit(const eddy_reduce_plan *plan, int64_t unit);

/* Writes a unit's results, contiguous values of dtype `from`, to output `o`. */
void eddy_reduce_plan_store(const eddy_reduce_plan *plan, const eddy_reduce_unit *unit, int32_t o,
                            eddy_dtype from, const void *values);

#endif
