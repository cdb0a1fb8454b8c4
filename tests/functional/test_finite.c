/* EDDY_CHECK_FINITE: what an op made of finite numbers is its error, what the caller passed in is none. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>

static void use(const eddy_runtime_options *options) {
    eddy_runtime *runtime = eddy_runtime_create(options);
    cr_assert_not_null(runtime);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
}

static eddy_tensor *numbers(float a, float b) {
    return eddy_from_data((const float[]){a, b}, EDDY_SHAPE(2), EDDY_F32, NULL);
}

static eddy_tensor *matrix(float a, float b) {
    return eddy_unsqueeze(numbers(a, b), 0);
}

static void expect(eddy_status wanted, eddy_tensor *tensor, const char *what) {
    eddy_status status = eddy_wait(tensor, EDDY_FOREVER);
    if (status == EDDY_TORN)
        status = EDDY_NOT_FINITE; /* of what was written to in place */
    cr_expect_eq(status, wanted, "%s: %s instead of %s", what, eddy_status_name(status),
                 eddy_status_name(wanted));
    (void)eddy_error_take(NULL);
}
#define FINE(call) expect(EDDY_OK, call, #call)
#define WRONG(call) expect(EDDY_NOT_FINITE, call, #call)

static eddy_tensor *in_place(eddy_tensor *x, eddy_tensor *y) {
    (void)eddy_mul_inplace(x, y);
    return x;
}

static eddy_tensor *after_step(float rate) {
    eddy_tensor *param = numbers(1, 2), *grad = numbers(1e38f, 1);
    (void)eddy_sgd_step(EDDY_LIST(param), EDDY_LIST(grad), EDDY_S(rate), NULL);
    return param;
}

static void look(bool only_nan) {
    eddy_status overflow = only_nan ? EDDY_OK : EDDY_NOT_FINITE;
    eddy_tensor *ones = numbers(1, 1), *infinite = numbers(1, INFINITY),
                *mask = eddy_gt_s(numbers(0, 1), EDDY_S(0.5));
    /* Passed in: as a number, by an operand; elementwise, with kernels of their own, as a view. */
    FINE(eddy_masked_fill(ones, mask, EDDY_S(-INFINITY)));
    FINE(eddy_full(EDDY_SHAPE(3), EDDY_S(INFINITY), EDDY_F32, NULL));
    FINE(eddy_add_s(ones, EDDY_S(INFINITY)));
    FINE(eddy_add(infinite, ones));
    FINE(eddy_neg(eddy_masked_fill(ones, mask, EDDY_S(-INFINITY))));
    FINE(eddy_sum(infinite, EDDY_ALL_AXES, NULL));
    FINE(eddy_cat(EDDY_LIST(ones, infinite), 0));
    FINE(eddy_softmax(eddy_masked_fill(ones, mask, EDDY_S(-INFINITY)), 0));
    FINE(eddy_add(eddy_t(matrix(1, INFINITY)), ones));
    FINE(in_place(numbers(1, INFINITY), ones));
    FINE(in_place(numbers(2, 3), numbers(INFINITY, 1)));
    /* Made of finite numbers. */
    expect(overflow, eddy_log(numbers(0, 1)), "log(0)");
    expect(overflow, eddy_exp(numbers(1000, 1)), "exp(1000)");
    expect(overflow, eddy_div_s(ones, EDDY_S(0)), "1 / 0");
    expect(overflow, eddy_matmul(matrix(3e38f, 3e38f), eddy_t(matrix(1, 1))), "a product");
    expect(overflow, in_place(numbers(3e38f, 1), numbers(10, 1)), "in place");
    expect(overflow, in_place(eddy_select(matrix(3e38f, 1), 0, 0), numbers(10, 1)),
           "in place by a view");
    expect(overflow, after_step(10), "an optimiser's step");
    FINE(after_step(0.5f));
    /* A NaN always is one. */
    WRONG(eddy_sqrt(numbers(-1, 1)));
    WRONG(eddy_sub(infinite, infinite));
    WRONG(eddy_softmax(numbers(-INFINITY, -INFINITY), 0));
    WRONG(in_place(numbers(0, 1), numbers(INFINITY, 1)));
}

Test(finite, infinities_that_were_passed_in_are_none) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    look(false);
}

Test(finite, in_one_thread_mode_too) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true, .uses_one_thread = true));
    look(false);
}

Test(finite, on_worker_threads_too) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true, .uses_worker_path = true));
    look(false);
}

Test(finite, the_mode_for_nan_lets_infinities_pass) {
    use(EDDY_OPTIONS(runtime, .checks_nan = true));
    look(true);
}

Test(finite, the_strictest_of_the_process_decides) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true));
    use(EDDY_OPTIONS(runtime, .checks_nan = true));
    look(false);
}

/* Tensors of a size with the bits of NaN, whose memory goes back: the next ones of that size hold what they held. */
static void leave_nan(int64_t count) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 8; i++)
        FINE(eddy_full(EDDY_SHAPE(count), EDDY_S(0x7fc00000), EDDY_I32, NULL));
    eddy_scope_end(scope);
}

static bool holds_nan(eddy_tensor *x) {
    float last; /* free blocks are linked by their first bytes */
    eddy_tensor *part = eddy_narrow(x, 0, eddy_count_of(x) - 1, 1);
    cr_assert_eq(eddy_read(part, &last, sizeof(last), NULL), EDDY_OK);
    return isnan(last);
}

Test(finite, what_nobody_has_written_is_not_looked_at) {
    use(EDDY_OPTIONS(runtime, .checks_finite = true, .uses_one_thread = true));
    int found = 0;
    for (int64_t count = 4; count <= 4096; count *= 4) {
        eddy_scope *scope = eddy_scope_begin();
        leave_nan(count);
        eddy_tensor *x = eddy_empty(EDDY_SHAPE(count), EDDY_F32, NULL);
        FINE(x);
        found += holds_nan(x);
        FINE(eddy_empty_like(x, NULL));
        WRONG(eddy_sqrt(eddy_full(EDDY_SHAPE(count), EDDY_S(-1), EDDY_F32, NULL)));
        /* In a program too. */
        cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
        eddy_tensor *y = eddy_empty(EDDY_SHAPE(count), EDDY_F32, NULL), *result;
        eddy_program *program = eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(program);
        leave_nan(count);
        cr_assert_eq(eddy_program_run(program, (eddy_list){0}, &result), EDDY_OK);
        FINE(result);
        found += holds_nan(result);
        eddy_program_release(&program);
        eddy_scope_end(scope);
    }
    cr_assert_gt(found, 0, "memory was never used again");
}
