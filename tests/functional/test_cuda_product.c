/* Matrix products on a CUDA device, on the fake driver (tests/fake_cuda). Sums of integers are exact in any order, also as floats: then the bits are the CPU's. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/random.h>
#include <tests/functional/twin.h>

/* Of which a sum of a hundred products and more is exact in f32. */
#define LEAST (-6)
#define MOST 6

static twin numbers(eddy_dtype dtype, eddy_shape shape) {
    return twin_indices(dtype, shape, dtype == EDDY_U8 ? 0 : LEAST, MOST);
}

/* Mostly short, now and then more than one tile, rarely 0. */
static int64_t length(void) {
    int64_t kind = random_below(12);
    return kind == 0 ? 0 : kind < 3 ? 30 + random_below(110) : 1 + random_below(20);
}

/* Behind dims of batches, those of `batch` from a place on; each may be 1 instead. */
static eddy_shape operand_shape(eddy_shape batch, int64_t rows, int64_t columns) {
    eddy_shape shape = {.rank = 0};
    for (int32_t d = (int32_t)random_below(batch.rank + 1); d < batch.rank; d++)
        shape.dims[shape.rank++] = random_below(4) == 0 ? 1 : batch.dims[d];
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    return shape;
}

/* Runs a round for each dtype, several times, each in a scope of its own. */
static void each_dtype(int rounds, void (*round)(eddy_dtype)) {
    static const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16, EDDY_I8,
                                        EDDY_U8,  EDDY_I16, EDDY_I32, EDDY_I64};
    size_t count = sizeof(dtypes) / sizeof(*dtypes);
    for (size_t i = 0; i < (size_t)rounds * count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        round(dtypes[i % count]);
        eddy_scope_end(scope);
    }
    twin_expect_no_findings();
}

static void matmul(eddy_dtype dtype) {
    int64_t m = length(), k = length(), n = length();
    eddy_shape batch = twin_shape(3, 3);
    if (m * k * n > 4000)
        batch.rank = 0;
    twin a = numbers(dtype, operand_shape(batch, m, k)),
         b = numbers(dtype, operand_shape(batch, k, n));
    eddy_tensor *product = eddy_matmul(a.here, b.here);
    twin_expect_equal("matmul", product, eddy_matmul(a.there, b.there));
    twin target = twin_random(dtype, eddy_shape_of(product), true);
    cr_assert_eq(eddy_matmul_into(a.here, b.here, target.here), EDDY_OK);
    cr_assert_eq(eddy_matmul_into(a.there, b.there, target.there), EDDY_OK);
    twin_expect_equal("matmul_into", target.here, target.there);
}

Test(cuda_product, matmul) {
    each_dtype(12, matmul);
}

static void vectors(eddy_dtype dtype) {
    int64_t k = length();
    eddy_shape batch = twin_shape(2, 4);
    twin row = numbers(dtype, EDDY_SHAPE(k)), column = numbers(dtype, EDDY_SHAPE(k)),
         left = numbers(dtype, operand_shape(batch, 7, k)),
         right = numbers(dtype, operand_shape(batch, k, 5));
    twin_expect_equal("row and column", eddy_matmul(row.here, column.here),
                      eddy_matmul(row.there, column.there));
    twin_expect_equal("matrix and column", eddy_matmul(left.here, column.here),
                      eddy_matmul(left.there, column.there));
    twin_expect_equal("row and matrix", eddy_matmul(row.here, right.here),
                      eddy_matmul(row.there, right.there));
}

Test(cuda_product, of_vectors) {
    each_dtype(8, vectors);
}

static void linear(eddy_dtype dtype) {
    int64_t k = length(), n = length();
    eddy_shape shape = twin_shape(3, 5);
    shape.dims[shape.rank++] = k;
    twin x = numbers(dtype, shape), weight = numbers(dtype, EDDY_SHAPE(n, k)),
         bias = numbers(dtype, EDDY_SHAPE(n));
    if (random_below(3) == 0)
        bias = (twin){EDDY_NONE, EDDY_NONE};
    twin_expect_equal("linear", eddy_linear(x.here, weight.here, bias.here),
                      eddy_linear(x.there, weight.there, bias.there));
}

Test(cuda_product, linear) {
    each_dtype(12, linear);
}

static void addmm(eddy_dtype dtype) {
    static const double factors[] = {1, 0, 2, -0.5, 2.75};
    int64_t m = length(), k = length(), n = length();
    eddy_shape shapes[] = {
        EDDY_SHAPE(m, n), EDDY_SHAPE(n), EDDY_SHAPE(1, n), EDDY_SHAPE(m, 1), {.rank = 0}};
    double alpha = factors[random_below(5)], beta = factors[random_below(5)];
    const eddy_addmm_options *options =
        EDDY_OPTIONS(addmm, .alpha = alpha, .alpha_is_zero = alpha == 0, .beta = beta,
                     .beta_is_zero = beta == 0);
    twin in = numbers(dtype, shapes[random_below(5)]), a = numbers(dtype, EDDY_SHAPE(m, k)),
         b = numbers(dtype, EDDY_SHAPE(k, n));
    twin_expect_equal("addmm", eddy_addmm(in.here, a.here, b.here, options),
                      eddy_addmm(in.there, a.there, b.there, options));
}

