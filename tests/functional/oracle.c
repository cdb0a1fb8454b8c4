#include <tests/functional/oracle.h>

#include <base/dtype.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
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

static long double python_remainder(long double a, long double b) {
    long double rest = fmodl(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Whole but for the rounding of the division. */
static long double python_quotient(long double a, long double b) {
    if (b == 0 || isnan(b) || !isfinite(a))
        return b == 0 ? a / b : NAN;
    if (isinf(b))
        return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
    return roundl((a - python_remainder(a, b)) / b);
}

/* The share of the normal distribution below x. */
static long double normal(long double x) {
    return erfcl(-x * sqrtl(0.5L)) / 2;
}

/* gelu's share, by `approximate`. */
static long double share(long double x, bool is_tanh) {
    return is_tanh ? sigmoid(2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)) : normal(x);
}

/* The second term of gelu's derivative: x times the derivative of the share. */
static long double share_rise(long double x, bool is_tanh) {
    if (!is_tanh)
        return x * expl(-x * x / 2) / sqrtl(2 * acosl(-1));
    long double s = share(x, true), other = share(-x, true);
    return x * s * other * 2 * sqrtl(2 / acosl(-1)) * (1 + 3 * 0.044715L * x * x);
}

static long double relu6(long double x) {
    return isnan(x) ? x : fminl(fmaxl(x, 0), 6);
}

static long double larger(long double a, long double b) {
    return isnan(a) || isnan(b) ? NAN : fmaxl(a, b);
}

static long double smaller(long double a, long double b) {
    return isnan(a) || isnan(b) ? NAN : fminl(a, b);
}

/* Sums whose terms may cancel. */
static bool sum(const char *op, const oracle_value *v, oracle_value *result) {
    long double a = v[0].real, b = v[1].real, c = v[2].real, d = v[3].real, one, two;
    if (strcmp(op, "lerp") == 0) {
        bool is_near = fabsl(c) < 0.5L;
        one = is_near ? a : b;
        two = is_near ? c * (b - a) : -(b - a) * (1 - c);
    } else if (strcmp(op, "addcmul") == 0) {
        one = a;
        two = d * b * c;
    } else if (strcmp(op, "addcdiv") == 0) {
        one = a;
        two = d * b / c;
    } else if (strcmp(op, "silu_backward") == 0) {
        one = a * sigmoid(b);
        two = a * sigmoid(b) * b * sigmoid(-b);
    } else if (strcmp(op, "gelu_backward") == 0) {
        one = a * share(b, c != 0);
        two = a * share_rise(b, c != 0);
    } else {
        return false;
    }
    result->real = one + two;
    result->is_sum = true;
    result->scale = fmaxl(fabsl(one), fabsl(two));
    return true;
}

static bool real(const char *op, const oracle_value *v, long double *y) {
    long double a = v[0].real, b = v[1].real, c = v[2].real;
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
    else if (strcmp(op, "floordiv") == 0)
        *y = python_quotient(a, b);
    else if (strcmp(op, "remainder") == 0)
        *y = python_remainder(a, b);
    else if (strcmp(op, "pow") == 0)
        *y = powl(a, b);
    else if (strcmp(op, "maximum") == 0)
        *y = larger(a, b);
    else if (strcmp(op, "minimum") == 0)
        *y = smaller(a, b);
    else if (strcmp(op, "clamp") == 0)
        *y = smaller(larger(a, b), c);
    else if (strcmp(op, "abs") == 0)
        *y = fabsl(a);
    else if (strcmp(op, "square") == 0)
        *y = a * a;
    else if (strcmp(op, "sign") == 0)
        *y = a > 0 ? 1 : a < 0 ? -1 : 0;
    else if (strcmp(op, "reciprocal") == 0)
        *y = 1 / a;
    else if (strcmp(op, "rsqrt") == 0)
        *y = 1 / sqrtl(a);
    else if (strcmp(op, "round") == 0)
        *y = rintl(a);
    else if (strcmp(op, "floor") == 0)
        *y = floorl(a);
    else if (strcmp(op, "ceil") == 0)
        *y = ceill(a);
    else if (strcmp(op, "sin") == 0)
        *y = sinl(a);
    else if (strcmp(op, "cos") == 0)
        *y = cosl(a);
    else if (strcmp(op, "tan") == 0)
        *y = tanl(a);
    else if (strcmp(op, "erf") == 0)
        *y = erfl(a);
    else if (strcmp(op, "expm1") == 0)
        *y = expm1l(a);
    else if (strcmp(op, "log1p") == 0)
        *y = log1pl(a);
    else if (strcmp(op, "log2") == 0)
        *y = log2l(a);
    else if (strcmp(op, "atan2") == 0)
        *y = atan2l(a, b);
    else if (strcmp(op, "relu6") == 0)
        *y = relu6(a);
    else if (strcmp(op, "leaky_relu") == 0)
        *y = a > 0 ? a : a * b;
    else if (strcmp(op, "elu") == 0)
        *y = a > 0 ? a : b * expm1l(a);
    else if (strcmp(op, "softplus") == 0)
        *y = a * b > c ? a : (fmaxl(a * b, 0) + log1pl(expl(-fabsl(a * b)))) / b;
    else if (strcmp(op, "silu") == 0)
        *y = a == -INFINITY ? 0 : a * sigmoid(a);
    else if (strcmp(op, "gelu") == 0)
        *y = a == -INFINITY ? 0 : a * share(a, b != 0);
    else if (strcmp(op, "prelu_broadcast") == 0)
        *y = a > 0 ? a : a * b;
    else if (strcmp(op, "hardswish") == 0)
        *y = a * relu6(a + 3) / 6;
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

static __int128 floored_rest(__int128 a, __int128 b) {
    __int128 rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* Modulo 2^64, of which every dtype takes the lowest bits. */
static __int128 whole_power(__int128 a, __int128 b) {
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    uint64_t result = 1;
    for (int bit = 62; bit >= 0; bit--) {
        result *= result;
        if (b >> bit & 1)
            result *= (uint64_t)a;
    }
    return (__int128)result;
}

static bool whole(const char *op, eddy_dtype dtype, const oracle_value *v, __int128 *y) {
    __int128 a = v[0].integer, b = v[1].integer, c = v[2].integer;
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
    else if (strcmp(op, "relu6") == 0)
        *y = a < 0 ? 0 : a > 6 ? 6 : a;
    else if (strcmp(op, "abs") == 0)
        *y = a < 0 ? -a : a;
    else if (strcmp(op, "square") == 0)
        *y = a * a;
    else if (strcmp(op, "sign") == 0)
        *y = (a > 0) - (a < 0);
    else if (strcmp(op, "round") == 0 || strcmp(op, "floor") == 0 || strcmp(op, "ceil") == 0)
        *y = a;
    else if (strcmp(op, "maximum") == 0)
        *y = a > b ? a : b;
    else if (strcmp(op, "minimum") == 0)
        *y = a < b ? a : b;
    else if (strcmp(op, "clamp") == 0)
        *y = a < b ? (b < c ? b : c) : a < c ? a : c;
    else if (strcmp(op, "floordiv") == 0)
        *y = b == 0 ? 0 : (a - floored_rest(a, b)) / b;
    else if (strcmp(op, "remainder") == 0)
        *y = b == 0 ? 0 : floored_rest(a, b);
    else if (strcmp(op, "pow") == 0)
        *y = whole_power(a, b);
    else if (strcmp(op, "bitwise_and") == 0)
        *y = a & b;
    else if (strcmp(op, "bitwise_or") == 0)
        *y = a | b;
    else if (strcmp(op, "bitwise_xor") == 0)
        *y = a ^ b;
    else if (strcmp(op, "bitwise_not") == 0)
        *y = is_bool ? !a : ~a;
    else
        return false;
    return true;
}

/* Logic and tests. */
static bool test(const char *op, bool is_real, const oracle_value *v, bool *y) {
    bool a = is_real ? v[0].real != 0 : v[0].integer != 0, b = is_real ? v[1].real != 0 : v[1].integer != 0;
    if (strcmp(op, "logical_and") == 0)
        *y = a && b;
    else if (strcmp(op, "logical_or") == 0)
        *y = a || b;
    else if (strcmp(op, "logical_xor") == 0)
        *y = a ? !b : b;
    else if (strcmp(op, "logical_not") == 0)
        *y = !a;
    else if (strcmp(op, "isnan") == 0)
        *y = is_real && isnan(v[0].real);
    else if (strcmp(op, "isinf") == 0)
        *y = is_real && isinf(v[0].real);
    else if (strcmp(op, "isfinite") == 0)
        *y = !is_real || isfinite(v[0].real);
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
    if (compare(name, is_real, operands, &truth) || test(name, is_real, operands, &truth)) {
        result->integer = truth;
        return true;
    }
    if (is_real && sum(name, operands, result))
        return true;
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
    long double scale = fmaxl(fabsl(wanted), want.scale);
    if (scale != 0 && !isinf(scale)) {
        frexpl(scale, &exponent);
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
