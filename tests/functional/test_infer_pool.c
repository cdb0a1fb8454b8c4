/* Pooling: what its rules accept and refuse, and the public functions. */
#include "inferring.h"
#include <eddy/eddy.h>
#include <math.h>

#define POOL(...) ((eddy_arguments_max_pool2d){.kernel = {__VA_ARGS__}})

Test(infer_pool, windows_are_counted_as_in_pytorch) {
    eddy_arguments_max_pool2d a = POOL({2, 3});
    ACCEPTS(max_pool2d, &a, F32, EDDY_SHAPE(2, 5, 4, 3), SPEC(F32, 2, 5, 8, 10));
    cr_assert(a.kernel.stride.height == 2 && a.kernel.stride.width == 3 &&
              a.kernel.dilation.width == 1);
    a = POOL({3, 3}, {2, 2}, {1, 1});
    ACCEPTS(max_pool2d, &a, I8, EDDY_SHAPE(5, 4, 6), SPEC(I8, 5, 8, 11));
    ACCEPTS(max_pool2d_with_indices, &a, F16, EDDY_SHAPE(0, 5, 4, 6), SPEC(F16, 0, 5, 8, 11));
    a = POOL({3, 3}, {2, 2});
    ACCEPTS(max_pool2d, &a, F64, EDDY_SHAPE(1, 2, 3), SPEC(F64, 1, 6, 8));
    a.is_ceil_mode = true;
    ACCEPTS(max_pool2d, &a, F64, EDDY_SHAPE(1, 3, 4), SPEC(F64, 1, 6, 8));
    /* No window begins behind the image. */
    a = POOL({1, 2}, {3, 2}, {0, 1});
    a.is_ceil_mode = true;
    ACCEPTS(max_pool2d, &a, F32, EDDY_SHAPE(1, 2, 2), SPEC(F32, 1, 5, 3));
    a = POOL({2, 2});
    a.is_ceil_mode = true;
    ACCEPTS(max_pool2d, &a, F32, EDDY_SHAPE(1, 1, 1), SPEC(F32, 1, 1, 1));
    a = POOL({2, 2}, {1, 1}, {1, 1}, {3, 3});
    ACCEPTS(max_pool2d, &a, F32, EDDY_SHAPE(1, 4, 4), SPEC(F32, 1, 5, 5));
}

Test(infer_pool, what_does_not_fit_is_refused) {
    eddy_arguments_max_pool2d a = POOL({2, 2});
    REFUSES(max_pool2d, &a, SHAPE_MISMATCH, "[N, C, H, W]", SPEC(F32, 8, 8));
    REFUSES(max_pool2d, &a, SHAPE_MISMATCH, "are empty", SPEC(F32, 2, 1, 0, 8));
    a = POOL({2, 9});
    REFUSES(max_pool2d, &a, SHAPE_MISMATCH, "windows of width 9", SPEC(F32, 1, 8, 8));
    a = POOL({2, 0});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "kernel_size is 2, 0", SPEC(F32, 1, 8, 8));
    a = POOL({INT64_C(1) << 40, 2});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "kernel_size is", SPEC(F32, 1, 8, 8));
    a = POOL({2, 2}, {1, 0});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "stride is 1, 0", SPEC(F32, 1, 8, 8));
    a = POOL({2, 2}, {1, 1}, {0, -1});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "padding is 0, -1", SPEC(F32, 1, 8, 8));
    a = POOL({2, 3}, {1, 1}, {0, 2});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "padding of the width is 2", SPEC(F32, 1, 8, 8));
    a = POOL({2, 2}, {1, 1}, {0, 0}, {-1, 1});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "dilation is -1, 1", SPEC(F32, 1, 8, 8));
    a = POOL({2, 1}, {1, 1}, {2, 0}, {3, 1});
    REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "steps over the image's height", SPEC(F32, 1, 1, 8));
    eddy_arguments_max_pool2d_backward b = {.shape = EDDY_SHAPE(2, 3, 8, 8)};
    const eddy_spec small = SPEC(F32, 2, 3, 4, 4);
    ACCEPTS(max_pool2d_backward, &b, F32, EDDY_SHAPE(2, 3, 8, 8), small, SPEC(I64, 2, 3, 4, 4));
    REFUSES(max_pool2d_backward, &b, DTYPE_MISMATCH, "indices must be", small, small);
    REFUSES(max_pool2d_backward, &b, SHAPE_MISMATCH, "one shape", small, SPEC(I64, 2, 3, 4, 5));
    b.shape = EDDY_SHAPE(2, 4, 8, 8);
    REFUSES(max_pool2d_backward, &b, SHAPE_MISMATCH, "of that shape", small, SPEC(I64, 2, 3, 4, 4));
    b.shape = EDDY_SHAPE(3, 8, 8);
    REFUSES(max_pool2d_backward, &b, SHAPE_MISMATCH, "of that shape", small, SPEC(I64, 2, 3, 4, 4));
}

