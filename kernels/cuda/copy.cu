/* Copies, and casts for each pair of dtypes. */
#include <kernels/cuda/cast.cuh>
#include <kernels/cuda/copy.h>

#define CAST(from, from_dtype, to, to_dtype)                                                       \
    EDDY_CUDA_CAST(from, to)                                                                       \
    EDDY_CUDA_ELEMENTWISE(eddy_cast_##from##_##to, cast_##from##_##to,                             \
                          eddy_cuda_as_stored<eddy_cuda_##to>, eddy_cuda_##from)
EDDY_CUDA_CASTS(CAST)

#define MOVE(bits)                                                                                 \
    struct move_##bits {                                                                           \
        static constexpr int lanes = 16;                                                           \
        EDDY_CUDA_MEMBER explicit move_##bits(const uint64_t *) {                                  \
        }                                                                                          \
        EDDY_CUDA_MEMBER int##bits##_t operator()(int##bits##_t x) const {                         \
            return x;                                                                              \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_ELEMENTWISE(eddy_move_##bits, move_##bits, eddy_cuda_i##bits, eddy_cuda_i##bits)
EDDY_CUDA_MOVES(MOVE)
