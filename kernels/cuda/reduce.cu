/* sum, prod, max, min, any and all. mean is sum's. */
#include <kernels/cuda/reduce.cuh>

/* ---- how two values become one, in a compute type ---- */

template <class type> EDDY_CUDA_MEMBER bool is_nan(type x) {
    return x != x;
}

#define JOINING(name, nothing_value, identity_value, join_expression)                              \
    template <class type> struct joining_##name {                                                  \
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
JOINING(sum, -0.0, 0, (wrapping)a + (wrapping)b)
JOINING(prod, 1, 1, (wrapping)a *(wrapping)b)
/* The first of equals, and NaN before all others. Of no elements there is none. */
JOINING(max, type::lowest(), type::lowest(), a >= b || is_nan(a) ? a : b)
JOINING(min, type::highest(), type::highest(), a <= b || is_nan(a) ? a : b)
JOINING(any, 0, 0, a | b)
JOINING(all, 1, 1, a &b)

/* ---- the kernels ---- */

/* Sums of integers have no mean. */
EDDY_SCALAR float divide_by(float sum, int64_t count) {
    return sum / (float)count;
}
EDDY_SCALAR double divide_by(double sum, int64_t count) {
    return sum / (double)count;
}
EDDY_SCALAR int64_t divide_by(int64_t sum, int64_t) {
    return sum;
}
EDDY_SCALAR int32_t divide_by(int32_t sum, int64_t) {
    return sum;
}

#define TAKE_f32(x) (float)(x)
#define TAKE_f64(x) (double)(x)
#define TAKE_i64(x) (int64_t)(x)
#define TAKE_truth(x) (int32_t)((x) != 0)

#define REDUCTION(op, of, of_dtype, compute, result_type)                                          \
    struct op##_##of : joining_##op<eddy_cuda_type_##compute> {                                    \
        typedef eddy_cuda_##of element;                                                            \
        typedef eddy_cuda_one_sweep<op##_##of> block;                                              \
        typedef eddy_cuda_##result_type::stored result;                                            \
        static EDDY_CUDA_MEMBER value take(typename element::computed x, int64_t) {                \
            return TAKE_##compute(x);                                                              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER result store(value x) {                                            \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_##compute, result_type)(x);              \
        }                                                                                          \
        static EDDY_CUDA_MEMBER value finish(value whole, const eddy_cuda_reduce &p) {             \
            return p.is_mean ? divide_by(whole, p.count) : whole;                                  \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION(eddy_##op##_##of, op##_##of)
EDDY_CUDA_REDUCTIONS(REDUCTION)
