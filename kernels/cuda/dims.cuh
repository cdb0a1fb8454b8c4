/* Where an element lies, by its number. */
#ifndef EDDY_KERNELS_CUDA_DIMS_CUH
#define EDDY_KERNELS_CUDA_DIMS_CUH

#include <kernels/cuda/device.cuh>
#include <kernels/cuda/dims.h>

/* The quotient of flat / dim `d`; `flat` becomes the rest. */
EDDY_SCALAR int64_t eddy_cuda_divide(const eddy_cuda_dims &dims, int d, int64_t *flat) {
    const eddy_cuda_divisor by = dims.by[d];
    const int64_t n = *flat, quotient = by.divisor == 0 || n > INT32_MAX
                                            ? n / dims.sizes[d]
                                            : (int64_t)eddy_cuda_quotient((uint32_t)n, by);
    *flat = n - quotient * dims.sizes[d];
    return quotient;
}

/* Bytes from the first element to the one of this row-major number. */
EDDY_SCALAR int64_t eddy_cuda_offset(const eddy_cuda_dims &dims, int operand, int64_t flat) {
    int64_t offset = 0;
    EDDY_CUDA_ROLLED
    for (int d = dims.rank - 1; d > 0; d--) {
        int64_t index = flat;
        flat = eddy_cuda_divide(dims, d, &index);
        offset += index * dims.strides[operand][d];
    }
    return dims.rank > 0 ? offset + flat * dims.strides[operand][0] : 0;
}

#endif
