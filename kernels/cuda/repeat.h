/* Repeating and rolling on CUDA devices: what the kernels get (repeat.cu, repeat.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_REPEAT_H
#define EDDY_KERNELS_CUDA_REPEAT_H

#include <kernels/cuda/parameters.h>

/* Elements of so many bits: eddy_repeat_<bits>. */
#define EDDY_CUDA_REPEATS(row) row(8) row(16) row(32) row(64)

/* Element n of the output, in row-major order, comes from where element (n + turn) modulo count would be; its index in each dim, i, is (i + shift) modulo the input's
 * dim there. Dims outermost first, strides in bytes. */
typedef struct eddy_cuda_repetition {
    eddy_cuda_gate gate;
    void *out;
    const void *in;
    int64_t count, turn; /* 0 <= turn < count */
    int32_t rank;
    int64_t dims[EDDY_CUDA_RANK_MAX], in_dims[EDDY_CUDA_RANK_MAX];
    int64_t shifts[EDDY_CUDA_RANK_MAX]; /* 0 .. in_dims - 1 */
    int64_t strides[EDDY_CUDA_RANK_MAX], in_strides[EDDY_CUDA_RANK_MAX];
} eddy_cuda_repetition;

#endif
