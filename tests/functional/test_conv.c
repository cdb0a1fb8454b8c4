/* Convolutions: what their rules accept and refuse, the layouts of results, and conv1d. */
#include "inferring.h"
#include <eddy/eddy.h>
#include <string.h>

static eddy_arguments_conv2d forward(void) {
    return (eddy_arguments_conv2d){0};
}

Test(conv, conv2d_measures_its_result) {
    eddy_arguments_conv2d a = forward();
    const eddy_spec x = SPEC(F16, 2, 4, 9, 8), w = SPEC(F16, 6, 4, 3, 2);
    ACCEPTS(conv2d, &a, F16, EDDY_SHAPE(2, 6, 7, 7), x, w, ABSENT);
    cr_assert(a.kernel.stride.height == 1 && a.kernel.dilation.width == 1 && a.kernel.groups == 1,
              "defaults are filled in");
    ACCEPTS(conv2d, &a, F16, EDDY_SHAPE(6, 7, 7), SPEC(F16, 4, 9, 8), w, SPEC(F16, 6));
    a.kernel = (eddy_attributes_conv){{2, 3}, {1, 0}, {2, 1}, 2};
    ACCEPTS(conv2d, &a, F16, EDDY_SHAPE(2, 6, 4, 3), x, SPEC(F16, 6, 2, 3, 2), ABSENT);
    ACCEPTS(conv2d, &a, F16, EDDY_SHAPE(0, 6, 4, 3), SPEC(F16, 0, 4, 9, 8), SPEC(F16, 6, 2, 3, 2),
            ABSENT);
}

Test(conv, conv2d_refuses_what_does_not_fit) {
    eddy_arguments_conv2d a = forward();
    const eddy_spec x = SPEC(F32, 2, 4, 9, 8), w = SPEC(F32, 6, 4, 3, 2);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "x must have shape", SPEC(F32, 9, 8), w, ABSENT);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "weight must have rank 4", x, SPEC(F32, 6, 4, 3), ABSENT);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "x has 4 channels, weight is for 3", x,
            SPEC(F32, 6, 3, 3, 2), ABSENT);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "windows of 0 by 2", x, SPEC(F32, 6, 4, 0, 2), ABSENT);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "spans 10 does not fit into 9", x, SPEC(F32, 6, 4, 10, 2),
            ABSENT);
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "bias must have shape [6]", x, w, SPEC(F32, 4));
    REFUSES(conv2d, &a, DTYPE_MISMATCH, "weight is f64", x, SPEC(F64, 6, 4, 3, 2), ABSENT);
    REFUSES(conv2d, &a, DTYPE_MISMATCH, "bias is f64", x, w, SPEC(F64, 6));
    REFUSES(conv2d, &a, DTYPE_MISMATCH, "x must be", SPEC(I64, 2, 4, 9, 8), w, ABSENT);
    a.kernel.groups = 4;
    REFUSES(conv2d, &a, SHAPE_MISMATCH, "6 channels do not make 4 groups", x, SPEC(F32, 6, 1, 3, 2),
            ABSENT);
    a.kernel.groups = -1;
    REFUSES(conv2d, &a, INVALID_ARGUMENT, "groups is -1", x, w, ABSENT);
    a = (eddy_arguments_conv2d){.kernel = {.stride = {2, 0}}};
    REFUSES(conv2d, &a, INVALID_ARGUMENT, "stride is [2, 0]", x, w, ABSENT);
    a = (eddy_arguments_conv2d){.kernel = {.padding = {0, -1}}};
    REFUSES(conv2d, &a, INVALID_ARGUMENT, "padding is [0, -1]", x, w, ABSENT);
    a = (eddy_arguments_conv2d){.kernel = {.dilation = {INT64_MAX, 1}}};
    REFUSES(conv2d, &a, INVALID_ARGUMENT, "dilation is", x, w, ABSENT);
}

