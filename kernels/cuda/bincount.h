/* bincount on CUDA devices: which kernels there are, and what they get (bincount.cu, bincount.c). Plain C.
 *
 *     eddy_bincount_most                     finds the largest number of each chunk, and tests them all
 *     eddy_bincount_length                   makes of these the largest of all, and says how long the result is for it
 *     eddy_bincount_few, _many               count each number, of a few in the memory of a block of threads
 *     eddy_bincount_sum_<width>_<dtype>      adds up the weights of each number, in their order: those of one number are neighbours in sorted records (sorted.h) */
#ifndef EDDY_KERNELS_CUDA_BINCOUNT_H
#define EDDY_KERNELS_CUDA_BINCOUNT_H

#include <kernels/cuda/parameters.h>

#define EDDY_CUDA_BINCOUNT_THREADS 256
/* Numbers of a chunk, which a block of threads looks at at once. */
#define EDDY_CUDA_BINCOUNT_CHUNK 2048
/* Counts that a block of threads has in its memory. */
#define EDDY_CUDA_BINCOUNT_FEW 2048

/* Widths of records, and dtypes of sums. */
#define EDDY_CUDA_BINCOUNT_SUMS(row)                                                               \
    row(narrow, f32, float) row(narrow, f64, double) row(wide, f32, float) row(wide, f64, double)

typedef struct eddy_cuda_bincount_call {
    eddy_cuda_gate gate;
    const void *in;
    const void *weights;                 /* in the dtype of the result */
    const void *records;                 /* of the numbers, in their order */
    void *out;                           /* of counts: zeros */
    int64_t *most;                       /* of each chunk: one more than its largest number */
    int64_t count, length;               /* of the input, and of the result */
    int64_t step, weight_step, out_step; /* in bytes */
    int32_t element_bytes;
    uint32_t is_signed;
} eddy_cuda_bincount_call;

#endif
