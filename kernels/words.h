/* The plain words of the scalar vocabulary: arithmetic, comparison, choice. One inline function per word and
 * compute type, eddy_<word>_<type>, branch-free, so that loops over them vectorise. The words that take a
 * polynomial are in kernels/math.h and the headers beside it; functional/README.md lists all of them.
 *
 * Compute types: f32 (also for f16 and bf16), f64, i8, u8, i16, i32, i64, truth (bool). Float words round once,
 * integer words wrap around. No word depends on the width of vectors, and none but `fma` fuses. */
#ifndef EDDY_KERNELS_WORDS_H
#define EDDY_KERNELS_WORDS_H

#include <stdbool.h>
#include <stdint.h>

typedef float eddy_compute_f32;
typedef double eddy_compute_f64;
typedef int8_t eddy_compute_i8;
typedef uint8_t eddy_compute_u8;
typedef int16_t eddy_compute_i16;
typedef int32_t eddy_compute_i32;
typedef int64_t eddy_compute_i64;
typedef bool eddy_compute_truth;

#define EDDY_WORD static inline __attribute__((always_inline, unused))

#define EDDY_WORDS_COMPARE(tag, type)                                                              \
    EDDY_WORD bool eddy_eq_##tag(type a, type b) {                                                 \
        return a == b;                                                                             \
    }                                                                                              \
    EDDY_WORD bool eddy_ne_##tag(type a, type b) {                                                 \
        return a != b;                                                                             \
    }                                                                                              \
    EDDY_WORD bool eddy_lt_##tag(type a, type b) {                                                 \
        return a < b;                                                                              \
    }                                                                                              \
    EDDY_WORD bool eddy_le_##tag(type a, type b) {                                                 \
        return a <= b;                                                                             \
    }                                                                                              \
    EDDY_WORD bool eddy_gt_##tag(type a, type b) {                                                 \
        return a > b;                                                                              \
    }                                                                                              \
    EDDY_WORD bool eddy_ge_##tag(type a, type b) {                                                 \
        return a >= b;                                                                             \
    }                                                                                              \
    EDDY_WORD type eddy_select_##tag(bool condition, type a, type b) {                             \
        return condition ? a : b;                                                                  \
    }

/* Where the quotient has two bits less than a number, floordiv and remainder are quick: a / b is rounded down right, or, where it was
 * rounded up to a whole number, one too high, which shows in the sign of the remainder. a - whole b is rounded once at most, and not at
 * all where it is b that comes back. Anything else (large quotients, infinities, NaN, b = 0) takes libm's fmod. */
#define EDDY_WORDS_WHOLE_f32 0x1p22f
#define EDDY_WORDS_WHOLE_f64 0x1p51

/* min and max: a NaN wins, of two NaNs the first; of -0 and 0 the second operand.
 *
 * round: half to even. floordiv and remainder are Python's: the remainder (fmod's, exact) takes the sign of b, and
 * floordiv is (a - remainder) / b, which is whole, with what rounding has put it off taken back; by 0: a / b, and NaN. */
