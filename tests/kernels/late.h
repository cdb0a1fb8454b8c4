/* Calls of kernels whose outputs have late shapes: counted first, then run with outputs of that shape. */
#ifndef EDDY_TESTS_KERNELS_LATE_H
#define EDDY_TESTS_KERNELS_LATE_H

#include "planned.h"
#include "tensor.h"

/* A call with a workspace that lives from `count` to `run`. */
typedef struct late_call {
    eddy_op_view views[4];
    eddy_kernel_call call;
    planned_call planned;
    eddy_kernel_error error;
    eddy_shape shapes[3];
} late_call;

/* Counts: the outputs' shapes are in late->shapes. An input may be NULL. */
void late_begin(late_call *late, const eddy_kernel *kernel, tensor *const *inputs,
                int32_t input_count, int32_t view_count, const void *attributes);
/* Runs and ends. */
void late_run(late_call *late, int32_t input_count, tensor *const *outputs);
void late_end(late_call *late);

#endif
