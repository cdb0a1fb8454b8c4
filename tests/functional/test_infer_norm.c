/* Normalisations: what their rules accept and refuse, and the public functions. */
#include "inferring.h"
#include <eddy/eddy.h>

Test(infer_norm, layer_norm_takes_the_last_axes) {
    eddy_arguments_layer_norm a = {.axis_count = 2, .eps = 1e-5};
    ACCEPTS(layer_norm, &a, F16, EDDY_SHAPE(5, 3, 4), SPEC(F16, 5, 3, 4), SPEC(F16, 3, 4), ABSENT);
    ACCEPTS(layer_norm, &a, BF16, EDDY_SHAPE(0, 3, 4), SPEC(BF16, 0, 3, 4), SPEC(F32, 3, 4),
            SPEC(BF16, 3, 4));
    ACCEPTS(layer_norm_backward, &a, F32, EDDY_SHAPE(5, 3, 4), SPEC(F32, 5, 3, 4),
            SPEC(F32, 5, 3, 4), ABSENT);
    ACCEPTS(layer_norm_backward_weight, &a, F32, EDDY_SHAPE(3, 4), SPEC(F32, 5, 3, 4),
            SPEC(F32, 5, 3, 4));
    ACCEPTS(rms_norm, &a, F64, EDDY_SHAPE(5, 3, 4), SPEC(F64, 5, 3, 4), SPEC(F64, 3, 4));
    REFUSES(layer_norm, &a, SHAPE_MISMATCH, "weight must have shape [3, 4]", SPEC(F32, 5, 3, 4),
            SPEC(F32, 4), ABSENT);
    REFUSES(layer_norm, &a, DTYPE_MISMATCH, "bias is f64", SPEC(F32, 5, 3, 4), ABSENT,
            SPEC(F64, 3, 4));
    REFUSES(layer_norm, &a, DTYPE_MISMATCH, "x must be", SPEC(I64, 5, 3, 4), ABSENT, ABSENT);
    REFUSES(layer_norm_backward, &a, SHAPE_MISMATCH, "grad and x", SPEC(F32, 5, 3),
            SPEC(F32, 5, 3, 4), ABSENT);
    REFUSES(rms_norm_backward_weight, &a, DTYPE_MISMATCH, "grad is f16", SPEC(F16, 5, 4),
            SPEC(F32, 5, 4));
    a.axis_count = 0;
    REFUSES(rms_norm, &a, OUT_OF_RANGE, "axis_count 0", SPEC(F32, 5, 3), ABSENT);
    a.axis_count = 3;
    REFUSES(layer_norm, &a, OUT_OF_RANGE, "the rank 2", SPEC(F32, 5, 3), ABSENT, ABSENT);
    a = (eddy_arguments_layer_norm){.axis_count = 1, .eps = -1};
    REFUSES(layer_norm, &a, INVALID_ARGUMENT, "eps is -1", SPEC(F32, 5, 3), ABSENT, ABSENT);
}

Test(infer_norm, group_norm_cuts_the_channels) {
    eddy_arguments_group_norm a = {.groups = 2};
    ACCEPTS(group_norm, &a, F32, EDDY_SHAPE(5, 4, 7), SPEC(F32, 5, 4, 7), SPEC(F32, 4),
            SPEC(F32, 4));
    ACCEPTS(group_norm_backward, &a, F32, EDDY_SHAPE(5, 4), SPEC(F32, 5, 4), SPEC(F32, 5, 4),
            SPEC(F32, 4));
    ACCEPTS(group_norm_backward_weight, &a, F32, EDDY_SHAPE(4), SPEC(F32, 5, 4, 2),
            SPEC(F32, 5, 4, 2));
    REFUSES(group_norm, &a, INVALID_ARGUMENT, "3 channels", SPEC(F32, 5, 3), ABSENT, ABSENT);
    REFUSES(group_norm, &a, SHAPE_MISMATCH, "[N, C, ..]", SPEC(F32, 4), ABSENT, ABSENT);
    REFUSES(group_norm, &a, SHAPE_MISMATCH, "bias must have shape [4]", SPEC(F32, 5, 4), ABSENT,
            SPEC(F32, 5));
    a.groups = 0;
    REFUSES(group_norm, &a, INVALID_ARGUMENT, "0 groups", SPEC(F32, 5, 4), ABSENT, ABSENT);
}

