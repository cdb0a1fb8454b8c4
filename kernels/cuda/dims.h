/* Dims of any size that several operands share. Plain C; the host's side is dims.c. */
#ifndef EDDY_KERNELS_CUDA_DIMS_H
#define EDDY_KERNELS_CUDA_DIMS_H

#include <kernels/cuda/parameters.h>

#define EDDY_CUDA_DIMS_OPERANDS 3

/* Outermost first, with the strides of each operand in bytes. */
typedef struct eddy_cuda_dims {
    int32_t rank;
    eddy_cuda_divisor by[EDDY_CUDA_RANK_MAX]; /* of divisor 0, where a dim is 2^31 or more */
    int64_t sizes[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_DIMS_OPERANDS][EDDY_CUDA_RANK_MAX];
} eddy_cuda_dims;

#ifndef __cplusplus
struct eddy_walk;
/* The dims of a walk in elements of so many bytes, operand by operand. */
void eddy_cuda_dims_take(eddy_cuda_dims *to, const struct eddy_walk *walk, const int64_t *bytes);
#endif

#endif
