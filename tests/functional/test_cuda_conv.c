/* Convolutions on a CUDA device, on the fake driver (tests/fake_cuda). Sums come in another order than on the CPU. So whole numbers, whose sums are exact, are compared bit by bit, and others
 * within the bound of a sum of rounded terms (tests/kernels/test_conv.c). */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>
#include <tests/rounds.h>

static const eddy_dtype floats[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};

static bool by_chance(int64_t one_in) {
    return random_below(one_in) == 0;
}

static eddy_pair pair_below(int64_t least, int64_t bound) {
    return (eddy_pair){least + random_below(bound), least + random_below(bound)};
}

/* ---- what is convolved ---- */

typedef enum layout {
    ANY,
    CHANNELS_LAST, /* channels are neighbours, without gaps */
    CONTIGUOUS,
} layout;

typedef struct geometry {
    int64_t batch, groups, from,
        to; /* channels of a group; a batch of -1: images without that dim */
    eddy_pair image, window, stride, padding, dilation, output_padding;
    layout layout; /* of images */
} geometry;

static geometry any_geometry(void) {
    geometry g = {.batch = random_below(5) - 1,
                  .groups = by_chance(3) ? 1 + random_below(4) : 1,
                  .from = by_chance(20) ? 0 : 1 + random_below(by_chance(4) ? 30 : 5),
                  .to = 1 + random_below(by_chance(2) ? 20 : 4),
                  .image = pair_below(1, 9),
                  .window = pair_below(1, 4),
                  .stride = pair_below(1, 3),
                  .padding = pair_below(0, 4),
                  .dilation = pair_below(1, by_chance(3) ? 3 : 1)};
    g.output_padding = (eddy_pair){random_below(g.stride.height), random_below(g.stride.width)};
    return g;
}

/* What elements are: whole numbers whose sums and products are exact, or any. */
static twin numbers(eddy_dtype dtype, eddy_shape shape, bool is_whole, bool is_written) {
    if (!is_whole)
        return twin_numbers(dtype, shape, is_written);
    twin made = twin_indices(EDDY_I32, shape, -3, 3);
    if (is_written)
        made = (twin){eddy_contiguous(made.here), eddy_contiguous(made.there)};
    return (twin){eddy_cast(made.here, dtype), eddy_cast(made.there, dtype)};
}

static eddy_tensor *laid_last(eddy_tensor *image) {
    return eddy_permute(eddy_contiguous(eddy_permute(image, EDDY_AXES(0, 2, 3, 1))),
                        EDDY_AXES(0, 3, 1, 2));
}

static twin images(const geometry *g, eddy_dtype dtype, int64_t channels, eddy_pair size,
                   bool is_whole) {
    eddy_shape shape = EDDY_SHAPE(g->batch, channels, size.height, size.width);
    if (g->batch < 0)
        shape = EDDY_SHAPE(channels, size.height, size.width);
    twin made = numbers(dtype, shape, is_whole, false);
    if (g->layout == CHANNELS_LAST && g->batch > 0)
        made = (twin){laid_last(made.here), laid_last(made.there)};
    if (g->layout == CONTIGUOUS)
        made = (twin){eddy_contiguous(made.here), eddy_contiguous(made.there)};
    return made;
}

/* Mostly as they lie in networks. */
static twin weights(eddy_dtype dtype, eddy_shape shape, bool is_whole) {
    twin made = numbers(dtype, shape, is_whole, false);
    return by_chance(3) ? made : (twin){eddy_contiguous(made.here), eddy_contiguous(made.there)};
}

/* The operands of an op and what it makes of them: conv2d and conv_transpose2d of an image, weights and a bias, conv2d_backward_weight of a gradient and an image. */
typedef struct operands {
    const geometry *g;
    eddy_tensor *image, *other, *bias; /* bias: or EDDY_NONE */
} operands;

static eddy_tensor *forward(const operands *o) {
    const geometry *g = o->g;
    return eddy_conv2d(o->image, o->other, o->bias,
                       EDDY_OPTIONS(conv2d, .stride = g->stride, .padding = g->padding,
                                    .dilation = g->dilation, .groups = g->groups));
}

static eddy_tensor *transposed(const operands *o) {
    const geometry *g = o->g;
    return eddy_conv_transpose2d(o->image, o->other, o->bias,
                                 EDDY_OPTIONS(conv_transpose2d, .stride = g->stride,
                                              .padding = g->padding, .dilation = g->dilation,
                                              .groups = g->groups,
                                              .output_padding = g->output_padding));
}