Test(conv, conv_transpose2d_goes_back_to_each_input) {
    eddy_arguments_conv_transpose2d a = {0};
    const eddy_spec x = SPEC(F32, 2, 6, 4, 3), w = SPEC(F32, 6, 2, 3, 2);
    ACCEPTS(conv_transpose2d, &a, F32, EDDY_SHAPE(2, 2, 6, 4), x, w, SPEC(F32, 2));
    a = (eddy_arguments_conv_transpose2d){.kernel = {{2, 3}, {1, 0}, {2, 1}, 2},
                                          .output_padding = {1, 2}};
    ACCEPTS(conv_transpose2d, &a, F32, EDDY_SHAPE(2, 4, 10, 10), x, w, SPEC(F32, 4));
    REFUSES(conv_transpose2d, &a, SHAPE_MISMATCH, "bias must have shape [4]", x, w, SPEC(F32, 2));
    REFUSES(conv_transpose2d, &a, SHAPE_MISMATCH, "x has 5 channels, weight is for 6",
            SPEC(F32, 2, 5, 4, 3), w, ABSENT);
    a.output_padding.height = 2;
    REFUSES(conv_transpose2d, &a, INVALID_ARGUMENT, "output_padding [2, 2]", x, w, ABSENT);
    a.output_padding.height = -1;
    REFUSES(conv_transpose2d, &a, INVALID_ARGUMENT, "output_padding is [-1, 2]", x, w, ABSENT);
    a = (eddy_arguments_conv_transpose2d){.kernel = {.padding = {4, 0}}};
    REFUSES(conv_transpose2d, &a, SHAPE_MISMATCH, "cuts off more", x, w, ABSENT);
    const eddy_spec tall = {.dtype = EDDY_F32, .shape = EDDY_SHAPE(0, 6, INT64_C(1) << 60, 1)};
    a = (eddy_arguments_conv_transpose2d){.kernel = {.stride = {64, 1}}};
    REFUSES(conv_transpose2d, &a, SIZE_OVERFLOW, "63 bits", tall, w, ABSENT);
}

Test(conv, conv2d_backward_weight_makes_a_weight) {
    eddy_arguments_conv2d_backward_weight a = {.kernel_size = {3, 2}, .kernel = {.groups = 2}};
    const eddy_spec x = SPEC(F64, 2, 4, 9, 8), grad = SPEC(F64, 2, 6, 7, 7);
    ACCEPTS(conv2d_backward_weight, &a, F64, EDDY_SHAPE(6, 2, 3, 2), grad, x);
    ACCEPTS(conv2d_backward_weight, &a, F64, EDDY_SHAPE(6, 2, 3, 2), SPEC(F64, 2, 6, 5, 7), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "grad has 8 rows, the result 7",
            SPEC(F64, 2, 6, 8, 7), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "grad has 8 columns, the result 7",
            SPEC(F64, 2, 6, 7, 8), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "as many images", SPEC(F64, 3, 6, 7, 7), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "as many images", SPEC(F64, 6, 7, 7), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "grad must have shape", SPEC(F64, 7, 7), x);
    REFUSES(conv2d_backward_weight, &a, SHAPE_MISMATCH, "make 2 groups", SPEC(F64, 2, 5, 7, 7), x);
    REFUSES(conv2d_backward_weight, &a, DTYPE_MISMATCH, "x is f64", SPEC(F32, 2, 6, 7, 7), x);
    a.kernel_size.width = 0;
    REFUSES(conv2d_backward_weight, &a, INVALID_ARGUMENT, "kernel_size is [3, 0]", grad, x);
}

static eddy_tensor *numbers(eddy_shape shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    eddy_tensor *whole = eddy_arange(EDDY_S(0), EDDY_S(count), EDDY_S(1), EDDY_I64, NULL);
    return eddy_reshape(
        eddy_cast(eddy_remainder_s(eddy_mul_s(whole, EDDY_S(7)), EDDY_S(11)), EDDY_F32), shape);
}

static eddy_tensor *channels_last(eddy_tensor *image) {
    return eddy_permute(eddy_contiguous(eddy_permute(image, EDDY_AXES(0, 2, 3, 1))),
                        EDDY_AXES(0, 3, 1, 2));
}

static void assert_same(eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *off = eddy_max(eddy_abs(eddy_sub(a, b)), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_item_f64(off, NULL), 0);
}

