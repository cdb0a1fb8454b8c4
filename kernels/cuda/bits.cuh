/* Elements as the bits that they are, by their size. */
#ifndef EDDY_KERNELS_CUDA_BITS_CUH
#define EDDY_KERNELS_CUDA_BITS_CUH

#include <kernels/cuda/device.cuh>

/* 1, 2, 4 or 8 bytes. */
EDDY_SCALAR uint64_t eddy_cuda_bits(const void *element, int32_t bytes) {
    switch (bytes) {
    case 1:
        return *(const uint8_t *)element;
    case 2:
        return *(const uint16_t *)element;
    case 4:
        return *(const uint32_t *)element;
    default:
        return *(const uint64_t *)element;
    }
}

EDDY_SCALAR void eddy_cuda_bits_put(void *element, int32_t bytes, uint64_t bits) {
    switch (bytes) {
    case 1:
        *(uint8_t *)element = (uint8_t)bits;
        break;
    case 2:
        *(uint16_t *)element = (uint16_t)bits;
        break;
    case 4:
        *(uint32_t *)element = (uint32_t)bits;
        break;
    default:
        *(uint64_t *)element = bits;
        break;
    }
}

#endif
