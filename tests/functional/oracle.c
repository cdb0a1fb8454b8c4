#include <tests/functional/oracle.h>

#include <base/dtype.h>
#include <float.h>
#include <math.h>
#include <string.h>

oracle_value oracle_load(eddy_dtype dtype, const void *element) {
    oracle_value value = {0};
    if (eddy_dtype_is_float(dtype)) {
        value.real = eddy_dtype_load_f64(dtype, element);
    } else {
        value.integer = eddy_dtype_load_i64(dtype, element);
        value.real = (long double)value.integer;
    }
    return value;
}

static long double sigmoid(long double x) {
    return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
}

static bool real(const char *op, const oracle_value *v, long double *y) {
    long double a = v[0].real, b = v[1].real;
    if (strcmp(op, "add") == 0)
        *y = a + b;
    else if (strcmp(op, "sub") == 0)
        *y = a - b;
    else if (strcmp(op, "mul") == 0)
        *y = a * b;
    else if (strcmp(op, "div") == 0)
        *y = a / b;
    else if (strcmp(op, "exp") == 0)
        *y = expl(a);
    else if (strcmp(op, "log") == 0)
        *y = logl(a);
    else if (strcmp(op, "sqrt") == 0)
        *y = sqrtl(a);
    else if (strcmp(op, "neg") == 0)
        *y = -a;
    else if (strcmp(op, "relu") == 0)
        *y = a > 0 || isnan(a) ? a : 0;
    else if (strcmp(op, "sigmoid") == 0)
        *y = sigmoid(a);
    else if (strcmp(op, "tanh") == 0)
        *y = tanhl(a);
    else if (strcmp(op, "relu_backward") == 0)
        *y = b > 0 || isnan(b) ? a : 0;
    else if (strcmp(op, "sigmoid_backward") == 0)
        *y = a * (1 - b) * b;
    else if (strcmp(op, "tanh_backward") == 0)
        *y = a * ((1 - b) * (1 + b));
    else
        return false;
    return true;
}

static bool whole(const char *op, eddy_dtype dtype, const oracle_value *v, __int128 *y) {
    __int128 a = v[0].integer, b = v[1].integer;
    bool is_bool = dtype == EDDY_BOOL;
    if (strcmp(op, "add") == 0)
        *y = is_bool ? (a || b) : a + b;
    else if (strcmp(op, "sub") == 0)
        *y = a - b;
    else if (strcmp(op, "mul") == 0)
        *y = a * b;
    else if (strcmp(op, "neg") == 0)
        *y = -a;
    else if (strcmp(op, "relu") == 0)
        *y = a > 0 ? a : 0;
    else
        return false;
    return true;
}

static bool compare(const char *op, bool is_real, const oracle_value *v, bool *y) {
    long double a = v[0].real, b = v[1].real;
    __int128 i = v[0].integer, j = v[1].integer;
    if (strcmp(op, "eq") == 0)
        *y = is_real ? a == b : i == j;
    else if (strcmp(op, "ne") == 0)
        *y = is_real ? !(a == b) : i != j;
    else if (strcmp(op, "lt") == 0)
        *y = is_real ? a < b : i < j;
    else if (strcmp(op, "le") == 0)
        *y = is_real ? a <= b : i <= j;
    else if (strcmp(op, "gt") == 0)
        *y = is_real ? a > b : i > j;
    else if (strcmp(op, "ge") == 0)
        *y = is_real ? a >= b : i >= j;
    else
        return false;
    return true;
}

bool oracle_apply(const char *op, eddy_dtype dtype, const oracle_value *operands, oracle_value *result) {
    char name[48];
    size_t length = strlen(op);
    memcpy(name, op, length + 1);
    if (length > 2 && strcmp(name + length - 2, "_s") == 0)
        name[length - 2] = 0;
    bool is_real = eddy_dtype_is_float(dtype), truth;
    *result = (oracle_value){0};
    if (strcmp(name, "where") == 0) {
        *result = operands[operands[0].integer != 0 ? 1 : 2];
        return true;
    }
    if (compare(name, is_real, operands, &truth)) {
        result->integer = truth;
        return true;
    }
    return is_real ? real(name, operands, &result->real) : whole(name, dtype, operands, &result->integer);
}

typedef struct format {
    int digits;
    int exponent_min; /* of the smallest normal number as 0.1b * 2^e */
    long double largest;
} format;

static format format_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_F32:
        return (format){24, -125, FLT_MAX};
    case EDDY_F64:
        return (format){53, -1021, DBL_MAX};
    case EDDY_F16:
        return (format){11, -13, 65504};
    default:
        return (format){8, -125, 0x1.fep127L};
    }
}

double oracle_distance(eddy_dtype dtype, oracle_value want, const void *got) {
    if (!eddy_dtype_is_float(dtype)) {
        int64_t value = 0;
        size_t bytes = eddy_dtype_bytes(dtype);
        memcpy(&value, &want.integer, 8);
        return memcmp(&value, got, bytes) == 0 ? 0 : INFINITY;
    }
    format f = format_of(dtype);
    long double value = eddy_dtype_load_f64(dtype, got), wanted = want.real;
    if (isnan(wanted) || isnan(value))
        return isnan(wanted) && isnan(value) ? 0 : INFINITY;
    int exponent = f.exponent_min;
    if (wanted != 0 && !isinf(wanted)) {
        frexpl(wanted, &exponent);
        exponent = exponent < f.exponent_min ? f.exponent_min : exponent;
    }
    long double unit = ldexpl(1, exponent - f.digits);
    /* What lies half a unit beyond the largest number is infinite. */
    int top;
    frexpl(f.largest, &top);
    if (fabsl(wanted) >= f.largest + ldexpl(1, top - f.digits - 1))
        wanted = copysignl(INFINITY, wanted);
    if (isinf(wanted) || isinf(value)) {
        /* Near the limit one unit of error may go over it. */
        bool is_near = isinf(value) && !isinf(wanted) && fabsl(wanted) > f.largest - 4 * unit;
        return wanted == value || is_near ? 0 : INFINITY;
    }
    return (double)(fabsl(value - wanted) / unit);
}
