/* The scalar functions that take a polynomial, in f32 and f64: exp, expm1, log, log1p, log2, sigmoid, silu and its
 * derivative silu_slope, tanh. The functions of angles are in kernels/angle.h, those of the normal distribution in
 * kernels/gauss.h, pow in kernels/power.h.
 *
 * Straight-line C without tables or branches (conditions become selections), so that loops over a function vectorise at
 * any width. Operations are fused only by eddy_fma, so that the bits depend neither on the width nor on the
 * instruction set. Error bounds in ulp (tests/functional/test_scalar_functions.c measures them; functional/README.md lists
 * them): 1, except 1.25 for tanh, silu in f32 and log2, and 4 for silu_slope. NaN stays NaN, infinities give the limits,
 * and subnormal arguments and results are handled.
 *
 * Polynomials: Sollya's fpminimax for the relative error over the reduced range (log2 of the error: exp f32 -28, f64 -57;
 * expm1 f32 -30, f64 -61; log f32 -27, f64 -59). */
#ifndef EDDY_KERNELS_MATH_H
#define EDDY_KERNELS_MATH_H

#include <kernels/scalar_functions.h>

/* Adding this constant rounds to an integer, which is then in the low bits. In f32 the integer is larger by 254, twice the
 * bias of exponents. */
#define EDDY_MATH_ROUND_F32 (0x1.8p23f + 254.0f)
#define EDDY_MATH_ROUND_F64 0x1.8p52
/* The same without the 254. */
#define EDDY_MATH_WHOLE_F32 0x1.8p23f

/* a, or `limit` if a is larger or NaN; both have no sign bit. It compares integers, since compilers make one instruction
 * of that but several of a selection of floats. */
EDDY_SCALAR float eddy_math_cut_f32(float a, float limit) {
    uint32_t bits = eddy_bits_of_f32(a), most = eddy_bits_of_f32(limit);
    return eddy_f32_of_bits(bits < most ? bits : most);
}

/* The larger of two numbers without sign bit. */
EDDY_SCALAR float eddy_math_larger_f32(float a, float b) {
    uint32_t bits = eddy_bits_of_f32(a), least = eddy_bits_of_f32(b);
    return eddy_f32_of_bits(bits > least ? bits : least);
}

/* x = n ln 2 + r with |r| <= ln 2 / 2; `shifted` is n + round. x - n hi is exact (Cody and Waite, 1980). */
EDDY_SCALAR float eddy_math_reduce_by_f32(float x, float round, float *shifted) {
    float t = eddy_fma_f32(x, 0x1.715476p+0f, round);
    float n = t - round;
    *shifted = t;
    return eddy_fma_f32(n, 0x1.05c61p-29f, eddy_fma_f32(n, -0x1.62e43p-1f, x));
}

EDDY_SCALAR float eddy_math_reduce_f32(float x, float *shifted) {
    return eddy_math_reduce_by_f32(x, EDDY_MATH_ROUND_F32, shifted);
}

EDDY_SCALAR double eddy_math_reduce_f64(double x, double *shifted) {
    double t = eddy_fma_f64(x, 0x1.71547652b82fep+0, EDDY_MATH_ROUND_F64);
    double n = t - EDDY_MATH_ROUND_F64;
    *shifted = t;
    return eddy_fma_f64(n, -0x1.abc9e3b39803fp-56, eddy_fma_f64(n, -0x1.62e42fefa39efp-1, x));
}

/* (e^r - 1 - r) / r^2 for the reduced range, accurate to an ulp of e^r. */
EDDY_SCALAR float eddy_math_exp_tail_f32(float r) {
    float q = 0x1.6a624cp-10f;
    q = eddy_fma_f32(q, r, 0x1.123abcp-7f);
    q = eddy_fma_f32(q, r, 0x1.55589ep-5f);
    q = eddy_fma_f32(q, r, 0x1.55549p-3f);
    return eddy_fma_f32(q, r, 0x1.fffffcp-2f);
}

/* The same with a shorter chain of dependent operations: at the start, two of them depend on r alone. */
EDDY_SCALAR float eddy_math_exp_tail_in_pairs_f32(float r, float square) {
    float low = eddy_fma_f32(0x1.55549p-3f, r, 0x1.fffffcp-2f);
    float high = eddy_fma_f32(0x1.123abcp-7f, r, 0x1.55589ep-5f);
    return eddy_fma_f32(eddy_fma_f32(0x1.6a624cp-10f, square, high), square, low);
}

