/* The parts of the generated loops: loads and stores per dtype, and the functions; 16-bit floats go through the loops of f32.
 * Only block files include it. */
#ifndef EDDY_FUNCTIONAL_LOOP_H
#define EDDY_FUNCTIONAL_LOOP_H

#include <base/dtype.h>
#include <kernels/angle.h>
#include <kernels/cpu/half_block.h>
#include <kernels/cpu/stage.h>
#include <kernels/gauss.h>
#include <kernels/math.h>
#include <kernels/power.h>
#include <kernels/scalar.h>
#include <kernels/scalar_functions.h>

#define EDDY_LOOP_INLINE inline __attribute__((always_inline))

/* A target is an operand itself or overlaps none, so iterations do not depend on each other. */
#if defined(__clang__)
#define EDDY_LOOP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define EDDY_LOOP_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Elements that are tested for the quick forms of functions at a time: a few cache lines. */
#define EDDY_LOOP_CHUNK 256

/* Element i of an operand; with a stride that is 0 at compile time, the element loaded before the loop. */
#define EDDY_LOOP_INPUT(tag, pointer, stride, first)                                               \
    (__builtin_constant_p(stride) && (stride) == 0 ? (first)                                       \
                                                   : eddy_load_##tag((pointer) + i * (stride)))

#define EDDY_LOOP_ELEMENT(tag, type)                                                               \
    EDDY_SCALAR type eddy_load_##tag(const char *p) {                                              \
        return *(const type *)(const void *)p;                                                     \
    }                                                                                              \
    EDDY_SCALAR void eddy_store_##tag(char *p, type value) {                                       \
        *(type *)(void *)p = value;                                                                \
    }

EDDY_LOOP_ELEMENT(f32, float)
EDDY_LOOP_ELEMENT(f64, double)
EDDY_LOOP_ELEMENT(i8, int8_t)
EDDY_LOOP_ELEMENT(u8, uint8_t)
EDDY_LOOP_ELEMENT(i16, int16_t)
EDDY_LOOP_ELEMENT(i32, int32_t)
EDDY_LOOP_ELEMENT(i64, int64_t)

EDDY_SCALAR bool eddy_load_truth(const char *p) {
    return *(const uint8_t *)p != 0;
}
EDDY_SCALAR void eddy_store_truth(char *p, bool value) {
    *(uint8_t *)p = value;
}

/* A loop of bf16 with the conversions in it goes over so many elements at a time and leaves the rest to that of f32: it has no code
 * for what is less than a vector. */
#define EDDY_LOOP_WHOLE(count) ((count) & -64)

EDDY_SCALAR float eddy_load_bf16(const char *p) {
    return eddy_bf16_to_f32(*(const uint16_t *)(const void *)p);
}
EDDY_SCALAR void eddy_store_bf16(char *p, float value) {
    *(uint16_t *)(void *)p = eddy_f32_to_bf16(value);
}

#endif
