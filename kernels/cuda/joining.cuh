/* How two values become one, in a compute type: what ops of one sweep are made of. */
#ifndef EDDY_KERNELS_CUDA_JOINING_CUH
#define EDDY_KERNELS_CUDA_JOINING_CUH

#include <kernels/cuda/reduce.cuh>

template <class type> EDDY_CUDA_MEMBER bool eddy_cuda_is_nan(type x) {
    return x != x;
}

#define EDDY_CUDA_JOINING(name, nothing_value, identity_value, join_expression)                    \
    template <class type> struct eddy_cuda_joining_##name : eddy_cuda_one_output {                 \
        typedef typename type::value value;                                                        \
        typedef typename type::wrapping wrapping;                                                  \
        static EDDY_CUDA_MEMBER value nothing() {                                                  \
            return (value)(nothing_value);                                                         \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value identity() {                                                 \
            return (value)(identity_value);                                                        \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value join(value a, value b) {                                     \
            return (value)(join_expression);                                                       \
        }                                                                                          \
    };
EDDY_CUDA_JOINING(sum, -0.0, 0, (wrapping)a + (wrapping)b)
EDDY_CUDA_JOINING(prod, 1, 1, (wrapping)a *(wrapping)b)
/* The first of equals, and NaN before all others. Of no elements there is none. */
EDDY_CUDA_JOINING(max, type::lowest(), type::lowest(), a >= b || eddy_cuda_is_nan(a) ? a : b)
EDDY_CUDA_JOINING(min, type::highest(), type::highest(), a <= b || eddy_cuda_is_nan(a) ? a : b)
EDDY_CUDA_JOINING(any, 0, 0, a | b)
EDDY_CUDA_JOINING(all, 1, 1, a &b)
#undef EDDY_CUDA_JOINING

#endif
