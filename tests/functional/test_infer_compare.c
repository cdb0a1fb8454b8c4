/* Tests of whole tensors, prelu and to_device, through the public functions. */
#include "inferring.h"
#include <eddy/eddy.h>
#include <math.h>

Test(infer_compare, one_answer_for_two_tensors) {
    ACCEPTS(equal, NULL, BOOL, EDDY_SHAPE(), SPEC(I8, 2, 3), SPEC(I8, 5));
    REFUSES(equal, NULL, DTYPE_MISMATCH, "a is i8", SPEC(I8, 2, 3), SPEC(F32, 2, 3));
    eddy_arguments_allclose a = {.rtol = 1e-5};
    ACCEPTS(allclose, &a, BOOL, EDDY_SHAPE(), SPEC(F16, 2, 1), SPEC(F16, 5));
    REFUSES(allclose, &a, SHAPE_MISMATCH, "cannot be broadcast", SPEC(F32, 2, 3), SPEC(F32, 2));
    REFUSES(allclose, &a, DTYPE_MISMATCH, "a is f64", SPEC(F64, 2), SPEC(F32, 2));
    a.atol = -1;
    REFUSES(allclose, &a, INVALID_ARGUMENT, "atol is -1", SPEC(F32, 2), SPEC(F32, 2));
}

Test(infer_compare, answers_are_read_like_numbers) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = eddy_arange(EDDY_S(0), EDDY_S(6), EDDY_S(1), EDDY_F32, NULL),
                *b = eddy_add_s(a, EDDY_S(1e-3));
    cr_assert_eq(eddy_item_i64(eddy_equal(a, eddy_clone(a)), NULL), 1);
    cr_assert_eq(eddy_item_i64(eddy_equal(a, b), NULL), 0);
    cr_assert_eq(eddy_item_i64(eddy_equal(a, eddy_reshape(a, EDDY_SHAPE(2, 3))), NULL), 0);
    cr_assert_eq(eddy_item_i64(eddy_allclose(a, b, NULL), NULL), 0);
    cr_assert_eq(eddy_item_i64(eddy_allclose(a, b, EDDY_OPTIONS(allclose, .atol = 2e-3)), NULL), 1);
    cr_assert_eq(
        eddy_item_i64(
            eddy_allclose(a, a, EDDY_OPTIONS(allclose, .rtol_is_zero = true, .atol_is_zero = true)),
            NULL),
        1);
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
    eddy_scope_end(scope);
}

static void expect_error(eddy_status status, const char *op, const char *part) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_str_eq(error.op, op);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

Test(infer_compare, prelu_has_a_weight_for_each_channel) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_from_data((float[]){-1, 1, -2, 2, -3, 3, -4, NAN}, EDDY_SHAPE(2, 2, 2),
                                    EDDY_F32, NULL);
    eddy_tensor *w =
        eddy_slice(eddy_from_data((float[]){2, 0, 3}, EDDY_SHAPE(3), EDDY_F32, NULL), 0, 0, 3, 2);
    float got[8];
    cr_assert_eq(eddy_read(eddy_prelu(x, w), got, sizeof(got), NULL), EDDY_OK);
    cr_assert(got[0] == -2 && got[1] == 1 && got[2] == -6 && got[3] == 2 && got[4] == -6 &&
              got[6] == -12);
    cr_assert(got[7] != got[7]);
    cr_assert_eq(eddy_read(eddy_prelu(x, eddy_narrow(w, 0, 1, 1)), got, sizeof(got), NULL),
                 EDDY_OK);
    cr_assert(got[0] == -3 && got[2] == -6 && got[4] == -9);
    cr_assert_eq(
        eddy_item_f64(eddy_prelu(eddy_select(eddy_flatten(x, 0, -1), 0, 0), eddy_select(w, 0, 0)),
                      NULL),
        -2);
    cr_assert_null(eddy_prelu(x, eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL)));
    expect_error(EDDY_SHAPE_MISMATCH, "prelu", "f32[3]");
    cr_assert_null(eddy_prelu(x, eddy_zeros(EDDY_SHAPE(2, 1), EDDY_F32, NULL)));
    expect_error(EDDY_SHAPE_MISMATCH, "prelu", "f32[2, 1]");
    cr_assert_null(eddy_prelu(EDDY_NONE, w));
    expect_error(EDDY_INVALID_ARGUMENT, "prelu", "EDDY_NONE");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(infer_compare, to_device_is_a_view_where_the_tensor_is_there) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_permute(eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL), EDDY_AXES(1, 0));
    eddy_tensor *y = eddy_to_device(x, eddy_device_current());
    cr_assert_eq(eddy_mul_s_inplace(y, EDDY_S(5)), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_sum(x, EDDY_ALL_AXES, NULL), NULL), 30);
    cr_assert(eddy_stride_of(y, 0) == 1 && eddy_stride_of(y, 1) == 3);
    cr_assert_eq(
        eddy_item_f64(eddy_sum(eddy_to_device(x, (eddy_device){0}), EDDY_ALL_AXES, NULL), NULL),
        30);
    cr_assert_null(eddy_to_device(x, EDDY_CUDA(99)));
    expect_error(EDDY_UNSUPPORTED, "to_device", "cuda:99");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
