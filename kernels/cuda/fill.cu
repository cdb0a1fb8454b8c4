/* Fills: one element for all, and sequences. */
#include <kernels/cast.h>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/fill.h>

#define FILL(bits)                                                                                 \
    struct fill_##bits {                                                                           \
        static constexpr int lanes = 16;                                                           \
        int##bits##_t element;                                                                     \
        EDDY_CUDA_MEMBER explicit fill_##bits(const uint64_t *attributes)                          \
            : element((int##bits##_t)attributes[0]) {                                              \
        }                                                                                          \
        EDDY_CUDA_MEMBER int##bits##_t operator()() const {                                        \
            return element;                                                                        \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_ELEMENTWISE(eddy_fill_##bits, fill_##bits, eddy_cuda_i##bits)
FILL(8)
FILL(16)
FILL(32)
FILL(64)

/* ---- sequences ---- */

/* The same operations, in double, as on the host: each is rounded once. */
EDDY_SCALAR double value_real(const eddy_cuda_sequence &p, int64_t i) {
    return i < p.near ? p.start + p.step * (double)i : p.end + -p.step * (double)(p.count - 1 - i);
}

EDDY_SCALAR int64_t value_integer(const eddy_cuda_sequence &p, int64_t i) {
    return (int64_t)(p.first + p.each * (uint64_t)i);
}

#define SEQUENCE(name, kind, cast)                                                                 \
    EDDY_CUDA_KERNEL(eddy_sequence_##kind##_##name, eddy_cuda_sequence) {                          \
        const eddy_cuda_sequence &p = parameters;                                                  \
        if (eddy_cuda_is_skipped(p.gate))                                                          \
            return;                                                                                \
        const int64_t step = (int64_t)gridDim.x * blockDim.x;                                      \
        EDDY_CUDA_ROLLED                                                                           \
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step)   \
            *(eddy_cuda_##name::stored *)((char *)p.out + i * p.stride) =                          \
                (eddy_cuda_##name::stored)cast(value_##kind(p, i));                                \
    }
#define SEQUENCES(name, dtype)                                                                     \
    SEQUENCE(name, real, EDDY_CAST_REAL64_TO_##name)                                               \
    SEQUENCE(name, integer, EDDY_CAST_WIDE64_TO_##name)
EDDY_CUDA_SEQUENCES(SEQUENCES)
