/* The functions of the normal distribution: erf, normal (its cumulative distribution function), gelu, its approximation
 * gelu_tanh, and the derivatives of both. Straight-line code as in kernels/math.h. Except in gelu and gelu_tanh, f32 is
 * computed in f64 with polynomials that are accurate to 2^-30, and rounded once.
 *
 * e^(a^2) erfc(a) for a >= 0 is a polynomial in t = (a - 4) / (a + 4), divided by a + 4: after Shepherd and Laframboise,
 * "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity" (Mathematics of Computation 36, 1981).
 * Polynomials: Sollya's fpminimax (log2 of the relative error: f32 -30, f64 -53.9; erf near 0 f32 -34, f64 -63). The
 * rational function in gelu for f32 (-26.3): least squares with weights that follow the error (Lawson's method);
 * coefficients were rounded one after another. */
#ifndef EDDY_KERNELS_GAUSS_H
#define EDDY_KERNELS_GAUSS_H

#include <kernels/math.h>

/* e^x, accurate to 2^-34, for x from -700 to 0. */
EDDY_SCALAR double eddy_gauss_exp_rough(double x) {
    double t, r = eddy_math_reduce_f64(x, &t);
    double p = 0x1.9eb53f4336923p-13;
    p = eddy_fma_f64(p, r, 0x1.6da6cb2d23479p-10);
    p = eddy_fma_f64(p, r, 0x1.1112ff696ce53p-7);
    p = eddy_fma_f64(p, r, 0x1.555465eb0f722p-5);
    p = eddy_fma_f64(p, r, 0x1.5555533b7c7f8p-3);
    p = eddy_fma_f64(p, r, 0x1.0000005b3b735p-1);
    p = eddy_fma_f64(p, r, 0x1.0000000111098p0);
    p = eddy_fma_f64(p, r, 0x1.ffffffffa9f16p-1);
    return p * eddy_math_power_f64(t);
}

/* e^(a^2) erfc(a), accurate to 2^-30, for a from 0 to 10.3 */
EDDY_SCALAR double eddy_gauss_erfcx_rough(double a) {
    double inverse = 1.0 / (a + 4.0), t = (a - 4.0) * inverse;
    double p = -0x1.8b80cbc697e1fp-11;
    p = eddy_fma_f64(p, t, -0x1.91e60ca705b53p-12);
    p = eddy_fma_f64(p, t, 0x1.97ce830fcdf0fp-8);
    p = eddy_fma_f64(p, t, -0x1.aed298e6b159fp-6);
    p = eddy_fma_f64(p, t, 0x1.38d0728c8ed9fp-4);
    p = eddy_fma_f64(p, t, -0x1.64671d262acbbp-3);
    p = eddy_fma_f64(p, t, 0x1.52cac68a048bbp-2);
    p = eddy_fma_f64(p, t, -0x1.14eaab36080edp-1);
    p = eddy_fma_f64(p, t, 0x1.8be20344ca775p-1);
    p = eddy_fma_f64(p, t, -0x1.f3fe3287c4c33p-1);
    p = eddy_fma_f64(p, t, 0x1.18932bf075c28p0);
    return p * inverse;
}

/* The same, accurate to one or two ulp, for a from 0 to 27.5. y = e^(a^2) erfc(a) has y' = 2 a y - 2 / sqrt(pi), which
 * gives the effect of the rounding error of t. */