Test(cuda_product, addmm) {
    each_dtype(12, addmm);
}

/* Those who run the tests know which they have given it. */
Test(cuda_product, by_whom_they_are_is_said) {
    float some[] = {1, 2, 3, 4};
    twin x = twin_of(some, EDDY_SHAPE(2, 2), EDDY_F32);
    twin_expect_equal("matmul", eddy_matmul(x.here, x.here), eddy_matmul(x.there, x.there));
    eddy_device_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_device_describe(TWIN_THERE, &info), EDDY_OK);
    const char *expected = getenv("EDDY_TEST_PRODUCTS");
    cr_assert(expected ? strcmp(info.products, expected) == 0 : info.products[0] != '\0', "%s",
              info.products);
    twin_expect_no_findings();
}

/* ---- operands as libraries take them ---- */

static twin dense(twin x) {
    return (twin){eddy_contiguous(x.here), eddy_contiguous(x.there)};
}

/* Dense, or the transpose of what is; perhaps one for all batches. */
static twin matrix(eddy_dtype dtype, int64_t batches, int64_t rows, int64_t columns) {
    bool turns = random_below(2) == 0, shares = batches > 0 && random_below(4) == 0;
    eddy_shape shape = {.rank = 0};
    if (batches > 0)
        shape.dims[shape.rank++] = shares ? 1 : batches;
    shape.dims[shape.rank++] = turns ? columns : rows;
    shape.dims[shape.rank++] = turns ? rows : columns;
    twin x = dense(numbers(dtype, shape));
    if (turns)
        x = (twin){eddy_transpose(x.here, -1, -2), eddy_transpose(x.there, -1, -2)};
    if (shares) {
        eddy_shape all = EDDY_SHAPE(batches, rows, columns);
        x = (twin){eddy_expand(x.here, all), eddy_expand(x.there, all)};
    }
    return x;
}

static void dense_matrices(eddy_dtype dtype) {
    int64_t batches = random_below(4), m = 1 + random_below(40), k = 1 + random_below(40),
            n = 1 + random_below(40);
    twin a = matrix(dtype, batches, m, k), b = matrix(dtype, batches, k, n);
    twin_expect_equal("matmul", eddy_matmul(a.here, b.here), eddy_matmul(a.there, b.there));
}

Test(cuda_product, of_dense_matrices) {
    each_dtype(20, dense_matrices);
}

static void dense_addends(eddy_dtype dtype) {
    static const double betas[] = {1, 1, 0, 2.5};
    int64_t m = 1 + random_below(40), k = 1 + random_below(40), n = 1 + random_below(40);
    eddy_shape shapes[] = {EDDY_SHAPE(m, n), EDDY_SHAPE(n), EDDY_SHAPE(m, 1)};
    double beta = betas[random_below(4)];
    const eddy_addmm_options *options = EDDY_OPTIONS(addmm, .alpha = 1 + (double)random_below(2),
                                                     .beta = beta, .beta_is_zero = beta == 0);
    twin x = matrix(dtype, 0, m, k), b = matrix(dtype, 0, k, n), weight = matrix(dtype, 0, n, k),
         bias = dense(numbers(dtype, EDDY_SHAPE(n))),
         in = random_below(3) == 0 ? matrix(dtype, 0, m, n)
                                   : dense(numbers(dtype, shapes[random_below(3)]));
    twin_expect_equal("linear", eddy_linear(x.here, weight.here, bias.here),
                      eddy_linear(x.there, weight.there, bias.there));
    twin_expect_equal("addmm", eddy_addmm(in.here, x.here, b.here, options),
                      eddy_addmm(in.there, x.there, b.there, options));
}

Test(cuda_product, of_dense_matrices_and_what_is_added) {
    each_dtype(20, dense_addends);
}

/* A result that lies column by column. */
static void turned_result(eddy_dtype dtype) {
    int64_t m = 1 + random_below(30), k = 1 + random_below(30), n = 1 + random_below(30);
    twin x = matrix(dtype, 0, m, k), weight = matrix(dtype, 0, n, k),
         bias = dense(numbers(dtype, EDDY_SHAPE(n))),
         memory = dense(numbers(dtype, EDDY_SHAPE(n, m))),
         target = {eddy_transpose(memory.here, 0, 1), eddy_transpose(memory.there, 0, 1)};
    cr_assert_eq(eddy_linear_into(x.here, weight.here, bias.here, target.here), EDDY_OK);
    cr_assert_eq(eddy_linear_into(x.there, weight.there, bias.there, target.there), EDDY_OK);
    twin_expect_equal("linear_into", target.here, target.there);
}

