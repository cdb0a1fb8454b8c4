/* In place of the kernel in PTX that the bench launches (bench/cuda/bare.c). */
#include <kernels/cuda/device.cuh>

EDDY_CUDA_KERNEL(bench_nothing, uint64_t) {
    (void)parameters;
}
