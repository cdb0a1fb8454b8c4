/* A loop over the places of operands of any strides, for kernels that compute an element from more than one of each input. */
#ifndef EDDY_KERNELS_CUDA_STRIDED_CUH
#define EDDY_KERNELS_CUDA_STRIDED_CUH

#include <kernels/cuda/device.cuh>

/* Calls function(offsets) for each place, with the bytes from the beginning of each operand. An operand that is no memory but a number has it in its address and what a dim adds to it in its
 * strides: eddy_cuda_number is its value. */
template <int operands, class parameters, class work>
EDDY_CUDA_MEMBER void eddy_cuda_each_place(const parameters &p, const work &function) {
    const uint32_t step = gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < p.count; at += step) {
        int64_t offsets[operands] = {};
        uint32_t left = at;
        EDDY_CUDA_ROLLED
        for (int d = p.rank - 1; d >= 0; d--) {
            const uint32_t quotient = eddy_cuda_quotient(left, p.dims[d]),
                           index = left - quotient * p.dims[d].divisor;
            for (int k = 0; k < operands; k++)
                offsets[k] += index * p.strides[k][d];
            left = quotient;
        }
        function(offsets);
    }
}

EDDY_SCALAR int64_t eddy_cuda_number(const eddy_cuda_strided &p, int operand,
                                     const int64_t *offsets) {
    return (int64_t)(uintptr_t)p.data[operand] + offsets[operand];
}

#endif
