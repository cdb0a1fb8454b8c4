/* The scalar functions of angles: sin, cos, tan, atan2. The code follows the rules in kernels/math.h. f32 is computed in
 * f64 and rounded once.
 *
 * Arguments are reduced to quarter turns, with as many bits of 2 / pi as the argument requires (Payne and Hanek, "Radian
 * reduction for trigonometric functions", SIGNUM Newsletter 18, 1983). The reduction of f32 uses floating-point numbers
 * and vectorises. The reduction of f64 uses 128-bit integers and a table; compilers leave it scalar. f32 arguments below
 * 2^30 have a quick reduction, for which 106 bits of 1 / pi suffice.
 * Polynomials: Sollya's fpminimax (log2 of the relative error: sin, cos f32 -37, -43, quick -35; atan f32 -33; the tails
 * of f64 -53). */
#ifndef EDDY_KERNELS_ANGLE_H
#define EDDY_KERNELS_ANGLE_H

#include <kernels/math.h>

/* An angle in quarter turns. `quarters`: the whole quarter turns, modulo 4 in the low two bits. The remainder is at most
 * half a quarter turn. For f64 it is in radians, the sum of two numbers; for f32 it is in quarter turns, one number. */
typedef struct eddy_angle {
    uint64_t quarters;
    double rest, rest_low;
} eddy_angle;

EDDY_SCALAR eddy_angle eddy_angle_of(uint64_t quarters, double rest, double rest_low) {
    eddy_angle angle;
    angle.quarters = quarters;
    angle.rest = rest;
    angle.rest_low = rest_low;
    return angle;
}

/* ---- f32 ---- */

/* p minus a multiple of 4, exactly. */
EDDY_SCALAR double eddy_angle_wrap(double p) {
    return p - 4.0 * eddy_round_f64(p * 0.25);
}

/* Returns sum + p, rounded, and adds the rounding error to *rest (Knuth's two-sum). */
EDDY_SCALAR double eddy_angle_add(double sum, double p, double *rest) {
    double total = sum + p, back = total - sum;
    *rest += (sum - (total - back)) + (p - back);
    return total;
}

/* 2 / pi in pieces of 29 bits. Their products with the 24 bits of x are exact, so whole turns can be removed from each
 * product. */
EDDY_SCALAR eddy_angle eddy_angle_reduce_f32(float x) {
    double wide = (double)x, rest = 0.0;
    double sum = eddy_angle_wrap(wide * 0x145f306dp-29);
    sum = eddy_angle_add(sum, eddy_angle_wrap(wide * 0x19391054p-58), &rest);
    sum = eddy_angle_add(sum, eddy_angle_wrap(wide * 0x14fe13abp-87), &rest);
    sum = eddy_angle_add(sum, eddy_angle_wrap(wide * 0x1d1f534dp-116), &rest);
    sum = eddy_angle_add(sum, eddy_angle_wrap(wide * 0x1b81b6c5p-145), &rest);
    sum = eddy_angle_add(sum, wide * 0x5664f10p-174, &rest);
    sum = eddy_angle_add(sum, wide * 0x1c820ff2p-203, &rest);
    double whole = eddy_round_f64(sum);
    return eddy_angle_of(eddy_bits_of_f64(whole + EDDY_MATH_ROUND_F64), (sum - whole) + rest, 0.0);
}

/* Sine and cosine of r quarter turns, with a relative error of at most 2^-37. */
EDDY_SCALAR double eddy_angle_sin_rough(double r) {
    double z = r * r;
    double p = 0x1.4baa3fcb0220ap-13;
    p = eddy_fma_f64(p, z, -0x1.32ca2f870c143p-8);
    p = eddy_fma_f64(p, z, 0x1.466bb9d080f97p-4);
    p = eddy_fma_f64(p, z, -0x1.4abbce554cd97p-1);
    p = eddy_fma_f64(p, z, 0x1.921fb5443a22cp0);
    return r * p;
}