EDDY_SCALAR double eddy_math_exp_tail_f64(double r) {
    double q = 0x1.ad904c232627dp-26;
    q = eddy_fma_f64(q, r, 0x1.28ae252d63205p-22);
    q = eddy_fma_f64(q, r, 0x1.71df1af29625ap-19);
    q = eddy_fma_f64(q, r, 0x1.a01999392ab12p-16);
    q = eddy_fma_f64(q, r, 0x1.a01a012edf549p-13);
    q = eddy_fma_f64(q, r, 0x1.6c16c18482215p-10);
    q = eddy_fma_f64(q, r, 0x1.1111111126ecbp-7);
    q = eddy_fma_f64(q, r, 0x1.555555555069cp-5);
    q = eddy_fma_f64(q, r, 0x1.55555555554fdp-3);
    return eddy_fma_f64(q, r, 0x1.000000000000ap-1);
}

/* The same, accurate to an ulp of e^r - 1. */
EDDY_SCALAR float eddy_math_expm1_tail_f32(float r) {
    float q = 0x1.9e0c6p-13f;
    q = eddy_fma_f32(q, r, 0x1.6d437cp-10f);
    q = eddy_fma_f32(q, r, 0x1.111306p-7f);
    q = eddy_fma_f32(q, r, 0x1.5554fp-5f);
    q = eddy_fma_f32(q, r, 0x1.555554p-3f);
    return eddy_fma_f32(q, r, 0.5f);
}

EDDY_SCALAR double eddy_math_expm1_tail_f64(double r) {
    double q = 0x1.1f1a593f8c3a4p-29;
    q = eddy_fma_f64(q, r, 0x1.af5f449206a63p-26);
    q = eddy_fma_f64(q, r, 0x1.27e5132bfce35p-22);
    q = eddy_fma_f64(q, r, 0x1.71ddf8040b191p-19);
    q = eddy_fma_f64(q, r, 0x1.a01a018e12084p-16);
    q = eddy_fma_f64(q, r, 0x1.a01a01b006d6fp-13);
    q = eddy_fma_f64(q, r, 0x1.6c16c16c1aafcp-10);
    q = eddy_fma_f64(q, r, 0x1.111111110f65p-7);
    q = eddy_fma_f64(q, r, 0x1.555555555554dp-5);
    q = eddy_fma_f64(q, r, 0x1.5555555555559p-3);
    return eddy_fma_f64(q, r, 0.5);
}

/* y * 2^n in two steps, so that a subnormal result is rounded once; n from -151 to 129 (f64: -1076 to 1025). Shifts remove
 * the bits that EDDY_MATH_ROUND puts above n: one shift leaves floor(n / 2) in the exponent field, the other one n. */
EDDY_SCALAR float eddy_math_scale_f32(float y, float shifted) {
    uint32_t half = (eddy_bits_of_f32(shifted) << 22) & 0xff800000u,
             other = (eddy_bits_of_f32(shifted) << 23) - half;
    return y * eddy_f32_of_bits(half) * eddy_f32_of_bits(other);
}

EDDY_SCALAR double eddy_math_scale_f64(double y, double shifted) {
    uint64_t half = (eddy_bits_of_f64(shifted) << 51) & 0xfff0000000000000u,
             whole = eddy_bits_of_f64(shifted) << 52;
    return y * eddy_f64_of_bits(half + 0x3ff0000000000000u) *
           eddy_f64_of_bits(whole - half + 0x3ff0000000000000u);
}

/* 2^(n + 64), for n from -190 to 63. */
EDDY_SCALAR float eddy_math_large_power_f32(float shifted) {
    return eddy_f32_of_bits((eddy_bits_of_f32(shifted) - 63u) << 23);
}

/* 2^n, which has to be normal. */
EDDY_SCALAR double eddy_math_power_f64(double shifted) {
    return eddy_f64_of_bits((eddy_bits_of_f64(shifted) + 1023u) << 52);
}

/* ---- exp ----
 * e^r ends with two fused operations, 1 + r (1 + r tail), which keep it within 0.9 ulp; 2^n is added to its exponent. For
 * results that may be subnormal, the exponent is larger by a constant, and a product with a power of two removes it, so
 * that they are rounded once. If e^x rounds to 0 it is not computed: a denormal product costs the processor some 150
 * cycles, and -infinity is a frequent argument (masks of attention, padding of rows). */

