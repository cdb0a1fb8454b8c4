/* Pools and interpolate on a CUDA device, on the fake driver (tests/fake_cuda): the CPU's bits and errors, whatever the windows, the dtype and the layout. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

static eddy_dtype any_float(void) {
    return floats[random_below(4)];
}

static bool by_chance(int64_t one_in) {
    return random_below(one_in) == 0;
}

/* [N, C, H, W] or [C, H, W], of planes of up to `most` rows and columns; rarely without images or channels. */
static eddy_shape images(int64_t most) {
    eddy_shape shape = {.rank = by_chance(3) ? 3 : 4};
    for (int32_t d = 0; d < shape.rank; d++)
        shape.dims[d] = d < shape.rank - 2
                            ? (by_chance(30) ? 0 : 1 + random_below(by_chance(5) ? 40 : 4))
                            : 1 + random_below(most);
    return shape;
}

static twin image_of(eddy_dtype dtype, eddy_shape shape) {
    return by_chance(3) ? twin_random(dtype, shape, false) : twin_numbers(dtype, shape, false);
}

/* Neighbours in memory are channels, or columns, without gaps. */
static twin dense(eddy_dtype dtype, eddy_shape shape, bool is_last) {
    eddy_shape base = shape;
    if (is_last)
        base = EDDY_SHAPE(shape.dims[0], shape.dims[2], shape.dims[3], shape.dims[1]);
    twin made = twin_numbers(dtype, base, true);
    made = (twin){eddy_contiguous(made.here), eddy_contiguous(made.there)};
    if (is_last)
        made = (twin){eddy_permute(made.here, EDDY_AXES(0, 3, 1, 2)),
                      eddy_permute(made.there, EDDY_AXES(0, 3, 1, 2))};
    return made;
}

/* ---- windows ---- */

typedef struct windows {
    eddy_pair size, stride, padding, dilation;
    bool is_ceil_mode, excludes_padding;
    int64_t divisor_override;
} windows;

static eddy_pair pair_below(int64_t least, int64_t bound) {
    return (eddy_pair){least + random_below(bound), least + random_below(bound)};
}

static windows any_windows(int64_t most) {
    windows w = {.size = pair_below(1, most), .dilation = {1, 1}};
    w.stride = by_chance(3) ? w.size : pair_below(1, most);
    w.padding =
        (eddy_pair){random_below(w.size.height / 2 + 1), random_below(w.size.width / 2 + 1)};
    w.is_ceil_mode = by_chance(2);
    w.excludes_padding = by_chance(2);
    w.divisor_override = by_chance(4) ? 1 + random_below(9) : 0;
    return w;
}

#define MAX_OPTIONS(op, w)                                                                         \
    EDDY_OPTIONS(op, .stride = (w)->stride, .padding = (w)->padding, .dilation = (w)->dilation,    \
                 .is_ceil_mode = (w)->is_ceil_mode)
#define AVG_OPTIONS(op, w)                                                                         \
    EDDY_OPTIONS(op, .stride = (w)->stride, .padding = (w)->padding,                               \
                 .is_ceil_mode = (w)->is_ceil_mode, .excludes_padding = (w)->excludes_padding,     \
                 .divisor_override = (w)->divisor_override)

/* Whether the CPU takes these windows. */
static bool is_refused(eddy_tensor *here) {
    if (here == NULL)
        eddy_error_take(NULL);
    return here == NULL;
}

static void check_max(twin x, const windows *w) {
    twin values, indices = {0};
    eddy_tensor *here = eddy_max_pool2d(x.here, w->size, MAX_OPTIONS(max_pool2d, w));
    if (is_refused(here))
        return;
    twin_expect_equal("max_pool2d", here,
                      eddy_max_pool2d(x.there, w->size, MAX_OPTIONS(max_pool2d, w)));
    cr_assert_eq(eddy_max_pool2d_with_indices(x.here, w->size,
                                              MAX_OPTIONS(max_pool2d_with_indices, w), &values.here,
                                              &indices.here),
                 EDDY_OK);
    cr_assert_eq(eddy_max_pool2d_with_indices(x.there, w->size,
                                              MAX_OPTIONS(max_pool2d_with_indices, w),
                                              &values.there, &indices.there),
                 EDDY_OK);
    twin_expect_equal("values", values.here, values.there);
    twin_expect_equal("indices", indices.here, indices.there);
    eddy_dtype dtype = eddy_dtype_of(x.here);
    if (!eddy_dtype_is_float(dtype))
        return;
    twin grad = image_of(dtype, eddy_shape_of(here));
    twin_expect_equal("max_pool2d_backward",
                      eddy_max_pool2d_backward(grad.here, indices.here, eddy_shape_of(x.here)),
                      eddy_max_pool2d_backward(grad.there, indices.there, eddy_shape_of(x.here)));
    twin_expect_equal("max_pool2d_backward_from_x",
                      eddy_max_pool2d_backward_from_x(grad.here, x.here, w->size,
                                                      MAX_OPTIONS(max_pool2d_backward_from_x, w)),
                      eddy_max_pool2d_backward_from_x(grad.there, x.there, w->size,
                                                      MAX_OPTIONS(max_pool2d_backward_from_x, w)));
}

