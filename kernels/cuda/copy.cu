/* Copies and casts: the words of kernels/cast.h, for each pair of dtypes. */
#include <kernels/cast.h>
#include <kernels/cuda/copy.h>
#include <kernels/cuda/elementwise.cuh>

/* What is written is the element's bits. */
typedef eddy_cuda_f32 written_f32;
typedef eddy_cuda_f64 written_f64;
typedef eddy_cuda_i16 written_f16;
typedef eddy_cuda_i16 written_bf16;
typedef eddy_cuda_i8 written_i8;
typedef eddy_cuda_u8 written_u8;
typedef eddy_cuda_i16 written_i16;
typedef eddy_cuda_i32 written_i32;
typedef eddy_cuda_i64 written_i64;
typedef eddy_cuda_u8 written_truth;

#define CAST(from, from_dtype, to, to_dtype)                                                                             \
    struct cast_##from##_##to {                                                                    \
        static constexpr int lanes = 4;                                                            \
        EDDY_CUDA_MEMBER explicit cast_##from##_##to(const uint64_t *) {                           \
        }                                                                                          \
        EDDY_CUDA_MEMBER written_##to::computed operator()(eddy_cuda_##from::computed x) const {   \
            return (written_##to::computed)EDDY_CAST_PASTE(EDDY_CAST_KIND_##from, to)(x);          \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_ELEMENTWISE(eddy_cast_##from##_##to, cast_##from##_##to, written_##to,               \
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
