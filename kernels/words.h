/* The plain words of the scalar vocabulary: arithmetic, comparison, choice. One inline function per word and
 * compute type, eddy_<word>_<type>, branch-free, so that loops over them vectorise. The words that take a
 * polynomial are in kernels/math.h; functional/README.md lists all of them.
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

#define EDDY_WORDS_COMPARE(tag, type)                                                                                  \
    EDDY_WORD bool eddy_eq_##tag(type a, type b) {                                                                     \
        return a == b;                                                                                                 \
    }                                                                                                                  \
    EDDY_WORD bool eddy_ne_##tag(type a, type b) {                                                                     \
        return a != b;                                                                                                 \
    }                                                                                                                  \
    EDDY_WORD bool eddy_lt_##tag(type a, type b) {                                                                     \
        return a < b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD bool eddy_le_##tag(type a, type b) {                                                                     \
        return a <= b;                                                                                                 \
    }                                                                                                                  \
    EDDY_WORD bool eddy_gt_##tag(type a, type b) {                                                                     \
        return a > b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD bool eddy_ge_##tag(type a, type b) {                                                                     \
        return a >= b;                                                                                                 \
    }                                                                                                                  \
    EDDY_WORD type eddy_select_##tag(bool condition, type a, type b) {                                                 \
        return condition ? a : b;                                                                                      \
    }

/* min and max: a NaN wins, of two NaNs the first; of -0 and 0 the second operand. */
#define EDDY_WORDS_FLOAT(tag, type, suffix)                                                                            \
    EDDY_WORD type eddy_add_##tag(type a, type b) {                                                                    \
        return a + b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD type eddy_sub_##tag(type a, type b) {                                                                    \
        return a - b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD type eddy_mul_##tag(type a, type b) {                                                                    \
        return a * b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD type eddy_div_##tag(type a, type b) {                                                                    \
        return a / b;                                                                                                  \
    }                                                                                                                  \
    EDDY_WORD type eddy_neg_##tag(type a) {                                                                            \
        return -a;                                                                                                     \
    }                                                                                                                  \
    EDDY_WORD type eddy_abs_##tag(type a) {                                                                            \
        return __builtin_fabs##suffix(a);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_sqrt_##tag(type a) {                                                                           \
        return __builtin_sqrt##suffix(a);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_fma_##tag(type a, type b, type c) {                                                            \
        return __builtin_fma##suffix(a, b, c);                                                                         \
    }                                                                                                                  \
    EDDY_WORD type eddy_min_##tag(type a, type b) {                                                                    \
        return a < b || a != a ? a : b;                                                                                \
    }                                                                                                                  \
    EDDY_WORD type eddy_max_##tag(type a, type b) {                                                                    \
        return a > b || a != a ? a : b;                                                                                \
    }                                                                                                                  \
    EDDY_WORDS_COMPARE(tag, type)

/* Unsigned arithmetic at least 32 bits wide, then cut off: wraps around without undefined behaviour. */
#define EDDY_WORDS_INTEGER(tag, type, wide)                                                                            \
    EDDY_WORD type eddy_add_##tag(type a, type b) {                                                                    \
        return (type)((wide)a + (wide)b);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_sub_##tag(type a, type b) {                                                                    \
        return (type)((wide)a - (wide)b);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_mul_##tag(type a, type b) {                                                                    \
        return (type)((wide)a * (wide)b);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_neg_##tag(type a) {                                                                            \
        return (type)((wide)0 - (wide)a);                                                                              \
    }                                                                                                                  \
    EDDY_WORD type eddy_abs_##tag(type a) {                                                                            \
        return a < 0 ? (type)((wide)0 - (wide)a) : a;                                                                  \
    }                                                                                                                  \
    EDDY_WORD type eddy_min_##tag(type a, type b) {                                                                    \
        return a < b ? a : b;                                                                                          \
    }                                                                                                                  \
    EDDY_WORD type eddy_max_##tag(type a, type b) {                                                                    \
        return a > b ? a : b;                                                                                          \
    }                                                                                                                  \
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
EDDY_WORDS_COMPARE(u8, uint8_t)

EDDY_WORD bool eddy_logical_or_truth(bool a, bool b) {
    return a | b;
}
EDDY_WORD bool eddy_logical_and_truth(bool a, bool b) {
    return a & b;
}
EDDY_WORDS_COMPARE(truth, bool)

#undef EDDY_WORDS_FLOAT
#undef EDDY_WORDS_INTEGER
#undef EDDY_WORDS_COMPARE

#endif