static void check_average(twin x, const windows *w) {
    eddy_tensor *here = eddy_avg_pool2d(x.here, w->size, AVG_OPTIONS(avg_pool2d, w));
    if (is_refused(here))
        return;
    twin_expect_equal("avg_pool2d", here,
                      eddy_avg_pool2d(x.there, w->size, AVG_OPTIONS(avg_pool2d, w)));
    twin grad = image_of(eddy_dtype_of(x.here), eddy_shape_of(here));
    eddy_shape shape = eddy_shape_of(x.here);
    twin_expect_equal(
        "avg_pool2d_backward",
        eddy_avg_pool2d_backward(grad.here, shape, w->size, AVG_OPTIONS(avg_pool2d_backward, w)),
        eddy_avg_pool2d_backward(grad.there, shape, w->size, AVG_OPTIONS(avg_pool2d_backward, w)));
}

static void check_adaptive(twin x, eddy_pair size) {
    eddy_tensor *here = eddy_adaptive_avg_pool2d(x.here, size);
    twin_expect_equal("adaptive_avg_pool2d", here, eddy_adaptive_avg_pool2d(x.there, size));
    twin grad = image_of(eddy_dtype_of(x.here), eddy_shape_of(here));
    eddy_shape shape = eddy_shape_of(x.here);
    twin_expect_equal("adaptive_avg_pool2d_backward",
                      eddy_adaptive_avg_pool2d_backward(grad.here, shape),
                      eddy_adaptive_avg_pool2d_backward(grad.there, shape));
}

Test(cuda_pool, maxima_of_every_dtype) {
    for (int round = 0; round < 4; round++)
        TWIN_EACH_DTYPE(dtype) {
            windows w = any_windows(4);
            w.dilation = by_chance(3) ? pair_below(1, 3) : w.dilation;
            check_max(image_of(dtype, images(12)), &w);
        }
    twin_expect_no_findings();
}

