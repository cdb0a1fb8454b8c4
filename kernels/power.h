/* The function pow. The code follows the rules in kernels/math.h. The special values are those of C (Annex F): pow(x, 0)
 * and pow(1, y) are 1 even for NaN.
 *
 * f32 is computed in f64: 2^(b log2 a), accurate to 2^-34. f64 computes log a as the sum of two numbers, accurate to
 * 2^-66, with Dekker's products and sums ("A floating-point technique for extending the available precision", Numerische
 * Mathematik 18, 1971). Polynomials: Sollya's fpminimax (log2 of the relative error: 2^r -34, log2 -52, the tail of log
 * -53). */
#ifndef EDDY_KERNELS_POWER_H
#define EDDY_KERNELS_POWER_H

#include <kernels/math.h>

/* The result for the sign of a and the kind of b, where `size` is |a|^b. Properties of b alone are expressed as numbers
 * that a is compared or combined with. Otherwise, if b is the same for all elements, compilers would turn them into
 * branches, and the loop would not vectorise. */
#define EDDY_POWER_ENDS(tag, type, bits)                                                           \
    EDDY_SCALAR type eddy_power_ends_##tag(type a, type b, type size) {                            \
        type half = (type)0.5 * b, inf = EDDY_INF_##tag;                                           \
        bool is_whole = eddy_floor_##tag(b) == b,                                                  \
             is_odd = is_whole & (eddy_floor_##tag(half) != half);                                 \
        bits sign = is_odd ? (bits)1 << (8 * sizeof(bits) - 1) : 0;                                \
        type nan_below = is_whole ? -inf : 0, other_one = eddy_abs_##tag(b) == inf ? -1 : 1;       \
        type y = eddy_##tag##_of_bits(eddy_bits_of_##tag(size) | (eddy_bits_of_##tag(a) & sign));  \
        y = ((a < nan_below) & (a > -inf)) ? EDDY_NAN_##tag : y;                                   \
        y = ((a != a) | (b != b)) ? a + b : y;                                                     \
        y = ((a == 1) | (a == other_one)) ? 1 : y;                                                 \
        return b == 0 ? 1 : y;                                                                     \
    }
EDDY_POWER_ENDS(f32, float, uint32_t)
EDDY_POWER_ENDS(f64, double, uint64_t)
#undef EDDY_POWER_ENDS

/* a = m 2^n, m from sqrt(1/2) to sqrt(2): log2 m is an odd function of s = (m - 1) / (m + 1). Every f32 is a normal number
 * in f64. */
EDDY_SCALAR float eddy_pow_f32(float a, float b) {
    double wide = eddy_abs_f64((double)a);
    uint64_t bits = eddy_bits_of_f64(wide),
             biased = (bits - 0x3fe6a09e667f3bcdu + (UINT64_C(2048) << 52)) >> 52;
    double m = eddy_f64_of_bits(bits - (biased << 52) + (UINT64_C(2048) << 52));
    double n = eddy_f64_of_bits(biased | 0x4330000000000000u) - (0x1p52 + 2048.0);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0x1.f18411c96843ep-3;
    p = eddy_fma_f64(p, z, 0x1.0bb7f57e262b5p-2);
    p = eddy_fma_f64(p, z, 0x1.484fa85934e46p-2);
    p = eddy_fma_f64(p, z, 0x1.a61756900ce1ep-2);
    p = eddy_fma_f64(p, z, 0x1.2776c516853ecp-1);
    p = eddy_fma_f64(p, z, 0x1.ec709dc39cc87p-1);
    p = eddy_fma_f64(p, z, 0x1.71547652b82ffp1);
    double log2 = eddy_fma_f64(s, p, n);
    log2 = wide == 0.0 ? -EDDY_INF_f64 : log2;
    log2 = wide == EDDY_INF_f64 ? wide : log2;
    double y = (double)b * log2;
    y = y < -200.0 ? -200.0 : y;
    y = y > 200.0 ? 200.0 : y;
    double t = y + EDDY_MATH_ROUND_F64, r = y - (t - EDDY_MATH_ROUND_F64);
    double e = 0x1.fe1756777bf3dp-17;
    e = eddy_fma_f64(e, r, 0x1.446a43d65822ap-13);
    e = eddy_fma_f64(e, r, 0x1.5d8a710906d3dp-10);
    e = eddy_fma_f64(e, r, 0x1.3b29dc14552d5p-7);
    e = eddy_fma_f64(e, r, 0x1.c6b08aae55fcfp-5);
    e = eddy_fma_f64(e, r, 0x1.ebfbe0a4f30eep-3);
    e = eddy_fma_f64(e, r, 0x1.62e42ff116c06p-1);
    e = eddy_fma_f64(e, r, 0x1.ffffffffab9acp-1);
    return eddy_power_ends_f32(a, b, (float)(e * eddy_math_power_f64(t)));
}

