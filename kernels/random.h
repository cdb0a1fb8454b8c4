/* Random numbers made of the words of Philox blocks: uniform, normal, and integers below a bound. For CUDA sources too.
 *
 * Normals by Box and Muller (1958). log, sin and cos are polynomials made of + - * / and sqrt alone, each rounded as IEEE
 * 754 says and never contracted, so that the bits depend neither on libm nor on the vector width. */
#ifndef EDDY_KERNELS_RANDOM_H
#define EDDY_KERNELS_RANDOM_H

#include <kernels/philox.h>

/* ---- uniform in [0, 1) ---- */

/* The top `bits` bits, 24 at most. */
EDDY_SCALAR float eddy_random_uniform_f32(uint32_t word, int bits) {
    return (float)(int32_t)(word >> (32 - bits)) * (1.0f / (float)(1 << bits));
}

EDDY_SCALAR double eddy_random_uniform_f64(uint32_t high, uint32_t low) {
    uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(int64_t)(bits >> 11) * 0x1p-53;
}

/* Random bits of a uniform number: as many as the dtype can represent below 1. */
#define EDDY_RANDOM_BITS_F32 24
#define EDDY_RANDOM_BITS_F16 11
#define EDDY_RANDOM_BITS_BF16 8

/* ---- normal ---- */

/* ln x for normal x in (0, 1]: x = m * 2^e with m in [sqrt 1/2, sqrt 2); ln m from Cephes logf. */
EDDY_SCALAR float eddy_random_log_f32(float x) {
    uint32_t bits = eddy_bits_of_f32(x);
    int32_t e = (int32_t)(bits - 0x3f3504f3u) >> 23;
    float m = eddy_f32_of_bits(bits - ((uint32_t)e << 23)) - 1.0f;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = m * z * p;
    y = y + (float)e * -2.12194440e-4f;
    y = y - 0.5f * z;
    return (m + y) + (float)e * 0.693359375f;
}

/* sin and cos of 2 pi t for t in [0, 1): a quarter turn from the top bits, the rest by polynomials on [-pi/4, pi/4]. */
EDDY_SCALAR void eddy_random_turn_f32(float t, float *sine, float *cosine) {
    float quarters = t * 4.0f;
    int32_t quadrant = (int32_t)(quarters + 0.5f);
    float r = (quarters - (float)quadrant) * 1.57079632679f;
    float z = r * r;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    float c =
        ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
        0.5f * z + 1.0f;
    float swapped_s = quadrant & 1 ? c : s, swapped_c = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -swapped_s : swapped_s;
    *cosine = (quadrant + 1) & 2 ? -swapped_c : swapped_c;
}

/* Two numbers of two words: (0, 1] with 31 bits, whose tail reaches 6.5, and [0, 1) with 24 bits for the angle. */
EDDY_SCALAR void eddy_random_normal_f32(uint32_t of_radius, uint32_t of_angle, float *first,
                                        float *second) {
    float u = ((float)(int32_t)(of_radius >> 1) + 1.0f) * 0x1p-31f;
    float t = (float)(int32_t)(of_angle >> 8) * 0x1p-24f;
    float radius = eddy_sqrt_f32(-2.0f * eddy_random_log_f32(u)), sine, cosine;
    eddy_random_turn_f32(t, &sine, &cosine);
    *first = radius * cosine;
    *second = radius * sine;
}

/* The same in double: ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172. */
EDDY_SCALAR double eddy_random_log_f64(double x) {
    uint64_t bits = eddy_bits_of_f64(x);
    int64_t e = (int64_t)(bits - 0x3fe6a09e667f3bcdull) >> 52;
    double m = eddy_f64_of_bits(bits - ((uint64_t)e << 52));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 23;
    p = p * z + 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    double ln = 2.0 * s + 2.0 * s * z * p;
    return (double)(int32_t)e * 0.693147180559945309417 + ln;
}

EDDY_SCALAR void eddy_random_turn_f64(double t, double *sine, double *cosine) {
    double quarters = t * 4.0;
    int32_t quadrant = (int32_t)(quarters + 0.5);
    double r = (quarters - (double)quadrant) * 1.57079632679489661923;
    double z = r * r;
    double s = -1.0 / 1307674368000.0;
    s = s * z + 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * z * r + r;
    double c = 1.0 / 20922789888000.0;
    c = c * z - 1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z * z - 0.5 * z + 1.0;
    double swapped_s = quadrant & 1 ? c : s, swapped_c = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -swapped_s : swapped_s;
    *cosine = (quadrant + 1) & 2 ? -swapped_c : swapped_c;
}

/* Two numbers of a block. */
EDDY_SCALAR void eddy_random_normal_f64(uint32_t radius_high, uint32_t radius_low,
                                        uint32_t angle_high, uint32_t angle_low, double *first,
                                        double *second) {
    double u = eddy_random_uniform_f64(radius_high, radius_low) + 0x1p-53,
           t = eddy_random_uniform_f64(angle_high, angle_low);
    double radius = eddy_sqrt_f64(-2.0 * eddy_random_log_f64(u)), sine, cosine;
    eddy_random_turn_f64(t, &sine, &cosine);
    *first = radius * cosine;
    *second = radius * sine;
}

/* ---- integers ---- */

/* The upper half of a product. */
EDDY_SCALAR uint64_t eddy_random_upper(uint64_t a, uint64_t b) {
#ifdef __CUDACC__
    return __umul64hi(a, b);
#else
    return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}

/* An exactly uniform number below `bound` for step `step`, whose Philox block is `words` (D. Lemire, "Fast random integer
 * generation in an interval", 2019). The rare draws that would favour some numbers are repeated, from blocks whose numbers
 * are beyond all steps. */
EDDY_SCALAR uint64_t eddy_random_below(uint64_t seed, uint64_t counter, uint64_t bound,
                                       uint64_t step, const uint32_t *words) {
    uint32_t again[4];
    for (uint64_t attempt = 1;; attempt++) {
        for (int half = 0; half < 2; half++) {
            uint64_t bits = (uint64_t)words[2 * half] << 32 | words[2 * half + 1];
            uint64_t low = bits * bound;
            if (low >= bound || low >= -bound % bound)
                return eddy_random_upper(bits, bound);
        }
        eddy_philox(seed, counter, step | attempt << 48, again);
        words = again;
    }
}

/* ---- dropping ---- */

/* For dropout: an element is kept, and scaled, if its number of EDDY_DROP_BITS bits is not below the least. p as given, 0
 * to 1. */
#define EDDY_DROP_BITS 24

EDDY_SCALAR float eddy_random_drop_least(double p) {
    return (float)(eddy_ceil_f64(p * 0x1p24) * 0x1p-24);
}

EDDY_SCALAR double eddy_random_drop_scale(double p) {
    return 1 / (1 - p);
}

#endif
