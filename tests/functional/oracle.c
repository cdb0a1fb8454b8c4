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

/* ---- a line for each op ---- */

/* The operands, behind which the numbers of attributes stand, as the lines name them. */
#define REALS                                                                                      \
    const long double a = v[0].real, b = v[1].real, c = v[2].real, d = v[3].real;                  \
    (void)a, (void)b, (void)c, (void)d
#define WHOLES                                                                                     \
    const __int128 a = v[0].integer, b = v[1].integer, c = v[2].integer;                           \
    (void)a, (void)b, (void)c

#define ORACLE(op, of_reals, of_wholes)                                                            \
    static bool oracle_of_##op(const oracle_value *v, eddy_dtype dtype, oracle_value *result) {    \
        if (eddy_dtype_is_float(dtype)) {                                                          \
            REALS;                                                                                 \
            of_reals;                                                                              \
        } else {                                                                                   \
            WHOLES;                                                                                \
            of_wholes;                                                                             \
        }                                                                                          \
        return true;                                                                               \
    }
#define UNKNOWN return (void)result, false

/* Of floats, and of integers and bool. */
#define NUMBER(op, y, z) ORACLE(op, result->real = y, result->integer = z)
#define REAL(op, y) ORACLE(op, result->real = y, UNKNOWN)
#define WHOLE(op, z) ORACLE(op, UNKNOWN, result->integer = z)
/* 0 or 1. */
#define TRUTH(op, y, z) ORACLE(op, result->integer = y, result->integer = z)
/* Of two terms that may cancel. */
#define SUM(op, y, z) ORACLE(op, add_terms(result, y, z), UNKNOWN)

static void add_terms(oracle_value *result, long double one, long double two) {
    result->real = one + two;
    result->is_sum = true;
    result->scale = fmaxl(fabsl(one), fabsl(two));
}

/* clang-format off */
NUMBER(add, a + b, dtype == EDDY_BOOL ? (a || b) : a + b)
NUMBER(sub, a - b, a - b)
NUMBER(mul, a * b, a * b)
REAL(div, a / b)
NUMBER(floordiv, python_quotient(a, b), b == 0 ? 0 : (a - floored_rest(a, b)) / b)
NUMBER(remainder, python_remainder(a, b), b == 0 ? 0 : floored_rest(a, b))
NUMBER(pow, powl(a, b), whole_power(a, b))
NUMBER(maximum, larger(a, b), a > b ? a : b)
NUMBER(minimum, smaller(a, b), a < b ? a : b)
REAL(atan2, atan2l(a, b))
NUMBER(neg, -a, -a)
NUMBER(abs, fabsl(a), a < 0 ? -a : a)
NUMBER(square, a * a, a * a)
NUMBER(sign, a > 0 ? 1 : a < 0 ? -1 : 0, (a > 0) - (a < 0))
NUMBER(round, rintl(a), a)
NUMBER(floor, floorl(a), a)
NUMBER(ceil, ceill(a), a)
REAL(reciprocal, 1 / a)
REAL(sqrt, sqrtl(a))
REAL(rsqrt, 1 / sqrtl(a))
REAL(exp, expl(a))
REAL(expm1, expm1l(a))
REAL(log, logl(a))
REAL(log1p, log1pl(a))
REAL(log2, log2l(a))
REAL(sin, sinl(a))
REAL(cos, cosl(a))
REAL(tan, tanl(a))
REAL(tanh, tanhl(a))
REAL(erf, erfl(a))
REAL(sigmoid, sigmoid(a))
NUMBER(relu, a > 0 || isnan(a) ? a : 0, a > 0 ? a : 0)
NUMBER(relu6, relu6(a), a < 0 ? 0 : a > 6 ? 6 : a)
REAL(leaky_relu, a > 0 ? a : a * b)
REAL(elu, a > 0 ? a : b * expm1l(a))
REAL(softplus, a * b > c ? a : (fmaxl(a * b, 0) + log1pl(expl(-fabsl(a * b)))) / b)
REAL(silu, a == -INFINITY ? 0 : a * sigmoid(a))
REAL(gelu, a == -INFINITY ? 0 : a * share(a, b != 0))
REAL(hardswish, a * relu6(a + 3) / 6)
REAL(relu_backward, b > 0 || isnan(b) ? a : 0)
REAL(sigmoid_backward, a * (1 - b) * b)
REAL(tanh_backward, a * ((1 - b) * (1 + b)))
SUM(silu_backward, a * sigmoid(b), a * sigmoid(b) * b * sigmoid(-b))
SUM(gelu_backward, a * share(b, c != 0), a * share_rise(b, c != 0))
SUM(lerp, fabsl(c) < 0.5L ? a : b, fabsl(c) < 0.5L ? c * (b - a) : -(b - a) * (1 - c))
SUM(addcmul, a, d * b * c)
SUM(addcdiv, a, d * b / c)
NUMBER(clamp, smaller(larger(a, b), c), a < b ? (b < c ? b : c) : a < c ? a : c)
WHOLE(bitwise_and, a & b)
WHOLE(bitwise_or, a | b)
WHOLE(bitwise_xor, a ^ b)
WHOLE(bitwise_not, dtype == EDDY_BOOL ? !a : ~a)
TRUTH(logical_and, a && b, a && b)
TRUTH(logical_or, a || b, a || b)
TRUTH(logical_xor, !a != !b, !a != !b)
TRUTH(logical_not, !a, !a)
TRUTH(isnan, isnan(a), false)
TRUTH(isinf, isinf(a) != 0, false)
TRUTH(isfinite, isfinite(a), true)
TRUTH(eq, a == b, a == b)
TRUTH(ne, !(a == b), a != b)
TRUTH(lt, a < b, a < b)
TRUTH(le, a <= b, a <= b)
TRUTH(gt, a > b, a > b)
TRUTH(ge, a >= b, a >= b)
/* clang-format on */

static bool oracle_of_where(const oracle_value *v, eddy_dtype dtype, oracle_value *result) {
    (void)dtype;
    *result = v[v[0].integer != 0 ? 1 : 2];
    return true;
}

/* What entries name. */
static const struct {
    const char *op;
    oracle_function *run;
} oracles[] = {
#define ROW(op, oracle) {#op, oracle_of_##oracle},
#include <functional/op_oracles.h>
};

oracle_function *oracle_of(const char *op) {
    for (size_t i = 0; i < sizeof(oracles) / sizeof(oracles[0]); i++)
        if (strcmp(oracles[i].op, op) == 0)
            return oracles[i].run;
    return NULL;
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
