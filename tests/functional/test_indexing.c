/* scatter, index_add, index, index_put, embedding, masks and diagonals through the public functions: shapes, values in place and
 * not, what is refused at once and what late. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>

static eddy_tensor *f32(eddy_shape shape, const float *values) {
    return eddy_from_data(values, shape, EDDY_F32, NULL);
}
#define F32(shape, ...) f32(shape, (const float[]){__VA_ARGS__})

static eddy_tensor *i64(eddy_shape shape, const int64_t *values) {
    return eddy_from_data(values, shape, EDDY_I64, NULL);
}
#define I64(shape, ...) i64(shape, (const int64_t[]){__VA_ARGS__})

static eddy_tensor *truths(eddy_shape shape, const uint8_t *values) {
    return eddy_from_data(values, shape, EDDY_BOOL, NULL);
}
#define TRUTHS(shape, ...) truths(shape, (const uint8_t[]){__VA_ARGS__})

static void expect(eddy_tensor *tensor, eddy_shape shape, const float *values) {
    cr_assert_not_null(tensor);
    eddy_shape is = eddy_shape_of(tensor);
    cr_assert(is.rank == shape.rank &&
              memcmp(is.dims, shape.dims, (size_t)is.rank * sizeof(is.dims[0])) == 0);
    float got[64];
    cr_assert_eq(eddy_read(tensor, got, (size_t)eddy_count_of(tensor) * sizeof(got[0]), NULL),
                 EDDY_OK);
    for (int64_t i = 0; i < eddy_count_of(tensor); i++)
        cr_assert_eq(got[i], values[i], "element %lld is %g", (long long)i, (double)got[i]);
}
#define EXPECT(tensor, shape, ...) expect(tensor, shape, (const float[]){__VA_ARGS__})

static void expect_error(eddy_status status, const char *op) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), status, "%s: %s", eddy_status_name(error.status),
                 error.message);
    cr_assert_str_eq(error.op, op);
}

static void refused(const eddy_tensor *tensor, eddy_status status, const char *op) {
    cr_assert_null(tensor);
    expect_error(status, op);
}

/* The op is accepted; reading what it gives fails. */
static void fails_late(eddy_tensor *tensor, const char *op) {
    float values[64];
    cr_assert_not_null(tensor);
    cr_assert_eq(eddy_read(tensor, values, (size_t)eddy_count_of(tensor) * sizeof(values[0]), NULL),
                 EDDY_OUT_OF_RANGE);
    expect_error(EDDY_OUT_OF_RANGE, op);
}

Test(indexing, scatter_sets_and_adds) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F32, NULL),
                *index = I64(EDDY_SHAPE(2, 2), 0, 2, 1, 1);
    eddy_tensor *source = F32(EDDY_SHAPE(2, 2), 1, 2, 3, 4);
    EXPECT(eddy_scatter(x, index, source, 1), EDDY_SHAPE(2, 3), 1, 0, 2, 0, 4, 0);
    EXPECT(eddy_scatter_add(x, index, source, -1), EDDY_SHAPE(2, 3), 1, 0, 2, 0, 7, 0);
    cr_assert_eq(eddy_scatter_add_inplace(x, index, source, 1), EDDY_OK);
    cr_assert_eq(eddy_scatter_add_inplace(x, index, source, 1), EDDY_OK);
    EXPECT(x, EDDY_SHAPE(2, 3), 2, 0, 4, 0, 14, 0);
    refused(eddy_scatter(x, source, source, 1), EDDY_DTYPE_MISMATCH, "scatter");
    refused(eddy_scatter(x, index, eddy_cast(source, EDDY_F64), 1), EDDY_DTYPE_MISMATCH, "scatter");
    refused(eddy_scatter(x, index, source, 2), EDDY_OUT_OF_RANGE, "scatter");
    refused(eddy_scatter(x, eddy_flatten(index, 0, 1), source, 1), EDDY_SHAPE_MISMATCH, "scatter");
    refused(eddy_scatter(x, I64(EDDY_SHAPE(3, 1), 0, 0, 0),
                         eddy_zeros(EDDY_SHAPE(3, 1), EDDY_F32, NULL), 1),
            EDDY_SHAPE_MISMATCH, "scatter");
    refused(eddy_scatter_add(x, I64(EDDY_SHAPE(1, 3), 0, 0, 0), source, 1), EDDY_SHAPE_MISMATCH,
            "scatter_add");
    fails_late(eddy_scatter(x, I64(EDDY_SHAPE(1, 1), 3), source, 1), "scatter");
    fails_late(eddy_scatter_add(x, I64(EDDY_SHAPE(1, 1), -4), source, 1), "scatter_add");
    eddy_scope_end(scope);
}