/* As a search says it. */
static bool misses_image(int64_t in, int64_t kernel, int64_t stride, int64_t padding,
                         int64_t dilation, int64_t out) {
    for (int64_t o = 0; o < out; o++) {
        bool meets = false;
        for (int64_t k = 0; k < kernel; k++) {
            int64_t at = o * stride - padding + k * dilation;
            meets = meets || (at >= 0 && at < in);
        }
        if (!meets && o * stride < padding)
            return true;
    }
    return false;
}

Test(infer_pool, windows_that_step_over_the_image_are_refused) {
    int refused = 0;
    for (int i = 0; i < 8 * 4 * 4 * 6 * 12; i++) {
        int64_t in = 1 + i % 8, kernel = 1 + i / 8 % 4, stride = 1 + i / 32 % 4,
                padding = i / 128 % 6, dilation = 1 + i / 768;
        int64_t span = (kernel - 1) * dilation + 1, room = in + 2 * padding - span;
        if (room < 0 || padding > span / 2)
            continue;
        eddy_arguments_max_pool2d a = POOL({kernel, 1}, {stride, 1}, {padding, 0}, {dilation, 1});
        bool misses = misses_image(in, kernel, stride, padding, dilation, room / stride + 1);
        if (misses)
            REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "steps over", SPEC(F32, 1, in, 1));
        else
            ACCEPTS(max_pool2d, &a, F32, EDDY_SHAPE(1, room / stride + 1, 1), SPEC(F32, 1, in, 1));
        refused += misses;
    }
    cr_assert_gt(refused, 50);
    /* It takes no time, whatever the numbers are. */
    for (int i = 0; i < 1000; i++) {
        const int64_t much = INT32_MAX - i;
        eddy_arguments_max_pool2d a = POOL({2, 1}, {1, 1}, {much / 2, 0}, {much, 1});
        REFUSES(max_pool2d, &a, INVALID_ARGUMENT, "steps over", SPEC(F32, 1, much - 1, 1));
    }
}

