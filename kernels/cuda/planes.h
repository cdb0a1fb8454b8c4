/* Images as kernels of CUDA devices see them, and the order in which their elements are worked on. Plain C. */
#ifndef EDDY_KERNELS_CUDA_PLANES_H
#define EDDY_KERNELS_CUDA_PLANES_H

#include <eddy/op.h>
#include <kernels/cuda/parameters.h>

enum { EDDY_CUDA_IMAGE, EDDY_CUDA_CHANNEL, EDDY_CUDA_ROW, EDDY_CUDA_COLUMN, EDDY_CUDA_AXES };

/* [N, C, H, W], or [C, H, W] as one image. Strides in bytes. */
typedef struct eddy_cuda_planes {
    void *data;
    int64_t sizes[EDDY_CUDA_AXES], strides[EDDY_CUDA_AXES];
} eddy_cuda_planes;

/* The places of planes, in the order in which they lie in memory, so that neighbouring threads access neighbours. */
typedef struct eddy_cuda_plane_places {
    int64_t count;
    int32_t axes[EDDY_CUDA_AXES]; /* outermost first */
    int64_t sizes[EDDY_CUDA_AXES];
    eddy_cuda_divisor by[EDDY_CUDA_AXES]; /* of divisor 0, where a size is 2^31 or more */
} eddy_cuda_plane_places;

eddy_cuda_planes eddy_cuda_planes_of(const eddy_op_view *view);
eddy_cuda_plane_places eddy_cuda_plane_places_of(const eddy_cuda_planes *planes);

#endif
