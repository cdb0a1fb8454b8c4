/* What tensor cores make of an f32 that they multiply: 10 bits of fraction. */
#ifndef EDDY_TESTS_FAKE_CUDA_KERNELS_TF32_H
#define EDDY_TESTS_FAKE_CUDA_KERNELS_TF32_H

#include <stdint.h>
#include <string.h>

static inline float fake_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&x, &bits, sizeof(bits));
    return x;
}

#endif
