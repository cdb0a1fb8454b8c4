/* What equal and allclose touch. */
#include <kernels/cuda/compare.h>
#include <kernels/cuda/parameters.h>
#include <tests/fake_cuda/kernels/touches.h>

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_u8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4,
                     bytes_of_i64 = 8, bytes_of_truth = 1;

static void touch_dense(const eddy_cuda_dense &p, int64_t bytes, touch_fn *say, void *context) {
    for (int side = 0; side < EDDY_CUDA_COMPARE_ANSWER; side++)
        say(context, p.data[side], (size_t)((p.broadcast >> side & 1 ? 1 : p.count) * bytes),
            false);
    say(context, p.data[EDDY_CUDA_COMPARE_ANSWER], 1, true);
}

static void touch_strided(const eddy_cuda_strided &p, int64_t bytes, touch_fn *say, void *context) {
    for (int side = 0; side < EDDY_CUDA_COMPARE_ANSWER; side++) {
        range all = {0, bytes};
        for (int d = 0; d < p.rank; d++)
            all.reach((int64_t)p.dims[d].divisor - 1, p.strides[side][d]);
        all.touch(say, context, p.data[side], false);
    }
    say(context, p.data[EDDY_CUDA_COMPARE_ANSWER], 1, true);
}

#define COMPARED(name, dtype)                                                                      \
    TOUCHES(eddy_equal_##name##_dense, eddy_cuda_dense, touch_dense, bytes_of_##name)              \
    TOUCHES(eddy_equal_##name##_strided, eddy_cuda_strided, touch_strided, bytes_of_##name)        \
    TOUCHES(eddy_allclose_##name##_dense, eddy_cuda_dense, touch_dense, bytes_of_##name)           \
    TOUCHES(eddy_allclose_##name##_strided, eddy_cuda_strided, touch_strided, bytes_of_##name)
EDDY_CUDA_COMPARED(COMPARED)
