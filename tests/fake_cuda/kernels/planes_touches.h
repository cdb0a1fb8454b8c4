/* What a kernel touches of images. C++. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_PLANES_TOUCHES_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_PLANES_TOUCHES_H

#include <kernels/cuda/planes.h>
#include <tests/fake_cuda/kernels/touches.h>

/* From the least to the greatest byte, unless there are no such planes. */
inline void touch_planes(const eddy_cuda_planes &planes, int64_t bytes, bool is_write,
                         touch_fn *say, void *context) {
    range all = {0, bytes};
    for (int d = 0; d < EDDY_CUDA_AXES; d++)
        all.reach(planes.sizes[d] - 1, planes.strides[d]);
    if (planes.data != nullptr)
        all.touch(say, context, planes.data, is_write);
}

#endif