Test(infer_pool, averages_take_floats) {
    eddy_arguments_avg_pool2d a = {.kernel = {.kernel_size = {2, 3}}};
    ACCEPTS(avg_pool2d, &a, BF16, EDDY_SHAPE(2, 5, 4, 3), SPEC(BF16, 2, 5, 8, 10));
    cr_assert(a.kernel.stride.width == 3 && a.kernel.dilation.height == 1);
    REFUSES(avg_pool2d, &a, DTYPE_MISMATCH, "x must be", SPEC(I64, 2, 5, 8, 10));
    eddy_arguments_avg_pool2d_backward b = {.kernel = a.kernel, .shape = EDDY_SHAPE(5, 8, 10)};
    ACCEPTS(avg_pool2d_backward, &b, F64, EDDY_SHAPE(5, 8, 10), SPEC(F64, 5, 4, 3));
    REFUSES(avg_pool2d_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F64, 5, 4, 4));
    REFUSES(avg_pool2d_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F64, 1, 5, 4, 3));
    b.shape = EDDY_SHAPE();
    REFUSES(avg_pool2d_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F64, 5, 4, 3));
    a.kernel.divisor_override = -1;
    REFUSES(avg_pool2d, &a, INVALID_ARGUMENT, "divisor_override is -1", SPEC(F32, 2, 5, 8, 10));
    eddy_arguments_adaptive_avg_pool2d c = {.output_size = {7, 1}};
    ACCEPTS(adaptive_avg_pool2d, &c, F16, EDDY_SHAPE(2, 0, 7, 1), SPEC(F16, 2, 0, 8, 10));
    REFUSES(adaptive_avg_pool2d, &c, SHAPE_MISMATCH, "are empty", SPEC(F32, 2, 8, 0));
    c.output_size.width = 0;
    REFUSES(adaptive_avg_pool2d, &c, INVALID_ARGUMENT, "output_size is 7, 0", SPEC(F32, 2, 8, 10));
    eddy_arguments_adaptive_avg_pool2d_backward d = {.shape = EDDY_SHAPE(2, 8, 10)};
    ACCEPTS(adaptive_avg_pool2d_backward, &d, F16, EDDY_SHAPE(2, 8, 10), SPEC(F16, 2, 3, 4));
    REFUSES(adaptive_avg_pool2d_backward, &d, SHAPE_MISMATCH, "of that shape", SPEC(F16, 3, 3, 4));
    d.shape = EDDY_SHAPE(2, 8, 0);
    REFUSES(adaptive_avg_pool2d_backward, &d, SHAPE_MISMATCH, "empty images", SPEC(F16, 2, 3, 4));
}

Test(infer_pool, another_size_is_given_in_one_way) {
    eddy_arguments_interpolate a = {.output_size = {5, 20}};
    ACCEPTS(interpolate, &a, I8, EDDY_SHAPE(2, 3, 5, 20), SPEC(I8, 2, 3, 8, 10));
    a.kernel.mode = EDDY_MODE_BILINEAR;
    REFUSES(interpolate, &a, DTYPE_MISMATCH, "x must be", SPEC(I8, 2, 3, 8, 10));
    a.kernel.scale = 1.5;
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "either output_size or scale",
            SPEC(F32, 2, 3, 8, 10));
    a.output_size = (eddy_pair){0, 0};
    ACCEPTS(interpolate, &a, F16, EDDY_SHAPE(3, 13, 15), SPEC(F16, 3, 9, 10));
    a.kernel.scale = 0;
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "either output_size or scale",
            SPEC(F32, 2, 3, 8, 10));
    a.kernel.scale = NAN;
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "scale is", SPEC(F32, 2, 3, 8, 10));
    a.kernel.scale = 0.1;
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "scale is 0.1", SPEC(F32, 2, 3, 8, 10));
    a.kernel.scale = 1e12;
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "scale is 1e+12", SPEC(F32, 2, 3, 8, 10));
    a = (eddy_arguments_interpolate){.output_size = {0, 20}};
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "output_size is 0, 20", SPEC(F32, 2, 3, 8, 10));
    a = (eddy_arguments_interpolate){.kernel = {.aligns_corners = true}, .output_size = {5, 20}};
    REFUSES(interpolate, &a, INVALID_ARGUMENT, "aligns_corners", SPEC(F32, 2, 3, 8, 10));
    eddy_arguments_interpolate_backward b = {.shape = EDDY_SHAPE(3, 8, 10)};
    ACCEPTS(interpolate_backward, &b, F32, EDDY_SHAPE(3, 8, 10), SPEC(F32, 3, 7, 7));
    REFUSES(interpolate_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F32, 4, 7, 7));
    REFUSES(interpolate_backward, &b, DTYPE_MISMATCH, "grad must be", SPEC(I32, 3, 7, 7));
    b.kernel.scale = 2;
    ACCEPTS(interpolate_backward, &b, F32, EDDY_SHAPE(3, 8, 10), SPEC(F32, 3, 16, 20));
    REFUSES(interpolate_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F32, 3, 16, 21));
    b.shape = EDDY_SHAPE(3, 0, 10);
    REFUSES(interpolate_backward, &b, SHAPE_MISMATCH, "empty images", SPEC(F32, 3, 16, 20));
    b.shape = EDDY_SHAPE();
    REFUSES(interpolate_backward, &b, SHAPE_MISMATCH, "of that shape", SPEC(F32, 3, 16, 20));
}

