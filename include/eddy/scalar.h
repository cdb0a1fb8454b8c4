/* Tagged numbers: EDDY_S(2) is an integer, EDDY_S(0.5) a floating-point number, EDDY_S((bool)x) a truth value (in C11 `true`
 * itself is an int).
 * They promote by category, as PyTorch's do: an i32 tensor + EDDY_S(2) stays i32, + EDDY_S(0.5) becomes f32.
 * Then they become numbers of the tensor's dtype, by one rule in all ops that take them: floats round; bool is whether it is not 0;
 * integers lose the fraction, and what the dtype does not hold (256 beside u8, NaN) is refused with OUT_OF_RANGE, but for sums,
 * products and bits (add, sub, mul, bitwise_*), where integers wrap around and the number with them. docs/numbers.md. */
#ifndef EDDY_SCALAR_H
#define EDDY_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum eddy_scalar_kind {
    EDDY_SCALAR_BOOL,
    EDDY_SCALAR_INT,
    EDDY_SCALAR_FLOAT
} eddy_scalar_kind;

typedef struct eddy_scalar {
    eddy_scalar_kind kind;
    union {
        int64_t integer; /* BOOL (0 or 1) and INT: exact */
        double floating;
    } value;
} eddy_scalar;

static inline eddy_scalar eddy_scalar_bool(bool value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_BOOL;
    s.value.integer = value;
    return s;
}

static inline eddy_scalar eddy_scalar_int(int64_t value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_INT;
    s.value.integer = value;
    return s;
}

static inline eddy_scalar eddy_scalar_float(double value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_FLOAT;
    s.value.floating = value;
    return s;
}

#ifdef __cplusplus
}
inline eddy_scalar EDDY_S(bool value) {
    return eddy_scalar_bool(value);
}
inline eddy_scalar EDDY_S(double value) {
    return eddy_scalar_float(value);
}
inline eddy_scalar EDDY_S(float value) {
    return eddy_scalar_float(value);
}
inline eddy_scalar EDDY_S(int value) {
    return eddy_scalar_int(value);
}
inline eddy_scalar EDDY_S(unsigned value) {
    return eddy_scalar_int(value);
}
inline eddy_scalar EDDY_S(long value) {
    return eddy_scalar_int(value);
}
inline eddy_scalar EDDY_S(long long value) {
    return eddy_scalar_int(value);
}
#else
/* clang-format off */
#define EDDY_S(value)                                                                                                  \
    _Generic((value), bool: eddy_scalar_bool, float: eddy_scalar_float, double: eddy_scalar_float,                     \
        default: eddy_scalar_int)(value)
/* clang-format on */
#endif
#endif