EDDY_SCALAR double eddy_gauss_erfcx(double a) {
    double d = a + 4.0, d_low = a > 4.0 ? (a - d) + 4.0 : (4.0 - d) + a;
    double n = a - 4.0, n_low = a > 4.0 ? (a - n) - 4.0 : (-4.0 - n) + a;
    double inverse = 1.0 / d, t = n * inverse;
    double t_low = (eddy_fma_f64(-t, d, n) + (n_low - t * d_low)) * inverse;
    double p = -0x1.84fe764efcbc2p-29;
    p = eddy_fma_f64(p, t, -0x1.df4c231e232fbp-27);
    p = eddy_fma_f64(p, t, 0x1.511002c94c122p-27);
    p = eddy_fma_f64(p, t, 0x1.0be47a6e5ec21p-23);
    p = eddy_fma_f64(p, t, -0x1.761ee00ef877bp-24);
    p = eddy_fma_f64(p, t, -0x1.c7e0f41718a3ep-21);
    p = eddy_fma_f64(p, t, 0x1.809162ea89c6bp-20);
    p = eddy_fma_f64(p, t, 0x1.3b3a7b7295794p-18);
    p = eddy_fma_f64(p, t, -0x1.3c7f3945b269p-16);
    p = eddy_fma_f64(p, t, -0x1.e8187b7f73021p-19);
    p = eddy_fma_f64(p, t, 0x1.72ce3fb2648cep-13);
    p = eddy_fma_f64(p, t, -0x1.dd2829c54ea6ap-12);
    p = eddy_fma_f64(p, t, -0x1.269b6027c8eefp-12);
    p = eddy_fma_f64(p, t, 0x1.908f46d7875a8p-8);
    p = eddy_fma_f64(p, t, -0x1.b00c0525daf57p-6);
    p = eddy_fma_f64(p, t, 0x1.38dbd2c95e876p-4);
    p = eddy_fma_f64(p, t, -0x1.645fd8a4c914cp-3);
    p = eddy_fma_f64(p, t, 0x1.52cac2370e6c5p-2);
    p = eddy_fma_f64(p, t, -0x1.14eacb1ad01a8p-1);
    p = eddy_fma_f64(p, t, 0x1.8be202d26c755p-1);
    p = eddy_fma_f64(p, t, -0x1.f3fe31ecb49c3p-1);
    p = eddy_fma_f64(p, t, 0x1.18932bf08e154p0);
    double y = p * inverse, slope = eddy_fma_f64(2.0 * a, y, -0x1.20dd750429b6dp0);
    p = eddy_fma_f64(eddy_fma_f64(d, slope, y) * (0.125 * d * d), t_low, p);
    y = p * inverse;
    return eddy_fma_f64(eddy_fma_f64(-y, d, p) - y * d_low, inverse, y);
}

/* e^-(square + square_low) as a number that has to be scaled by `shifted` (eddy_math_scale_f64). */
EDDY_SCALAR double eddy_gauss_bell(double square, double square_low, double *shifted) {
    double r = eddy_math_reduce_f64(-square, shifted) - square_low;
    double sum = 1.0 + r, rest = (1.0 - sum) + r;
    return sum + eddy_fma_f64(r * r, eddy_math_exp_tail_f64(r), rest);
}

/* ---- erf ---- */

EDDY_SCALAR float eddy_erf_f32(float x) {
    double a = eddy_abs_f64((double)x), z = a * a;
    double p = -0x1.438405aa1e28fp-17;
    p = eddy_fma_f64(p, z, 0x1.d826922076b66p-14);
    p = eddy_fma_f64(p, z, -0x1.bcbe9a8cc7f74p-11);
    p = eddy_fma_f64(p, z, 0x1.5628edf006036p-8);
    p = eddy_fma_f64(p, z, -0x1.b829a7a5eb0a5p-6);
    p = eddy_fma_f64(p, z, 0x1.ce2f0798af145p-4);
    p = eddy_fma_f64(p, z, -0x1.8127465fb9873p-2);
    p = eddy_fma_f64(p, z, 0x1.20dd7504007e6p0);
    double b = a > 6.0 ? 6.0 : a;
    double far = 1.0 - eddy_gauss_exp_rough(-b * b) * eddy_gauss_erfcx_rough(b);
    return (float)eddy_copysign_f64(a < 1.0 ? a * p : far, (double)x);
}

