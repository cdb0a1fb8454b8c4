/* sum, prod, max, min, any and all. mean is sum's. */
#include <kernels/cuda/joining.cuh>

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
    struct op##_##of : eddy_cuda_joining_##op<eddy_cuda_type_##compute> {                          \
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
