/* Finding the places that several indices name together, on CUDA devices: what the kernel gets (advanced_index.cu, advanced_index.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_ADVANCED_INDEX_H
#define EDDY_KERNELS_CUDA_ADVANCED_INDEX_H

#include <kernels/cuda/parameters.h>

/* Written for a place that is none: an index is out of range. Who uses the offsets finds them out of range too, at the same position, and the record of the first stays. */
#define EDDY_CUDA_NO_PLACE (-1)

typedef struct eddy_cuda_place_index {
    const void *data;
    int64_t bound, step;                 /* units of the offset from index to index */
    int64_t strides[EDDY_CUDA_RANK_MAX]; /* in bytes */
} eddy_cuda_place_index;

/* eddy_places: offsets[i] is the sum of what the indices of place i lead to, from `first` on. Dims outermost first. */
typedef struct eddy_cuda_places_call {
    eddy_cuda_gate gate;
    int64_t *offsets;
    int64_t count, first;
    int32_t rank, index_count;
    uint32_t is_wide; /* a bit for each index: i64; else i32 */
    int64_t dims[EDDY_CUDA_RANK_MAX];
    eddy_cuda_place_index indices[EDDY_CUDA_RANK_MAX];
} eddy_cuda_places_call;

#endif