EDDY_SCALAR double eddy_erf_f64(double x) {
    double a = eddy_abs_f64(x), z = a * a;
    double p = -0x1.45f944873b245p-38;
    p = eddy_fma_f64(p, z, 0x1.8af2b2dca412bp-34);
    p = eddy_fma_f64(p, z, -0x1.509c8e9550a8p-30);
    p = eddy_fma_f64(p, z, 0x1.fcc0dffed62dfp-27);
    p = eddy_fma_f64(p, z, -0x1.5f7682db2a077p-23);
    p = eddy_fma_f64(p, z, 0x1.b9e72e470eab9p-20);
    p = eddy_fma_f64(p, z, -0x1.f4d264fbbe036p-17);
    p = eddy_fma_f64(p, z, 0x1.f9a3277348693p-14);
    p = eddy_fma_f64(p, z, -0x1.c02db404863f5p-11);
    p = eddy_fma_f64(p, z, 0x1.565bcd0e82ce2p-8);
    p = eddy_fma_f64(p, z, -0x1.b82ce312895e2p-6);
    p = eddy_fma_f64(p, z, 0x1.ce2f21a042c09p-4);
    p = eddy_fma_f64(p, z, -0x1.812746b0379e7p-2);
    p = eddy_fma_f64(p, z, 0x1.1c1398eb67384p-56);
    double near = eddy_fma_f64(a, 0x1.20dd750429b6dp0, a * p);
    double t, b = a > 6.0 ? 6.0 : a;
    double bell = eddy_gauss_bell(b * b, eddy_fma_f64(b, b, -b * b), &t);
    double far = 1.0 - bell * eddy_gauss_erfcx(b) * eddy_math_power_f64(t);
    return eddy_copysign_f64(a < 1.0 ? near : far, x);
}

/* ---- normal, gelu ----
 * With a = |x| / sqrt(2), the probability beyond |x| is e^(-a^2) e^(a^2) erfc(a) / 2. Below the bound it is 0 (-0 for
 * gelu). */

/* e^(-a^2 / 2) = 2^n (1 + p) for a from 0 to 14.4; a^2 is reduced by multiples of 2 ln 2, without rounding error. */
EDDY_SCALAR float eddy_gauss_bell_f32(float a, float square, float *shifted) {
    float t = eddy_fma_f32(square, -0x1.715476p-1f, EDDY_MATH_ROUND_F32),
          n = t - EDDY_MATH_ROUND_F32;
    float r = eddy_fma_f32(n, 0x1.7f7d1cp-19f, eddy_fma_f32(a, a, n * 0x1.62e4p0f));
    float p = 0x1.686a48p-16f;
    p = eddy_fma_f32(p, r, -0x1.123cf8p-12f);
    p = eddy_fma_f32(p, r, 0x1.555b82p-9f);
    p = eddy_fma_f32(p, r, -0x1.55548cp-6f);
    p = eddy_fma_f32(p, r, 0x1.fffff8p-4f);
    *shifted = t;
    return eddy_fma_f32(r * r, p, -0.5f * r);
}

/* The probability beyond |x|, accurate to 2^-29. */
EDDY_SCALAR double eddy_gauss_beyond_rough(double x) {
    double a = eddy_abs_f64(x);
    a = a > 14.5 ? 14.5 : a;
    return 0.5 * eddy_gauss_exp_rough(-0.5 * a * a) *
           eddy_gauss_erfcx_rough(a * 0x1.6a09e667f3bcdp-1);
}

EDDY_SCALAR float eddy_normal_f32(float x) {
    double beyond = eddy_gauss_beyond_rough((double)x);
    return (float)(x < 0.0f ? beyond : 1.0 - beyond);
}

/* x, and -0 below 0. By bits, since clang 14 takes "x < 0 ? -0 : x" for a maximum, which is -0 for 0, too. */
EDDY_SCALAR float eddy_gauss_not_below_f32(float x) {
    return eddy_f32_of_bits(eddy_bits_of_f32(x) & (x < 0.0f ? 0x80000000u : 0xffffffffu));
}

/* f32: x minus |x| times the probability beyond |x|; for negative x, minus that product alone. e^(a^2 / 2) erfc(a /
 * sqrt(2)) = n(a) / d(a), and all coefficients are positive. Each of n and d is the sum of its odd and its even part, and
 * n includes the factor a. This has a smaller error than Horner's scheme, which rounds once per power. The factor 2^-65
 * comes last, so that a subnormal result is rounded once. */