EDDY_SCALAR float eddy_exp_f32(float x) {
    bool is_zero = x < -103.98f, is_small = x < -87.3f;
    float t, r = eddy_math_reduce_by_f32(is_zero ? 0.0f : x, EDDY_MATH_WHOLE_F32, &t);
    float y = eddy_fma_f32(eddy_fma_f32(eddy_math_exp_tail_f32(r), r, 1.0f), r, 1.0f);
    uint32_t power = (eddy_bits_of_f32(t) << 23) + (is_small ? 64u << 23 : 0u);
    y = eddy_f32_of_bits(eddy_bits_of_f32(y) + power) * (is_small ? 0x1p-64f : 1.0f);
    y = x <= 0x1.62e42ep+6f ? y : x + EDDY_INF_f32; /* also for NaN */
    return is_zero ? 0.0f : y;
}

/* If e^x is a normal number, 2^n fits the exponent whatever n is. */
EDDY_SCALAR bool eddy_exp_is_quick_f32(float x) {
    return eddy_abs_f32(x) <= 87.3f;
}

EDDY_SCALAR float eddy_exp_quick_f32(float x) {
    float t, r = eddy_math_reduce_by_f32(x, EDDY_MATH_WHOLE_F32, &t);
    float y = eddy_fma_f32(eddy_fma_f32(eddy_math_exp_tail_f32(r), r, 1.0f), r, 1.0f);
    return eddy_f32_of_bits(eddy_bits_of_f32(y) + (eddy_bits_of_f32(t) << 23));
}

EDDY_SCALAR bool eddy_exp_is_quick_f64(double x) {
    return eddy_abs_f64(x) <= 708.3;
}

EDDY_SCALAR double eddy_exp_quick_f64(double x) {
    double t, r = eddy_math_reduce_f64(x, &t);
    double y = eddy_fma_f64(eddy_fma_f64(eddy_math_exp_tail_f64(r), r, 1.0), r, 1.0);
    return eddy_f64_of_bits(eddy_bits_of_f64(y) + (eddy_bits_of_f64(t) << 52));
}

EDDY_SCALAR double eddy_exp_f64(double x) {
    bool is_zero = x < -745.14, is_small = x < -708.3;
    double t, r = eddy_math_reduce_f64(is_zero ? 0.0 : x, &t);
    double y = eddy_fma_f64(eddy_fma_f64(eddy_math_exp_tail_f64(r), r, 1.0), r, 1.0);
    uint64_t power = (eddy_bits_of_f64(t) << 52) + (is_small ? (uint64_t)128 << 52 : 0u);
    y = eddy_f64_of_bits(eddy_bits_of_f64(y) + power) * (is_small ? 0x1p-128 : 1.0);
    y = x <= 0x1.62e42fefa39efp+9 ? y : x + EDDY_INF_f64;
    return is_zero ? 0.0 : y;
}

/* The same bits for x <= 0 and NaN. The exponent of every result is larger by the constant, and none is out of range. */
EDDY_SCALAR float eddy_exp_down_f32(float x) {
    bool is_zero = x < -103.98f;
    float t, r = eddy_math_reduce_by_f32(is_zero ? 0.0f : x, EDDY_MATH_WHOLE_F32 + 191.0f, &t);
    float y = eddy_fma_f32(eddy_fma_f32(eddy_math_exp_tail_f32(r), r, 1.0f), r, 1.0f);
    y = y * eddy_f32_of_bits(eddy_bits_of_f32(t) << 23) * 0x1p-64f;
    return is_zero ? 0.0f : y;
}

EDDY_SCALAR double eddy_exp_down_f64(double x) {
    bool is_zero = x < -745.14;
    double t, r = eddy_math_reduce_f64(is_zero ? 0.0 : x, &t);
    double y = eddy_fma_f64(eddy_fma_f64(eddy_math_exp_tail_f64(r), r, 1.0), r, 1.0);
    y = y * eddy_f64_of_bits((eddy_bits_of_f64(t) + 1151u) << 52) * 0x1p-128;
    return is_zero ? 0.0 : y;
}

