#include "element.h"

#include <eddy/dtype.h>
#include <math.h>
#include <string.h>

/* ---- formats ---- */

/* Bits after the leading one, the least and the greatest exponent of a normal number. */
typedef struct float_format {
    int fraction_bits, least_exponent, most_exponent;
} float_format;

static float_format format_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_F16:
        return (float_format){10, -14, 15};
    case EDDY_BF16:
        return (float_format){7, -126, 127};
    case EDDY_F32:
        return (float_format){23, -126, 127};
    default:
        return (float_format){52, -1022, 1023};
    }
}

bool element_is_float(eddy_dtype dtype) {
    return dtype == EDDY_F32 || dtype == EDDY_F64 || dtype == EDDY_F16 || dtype == EDDY_BF16;
}

int element_category(eddy_dtype dtype) {
    return element_is_float(dtype) ? 2 : dtype == EDDY_BOOL ? 0 : 1;
}

/* The number of the format that is nearest, of two the even one. */
static double rounded(eddy_dtype dtype, double value) {
    if (dtype == EDDY_F64 || value == 0 || !isfinite(value))
        return value;
    float_format format = format_of(dtype);
    int exponent;
    frexp(value, &exponent);
    exponent--;
    int unit = (exponent > format.least_exponent ? exponent : format.least_exponent) -
               format.fraction_bits;
    double result = ldexp(nearbyint(ldexp(value, -unit)), unit);
    return fabs(result) >= ldexp(1, format.most_exponent + 1) ? copysign(INFINITY, value) : result;
}

/* What an op computes in f32, f16 and bf16 is rounded to f32 first. */
static double computed(eddy_dtype dtype, double value) {
    return dtype == EDDY_F64 ? value : rounded(dtype, rounded(EDDY_F32, value));
}

static double float_of_whole(eddy_dtype dtype, int64_t whole) {
    uint64_t magnitude = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;
    int lost =
        magnitude == 0 ? 0 : 63 - __builtin_clzll(magnitude) - format_of(dtype).fraction_bits;
    if (lost > 0) {
        uint64_t kept = magnitude >> lost, rest = magnitude & ((UINT64_C(1) << lost) - 1);
        uint64_t half = UINT64_C(1) << (lost - 1);
        kept += rest > half || (rest == half && (kept & 1));
        return rounded(dtype, copysign(ldexp((double)kept, lost), whole < 0 ? -1 : 1));
    }
    return rounded(dtype, (double)whole);
}

static int64_t wrapped(eddy_dtype dtype, uint64_t bits) {
    switch (dtype) {
    case EDDY_I8:
        return (int8_t)bits;
    case EDDY_U8:
        return (uint8_t)bits;
    case EDDY_I16:
        return (int16_t)bits;
    case EDDY_I32:
        return (int32_t)bits;
    case EDDY_BOOL:
        return bits != 0;
    default:
        return (int64_t)bits;
    }
}

static int64_t saturated(eddy_dtype dtype, double value) {
    if (isnan(value))
        return 0;
    int bits = 8 * (int)eddy_dtype_bytes(dtype) - (dtype != EDDY_U8);
    double above = ldexp(1, bits), least = dtype == EDDY_U8 ? 0 : -above;
    value = trunc(value);
    if (value >= above)
        return dtype == EDDY_I64 ? INT64_MAX : (int64_t)above - 1;
    return (int64_t)(value < least ? least : value);
}

/* ---- promotion ---- */

eddy_dtype element_promote(eddy_dtype a, eddy_dtype b) {
    if (a == b)
        return a;
    if (element_category(a) != element_category(b))
        return element_category(a) > element_category(b) ? a : b;
    size_t bytes_a = eddy_dtype_bytes(a), bytes_b = eddy_dtype_bytes(b);
    if (bytes_a != bytes_b)
        return bytes_a > bytes_b ? a : b;
    /* f16 with bf16, i8 with u8: neither holds the other. */
    return element_is_float(a) ? EDDY_F32 : EDDY_I16;
}

/* ---- values ---- */

element element_cast(element value, eddy_dtype from, eddy_dtype to) {
    if (element_is_float(from)) {
        if (element_is_float(to))
            return (element){.number = rounded(to, value.number)};
        return (element){.whole =
                             to == EDDY_BOOL ? value.number != 0 : saturated(to, value.number)};
    }
    if (element_is_float(to))
        return (element){.number = float_of_whole(to, value.whole)};
    return (element){.whole = wrapped(to, (uint64_t)value.whole)};
}

element element_from_scalar(eddy_scalar scalar, eddy_dtype dtype) {
    if (scalar.kind == EDDY_SCALAR_FLOAT)
        return element_cast((element){.number = scalar.value.floating}, EDDY_F64, dtype);
    return element_cast((element){.whole = scalar.value.integer}, EDDY_I64, dtype);
}

static double binary_number(element_op op, double a, double b) {
    return op == ELEMENT_ADD   ? a + b
           : op == ELEMENT_SUB ? a - b
           : op == ELEMENT_MUL ? a * b
                               : a / b;
}