#define EDDY_WORDS_FLOAT(tag, type, suffix)                                                        \
    EDDY_WORD type eddy_add_##tag(type a, type b) {                                                \
        return a + b;                                                                              \
    }                                                                                              \
    EDDY_WORD type eddy_sub_##tag(type a, type b) {                                                \
        return a - b;                                                                              \
    }                                                                                              \
    EDDY_WORD type eddy_mul_##tag(type a, type b) {                                                \
        return a * b;                                                                              \
    }                                                                                              \
    EDDY_WORD type eddy_div_##tag(type a, type b) {                                                \
        return a / b;                                                                              \
    }                                                                                              \
    EDDY_WORD type eddy_neg_##tag(type a) {                                                        \
        return -a;                                                                                 \
    }                                                                                              \
    EDDY_WORD type eddy_abs_##tag(type a) {                                                        \
        return __builtin_fabs##suffix(a);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_sqrt_##tag(type a) {                                                       \
        return __builtin_sqrt##suffix(a);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_fma_##tag(type a, type b, type c) {                                        \
        return __builtin_fma##suffix(a, b, c);                                                     \
    }                                                                                              \
    EDDY_WORD type eddy_min_##tag(type a, type b) {                                                \
        type less = a < b ? a : b;                                                                 \
        return a != a ? a : less;                                                                  \
    }                                                                                              \
    EDDY_WORD type eddy_max_##tag(type a, type b) {                                                \
        type more = a > b ? a : b;                                                                 \
        return a != a ? a : more;                                                                  \
    }                                                                                              \
    EDDY_WORD type eddy_floor_##tag(type a) {                                                      \
        return __builtin_floor##suffix(a);                                                         \
    }                                                                                              \
    EDDY_WORD type eddy_ceil_##tag(type a) {                                                       \
        return __builtin_ceil##suffix(a);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_round_##tag(type a) {                                                      \
        return __builtin_rint##suffix(a);                                                          \
    }                                                                                              \
    EDDY_WORD bool eddy_isfinite_##tag(type a) {                                                   \
        return __builtin_fabs##suffix(a) < __builtin_inf##suffix();                                \
    }                                                                                              \
    EDDY_WORD bool eddy_isinf_##tag(type a) {                                                      \
        return __builtin_fabs##suffix(a) == __builtin_inf##suffix();                               \
    }                                                                                              \
    EDDY_WORD bool eddy_floordiv_is_quick_##tag(type a, type b) {                                  \
        type size = __builtin_fabs##suffix(b);                                                     \
        return (__builtin_fabs##suffix(a) < size * EDDY_WORDS_WHOLE_##tag) &                       \
               (size < __builtin_inf##suffix());                                                   \
    }                                                                                              \
    EDDY_WORD bool eddy_remainder_is_quick_##tag(type a, type b) {                                 \
        return eddy_floordiv_is_quick_##tag(a, b);                                                 \
    }                                                                                              \
    EDDY_WORD type eddy_floordiv_quick_##tag(type a, type b) {                                     \
        type whole = __builtin_floor##suffix(a / b), rest = __builtin_fma##suffix(-whole, b, a);   \
        return ((rest != 0) & ((rest < 0) != (b < 0))) ? whole - 1 : whole;                        \
    }                                                                                              \
    EDDY_WORD type eddy_remainder_quick_##tag(type a, type b) {                                    \
        type whole = __builtin_floor##suffix(a / b), rest = __builtin_fma##suffix(-whole, b, a);   \
        rest = ((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest;                          \
        return rest == 0 ? __builtin_copysign##suffix(rest, a) : rest;                             \
    }                                                                                              \
    EDDY_WORD type eddy_remainder_full_##tag(type a, type b) {                                     \
        type rest = __builtin_fmod##suffix(a, b);                                                  \
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;                               \
    }                                                                                              \
    EDDY_WORD type eddy_remainder_##tag(type a, type b) {                                          \
        return eddy_remainder_is_quick_##tag(a, b) ? eddy_remainder_quick_##tag(a, b)              \
                                                   : eddy_remainder_full_##tag(a, b);              \
    }                                                                                              \
    EDDY_WORD type eddy_floordiv_full_##tag(type a, type b) {                                      \
        type rest = __builtin_fmod##suffix(a, b),                                                  \
             down = rest != 0 && (b < 0) != (rest < 0) ? 1 : 0;                                    \
        type whole = __builtin_rint##suffix((a - rest) / b);                                       \
        type off = __builtin_rint##suffix((__builtin_fma##suffix(-whole, b, a) - rest) / b);       \
        whole = __builtin_fabs##suffix(off) < __builtin_inf##suffix() ? whole + off : whole;       \
        whole = whole - down == 0 ? __builtin_copysign##suffix(0, a / b) : whole - down;           \
        return b == 0 ? a / b : whole;                                                             \
    }                                                                                              \
    EDDY_WORD type eddy_floordiv_##tag(type a, type b) {                                           \
        return eddy_floordiv_is_quick_##tag(a, b) ? eddy_floordiv_quick_##tag(a, b)                \
                                                  : eddy_floordiv_full_##tag(a, b);                \
    }                                                                                              \
    EDDY_WORDS_COMPARE(tag, type)