EDDY_SCALAR float eddy_expm1_f32(float x) {
    float t, y = x < -18.0f ? -18.0f : x;
    y = y > 89.0f ? 89.0f : y;
    float r = eddy_math_reduce_f32(y, &t);
    float square = r * r, tail = eddy_math_expm1_tail_f32(r);
    float p = eddy_fma_f32(square, tail, r), p_low = eddy_fma_f32(square, tail, r - p);
    /* Half of 2^n p + (2^n - 1) is computed, so that 2^n may be 2^128. */
    float half = eddy_f32_of_bits((eddy_bits_of_f32(t) - 128u) << 23), less = half - 0.5f;
    float less_low = half > 0.5f ? (half - less) - 0.5f : half - (less + 0.5f);
    float m = eddy_fma_f32(half, p, less);
    float m_low = eddy_fma_f32(half, p_low, eddy_fma_f32(half, p, less - m) + less_low);
    y = 2.0f * (m + m_low);
    return eddy_abs_f32(x) < 0x1p-30f ? x : y;
}

EDDY_SCALAR double eddy_expm1_f64(double x) {
    double t, y = x < -40.0 ? -40.0 : x;
    y = y > 709.9 ? 709.9 : y;
    double r = eddy_math_reduce_f64(y, &t), n = t - EDDY_MATH_ROUND_F64;
    /* The rounding error of the reduction. It matters if e^r - 1 and 2^n - 1 nearly cancel. */
    double r_low =
        eddy_fma_f64(n, -0x1.abc9e3b39803fp-56, eddy_fma_f64(n, -0x1.62e42fefa39efp-1, y) - r);
    double square = r * r, tail = eddy_math_expm1_tail_f64(r);
    double p = eddy_fma_f64(square, tail, r), p_low = eddy_fma_f64(square, tail, r - p) + r_low;
    double half = eddy_f64_of_bits((eddy_bits_of_f64(t) + 1022u) << 52), less = half - 0.5;
    double less_low = half > 0.5 ? (half - less) - 0.5 : half - (less + 0.5);
    double m = eddy_fma_f64(half, p, less);
    double m_low = eddy_fma_f64(half, p_low, eddy_fma_f64(half, p, less - m) + less_low);
    y = 2.0 * (m + m_low);
    return eddy_abs_f64(x) < 0x1p-60 ? x : y;
}

/* ---- log ----
 * x = m 2^n; log x = n ln 2 + f + tail(f), f = m - 1. */

/* m from 2/3 to 4/3: f = m - 1, and n as a number. */
EDDY_SCALAR float eddy_math_split_f32(float x, float *f) {
    bool is_small = x < 0x1p-126f;
    uint32_t bits = eddy_bits_of_f32(is_small ? x * 0x1p24f : x);
    int32_t n = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    *f = eddy_f32_of_bits(bits - ((uint32_t)n << 23)) - 1.0f;
    return (float)n - (is_small ? 24.0f : 0.0f);
}

/* log(1 + f) - f = -f^2 / 2 + f^3 P(f) */
EDDY_SCALAR float eddy_math_log_tail_f32(float f) {
    float p = -0x1.080c9ep-3f;
    p = eddy_fma_f32(p, f, 0x1.1e73ap-3f);
    p = eddy_fma_f32(p, f, -0x1.f30e36p-4f);
    p = eddy_fma_f32(p, f, 0x1.1ed424p-3f);
    p = eddy_fma_f32(p, f, -0x1.559de4p-3f);
    p = eddy_fma_f32(p, f, 0x1.99d05ep-3f);
    p = eddy_fma_f32(p, f, -0x1.fffefp-3f);
    p = eddy_fma_f32(p, f, 0x1.555506p-2f);
    return (f * f) * eddy_fma_f32(p, f, -0.5f);
}

/* k ln 2 + f + tail. The sum of f and k times the high part of ln 2 is computed exactly. */
EDDY_SCALAR float eddy_math_log_sum_f32(float k, float f, float tail) {
    float sum = eddy_fma_f32(k, 0x1.62ep-1f, f);
    float rest = eddy_fma_f32(k, 0x1.62ep-1f, -sum) + f;
    return sum + (tail + eddy_fma_f32(k, 0x1.0bfbe8p-15f, rest));
}

/* The result of a logarithm that is -infinity at `zero`, NaN below it, and y above it. */
EDDY_SCALAR float eddy_math_log_ends_f32(float x, float zero, float y) {
    y = x == zero ? -EDDY_INF_f32 : y;
    y = x < zero ? EDDY_NAN_f32 : y;
    return x < EDDY_INF_f32 ? y : x; /* infinity and NaN give themselves */
}

EDDY_SCALAR float eddy_log_f32(float x) {
    float f, k = eddy_math_split_f32(x, &f);
    return eddy_math_log_ends_f32(x, 0.0f, eddy_math_log_sum_f32(k, f, eddy_math_log_tail_f32(f)));
}

