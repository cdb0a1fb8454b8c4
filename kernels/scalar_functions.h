/* The simple scalar functions of expressions: arithmetic, comparison, selection. There is one inline C function for each
 * function and compute type, eddy_<function>_<type>. They are branch-free, so that loops over them vectorise. Functions
 * that take a polynomial are in kernels/math.h and the headers beside it; functional/README.md lists all of them.
 *
 * Compute types: f32 (also for f16 and bf16), f64, i8, u8, i16, i32, i64, truth (bool). Functions of floats round once;
 * functions of integers wrap around. None depends on the width of vectors, and only `fma` fuses operations. */
#ifndef EDDY_KERNELS_SCALAR_FUNCTIONS_H
#define EDDY_KERNELS_SCALAR_FUNCTIONS_H

#include <base/builtin.h>

typedef float eddy_compute_f32;
typedef double eddy_compute_f64;
typedef int8_t eddy_compute_i8;
typedef uint8_t eddy_compute_u8;
typedef int16_t eddy_compute_i16;
typedef int32_t eddy_compute_i32;
typedef int64_t eddy_compute_i64;
typedef bool eddy_compute_truth;

#define EDDY_SCALARS_COMPARE(tag, type)                                                            \
    EDDY_SCALAR bool eddy_eq_##tag(type a, type b) {                                               \
        return a == b;                                                                             \
    }                                                                                              \
    EDDY_SCALAR bool eddy_ne_##tag(type a, type b) {                                               \
        return a != b;                                                                             \
    }                                                                                              \
    EDDY_SCALAR bool eddy_lt_##tag(type a, type b) {                                               \
        return a < b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR bool eddy_le_##tag(type a, type b) {                                               \
        return a <= b;                                                                             \
    }                                                                                              \
    EDDY_SCALAR bool eddy_gt_##tag(type a, type b) {                                               \
        return a > b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR bool eddy_ge_##tag(type a, type b) {                                               \
        return a >= b;                                                                             \
    }                                                                                              \
    EDDY_SCALAR type eddy_select_##tag(bool condition, type a, type b) {                           \
        return condition ? a : b;                                                                  \
    }

/* If the quotient has two bits less than the significand, floordiv and remainder are quick. a / b rounded down is then
 * correct, except that a quotient that was rounded up to an integer is one too high, which the sign of the remainder
 * shows. a - whole b is rounded at most once, and not at all if the result is b. All other cases (large quotients,
 * infinities, NaN, b = 0) use libm's fmod. */
#define EDDY_SCALARS_WHOLE_f32 0x1p22f
#define EDDY_SCALARS_WHOLE_f64 0x1p51

/* min and max: NaN wins, of two NaNs the first; of -0 and 0 the second operand.
 *
 * floordiv and remainder follow Python: the remainder (fmod's, exact) has the sign of b. floordiv is (a - remainder) / b,
 * which is an integer; its rounding error is corrected. For b = 0 they give a / b, and NaN. */