EDDY_SCALAR double eddy_angle_cos_rough(double r) {
    double z = r * r;
    double p = -0x1.a0b9ca0599d93p-16;
    p = eddy_fma_f64(p, z, 0x1.e1e6d21bc354bp-11);
    p = eddy_fma_f64(p, z, -0x1.55d3b88c2aa84p-6);
    p = eddy_fma_f64(p, z, 0x1.03c1f072a1a9ep-2);
    p = eddy_fma_f64(p, z, -0x1.3bd3cc9bce7cfp0);
    p = eddy_fma_f64(p, z, 0x1.ffffffffffd64p-1);
    return p;
}

/* Whether the quick functions serve x: values below 2^30, and NaN and infinities, for which they return NaN. */
EDDY_SCALAR bool eddy_angle_is_quick_f32(float x) {
    float size = eddy_abs_f32(x);
    return !(size >= 0x1p30f && size < EDDY_INF_f32);
}

/* The sine of x plus `turn` quarter turns. */
EDDY_SCALAR float eddy_angle_sine_f32(float x, uint64_t turn) {
    eddy_angle angle = eddy_angle_reduce_f32(x);
    uint64_t quarters = angle.quarters + turn;
    double y = quarters & 1 ? eddy_angle_cos_rough(angle.rest) : eddy_angle_sin_rough(angle.rest);
    return (float)(quarters & 2 ? -y : y);
}

/* The sine of f plus `halves` half turns, where |f| <= 1/2. Of `halves`, only the lowest bit matters. */
EDDY_SCALAR float eddy_angle_half_turn(double f, double halves) {
    double z = f * f;
    double p = -0x1.cc2fb10738be3p-8;
    p = eddy_fma_f64(p, z, 0x1.500fccefce47bp-4);
    p = eddy_fma_f64(p, z, -0x1.32d110edb7a2p-1);
    p = eddy_fma_f64(p, z, 0x1.466bbfbcb4677p1);
    p = eddy_fma_f64(p, z, -0x1.4abbce4f05ee3p2);
    p = eddy_fma_f64(p, z, 0x1.921fb5441e1b6p1);
    return (float)eddy_f64_of_bits(eddy_bits_of_f64(f * p) ^ eddy_bits_of_f64(halves) << 63);
}

/* Divides x by pi, as a product with 1 / pi in two parts. The remainder after the whole half turns is exact but for one
 * rounding (Cody and Waite, 1980). 1 / pi is rounded down, so that its second part is positive: then -0 keeps its sign. */
EDDY_SCALAR float eddy_angle_sin_wide(double x) {
    double t = eddy_fma_f64(x, 0x1.45f306dc9c882p-2, EDDY_MATH_ROUND_F64);
    double f = eddy_fma_f64(x, 0x1.45f306dc9c882p-2, -(t - EDDY_MATH_ROUND_F64));
    return eddy_angle_half_turn(eddy_fma_f64(x, 0x1.4a7f09d5f47d5p-55, f), t);
}

EDDY_SCALAR float eddy_angle_cos_wide(double x) {
    double t = eddy_fma_f64(x, 0x1.45f306dc9c882p-2, 0.5) + EDDY_MATH_ROUND_F64;
    double f = eddy_fma_f64(x, 0x1.45f306dc9c882p-2, (EDDY_MATH_ROUND_F64 - t) + 0.5);
    return eddy_angle_half_turn(eddy_fma_f64(x, 0x1.4a7f09d5f47d5p-55, f), t);
}

EDDY_SCALAR float eddy_sin_quick_f32(float x) {
    return eddy_angle_sin_wide((double)x);
}

EDDY_SCALAR float eddy_cos_quick_f32(float x) {
    return eddy_angle_cos_wide((double)x);
}

EDDY_SCALAR float eddy_angle_tangent_f32(eddy_angle angle) {
    double s = eddy_angle_sin_rough(angle.rest), c = eddy_angle_cos_rough(angle.rest);
    bool is_odd = angle.quarters & 1;
    return (float)((is_odd ? -c : s) / (is_odd ? s : c));
}

EDDY_SCALAR float eddy_tan_quick_f32(float x) {
    double wide = (double)x, t = eddy_fma_f64(wide, 0x1.45f306dc9c882p-1, EDDY_MATH_ROUND_F64);
    double f = eddy_fma_f64(wide, 0x1.45f306dc9c882p-1, -(t - EDDY_MATH_ROUND_F64));
    f = eddy_fma_f64(wide, 0x1.4a7f09d5f47d5p-54, f);
    return eddy_angle_tangent_f32(eddy_angle_of(eddy_bits_of_f64(t), f, 0.0));
}

