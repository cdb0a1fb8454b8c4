/* Casts as ops of one input: the words of kernels/cast.h, for a pair of dtypes. */
#ifndef EDDY_KERNELS_CUDA_CAST_CUH
#define EDDY_KERNELS_CUDA_CAST_CUH

#include <kernels/cast.h>
#include <kernels/cuda/elementwise.cuh>

/* The element as it is stored: what a cast writes. */
template <class element> struct eddy_cuda_as_stored {
    typedef typename element::stored stored, computed;
    static EDDY_CUDA_MEMBER computed load(stored x) {
        return x;
    }
    static EDDY_CUDA_MEMBER stored store(computed x) {
        return x;
    }
};

/* struct cast_<from>_<to> */
#define EDDY_CUDA_CAST(from, to)                                                                   \
    struct cast_##from##_##to {                                                                    \
        static constexpr int lanes = 4;                                                            \
        EDDY_CUDA_MEMBER explicit cast_##from##_##to(const uint64_t *) {                           \
        }                                                                                          \
        EDDY_CUDA_MEMBER eddy_cuda_##to::stored operator()(eddy_cuda_##from::computed x) const {   \
            return (eddy_cuda_##to::stored)EDDY_CAST_PASTE(EDDY_CAST_KIND_##from, to)(x);          \
        }                                                                                          \
    };

#endif
