/* Copies and casts: the words of kernels/cast.h, for each pair of dtypes. */
#include <kernels/cast.h>
#include <kernels/cuda/copy.h>
#include <kernels/cuda/elementwise.cuh>

/* What a cast writes is the element as it is stored. */
template <class element> struct as_stored {
    typedef typename element::stored stored, computed;
    static EDDY_CUDA_MEMBER stored store(computed x) {
        return x;
    }
};

#define CAST(from, from_dtype, to, to_dtype)                                                       \
    struct cast_##from##_##to {                                                                    \
        static constexpr int lanes = 4;                                                            \
        EDDY_CUDA_MEMBER explicit cast_##from##_##to(const uint64_t *) {                           \
        }                                                                                          \
        EDDY_CUDA_MEMBER eddy_cuda_##to::stored operator()(eddy_cuda_##from::computed x) const {   \
            return (eddy_cuda_##to::stored)EDDY_CAST_PASTE(EDDY_CAST_KIND_##from, to)(x);          \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_ELEMENTWISE(eddy_cast_##from##_##to, cast_##from##_##to, as_stored<eddy_cuda_##to>,  \
                          eddy_cuda_##from)
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
