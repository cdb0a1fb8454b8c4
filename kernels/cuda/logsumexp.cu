/* logsumexp: of each block the largest element and, less that, the sum of e^x; blocks are merged by the larger of their largest (kernels/cpu/reduce/reduce_real_typed.h). */
#include <kernels/cuda/joining.cuh>
#include <kernels/math.h>

EDDY_SCALAR float exponential(float x) {
    return eddy_exp_f32(x);
}
EDDY_SCALAR double exponential(double x) {
    return eddy_exp_f64(x);
}

/* What is subtracted: an infinite or absent number is not, so that e^x gives 0, infinity or NaN. */
template <class real> EDDY_CUDA_MEMBER real shift_of(real largest) {
    return eddy_abs_f64((double)largest) < EDDY_INF_f64 ? largest : 0;
}

/* A sweep over the source's elements, in the type of the results. */
template <class joining, class source> struct sweep : joining { typedef source element; };

struct itself {
    template <class real> EDDY_CUDA_MEMBER real operator()(real x, int64_t) const {
        return x;
    }
};
template <class real> struct power {
    real shift;
    EDDY_CUDA_MEMBER real operator()(real x, int64_t) const {
        return exponential(x - shift);
    }
};

template <class real> struct sum_below { real largest, sum; };

template <class source, class type> struct merging : eddy_cuda_one_output {
    typedef typename type::value real;
    typedef sum_below<real> value;
    typedef sweep<eddy_cuda_joining_max<type>, source> first;
    typedef sweep<eddy_cuda_joining_sum<type>, source> second;

    /* Leaves what it is joined to as it is: its sum is multiplied by 1 or by 0. */
    static EDDY_CUDA_MEMBER value nothing() {
        return {type::lowest(), 0};
    }
    static EDDY_CUDA_MEMBER value identity() {
        return nothing();
    }
    static EDDY_CUDA_MEMBER value reduce(const eddy_cuda_reduce &p, const eddy_cuda_part &part,
                                         const char *in, int64_t begin, int64_t end) {
        const real largest = eddy_cuda_share(
            part, eddy_cuda_halve<first>(
                      p, part, eddy_cuda_strided_lane<first>(p, part, in, begin, end, itself())));
        const power<real> below = {shift_of(largest)};
        return {largest,
                eddy_cuda_halve<second>(
                    p, part, eddy_cuda_strided_lane<second>(p, part, in, begin, end, below))};
    }
    /* The sum that belongs to the larger one is not scaled, so that infinities do not become NaN. */
    static EDDY_CUDA_MEMBER value join(value a, value b) {
        const real larger = eddy_cuda_joining_max<type>::join(a.largest, b.largest);
        const real scale = a.largest == larger ? 1 : exponential(a.largest - larger),
                   other_scale = b.largest == larger ? 1 : exponential(b.largest - larger);
        return {larger, a.sum * scale + b.sum * other_scale};
    }
    /* The result is in place of the largest element; computed in f64, rounded once. */
    static EDDY_CUDA_MEMBER value finish(value whole, const eddy_cuda_reduce &) {
        const double log = eddy_log_f64((double)whole.sum);
        return {(real)((double)shift_of(whole.largest) + log), 0};
    }
};

#define LOG_SUM(op, of, of_dtype, compute)                                                         \
    struct op##_##of : merging<eddy_cuda_##of, eddy_cuda_type_##compute> {                         \
        typedef eddy_cuda_##of element;                                                            \
        typedef op##_##of block;                                                                   \
        typedef element::stored result;                                                            \
        static EDDY_CUDA_MEMBER result store(value x) {                                            \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_##compute, of)(x.largest);               \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, strided, op##_##of)                               \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, join, op##_##of)
EDDY_CUDA_LOG_SUMS(LOG_SUM)
