/* softmax, log_softmax and their gradients on CUDA devices: which kernels there are (softmax.cu), what they are given, and the host's side (softmax.c). Plain C.
 *
 * The order of sums is the CPU's (kernels/cpu/softmax/softmax_block.h), so that the bits are: a line in chunks of 4,096 elements, a chunk in 16 lanes, the lanes
 * halved, the chunks added in f64 one after the other. Only the largest element may be found in any order. */
#ifndef EDDY_KERNELS_CUDA_SOFTMAX_H
#define EDDY_KERNELS_CUDA_SOFTMAX_H

#include <kernels/cuda/lines.h>

#define EDDY_CUDA_SOFTMAX_LANES 16
#define EDDY_CUDA_SOFTMAX_CHUNK 4096
/* Elements of a line that a thread has at once, at most: 256 threads have a chunk. */
#define EDDY_CUDA_SOFTMAX_ROUNDS 16

/* Dtype, name and enumerator; the type in which it is computed. */
#define EDDY_CUDA_SOFTMAX_DTYPES(row, op)                                                          \
    row(op, f32, F32, f32) row(op, f64, F64, f64) row(op, f16, F16, f32) row(op, bf16, BF16, f32)
/* The kernels are eddy_<op>_<dtype>_whole, of lines that a block of threads keeps, and for all others ..._sums and ..._results, ahead of which softmaxes have
 * eddy_softmax_<dtype>_largest. */
#define EDDY_CUDA_SOFTMAXES(row)                                                                   \
    EDDY_CUDA_SOFTMAX_DTYPES(row, softmax)                                                         \
    EDDY_CUDA_SOFTMAX_DTYPES(row, log_softmax)                                                     \
    EDDY_CUDA_SOFTMAX_DTYPES(row, softmax_backward)                                                \
    EDDY_CUDA_SOFTMAX_DTYPES(row, log_softmax_backward)

/* A block of threads works on `abreast` tasks at once, each with `places` threads: both are powers of two, whose product is the number of threads. A task is a line,
 * or of lines that are not kept a chunk: number chunk * lines + line. */
typedef struct eddy_cuda_softmax_call {
    eddy_cuda_gate gate;
    const void *in[2]; /* the second one of gradients: what the softmax has given */
    void *out;
    double *largest, *sums; /* of each task */
    int64_t chunks;
    uint32_t places, abreast; /* there are as many places as lanes, or more */
    eddy_cuda_lines lines;
} eddy_cuda_softmax_call;

#endif
