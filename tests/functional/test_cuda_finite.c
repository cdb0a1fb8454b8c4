/* EDDY_CHECK_FINITE on a CUDA device, on the fake driver (tests/fake_cuda): the records of the CPU, and nothing runs on what has failed. */
#include <base/dtype.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <string.h>
#include <tests/functional/twin.h>

static void use(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
}

static twin numbers(double a, double b, eddy_dtype dtype) {
    const double elements[] = {a, b};
    twin made = twin_of(elements, EDDY_SHAPE(2), EDDY_F64);
    return (twin){eddy_cast(made.here, dtype), eddy_cast(made.there, dtype)};
}

/* The same status, op and words on both devices; whether that is an error follows from the CPU, which tests/functional/test_finite.c looks at. */
static void alike(eddy_tensor *here, eddy_tensor *there, const char *what, int *failures) {
    eddy_error error = {0}, error_there = {0};
    eddy_status status = eddy_error_of(here, EDDY_FOREVER, &error),
                status_there = eddy_error_of(there, EDDY_FOREVER, &error_there);
    cr_assert_eq(status, status_there, "%s: %s; %s", what, error.message, error_there.message);
    cr_assert_str_eq(error_there.op, error.op);
    cr_assert_str_eq(error_there.message, error.message);
    *failures += status != EDDY_OK;
    if (status == EDDY_OK)
        twin_expect_equal(what, here, there);
}

/* `call` uses x, y and infinite, of either device. */
#define ALIKE(call)                                                                                \
    do {                                                                                           \
        eddy_tensor *results[2];                                                                   \
        for (int far = 0; far < 2; far++) {                                                        \
            eddy_tensor *x = far ? both_x.there : both_x.here,                                     \
                        *y = far ? both_y.there : both_y.here,                                     \
                        *infinite = far ? both_infinite.there : both_infinite.here;                \
            (void)x, (void)y, (void)infinite;                                                      \
            results[far] = call;                                                                   \
            cr_assert_not_null(results[far], #call);                                               \
        }                                                                                          \
        alike(results[0], results[1], #call, &failures);                                           \
    } while (0)

static eddy_tensor *in_place(eddy_tensor *target, eddy_tensor *by) {
    eddy_tensor *copy = eddy_clone(target);
    (void)eddy_mul_inplace(copy, by);
    return copy;
}

static eddy_tensor *after_step(eddy_tensor *param, eddy_tensor *grad, double rate) {
    eddy_tensor *copy = eddy_clone(param);
    (void)eddy_sgd_step(EDDY_LIST(copy), EDDY_LIST(grad), EDDY_S(rate), NULL);
    return copy;
}

/* The second output alone is not finite, or the first is, too. */
static eddy_tensor *largest(eddy_tensor *x) {
    eddy_tensor *values, *indices;
    cr_assert_eq(eddy_max_dim(x, 0, NULL, &values, &indices), EDDY_OK);
    return values;
}

/* Returns how many calls have failed. */
static int look(eddy_dtype dtype) {
    eddy_scope *scope = eddy_scope_begin();
    const double most = dtype == EDDY_F16 ? 60000 : dtype == EDDY_F64 ? 1.7e308 : 3.3e38;
    int failures = 0;
    twin both_x = numbers(0, 1, dtype), both_y = numbers(most, most, dtype),
         both_infinite = numbers(1, INFINITY, dtype);
    ALIKE(eddy_log(x));
    ALIKE(eddy_log(y));
    ALIKE(eddy_add(y, y));
    ALIKE(eddy_add(infinite, y));
    ALIKE(eddy_add_s(x, EDDY_S(INFINITY)));
    ALIKE(eddy_sub(infinite, infinite));
    ALIKE(eddy_div_s(y, EDDY_S(0)));
    ALIKE(eddy_mul_s(eddy_expand(eddy_narrow(y, 0, 0, 1), EDDY_SHAPE(7)), EDDY_S(2)));
    ALIKE(eddy_sum(y, EDDY_ALL_AXES, NULL));
    ALIKE(eddy_sum(infinite, EDDY_ALL_AXES, NULL));
    ALIKE(eddy_sqrt(eddy_neg(y)));
    ALIKE(eddy_softmax(eddy_masked_fill(x, eddy_gt_s(x, EDDY_S(0.5)), EDDY_S(-INFINITY)), 0));
    ALIKE(eddy_matmul(eddy_unsqueeze(y, 0), eddy_unsqueeze(y, 1)));
    ALIKE(in_place(y, y));
    ALIKE(in_place(x, infinite));
    ALIKE(in_place(infinite, y));
    ALIKE(after_step(x, y, 10));
    ALIKE(after_step(x, y, 0.125));
    ALIKE(largest(infinite));
    ALIKE(eddy_flip(infinite, EDDY_AXES(0)));
    ALIKE(eddy_cast(infinite, EDDY_I32));
    ALIKE(eddy_mul(eddy_narrow(x, 0, 0, 0), eddy_narrow(y, 0, 0, 0)));
    eddy_scope_end(scope);
    return failures;
}

static void look_at_all(int least) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_F64, EDDY_F16, EDDY_BF16};
    for (size_t i = 0; i < 4; i++)
        cr_assert_geq(look(dtypes[i]), least);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    twin_expect_no_findings();
}

