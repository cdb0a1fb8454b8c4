/* What kernels of losses share: a number by which is divided, and results that are computed in f64. */
#ifndef EDDY_KERNELS_CUDA_LOSS_TOTAL_CUH
#define EDDY_KERNELS_CUDA_LOSS_TOTAL_CUH

#include <kernels/cast.h>
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/loss_total.h>

EDDY_SCALAR double eddy_cuda_divisor_whole(const eddy_cuda_loss_divisor &divisor) {
    if (!divisor.parts)
        return divisor.whole;
    double whole = 0;
    EDDY_CUDA_ROLLED
    for (int64_t i = 0; i < divisor.count; i++)
        whole += divisor.parts[i];
    return whole;
}

/* An element of a dtype that is rounded once from f64. */
#define EDDY_CUDA_LOSS_ELEMENT(of, of_dtype)                                                       \
    struct eddy_cuda_loss_##of : eddy_cuda_##of {                                                  \
        static EDDY_CUDA_MEMBER stored round(double x) {                                           \
            return (stored)EDDY_CAST_PASTE(EDDY_CAST_KIND_f64, of)(x);                             \
        }                                                                                          \
    };
EDDY_CUDA_LOSS_DTYPES(EDDY_CUDA_LOSS_ELEMENT)
#undef EDDY_CUDA_LOSS_ELEMENT

#endif
