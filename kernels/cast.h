/* Casts of one element, every dtype to every other: EDDY_CAST(from, to, x). A cast is value-of-source (in the source's compute type), then to-target. For CUDA
 * sources too. */
#ifndef EDDY_KERNELS_CAST_H
#define EDDY_KERNELS_CAST_H

#include <base/bf16.h>
#include <kernels/cpu/half.h>

/* Float to integer: truncates, saturates, NaN is 0. `low` is a power of two or 0, so both it and -low are exact. */
#define EDDY_CAST_SATURATE(type, real, name, wide, low, above, highest)                            \
    EDDY_SCALAR type name(real value) {                                                            \
        real inside = value >= (low) && value < (above) ? value : 0;                               \
        type truncated = (type)(wide)inside;                                                       \
        type saturated = value >= (above) ? (type)(highest) : truncated;                           \
        return value < (low) ? (type)(low) : saturated;                                            \
    }

/* Without AVX-512DQ no vector instruction converts floats to i64. The first branch serves the common case, a float within
 * range. */
#ifdef __AVX512DQ__
#define EDDY_CAST_SATURATE_LONG(real, name)                                                        \
    EDDY_CAST_SATURATE(int64_t, real, name, int64_t, -0x1p63f, 0x1p63f, INT64_MAX)
#else
#define EDDY_CAST_SATURATE_LONG(real, name)                                                        \
    EDDY_SCALAR int64_t name(real value) {                                                         \
        if (value >= -0x1p63f && value < 0x1p63f)                                                  \
            return (int64_t)value;                                                                 \
        return value >= 0x1p63f ? INT64_MAX : value < 0 ? INT64_MIN : 0;                           \
    }
#endif