EDDY_SCALAR bool eddy_sin_is_quick_f32(float x) {
    return eddy_angle_is_quick_f32(x);
}

EDDY_SCALAR bool eddy_cos_is_quick_f32(float x) {
    return eddy_angle_is_quick_f32(x);
}

EDDY_SCALAR bool eddy_tan_is_quick_f32(float x) {
    return eddy_angle_is_quick_f32(x);
}

EDDY_SCALAR float eddy_sin_f32(float x) {
    return eddy_sin_is_quick_f32(x) ? eddy_sin_quick_f32(x) : eddy_angle_sine_f32(x, 0);
}

EDDY_SCALAR float eddy_cos_f32(float x) {
    return eddy_cos_is_quick_f32(x) ? eddy_cos_quick_f32(x) : eddy_angle_sine_f32(x, 1);
}

EDDY_SCALAR float eddy_tan_f32(float x) {
    return eddy_tan_is_quick_f32(x) ? eddy_tan_quick_f32(x)
                                    : eddy_angle_tangent_f32(eddy_angle_reduce_f32(x));
}

/* ---- f64 ---- */

/* 64 zero bits, then the bits of 2 / pi. */
EDDY_SCALAR_TABLE uint64_t eddy_angle_two_by_pi[20] = {
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u,
    0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu,
    0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu,
    0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
};

/* The significand times 192 bits of 2 / pi, from the first bit on whose product is not a multiple of whole turns. The top
 * two bits of the product count quarter turns, the other bits are the remainder. */
EDDY_SCALAR eddy_angle eddy_angle_reduce_f64(double x) {
    uint64_t bits = eddy_bits_of_f64(x), m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
    int32_t exponent = (int32_t)(bits >> 52 & 0x7ff) - 1075;
    exponent = exponent < -53 ? -53 : exponent > 971 ? 971 : exponent;
    uint32_t at = (uint32_t)(exponent + 62), word = at / 64, shift = at % 64;
    const uint64_t *table = eddy_angle_two_by_pi + word;
    uint64_t high = table[0] << shift | table[1] >> 1 >> (63 - shift);
    uint64_t middle = table[1] << shift | table[2] >> 1 >> (63 - shift);
    uint64_t low = table[2] << shift | table[3] >> 1 >> (63 - shift);
    unsigned __int128 sum =
        (unsigned __int128)m * middle + (uint64_t)((unsigned __int128)m * low >> 64);
    sum += (unsigned __int128)(m * high) << 64;
    uint64_t quarters = ((uint64_t)(sum >> 64) + (UINT64_C(1) << 61)) >> 62;
    __int128 rest = (__int128)(sum - ((unsigned __int128)quarters << 126));
    double r = (double)rest, r_low = (double)(rest - (__int128)r);
    /* Times pi / 2, 2^-126 and the sign of x. */
    double y = r * 0x1.921fb54442d18p-126;
    double y_low = eddy_fma_f64(r, 0x1.921fb54442d18p-126, -y);
    y_low =
        eddy_fma_f64(r, 0x1.1a62633145c07p-180, eddy_fma_f64(r_low, 0x1.921fb54442d18p-126, y_low));
    bool is_small = eddy_abs_f64(x) < 0x1.921fb54442d18p-1, is_negative = x < 0.0;
    y = is_negative ? -y : y;
    y_low = is_negative ? -y_low : y_low;
    quarters = is_negative ? 0 - quarters : quarters;
    y = x - x == 0.0 ? y : x - x; /* NaN for infinities */
    return eddy_angle_of(is_small ? 0 : quarters, is_small ? x : y, is_small ? 0.0 : y_low);
}

/* The term that is added to a.rest to give the sine; z = a.rest * a.rest. */
EDDY_SCALAR double eddy_angle_sin_tail(eddy_angle a, double z) {
    double p = 0x1.5e0cf35a22bf5p-33;
    p = eddy_fma_f64(p, z, -0x1.ae60142c6538p-26);
    p = eddy_fma_f64(p, z, 0x1.71de37a5880bfp-19);
    p = eddy_fma_f64(p, z, -0x1.a01a019e98042p-13);
    p = eddy_fma_f64(p, z, 0x1.1111111110c61p-7);
    p = eddy_fma_f64(p, z, -0x1.5555555555555p-3);
    return eddy_fma_f64(z * a.rest, p, eddy_fma_f64(-0.5 * z, a.rest_low, a.rest_low));
}

