/* Calls on tiny shapes, for the rows kernel_small_* and replay_small_*: as a kernel takes them, and as an op. */
#ifndef BENCH_OURS_SMALL_CALLS_H
#define BENCH_OURS_SMALL_CALLS_H

#include <eddy/eddy.h>
#include <interpreter/call/op.h>
#include <kernels/kernel.h>

#define SMALL_OPERANDS_MAX 4
#define SMALL_DIMS_MAX 2
#define SMALL_ELEMENTS_MAX 64

/* As the interpreter passes it: broadcast strides are 0. */
typedef struct small_operand {
    eddy_dtype dtype;
    int32_t rank;
    int64_t dims[SMALL_DIMS_MAX], strides[SMALL_DIMS_MAX];
} small_operand;

typedef struct small_call {
    const char *name;
    const eddy_kernel *kernel; /* NULL: the f32 kernel of `table` */
    const eddy_op *table;
    const void *attributes;
    int32_t operand_count;
    small_operand operands[SMALL_OPERANDS_MAX]; /* the result is the last */
    eddy_tensor *(*op)(eddy_tensor *const *inputs);
} small_call;

/* format: of a row's name, with a %s for that of the call. NULL if there is no such row. */
const small_call *small_call_of(const char *row, const char *format);

#endif