/* Reading and writing the same elements would make a result depend on the order. */
Test(indexing, only_the_first_operand_may_be_the_target) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL),
                *index = I64(EDDY_SHAPE(2, 2), 0, 1, 1, 0);
    cr_assert_eq(eddy_scatter_add_inplace(x, index, x, 1), EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "scatter_add");
    cr_assert_eq(eddy_scatter_add_into(eddy_zeros_like(x, NULL), index, x, x, 1), EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "scatter_add");
    cr_assert_eq(eddy_scatter_inplace(index, index, index, 1), EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "scatter");
    cr_assert_eq(eddy_index_put_inplace(x, EDDY_LIST(I64(EDDY_SHAPE(2), 0, 1)), x, NULL),
                 EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "index_put");
    cr_assert_eq(eddy_scatter_add_into(x, index, x, eddy_zeros_like(x, NULL), 1), EDDY_OK);
    eddy_scope_end(scope);
}

Test(indexing, index_add_adds_parts) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL),
                *index = I64(EDDY_SHAPE(3), 2, 0, 2);
    eddy_tensor *source = F32(EDDY_SHAPE(3, 2), 1, 2, 3, 4, 5, 6);
    EXPECT(eddy_index_add(x, index, source, 0), EDDY_SHAPE(3, 2), 4, 5, 1, 1, 7, 9);
    EXPECT(eddy_index_add(x, I64(EDDY_SHAPE(), 1), F32(EDDY_SHAPE(3, 1), 1, 2, 3), 1),
           EDDY_SHAPE(3, 2), 1, 2, 1, 3, 1, 4);
    cr_assert_eq(eddy_index_add_inplace(x, index, source, 0), EDDY_OK);
    EXPECT(x, EDDY_SHAPE(3, 2), 4, 5, 1, 1, 7, 9);
    refused(eddy_index_add(x, index, eddy_t(source), 0), EDDY_SHAPE_MISMATCH, "index_add");
    refused(eddy_index_add(x, index, source, 1), EDDY_SHAPE_MISMATCH, "index_add");
    refused(eddy_index_add(x, eddy_unsqueeze(index, 0), source, 0), EDDY_SHAPE_MISMATCH,
            "index_add");
    refused(eddy_index_add(x, eddy_cast(index, EDDY_I16), source, 0), EDDY_DTYPE_MISMATCH,
            "index_add");
    refused(eddy_index_add(x, index, source, -3), EDDY_OUT_OF_RANGE, "index_add");
    fails_late(eddy_index_add(x, I64(EDDY_SHAPE(3), 0, 3, 0), source, 0), "index_add");
    eddy_scope_end(scope);
}

