/* nonzero and masked_select on CUDA devices: which kernels there are, and what they get (selection.cu, selection.c). Plain C.
 *
 *     eddy_selection_count      counts the places of each chunk that hold
 *     eddy_selection_begin      makes of the counts where the results of each chunk begin, and says how many there are
 *     eddy_selection_indices    writes the indices of each place that holds
 *     eddy_selection_elements   writes the element of each place that holds */
#ifndef EDDY_KERNELS_CUDA_SELECTION_H
#define EDDY_KERNELS_CUDA_SELECTION_H

#include <kernels/cuda/dims.h>

/* What a place has an offset of. */
enum { EDDY_CUDA_SELECTION_TESTED, EDDY_CUDA_SELECTION_IN };

typedef struct eddy_cuda_selection_call {
    eddy_cuda_gate gate;
    const void *tested; /* a place holds if its element has one of `bits` */
    const void *in;
    void *out;
    int64_t *begins;      /* of each chunk */
    int64_t count, found; /* places; results, once they are counted */
    uint64_t bits;
    int32_t tested_bytes, element_bytes;
    int64_t step,
        axis_step; /* bytes of the output from result to result, and from index to index of one */
    eddy_cuda_dims places; /* in row-major order */
    eddy_cuda_dims axes;   /* that indices count along: the dims of the input, without strides */
} eddy_cuda_selection_call;

#endif
