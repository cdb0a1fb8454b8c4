/* Elements replaced by a mask. */
#include <kernels/cuda/elementwise.cuh>

#define MASKED_FILL(bits)                                                                          \
    struct masked_fill_##bits {                                                                    \
        static constexpr int lanes = 16;                                                           \
        int##bits##_t element;                                                                     \
        EDDY_CUDA_MEMBER explicit masked_fill_##bits(const uint64_t *attributes)                   \
            : element((int##bits##_t)attributes[0]) {                                              \
        }                                                                                          \
        EDDY_CUDA_MEMBER int##bits##_t operator()(int##bits##_t x, bool is_masked) const {         \
            return is_masked ? element : x;                                                        \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_ELEMENTWISE(eddy_masked_fill_##bits, masked_fill_##bits, eddy_cuda_i##bits,          \
                          eddy_cuda_i##bits, eddy_cuda_truth)
MASKED_FILL(8)
MASKED_FILL(16)
MASKED_FILL(32)
MASKED_FILL(64)