Test(indexing, index_and_index_put_take_several_indices) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = F32(EDDY_SHAPE(2, 3), 0, 1, 2, 3, 4, 5), *rows = I64(EDDY_SHAPE(2, 1), 1, 0);
    eddy_tensor *columns = I64(EDDY_SHAPE(2), -1, 1), *one = I64(EDDY_SHAPE(3), 1, 0, 1);
    EXPECT(eddy_index(x, EDDY_LIST(rows, columns)), EDDY_SHAPE(2, 2), 5, 4, 2, 1);
    EXPECT(eddy_index(x, EDDY_LIST(one)), EDDY_SHAPE(3, 3), 3, 4, 5, 0, 1, 2, 3, 4, 5);
    EXPECT(eddy_index(x, EDDY_LIST(I64(EDDY_SHAPE(), -2))), EDDY_SHAPE(3), 0, 1, 2);
    EXPECT(eddy_index_put(x, EDDY_LIST(rows, columns), F32(EDDY_SHAPE(), 9), NULL),
           EDDY_SHAPE(2, 3), 0, 9, 9, 3, 9, 9);
    EXPECT(eddy_index_put(x, EDDY_LIST(one), F32(EDDY_SHAPE(3, 1), 10, 20, 30), NULL),
           EDDY_SHAPE(2, 3), 20, 20, 20, 30, 30, 30);
    EXPECT(eddy_index_put(x, EDDY_LIST(one), F32(EDDY_SHAPE(3, 1), 10, 20, 30),
                          EDDY_OPTIONS(index_put, .accumulates = true)),
           EDDY_SHAPE(2, 3), 20, 21, 22, 43, 44, 45);
    cr_assert_eq(
        eddy_index_put_inplace(x, EDDY_LIST(rows, columns), F32(EDDY_SHAPE(2, 1), 7, 8), NULL),
        EDDY_OK);
    EXPECT(x, EDDY_SHAPE(2, 3), 0, 8, 8, 3, 7, 7);
    refused(eddy_index(x, (eddy_list){NULL, 0}), EDDY_INVALID_ARGUMENT, "index");
    refused(eddy_index(x, EDDY_LIST(one, one, one)), EDDY_SHAPE_MISMATCH, "index");
    refused(eddy_index(x, EDDY_LIST(one, columns)), EDDY_SHAPE_MISMATCH, "index");
    refused(eddy_index(x, EDDY_LIST(x)), EDDY_DTYPE_MISMATCH, "index");
    refused(eddy_index_put(x, EDDY_LIST(one), F32(EDDY_SHAPE(2), 1, 2), NULL), EDDY_SHAPE_MISMATCH,
            "index_put");
    refused(eddy_index_put(x, EDDY_LIST(one),
                           F32(EDDY_SHAPE(1, 1, 3, 3), 0, 0, 0, 0, 0, 0, 0, 0, 0), NULL),
            EDDY_SHAPE_MISMATCH, "index_put");
    refused(eddy_index_put(x, EDDY_LIST(one), one, NULL), EDDY_DTYPE_MISMATCH, "index_put");
    fails_late(eddy_index(x, EDDY_LIST(I64(EDDY_SHAPE(2), 0, 2))), "index");
    fails_late(eddy_index(x, EDDY_LIST(I64(EDDY_SHAPE(2), 0, -3))), "index");
    fails_late(eddy_index_put(x, EDDY_LIST(I64(EDDY_SHAPE(1), 2)), F32(EDDY_SHAPE(), 1), NULL),
               "index_put");
    eddy_scope_end(scope);
}

Test(indexing, embedding_picks_rows_and_its_gradient_adds_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *weight = F32(EDDY_SHAPE(3, 2), 0, 1, 2, 3, 4, 5),
                *index = I64(EDDY_SHAPE(2, 2), 2, 0, 2, 1);
    eddy_tensor *grad = eddy_ones(EDDY_SHAPE(2, 2, 2), EDDY_F32, NULL);
    EXPECT(eddy_embedding(index, weight, NULL), EDDY_SHAPE(2, 2, 2), 4, 5, 0, 1, 4, 5, 2, 3);
    EXPECT(eddy_embedding(I64(EDDY_SHAPE(), 1), weight, NULL), EDDY_SHAPE(2), 2, 3);
    EXPECT(eddy_embedding_backward(grad, index, weight, NULL), EDDY_SHAPE(3, 2), 1, 1, 1, 1, 2, 2);
    EXPECT(eddy_embedding_backward(grad, index, weight,
                                   EDDY_OPTIONS(embedding_backward, .padding_index = 2)),
           EDDY_SHAPE(3, 2), 1, 1, 1, 1, 0, 0);
    EXPECT(eddy_embedding_backward(grad, index, weight,
                                   EDDY_OPTIONS(embedding_backward, .padding_index_is_zero = true)),
           EDDY_SHAPE(3, 2), 0, 0, 1, 1, 2, 2);
    refused(eddy_embedding(weight, weight, NULL), EDDY_DTYPE_MISMATCH, "embedding");
    refused(eddy_embedding(index, eddy_flatten(weight, 0, 1), NULL), EDDY_SHAPE_MISMATCH,
            "embedding");
    refused(eddy_embedding_backward(weight, index, weight, NULL), EDDY_SHAPE_MISMATCH,
            "embedding_backward");
    refused(eddy_embedding_backward(eddy_cast(grad, EDDY_F64), index, weight, NULL),
            EDDY_DTYPE_MISMATCH, "embedding_backward");
    fails_late(eddy_embedding(I64(EDDY_SHAPE(1), 3), weight, NULL), "embedding");
    fails_late(eddy_embedding(I64(EDDY_SHAPE(1), -1), weight, NULL), "embedding");
    fails_late(eddy_embedding_backward(eddy_ones(EDDY_SHAPE(1, 2), EDDY_F32, NULL),
                                       I64(EDDY_SHAPE(1), 3), weight, NULL),
               "embedding_backward");
    eddy_scope_end(scope);
}

