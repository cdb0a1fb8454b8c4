/* What a count has found. */
#ifndef EDDY_KERNELS_CUDA_COUNTED_CUH
#define EDDY_KERNELS_CUDA_COUNTED_CUH

#include <kernels/cuda/device.cuh>

/* For the host, which makes shapes of it once the launch's ticket is complete (vm/DEVICES.md 6). By one thread of all, in the last launch of the count; where none is launched the
 * number is 0. */
EDDY_SCALAR void eddy_cuda_say_counted(const eddy_cuda_gate &gate, int64_t counted) {
    eddy_cuda_word_of(gate)->counted = counted;
}

#endif