Test(infer_norm, batch_norm_has_its_channels_at_axis_1) {
    eddy_arguments_batch_norm_training a = {.momentum = 0.1};
    const eddy_spec x = SPEC(BF16, 5, 4, 7), c = SPEC(F32, 4);
    ACCEPTS(batch_norm, &a, BF16, EDDY_SHAPE(5, 4, 7), x, c, c, ABSENT, SPEC(BF16, 4));
    ACCEPTS(batch_norm_training, &a, BF16, EDDY_SHAPE(5, 4, 7), x, ABSENT, ABSENT, c, ABSENT);
    ACCEPTS(batch_norm_training, &a, F32, EDDY_SHAPE(0, 4), SPEC(F32, 0, 4), c, c, c, c);
    ACCEPTS(batch_norm_backward, &a, BF16, EDDY_SHAPE(5, 4, 7), x, x, c);
    ACCEPTS(batch_norm_backward_weight, &a, BF16, EDDY_SHAPE(4), x, x);
    REFUSES(batch_norm, &a, SHAPE_MISMATCH, "variance must have shape [4]", x, c, SPEC(F32, 5),
            ABSENT, ABSENT);
    REFUSES(batch_norm, &a, DTYPE_MISMATCH, "mean is f64", x, SPEC(F64, 4), c, ABSENT, ABSENT);
    REFUSES(batch_norm_training, &a, SHAPE_MISMATCH, "one value", SPEC(F32, 1, 4, 1), ABSENT,
            ABSENT, ABSENT, ABSENT);
    a.momentum = 2;
    REFUSES(batch_norm_training, &a, INVALID_ARGUMENT, "momentum 2", x, c, c, ABSENT, ABSENT);
    eddy_arguments_channel_sum s = {.axes = 0};
    ACCEPTS(channel_sum, &s, BF16, EDDY_SHAPE(4), x);
    cr_assert_eq(s.axes, 5u);
    REFUSES(channel_sum, &s, SHAPE_MISMATCH, "[N, C, ..]", SPEC(F32, 3));
}