#define EDDY_CAST_SATURATE_ALL(real, of)                                                           \
    EDDY_CAST_SATURATE(int8_t, real, of##_to_i8, int32_t, -0x1p7f, 0x1p7f, INT8_MAX)               \
    EDDY_CAST_SATURATE(uint8_t, real, of##_to_u8, int32_t, 0.0f, 0x1p8f, UINT8_MAX)                \
    EDDY_CAST_SATURATE(int16_t, real, of##_to_i16, int32_t, -0x1p15f, 0x1p15f, INT16_MAX)          \
    EDDY_CAST_SATURATE(int32_t, real, of##_to_i32, int32_t, -0x1p31f, 0x1p31f, INT32_MAX)          \
    EDDY_CAST_SATURATE_LONG(real, of##_to_i64)

EDDY_CAST_SATURATE_ALL(float, eddy_f32)
EDDY_CAST_SATURATE_ALL(double, eddy_f64)

/* Value of a source element, and its compute type's tag. */
#define EDDY_CAST_VALUE_f32(x) (x)
#define EDDY_CAST_VALUE_f64(x) (x)
#define EDDY_CAST_VALUE_f16(x) eddy_half_load(x)
#define EDDY_CAST_VALUE_bf16(x) eddy_bf16_to_f32(x)
#define EDDY_CAST_VALUE_i8(x) (x)
#define EDDY_CAST_VALUE_u8(x) (x)
#define EDDY_CAST_VALUE_i16(x) (x)
#define EDDY_CAST_VALUE_i32(x) (x)
#define EDDY_CAST_VALUE_i64(x) (x)
#define EDDY_CAST_VALUE_truth(x) ((bool)((x) != 0))

#define EDDY_CAST_KIND_f32 REAL32
#define EDDY_CAST_KIND_f64 REAL64
#define EDDY_CAST_KIND_f16 REAL32
#define EDDY_CAST_KIND_bf16 REAL32
#define EDDY_CAST_KIND_i8 SMALL
#define EDDY_CAST_KIND_u8 SMALL
#define EDDY_CAST_KIND_i16 SMALL
#define EDDY_CAST_KIND_i32 WIDE32
#define EDDY_CAST_KIND_i64 WIDE64
#define EDDY_CAST_KIND_truth TRUTH

#define EDDY_CAST_REAL32_TO_f32(v) (v)
#define EDDY_CAST_REAL32_TO_f64(v) ((double)(v))
#define EDDY_CAST_REAL32_TO_f16(v) eddy_half_store(v)
#define EDDY_CAST_REAL32_TO_bf16(v) eddy_f32_to_bf16(v)
#define EDDY_CAST_REAL32_TO_i8(v) eddy_f32_to_i8(v)
#define EDDY_CAST_REAL32_TO_u8(v) eddy_f32_to_u8(v)
#define EDDY_CAST_REAL32_TO_i16(v) eddy_f32_to_i16(v)
#define EDDY_CAST_REAL32_TO_i32(v) eddy_f32_to_i32(v)
#define EDDY_CAST_REAL32_TO_i64(v) eddy_f32_to_i64(v)
#define EDDY_CAST_REAL32_TO_truth(v) ((v) != 0)

#define EDDY_CAST_REAL64_TO_f32(v) ((float)(v))
#define EDDY_CAST_REAL64_TO_f64(v) (v)
#define EDDY_CAST_REAL64_TO_f16(v) eddy_half_store(eddy_f32_round_to_odd(v))
#define EDDY_CAST_REAL64_TO_bf16(v) eddy_f32_to_bf16(eddy_f32_round_to_odd(v))
#define EDDY_CAST_REAL64_TO_i8(v) eddy_f64_to_i8(v)
#define EDDY_CAST_REAL64_TO_u8(v) eddy_f64_to_u8(v)
#define EDDY_CAST_REAL64_TO_i16(v) eddy_f64_to_i16(v)
#define EDDY_CAST_REAL64_TO_i32(v) eddy_f64_to_i32(v)
#define EDDY_CAST_REAL64_TO_i64(v) eddy_f64_to_i64(v)
#define EDDY_CAST_REAL64_TO_truth(v) ((v) != 0)

/* An integer that is finite in f16 is exact in f32, so it is rounded once. For bf16 this holds for integers of up to 24 bits; wider ones are first rounded to
 * odd. For bool, the bits of 1 or 0 are selected. */
#define EDDY_CAST_SMALL_TO_bf16(v) eddy_f32_to_bf16((float)(v))
#define EDDY_CAST_WIDE32_TO_bf16(v) eddy_f32_to_bf16(eddy_f32_round_to_odd((double)(v)))
#define EDDY_CAST_WIDE64_TO_bf16(v) eddy_f32_to_bf16(eddy_f32_round_to_odd(eddy_f64_of_i64(v)))
#define EDDY_CAST_TRUTH_TO_bf16(v) ((v) ? 0x3f80 : 0)
#define EDDY_CAST_SMALL_TO_f16(v) eddy_half_store((float)(v))
#define EDDY_CAST_SMALL_TO_f32(v) ((float)(v))
#define EDDY_CAST_SMALL_TO_f64(v) ((double)(v))
#define EDDY_CAST_SMALL_TO_i8(v) ((int8_t)(v))
#define EDDY_CAST_SMALL_TO_u8(v) ((uint8_t)(v))
#define EDDY_CAST_SMALL_TO_i16(v) ((int16_t)(v))
#define EDDY_CAST_SMALL_TO_i32(v) ((int32_t)(v))
#define EDDY_CAST_SMALL_TO_i64(v) ((int64_t)(v))
#define EDDY_CAST_SMALL_TO_truth(v) ((v) != 0)
#define EDDY_CAST_WIDE32_TO_f16(v) eddy_half_store((float)(v))
#define EDDY_CAST_WIDE32_TO_f32(v) ((float)(v))
#define EDDY_CAST_WIDE32_TO_f64(v) ((double)(v))
#define EDDY_CAST_WIDE32_TO_i8(v) ((int8_t)(v))
#define EDDY_CAST_WIDE32_TO_u8(v) ((uint8_t)(v))
#define EDDY_CAST_WIDE32_TO_i16(v) ((int16_t)(v))
#define EDDY_CAST_WIDE32_TO_i32(v) ((int32_t)(v))
#define EDDY_CAST_WIDE32_TO_i64(v) ((int64_t)(v))
#define EDDY_CAST_WIDE32_TO_truth(v) ((v) != 0)
#define EDDY_CAST_WIDE64_TO_f16(v) eddy_half_store((float)(v))
#define EDDY_CAST_WIDE64_TO_f32(v) ((float)(v))
#define EDDY_CAST_WIDE64_TO_f64(v) ((double)(v))
#define EDDY_CAST_WIDE64_TO_i8(v) ((int8_t)(v))
#define EDDY_CAST_WIDE64_TO_u8(v) ((uint8_t)(v))
#define EDDY_CAST_WIDE64_TO_i16(v) ((int16_t)(v))
#define EDDY_CAST_WIDE64_TO_i32(v) ((int32_t)(v))
#define EDDY_CAST_WIDE64_TO_i64(v) ((int64_t)(v))
#define EDDY_CAST_WIDE64_TO_truth(v) ((v) != 0)
#define EDDY_CAST_TRUTH_TO_f16(v) ((v) ? 0x3c00 : 0)
#define EDDY_CAST_TRUTH_TO_f32(v) ((float)(v))
#define EDDY_CAST_TRUTH_TO_f64(v) ((double)(v))
#define EDDY_CAST_TRUTH_TO_i8(v) ((int8_t)(v))
#define EDDY_CAST_TRUTH_TO_u8(v) ((uint8_t)(v))
#define EDDY_CAST_TRUTH_TO_i16(v) ((int16_t)(v))
#define EDDY_CAST_TRUTH_TO_i32(v) ((int32_t)(v))
#define EDDY_CAST_TRUTH_TO_i64(v) ((int64_t)(v))
#define EDDY_CAST_TRUTH_TO_truth(v) ((v) != 0)

#define EDDY_CAST_PASTE_(kind, to) EDDY_CAST_##kind##_TO_##to
#define EDDY_CAST_PASTE(kind, to) EDDY_CAST_PASTE_(kind, to)
/* Of the dtypes' names in kernels/cpu/element.h. */
#define EDDY_CAST(from, to, x) EDDY_CAST_PASTE(EDDY_CAST_KIND_##from, to)(EDDY_CAST_VALUE_##from(x))

#endif