Test(indexing, masks) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = F32(EDDY_SHAPE(2, 2), 0, 1, 2, 3), *row = TRUTHS(EDDY_SHAPE(2), 0, 1);
    EXPECT(eddy_masked_fill(x, row, EDDY_S(7)), EDDY_SHAPE(2, 2), 0, 7, 2, 7);
    EXPECT(eddy_masked_fill(F32(EDDY_SHAPE(), 5), row, EDDY_S(7)), EDDY_SHAPE(2), 5, 7);
    EXPECT(eddy_masked_select(x, row), EDDY_SHAPE(2), 1, 3);
    EXPECT(eddy_masked_select(F32(EDDY_SHAPE(), 5), row), EDDY_SHAPE(1), 5);
    EXPECT(eddy_neg(eddy_masked_select(x, TRUTHS(EDDY_SHAPE(2, 1), 0, 1))), EDDY_SHAPE(2), -2, -3);
    cr_assert_eq(eddy_count_of(eddy_masked_select(x, TRUTHS(EDDY_SHAPE(), 0))), 0);
    EXPECT(eddy_masked_scatter(x, row, F32(EDDY_SHAPE(3), 8, 9, 10)), EDDY_SHAPE(2, 2), 0, 8, 2, 9);
    cr_assert_eq(eddy_masked_scatter_inplace(x, row, F32(EDDY_SHAPE(1, 2), 8, 9)), EDDY_OK);
    cr_assert_eq(eddy_masked_fill_inplace(x, eddy_unsqueeze(row, 1), EDDY_S(-1)), EDDY_OK);
    EXPECT(x, EDDY_SHAPE(2, 2), 0, 8, -1, -1);
    eddy_tensor *three = TRUTHS(EDDY_SHAPE(3), 1, 1, 1);
    refused(eddy_masked_fill(x, three, EDDY_S(7)), EDDY_SHAPE_MISMATCH, "masked_fill");
    refused(eddy_masked_fill(x, x, EDDY_S(7)), EDDY_DTYPE_MISMATCH, "masked_fill");
    refused(eddy_masked_select(x, three), EDDY_SHAPE_MISMATCH, "masked_select");
    refused(eddy_masked_select(x, x), EDDY_DTYPE_MISMATCH, "masked_select");
    refused(eddy_masked_scatter(x, three, x), EDDY_SHAPE_MISMATCH, "masked_scatter");
    refused(eddy_masked_scatter(x, row, three), EDDY_DTYPE_MISMATCH, "masked_scatter");
    fails_late(eddy_masked_scatter(x, row, F32(EDDY_SHAPE(1), 8)), "masked_scatter");
    eddy_scope_end(scope);
}