/* The term that is added to `one` = 1 - z / 2 to give the cosine. */
EDDY_SCALAR double eddy_angle_cos_tail(eddy_angle a, double z, double one) {
    double p = -0x1.907018e34f5c9p-37;
    p = eddy_fma_f64(p, z, 0x1.1eeb532a86062p-29);
    p = eddy_fma_f64(p, z, -0x1.27e4f9fe917c4p-22);
    p = eddy_fma_f64(p, z, 0x1.a01a019f351bp-16);
    p = eddy_fma_f64(p, z, -0x1.6c16c16c168bfp-10);
    p = eddy_fma_f64(p, z, 0x1.5555555555555p-5);
    return ((1.0 - one) - 0.5 * z) + eddy_fma_f64(z * z, p, -a.rest * a.rest_low);
}

EDDY_SCALAR double eddy_angle_sine_f64(double x, uint64_t turn) {
    eddy_angle a = eddy_angle_reduce_f64(x);
    double z = a.rest * a.rest, one = 1.0 - 0.5 * z;
    double s = a.rest + eddy_angle_sin_tail(a, z), c = one + eddy_angle_cos_tail(a, z, one);
    uint64_t quarters = a.quarters + turn;
    double y = quarters & 1 ? c : s;
    return quarters & 2 ? -y : y;
}

EDDY_SCALAR double eddy_sin_f64(double x) {
    double y = eddy_angle_sine_f64(x, 0);
    return x == 0.0 ? x : y;
}

EDDY_SCALAR double eddy_cos_f64(double x) {
    return eddy_angle_sine_f64(x, 1);
}

/* The quotient of sine and cosine, each the sum of two numbers, with one correction by the remainder of the division. */
EDDY_SCALAR double eddy_tan_f64(double x) {
    eddy_angle a = eddy_angle_reduce_f64(x);
    double z = a.rest * a.rest, one = 1.0 - 0.5 * z;
    double s_tail = eddy_angle_sin_tail(a, z), s = a.rest + s_tail, s_low = (a.rest - s) + s_tail;
    double c_tail = eddy_angle_cos_tail(a, z, one), c = one + c_tail, c_low = (one - c) + c_tail;
    bool is_odd = a.quarters & 1;
    double above = is_odd ? -c : s, above_low = is_odd ? -c_low : s_low;
    double d = is_odd ? s : c, d_low = is_odd ? s_low : c_low;
    double q = above / d,
           remainder = eddy_fma_f64(-q, d, above) + eddy_fma_f64(-q, d_low, above_low);
    double y = q + remainder / d;
    return eddy_abs_f64(x) < 0x1p-30 ? x : y;
}

/* ---- atan2 ----
 * q is the smaller of |y| and |x| divided by the larger. The angle is base +- atan q, where base is 0, pi / 2 or pi. */

EDDY_SCALAR float eddy_atan2_f32(float y, float x) {
    double height = eddy_abs_f64((double)y), width = eddy_abs_f64((double)x);
    bool is_steep = height > width, is_left = eddy_copysign_f32(1.0f, x) < 0.0f;
    double larger = is_steep ? height : width, smaller = is_steep ? width : height;
    double q = smaller / larger;
    q = larger == 0.0 ? 0.0 : q;
    q = smaller == EDDY_INF_f64 ? 1.0 : q;
    double z = q * q;
    double p = -0x1.67077bc6c9d97p-11;
    p = eddy_fma_f64(p, z, 0x1.3de94dfdebe3fp-8);
    p = eddy_fma_f64(p, z, -0x1.07f96029d1b7ap-6);
    p = eddy_fma_f64(p, z, 0x1.183ecf999e24p-5);
    p = eddy_fma_f64(p, z, -0x1.bca7978440defp-5);
    p = eddy_fma_f64(p, z, 0x1.28c8e0984176fp-4);
    p = eddy_fma_f64(p, z, -0x1.6fd4a2f3e8e4bp-4);
    p = eddy_fma_f64(p, z, 0x1.c66110fb4653dp-4);
    p = eddy_fma_f64(p, z, -0x1.2489327434a7p-3);
    p = eddy_fma_f64(p, z, 0x1.9999238ecec2dp-3);
    p = eddy_fma_f64(p, z, -0x1.555554269a85ap-2);
    p = eddy_fma_f64(p, z, 0x1.ffffffff7ec6fp-1);
    p *= q;
    p = is_steep ? 0x1.921fb54442d18p0 - p : p;
    p = is_left ? 0x1.921fb54442d18p1 - p : p;
    float angle = eddy_copysign_f32((float)p, y);
    return x != x || y != y ? x + y : angle;
}