Test(infer_norm, public_functions_normalise_and_update) {
    eddy_scope *scope = eddy_scope_begin();
    const float values[] = {1, 10, 3, 30};
    eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(2, 2), EDDY_F32, NULL);
    eddy_tensor *mean = eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL),
                *var = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    float got[4];
    eddy_tensor *y = eddy_batch_norm_training(
        x, mean, var, EDDY_NONE, EDDY_NONE,
        EDDY_OPTIONS(batch_norm_training, .momentum = 0.5, .eps_is_zero = true));
    cr_assert_eq(eddy_read(y, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == -1 && got[1] == -1 && got[2] == 1 && got[3] == 1);
    cr_assert_eq(eddy_read(mean, got, 2 * sizeof(float), NULL), EDDY_OK);
    cr_assert(got[0] == 1 && got[1] == 10);
    cr_assert_eq(eddy_read(var, got, 2 * sizeof(float), NULL), EDDY_OK);
    cr_assert(got[0] == 1.5f && got[1] == 100.5f);
    cr_assert_null(eddy_batch_norm_training(x, mean, mean, EDDY_NONE, EDDY_NONE, NULL));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_OVERLAP, "%s", error.message);
    cr_assert_eq(eddy_call("batch_norm_training", EDDY_LIST(x, mean, var, EDDY_NONE, EDDY_NONE),
                           EDDY_ATTRIBUTES({"momentum", EDDY_ATTRIBUTE_FLOAT, {.floating = 1}}),
                           &y),
                 EDDY_OK);
    cr_assert_eq(eddy_read(mean, got, 2 * sizeof(float), NULL), EDDY_OK);
    cr_assert(got[0] == 2 && got[1] == 20);
    y = eddy_layer_norm(x, EDDY_NONE, EDDY_NONE, 1, EDDY_OPTIONS(layer_norm, .eps_is_zero = true));
    cr_assert_eq(eddy_read(y, got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == -1 && got[1] == 1 && got[2] == -1 && got[3] == 1);
    cr_assert_eq(eddy_item_f64(eddy_sum(eddy_channel_sum(x), EDDY_ALL_AXES, NULL), NULL), 44);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static void lies_channels_last(const eddy_tensor *t) {
    int64_t strides[4];
    cr_assert_eq(eddy_strides_of(t, strides), EDDY_OK);
    int64_t channels = eddy_dim_of(t, 1), width = eddy_dim_of(t, 3);
    cr_assert(strides[1] == 1 && strides[3] == channels && strides[2] == channels * width);
}

static void expect_equal(eddy_tensor *a, eddy_tensor *b) {
    cr_assert_eq(eddy_item_i64(eddy_equal(a, b), NULL), 1);
}

/* The same bits as from row-major images, in channels-last ones. */
Test(infer_norm, channels_last_stay_channels_last) {
    eddy_scope *scope = eddy_scope_begin();
    const int64_t channels[] = {4, 24, 37, 2100, 24};
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F32, EDDY_F64, EDDY_F32, EDDY_BF16};
    for (int k = 0; k < 5; k++) {
        eddy_dtype dtype = dtypes[k];
        int64_t groups = channels[k] % 2 ? 1 : 2;
        eddy_tensor *rows = eddy_randn(EDDY_SHAPE(3, channels[k], 5, 7), dtype, NULL);
        eddy_tensor *x = eddy_permute(eddy_contiguous(eddy_permute(rows, EDDY_AXES(0, 2, 3, 1))),
                                      EDDY_AXES(0, 3, 1, 2));
        lies_channels_last(x);
        eddy_tensor *w = eddy_rand(EDDY_SHAPE(channels[k]), dtype, NULL), *b = eddy_neg(w);
        eddy_tensor *mean = eddy_mul(w, w), *var = eddy_add(w, w), *first = eddy_clone(mean),
                    *second = eddy_clone(mean);
        eddy_tensor *all = eddy_rand(EDDY_SHAPE(channels[k], 5, 7), dtype, NULL);
        eddy_tensor *got[] = {eddy_batch_norm(x, mean, var, w, b, NULL),
                              eddy_batch_norm_training(x, first, EDDY_NONE, w, b, NULL),
                              eddy_group_norm(x, w, b, groups, NULL),
                              eddy_group_norm(x, w, b, channels[k], NULL),
                              eddy_layer_norm(x, all, all, 3, NULL),
                              eddy_rms_norm(x, all, 3, NULL),
                              eddy_batch_norm_backward(rows, x, w, NULL),
                              eddy_group_norm_backward(rows, x, w, groups, NULL),
                              eddy_layer_norm_backward(rows, x, all, 3, NULL)};
        eddy_tensor *want[] = {eddy_batch_norm(rows, mean, var, w, b, NULL),
                               eddy_batch_norm_training(rows, second, EDDY_NONE, w, b, NULL),
                               eddy_group_norm(rows, w, b, groups, NULL),
                               eddy_group_norm(rows, w, b, channels[k], NULL),
                               eddy_layer_norm(rows, all, all, 3, NULL),
                               eddy_rms_norm(rows, all, 3, NULL),
                               eddy_batch_norm_backward(rows, rows, w, NULL),
                               eddy_group_norm_backward(rows, rows, w, groups, NULL),
                               eddy_layer_norm_backward(rows, rows, all, 3, NULL)};
        for (size_t i = 0; i < sizeof(got) / sizeof(got[0]); i++) {
            lies_channels_last(got[i]);
            cr_assert(eddy_is_contiguous(want[i]));
            expect_equal(got[i], want[i]);
        }
        expect_equal(first, second);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