element element_binary(element_op op, eddy_dtype dtype, element a, element b) {
    if (element_is_float(dtype))
        return (element){.number = computed(dtype, binary_number(op, a.number, b.number))};
    uint64_t x = (uint64_t)a.whole, y = (uint64_t)b.whole;
    return (element){.whole = wrapped(dtype, op == ELEMENT_ADD   ? x + y
                                             : op == ELEMENT_SUB ? x - y
                                                                 : x * y)};
}

#define COMPARED(order, a, b)                                                                      \
    ((order) == ELEMENT_EQ   ? (a) == (b)                                                          \
     : (order) == ELEMENT_NE ? (a) != (b)                                                          \
     : (order) == ELEMENT_LT ? (a) < (b)                                                           \
     : (order) == ELEMENT_LE ? (a) <= (b)                                                          \
     : (order) == ELEMENT_GT ? (a) > (b)                                                           \
                             : (a) >= (b))

bool element_compare(element_order order, eddy_dtype dtype, element a, element b) {
    return element_is_float(dtype) ? COMPARED(order, a.number, b.number)
                                   : COMPARED(order, a.whole, b.whole);
}

element element_neg(eddy_dtype dtype, element a) {
    return element_is_float(dtype) ? (element){.number = -a.number}
                                   : (element){.whole = wrapped(dtype, 0 - (uint64_t)a.whole)};
}

element element_relu(eddy_dtype dtype, element a) {
    if (element_is_float(dtype))
        return a.number < 0 ? (element){.number = 0} : a;
    return a.whole < 0 ? (element){.whole = 0} : a;
}

element element_sqrt(eddy_dtype dtype, element a) {
    return (element){.number = computed(dtype, sqrt(a.number))};
}

bool element_is_nan(eddy_dtype dtype, element a) {
    return element_is_float(dtype) && isnan(a.number);
}

bool element_same(eddy_dtype dtype, element a, element b) {
    if (element_is_nan(dtype, a) || element_is_nan(dtype, b))
        return element_is_nan(dtype, a) && element_is_nan(dtype, b);
    return element_compare(ELEMENT_EQ, dtype, a, b);
}

double element_as_double(eddy_dtype dtype, element a) {
    return element_is_float(dtype) ? a.number : (double)a.whole;
}

/* ---- in memory ---- */

static double load_half(eddy_dtype dtype, uint16_t bits) {
    float_format format = format_of(dtype);
    int stored = (bits & 0x7fff) >> format.fraction_bits,
        fraction = bits & ((1 << format.fraction_bits) - 1);
    double value;
    if (stored == format.most_exponent - format.least_exponent + 2)
        value = fraction ? NAN : INFINITY;
    else if (stored == 0)
        value = ldexp(fraction, format.least_exponent - format.fraction_bits);
    else
        value = ldexp(fraction + (1 << format.fraction_bits),
                      stored - 1 + format.least_exponent - format.fraction_bits);
    return bits & 0x8000 ? -value : value;
}

static uint16_t store_half(eddy_dtype dtype, double value) {
    float_format format = format_of(dtype);
    int sign = signbit(value) ? 0x8000 : 0,
        infinite = format.most_exponent - format.least_exponent + 2, exponent;
    if (!isfinite(value))
        return (uint16_t)(sign | infinite << format.fraction_bits |
                          (isnan(value) ? 1 << (format.fraction_bits - 1) : 0));
    frexp(value, &exponent);
    exponent--;
    bool is_normal = value != 0 && exponent >= format.least_exponent;
    int unit = (is_normal ? exponent : format.least_exponent) - format.fraction_bits;
    int digits = (int)ldexp(
        fabs(value),
        -unit); /* with the leading one of a normal number, which adds one to the exponent */
    return (uint16_t)(sign | (digits + (is_normal ? (exponent - format.least_exponent)
                                                        << format.fraction_bits
                                                  : 0)));
}

element element_load(eddy_dtype dtype, const void *source) {
    union {
        float f32;
        double f64;
        uint16_t half;
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
    } from;
    memcpy(&from, source, eddy_dtype_bytes(dtype));
    switch (dtype) {
    case EDDY_F32:
        return (element){.number = from.f32};
    case EDDY_F64:
        return (element){.number = from.f64};
    case EDDY_F16:
    case EDDY_BF16:
        return (element){.number = load_half(dtype, from.half)};
    case EDDY_I8:
        return (element){.whole = from.i8};
    case EDDY_I16:
        return (element){.whole = from.i16};
    case EDDY_I32:
        return (element){.whole = from.i32};
    case EDDY_I64:
        return (element){.whole = from.i64};
    default:
        return (element){.whole = from.u8};
    }
}

void element_store(eddy_dtype dtype, void *target, element value) {
    union {
        float f32;
        double f64;
        uint16_t half;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        int64_t i64;
    } to;
    switch (dtype) {
    case EDDY_F32:
        to.f32 = (float)value.number;
        break;
    case EDDY_F64:
        to.f64 = value.number;
        break;
    case EDDY_F16:
    case EDDY_BF16:
        to.half = store_half(dtype, value.number);
        break;
    case EDDY_I16:
        to.u16 = (uint16_t)value.whole;
        break;
    case EDDY_I32:
        to.u32 = (uint32_t)value.whole;
        break;
    case EDDY_I64:
        to.i64 = value.whole;
        break;
    default:
        to.u8 = (uint8_t)value.whole;
    }
    memcpy(target, &to, eddy_dtype_bytes(dtype));
}