#define EDDY_MATH_LN2_LOW 0x1.cf79abc9e3b3ap-40

/* m from sqrt(1/2) to sqrt(2). An integer below 2^52 in the low bits of 2^52 adds that number to it, so no conversion from
 * int64 is needed. `biased` is n + 2048, modulo 4096, of x before it is scaled. */
EDDY_SCALAR double eddy_math_split_f64(double x, double *f, uint64_t *biased) {
    bool is_small = x < 0x1p-1022;
    uint64_t bits = eddy_bits_of_f64(is_small ? x * 0x1p54 : x);
    *biased = (bits - 0x3fe6a09e667f3bcdu + (UINT64_C(2048) << 52)) >> 52;
    *f = eddy_f64_of_bits(bits - (*biased << 52) + (UINT64_C(2048) << 52)) - 1.0;
    return eddy_f64_of_bits(*biased | 0x4330000000000000u) - (0x1p52 + 2048.0) -
           (is_small ? 54.0 : 0.0);
}

/* log(1 + f) - f = s (f^2 / 2 + R(s^2)) - f^2 / 2 with s = f / (2 + f), as in fdlibm (Sun, 1993). `more` is added before
 * the last subtraction. */
EDDY_SCALAR double eddy_math_log_tail_f64(double f, double more) {
    double s = f / (2.0 + f), z = s * s;
    double p = 0x1.2f041b731ac4ap-3;
    p = eddy_fma_f64(p, z, 0x1.39a1e2dd361c3p-3);
    p = eddy_fma_f64(p, z, 0x1.74663d04460efp-3);
    p = eddy_fma_f64(p, z, 0x1.c71c52148154ap-3);
    p = eddy_fma_f64(p, z, 0x1.24924941e0827p-2);
    p = eddy_fma_f64(p, z, 0x1.999999997ff2bp-2);
    p = eddy_fma_f64(p, z, 0x1.5555555555592p-1);
    double half_square = 0.5 * f * f;
    return eddy_fma_f64(s, eddy_fma_f64(z, p, half_square), more) - half_square;
}

/* f + tail + k times the high part of ln 2; the tail includes k times its low part. */
EDDY_SCALAR double eddy_math_log_sum_f64(double k, double f, double tail) {
    double sum = eddy_fma_f64(k, 0x1.62e42fefap-1, f);
    double rest = eddy_fma_f64(k, 0x1.62e42fefap-1, -sum) + f;
    return sum + (tail + rest);
}

EDDY_SCALAR double eddy_math_log_ends_f64(double x, double zero, double y) {
    y = x == zero ? -EDDY_INF_f64 : y;
    y = x < zero ? EDDY_NAN_f64 : y;
    return x < EDDY_INF_f64 ? y : x;
}

EDDY_SCALAR double eddy_log_f64(double x) {
    uint64_t biased;
    double f, k = eddy_math_split_f64(x, &f, &biased);
    double tail = eddy_math_log_tail_f64(f, k * EDDY_MATH_LN2_LOW);
    return eddy_math_log_ends_f64(x, 0.0, eddy_math_log_sum_f64(k, f, tail));
}

/* u = 1 + x rounded; lost is the rounding error. lost 2^-n is added to f. The rounding error of that sum, `low`, is added
 * to the tail as low / (1 + f). For large x it does not matter. */
EDDY_SCALAR float eddy_log1p_f32(float x) {
    float u = 1.0f + x, lost = eddy_abs_f32(x) < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    uint32_t bits = eddy_bits_of_f32(u);
    int32_t n = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    float f = eddy_f32_of_bits(bits - ((uint32_t)n << 23)) - 1.0f;
    float more = x < 0x1p30f ? lost * eddy_f32_of_bits((uint32_t)(127 - n) << 23) : 0.0f;
    float whole = f + more, low = (f - whole) + more, low_tail = eddy_fma_f32(-low, whole, low);
    low_tail = n == 0 ? 0.0f : low_tail; /* then f + more is x, and f may be smaller than `more` */
    float tail = eddy_math_log_tail_f32(whole) + low_tail;
    float y = eddy_math_log_ends_f32(x, -1.0f, eddy_math_log_sum_f32((float)n, whole, tail));
    return x == 0.0f ? x : y;
}

