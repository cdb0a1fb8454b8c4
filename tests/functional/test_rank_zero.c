/* Numbers as tensors of rank 0, and lists of axes that name none: both as PyTorch takes them. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static eddy_tensor *number(double value) {
    return eddy_full(EDDY_SHAPE(), EDDY_S(value), EDDY_F32, NULL);
}

static eddy_tensor *zeros(eddy_shape shape) {
    return eddy_zeros(shape, EDDY_I64, NULL);
}

/* 0, 1, .. 5 as [2, 3] */
static eddy_tensor *matrix(void) {
    return eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(6), EDDY_S(1), EDDY_F32, NULL),
                        EDDY_SHAPE(2, 3));
}

static void expect(eddy_tensor *tensor, eddy_shape shape, const float *values, const char *what) {
    eddy_error error = {0};
    float got[16];
    if (!tensor)
        (void)eddy_error_take(&error);
    cr_assert_not_null(tensor, "%s: %s", what, error.message);
    eddy_shape is = eddy_shape_of(tensor);
    cr_assert_eq(is.rank, shape.rank, "%s: rank %d", what, (int)is.rank);
    cr_assert_eq(memcmp(is.dims, shape.dims, (size_t)is.rank * sizeof(is.dims[0])), 0, "%s", what);
    cr_assert_eq(eddy_read(tensor, got, (size_t)eddy_count_of(tensor) * sizeof(got[0]), NULL),
                 EDDY_OK, "%s", what);
    for (int64_t i = 0; i < eddy_count_of(tensor); i++)
        cr_expect_eq(got[i], values[i], "%s: element %lld is %g", what, (long long)i,
                     (double)got[i]);
}
#define EXPECT(tensor, shape, ...) expect(tensor, shape, (const float[]){__VA_ARGS__}, #tensor)

/* The gradient of the sum of a call of `x`, a number that is 3. */
#define EXPECT_GRADIENT(call, gradient)                                                            \
    do {                                                                                           \
        eddy_tensor *x = number(3);                                                                \
        cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);                                    \
        eddy_tensor *made = (call);                                                                \
        cr_assert_not_null(made, #call);                                                           \
        cr_assert_eq(eddy_backward(eddy_sum(made, EDDY_ALL_AXES, NULL)), EDDY_OK, #call);          \
        expect(eddy_grad_of(x), EDDY_SHAPE(), &(const float){gradient}, "gradient of " #call);     \
    } while (0)

Test(rank_zero, transpose_leaves_a_number_as_it_is) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_transpose(number(3), 0, -1), EDDY_SHAPE(), 3);
    EXPECT_GRADIENT(eddy_transpose(x, 0, 0), 1);
    cr_expect_null(eddy_transpose(number(3), 0, 1));
    cr_expect_null(eddy_select(number(3), 0, 0), "there is nothing to take the axis from");
    (void)eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(rank_zero, a_number_is_its_own_only_part) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_index_select(number(3), zeros(EDDY_SHAPE()), 0), EDDY_SHAPE(), 3);
    EXPECT(eddy_index_select(number(3), zeros(EDDY_SHAPE(1)), -1), EDDY_SHAPE(), 3);
    EXPECT_GRADIENT(eddy_index_select(x, zeros(EDDY_SHAPE(1)), 0), 1);
    eddy_tensor *beyond = eddy_index_select(number(3), eddy_ones(EDDY_SHAPE(1), EDDY_I64, NULL), 0);
    float value;
    cr_expect_eq(eddy_read(beyond, &value, sizeof(value), NULL), EDDY_OUT_OF_RANGE);
    (void)eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(rank_zero, parts_are_added_to_a_number) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *vector = eddy_arange(EDDY_S(1), EDDY_S(4), EDDY_S(1), EDDY_F32, NULL);
    EXPECT(eddy_index_add(number(3), zeros(EDDY_SHAPE()), number(2), 0), EDDY_SHAPE(), 5);
    EXPECT(eddy_index_add(number(3), zeros(EDDY_SHAPE(1)), number(2), 0), EDDY_SHAPE(), 5);
    EXPECT(eddy_index_add(number(3), zeros(EDDY_SHAPE(3)), vector, 0), EDDY_SHAPE(), 9);
    EXPECT_GRADIENT(eddy_index_add(x, zeros(EDDY_SHAPE(1)), number(2), 0), 1);
    EXPECT_GRADIENT(eddy_index_add(number(2), zeros(EDDY_SHAPE(1)), x, 0), 1);
    EXPECT_GRADIENT(
        eddy_index_add(number(2), zeros(EDDY_SHAPE(3)), eddy_expand(x, EDDY_SHAPE(3)), 0), 3);
    eddy_scope_end(scope);
}