static eddy_tensor *counted(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    return eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(count), EDDY_S(1), EDDY_F32, NULL), shape);
}

static void lies_channels_last(const eddy_tensor *t) {
    int64_t strides[4];
    cr_assert_eq(eddy_strides_of(t, strides), EDDY_OK);
    int64_t channels = eddy_dim_of(t, 1), width = eddy_dim_of(t, 3);
    cr_assert(strides[1] == 1 && strides[3] == channels && strides[2] == channels * width);
}

Test(infer_pool, channels_last_stay_channels_last) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_permute(counted(EDDY_SHAPE(2, 4, 6, 3)), EDDY_AXES(0, 3, 1, 2));
    eddy_tensor *y = eddy_max_pool2d(x, EDDY_PAIR(2, 2), NULL);
    lies_channels_last(y);
    float got[36];
    cr_assert_eq(eddy_read(y, got, sizeof(got), NULL), EDDY_OK);
    /* Rows and columns grow: the last element of each window. */
    for (int i = 0; i < 36; i++) {
        int w = i % 3, h = i / 3 % 2, c = i / 6 % 3, n = i / 18;
        cr_assert_eq(got[i], (float)(((n * 4 + 2 * h + 1) * 6 + 2 * w + 1) * 3 + c));
    }
    eddy_tensor *values, *indices;
    cr_assert_eq(eddy_max_pool2d_with_indices(x, EDDY_PAIR(2, 2), NULL, &values, &indices),
                 EDDY_OK);
    lies_channels_last(values), lies_channels_last(indices);
    eddy_tensor *dx = eddy_max_pool2d_backward(values, indices, eddy_shape_of(x));
    lies_channels_last(dx);
    cr_assert_eq(eddy_item_f64(eddy_sum(dx, EDDY_ALL_AXES, NULL), NULL),
                 eddy_item_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), NULL));
    eddy_tensor *same = eddy_max_pool2d_backward_from_x(values, x, EDDY_PAIR(2, 2), NULL);
    lies_channels_last(same);
    cr_assert_eq(eddy_item_f64(eddy_max(eddy_abs(eddy_sub(same, dx)), EDDY_ALL_AXES, NULL), NULL),
                 0);
    lies_channels_last(eddy_avg_pool2d(x, EDDY_PAIR(2, 2), NULL));
    lies_channels_last(eddy_adaptive_avg_pool2d(x, EDDY_PAIR(3, 2)));
    lies_channels_last(eddy_avg_pool2d_backward(y, eddy_shape_of(x), EDDY_PAIR(2, 2), NULL));
    lies_channels_last(eddy_interpolate(x, EDDY_OPTIONS(interpolate, .scale = 2)));
    cr_assert(eddy_is_contiguous(
        eddy_max_pool2d(counted(EDDY_SHAPE(2, 3, 4, 6)), EDDY_PAIR(2, 2), NULL)));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(infer_pool, by_name_a_number_serves_for_a_pair) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *y = NULL;
    cr_assert_eq(eddy_call("max_pool2d", EDDY_LIST(counted(EDDY_SHAPE(1, 4, 4))),
                           EDDY_ATTRIBUTES({"kernel_size", EDDY_ATTRIBUTE_INT, {.integer = 3}},
                                           {"stride", EDDY_ATTRIBUTE_PAIR, {.pair = {1, 2}}}),
                           &y),
                 EDDY_OK);
    float got[2];
    cr_assert_eq(eddy_read(y, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == 10 && got[1] == 14);
    eddy_scope_end(scope);
}