#define EDDY_SCALARS_FLOAT(tag, type)                                                              \
    EDDY_SCALAR type eddy_add_##tag(type a, type b) {                                              \
        return a + b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_sub_##tag(type a, type b) {                                              \
        return a - b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_mul_##tag(type a, type b) {                                              \
        return a * b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_div_##tag(type a, type b) {                                              \
        return a / b;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_neg_##tag(type a) {                                                      \
        return -a;                                                                                 \
    }                                                                                              \
    EDDY_SCALAR type eddy_min_##tag(type a, type b) {                                              \
        type less = a < b ? a : b;                                                                 \
        return a != a ? a : less;                                                                  \
    }                                                                                              \
    EDDY_SCALAR type eddy_max_##tag(type a, type b) {                                              \
        type more = a > b ? a : b;                                                                 \
        return a != a ? a : more;                                                                  \
    }                                                                                              \
    EDDY_SCALAR bool eddy_isfinite_##tag(type a) {                                                 \
        return eddy_abs_##tag(a) < EDDY_INF_##tag;                                                 \
    }                                                                                              \
    EDDY_SCALAR bool eddy_isinf_##tag(type a) {                                                    \
        return eddy_abs_##tag(a) == EDDY_INF_##tag;                                                \
    }                                                                                              \
    EDDY_SCALAR bool eddy_floordiv_is_quick_##tag(type a, type b) {                                \
        type size = eddy_abs_##tag(b);                                                             \
        return (eddy_abs_##tag(a) < size * EDDY_SCALARS_WHOLE_##tag) & (size < EDDY_INF_##tag);    \
    }                                                                                              \
    EDDY_SCALAR bool eddy_remainder_is_quick_##tag(type a, type b) {                               \
        return eddy_floordiv_is_quick_##tag(a, b);                                                 \
    }                                                                                              \
    EDDY_SCALAR type eddy_floordiv_quick_##tag(type a, type b) {                                   \
        type whole = eddy_floor_##tag(a / b), rest = eddy_fma_##tag(-whole, b, a);                 \
        return ((rest != 0) & ((rest < 0) != (b < 0))) ? whole - 1 : whole;                        \
    }                                                                                              \
    EDDY_SCALAR type eddy_remainder_quick_##tag(type a, type b) {                                  \
        type whole = eddy_floor_##tag(a / b), rest = eddy_fma_##tag(-whole, b, a);                 \
        rest = ((rest != 0) & ((rest < 0) != (b < 0))) ? rest + b : rest;                          \
        return rest == 0 ? eddy_copysign_##tag(rest, a) : rest;                                    \
    }                                                                                              \
    EDDY_SCALAR type eddy_remainder_full_##tag(type a, type b) {                                   \
        type rest = eddy_fmod_##tag(a, b);                                                         \
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;                               \
    }                                                                                              \
    EDDY_SCALAR type eddy_remainder_##tag(type a, type b) {                                        \
        return eddy_remainder_is_quick_##tag(a, b) ? eddy_remainder_quick_##tag(a, b)              \
                                                   : eddy_remainder_full_##tag(a, b);              \
    }                                                                                              \
    EDDY_SCALAR type eddy_floordiv_full_##tag(type a, type b) {                                    \
        type rest = eddy_fmod_##tag(a, b), down = rest != 0 && (b < 0) != (rest < 0) ? 1 : 0;      \
        type whole = eddy_round_##tag((a - rest) / b);                                             \
        type off = eddy_round_##tag((eddy_fma_##tag(-whole, b, a) - rest) / b);                    \
        whole = eddy_abs_##tag(off) < EDDY_INF_##tag ? whole + off : whole;                        \
        whole = whole - down == 0 ? eddy_copysign_##tag(0, a / b) : whole - down;                  \
        return b == 0 ? a / b : whole;                                                             \
    }                                                                                              \
    EDDY_SCALAR type eddy_floordiv_##tag(type a, type b) {                                         \
        return eddy_floordiv_is_quick_##tag(a, b) ? eddy_floordiv_quick_##tag(a, b)                \
                                                  : eddy_floordiv_full_##tag(a, b);                \
    }                                                                                              \
    EDDY_SCALARS_COMPARE(tag, type)

/* Functions of every integer type. power is pow for exponents that are not negative. */
#define EDDY_SCALARS_WHOLE(tag, type, wide)                                                        \
    EDDY_SCALAR type eddy_floor_##tag(type a) {                                                    \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_SCALAR type eddy_ceil_##tag(type a) {                                                     \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_SCALAR type eddy_round_##tag(type a) {                                                    \
        return a;                                                                                  \
    }                                                                                              \
    EDDY_SCALAR bool eddy_isfinite_##tag(type a) {                                                 \
        (void)a;                                                                                   \
        return true;                                                                               \
    }                                                                                              \
    EDDY_SCALAR bool eddy_isinf_##tag(type a) {                                                    \
        (void)a;                                                                                   \
        return false;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_bitwise_and_##tag(type a, type b) {                                      \
        return (type)(a & b);                                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_bitwise_or_##tag(type a, type b) {                                       \
        return (type)(a | b);                                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_bitwise_xor_##tag(type a, type b) {                                      \
        return (type)(a ^ b);                                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_bitwise_not_##tag(type a) {                                              \
        return (type)~a;                                                                           \
    }                                                                                              \
    EDDY_SCALAR type eddy_power_##tag(type a, type b) {                                            \
        wide base = (wide)a, result = 1;                                                           \
        for (type rest = b; rest > 0; rest = (type)(rest >> 1)) {                                  \
            result = rest & 1 ? result * base : result;                                            \
            base *= base;                                                                          \
        }                                                                                          \
        return (type)result;                                                                       \
    }

/* Unsigned arithmetic of at least 32 bits, then truncated: wraps around without undefined behaviour. floordiv rounds down;
 * remainder has the sign of b; for b = 0 both give 0, as in numpy. pow with a negative exponent gives 1 / a^-b, truncated,
 * and 0 for a = 0. The processor traps on a / 0 and on the smallest number / -1, so these divisions are never made. */
