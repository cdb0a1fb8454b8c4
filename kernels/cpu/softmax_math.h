/* exp for whole rows: branch-free, so that loops over it vectorise. Cody-Waite reduction to |r| <= ln 2 / 2, a polynomial,
 * and a scaling in two steps so that subnormal results are right. At most 2 ulp (normal results; tests/kernels/
 * test_softmax.c); exp(-inf) is 0, overflow infinity, NaN stays NaN. The same bits for every instruction set. */
#ifndef EDDY_KERNELS_CPU_SOFTMAX_MATH_H
#define EDDY_KERNELS_CPU_SOFTMAX_MATH_H

#include <stdint.h>
#include <string.h>

static inline float eddy_softmax_power_f32(int32_t exponent) {
    uint32_t bits = (uint32_t)(exponent + 127) << 23;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline double eddy_softmax_power_f64(int64_t exponent) {
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Coefficients: Cephes expf (S. Moshier). Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits. */
static inline float eddy_softmax_exp_f32(float x) {
    x = x < -105.0f ? -105.0f : x;
    x = x > 90.0f ? 90.0f : x;
    float shifted = x * 0x1.715476p+0f + 0x1.8p23f;
    int32_t n;
    memcpy(&n, &shifted, sizeof(n));
    n -= 0x4b400000;
    n = n < -160 ? -160 : n > 160 ? 160 : n; /* only NaN comes here with more */
    float whole = shifted - 0x1.8p23f;
    float r = x - whole * 0x1.63p-1f;
    r = r - whole * -0x1.bd0106p-13f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    float y = p * (r * r) + r + 1.0f;
    int32_t half = n >> 1;
    return y * eddy_softmax_power_f32(half) * eddy_softmax_power_f32(n - half);
}

/* The Taylor polynomial of degree 13 is within 2^-57 on the reduced range. */
static inline double eddy_softmax_exp_f64(double x) {
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    double shifted = x * 0x1.71547652b82fep+0 + 0x1.8p52;
    int64_t n;
    memcpy(&n, &shifted, sizeof(n));
    n -= 0x4338000000000000;
    n = n < -1200 ? -1200 : n > 1200 ? 1200 : n;
    double whole = shifted - 0x1.8p52;
    double r = x - whole * 6.93145751953125e-1;
    r = r - whole * 1.42860682030941723212e-6;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    double y = p * (r * r) + r + 1.0;
    int64_t half = n >> 1;
    return y * eddy_softmax_power_f64(half) * eddy_softmax_power_f64(n - half);
}

#endif