Test(cuda_product, that_lies_column_by_column) {
    each_dtype(12, turned_result);
}

/* What a factor of 0 leaves out is not read. */
Test(cuda_product, a_factor_of_0_reads_nothing) {
    float nan[] = {NAN, NAN, NAN, NAN}, some[] = {1, 2, 3, 4};
    twin none = twin_of(nan, EDDY_SHAPE(2, 2), EDDY_F32),
         x = twin_of(some, EDDY_SHAPE(2, 2), EDDY_F32);
    const eddy_addmm_options *without_in = EDDY_OPTIONS(addmm, .beta_is_zero = true),
                             *without_product = EDDY_OPTIONS(addmm, .alpha_is_zero = true);
    twin_expect_equal("beta 0", eddy_addmm(none.here, x.here, x.here, without_in),
                      eddy_addmm(none.there, x.there, x.there, without_in));
    twin_expect_equal("alpha 0", eddy_addmm(x.here, none.here, none.here, without_product),
                      eddy_addmm(x.there, none.there, none.there, without_product));
    twin_expect_no_findings();
}

/* ---- floats whose sums depend on the order: the bound of the entry ---- */

static double *read_f64(eddy_tensor *tensor) {
    int64_t count = eddy_count_of(tensor);
    double *to = malloc((size_t)count * sizeof(double) + 1);
    cr_assert_eq(eddy_read(eddy_cast(tensor, EDDY_F64), to, (size_t)count * sizeof(double), NULL),
                 EDDY_OK);
    return to;
}

/* Of f64 it would be measured with itself. */
static void within(eddy_dtype dtype) {
    if (dtype == EDDY_F64 || !eddy_dtype_is_float(dtype))
        return;
    int64_t m = 1 + random_below(70), k = 1 + random_below(300), n = 1 + random_below(20);
    twin a = twin_numbers(dtype, EDDY_SHAPE(m, k), false),
         b = twin_numbers(dtype, EDDY_SHAPE(k, n), false);
    if (random_below(2) == 0) {
        a = dense(a);
        b = dense(b);
    }
    eddy_tensor *wide_a = eddy_cast(a.here, EDDY_F64), *wide_b = eddy_cast(b.here, EDDY_F64);
    double *exact = read_f64(eddy_matmul(wide_a, wide_b)),
           *sizes = read_f64(eddy_matmul(eddy_abs(wide_a), eddy_abs(wide_b))),
           *got = read_f64(eddy_matmul(a.there, b.there));
    double ulp = 0x1p-23, rounding = dtype == EDDY_F16 ? 0x1p-11 : dtype == EDDY_BF16 ? 0x1p-8 : 0;
    for (int64_t i = 0; i < m * n; i++) {
        double bound = (double)(k + 4) / 2 * ulp * sizes[i] + rounding * fabs(exact[i]);
        bool overflows = dtype == EDDY_F16 && fabs(exact[i]) + bound >= 65520;
        cr_assert(fabs(got[i] - exact[i]) <= bound ||
                      (overflows && got[i] == copysign(INFINITY, exact[i])),
                  "%s, seed %llu: element %lld is %g instead of %g", eddy_dtype_name(dtype),
                  (unsigned long long)random_seed(), (long long)i, got[i], exact[i]);
    }
    free(exact);
    free(sizes);
    free(got);
}

Test(cuda_product, is_within_the_bound) {
    each_dtype(20, within);
}

/* ---- gradients ---- */

static void gradient_on(eddy_device device, twin *const given[3], eddy_tensor *gradients[3]) {
    eddy_tensor *leaves[3];
    for (int i = 0; i < 3; i++) {
        leaves[i] = eddy_detach(device.kind == EDDY_DEVICE_CPU ? given[i]->here : given[i]->there);
        cr_assert_eq(eddy_requires_grad_set(leaves[i], true), EDDY_OK);
    }
    eddy_tensor *y = eddy_linear(leaves[0], leaves[1], leaves[2]);
    cr_assert_eq(eddy_backward(eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL)), EDDY_OK);
    for (int i = 0; i < 3; i++)
        gradients[i] = eddy_grad_of(leaves[i]);
}

static void gradients(eddy_dtype dtype) {
    if (dtype != EDDY_F32 && dtype != EDDY_F64)
        return;
    twin x = numbers(dtype, EDDY_SHAPE(3, 4, 6)), weight = numbers(dtype, EDDY_SHAPE(5, 6)),
         bias = numbers(dtype, EDDY_SHAPE(5)), *const given[] = {&x, &weight, &bias};
    eddy_tensor *here[3], *there[3];
    gradient_on(EDDY_CPU, given, here);
    gradient_on(TWIN_THERE, given, there);
    for (int i = 0; i < 3; i++)
        twin_expect_equal("a gradient", here[i], there[i]);
}

Test(cuda_product, has_the_gradients_of_the_cpu) {
    each_dtype(3, gradients);
}
