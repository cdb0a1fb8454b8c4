/* The kernel that only looks at the words of its sources, for copies and whatever else cannot. */
#include <kernels/cuda/device.cuh>

EDDY_CUDA_KERNEL(eddy_look, eddy_cuda_look) {
    (void)eddy_cuda_is_skipped(parameters.gate);
}
