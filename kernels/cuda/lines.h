/* Lines along one axis, of operands of one shape: the output (operand 0), then the inputs. Plain C; the host's side is lines.c. */
#ifndef EDDY_KERNELS_CUDA_LINES_H
#define EDDY_KERNELS_CUDA_LINES_H

#include <kernels/cuda/dims.h>

/* Lines are numbered as the output lies in memory. */
typedef struct eddy_cuda_lines {
    int64_t lines, count;                     /* elements of each line */
    int64_t strides[EDDY_CUDA_DIMS_OPERANDS]; /* along the axis, in bytes */
    bool is_across; /* neighbouring lines are nearer to each other than neighbouring elements */
    eddy_cuda_dims dims; /* without the axis */
} eddy_cuda_lines;

#ifndef __cplusplus
struct eddy_kernel_call;
/* A tensor of rank 0 is a line of one element. *to is cleared. */
void eddy_cuda_lines_take(eddy_cuda_lines *to, const struct eddy_kernel_call *call, int32_t axis);
#endif

#endif
