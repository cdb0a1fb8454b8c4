/* Sequences on CUDA devices: which kernels there are, and what they get (fill.cu, fill.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_FILL_H
#define EDDY_KERNELS_CUDA_FILL_H

#include <kernels/cuda/parameters.h>

/* Every dtype of numbers, name and enumerator of each: eddy_sequence_real_<name> computes in f64, eddy_sequence_integer_<name> in i64. */
#define EDDY_CUDA_SEQUENCES(row)                                                                   \
    row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16) row(i8, I8) row(u8, U8)              \
        row(i16, I16) row(i32, I32) row(i64, I64)

/* Value i is start + step i, from `near` on end - step (count - 1 - i); or first + each i, which wraps around. */
typedef struct eddy_cuda_sequence {
    eddy_cuda_gate gate;
    void *out;
    int64_t count, stride; /* in bytes */
    int64_t near;
    double start, step, end;
    uint64_t first, each;
} eddy_cuda_sequence;

#endif
