/* masked_scatter on CUDA devices: which kernels there are, and what they get (masked_scatter.cu, masked_scatter.c). Plain C.
 *
 *     eddy_masked_scatter_count    counts the places of each chunk where the mask holds
 *     eddy_masked_scatter_begin    makes of the counts where the elements of each chunk begin in the source
 *     eddy_masked_scatter_<bits>   writes each place: an element of the source, or of the input */
#ifndef EDDY_KERNELS_CUDA_MASKED_SCATTER_H
#define EDDY_KERNELS_CUDA_MASKED_SCATTER_H

#include <kernels/cuda/parameters.h>

/* Elements of so many bits. */
#define EDDY_CUDA_MASKED_SCATTERS(row) row(8) row(16) row(32) row(64)

/* What a place has an offset of. The source has its own dims. */
enum {
    EDDY_CUDA_MASKED_SCATTER_OUT,
    EDDY_CUDA_MASKED_SCATTER_IN,
    EDDY_CUDA_MASKED_SCATTER_MASK,
    EDDY_CUDA_MASKED_SCATTER_OPERANDS
};

typedef struct eddy_cuda_masked_scatter_call {
    eddy_cuda_gate gate;
    void *out;
    const void *in, *mask, *source;
    int64_t *begins; /* of each chunk */
    int64_t count, source_count;
    int32_t rank, source_rank; /* dims outermost first, strides in bytes */
    int64_t dims[EDDY_CUDA_RANK_MAX], source_dims[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_MASKED_SCATTER_OPERANDS][EDDY_CUDA_RANK_MAX];
    int64_t source_strides[EDDY_CUDA_RANK_MAX];
} eddy_cuda_masked_scatter_call;

#endif
