/* norm: of magnitudes, in f64; those of other orders than 0, 1, 2, infinity and -infinity of their powers. */
#include <kernels/cuda/joining.cuh>
#include <kernels/power.h>

#define TAKE_squares(x) (x) * (x)
#define TAKE_magnitudes(x) eddy_abs_f64(x)
#define TAKE_nonzeros(x) ((x) != 0 ? 1.0 : 0.0)
#define TAKE_max_magnitude(x) eddy_abs_f64(x)
#define TAKE_min_magnitude(x) eddy_abs_f64(x)

#define JOINING_squares eddy_cuda_joining_sum
#define JOINING_magnitudes eddy_cuda_joining_sum
#define JOINING_nonzeros eddy_cuda_joining_sum
#define JOINING_max_magnitude eddy_cuda_joining_max
#define JOINING_min_magnitude eddy_cuda_joining_min

#define NORM(op, of, of_dtype)                                                                     \
    struct op##_##of : JOINING_##op<eddy_cuda_type_f64> {                                          \
        typedef eddy_cuda_##of element;                                                            \
        typedef eddy_cuda_one_sweep<op##_##of> block;                                              \
        typedef element::stored result;                                                            \
        static EDDY_CUDA_MEMBER double take(element::computed x, int64_t) {                        \
            return TAKE_##op((double)x);                                                           \
        }                                                                                          \
        static EDDY_CUDA_MEMBER result store(double x) {                                           \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_f64, of)(x);                             \
        }                                                                                          \
        static EDDY_CUDA_MEMBER double finish(double whole, const eddy_cuda_reduce &p) {           \
            return p.takes_root ? eddy_sqrt_f64(whole) : whole;                                    \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION(eddy_##op##_##of, op##_##of)
EDDY_CUDA_NORMS(NORM)

struct raising {
    double order;
    EDDY_CUDA_MEMBER double operator()(double x, int64_t) const {
        return eddy_pow_f64(eddy_abs_f64(x), order);
    }
};

template <class op> struct raised {
    static EDDY_CUDA_MEMBER double reduce(const eddy_cuda_reduce &p, const eddy_cuda_part &part,
                                          const char *in, int64_t begin, int64_t end) {
        return eddy_cuda_halve<op>(
            p, part, eddy_cuda_strided_lane<op>(p, part, in, begin, end, raising{p.order}));
    }
};

#define POWERS(op, of, of_dtype)                                                                   \
    struct op##_##of : eddy_cuda_joining_sum<eddy_cuda_type_f64> {                                 \
        typedef eddy_cuda_##of element;                                                            \
        typedef raised<op##_##of> block;                                                           \
        typedef element::stored result;                                                            \
        static EDDY_CUDA_MEMBER result store(double x) {                                           \
            return (result)EDDY_CAST_PASTE(EDDY_CAST_KIND_f64, of)(x);                             \
        }                                                                                          \
        static EDDY_CUDA_MEMBER double finish(double whole, const eddy_cuda_reduce &p) {           \
            return eddy_pow_f64(whole, 1 / p.order);                                               \
        }                                                                                          \
    };                                                                                             \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, strided, op##_##of)                               \
    EDDY_CUDA_REDUCTION_KERNEL(eddy_##op##_##of, join, op##_##of)
EDDY_CUDA_POWERS(POWERS)
