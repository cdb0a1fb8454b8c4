/* Reductions, scans and sorting as a program calls them: options, defaults, several outputs, errors. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>

static eddy_tensor *f32(eddy_shape shape, const float *values) {
    return eddy_from_data(values, shape, EDDY_F32, NULL);
}
#define F32(shape, ...) f32(shape, (const float[]){__VA_ARGS__})

static void expect_f64(eddy_tensor *tensor, int64_t count, const double *wanted) {
    cr_assert_not_null(tensor);
    cr_assert_eq(eddy_count_of(tensor), count);
    eddy_tensor *flat = eddy_reshape(tensor, EDDY_SHAPE(count));
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(eddy_item_f64(eddy_select(flat, 0, i), NULL), wanted[i], 1e-5,
                           "element %d is %g, not %g", (int)i,
                           eddy_item_f64(eddy_select(flat, 0, i), NULL), wanted[i]);
}
#define EXPECT(tensor, ...)                                                                        \
    expect_f64(tensor, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),          \
               (const double[]){__VA_ARGS__})

static void expect_error(eddy_status status, const char *op, const char *word) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_str_eq(error.op, op);
    cr_assert(strstr(error.message, word), "%s does not say %s", error.message, word);
}

Test(reduce, correction_is_one_unless_told) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 2), 1, 3, 10, 20);
    EXPECT(eddy_var(a, EDDY_AXES(1), NULL), 2, 50);
    EXPECT(eddy_var(a, EDDY_AXES(1), EDDY_OPTIONS(var, .correction_is_zero = true)), 1, 25);
    EXPECT(eddy_std(a, EDDY_AXES(-1), EDDY_OPTIONS(std, .correction = 0.5)), sqrt(2 / 1.5),
           sqrt(50 / 1.5));
    cr_assert(
        isinf(eddy_item_f64(eddy_var(a, EDDY_ALL_AXES, EDDY_OPTIONS(var, .correction = 4)), NULL)),
        "divided by 0");
    cr_assert_null(eddy_var(eddy_cast(a, EDDY_I32), EDDY_ALL_AXES, NULL));
    expect_error(EDDY_DTYPE_MISMATCH, "var", "input");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, norm_is_of_order_two_unless_told) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(4), 3, 0, -4, 0);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, NULL), 5);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = 1)), 7);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p_is_zero = true)), 2);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = INFINITY)), 4);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = -INFINITY)), 0);
    EXPECT(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = 3, .keeps_dims = true)),
           cbrt(27 + 64));
    cr_assert_null(eddy_norm(a, EDDY_ALL_AXES, EDDY_OPTIONS(norm, .p = (double)NAN)));
    expect_error(EDDY_INVALID_ARGUMENT, "norm", "p");
    eddy_tensor *by_name = NULL;
    cr_assert_eq(eddy_call("norm", EDDY_LIST(a), NULL, &by_name), EDDY_OK);
    EXPECT(by_name, 5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, a_search_along_an_axis_has_two_results) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 3), 1, 5, 5, 7, -2, 0), *values = NULL, *indices = NULL;
    cr_assert_eq(eddy_max_dim(a, 1, NULL, &values, &indices), EDDY_OK);
    EXPECT(values, 5, 7);
    EXPECT(indices, 1, 0);
    cr_assert_eq(eddy_dtype_of(indices), EDDY_I64);
    cr_assert_eq(eddy_min_dim(a, -1, EDDY_OPTIONS(min_dim, .keeps_dims = true), &values, &indices),
                 EDDY_OK);
    EXPECT(values, 1, -2);
    EXPECT(indices, 0, 1);
    cr_assert_eq(eddy_rank_of(indices), 2);
    eddy_tensor *kept = values;
    cr_assert_eq(eddy_max_dim(a, 2, NULL, &values, &indices), EDDY_OUT_OF_RANGE);
    expect_error(EDDY_OUT_OF_RANGE, "max_dim", "axis 2");
    cr_assert_eq(values, kept, "outputs are written on success only");
    EXPECT(eddy_argmin(a, EDDY_AXES(1), NULL), 0, 1);
    EXPECT(eddy_min(a, EDDY_ALL_AXES, NULL), -2);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, the_rest_by_example) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 2), 1, 2, 0, 4);
    EXPECT(eddy_prod(a, EDDY_AXES(1), NULL), 2, 0);
    EXPECT(eddy_prod(eddy_cast(a, EDDY_U8), EDDY_AXES(1), NULL), 2, 0);
    EXPECT(eddy_any(a, EDDY_AXES(0), NULL), 1, 1);
    EXPECT(eddy_all(a, EDDY_AXES(1), NULL), 1, 0);
    EXPECT(eddy_logsumexp(a, EDDY_AXES(1), NULL), log(exp(1) + exp(2)), log(1 + exp(4)));
    eddy_tensor *target = eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL);
    cr_assert_eq(eddy_std_into(a, target, EDDY_AXES(1), NULL), EDDY_OK);
    EXPECT(target, sqrt(0.5), sqrt(8));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, running_totals) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    EXPECT(eddy_cumsum(a, 1), 1, 3, 6, 4, 9, 15);
    EXPECT(eddy_cumsum(eddy_t(a), -1), 1, 5, 2, 7, 3, 9);
    EXPECT(eddy_cumprod(a, 0), 1, 2, 3, 4, 10, 18);
    cr_assert_eq(eddy_dtype_of(eddy_cumprod(eddy_cast(a, EDDY_BOOL), 0)), EDDY_I64);
    eddy_tensor *target = eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    cr_assert_eq(eddy_cumsum_into(a, target, 0), EDDY_OK);
    EXPECT(target, 1, 2, 3, 5, 7, 9);
    EXPECT(eddy_cumprod_backward(eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL),
                                 F32(EDDY_SHAPE(3), 2, 0, 5), 0),
           1, 12, 0);
    cr_assert_null(eddy_cumsum(a, 2));
    expect_error(EDDY_OUT_OF_RANGE, "cumsum", "axis 2");
    cr_assert_eq(eddy_cumsum_into(target, target, 0), EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "cumsum", "target");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, order) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 4), 3, 1, 2, 1, -1, NAN, 5, 0), *values = NULL,
                *indices = NULL;
    eddy_tensor *first = eddy_select(a, 0, 0), *second = eddy_select(a, 0, 1);
    cr_assert_eq(eddy_sort(first, 0, NULL, &values, &indices), EDDY_OK);
    EXPECT(values, 1, 1, 2, 3);
    EXPECT(indices, 1, 3, 2, 0);
    cr_assert_eq(eddy_sort(a, 1, EDDY_OPTIONS(sort, .is_descending = true), &values, &indices),
                 EDDY_OK);
    EXPECT(indices, 0, 2, 1, 3, 1, 2, 3, 0);
    EXPECT(eddy_argsort(second, -1, NULL), 0, 3, 2, 1);
    cr_assert_eq(eddy_topk(first, 2, 0, NULL, &values, &indices), EDDY_OK);
    EXPECT(values, 3, 2);
    cr_assert_eq(
        eddy_topk(second, 2, -1, EDDY_OPTIONS(topk, .is_smallest = true), &values, &indices),
        EDDY_OK);
    EXPECT(values, -1, 0);
    EXPECT(indices, 0, 3);
    cr_assert_eq(eddy_topk(first, 5, 0, NULL, &values, &indices), EDDY_OUT_OF_RANGE);
    expect_error(EDDY_OUT_OF_RANGE, "topk", "k is 5");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(reduce, distinct_elements_and_counts) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 3), 3, 1, 3, 0, 1, 3), *values = NULL, *inverse = NULL,
                *counts = NULL;
    EXPECT(eddy_unique(a), 0, 1, 3);
    cr_assert_eq(eddy_unique_counts(a, &values, &inverse, &counts), EDDY_OK);
    EXPECT(values, 0, 1, 3);
    EXPECT(inverse, 2, 1, 2, 0, 1, 2);
    cr_assert_eq(eddy_rank_of(inverse), 2);
    EXPECT(counts, 1, 2, 3);
    cr_assert_eq(eddy_count_of(eddy_unique(eddy_zeros(EDDY_SHAPE(0), EDDY_I8, NULL))), 0);
    eddy_tensor *flat = eddy_reshape(inverse, EDDY_SHAPE(6));
    EXPECT(eddy_bincount(flat, EDDY_NONE, NULL), 1, 2, 3);
    EXPECT(eddy_bincount(flat, EDDY_NONE, EDDY_OPTIONS(bincount, .minlength = 4)), 1, 2, 3, 0);
    EXPECT(eddy_bincount(flat, eddy_reshape(a, EDDY_SHAPE(6)), NULL), 0, 2, 9);
    eddy_tensor *bad =
        eddy_bincount(eddy_cast(F32(EDDY_SHAPE(3), 1, -2, 0), EDDY_I32), EDDY_NONE, NULL);
    cr_assert_not_null(bad, "found late");
    cr_assert_eq(eddy_rank_of(bad), -1);
    expect_error(EDDY_OUT_OF_RANGE, "bincount", "input[1] is -2");
    int64_t large = INT64_C(1) << 61; /* so many bytes that they do not fit into 64 bits */
    bad = eddy_bincount(eddy_from_data(&large, EDDY_SHAPE(1), EDDY_I64, NULL), EDDY_NONE, NULL);
    cr_assert_eq(eddy_rank_of(bad), -1);
    expect_error(EDDY_SIZE_OVERFLOW, "bincount", "63 bits");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
