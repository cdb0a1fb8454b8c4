/* What pools and interpolate touch. */
#include <kernels/cuda/interpolate.h>
#include <kernels/cuda/pool.h>
#include <tests/fake_cuda/kernels/planes_touches.h>

static void touch_pool(const eddy_cuda_pool &p, int64_t bytes, touch_fn *say, void *context) {
    touch_planes(p.image, bytes, false, say, context);
    touch_planes(p.small, bytes, true, say, context);
    touch_planes(p.indices, 8, true, say, context);
}

static void touch_gradient(const eddy_cuda_pool &p, int64_t bytes, touch_fn *say, void *context) {
    touch_planes(p.small, bytes, false, say, context);
    touch_planes(p.x, bytes, false, say, context);
    touch_planes(p.indices, 8, false, say, context);
    touch_planes(p.image, bytes, true, say, context);
}

static void touch_put(const eddy_cuda_pool_put &p, int64_t bytes, touch_fn *say, void *context) {
    touch_planes(p.grad, bytes, false, say, context);
    touch_planes(p.indices, p.is_wide ? 8 : 4, false, say, context);
    touch_planes(p.ground, bytes == 2 ? 4 : bytes, true, say, context);
}

static void touch_taps(const eddy_cuda_taps &p, int64_t bytes, touch_fn *say, void *context) {
    say(context, p.taps, (size_t)((p.rows.out + p.columns.out) * bytes), true);
}

static void touch_resizing(const eddy_cuda_resizing &p, int64_t bytes, bool is_back, touch_fn *say,
                           void *context) {
    const size_t rows = (size_t)p.large.sizes[EDDY_CUDA_ROW] * sizeof(eddy_tap),
                 columns = (size_t)p.large.sizes[EDDY_CUDA_COLUMN] * sizeof(eddy_tap);
    say(context, p.rows, rows, false);
    say(context, p.columns, columns, false);
    touch_planes(p.small, bytes, is_back, say, context);
    touch_planes(p.large, bytes, !is_back, say, context);
}

static const int64_t bytes_of_f32 = 4, bytes_of_f64 = 8, bytes_of_f16 = 2, bytes_of_bf16 = 2,
                     bytes_of_i8 = 1, bytes_of_u8 = 1, bytes_of_i16 = 2, bytes_of_i32 = 4,
                     bytes_of_i64 = 8, bytes_of_truth = 1;
#define MAX(name, dtype) TOUCHES(eddy_max_pool_##name, eddy_cuda_pool, touch_pool, bytes_of_##name)
EDDY_CUDA_POOL_DTYPES(MAX)
#define FLOATS(name, dtype)                                                                        \
    TOUCHES(eddy_avg_pool_##name, eddy_cuda_pool, touch_pool, bytes_of_##name)                     \
    TOUCHES(eddy_max_route_##name, eddy_cuda_pool, touch_gradient, bytes_of_##name)                \
    TOUCHES(eddy_avg_spread_##name, eddy_cuda_pool, touch_gradient, bytes_of_##name)               \
    TOUCHES(eddy_max_put_##name, eddy_cuda_pool_put, touch_put, bytes_of_##name)
EDDY_CUDA_POOL_FLOATS(FLOATS)

TOUCHES(eddy_taps, eddy_cuda_taps, touch_taps, sizeof(eddy_tap))
#define NEAREST(bits)                                                                              \
    TOUCHES(eddy_nearest_##bits, eddy_cuda_resizing, touch_resizing, bits / 8, false)
EDDY_CUDA_NEAREST(NEAREST)
#define RESIZINGS(name, dtype)                                                                     \
    TOUCHES(eddy_bilinear_##name, eddy_cuda_resizing, touch_resizing, bytes_of_##name, false)      \
    TOUCHES(eddy_interpolate_back_##name, eddy_cuda_resizing, touch_resizing, bytes_of_##name, true)
EDDY_CUDA_INTERPOLATE_FLOATS(RESIZINGS)