Test(indexing, triangles_and_diagonals) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *m = F32(EDDY_SHAPE(2, 3), 1, 2, 3, 4, 5, 6), *v = F32(EDDY_SHAPE(2), 7, 8);
    EXPECT(eddy_tril(m, 0), EDDY_SHAPE(2, 3), 1, 0, 0, 4, 5, 0);
    EXPECT(eddy_triu(m, 1), EDDY_SHAPE(2, 3), 0, 2, 3, 0, 0, 6);
    EXPECT(eddy_diag(m, 1), EDDY_SHAPE(2), 2, 6);
    EXPECT(eddy_diag(m, -1), EDDY_SHAPE(1), 4);
    cr_assert_eq(eddy_count_of(eddy_diag(m, INT64_MAX)), 0);
    EXPECT(eddy_diag(v, -1), EDDY_SHAPE(3, 3), 0, 0, 0, 7, 0, 0, 0, 8, 0);
    EXPECT(eddy_diag_backward(v, m, 1), EDDY_SHAPE(2, 3), 0, 7, 0, 0, 0, 8);
    EXPECT(eddy_diag_backward(F32(EDDY_SHAPE(2, 2), 1, 2, 3, 4), v, 0), EDDY_SHAPE(2), 1, 4);
    refused(eddy_diag_backward(v, m, -1), EDDY_SHAPE_MISMATCH, "diag_backward");
    refused(eddy_diag_backward(eddy_cast(v, EDDY_F64), m, 0), EDDY_DTYPE_MISMATCH, "diag_backward");
    refused(eddy_tril(v, 0), EDDY_SHAPE_MISMATCH, "tril");
    refused(eddy_triu(v, 0), EDDY_SHAPE_MISMATCH, "triu");
    refused(eddy_diag(eddy_unsqueeze(m, 0), 0), EDDY_SHAPE_MISMATCH, "diag");
    refused(eddy_diag(v, INT64_MIN), EDDY_SIZE_OVERFLOW, "diag");
    refused(eddy_diag(v, INT64_MAX), EDDY_SIZE_OVERFLOW, "diag");
    cr_assert_eq(eddy_tril_inplace(m, -1), EDDY_OK);
    EXPECT(m, EDDY_SHAPE(2, 3), 0, 0, 0, 4, 0, 0);
    eddy_scope_end(scope);
}

Test(indexing, matrix_products_by_pair_and_with_a_sum) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *a = F32(EDDY_SHAPE(2, 1, 2), 1, 2, 3, 4),
                *b = F32(EDDY_SHAPE(2, 2, 1), 5, 6, 7, 8);
    eddy_tensor *m = F32(EDDY_SHAPE(2, 2), 1, 2, 3, 4), *input = F32(EDDY_SHAPE(2), 10, 20);
    EXPECT(eddy_bmm(a, b), EDDY_SHAPE(2, 1, 1), 17, 53);
    refused(eddy_bmm(a, a), EDDY_SHAPE_MISMATCH, "bmm");
    refused(eddy_bmm(a, eddy_narrow(b, 0, 0, 1)), EDDY_SHAPE_MISMATCH, "bmm");
    refused(eddy_bmm(m, m), EDDY_SHAPE_MISMATCH, "bmm");
    refused(eddy_bmm(a, eddy_cast(b, EDDY_F64)), EDDY_DTYPE_MISMATCH, "bmm");
    EXPECT(eddy_addmm(input, m, m, NULL), EDDY_SHAPE(2, 2), 17, 30, 25, 42);
    EXPECT(eddy_addmm(input, m, m, EDDY_OPTIONS(addmm, .alpha = 2, .beta_is_zero = true)),
           EDDY_SHAPE(2, 2), 14, 20, 30, 44);
    refused(eddy_addmm(a, m, m, NULL), EDDY_SHAPE_MISMATCH, "addmm");
    refused(eddy_addmm(input, m, eddy_narrow(m, 0, 0, 1), NULL), EDDY_SHAPE_MISMATCH, "addmm");
    refused(eddy_addmm(input, a, b, NULL), EDDY_SHAPE_MISMATCH, "addmm");
    refused(eddy_addmm(eddy_cast(input, EDDY_F64), m, m, NULL), EDDY_DTYPE_MISMATCH, "addmm");
    cr_assert_eq(eddy_addmm_into(m, m, m, m, NULL), EDDY_OVERLAP);
    expect_error(EDDY_OVERLAP, "addmm");
    eddy_scope_end(scope);
}

