#include <base/dtype.h>

#include <base/assert.h>
#include <math.h>

const char *eddy_dtype_name(eddy_dtype dtype) {
    static const char *const names[] = {
#define EDDY_DTYPE_ROW(enumerator, name, bytes) #name,
        EDDY_DTYPE_LIST(EDDY_DTYPE_ROW)
#undef EDDY_DTYPE_ROW
    };
    return eddy_dtype_is_valid(dtype) ? names[dtype] : "?";
}

size_t eddy_dtype_bytes(eddy_dtype dtype) {
    static const uint8_t sizes[] = {
#define EDDY_DTYPE_ROW(enumerator, name, bytes) bytes,
        EDDY_DTYPE_LIST(EDDY_DTYPE_ROW)
#undef EDDY_DTYPE_ROW
    };
    return eddy_dtype_is_valid(dtype) ? sizes[dtype] : 0;
}

/* c10::promoteTypes of PyTorch: the smallest dtype of the higher category that holds both; f16 with bf16 and u8 with a
 * signed type go one step up. */
eddy_dtype eddy_dtype_promote(eddy_dtype a, eddy_dtype b) {
    enum { f4 = EDDY_F32, f8 = EDDY_F64, f2 = EDDY_F16, b2 = EDDY_BF16, i1 = EDDY_I8 };
    enum { u1 = EDDY_U8, i2 = EDDY_I16, i4 = EDDY_I32, i8 = EDDY_I64, bo = EDDY_BOOL };
    static const uint8_t table[EDDY_DTYPE_COUNT][EDDY_DTYPE_COUNT] = {
        /*          f32 f64 f16 bf16 i8 u8 i16 i32 i64 bool */
        /* f32  */ {f4, f8, f4, f4, f4, f4, f4, f4, f4, f4},
        /* f64  */ {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8},
        /* f16  */ {f4, f8, f2, f4, f2, f2, f2, f2, f2, f2},
        /* bf16 */ {f4, f8, f4, b2, b2, b2, b2, b2, b2, b2},
        /* i8   */ {f4, f8, f2, b2, i1, i2, i2, i4, i8, i1},
        /* u8   */ {f4, f8, f2, b2, i2, u1, i2, i4, i8, u1},
        /* i16  */ {f4, f8, f2, b2, i2, i2, i2, i4, i8, i2},
        /* i32  */ {f4, f8, f2, b2, i4, i4, i4, i4, i8, i4},
        /* i64  */ {f4, f8, f2, b2, i8, i8, i8, i8, i8, i8},
        /* bool */ {f4, f8, f2, b2, i1, u1, i2, i4, i8, bo},
    };
    if (!eddy_dtype_is_valid(a) || !eddy_dtype_is_valid(b))
        return EDDY_DTYPE_COUNT;
    return (eddy_dtype)table[a][b];
}

eddy_dtype eddy_dtype_promote_scalar(eddy_dtype tensor, eddy_scalar_kind scalar) {
    eddy_dtype_category category = eddy_dtype_category_of(tensor);
    if (scalar == EDDY_SCALAR_FLOAT && category < EDDY_CATEGORY_FLOAT)
        return EDDY_F32;
    if (scalar == EDDY_SCALAR_INT && category < EDDY_CATEGORY_INT)
        return EDDY_I64;
    return tensor;
}

void eddy_dtype_range(eddy_dtype dtype, int64_t *least, int64_t *most) {
    EDDY_ASSERT(eddy_dtype_category_of(dtype) == EDDY_CATEGORY_INT);
    *most = dtype == EDDY_U8 ? UINT8_MAX : INT64_MAX >> (64 - 8 * eddy_dtype_size(dtype));
    *least = dtype == EDDY_U8 ? 0 : -*most - 1;
}

/* Rounds to nearest even into a sign, `exponent_bits` and `fraction_bits`: at most 8 and 10, so that no value that a
 * narrow format holds is subnormal as a double. */
static uint16_t narrow_f64(double value, int exponent_bits, int fraction_bits) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint64_t magnitude = bits & INT64_MAX;
    uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << fraction_bits);
    if (magnitude > UINT64_C(0x7ff) << 52)
        return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1) |
                          ((magnitude & (UINT64_MAX >> 12)) >> (52 - fraction_bits)));
    int bias_difference = 1023 - ((1 << (exponent_bits - 1)) - 1);
    int exponent =
        (int)(magnitude >> 52) - bias_difference; /* as the narrow format would store it */
    uint64_t fraction = (magnitude & (UINT64_MAX >> 12)) | UINT64_C(1) << 52;
    int lost = 52 - fraction_bits + (exponent < 1 ? 1 - exponent : 0);
    if (lost > 54)
        return sign;
    uint64_t half = UINT64_C(1) << (lost - 1);
    uint64_t rounded = (fraction + half - 1 + ((fraction >> lost) & 1u)) >> lost;
    /* A normal number's leading one adds itself to the exponent; so does a carry out of the fraction. */
    uint64_t result =
        exponent < 1 ? rounded : rounded + ((uint64_t)(exponent - 1) << fraction_bits);
    return (uint16_t)(sign | (result > infinity ? infinity : result));
}

