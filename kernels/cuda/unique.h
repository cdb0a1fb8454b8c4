/* unique on CUDA devices: which kernels there are, and what they get (unique.cu, unique.c). Plain C.
 *
 * The elements are sorted as records (sorted.h). A record is a value's first if its key is another than that of the record ahead of it, or if it is a NaN's.
 *
 *     eddy_unique_count_<width>   counts the first records of each chunk
 *     eddy_unique_begin_<width>   makes of the counts which value each chunk begins behind, and says how many there are
 *     eddy_unique_put_<width>     writes each value, and which one each element is
 *     eddy_unique_lengths         writes how often each value occurs */
#ifndef EDDY_KERNELS_CUDA_UNIQUE_H
#define EDDY_KERNELS_CUDA_UNIQUE_H

#include <kernels/cuda/dims.h>

typedef struct eddy_cuda_unique_call {
    eddy_cuda_gate gate;
    const void *records; /* in their order */
    const void *in;      /* the elements, by their index */
    void *values;
    int64_t *inverse, *counts; /* NULL: are not wanted */
    int64_t *begins;           /* of each chunk of records */
    int64_t *firsts;      /* of each value the number of its first record, if counts are wanted */
    int64_t count, found; /* elements; values */
    int64_t step, value_step,
        count_step; /* bytes from element to element of `in`, values and counts */
    int32_t element_bytes;
    uint32_t
        has_nan; /* the key of a NaN is the greatest that so many bytes have; an integer may have it, too */
    eddy_cuda_dims places; /* of inverse, in row-major order */
} eddy_cuda_unique_call;

#endif