/* Small whole numbers: sums are exact in any order. */
Test(conv, channels_last_stays_so) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_SHAPE(2, 3, 6, 5)), *w = numbers(EDDY_SHAPE(4, 3, 3, 3)),
                *last = channels_last(x);
    eddy_tensor *plain = eddy_conv2d(x, w, EDDY_NONE, NULL),
                *kept = eddy_conv2d(last, w, EDDY_NONE, NULL);
    cr_assert(eddy_is_contiguous(plain) && !eddy_is_contiguous(kept));
    cr_assert(eddy_stride_of(kept, 1) == 1 && eddy_stride_of(kept, 3) == 4 &&
              eddy_stride_of(kept, 2) == 12);
    assert_same(plain, kept);
    eddy_tensor *back = eddy_conv_transpose2d(kept, w, EDDY_NONE, NULL);
    cr_assert_eq(eddy_stride_of(back, 1), 1);
    assert_same(back, eddy_conv_transpose2d(plain, w, EDDY_NONE, NULL));
    assert_same(eddy_conv2d_backward_weight(kept, last, (eddy_pair){3, 3}, NULL),
                eddy_conv2d_backward_weight(plain, x, (eddy_pair){3, 3}, NULL));
    eddy_tensor *target = eddy_empty_like(plain, NULL);
    cr_assert_eq(eddy_conv2d_into(last, w, EDDY_NONE, target, NULL), EDDY_OK);
    assert_same(plain, target);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(conv, by_name) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_SHAPE(3, 6, 5)), *w = numbers(EDDY_SHAPE(4, 3, 3, 3)), *got;
    cr_assert_eq(eddy_call("conv2d", EDDY_LIST(x, w, EDDY_NONE),
                           EDDY_ATTRIBUTES({"padding", EDDY_ATTRIBUTE_PAIR, {.pair = {1, 2}}},
                                           {"stride", EDDY_ATTRIBUTE_INT, {.integer = 2}}),
                           &got),
                 EDDY_OK);
    assert_same(got, eddy_conv2d(x, w, EDDY_NONE,
                                 EDDY_OPTIONS(conv2d, .padding = {1, 2}, .stride = {2, 2})));
    eddy_scope_end(scope);
}

/* The strides of images whose channels lie last. */
static void expect_last(eddy_tensor *image, const char *what) {
    const int64_t channels = eddy_dim_of(image, -3), width = eddy_dim_of(image, -1);
    cr_assert_eq(eddy_stride_of(image, -3), 1, "%s", what);
    cr_assert_eq(eddy_stride_of(image, -1), channels, "%s", what);
    cr_assert_eq(eddy_stride_of(image, -2), channels * width, "%s", what);
    if (eddy_rank_of(image) == 4)
        cr_assert_eq(eddy_stride_of(image, 0), channels * width * eddy_dim_of(image, -2), "%s",
                     what);
}

/* Small whole numbers: their sums are exact in any order. */
static eddy_tensor *whole(eddy_shape shape) {
    return eddy_cast(eddy_randint(-3, 4, shape, EDDY_I32, NULL), EDDY_F32);
}

/* Of one channel, row-major and channels last are the same memory. */
Test(conv, results_lie_channels_last_where_that_is_asked_for) {
    eddy_scope *scope = eddy_scope_begin();
    for (int64_t channels = 1; channels < 4; channels++) {
        eddy_tensor *x = whole(EDDY_SHAPE(2, channels, 6, 7)), *one = eddy_select(x, 0, 1);
        eddy_tensor *w = whole(EDDY_SHAPE(5, channels, 3, 3)),
                    *back = whole(EDDY_SHAPE(channels, 5, 3, 3)), *bias = whole(EDDY_SHAPE(5));
        eddy_tensor *plain = eddy_conv2d(x, w, bias, NULL);
        eddy_tensor *last = eddy_conv2d(x, w, bias, EDDY_OPTIONS(conv2d, .is_channels_last = true));
        cr_assert(eddy_is_contiguous(plain));
        expect_last(last, "conv2d");
        assert_same(last, plain);
        last = eddy_conv2d(one, w, bias, EDDY_OPTIONS(conv2d, .is_channels_last = true));
        expect_last(last, "conv2d of one image");
        assert_same(last, eddy_select(plain, 0, 1));
        plain = eddy_conv_transpose2d(x, back, bias, NULL);
        last = eddy_conv_transpose2d(x, back, bias,
                                     EDDY_OPTIONS(conv_transpose2d, .is_channels_last = true));
        cr_assert(eddy_is_contiguous(plain));
        expect_last(last, "conv_transpose2d");
        assert_same(last, plain);
        eddy_tensor *called;
        cr_assert_eq(
            eddy_call("conv2d", EDDY_LIST(x, w, EDDY_NONE),
                      EDDY_ATTRIBUTES({"is_channels_last", EDDY_ATTRIBUTE_BOOL, {.boolean = true}}),
                      &called),
            EDDY_OK);
        expect_last(called, "eddy_call");
        /* A target stays as it is. */
        eddy_tensor *target = eddy_empty_like(called, NULL),
                    *rows = eddy_zeros(eddy_shape_of(called), EDDY_F32, NULL);
        cr_assert_eq(
            eddy_conv2d_into(x, w, EDDY_NONE, rows, EDDY_OPTIONS(conv2d, .is_channels_last = true)),
            EDDY_OK);
        cr_assert(eddy_is_contiguous(rows));
        cr_assert_eq(eddy_conv2d_into(x, w, EDDY_NONE, target, NULL), EDDY_OK);
        assert_same(rows, target);
    }
    eddy_scope_end(scope);
}