Test(rank_zero, a_number_goes_along_with_vectors_of_indices) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *vector = eddy_arange(EDDY_S(5), EDDY_S(8), EDDY_S(1), EDDY_F32, NULL);
    EXPECT(eddy_gather(number(3), zeros(EDDY_SHAPE(2)), 0), EDDY_SHAPE(2), 3, 3);
    EXPECT(eddy_gather(vector, zeros(EDDY_SHAPE()), 0), EDDY_SHAPE(), 5);
    EXPECT(eddy_scatter(number(3), zeros(EDDY_SHAPE(1)), vector, 0), EDDY_SHAPE(), 5);
    EXPECT(eddy_scatter_add(number(3), zeros(EDDY_SHAPE(3)), vector, 0), EDDY_SHAPE(), 21);
    EXPECT_GRADIENT(eddy_gather(x, zeros(EDDY_SHAPE(2)), 0), 2);
    EXPECT_GRADIENT(eddy_scatter_add(number(1), zeros(EDDY_SHAPE(1)), x, 0), 1);
    EXPECT_GRADIENT(eddy_scatter(number(1), zeros(EDDY_SHAPE()), eddy_expand(x, EDDY_SHAPE(3)), 0),
                    1);
    eddy_scope_end(scope);
}

Test(rank_zero, a_number_is_repeated) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_repeat_interleave(number(3), 3, 0), EDDY_SHAPE(3), 3, 3, 3);
    EXPECT(eddy_repeat_interleave(number(3), 0, -1), EDDY_SHAPE(0), 0);
    EXPECT_GRADIENT(eddy_repeat_interleave(x, 3, 0), 3);
    eddy_scope_end(scope);
}

static eddy_tensor *extreme(eddy_tensor *x, bool is_max, bool keeps_dims) {
    eddy_tensor *values = NULL, *indices = NULL;
    eddy_max_dim_options of_max = {.size = sizeof(of_max), .keeps_dims = keeps_dims};
    eddy_min_dim_options of_min = {.size = sizeof(of_min), .keeps_dims = keeps_dims};
    eddy_status status = is_max ? eddy_max_dim(x, 0, &of_max, &values, &indices)
                                : eddy_min_dim(x, 0, &of_min, &values, &indices);
    cr_assert_eq(status, EDDY_OK);
    return values;
}

Test(rank_zero, the_gradient_goes_back_to_the_largest_of_one) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_max = 0; is_max < 2; is_max++)
        for (int keeps_dims = 0; keeps_dims < 2; keeps_dims++)
            EXPECT_GRADIENT(extreme(x, is_max, keeps_dims), 1);
    eddy_scope_end(scope);
}

/* ---- axes ---- */

static eddy_tensor *called(const char *name, eddy_tensor *x, eddy_axes axes) {
    eddy_attribute attribute = {"axes", EDDY_ATTRIBUTE_AXES, {.axes = axes}};
    eddy_tensor *result = NULL;
    cr_assert_eq(eddy_call(name, EDDY_LIST(x), &(eddy_attributes){&attribute, 1}, &result),
                 EDDY_OK);
    return result;
}

Test(axes, flipped_over_none_is_the_tensor_itself) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_flip(matrix(), EDDY_AXES()), EDDY_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
    EXPECT(eddy_flip(matrix(), EDDY_ALL_AXES), EDDY_SHAPE(2, 3), 5, 4, 3, 2, 1, 0);
    EXPECT(called("flip", matrix(), EDDY_AXES()), EDDY_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
    eddy_tensor *x = matrix();
    eddy_requires_grad_set(x, true);
    cr_assert_eq(
        eddy_backward(eddy_sum(eddy_mul(eddy_flip(x, EDDY_AXES()), matrix()), EDDY_ALL_AXES, NULL)),
        EDDY_OK);
    EXPECT(eddy_grad_of(x), EDDY_SHAPE(2, 3), 0, 1, 2, 3, 4, 5);
    eddy_scope_end(scope);
}

Test(axes, reductions_over_none_reduce_all) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_sum(matrix(), EDDY_AXES(), NULL), EDDY_SHAPE(), 15);
    EXPECT(eddy_mean(matrix(), EDDY_AXES(), NULL), EDDY_SHAPE(), 2.5);
    EXPECT(eddy_max(matrix(), EDDY_AXES(), NULL), EDDY_SHAPE(), 5);
    EXPECT(called("sum", matrix(), EDDY_AXES()), EDDY_SHAPE(), 15);
    eddy_scope_end(scope);
}

Test(axes, squeeze_of_none_and_roll_without_axes) {
    eddy_scope *scope = eddy_scope_begin();
    EXPECT(eddy_squeeze(eddy_unsqueeze(number(3), 0), EDDY_AXES()), EDDY_SHAPE(1), 3);
    EXPECT(eddy_squeeze(eddy_unsqueeze(number(3), 0), EDDY_ALL_AXES), EDDY_SHAPE(), 3);
    EXPECT(eddy_roll(matrix(), EDDY_SHAPE(1), EDDY_AXES()), EDDY_SHAPE(2, 3), 5, 0, 1, 2, 3, 4);
    EXPECT(eddy_roll(matrix(), EDDY_SHAPE(1), EDDY_ALL_AXES), EDDY_SHAPE(2, 3), 5, 0, 1, 2, 3, 4);
    eddy_scope_end(scope);
}
