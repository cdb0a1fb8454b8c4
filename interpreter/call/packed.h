/* Packed arguments: everything an instruction's kernel needs, in one block that the VM copies.
 *
 *   | call | view 0 | ... | view n-1 | attributes | dims and strides | plan |
 *
 * Positions count 8-byte words from the start. Views of elementwise calls share their dims. `run` makes eddy_views
 * whose shape and strides point into the block: nothing is copied or allocated. The plan is the kernel's. */
#ifndef EDDY_INTERPRETER_CALL_PACKED_H
#define EDDY_INTERPRETER_CALL_PACKED_H

#include <interpreter/call/op.h>
#include <stdint.h>
#include <vm/vm.h>

typedef struct eddy_packed_view {
    int64_t offset; /* elements */
    uint32_t dims_at;
    uint32_t strides_at;
    uint32_t shape_number; /* the shape before dims were merged; 0: the dims are the shape */
    int8_t rank;           /* -1: absent, no operand of the instruction */
    uint8_t dtype;
    uint8_t is_late;    /* output whose dims `count` finds */
    uint8_t is_written; /* output, or written in place */
} eddy_packed_view;

typedef struct eddy_packed_arguments {
    const eddy_op *op;
    const eddy_kernel *kernel;
    void (*run)(const eddy_kernel_call *call); /* the function that the plan runs */
    uint64_t workspace_bytes;                  /* of the kernel */
    uint32_t view_count;
    uint32_t input_count; /* views before the outputs */
    uint32_t late_count;
    uint32_t attributes_at;
    uint32_t plan_at;
    eddy_packed_view views[];
} eddy_packed_arguments;

/* Views that `run` keeps on its stack; longer lists lie in the workspace. */
#define EDDY_PACKED_STACK_VIEWS 64

/* An upper bound of the bytes of a block with so many views. */
static inline size_t eddy_packed_bytes_max(const eddy_op *op, int64_t view_count) {
    return sizeof(eddy_packed_arguments) + op->kernel_attribute_bytes + 8 + EDDY_KERNEL_PLAN_BYTES +
           (size_t)view_count * (sizeof(eddy_packed_view) + 2 * EDDY_RANK_MAX * sizeof(int64_t));
}

/* Makes the kernel plan the call, into the block after its first `bytes`, where there is room for a plan; *bytes grows by the
 * plan, *cost_ps is the estimate. OUT_OF_MEMORY, without a record. After OK a call that is not submitted has to be ended. */
EDDY_MUST_USE eddy_status eddy_packed_prepare(eddy_packed_arguments *call, size_t *bytes,
                                              int64_t *cost_ps);
/* The call's views without data, as many as it has. Late ones have the shape that `count` has to find. */
void eddy_packed_views(const eddy_packed_arguments *call, eddy_op_view *views);
/* Runs the kernel. kernel->views have data; its workspace, team, error and attributes (the block's, or changed ones) are set. */
void eddy_packed_call(const eddy_packed_arguments *call, eddy_kernel_call *kernel);
static inline const void *eddy_packed_attributes(const eddy_packed_arguments *call) {
    return (const int64_t *)(const void *)call + call->attributes_at;
}
/* eddy_kernel.way of the call's plan; NULL: the kernel has none. */
const char *eddy_packed_way(const eddy_packed_arguments *call);
/* Of a copy of a call that is planned: has it hold its objects too, so that it is ended as well. OUT_OF_MEMORY, or the status of a registered op, without a record. */
EDDY_MUST_USE eddy_status eddy_packed_hold(eddy_packed_arguments *call);
/* Releases the objects that the plan holds. */
void eddy_packed_end(const eddy_packed_arguments *call);

/* The descriptor of a packed call. */
const eddy_vm_descriptor *eddy_packed_descriptor(const eddy_packed_arguments *call);

#endif