Test(cuda_finite, infinities_that_were_passed_in_are_none) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    look_at_all(9);
}

Test(cuda_finite, in_one_thread_mode_too) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true, .uses_one_thread = true));
    look_at_all(9);
}

Test(cuda_finite, the_mode_for_nan_lets_infinities_pass) {
    use(EDDY_OPTIONS(runtime, .checks_nan = true));
    look_at_all(2);
}

/* What has failed is known to the device before the host knows of it. */
Test(cuda_finite, what_reads_the_result_is_skipped) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    eddy_scope *scope = eddy_scope_begin();
    twin x = numbers(-1, 1, EDDY_F32), ones = numbers(1, 1, EDDY_F32);
    eddy_tensor *total = eddy_clone(ones.there);
    eddy_tensor *root = eddy_sqrt(x.there);
    cr_assert_eq(eddy_add_into(total, root, total), EDDY_OK);
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(total, EDDY_FOREVER, &error), EDDY_SKIPPED, "%s", error.message);
    cr_assert_str_eq(error.op, "sqrt");
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_recover(EDDY_LIST(total)), EDDY_OK);
    twin_expect_equal("what was not written", ones.here, total);
    eddy_scope_end(scope);
    twin_expect_no_findings();
}

/* A bad index is the record, whatever its output holds. */
Test(cuda_finite, the_first_failure_of_a_call_is_its_record) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    eddy_scope *scope = eddy_scope_begin();
    const int64_t at[] = {0, 0, 0, 0, 9};
    const float elements[] = {NAN, 1};
    twin nan = twin_of(elements, EDDY_SHAPE(2), EDDY_F32),
         index = twin_of(at, EDDY_SHAPE(5), EDDY_I64);
    eddy_tensor *here = eddy_index_select(nan.here, index.here, 0),
                *there = eddy_index_select(nan.there, index.there, 0);
    twin_expect_error(here, there);
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(there, EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE, "%s: %s",
                 eddy_status_name(error.status), error.message);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    twin_expect_no_findings();
}

/* Tensors of a size with the bits of NaN, whose memory goes back: the next ones of that size hold what they held. */
static void leave_nan(int64_t count) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 8; i++)
        eddy_full(EDDY_SHAPE(count), EDDY_S(0x7fc00000), EDDY_I32,
                  EDDY_OPTIONS(full, .device = TWIN_THERE));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
}

Test(cuda_finite, what_nobody_has_written_is_not_looked_at) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    int found = 0;
    for (int64_t count = 4; count <= 4096; count *= 4) {
        eddy_scope *scope = eddy_scope_begin();
        leave_nan(count);
        eddy_tensor *x =
            eddy_empty(EDDY_SHAPE(count), EDDY_F32, EDDY_OPTIONS(empty, .device = TWIN_THERE));
        cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_OK);
        float first;
        cr_assert_eq(eddy_read(eddy_narrow(x, 0, 0, 1), &first, sizeof(first), NULL), EDDY_OK);
        found += isnan(first);
        eddy_scope_end(scope);
    }
    cr_assert_gt(found, 0, "memory was never used again");
    twin_expect_no_findings();
}

/* More calls than the tables have rows: who finds an older ticket in its row is told nothing by it. */
Test(cuda_finite, rows_are_used_again, .timeout = 60) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    eddy_scope *scope = eddy_scope_begin();
    twin infinite = numbers(1, INFINITY, EDDY_F32), large = numbers(3e38, 1, EDDY_F32);
    for (int i = 0; i < 2100; i++) {
        eddy_tensor *fine = eddy_neg(infinite.there);
        eddy_release(&fine);
    }
    for (int i = 0; i < 2100; i++) {
        eddy_tensor *wrong = eddy_add(large.there, large.there);
        if (i % 100 == 0)
            cr_assert_eq(eddy_wait(wrong, EDDY_FOREVER), EDDY_NOT_FINITE, "call %d", i);
        eddy_release(&wrong);
    }
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    twin_expect_no_findings();
}