EDDY_SCALAR double eddy_atan2_f64(double y, double x) {
    double height = eddy_abs_f64(y), width = eddy_abs_f64(x);
    bool is_steep = height > width, is_left = eddy_copysign_f64(1.0, x) < 0.0;
    double larger = is_steep ? height : width, smaller = is_steep ? width : height;
    double scale = larger > 0x1p1000 ? 0x1p-10 : larger < 0x1p-900 ? 0x1p100 : 1.0;
    bool is_diagonal = smaller == EDDY_INF_f64,
         is_zero = larger == 0.0 || (larger == EDDY_INF_f64 && !is_diagonal);
    larger = is_diagonal || is_zero ? 1.0 : larger * scale;
    smaller = is_diagonal ? 1.0 : is_zero ? 0.0 : smaller * scale;
    double q = smaller / larger, z = q * q;
    double q_low = eddy_fma_f64(-q, larger, smaller) /
                   (larger * (1.0 + z)); /* the rounding error of q, times the derivative of atan */
    double p = 0x1.35885110c34a8p-16;
    p = eddy_fma_f64(p, z, -0x1.ab24da763b6d2p-13);
    p = eddy_fma_f64(p, z, 0x1.17739e1e3cfb4p-10);
    p = eddy_fma_f64(p, z, -0x1.d0062b3fbfd3ep-9);
    p = eddy_fma_f64(p, z, 0x1.14e9dc185f0e6p-7);
    p = eddy_fma_f64(p, z, -0x1.005138166e917p-6);
    p = eddy_fma_f64(p, z, 0x1.860897b20e189p-6);
    p = eddy_fma_f64(p, z, -0x1.00e6eece539dap-5);
    p = eddy_fma_f64(p, z, 0x1.338e31eb1da36p-5);
    p = eddy_fma_f64(p, z, -0x1.5d30140ae0593p-5);
    p = eddy_fma_f64(p, z, 0x1.842dbe9b0c60ap-5);
    p = eddy_fma_f64(p, z, -0x1.aebfe7b4182d5p-5);
    p = eddy_fma_f64(p, z, 0x1.e1d0f9696f603p-5);
    p = eddy_fma_f64(p, z, -0x1.11100ee084226p-4);
    p = eddy_fma_f64(p, z, 0x1.3b139b6a88ba1p-4);
    p = eddy_fma_f64(p, z, -0x1.745d160a7e368p-4);
    p = eddy_fma_f64(p, z, 0x1.c71c71bc3951cp-4);
    p = eddy_fma_f64(p, z, -0x1.2492492478f88p-3);
    p = eddy_fma_f64(p, z, 0x1.99999999996c1p-3);
    p = eddy_fma_f64(p, z, -0x1.5555555555555p-2);
    double low = eddy_fma_f64(q * z, p, q_low);
    bool is_down = is_steep != is_left;
    q = is_down ? -q : q;
    low = is_down ? -low : low;
    double base = is_steep ? 0x1.921fb54442d18p0 : is_left ? 0x1.921fb54442d18p1 : 0.0;
    double base_low = is_steep ? 0x1.1a62633145c07p-54 : is_left ? 0x1.1a62633145c07p-53 : 0.0;
    double sum = base + q, rest = (base - sum) + q;
    double angle = eddy_copysign_f64(sum + (rest + (low + base_low)), y);
    return x != x || y != y ? x + y : angle;
}

#endif
