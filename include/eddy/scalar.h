/* Tagged numbers: EDDY_S(2) is an integer, EDDY_S(0.5) a floating-point number, EDDY_S((bool)x) a truth value (in C11 `true`
 * itself is an int). They promote by category, as in PyTorch: an i32 tensor + EDDY_S(2) stays i32, + EDDY_S(0.5) becomes f32. Then
 * they are converted to the tensor's dtype, by one rule in all ops that take them. To a float dtype they are rounded. Bool is
 * whether the number is not 0. To an integer dtype the fraction is cut off, and a number that the dtype does not hold (256 for u8,
 * NaN) is refused with OUT_OF_RANGE; in add, sub, mul and bitwise_*, whose integers wrap around, an integer wraps around too.
 * docs/numbers.md. */
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
    uint32_t
        slot; /* the library's, 0 in a number of the program's: which input of a recorded function it is */
    union {
        int64_t integer; /* BOOL (0 or 1) and INT: exact */
        double floating;
    } value;
} eddy_scalar;

static inline eddy_scalar eddy_scalar_bool(bool value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_BOOL;
    s.slot = 0;
    s.value.integer = value;
    return s;
}

static inline eddy_scalar eddy_scalar_int(int64_t value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_INT;
    s.slot = 0;
    s.value.integer = value;
    return s;
}

static inline eddy_scalar eddy_scalar_float(double value) {
    eddy_scalar s;
    s.kind = EDDY_SCALAR_FLOAT;
    s.slot = 0;
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
