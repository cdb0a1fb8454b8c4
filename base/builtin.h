/* What scalar functions take from the compiler, under one name in C, C++17, nvcc and NVRTC: the specifiers of a function and of a table,
 * the bits of floats, and the arithmetic of IEEE 754 that has no operator, eddy_<function>_<type>. */
#ifndef EDDY_BASE_BUILTIN_H
#define EDDY_BASE_BUILTIN_H

#ifdef __CUDACC_RTC__
/* NVRTC has no headers. */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef uint64_t uintptr_t;
#define INT8_MAX 0x7f
#define UINT8_MAX 0xff
#define INT16_MAX 0x7fff
#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#define INT64_C(value) value##ll
#define UINT64_C(value) value##ull
#else
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

/* In CUDA sources they are the device's alone. A compiler that has built-in functions of these names in device code calls them without a
 * prefix. */
#ifdef __CUDACC__
#define EDDY_SCALAR static inline __device__ __attribute__((always_inline, unused))
#define EDDY_SCALAR_TABLE static __device__ const
#define EDDY_BUILTIN(name) name
#else
#define EDDY_SCALAR static inline __attribute__((always_inline, unused))
#define EDDY_SCALAR_TABLE static const __attribute__((unused))
#define EDDY_BUILTIN(name) __builtin_##name
#endif

/* Constants rather than functions: compilers make a selection of these, but a branch of a call. */
#ifdef __CUDACC__
#define EDDY_INF_f32 eddy_f32_of_bits(0x7f800000u)
#define EDDY_INF_f64 eddy_f64_of_bits(0x7ff0000000000000u)
#define EDDY_NAN_f32 eddy_f32_of_bits(0x7fc00000u)
#define EDDY_NAN_f64 eddy_f64_of_bits(0x7ff8000000000000u)
#else
#define EDDY_INF_f32 __builtin_inff()
#define EDDY_INF_f64 __builtin_inf()
#define EDDY_NAN_f32 __builtin_nanf("")
#define EDDY_NAN_f64 __builtin_nan("")
#endif

/* round: half to even. fmod is exact. */
#define EDDY_BUILTINS(tag, type, bits_type, suffix)                                                \
    EDDY_SCALAR bits_type eddy_bits_of_##tag(type value) {                                         \
        bits_type bits;                                                                            \
        memcpy(&bits, &value, sizeof(bits));                                                       \
        return bits;                                                                               \
    }                                                                                              \
    EDDY_SCALAR type eddy_##tag##_of_bits(bits_type bits) {                                        \
        type value;                                                                                \
        memcpy(&value, &bits, sizeof(value));                                                      \
        return value;                                                                              \
    }                                                                                              \
    EDDY_SCALAR type eddy_abs_##tag(type a) {                                                      \
        return EDDY_BUILTIN(fabs##suffix)(a);                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_sqrt_##tag(type a) {                                                     \
        return EDDY_BUILTIN(sqrt##suffix)(a);                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_fma_##tag(type a, type b, type c) {                                      \
        return EDDY_BUILTIN(fma##suffix)(a, b, c);                                                 \
    }                                                                                              \
    EDDY_SCALAR type eddy_floor_##tag(type a) {                                                    \
        return EDDY_BUILTIN(floor##suffix)(a);                                                     \
    }                                                                                              \
    EDDY_SCALAR type eddy_ceil_##tag(type a) {                                                     \
        return EDDY_BUILTIN(ceil##suffix)(a);                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_round_##tag(type a) {                                                    \
        return EDDY_BUILTIN(rint##suffix)(a);                                                      \
    }                                                                                              \
    EDDY_SCALAR type eddy_fmod_##tag(type a, type b) {                                             \
        return EDDY_BUILTIN(fmod##suffix)(a, b);                                                   \
    }                                                                                              \
    EDDY_SCALAR type eddy_copysign_##tag(type a, type sign) {                                      \
        return EDDY_BUILTIN(copysign##suffix)(a, sign);                                            \
    }

EDDY_BUILTINS(f32, float, uint32_t, f)
EDDY_BUILTINS(f64, double, uint64_t, )
#undef EDDY_BUILTINS

#endif