/* A number as the sum of two numbers; the second one is small. */
typedef struct eddy_power_pair {
    double high, low;
} eddy_power_pair;

EDDY_SCALAR eddy_power_pair eddy_power_pair_of(double high, double low) {
    eddy_power_pair pair;
    pair.high = high;
    pair.low = low;
    return pair;
}

EDDY_SCALAR eddy_power_pair eddy_power_product(eddy_power_pair a, eddy_power_pair b) {
    double high = a.high * b.high, low = eddy_fma_f64(a.high, b.high, -high);
    return eddy_power_pair_of(high, low + (a.high * b.low + a.low * b.high));
}

/* |a.high| is not below |b.high|. */
EDDY_SCALAR eddy_power_pair eddy_power_sum(eddy_power_pair a, eddy_power_pair b) {
    double high = a.high + b.high, low = ((a.high - high) + b.high) + (a.low + b.low),
           sum = high + low;
    return eddy_power_pair_of(sum, (high - sum) + low);
}

/* log(1 + f) = 2s + s z (2/3 + z (2/5 + z R(z))), s = f / (2 + f), z = s^2, f from sqrt(1/2) - 1 to sqrt(2) - 1. */
EDDY_SCALAR eddy_power_pair eddy_power_log(double f) {
    double d = 2.0 + f, d_low = (2.0 - d) + f, inverse = 1.0 / d;
    double q = f * inverse, error = eddy_fma_f64(-q, d_low, eddy_fma_f64(-q, d, f));
    double s_high = q + error * inverse;
    double s_low = eddy_fma_f64(-s_high, d_low, eddy_fma_f64(-s_high, d, f)) * inverse;
    eddy_power_pair s = {s_high, s_low}, z = eddy_power_product(s, s);
    double p = 0x1.b646fbe13fb4bp-4;
    p = eddy_fma_f64(p, z.high, 0x1.ac987706aaf7cp-4);
    p = eddy_fma_f64(p, z.high, 0x1.e1f432a3ccc16p-4);
    p = eddy_fma_f64(p, z.high, 0x1.1110ebea64ab8p-3);
    p = eddy_fma_f64(p, z.high, 0x1.3b13b1907d4f6p-3);
    p = eddy_fma_f64(p, z.high, 0x1.745d1745694a6p-3);
    p = eddy_fma_f64(p, z.high, 0x1.c71c71c71caaep-3);
    p = eddy_fma_f64(p, z.high, 0x1.2492492492492p-2);
    eddy_power_pair y =
        eddy_power_sum(eddy_power_pair_of(0x1.999999999999ap-2, -0x1.999999999999ap-56),
                       eddy_power_pair_of(p * z.high, 0.0));
    y = eddy_power_sum(eddy_power_pair_of(0x1.5555555555555p-1, 0x1.5555555555555p-55),
                       eddy_power_product(z, y));
    y = eddy_power_product(s, eddy_power_product(z, y));
    return eddy_power_sum(eddy_power_pair_of(2.0 * s.high, 2.0 * s.low), y);
}

EDDY_SCALAR double eddy_pow_f64(double a, double b) {
    double size = eddy_abs_f64(a), f, t;
    uint64_t biased;
    double n = eddy_math_split_f64(size, &f, &biased);
    eddy_power_pair log = eddy_power_log(f);
    eddy_power_pair ln2 = {n * 0x1.62e42fefa38p-1, n * 0x1.ef35793c7673p-45};
    /* If n is 0, the operands of the sum have the opposite order of size; the sum is then exact. */
    log = eddy_power_sum(ln2, log);
    double high = b * log.high, low = eddy_fma_f64(b, log.high, -high) + b * log.low;
    high = size == 0.0 ? -b * EDDY_INF_f64 : size == EDDY_INF_f64 ? b * size : high;
    bool is_far = !(eddy_abs_f64(high) < 800.0);
    high = is_far ? (high < 0.0 ? -800.0 : 800.0) : high;
    low = is_far ? 0.0 : low;
    double r = eddy_math_reduce_f64(high, &t);
    double sum = 1.0 + r, rest = (1.0 - sum) + r;
    double tail = eddy_fma_f64(r * r, eddy_math_exp_tail_f64(r), rest);
    double y = sum + eddy_fma_f64(sum + tail, low, tail);
    return eddy_power_ends_f64(a, b, eddy_math_scale_f64(y, t));
}

#endif