Test(conv, channels_last_holds_for_results_without_elements_and_of_one_place) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *none =
        eddy_conv2d(numbers(EDDY_SHAPE(0, 2, 6, 7)), numbers(EDDY_SHAPE(5, 2, 3, 3)), EDDY_NONE,
                    EDDY_OPTIONS(conv2d, .is_channels_last = true));
    cr_assert_eq(eddy_count_of(none), 0);
    eddy_tensor *x = numbers(EDDY_SHAPE(2, 3, 4, 4)), *w = numbers(EDDY_SHAPE(5, 3, 4, 4));
    eddy_tensor *place =
        eddy_conv2d(x, w, EDDY_NONE, EDDY_OPTIONS(conv2d, .is_channels_last = true));
    cr_assert(eddy_is_contiguous(place), "both orders are one");
    assert_same(place, eddy_conv2d(x, w, EDDY_NONE, NULL));
    eddy_scope_end(scope);
}

Test(conv, conv1d_is_conv2d_of_rows) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_SHAPE(2, 4, 9)), *w = numbers(EDDY_SHAPE(6, 2, 3)),
                *bias = numbers(EDDY_SHAPE(6));
    eddy_tensor *got = eddy_conv1d(
        x, w, bias, EDDY_OPTIONS(conv1d, .stride = 2, .padding = 3, .dilation = 2, .groups = 2));
    const eddy_shape shape = eddy_shape_of(got);
    cr_assert(shape.rank == 3 && shape.dims[0] == 2 && shape.dims[1] == 6 && shape.dims[2] == 6);
    float xs[2][4][9], ws[6][2][3], biases[6], ys[2][6][6];
    cr_assert_eq(eddy_read(x, xs, sizeof(xs), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(w, ws, sizeof(ws), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(bias, biases, sizeof(biases), NULL), EDDY_OK);
    cr_assert_eq(eddy_read(got, ys, sizeof(ys), NULL), EDDY_OK);
    for (int n = 0; n < 2; n++)
        for (int o = 0; o < 6; o++)
            for (int i = 0; i < 6; i++) {
                float want = biases[o];
                for (int c = 0; c < 2; c++)
                    for (int k = 0; k < 3; k++) {
                        int at = 2 * i - 3 + 2 * k;
                        want += at >= 0 && at < 9 ? xs[n][o / 3 * 2 + c][at] * ws[o][c][k] : 0;
                    }
                cr_assert_eq(ys[n][o][i], want, "%d %d %d", n, o, i);
            }
    assert_same(eddy_conv1d(eddy_select(x, 0, 1), w, EDDY_NONE, EDDY_OPTIONS(conv1d, .groups = 2)),
                eddy_select(eddy_conv1d(x, w, EDDY_NONE, EDDY_OPTIONS(conv1d, .groups = 2)), 0, 1));
    eddy_error error;
    cr_assert_null(eddy_conv1d(bias, w, EDDY_NONE, NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_not_null(strstr(error.message, "conv1d: x must have rank 2 or 3"));
    cr_assert_null(eddy_conv1d(x, w, EDDY_NONE, NULL));
    cr_assert_eq(eddy_error_take(NULL), EDDY_SHAPE_MISMATCH);
    cr_assert_null(eddy_conv1d(x, bias, EDDY_NONE, NULL));
    cr_assert_eq(eddy_error_take(NULL), EDDY_SHAPE_MISMATCH);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Operands whose strides are 0: f16 and bf16 are copied for the library, and have the bits of their copies. */
Test(conv, halves_that_repeat_are_convolved_like_their_copies) {
    static const eddy_dtype halves[] = {EDDY_F16, EDDY_BF16};
    for (int i = 0; i < 4; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *row = eddy_cast(eddy_rand(EDDY_SHAPE(1, 16, 24, 24), EDDY_F32, NULL),
                                     halves[i / 2]),
                    *window = eddy_cast(eddy_rand(EDDY_SHAPE(1, 16, 3, 3), EDDY_F32, NULL),
                                        halves[i / 2]);
        if (i % 2)
            row = channels_last(row);
        eddy_tensor *x = eddy_expand(row, EDDY_SHAPE(4, 16, 24, 24)),
                    *w = eddy_expand(window, EDDY_SHAPE(32, 16, 3, 3));
        assert_same(eddy_conv2d(x, w, EDDY_NONE, NULL),
                    eddy_conv2d(eddy_clone(x), eddy_clone(w), EDDY_NONE, NULL));
        eddy_scope_end(scope);
    }
}