/* Words of every integer type. power is pow where the exponent is not negative. */
#define EDDY_WORDS_WHOLE(tag, type, wide)                                                          \
    EDDY_WORD type eddy_floor_##tag(type a) {                                                      \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_WORD type eddy_ceil_##tag(type a) {                                                       \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_WORD type eddy_round_##tag(type a) {                                                      \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_WORD bool eddy_isfinite_##tag(type a) {                                                   \
        (void)a;                                                                                   \
        return true;                                                                               \
    }                                                                                              \
    EDDY_WORD bool eddy_isinf_##tag(type a) {                                                      \
        (void)a;                                                                                   \
        return false;                                                                              \
    }                                                                                              \
    EDDY_WORD type eddy_bitwise_and_##tag(type a, type b) {                                        \
        return (type)(a & b);                                                                      \
    }                                                                                              \
    EDDY_WORD type eddy_bitwise_or_##tag(type a, type b) {                                         \
        return (type)(a | b);                                                                      \
    }                                                                                              \
    EDDY_WORD type eddy_bitwise_xor_##tag(type a, type b) {                                        \
        return (type)(a ^ b);                                                                      \
    }                                                                                              \
    EDDY_WORD type eddy_bitwise_not_##tag(type a) {                                                \
        return (type)~a;                                                                           \
    }                                                                                              \
    EDDY_WORD type eddy_power_##tag(type a, type b) {                                              \
        wide base = (wide)a, result = 1;                                                           \
        for (type rest = b; rest > 0; rest = (type)(rest >> 1)) {                                  \
            result = rest & 1 ? result * base : result;                                            \
            base *= base;                                                                          \
        }                                                                                          \
        return (type)result;                                                                       \
    }

/* Unsigned arithmetic at least 32 bits wide, then cut off: wraps around without undefined behaviour. floordiv rounds down,
 * remainder has the sign of b; by 0 both give 0, as numpy has it; pow with a negative exponent gives 1 / a^-b cut off,
 * and 0 for a = 0. The processor traps on a / 0 and on the smallest number
 * / -1, so neither is ever divided. */
#define EDDY_WORDS_INTEGER(tag, type, wide)                                                        \
    EDDY_WORD type eddy_add_##tag(type a, type b) {                                                \
        return (type)((wide)a + (wide)b);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_sub_##tag(type a, type b) {                                                \
        return (type)((wide)a - (wide)b);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_mul_##tag(type a, type b) {                                                \
        return (type)((wide)a * (wide)b);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_neg_##tag(type a) {                                                        \
        return (type)((wide)0 - (wide)a);                                                          \
    }                                                                                              \
    EDDY_WORD type eddy_abs_##tag(type a) {                                                        \
        return a < 0 ? (type)((wide)0 - (wide)a) : a;                                              \
    }                                                                                              \
    EDDY_WORD type eddy_min_##tag(type a, type b) {                                                \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    EDDY_WORD type eddy_max_##tag(type a, type b) {                                                \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    EDDY_WORD type eddy_floordiv_##tag(type a, type b) {                                           \
        type divisor = b == 0 || b == (type)-1 ? 1 : b;                                            \
        type quotient = (type)(a / divisor),                                                       \
             down = (type)(a % divisor != 0 && (a < 0) != (divisor < 0));                          \
        type negative = (type)((wide)0 - (wide)a);                                                 \
        return b == 0 ? 0 : b == (type)-1 ? negative : (type)(quotient - down);                    \
    }                                                                                              \
    EDDY_WORD type eddy_remainder_##tag(type a, type b) {                                          \
        type divisor = b == 0 || b == (type)-1 ? 1 : b, rest = (type)(a % divisor);                \
        return rest != 0 && (rest < 0) != (divisor < 0) ? (type)(rest + divisor) : rest;           \
    }                                                                                              \
    EDDY_WORDS_WHOLE(tag, type, wide)                                                              \
    EDDY_WORD type eddy_pow_##tag(type a, type b) {                                                \
        type inverse = a == 1 ? 1 : a == (type)-1 ? (b & 1 ? a : 1) : 0;                           \
        return b < 0 ? inverse : eddy_power_##tag(a, b);                                           \
    }                                                                                              \
    EDDY_WORDS_COMPARE(tag, type)

