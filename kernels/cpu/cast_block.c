/* A hundred loops from two lists. */
#include <kernels/cast.h>
#include <kernels/cpu/cast_block.h>
#include <kernels/cpu/element.h>
#include <kernels/cpu/half_run.h>

#define IS(name, text) (__builtin_strcmp(#name, text) == 0)

/* Halves are converted by the processor where it can. */
#define CAST(from, from_type, to, to_type)                                                         \
    static void from##_to_##to(void *restrict target, const void *restrict source,                 \
                               int64_t count) {                                                    \
        to_type *restrict out = target;                                                            \
        const from_type *restrict in = source;                                                     \
        int64_t i = 0;                                                                             \
        if (IS(from, "f16") && IS(to, "f32"))                                                      \
            i = eddy_half_load_lanes(target, source, count);                                       \
        else if (IS(from, "f32") && IS(to, "f16"))                                                 \
            i = eddy_half_store_lanes(target, source, count);                                      \
        for (; i < count; i++)                                                                     \
            out[i] = (to_type)EDDY_CAST(from, to, in[i]);                                          \
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
