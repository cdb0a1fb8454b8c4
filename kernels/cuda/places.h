/* The parts of a tensor that indices name, one tensor of indices for each of its first dims, on CUDA devices. The host's side. */
#ifndef EDDY_KERNELS_CUDA_PLACES_H
#define EDDY_KERNELS_CUDA_PLACES_H

#include <kernels/kernel.h>

/* Several indices become one, in the workspace; a single one is used as it is. The struct points into itself. */
typedef struct eddy_cuda_places {
    eddy_op_view index; /* of the dims that the indices broadcast to */
    bool is_from_end;   /* negative ones count from the end */
    int64_t bound;
    int64_t step;  /* elements of the tensor from index to index */
    int64_t first; /* elements from its first one to the one of index 0 */
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
} eddy_cuda_places;

/* Bytes of the workspace. */
size_t eddy_cuda_places_bytes(const eddy_op_view *indices, int32_t count);
/* Launches what makes one of several. `tensor` needs no data. */
void eddy_cuda_places_find(eddy_cuda_places *places, const eddy_kernel_call *call,
                           const eddy_op_view *tensor, const eddy_op_view *indices, int32_t count,
                           void *workspace);

#endif