EDDY_SCALAR double eddy_log1p_f64(double x) {
    double u = 1.0 + x, lost = eddy_abs_f64(x) < 1.0 ? x - (u - 1.0) : 1.0 - (u - x);
    uint64_t biased;
    double f, k = eddy_math_split_f64(u, &f, &biased);
    double more = x < 0x1p60 ? lost * eddy_f64_of_bits((2048u + 1023u - biased) << 52) : 0.0;
    double whole = f + more, low = (f - whole) + more, low_tail = eddy_fma_f64(-low, whole, low);
    low_tail = k == 0.0 ? 0.0 : low_tail;
    double tail = eddy_math_log_tail_f64(whole, k * EDDY_MATH_LN2_LOW) + low_tail;
    double y = eddy_math_log_ends_f64(x, -1.0, eddy_math_log_sum_f64(k, whole, tail));
    return x == 0.0 ? x : y;
}

/* n + (f + tail) log2 e, with f log2 e as the sum of two numbers. */
EDDY_SCALAR float eddy_log2_f32(float x) {
    float f, k = eddy_math_split_f32(x, &f), tail = eddy_math_log_tail_f32(f);
    float p = f * 0x1.715476p+0f, p_low = eddy_fma_f32(f, 0x1.715476p+0f, -p);
    p_low = eddy_fma_f32(f, 0x1.4ae0bep-26f, eddy_fma_f32(tail, 0x1.715476p+0f, p_low));
    float sum = k + p, rest = (k - sum) + p;
    return eddy_math_log_ends_f32(x, 0.0f, sum + (rest + p_low));
}

EDDY_SCALAR double eddy_log2_f64(double x) {
    uint64_t biased;
    double f, k = eddy_math_split_f64(x, &f, &biased), tail = eddy_math_log_tail_f64(f, 0.0);
    double p = f * 0x1.71547652b82fep+0, p_low = eddy_fma_f64(f, 0x1.71547652b82fep+0, -p);
    p_low = eddy_fma_f64(f, 0x1.777d0ffda0d24p-56, eddy_fma_f64(tail, 0x1.71547652b82fep+0, p_low));
    double sum = k + p, rest = (k - sum) + p;
    return eddy_math_log_ends_f64(x, 0.0, sum + (rest + p_low));
}

/* ---- sigmoid ----
 * f32: 1 / (1 + e^-x) for either sign, with 1 + e^-x as the sum of two numbers. The quotient is corrected once, with the
 * exact remainder. If e^-x is out of range, 2^-64 e^-x is used instead of the sum, and the quotient is then multiplied by
 * 2^-64. */

/* one + 2^-less e^-x. The tail of e^r is summed in pairs: this chain of sums determines the latency. */
EDDY_SCALAR float eddy_math_one_and_exp_f32(float x, float one, uint32_t less, float *low) {
    float t, r = eddy_math_reduce_by_f32(-x, EDDY_MATH_WHOLE_F32 + 127.0f, &t);
    float square = r * r, p = eddy_fma_f32(square, eddy_math_exp_tail_in_pairs_f32(r, square), r);
    float power = eddy_f32_of_bits((eddy_bits_of_f32(t) - less) << 23);
    float e = eddy_fma_f32(p, power, power), sum = e + one,
          larger = eddy_math_larger_f32(power, one);
    *low = eddy_fma_f32(p, power, (larger - sum) + eddy_math_cut_f32(power, one));
    return sum;
}

/* Whether e^-x is a normal number. */
EDDY_SCALAR bool eddy_sigmoid_is_quick_f32(float x) {
    return eddy_abs_f32(x) <= 87.3f;
}

EDDY_SCALAR float eddy_math_inverse_f32(float d, float d_low) {
    float q = 1.0f / d, excess = eddy_fma_f32(q, d_low, eddy_fma_f32(q, d, -1.0f));
    return eddy_fma_f32(-excess, q, q);
}

EDDY_SCALAR float eddy_sigmoid_quick_f32(float x) {
    float d_low, d = eddy_math_one_and_exp_f32(x, 1.0f, 0, &d_low);
    return eddy_math_inverse_f32(d, d_low);
}

EDDY_SCALAR float eddy_sigmoid_f32(float x) {
    bool is_zero = x < -103.98f, is_small = x < -87.3f;
    float c = x > 87.3f ? 87.3f : x;
    float d_low, d = eddy_math_one_and_exp_f32(is_zero ? 0.0f : c, is_small ? 0.0f : 1.0f,
                                               is_small ? 64 : 0, &d_low);
    float y = eddy_math_inverse_f32(d, d_low) * (is_small ? 0x1p-64f : 1.0f);
    return is_zero ? 0.0f : y;
}

