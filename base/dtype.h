/* Conversions between dtypes, and their categories. */
#ifndef EDDY_BASE_DTYPE_H
#define EDDY_BASE_DTYPE_H

#include <base/bf16.h>
#include <eddy/dtype.h>
#include <eddy/scalar.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum eddy_dtype_category {
    EDDY_CATEGORY_BOOL,
    EDDY_CATEGORY_INT,
    EDDY_CATEGORY_FLOAT
} eddy_dtype_category;

static inline bool eddy_dtype_is_valid(eddy_dtype dtype) {
    return (unsigned)dtype < EDDY_DTYPE_COUNT;
}

/* eddy_dtype_bytes of a valid dtype, without a call: four bits each. */
static inline int64_t eddy_dtype_size(eddy_dtype dtype) {
#define EDDY_DTYPE_ROW(enumerator, name, bytes) | (UINT64_C(bytes) << 4 * EDDY_##enumerator)
    return (int64_t)((0 EDDY_DTYPE_LIST(EDDY_DTYPE_ROW)) >> 4 * dtype & 15);
#undef EDDY_DTYPE_ROW
}

static inline eddy_dtype_category eddy_dtype_category_of(eddy_dtype dtype) {
    return dtype <= EDDY_BF16   ? EDDY_CATEGORY_FLOAT
           : dtype == EDDY_BOOL ? EDDY_CATEGORY_BOOL
                                : EDDY_CATEGORY_INT;
}

static inline bool eddy_dtype_is_float(eddy_dtype dtype) {
    return dtype <= EDDY_BF16;
}

/* The least and the largest number of an integer dtype. */
void eddy_dtype_range(eddy_dtype dtype, int64_t *least, int64_t *most);

/* The dtype of tensor-with-scalar under PyTorch's rules: the tensor's, unless the scalar's category is higher (bool <
 * int < float); then i64 or f32. */
eddy_dtype eddy_dtype_promote_scalar(eddy_dtype tensor, eddy_scalar_kind scalar);

/* f16 as its 16 bits, as bf16 (base/bf16.h). */
static inline float eddy_f16_to_f32(uint16_t bits) {
    uint32_t magnitude = bits & 0x7fffu;
    /* A subnormal is its fraction times 2^-24: exact, and normal as a float, so that flush-to-zero does no harm. */
    float subnormal = (float)(int32_t)magnitude * 0x1p-24f;
    uint32_t wide;
    memcpy(&wide, &subnormal, sizeof(wide));
    wide = magnitude >= 0x0400u ? (magnitude << 13) + (112u << 23) : wide;
    wide = magnitude >= 0x7c00u ? (magnitude << 13) | 0x7f800000u : wide;
    wide = magnitude > 0x7c00u ? wide | 0x00400000u : wide;
    wide |= ((uint32_t)bits & 0x8000u) << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

static inline uint16_t eddy_f32_to_f16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude + 0x0fffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
    normal = normal > 0x7c00u ? 0x7c00u : normal;
    /* Below 2^-14 the unit is 2^-24, so that a float of exponent e loses 126 - e bits; of 25 or more nothing is left. */
    uint32_t exponent = magnitude >> 23;
    uint32_t lost = exponent < 101u ? 25u : exponent > 112u ? 14u : 126u - exponent;
    uint32_t fraction = (magnitude & 0x007fffffu) | 0x00800000u;
    uint32_t subnormal = (fraction + (1u << (lost - 1)) - 1u + ((fraction >> lost) & 1u)) >> lost;
    uint32_t result = exponent < 113u ? subnormal : normal;
    result = magnitude >= 0x7f800000u ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x03ffu) : result;
    return (uint16_t)(result | (bits >> 16 & 0x8000u));
}

/* From double in one rounding (through float would round twice). */
uint16_t eddy_f64_to_f16(double value);
uint16_t eddy_f64_to_bf16(double value);

/* One element at `source` as a double, an i64 (float to int truncates; NaN and out of range give INT64_MIN), and
 * back (as a C cast does where that is defined; out of range saturates for ints, NaN gives 0; bool is != 0). Floats are
 * rounded once. `source` and `target` need no alignment. */
double eddy_dtype_load_f64(eddy_dtype dtype, const void *source);
int64_t eddy_dtype_load_i64(eddy_dtype dtype, const void *source);
void eddy_dtype_store_f64(eddy_dtype dtype, void *target, double value);
void eddy_dtype_store_i64(eddy_dtype dtype, void *target, int64_t value);
void eddy_dtype_store_scalar(eddy_dtype dtype, void *target, eddy_scalar value);

/* An integer as a double that a float dtype rounds as it would round the integer itself. */
double eddy_dtype_f64_of_i64(eddy_dtype dtype, int64_t value);

#endif
