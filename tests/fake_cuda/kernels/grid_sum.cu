/* A kernel whose threads meet in both ways, for the test of the grid. */
#include <kernels/cuda/device.cuh>
#include <tests/fake_cuda/kernels/grid_sum.h>

/* Each block sums as many numbers as it has threads: in a warp by shuffles, of warps through memory of the block. Threads with no number
 * end at once. The sum comes in the same order as in a loop that halves. */
EDDY_CUDA_BLOCK_KERNEL(eddy_grid_sum, eddy_grid_sum_parameters) {
    EDDY_CUDA_SHARED(float, sums, 32);
    EDDY_CUDA_SHARED_OF_LAUNCH(float, copies);
    const unsigned width = blockDim.x * blockDim.y;
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    const unsigned at = blockIdx.x * width + thread;
    if (thread >= parameters.used)
        return;
    copies[thread] = parameters.numbers[at];
    __syncthreads();
    float sum = copies[parameters.used - 1 - thread];
    for (unsigned half = 16; half > 0; half /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        sum = thread < parameters.used / 32 ? sums[thread] : 0;
        for (unsigned half = 16; half > 0; half /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, half);
        if (thread == 0)
            parameters.totals[blockIdx.x] = sum;
    }
}

/* Threads that wait at different places: no block that runs so ends. */
EDDY_CUDA_BLOCK_KERNEL(eddy_grid_apart, eddy_grid_sum_parameters) {
    if (threadIdx.x < parameters.used)
        __syncthreads();
    else
        __syncwarp();
}