uint16_t eddy_f64_to_f16(double value) {
    return narrow_f64(value, 5, 10);
}

uint16_t eddy_f64_to_bf16(double value) {
    return narrow_f64(value, 8, 7);
}

/* Copies a constant number of bytes: one known only at run time would be a call. */
#define LOAD(dtype, type, number)                                                                  \
    case dtype: {                                                                                  \
        type value;                                                                                \
        memcpy(&value, source, sizeof(value));                                                     \
        return (double)(number);                                                                   \
    }

double eddy_dtype_load_f64(eddy_dtype dtype, const void *source) {
    switch (dtype) {
        LOAD(EDDY_F32, float, value)
        LOAD(EDDY_F64, double, value)
        LOAD(EDDY_F16, uint16_t, eddy_f16_to_f32(value))
        LOAD(EDDY_BF16, uint16_t, eddy_bf16_to_f32(value))
        LOAD(EDDY_I8, int8_t, value)
        LOAD(EDDY_U8, uint8_t, value)
        LOAD(EDDY_I16, int16_t, value)
        LOAD(EDDY_I32, int32_t, value)
        LOAD(EDDY_I64, int64_t, value)
        LOAD(EDDY_BOOL, uint8_t, value != 0)
    case EDDY_DTYPE_COUNT:
        break;
    }
    EDDY_ASSERT(!"a dtype");
    return 0;
}

int64_t eddy_dtype_load_i64(eddy_dtype dtype, const void *source) {
    if (dtype == EDDY_I64) {
        int64_t value;
        memcpy(&value, source, sizeof(value));
        return value;
    }
    double value = eddy_dtype_load_f64(dtype, source);
    return value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : INT64_MIN;
}

/* An int dtype, saturated. */
static void store_int(eddy_dtype dtype, void *target, int64_t value) {
    size_t bytes = eddy_dtype_bytes(dtype);
    int64_t least, most;
    eddy_dtype_range(dtype, &least, &most);
    value = value < least ? least : value > most ? most : value;
    /* The low bytes of two's complement are the narrow value; converted through each type, for either byte order. */
    switch (bytes) {
    case 1: {
        uint8_t narrow = (uint8_t)value;
        memcpy(target, &narrow, sizeof(narrow));
        break;
    }
    case 2: {
        uint16_t narrow = (uint16_t)value;
        memcpy(target, &narrow, sizeof(narrow));
        break;
    }
    case 4: {
        uint32_t narrow = (uint32_t)value;
        memcpy(target, &narrow, sizeof(narrow));
        break;
    }
    default:
        memcpy(target, &value, sizeof(value));
    }
}

void eddy_dtype_store_f64(eddy_dtype dtype, void *target, double value) {
    EDDY_ASSERT(eddy_dtype_is_valid(dtype));
    if (dtype == EDDY_F32) {
        float narrow = (float)value;
        memcpy(target, &narrow, sizeof(narrow));
    } else if (dtype == EDDY_F64) {
        memcpy(target, &value, sizeof(value));
    } else if (dtype == EDDY_F16 || dtype == EDDY_BF16) {
        uint16_t narrow = dtype == EDDY_F16 ? eddy_f64_to_f16(value) : eddy_f64_to_bf16(value);
        memcpy(target, &narrow, sizeof(narrow));
    } else if (dtype == EDDY_BOOL) {
        uint8_t truth = value != 0;
        memcpy(target, &truth, sizeof(truth));
    } else {
        int64_t whole = isnan(value)      ? 0
                        : value >= 0x1p63 ? INT64_MAX
                        : value < -0x1p63 ? INT64_MIN
                                          : (int64_t)value;
        store_int(dtype, target, whole);
    }
}

/* A double that every format of at most 24 bits of fraction rounds as it would round the integer itself: bits that a double
 * cannot hold become one sticky bit (rounding to odd). */
static double sticky_f64(int64_t value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (magnitude >> 53 != 0)
        magnitude = (magnitude & ~UINT64_C(0x7ff)) | ((magnitude & 0x7ffu) != 0 ? 0x800u : 0u);
    return value < 0 ? -(double)magnitude : (double)magnitude;
}

double eddy_dtype_f64_of_i64(eddy_dtype dtype, int64_t value) {
    return dtype == EDDY_F64 ? (double)value : sticky_f64(value);
}

void eddy_dtype_store_i64(eddy_dtype dtype, void *target, int64_t value) {
    EDDY_ASSERT(eddy_dtype_is_valid(dtype));
    if (eddy_dtype_is_float(dtype))
        eddy_dtype_store_f64(dtype, target, eddy_dtype_f64_of_i64(dtype, value));
    else if (dtype == EDDY_BOOL)
        eddy_dtype_store_f64(dtype, target, value != 0);
    else
        store_int(dtype, target, value);
}

void eddy_dtype_store_scalar(eddy_dtype dtype, void *target, eddy_scalar value) {
    if (value.kind == EDDY_SCALAR_FLOAT)
        eddy_dtype_store_f64(dtype, target, value.value.floating);
    else
        eddy_dtype_store_i64(dtype, target, value.value.integer);
}