EDDY_WORDS_FLOAT(f32, float, f)
EDDY_WORDS_FLOAT(f64, double, )
EDDY_WORDS_INTEGER(i8, int8_t, uint32_t)
EDDY_WORDS_INTEGER(i16, int16_t, uint32_t)
EDDY_WORDS_INTEGER(i32, int32_t, uint32_t)
EDDY_WORDS_INTEGER(i64, int64_t, uint64_t)

/* u8 apart: a negative value cannot be asked for. */
EDDY_WORD uint8_t eddy_add_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a + b);
}
EDDY_WORD uint8_t eddy_sub_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a - b);
}
EDDY_WORD uint8_t eddy_mul_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a * b);
}
EDDY_WORD uint8_t eddy_neg_u8(uint8_t a) {
    return (uint8_t)-a;
}
EDDY_WORD uint8_t eddy_abs_u8(uint8_t a) {
    return a;
}
EDDY_WORD uint8_t eddy_min_u8(uint8_t a, uint8_t b) {
    return a < b ? a : b;
}
EDDY_WORD uint8_t eddy_max_u8(uint8_t a, uint8_t b) {
    return a > b ? a : b;
}
EDDY_WORD uint8_t eddy_floordiv_u8(uint8_t a, uint8_t b) {
    return b == 0 ? 0 : (uint8_t)(a / (b == 0 ? 1 : b));
}
EDDY_WORD uint8_t eddy_remainder_u8(uint8_t a, uint8_t b) {
    return b == 0 ? 0 : (uint8_t)(a % (b == 0 ? 1 : b));
}
EDDY_WORDS_WHOLE(u8, uint8_t, uint32_t)
EDDY_WORD uint8_t eddy_pow_u8(uint8_t a, uint8_t b) {
    return eddy_power_u8(a, b);
}
EDDY_WORDS_COMPARE(u8, uint8_t)

EDDY_WORD bool eddy_logical_or_truth(bool a, bool b) {
    return a | b;
}
EDDY_WORD bool eddy_logical_and_truth(bool a, bool b) {
    return a & b;
}
EDDY_WORD bool eddy_logical_not_truth(bool a) {
    return !a;
}
EDDY_WORD bool eddy_bitwise_and_truth(bool a, bool b) {
    return a & b;
}
EDDY_WORD bool eddy_bitwise_or_truth(bool a, bool b) {
    return a | b;
}
EDDY_WORD bool eddy_bitwise_xor_truth(bool a, bool b) {
    return a != b;
}
EDDY_WORD bool eddy_bitwise_not_truth(bool a) {
    return !a;
}
EDDY_WORD bool eddy_isfinite_truth(bool a) {
    (void)a;
    return true;
}
EDDY_WORD bool eddy_isinf_truth(bool a) {
    (void)a;
    return false;
}
EDDY_WORDS_COMPARE(truth, bool)

#undef EDDY_WORDS_FLOAT
#undef EDDY_WORDS_INTEGER
#undef EDDY_WORDS_WHOLE
#undef EDDY_WORDS_COMPARE

#endif