static eddy_tensor *backward_weight(const operands *o) {
    const geometry *g = o->g;
    return eddy_conv2d_backward_weight(o->other, o->image, g->window,
                                       EDDY_OPTIONS(conv2d_backward_weight, .stride = g->stride,
                                                    .padding = g->padding, .dilation = g->dilation,
                                                    .groups = g->groups));
}

typedef eddy_tensor *op_fn(const operands *o);

/* ---- comparing ---- */

static double *read_f64(eddy_tensor *tensor) {
    size_t bytes = (size_t)eddy_count_of(tensor) * sizeof(double);
    double *all = malloc(bytes + 1);
    cr_assert_eq(eddy_read(eddy_cast(tensor, EDDY_F64), all, bytes, NULL), EDDY_OK);
    return all;
}

static double unit_of(eddy_dtype dtype) {
    return dtype == EDDY_F64   ? 0x1p-52
           : dtype == EDDY_F32 ? 0x1p-23
           : dtype == EDDY_F16 ? 0x1p-10
                               : 0x1p-7;
}

static eddy_tensor *as_f64(eddy_tensor *tensor, bool is_size) {
    if (tensor == EDDY_NONE)
        return tensor;
    eddy_tensor *wide = eddy_cast(tensor, EDDY_F64);
    return is_size ? eddy_abs(wide) : wide;
}

/* The CPU's result in f64, which has the bound of f64 itself. `terms`: of each sum, at most. */
static void expect_near(const char *what, op_fn *op, const operands *o, eddy_tensor *there,
                        int64_t terms) {
    eddy_dtype dtype = eddy_dtype_of(there);
    operands wide = {o->g, as_f64(o->image, false), as_f64(o->other, false),
                     as_f64(o->bias, false)},
             sizes = {o->g, as_f64(o->image, true), as_f64(o->other, true), as_f64(o->bias, true)};
    int64_t count = eddy_count_of(there);
    double *want = read_f64(op(&wide)), *size = read_f64(op(&sizes)), *got = read_f64(there);
    double sum_unit = dtype == EDDY_F64 ? 0x1p-51 : 0x1p-24;
    for (int64_t i = 0; i < count; i++) {
        double bound = (double)(terms + 2) * sum_unit * size[i] + unit_of(dtype) * fabs(want[i]);
        if (dtype == EDDY_F16 && fabs(want[i]) + bound > 65504)
            continue; /* infinity, or nearly */
        cr_assert(fabs(got[i] - want[i]) <= bound + 0x1p-24,
                  "%s, %s, seed %llu: element %lld of %lld is %g, not %g (bound %g)", what,
                  eddy_dtype_name(dtype), (unsigned long long)random_seed(), (long long)i,
                  (long long)count, got[i], want[i], bound);
    }
    free(want), free(size), free(got);
}

static void check(const char *what, op_fn *op, const geometry *g, twin image, twin other, twin bias,
                  bool is_whole, int64_t terms) {
    operands here = {g, image.here, other.here, bias.here},
             there = {g, image.there, other.there, bias.there};
    eddy_tensor *wanted = op(&here);
    if (wanted == NULL) {
        eddy_error_take(NULL); /* windows that do not fit */
        return;
    }
    if (is_whole)
        twin_expect_equal(what, wanted, op(&there));
    else
        expect_near(what, op, &here, op(&there), terms);
}

static void check_all(const geometry *g, eddy_dtype dtype, bool is_whole) {
    const int64_t h = g->window.height, w = g->window.width, taps = g->from * h * w;
    twin none = {EDDY_NONE, EDDY_NONE},
         x = images(g, dtype, g->groups * g->from, g->image, is_whole),
         weight = weights(dtype, EDDY_SHAPE(g->groups * g->to, g->from, h, w), is_whole),
         bias =
             by_chance(2) ? none : numbers(dtype, EDDY_SHAPE(g->groups * g->to), is_whole, false);
    check("conv2d", forward, g, x, weight, bias, is_whole, taps + 1);
    twin back = weights(dtype, EDDY_SHAPE(g->groups * g->from, g->to, h, w), is_whole);
    check("conv_transpose2d", transposed, g, x, back, bias, is_whole, taps + 1);
    operands o = {g, x.here, weight.here, EDDY_NONE};
    eddy_tensor *result = forward(&o);
    if (result == NULL) {
        eddy_error_take(NULL);
        return;
    }
    eddy_pair size = {eddy_dim_of(result, -2), eddy_dim_of(result, -1)};
    twin grad = images(g, dtype, g->groups * g->to, size, is_whole);
    check("conv2d_backward_weight", backward_weight, g, x, grad, none, is_whole,
          (g->batch < 0 ? 1 : g->batch) * size.height * size.width);
}