#define EDDY_SCALARS_INTEGER(tag, type, wide)                                                      \
    EDDY_SCALAR type eddy_add_##tag(type a, type b) {                                              \
        return (type)((wide)a + (wide)b);                                                          \
    }                                                                                              \
    EDDY_SCALAR type eddy_sub_##tag(type a, type b) {                                              \
        return (type)((wide)a - (wide)b);                                                          \
    }                                                                                              \
    EDDY_SCALAR type eddy_mul_##tag(type a, type b) {                                              \
        return (type)((wide)a * (wide)b);                                                          \
    }                                                                                              \
    EDDY_SCALAR type eddy_neg_##tag(type a) {                                                      \
        return (type)((wide)0 - (wide)a);                                                          \
    }                                                                                              \
    EDDY_SCALAR type eddy_abs_##tag(type a) {                                                      \
        return a < 0 ? (type)((wide)0 - (wide)a) : a;                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_min_##tag(type a, type b) {                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_max_##tag(type a, type b) {                                              \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_floordiv_##tag(type a, type b) {                                         \
        type divisor = b == 0 || b == (type)-1 ? 1 : b;                                            \
        type quotient = (type)(a / divisor),                                                       \
             down = (type)(a % divisor != 0 && (a < 0) != (divisor < 0));                          \
        type negative = (type)((wide)0 - (wide)a);                                                 \
        return b == 0 ? 0 : b == (type)-1 ? negative : (type)(quotient - down);                    \
    }                                                                                              \
    EDDY_SCALAR type eddy_remainder_##tag(type a, type b) {                                        \
        type divisor = b == 0 || b == (type)-1 ? 1 : b, rest = (type)(a % divisor);                \
        return rest != 0 && (rest < 0) != (divisor < 0) ? (type)(rest + divisor) : rest;           \
    }                                                                                              \
    EDDY_SCALARS_WHOLE(tag, type, wide)                                                            \
    EDDY_SCALAR type eddy_pow_##tag(type a, type b) {                                              \
        type inverse = a == 1 ? 1 : a == (type)-1 ? (b & 1 ? a : 1) : 0;                           \
        return b < 0 ? inverse : eddy_power_##tag(a, b);                                           \
    }                                                                                              \
    EDDY_SCALARS_COMPARE(tag, type)

EDDY_SCALARS_FLOAT(f32, float)
EDDY_SCALARS_FLOAT(f64, double)
EDDY_SCALARS_INTEGER(i8, int8_t, uint32_t)
EDDY_SCALARS_INTEGER(i16, int16_t, uint32_t)
EDDY_SCALARS_INTEGER(i32, int32_t, uint32_t)
EDDY_SCALARS_INTEGER(i64, int64_t, uint64_t)

/* u8 has functions of its own, since its operands are never negative. */
EDDY_SCALAR uint8_t eddy_add_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a + b);
}
EDDY_SCALAR uint8_t eddy_sub_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a - b);
}
EDDY_SCALAR uint8_t eddy_mul_u8(uint8_t a, uint8_t b) {
    return (uint8_t)(a * b);
}
EDDY_SCALAR uint8_t eddy_neg_u8(uint8_t a) {
    return (uint8_t)-a;
}
EDDY_SCALAR uint8_t eddy_abs_u8(uint8_t a) {
    return a;
}
EDDY_SCALAR uint8_t eddy_min_u8(uint8_t a, uint8_t b) {
    return a < b ? a : b;
}
EDDY_SCALAR uint8_t eddy_max_u8(uint8_t a, uint8_t b) {
    return a > b ? a : b;
}
EDDY_SCALAR uint8_t eddy_floordiv_u8(uint8_t a, uint8_t b) {
    return b == 0 ? 0 : (uint8_t)(a / (b == 0 ? 1 : b));
}
EDDY_SCALAR uint8_t eddy_remainder_u8(uint8_t a, uint8_t b) {
    return b == 0 ? 0 : (uint8_t)(a % (b == 0 ? 1 : b));
}
EDDY_SCALARS_WHOLE(u8, uint8_t, uint32_t)
EDDY_SCALAR uint8_t eddy_pow_u8(uint8_t a, uint8_t b) {
    return eddy_power_u8(a, b);
}
EDDY_SCALARS_COMPARE(u8, uint8_t)

EDDY_SCALAR bool eddy_logical_or_truth(bool a, bool b) {
    return a | b;
}
EDDY_SCALAR bool eddy_logical_and_truth(bool a, bool b) {
    return a & b;
}
EDDY_SCALAR bool eddy_logical_not_truth(bool a) {
    return !a;
}
EDDY_SCALAR bool eddy_bitwise_and_truth(bool a, bool b) {
    return a & b;
}
EDDY_SCALAR bool eddy_bitwise_or_truth(bool a, bool b) {
    return a | b;
}
EDDY_SCALAR bool eddy_bitwise_xor_truth(bool a, bool b) {
    return a != b;
}
EDDY_SCALAR bool eddy_bitwise_not_truth(bool a) {
    return !a;
}
EDDY_SCALAR bool eddy_isfinite_truth(bool a) {
    (void)a;
    return true;
}
EDDY_SCALAR bool eddy_isinf_truth(bool a) {
    (void)a;
    return false;
}
EDDY_SCALARS_COMPARE(truth, bool)

#undef EDDY_SCALARS_FLOAT
#undef EDDY_SCALARS_INTEGER
#undef EDDY_SCALARS_WHOLE
#undef EDDY_SCALARS_COMPARE

#endif
