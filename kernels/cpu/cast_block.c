/* A hundred loops from two lists. A cast is value-of-source (in the source's compute type), then to-target. */
#include <base/dtype.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/element.h>
#include <kernels/cpu/half.h>

/* Float to integer: truncates, saturates, NaN is 0. `low` is a power of two or 0, so both it and -low are exact. */
#define SATURATE(type, real, name, wide, low, above, highest)                                      \
    static inline type name(real value) {                                                          \
        real inside = value >= (low) && value < (above) ? value : 0;                               \
        type truncated = (type)(wide)inside;                                                       \
        type saturated = value >= (above) ? (type)(highest) : truncated;                           \
        return value < (low) ? (type)(low) : saturated;                                            \
    }

/* Without AVX-512DQ no vector instruction converts floats to i64. The first branch serves the common case, a float within
 * range. */
#ifdef __AVX512DQ__
#define SATURATE_LONG(real, name)                                                                  \
    SATURATE(int64_t, real, name, int64_t, -0x1p63f, 0x1p63f, INT64_MAX)
#else
#define SATURATE_LONG(real, name)                                                                  \
    static inline int64_t name(real value) {                                                       \
        if (value >= -0x1p63f && value < 0x1p63f)                                                  \
            return (int64_t)value;                                                                 \
        return value >= 0x1p63f ? INT64_MAX : value < 0 ? INT64_MIN : 0;                           \
    }
#endif

#define SATURATE_ALL(real, of)                                                                     \
    SATURATE(int8_t, real, of##_to_i8, int32_t, -0x1p7f, 0x1p7f, INT8_MAX)                         \
    SATURATE(uint8_t, real, of##_to_u8, int32_t, 0.0f, 0x1p8f, UINT8_MAX)                          \
    SATURATE(int16_t, real, of##_to_i16, int32_t, -0x1p15f, 0x1p15f, INT16_MAX)                    \
    SATURATE(int32_t, real, of##_to_i32, int32_t, -0x1p31f, 0x1p31f, INT32_MAX)                    \
    SATURATE_LONG(real, of##_to_i64)

SATURATE_ALL(float, real32)
SATURATE_ALL(double, real64)

/* Value of a source element, and its compute type's tag. */
#define VALUE_f32(x) (x)
#define VALUE_f64(x) (x)
#define VALUE_f16(x) eddy_half_load(x)
#define VALUE_bf16(x) eddy_bf16_to_f32(x)
#define VALUE_i8(x) (x)
#define VALUE_u8(x) (x)
#define VALUE_i16(x) (x)
#define VALUE_i32(x) (x)
#define VALUE_i64(x) (x)
#define VALUE_truth(x) ((bool)((x) != 0))

#define KIND_f32 REAL32
#define KIND_f64 REAL64
#define KIND_f16 REAL32
#define KIND_bf16 REAL32
#define KIND_i8 INTEGER
#define KIND_u8 INTEGER
#define KIND_i16 INTEGER
#define KIND_i32 INTEGER
#define KIND_i64 INTEGER
#define KIND_truth INTEGER

#define REAL32_TO_f32(v) (v)
#define REAL32_TO_f64(v) ((double)(v))
#define REAL32_TO_f16(v) eddy_half_store(v)
#define REAL32_TO_bf16(v) eddy_f32_to_bf16(v)
#define REAL32_TO_i8(v) real32_to_i8(v)
#define REAL32_TO_u8(v) real32_to_u8(v)
#define REAL32_TO_i16(v) real32_to_i16(v)
#define REAL32_TO_i32(v) real32_to_i32(v)
#define REAL32_TO_i64(v) real32_to_i64(v)
#define REAL32_TO_truth(v) ((v) != 0)

#define REAL64_TO_f32(v) ((float)(v))
#define REAL64_TO_f64(v) (v)
#define REAL64_TO_f16(v) eddy_half_store(eddy_f32_round_to_odd(v))
#define REAL64_TO_bf16(v) eddy_f32_to_bf16(eddy_f32_round_to_odd(v))
#define REAL64_TO_i8(v) real64_to_i8(v)
#define REAL64_TO_u8(v) real64_to_u8(v)
#define REAL64_TO_i16(v) real64_to_i16(v)
#define REAL64_TO_i32(v) real64_to_i32(v)
#define REAL64_TO_i64(v) real64_to_i64(v)
#define REAL64_TO_truth(v) ((v) != 0)

#define INTEGER_TO_f32(v) ((float)(v))
#define INTEGER_TO_f64(v) ((double)(v))
/* An integer that is finite in f16 is exact in f32, so it is rounded once. For bf16 this holds for integers of up to 24
 * bits; wider ones are first rounded to odd. For bool, the bits of 1 or 0 are selected. */
/* clang-format off */
#define INTEGER_TO_f16(v)                                                                                              \
    _Generic((v), bool: (v) ? 0x3c00 : 0, default: eddy_half_store((float)(v)))
#define INTEGER_TO_bf16(v)                                                                                             \
    _Generic((v), bool: (v) ? 0x3f80 : 0, default: eddy_f32_to_bf16(_Generic((v),                                      \
        int32_t: eddy_f32_round_to_odd((double)(v)), int64_t: eddy_f32_round_to_odd(eddy_f64_of_i64(v)),               \
        default: (float)(v))))
/* clang-format on */
#define INTEGER_TO_i8(v) ((int8_t)(v))
#define INTEGER_TO_u8(v) ((uint8_t)(v))
#define INTEGER_TO_i16(v) ((int16_t)(v))
#define INTEGER_TO_i32(v) ((int32_t)(v))
#define INTEGER_TO_i64(v) ((int64_t)(v))
#define INTEGER_TO_truth(v) ((v) != 0)

#define PASTE_(kind, to) kind##_TO_##to
#define PASTE(kind, to) PASTE_(kind, to)

#define CAST(from, from_type, to, to_type)                                                         \
    static void from##_to_##to(void *restrict target, const void *restrict source,                 \
                               int64_t count) {                                                    \
        to_type *restrict out = target;                                                            \
        const from_type *restrict in = source;                                                     \
        for (int64_t i = 0; i < count; i++)                                                        \
            out[i] = (to_type)PASTE(KIND_##from, to)(VALUE_##from(in[i]));                         \
    }

#define CASTS_FROM(from, type)                                                                     \
    CAST(from, type, f32, float)                                                                   \
    CAST(from, type, f64, double)                                                                  \
    CAST(from, type, f16, uint16_t)                                                                \
    CAST(from, type, bf16, uint16_t)                                                               \
    CAST(from, type, i8, int8_t)                                                                   \
    CAST(from, type, u8, uint8_t)                                                                  \
    CAST(from, type, i16, int16_t)                                                                 \
    CAST(from, type, i32, int32_t)                                                                 \
    CAST(from, type, i64, int64_t)                                                                 \
    CAST(from, type, truth, uint8_t)

#define ROW(enumerator, name, type) CASTS_FROM(name, type)
EDDY_ELEMENT_LIST(ROW)
#undef ROW

#define TO(enumerator, to)                                                                         \
    [EDDY_##enumerator] = {f32_to_##to, f64_to_##to, f16_to_##to, bf16_to_##to, i8_to_##to,        \
                           u8_to_##to,  i16_to_##to, i32_to_##to, i64_to_##to,  truth_to_##to},
#define ROW(enumerator, name, type) TO(enumerator, name)
const eddy_cast_blocks EDDY_ISA_NAME(eddy_cpu_cast_blocks) = {.cast = {EDDY_ELEMENT_LIST(ROW)}};
#undef ROW
