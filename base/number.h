/* Numbers as operands: the one rule by which an eddy_scalar is converted to a dtype (docs/numbers.md). */
#ifndef EDDY_BASE_NUMBER_H
#define EDDY_BASE_NUMBER_H

#include <eddy/dtype.h>
#include <eddy/scalar.h>
#include <stdbool.h>

/* Converts *number to the dtype: to FLOAT for floats, rounded once; to INT for integers, towards 0; to BOOL (whether it is
 * not 0) for bool. False if an integer dtype does not hold it (too large, too small, NaN); *number is then unchanged.
 * With `wraps` an integer wraps around instead, as in sums and products. */
bool eddy_number_convert(eddy_scalar *number, eddy_dtype dtype, bool wraps);

/* The number as text, as in messages: "256", "nan". Returns its length as snprintf does. */
int eddy_number_format(eddy_scalar number, char *buffer, size_t size);

static inline int64_t eddy_min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t eddy_max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The greatest common divisor of numbers that are not negative. */
static inline int64_t eddy_gcd_i64(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