/* ---- cases ---- */

Test(cuda_conv, any_geometry_and_layout, .timeout = 300) {
    for (int round = 0; round < ROUNDS_OF(120); round++) {
        eddy_scope *scope = eddy_scope_begin();
        geometry g = any_geometry();
        g.layout = (layout)random_below(3);
        check_all(&g, floats[round % 4], round % 8 < 6);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* More rows and columns than a tile has, and sums that are split. */
Test(cuda_conv, tiles_and_splits, .timeout = 300) {
    const geometry all[] = {
        {2, 1, 3, 70, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, ANY},
        {1, 1, 70, 9, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, ANY},
        {1, 2, 260, 65, {3, 4}, {1, 2}, {2, 1}, {0, 0}, {1, 1}, {1, 0}, CHANNELS_LAST},
        {3, 1, 8, 9, {16, 17}, {2, 2}, {1, 2}, {0, 1}, {1, 1}, {0, 0}, CHANNELS_LAST},
        {2, 1, 9, 8, {20, 20}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, ANY},
        {2, 12, 1, 1, {12, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, ANY},
    };
    for (size_t n = 0; n < sizeof(all) / sizeof(all[0]); n++) {
        eddy_scope *scope = eddy_scope_begin();
        check_all(&all[n], floats[random_below(4)], true);
        check_all(&all[n], floats[random_below(4)], false);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* Products of matrices, for which there may be a library. */
Test(cuda_conv, windows_of_one_element, .timeout = 300) {
    for (int round = 0; round < 60; round++) {
        eddy_scope *scope = eddy_scope_begin();
        geometry g = {.batch = random_below(5) - 1,
                      .groups = by_chance(6) ? 2 : 1,
                      .from = by_chance(20) ? 0 : 1 + random_below(30),
                      .to = 1 + random_below(30),
                      .image = pair_below(1, 9),
                      .window = {1, 1},
                      .stride = {1, 1},
                      .dilation = pair_below(1, 3),
                      .layout = (layout)random_below(3)};
        check_all(&g, floats[round % 4], round % 8 < 6);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* The gradient's places are not those of the image, though there are as many: of the result's first row and column there is padding alone. */
Test(cuda_conv, a_padded_window_of_one_element_is_no_product) {
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(EDDY_F32, EDDY_SHAPE(1, 3, 4, 5), true, true),
         grad = numbers(EDDY_F32, EDDY_SHAPE(1, 20, 4, 5), true, true);
    geometry g = {
        .groups = 1, .window = {1, 1}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}};
    operands here = {&g, x.here, grad.here, EDDY_NONE},
             there = {&g, x.there, grad.there, EDDY_NONE};
    twin_expect_equal("conv2d_backward_weight", backward_weight(&here), backward_weight(&there));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* Rows or columns of the result that the gradient lacks count as 0. */
Test(cuda_conv, a_gradient_may_have_fewer_places) {
    geometry g = {
        .groups = 1, .window = {3, 2}, .stride = {1, 1}, .padding = {1, 0}, .dilation = {1, 1}};
    for (int64_t fewer = 0; fewer < 8; fewer++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = floats[fewer % 4];
        twin x = numbers(dtype, EDDY_SHAPE(2, 3, 7, 8), true, true),
             grad = numbers(dtype, EDDY_SHAPE(2, 10, 7 - fewer / 2, 7 - fewer % 2), true, true);
        operands here = {&g, x.here, grad.here, EDDY_NONE},
                 there = {&g, x.there, grad.there, EDDY_NONE};
        twin_expect_equal("conv2d_backward_weight", backward_weight(&here),
                          backward_weight(&there));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* Places that a window does not reach have no part in it, whatever they are. */
Test(cuda_conv, nan_stays_in_its_windows) {
    eddy_scope *scope = eddy_scope_begin();
    float elements[2 * 7 * 7] = {0};
    elements[3 * 7 + 3] = NAN;
    elements[49 + 6] = INFINITY;
    twin x = twin_of(elements, EDDY_SHAPE(1, 2, 7, 7), EDDY_F32),
         weight = numbers(EDDY_F32, EDDY_SHAPE(9, 2, 3, 3), true, false),
         back = numbers(EDDY_F32, EDDY_SHAPE(2, 9, 3, 3), true, false);
    geometry g = {.groups = 1, .stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 1}};
    operands here = {&g, x.here, weight.here, EDDY_NONE},
             there = {&g, x.there, weight.there, EDDY_NONE};
    twin_expect_equal("conv2d", eddy_isnan(forward(&here)), eddy_isnan(forward(&there)));
    here.other = back.here, there.other = back.there;
    twin_expect_equal("conv_transpose2d", eddy_isnan(transposed(&here)),
                      eddy_isnan(transposed(&there)));
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

static eddy_tensor *gradient_of(const geometry *g, eddy_tensor *x, eddy_tensor *weight,
                                eddy_tensor *back, eddy_tensor *bias, bool of_weight) {
    eddy_tensor *leaf = eddy_detach(of_weight ? weight : x);
    cr_assert_eq(eddy_requires_grad_set(leaf, true), EDDY_OK);
    operands first = {g, of_weight ? x : leaf, of_weight ? leaf : weight, bias};
    operands second = {g, forward(&first), back, EDDY_NONE};
    cr_assert_eq(eddy_backward(eddy_sum(transposed(&second), EDDY_ALL_AXES, NULL)), EDDY_OK);
    return eddy_grad_of(leaf);
}

Test(cuda_conv, gradients_go_through) {
    geometry g = {.groups = 2, .stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}};
    for (int round = 0; round < 6; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = round % 2 ? EDDY_F64 : EDDY_F32;
        twin x = numbers(dtype, EDDY_SHAPE(2, 4, 8, 9), true, false),
             weight = numbers(dtype, EDDY_SHAPE(20, 2, 3, 2), true, false),
             back = numbers(dtype, EDDY_SHAPE(20, 2, 3, 2), true, false),
             bias = numbers(dtype, EDDY_SHAPE(20), true, false);
        bool of_weight = round < 3;
        twin_expect_equal(
            "gradient", gradient_of(&g, x.here, weight.here, back.here, bias.here, of_weight),
            gradient_of(&g, x.there, weight.there, back.there, bias.there, of_weight));
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

/* Those who run the tests know which they have given it. */
Test(cuda_conv, by_whom_they_are_is_said) {
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(TWIN_THERE, &info), EDDY_OK);
    cr_assert_str_eq(info.convolutions, "");
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(EDDY_F32, EDDY_SHAPE(2, 3, 7, 8), true, true),
         weight = numbers(EDDY_F32, EDDY_SHAPE(4, 3, 2, 2), true, true);
    twin_expect_equal("conv2d", eddy_conv2d(x.here, weight.here, EDDY_NONE, NULL),
                      eddy_conv2d(x.there, weight.there, EDDY_NONE, NULL));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_device_describe(TWIN_THERE, &info), EDDY_OK);
    const char *expected = getenv("EDDY_TEST_CONVOLUTIONS");
    cr_assert(expected ? strcmp(info.convolutions, expected) == 0 : info.convolutions[0] != '\0',
              "%s", info.convolutions);
    twin_expect_no_findings();
}

Test(cuda_conv, targets_of_any_layout_are_written) {
    for (int round = 0; round < 8; round++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_dtype dtype = floats[round % 4];
        twin x = numbers(dtype, EDDY_SHAPE(2, 3, 6, 7), true, false),
             weight = numbers(dtype, EDDY_SHAPE(10, 3, 2, 2), true, false),
             to = twin_numbers(dtype, EDDY_SHAPE(2, 10, 5, 6), true),
             weight_to = twin_numbers(dtype, EDDY_SHAPE(10, 3, 2, 2), true);
        cr_assert_eq(eddy_conv2d_into(x.here, weight.here, EDDY_NONE, to.here, NULL), EDDY_OK);
        cr_assert_eq(eddy_conv2d_into(x.there, weight.there, EDDY_NONE, to.there, NULL), EDDY_OK);
        twin_expect_equal("conv2d_into", to.here, to.there);
        twin grad = numbers(dtype, EDDY_SHAPE(2, 10, 5, 6), true, false);
        cr_assert_eq(eddy_conv2d_backward_weight_into(grad.here, x.here, weight_to.here,
                                                      EDDY_PAIR(2, 2), NULL),
                     EDDY_OK);
        cr_assert_eq(eddy_conv2d_backward_weight_into(grad.there, x.there, weight_to.there,
                                                      EDDY_PAIR(2, 2), NULL),
                     EDDY_OK);
        twin_expect_equal("conv2d_backward_weight_into", weight_to.here, weight_to.there);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}