Test(cuda_pool, averages) {
    for (int round = 0; round < ROUNDS_OF(200); round++) {
        eddy_scope *scope = eddy_scope_begin();
        windows w = any_windows(4);
        check_average(image_of(any_float(), images(12)), &w);
        check_adaptive(image_of(any_float(), images(12)), pair_below(1, 14));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* The CPU computes these by tiles, by a library, as a mean. */
Test(cuda_pool, large_images_of_either_order) {
    for (int round = 0; round < 12; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape =
            EDDY_SHAPE(2, 3 + random_below(18), 20 + random_below(30), 20 + random_below(40));
        windows w = any_windows(round % 3 == 0 ? 10 : 3),
                whole = {.size = {shape.dims[2], shape.dims[3]}, .dilation = {1, 1}};
        twin x = dense(floats[round % 4], shape, round / 4 % 2);
        check_max(x, &w);
        check_average(x, &w);
        check_average(x, &whole);
        check_adaptive(x, (eddy_pair){1, 1});
        check_adaptive(x, (eddy_pair){5, 7});
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* Planes that are cut into parts, with many elements for one place. */
Test(cuda_pool, gradients_are_added_in_the_order_of_grad) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        bool is_last = round % 2;
        eddy_shape grad_shape = EDDY_SHAPE(1, 3, 40, 50), shape = EDDY_SHAPE(1, 3, 31, 33);
        twin grad = dense(any_float(), grad_shape, is_last),
             indices =
                 twin_indices(twin_index_dtype(), grad_shape, 0, by_chance(2) ? 5 : 31 * 33 - 1);
        twin_expect_equal("max_pool2d_backward",
                          eddy_max_pool2d_backward(grad.here, indices.here, shape),
                          eddy_max_pool2d_backward(grad.there, indices.there, shape));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_pool, the_lowest_wrong_index_is_named) {
    int failed = 0;
    for (int round = 0; round < ROUNDS_OF(40); round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_shape shape = images(7), grad_shape = shape;
        grad_shape.dims[shape.rank - 1] = 1 + random_below(9);
        int64_t bound = shape.dims[shape.rank - 1] * shape.dims[shape.rank - 2];
        twin grad = image_of(any_float(), grad_shape),
             indices = twin_indices(twin_index_dtype(), grad_shape, -1, bound + 3);
        failed += twin_fail_alike(eddy_max_pool2d_backward(grad.here, indices.here, shape),
                                  eddy_max_pool2d_backward(grad.there, indices.there, shape));
        eddy_scope_end(scope);
    }
    cr_assert_gt(failed, ROUNDS_OF(20));
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* ---- interpolate ---- */

static void check_interpolate(eddy_dtype dtype, eddy_shape shape, bool is_bilinear) {
    eddy_interpolate_options options = {.mode =
                                            is_bilinear ? EDDY_MODE_BILINEAR : EDDY_MODE_NEAREST,
                                        .aligns_corners = is_bilinear && by_chance(3)};
    if (by_chance(2))
        options.scale = (double)(1 + random_below(40)) / (by_chance(2) ? 8 : 7);
    else
        options.output_size = pair_below(1, 24);
    twin x = image_of(dtype, shape);
    eddy_tensor *here = eddy_interpolate(x.here, &options);
    if (is_refused(here))
        return;
    twin_expect_equal("interpolate", here, eddy_interpolate(x.there, &options));
    if (!eddy_dtype_is_float(dtype))
        return;
    twin grad = image_of(dtype, eddy_shape_of(here));
    eddy_interpolate_backward_options back = {
        .mode = options.mode, .aligns_corners = options.aligns_corners, .scale = options.scale};
    twin_expect_equal("interpolate_backward", eddy_interpolate_backward(grad.here, shape, &back),
                      eddy_interpolate_backward(grad.there, shape, &back));
}

Test(cuda_pool, interpolate) {
    for (int round = 0; round < 4; round++)
        TWIN_EACH_DTYPE(dtype) {
            check_interpolate(dtype, images(12), eddy_dtype_is_float(dtype) && by_chance(2));
            check_interpolate(any_float(), images(12), true);
        }
    eddy_scope *scope = eddy_scope_begin();
    check_interpolate(EDDY_F32, EDDY_SHAPE(1, 2, 70, 300), true);
    check_interpolate(EDDY_F16, EDDY_SHAPE(1, 300, 3, 4), true);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* ---- through autograd ---- */

static eddy_tensor *pooled(eddy_tensor *x) {
    eddy_tensor *most = eddy_max_pool2d(
        x, EDDY_PAIR(3, 3), EDDY_OPTIONS(max_pool2d, .stride = {2, 2}, .padding = {1, 1}));
    eddy_tensor *mean = eddy_avg_pool2d(most, EDDY_PAIR(2, 2), NULL);
    eddy_tensor *large =
        eddy_interpolate(mean, EDDY_OPTIONS(interpolate, .scale = 1.5, .mode = EDDY_MODE_BILINEAR));
    return eddy_adaptive_avg_pool2d(large, EDDY_PAIR(3, 2));
}

static eddy_tensor *gradient_of(eddy_tensor *leaf) {
    eddy_tensor *x = eddy_detach(leaf);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *y = pooled(x);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(x);
}

Test(cuda_pool, gradients_have_the_bits_of_the_cpu) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        twin x = dense(floats[round % 2], EDDY_SHAPE(2, 5, 17, 14), round / 2 % 2);
        twin_expect_equal("gradient", gradient_of(x.here), gradient_of(x.there));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

Test(cuda_pool, targets_of_any_layout_are_written) {
    for (int round = 0; round < 20; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = any_float();
        twin x = image_of(dtype, EDDY_SHAPE(2, 3, 8, 6)),
             to = twin_numbers(dtype, EDDY_SHAPE(2, 3, 4, 3), true),
             large = twin_numbers(dtype, EDDY_SHAPE(2, 3, 16, 12), true);
        cr_assert_eq(eddy_max_pool2d_into(x.here, to.here, EDDY_PAIR(2, 2), NULL), EDDY_OK);
        cr_assert_eq(eddy_max_pool2d_into(x.there, to.there, EDDY_PAIR(2, 2), NULL), EDDY_OK);
        twin_expect_equal("max_pool2d_into", to.here, to.there);
        cr_assert_eq(eddy_adaptive_avg_pool2d_into(x.here, to.here, EDDY_PAIR(4, 3)), EDDY_OK);
        cr_assert_eq(eddy_adaptive_avg_pool2d_into(x.there, to.there, EDDY_PAIR(4, 3)), EDDY_OK);
        twin_expect_equal("adaptive_avg_pool2d_into", to.here, to.there);
        const eddy_interpolate_options *doubled = EDDY_OPTIONS(interpolate, .scale = 2);
        cr_assert_eq(eddy_interpolate_into(x.here, large.here, doubled), EDDY_OK);
        cr_assert_eq(eddy_interpolate_into(x.there, large.there, doubled), EDDY_OK);
        twin_expect_equal("interpolate_into", large.here, large.there);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
