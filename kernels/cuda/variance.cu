/* var and std: of each block the mean, and with it the sum of squared deviations; blocks are merged as Chan, Golub and LeVeque do (kernels/cpu/reduce/reduce_wide_typed.h). */
#include <kernels/cuda/reduce.cuh>

/* Of `count` elements; no elements are joined to nothing. */
struct moments {
    double mean, squares;
    int64_t count;
};
static_assert(sizeof(moments) == EDDY_CUDA_MOMENTS_BYTES,
              "partials are as long as the host takes them to be");

/* Sums in f64, as a sweep over a block needs them. */
template <class source> struct summing {
    typedef source element;
    typedef double value;
    static EDDY_CUDA_MEMBER value nothing() {
        return -0.0;
    }
    static EDDY_CUDA_MEMBER value join(value a, value b) {
        return a + b;
    }
};

struct itself {
    EDDY_CUDA_MEMBER double operator()(double x, int64_t) const {
        return x;
    }
};
struct deviation {
    double mean;
    EDDY_CUDA_MEMBER double operator()(double x, int64_t) const {
        return x - mean;
    }
};
struct squared_deviation {
    double mean;
    EDDY_CUDA_MEMBER double operator()(double x, int64_t) const {
        return (x - mean) * (x - mean);
    }
};

/* f64 needs the mean to be refined, so that the variance of equal elements is 0. */
template <class source, bool is_refined> struct sweeping {
    typedef summing<source> sum;

    template <class taking>
    static EDDY_CUDA_MEMBER double sweep(const eddy_cuda_reduce &p, const eddy_cuda_part &part,
                                         const char *in, int64_t begin, int64_t end, taking take) {
        const double lane = eddy_cuda_strided_lane<sum>(p, part, in, begin, end, take);
        return eddy_cuda_share(part, eddy_cuda_halve<sum>(p, part, lane));
    }
    static EDDY_CUDA_MEMBER moments reduce(const eddy_cuda_reduce &p, const eddy_cuda_part &part,
                                           const char *in, int64_t begin, int64_t end) {
        const double count = (double)(end - begin);
        double mean = sweep(p, part, in, begin, end, itself()) / count;
        if (is_refined)
            mean += sweep(p, part, in, begin, end, deviation{mean}) / count;
        return {mean, sweep(p, part, in, begin, end, squared_deviation{mean}), end - begin};
    }
};

struct merging : eddy_cuda_one_output {
    typedef moments value;
    static EDDY_CUDA_MEMBER value nothing() {
        return {0, 0, 0};
    }
    static EDDY_CUDA_MEMBER value join(value a, value b) {
        if (b.count == 0)
            return a;
        const double share = (double)b.count / (double)(a.count + b.count),
                     weight = (double)a.count * share, apart = b.mean - a.mean;
        return {a.mean + apart * share, a.squares + (b.squares + apart * apart * weight),
                a.count + b.count};
    }
    static EDDY_CUDA_MEMBER value identity() {
        return nothing();
    }
    /* The result is in place of the mean. A divisor below 0 is 0. */
    static EDDY_CUDA_MEMBER value finish(value whole, const eddy_cuda_reduce &p) {
        const double divisor = (double)p.count - p.correction;
        const double variance = whole.squares / (divisor > 0 ? divisor : 0);
        return {p.takes_root ? eddy_sqrt_f64(variance) : variance, 0, 0};
    }
};

#define VARIANCE(op, of, of_dtype)                                                                 \
    struct op##_##of : merging {                                                                   \
        typedef eddy_cuda_##of element;                                                            \
        typedef typename element::stored result;                                                   \
        typedef sweeping<element, sizeof(result) == 8> block;                                      \
        static EDDY_CUDA_MEMBER result store(value x) {                                            \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_f64, of)(x.mean);                        \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, strided, op##_##of)                               \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, join, op##_##of)
EDDY_CUDA_VARIANCES(VARIANCE)