/* f64: with e = e^-|x| as the sum of two numbers, 1 / (1 + e), or e / (1 + e) for negative x. */
EDDY_SCALAR double eddy_sigmoid_f64(double x) {
    double t, a = -eddy_abs_f64(x);
    a = a < -746.0 ? -746.0 : a;
    double r = eddy_math_reduce_f64(a, &t);
    double sum = 1.0 + r, rest = eddy_fma_f64(r * r, eddy_math_exp_tail_f64(r), (1.0 - sum) + r);
    double high = sum + rest, low = (sum - high) + rest;
    double e = eddy_math_scale_f64(high, t), e_low = eddy_math_scale_f64(low, t);
    double d = 1.0 + e, d_low = (e - (d - 1.0)) + e_low;
    bool is_negative = x < 0.0;
    double above = is_negative ? e : 1.0, above_low = is_negative ? e_low : 0.0;
    double inverse = 1.0 / d, q = above * inverse;
    double remainder = eddy_fma_f64(-q, d, above) + eddy_fma_f64(-q, d_low, above_low);
    return eddy_fma_f64(remainder, inverse, q);
}

/* ---- silu ----
 * x / (1 + e^-x), computed like sigmoid. In f64, for negative x, the power of two comes last, so that a subnormal result
 * is rounded once. */

EDDY_SCALAR bool eddy_silu_is_quick_f32(float x) {
    return eddy_abs_f32(x) <= 87.3f;
}

/* x / (d + d_low). -0 keeps its sign: its correction is -0 too. Compilers may compute -a b - c as -(a b + c), which could
 * be +0. */
EDDY_SCALAR float eddy_math_quotient_f32(float x, float d, float d_low) {
    float less = -x, inverse = -1.0f / d, q = less * inverse;
    float excess = eddy_fma_f32(q, d_low, eddy_fma_f32(q, d, less));
    return eddy_fma_f32(excess, inverse, q);
}

EDDY_SCALAR float eddy_silu_quick_f32(float x) {
    float d_low, d = eddy_math_one_and_exp_f32(x, 1.0f, 0, &d_low);
    return eddy_math_quotient_f32(x, d, d_low);
}

EDDY_SCALAR float eddy_silu_f32(float x) {
    bool is_zero = x < -109.0f, is_small = x < -87.3f;
    float d_low, d = eddy_math_one_and_exp_f32(is_zero ? 0.0f : x, is_small ? 0.0f : 1.0f,
                                               is_small ? 64 : 0, &d_low);
    float y = eddy_math_quotient_f32(x, d, d_low) * (is_small ? 0x1p-64f : 1.0f);
    y = x <= 87.3f ? y : x; /* also for NaN */
    return is_zero ? -0.0f : y;
}

/* Uses the same numbers as sigmoid. */
EDDY_SCALAR double eddy_silu_f64(double x) {
    double t, c = x < -760.0 ? -760.0 : x, a = -eddy_abs_f64(c);
    a = a < -760.0 ? -760.0 : a;
    double r = eddy_math_reduce_f64(a, &t);
    double sum = 1.0 + r, rest = eddy_fma_f64(r * r, eddy_math_exp_tail_f64(r), (1.0 - sum) + r);
    double high = sum + rest, low = (sum - high) + rest;
    double e = eddy_math_scale_f64(high, t), e_low = eddy_math_scale_f64(low, t);
    double d = 1.0 + e, d_low = (e - (d - 1.0)) + e_low;
    bool is_negative = x < 0.0;
    double above = is_negative ? high : 1.0, above_low = is_negative ? low : 0.0;
    double p = c * above, p_low = eddy_fma_f64(c, above_low, eddy_fma_f64(c, above, -p));
    double inverse = 1.0 / d, q = p * inverse;
    double remainder = eddy_fma_f64(-q, d, p) + eddy_fma_f64(-q, d_low, p_low);
    double y = eddy_math_scale_f64(eddy_fma_f64(remainder, inverse, q),
                                   is_negative ? t : EDDY_MATH_ROUND_F64);
    return ((x > 760.0) | (x == 0.0))
               ? x
               : y; /* for -0, the product of two numbers has lost the sign */
}