/* BLAS's rule: what has a factor of 0 is not read. */
Test(indexing, a_product_times_zero_is_not_read) {
    eddy_scope *scope = eddy_scope_begin();
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16, EDDY_I32};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        bool is_float = dtypes[i] != EDDY_I32;
        eddy_tensor *input = eddy_cast(F32(EDDY_SHAPE(2), 10, 20), dtypes[i]);
        eddy_tensor *m = eddy_full(EDDY_SHAPE(2, 2), is_float ? EDDY_S((double)NAN) : EDDY_S(7),
                                   dtypes[i], NULL);
        eddy_tensor *sum =
            eddy_addmm(input, m, m, EDDY_OPTIONS(addmm, .alpha_is_zero = true, .beta = 3));
        EXPECT(eddy_cast(sum, EDDY_F32), EDDY_SHAPE(2, 2), 30, 60, 30, 60);
        sum = eddy_addmm(input, m, m,
                         EDDY_OPTIONS(addmm, .alpha_is_zero = true, .beta_is_zero = true));
        EXPECT(eddy_cast(sum, EDDY_F32), EDDY_SHAPE(2, 2), 0, 0, 0, 0);
    }
    eddy_scope_end(scope);
}

/* An index as it is, in i32, and as a view with strides of its own. */
static eddy_tensor *index_form(eddy_tensor *index, int form) {
    if (form == 0)
        return index;
    return form == 1 ? eddy_cast(index, EDDY_I32)
                     : eddy_transpose(eddy_contiguous(eddy_transpose(index, 0, 1)), 0, 1);
}

Test(indexing, an_index_from_the_end_names_what_it_does_from_the_start) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_U8};
    for (int trial = 0; trial < 4 * 3 * 2; trial++) {
        eddy_scope *scope = eddy_scope_begin();
        int32_t axis = trial % 2;
        int64_t size = axis ? 19 : 31;
        eddy_tensor *x =
            eddy_cast(eddy_randint(0, 100, EDDY_SHAPE(31, 19), EDDY_I64, NULL), dtypes[trial / 6]);
        eddy_tensor *source =
            eddy_cast(eddy_randint(0, 3, EDDY_SHAPE(31, 19), EDDY_I64, NULL), dtypes[trial / 6]);
        eddy_tensor *signs = eddy_randint(-size, size, EDDY_SHAPE(31, 19), EDDY_I64, NULL);
        eddy_tensor *plain = eddy_remainder_s(signs, EDDY_S(size)),
                    *index = index_form(signs, trial / 2 % 3);
        cr_expect_eq(
            eddy_item_i64(eddy_equal(eddy_gather(x, index, axis), eddy_gather(x, plain, axis)),
                          NULL),
            1, "%d", trial);
        cr_expect_eq(eddy_item_i64(eddy_equal(eddy_scatter(x, index, source, axis),
                                              eddy_scatter(x, plain, source, axis)),
                                   NULL),
                     1, "%d", trial);
        cr_expect_eq(eddy_item_i64(eddy_equal(eddy_scatter_add(x, index, source, axis),
                                              eddy_scatter_add(x, plain, source, axis)),
                                   NULL),
                     1, "%d", trial);
        cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
        eddy_scope_end(scope);
    }
}

Test(indexing, the_gradient_goes_to_what_an_index_from_the_end_names) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL);
    eddy_requires_grad_set(x, true);
    eddy_tensor *picked = eddy_gather(x, I64(EDDY_SHAPE(3), -1, 0, -1), 0);
    cr_assert_eq(
        eddy_backward(eddy_sum(eddy_mul(picked, F32(EDDY_SHAPE(3), 1, 2, 4)), EDDY_ALL_AXES, NULL)),
        EDDY_OK);
    EXPECT(eddy_grad_of(x), EDDY_SHAPE(4), 2, 0, 0, 5);
    eddy_scope_end(scope);
}

/* As in PyTorch: what picks whole parts along an axis counts from the start alone. */
Test(indexing, parts_have_no_index_from_the_end) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(4, 2), EDDY_F32, NULL), *last = I64(EDDY_SHAPE(1), -1);
    fails_late(eddy_index_select(x, last, 0), "index_select");
    fails_late(eddy_index_add(x, last, eddy_zeros(EDDY_SHAPE(1, 2), EDDY_F32, NULL), 0),
               "index_add");
    fails_late(eddy_embedding(last, x, NULL), "embedding");
    fails_late(eddy_gather(x, I64(EDDY_SHAPE(1, 2), 0, -5), 0), "gather");
    eddy_scope_end(scope);
}