EDDY_SCALAR float eddy_gelu_f32(float x) {
    float t, a = eddy_math_cut_f32(eddy_abs_f32(x), 14.4f), square = a * a;
    float p = eddy_gauss_bell_f32(a, square, &t);
    float n_odd = eddy_fma_f32(0x1.f860c6p+2f, square, 0x1.544dcp+6f);
    float n_even =
        eddy_fma_f32(eddy_fma_f32(0x1.98858ep-1f, square, 0x1.1c6f24p+5f), square, 0x1.8464f2p+6f);
    float d_odd = eddy_fma_f32(square + 0x1.6c5e4p+5f, square, 0x1.45194ep+7f);
    float d_even =
        eddy_fma_f32(eddy_fma_f32(0x1.3c17ap+3f, square, 0x1.d2cdp+6f), square, 0x1.8464f2p+6f);
    float n = eddy_fma_f32(n_odd, square, a * n_even), d = eddy_fma_f32(d_odd, a, d_even);
    float share = n * eddy_math_large_power_f32(t);
    share = eddy_fma_f32(p, share, share) / d;
    return eddy_fma_f32(share, -0x1p-65f, eddy_gauss_not_below_f32(x));
}

/* The probability beyond |x|, to be scaled by `shifted`. */
EDDY_SCALAR double eddy_gauss_beyond(double x, double *shifted) {
    double a = eddy_abs_f64(x);
    a = a > 38.8 ? 38.8 : a;
    double square = a * a, square_low = eddy_fma_f64(a, a, -square);
    double bell = eddy_gauss_bell(0.5 * square, 0.5 * square_low, shifted);
    return 0.5 * bell * eddy_gauss_erfcx(a * 0x1.6a09e667f3bcdp-1);
}

EDDY_SCALAR double eddy_normal_f64(double x) {
    double t, beyond = eddy_gauss_beyond(x, &t), scaled = eddy_math_scale_f64(beyond, t);
    return x < 0.0 ? scaled : 1.0 - scaled;
}

EDDY_SCALAR double eddy_gelu_f64(double x) {
    double t, beyond = eddy_gauss_beyond(x, &t), scaled = eddy_math_scale_f64(beyond, t);
    double c = x < -38.8 ? -38.8 : x;
    return x < 0.0 ? eddy_math_scale_f64(c * beyond, t) : x * (1.0 - scaled);
}

/* ---- gelu_tanh ----
 * (1 + tanh u) / 2 is 1 / (1 + e^-2u), where 2u = x (k + l x^2) with k = 2 sqrt(2 / pi), l = 0.044715 k. */

#define EDDY_GAUSS_K 0x1.9884533d43651p0
#define EDDY_GAUSS_K_LOW (-0x1.cbc0d30ebfd15p-54)
#define EDDY_GAUSS_L 0x1.2444f2a4d8b4bp-4
#define EDDY_GAUSS_L_LOW (-0x1.6c843a29d1c70p-61)

/* f32 like silu, with |2u| = a (g + g_low). The high part of k has so few bits that its difference from g is exact. */
EDDY_SCALAR float eddy_gelu_tanh_f32(float x) {
    float a = eddy_math_cut_f32(eddy_abs_f32(x), 10.8f), square = a * a,
          square_low = eddy_fma_f32(a, a, -square);
    float g = eddy_fma_f32(square, 0x1.2444f2p-4f, 0x1.988p0f);
    float g_low = eddy_fma_f32(square_low, 0x1.2444f2p-4f,
                               eddy_fma_f32(square, 0x1.49b16ap-29f, 0x1.14cf5p-14f));
    g_low += eddy_fma_f32(square, 0x1.2444f2p-4f, 0x1.988p0f - g);
    float t = eddy_fma_f32(a * g, -0x1.715476p0f, EDDY_MATH_ROUND_F32), n = t - EDDY_MATH_ROUND_F32;
    float r = eddy_fma_f32(a, -g, n * -0x1.62e4p-1f);
    r = eddy_fma_f32(-a, g_low, eddy_fma_f32(n, -0x1.7f7d1cp-20f, r));
    float p = eddy_fma_f32(r * r, eddy_math_exp_tail_f32(r), r),
          power = eddy_math_large_power_f32(t);
    float d = eddy_fma_f32((1.0f + p) * power, 0x1p-64f, 1.0f);
    return eddy_fma_f32(eddy_fma_f32(p, a, a) * power / d, -0x1p-64f, eddy_gauss_not_below_f32(x));
}