/* ---- silu_slope ----
 * The derivative of silu: with e = e^-|x| and d = 1 + e, (d + x e) / d^2, or e (d + x) / d^2 for negative x. In the latter
 * the power of two comes last, since the product with x is larger than e. */

EDDY_SCALAR float eddy_silu_slope_f32(float x) {
    float t, c = x < -110.0f ? -110.0f : x;
    c = c > 110.0f ? 110.0f : c;
    float r = eddy_math_reduce_f32(-eddy_abs_f32(c), &t);
    float sum = 1.0f + r,
          high = sum + eddy_fma_f32(r * r, eddy_math_exp_tail_f32(r), (1.0f - sum) + r);
    float e = eddy_math_scale_f32(high, t), d = 1.0f + e, d_low = e - (d - 1.0f);
    bool is_negative = x < 0.0f;
    float y = eddy_fma_f32(c, is_negative ? 1.0f : e, d) * (is_negative ? high : 1.0f);
    y /= eddy_fma_f32(d, d, 2.0f * d * d_low);
    return eddy_math_scale_f32(y, is_negative ? t : EDDY_MATH_ROUND_F32);
}

EDDY_SCALAR double eddy_silu_slope_f64(double x) {
    double t, c = x < -760.0 ? -760.0 : x;
    c = c > 760.0 ? 760.0 : c;
    double r = eddy_math_reduce_f64(-eddy_abs_f64(c), &t);
    double sum = 1.0 + r,
           high = sum + eddy_fma_f64(r * r, eddy_math_exp_tail_f64(r), (1.0 - sum) + r);
    double e = eddy_math_scale_f64(high, t), d = 1.0 + e, d_low = e - (d - 1.0);
    bool is_negative = x < 0.0;
    double y = eddy_fma_f64(c, is_negative ? 1.0 : e, d) * (is_negative ? high : 1.0);
    y /= eddy_fma_f64(d, d, 2.0 * d * d_low);
    return eddy_math_scale_f64(y, is_negative ? t : EDDY_MATH_ROUND_F64);
}

/* ---- tanh ----
 * f32: 1 - 2 / (e^2a + 1) for a = |x| from 13/16 on; below that, and for NaN, a + a^3 P(a^2) (Sollya's fpminimax). */

EDDY_SCALAR float eddy_tanh_f32(float x) {
    float a = eddy_abs_f32(x), e = eddy_exp_quick_f32(2.0f * eddy_math_cut_f32(a, 10.0f));
    float large = 1.0f - 2.0f / (e + 1.0f), square = a * a;
    float p = -0x1.5e9006p-11f;
    p = eddy_fma_f32(p, square, 0x1.91ad08p-9f);
    p = eddy_fma_f32(p, square, -0x1.1cb306p-7f);
    p = eddy_fma_f32(p, square, 0x1.65eb18p-6f);
    p = eddy_fma_f32(p, square, -0x1.ba1c08p-5f);
    p = eddy_fma_f32(p, square, 0x1.111134p-3f);
    p = eddy_fma_f32(p, square, -0x1.555556p-2f);
    float small = eddy_fma_f32(a * square, p, a);
    return eddy_copysign_f32(a >= 0.8125f ? large : small, x);
}

/* f64: (e^2a - 1) / (e^2a + 1), with m = e^2a - 1 = 2^n p + (2^n - 1) as the sum of two numbers. The quotient m / (m + 2)
 * is corrected as in sigmoid. Beyond the bound the result is 1. */
EDDY_SCALAR double eddy_tanh_f64(double x) {
    double t, y = 2.0 * eddy_abs_f64(x);
    y = y > 44.0 ? 44.0 : y;
    double r = eddy_math_reduce_f64(y, &t);
    double power = eddy_math_power_f64(t), less = power - 1.0;
    double square = r * r, tail = eddy_math_expm1_tail_f64(r);
    double p = eddy_fma_f64(square, tail, r), p_low = eddy_fma_f64(square, tail, r - p);
    double m = eddy_fma_f64(power, p, less);
    double m_low = eddy_fma_f64(power, p_low, eddy_fma_f64(power, p, less - m));
    double d = m + 2.0;
    double d_low = (m > 2.0 ? (m - d) + 2.0 : (2.0 - d) + m) + m_low;
    double inverse = 1.0 / d, q = m * inverse;
    double remainder = eddy_fma_f64(-q, d, m) + eddy_fma_f64(-q, d_low, m_low);
    return eddy_copysign_f64(eddy_fma_f64(remainder, inverse, q), x);
}

#endif
