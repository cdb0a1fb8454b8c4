/* Fills: one element for all. */
#include <kernels/cuda/elementwise.cuh>

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