/* |2u|, at most 800, as the sum of two numbers; *cut is x, limited to the range in which the result changes. */
EDDY_SCALAR double eddy_gauss_tanh_argument(double x, double *cut, double *low) {
    double c = x < -40.0 ? -40.0 : x > 40.0 ? 40.0 : x, a = eddy_abs_f64(c);
    double square = c * c, square_low = eddy_fma_f64(c, c, -square);
    double p = square * EDDY_GAUSS_L, p_low = eddy_fma_f64(square, EDDY_GAUSS_L, -p);
    p_low += eddy_fma_f64(square, EDDY_GAUSS_L_LOW, square_low * EDDY_GAUSS_L);
    double s = EDDY_GAUSS_K + p, back = s - EDDY_GAUSS_K;
    double s_low = (EDDY_GAUSS_K - (s - back)) + (p - back) + (p_low + EDDY_GAUSS_K_LOW);
    double v = a * s, v_low = eddy_fma_f64(a, s_low, eddy_fma_f64(a, s, -v));
    bool is_far = v > 800.0;
    *cut = c;
    *low = is_far ? 0.0 : v_low;
    return is_far ? 800.0 : v;
}

EDDY_SCALAR double eddy_gelu_tanh_f64(double x) {
    double v_low, c, v = eddy_gauss_tanh_argument(x, &c, &v_low);
    double t, bell = eddy_gauss_bell(v, v_low, &t), e = eddy_math_scale_f64(bell, t);
    double y = eddy_math_scale_f64(c * bell / (1.0 + e), t);
    return x < 0.0 ? y : x / (1.0 + e);
}

/* ---- derivatives ----
 * The derivatives of gelu, Phi(x) + x e^(-x^2 / 2) / sqrt(2 pi), and of gelu_tanh, s + x s (1 - s) (k + 3 l x^2). Their
 * terms cancel near -0.75. */

#define EDDY_GAUSS_DENSITY 0x1.9884533d43651p-2 /* 1 / sqrt(2 pi) */

EDDY_SCALAR float eddy_gelu_slope_f32(float x) {
    double c = x < -14.5f  ? -14.5
               : x > 14.5f ? 14.5
                           : (double)x,
           beyond = eddy_gauss_beyond_rough(c);
    double density = EDDY_GAUSS_DENSITY * eddy_gauss_exp_rough(-0.5 * c * c);
    return (float)((c < 0.0 ? beyond : 1.0 - beyond) + c * density);
}

EDDY_SCALAR double eddy_gelu_slope_f64(double x) {
    double c = x < -38.8 ? -38.8 : x > 38.8 ? 38.8 : x, square = c * c;
    double t, bell = eddy_gauss_bell(0.5 * square, 0.5 * eddy_fma_f64(c, c, -square), &t);
    return eddy_normal_f64(c) + eddy_math_scale_f64(EDDY_GAUSS_DENSITY * c * bell, t);
}

EDDY_SCALAR float eddy_gelu_tanh_slope_f32(float x) {
    double c = x < -20.0f ? -20.0 : x > 20.0f ? 20.0 : (double)x, square = c * c;
    double v = c * eddy_fma_f64(square, EDDY_GAUSS_L, EDDY_GAUSS_K), a = -eddy_abs_f64(v);
    double e = eddy_gauss_exp_rough(a < -200.0 ? -200.0 : a), inverse = 1.0 / (1.0 + e);
    double share = (v < 0.0 ? e : 1.0) * inverse, other = (v < 0.0 ? 1.0 : e) * inverse;
    return (float)(share *
                   (1.0 + c * other * eddy_fma_f64(3.0 * square, EDDY_GAUSS_L, EDDY_GAUSS_K)));
}

EDDY_SCALAR double eddy_gelu_tanh_slope_f64(double x) {
    double v_low, c, v = eddy_gauss_tanh_argument(x, &c, &v_low);
    double t, bell = eddy_gauss_bell(v, v_low, &t), e = eddy_math_scale_f64(bell, t),
              inverse = 1.0 / (1.0 + e);
    double share = (c < 0.0 ? e : 1.0) * inverse, other = (c < 0.0 ? 1.0 : e) * inverse;
    return share * (1.0 + c * other * eddy_fma_f64(3.0 * c * c, EDDY_GAUSS_L, EDDY_GAUSS_K));
}

#endif
