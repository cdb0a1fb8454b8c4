/* Inputs of a run that are copied from the caller's memory, and those that stay from run to run. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>

/* y = 2 x, with the shape, dtype and strides of `x`. */
static eddy_program *make_double(eddy_tensor *x) {
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul_s(x, EDDY_S(2));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static eddy_status run(eddy_program *program, eddy_data_feeds data, eddy_tensor **y) {
    return eddy_program_run_named(program, (eddy_feeds){0}, EDDY_FETCHES({"y", y}),
                                  EDDY_OPTIONS(program_run_named, .data = data));
}

static void expect_values(eddy_tensor *y, const float *wanted, int64_t count) {
    float values[64];
    must(eddy_read(y, values, (size_t)count * sizeof(float), NULL));
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(values[i], wanted[i], "element %lld", (long long)i);
}

static eddy_tensor *zeros(eddy_shape shape) {
    return eddy_zeros(shape, EDDY_F32, NULL);
}

/* The run may not have begun when the memory is written again. */
Test(data, memory_may_be_written_at_once) {
    eddy_scope *scope = eddy_scope_begin();
    static float pixels[256 * 256];
    eddy_program *program = make_double(zeros(EDDY_SHAPE(256, 256)));
    eddy_tensor *y[8];
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 256 * 256; k++)
            pixels[k] = (float)(i * 1000 + k % 7);
        must(run(program, EDDY_DATA_FEEDS({"x", pixels, EDDY_SHAPE(256, 256), EDDY_F32, NULL}),
                 &y[i]));
        memset(pixels, 0xff, sizeof(pixels));
    }
    for (int i = 0; i < 8; i++) {
        must(eddy_read(y[i], pixels, sizeof(pixels), NULL));
        for (int k = 0; k < 256 * 256; k++)
            cr_assert_eq(pixels[k], (float)(2 * (i * 1000 + k % 7)), "run %d, element %d", i, k);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(data, strides_are_those_of_the_callers_arrays) {
    eddy_scope *scope = eddy_scope_begin();
    static const float given[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    eddy_program *program = make_double(zeros(EDDY_SHAPE(2, 3)));
    eddy_tensor *y;
    eddy_shape shape = EDDY_SHAPE(2, 3);
    must(run(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, (const int64_t[]){3, 1}}), &y));
    expect_values(y, (const float[]){2, 4, 6, 8, 10, 12}, 6);
    must(run(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, (const int64_t[]){1, 2}}), &y));
    expect_values(y, (const float[]){2, 6, 10, 4, 8, 12}, 6);
    must(run(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, (const int64_t[]){6, 2}}), &y));
    expect_values(y, (const float[]){2, 6, 10, 14, 18, 22}, 6);
    must(run(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, (const int64_t[]){0, 4}}), &y));
    expect_values(y, (const float[]){2, 10, 18, 2, 10, 18}, 6);
    must(run(program,
             EDDY_DATA_FEEDS({"x", given + 11, shape, EDDY_F32, (const int64_t[]){-3, -1}}), &y));
    expect_values(y, (const float[]){24, 22, 20, 18, 16, 14}, 6);
    /* Bytes of a record: not aligned for the dtype. */
    char packed[1 + 6 * sizeof(float)];
    memcpy(packed + 1, given, 6 * sizeof(float));
    must(run(program, EDDY_DATA_FEEDS({"x", packed + 1, shape, EDDY_F32, NULL}), &y));
    expect_values(y, (const float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(data, elements_go_where_the_program_was_recorded_to_find_them) {
    eddy_scope *scope = eddy_scope_begin();
    static const float given[] = {1, 2, 3, 4, 5, 6};
    static const float wanted[] = {2, 4, 6, 8, 10, 12};
    eddy_tensor *transposed = eddy_t(zeros(EDDY_SHAPE(3, 2))), *y,
                *with_gaps = eddy_narrow(zeros(EDDY_SHAPE(2, 5)), 1, 1, 3),
                *turned = eddy_permute(zeros(EDDY_SHAPE(3, 2, 1)), EDDY_AXES(1, 2, 0));
    eddy_program *program = make_double(transposed);
    must(run(program, EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(2, 3), EDDY_F32, NULL}), &y));
    expect_values(y, wanted, 6);
    eddy_program_release(&program);
    program = make_double(with_gaps);
    must(run(program, EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(2, 3), EDDY_F32, NULL}), &y));
    expect_values(y, wanted, 6);
    eddy_program_release(&program);
    program = make_double(turned);
    must(run(program, EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(2, 1, 3), EDDY_F32, NULL}), &y));
    expect_values(y, wanted, 6);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(data, numbers_and_nothing_at_all) {
    eddy_scope *scope = eddy_scope_begin();
    float one = 21;
    eddy_tensor *y;
    eddy_program *number = make_double(zeros(EDDY_SHAPE())),
                 *none = make_double(zeros(EDDY_SHAPE(0, 3)));
    must(run(number, EDDY_DATA_FEEDS({"x", &one, EDDY_SHAPE(), EDDY_F32, NULL}), &y));
    expect_values(y, (const float[]){42}, 1);
    must(run(none, EDDY_DATA_FEEDS({"x", NULL, EDDY_SHAPE(0, 3), EDDY_F32, NULL}), &y));
    cr_assert_eq(eddy_count_of(y), 0);
    eddy_program_release(&number);
    eddy_program_release(&none);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The element's bytes decide how it is copied: each size, with strides. */
Test(data, every_size_of_elements) {
    static const eddy_dtype dtypes[] = {EDDY_U8, EDDY_I16, EDDY_I32, EDDY_I64};
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 4; i++) {
        int64_t bytes = (int64_t)eddy_dtype_bytes(dtypes[i]);
        char given[6 * 8] = {0}, values[6 * 8];
        for (int k = 0; k < 6; k++)
            given[k * bytes] = (char)(k + 1); /* little endian */
        eddy_program *program = make_double(eddy_zeros(EDDY_SHAPE(2, 3), dtypes[i], NULL));
        eddy_tensor *y;
        must(
            run(program,
                EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(2, 3), dtypes[i], (const int64_t[]){1, 2}}),
                &y));
        must(eddy_read(y, values, (size_t)(6 * bytes), NULL));
        for (int k = 0; k < 6; k++)
            cr_assert_eq(values[k * bytes], 2 * (k / 3 + 2 * (k % 3) + 1));
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What the program writes to an input is lost with the copy; a gradient has nobody to go to. */
Test(data, a_copy_is_the_runs_own) {
    eddy_scope *scope = eddy_scope_begin();
    float given[] = {1, 2, 3};
    eddy_tensor *x = zeros(EDDY_SHAPE(3)), *w = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), *y;
    must(eddy_record_begin(NULL));
    must(eddy_add_into(x, x, x));
    eddy_program *writes = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", eddy_clone(x), EDDY_ROLE_OUTPUT}));
    must(run(writes, EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(3), EDDY_F32, NULL}), &y));
    expect_values(y, (const float[]){2, 4, 6}, 3);
    cr_assert_eq(given[2], 3);
    must(eddy_requires_grad_set(w, true));
    must(eddy_record_begin(NULL));
    y = eddy_mul(x, w);
    eddy_program *layer = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(run(layer, EDDY_DATA_FEEDS({"x", given, EDDY_SHAPE(3), EDDY_F32, NULL}), &y));
    given[0] = 100;
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    expect_values(eddy_grad_of(w), (const float[]){1, 2, 3}, 3);
    eddy_program_release(&writes);
    eddy_program_release(&layer);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- bad input ---- */

static void expect_fails(eddy_program *program, eddy_data_feeds data, eddy_status status,
                         const char *message) {
    eddy_tensor *y = NULL;
    int64_t before = eddy_live_count();
    cr_assert_eq(run(program, data, &y), status, "%s", message);
    expect_error(status, message);
    cr_assert_null(y);
    cr_assert_eq(eddy_live_count(), before);
}

Test(data, what_does_not_fit_names_its_binding) {
    eddy_scope *scope = eddy_scope_begin();
    float given[6] = {0};
    eddy_shape shape = EDDY_SHAPE(2, 3), wrong = EDDY_SHAPE(3, 2), long_shape = {17, {0}};
    eddy_program *program = make_double(zeros(shape));
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    expect_fails(program, EDDY_DATA_FEEDS({"x", given, wrong, EDDY_F32, NULL}), EDDY_SHAPE_MISMATCH,
                 "program_run_named: the data of input x are f32[3, 2], the program was recorded "
                 "with f32[2, 3]");
    expect_fails(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_I32, NULL}), EDDY_DTYPE_MISMATCH,
                 "program_run_named: the data of input x are i32[2, 3], the program was recorded "
                 "with f32[2, 3]");
    expect_fails(program, EDDY_DATA_FEEDS({"x", given, shape, (eddy_dtype)99, NULL}), bad,
                 "program_run_named: input x: 99 is no dtype");
    expect_fails(program, EDDY_DATA_FEEDS({"x", given, long_shape, EDDY_F32, NULL}), bad,
                 "program_run_named: input x: rank 17 is not within 0 and 16");
    expect_fails(program, EDDY_DATA_FEEDS({"x", NULL, shape, EDDY_F32, NULL}), bad,
                 "program_run_named: the data of input x are NULL");
    expect_fails(
        program,
        EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, (const int64_t[]){INT64_MIN, INT64_MAX}}),
        EDDY_SIZE_OVERFLOW,
        "program_run_named: the strides of the data of input x reach beyond 63 bits");
    expect_fails(program, EDDY_DATA_FEEDS({"z", given, shape, EDDY_F32, NULL}), bad,
                 "program_run_named: the program has no input z: there are x");
    expect_fails(program, EDDY_DATA_FEEDS({NULL, given, shape, EDDY_F32, NULL}), bad,
                 "program_run_named: the name of an input is NULL");
    expect_fails(program, EDDY_DATA_FEEDS({"y", given, shape, EDDY_F32, NULL}), bad,
                 "program_run_named: y is a binding of the program, but no input: there are x");
    expect_fails(
        program,
        EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, NULL}, {"x", given, shape, EDDY_F32, NULL}),
        bad, "program_run_named: input x is given twice");
    expect_fails(program, (eddy_data_feeds){NULL, 1}, bad,
                 "program_run_named: the list of data has count 1, but its items are NULL");
    eddy_tensor *y = NULL;
    cr_assert_eq(eddy_program_run_named(
                     program, EDDY_FEEDS({"x", zeros(shape)}), EDDY_FETCHES({"y", &y}),
                     EDDY_OPTIONS(program_run_named,
                                  .data = EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, NULL}))),
                 bad);
    expect_error(bad, "program_run_named: input x is given twice");
    cr_assert_null(y);
    eddy_program_release(&program);
    program = make_double(eddy_expand(zeros(EDDY_SHAPE(3)), shape));
    expect_fails(program, EDDY_DATA_FEEDS({"x", given, shape, EDDY_F32, NULL}), EDDY_UNSUPPORTED,
                 "program_run_named: input x was recorded with strides by which elements share "
                 "memory: it takes a tensor, and no data");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- defaults ---- */

/* y = x mask, seen += y */
typedef struct masked {
    eddy_program *program;
    eddy_tensor *seen;
} masked;

static masked make_masked(void) {
    eddy_tensor *x = zeros(EDDY_SHAPE(3)), *mask = zeros(EDDY_SHAPE(3)),
                *seen = zeros(EDDY_SHAPE(3));
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(x, mask);
    must(eddy_add_into(seen, y, seen));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"mask", mask, EDDY_ROLE_INPUT},
                                      {"seen", seen, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return (masked){program, seen};
}

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(3), EDDY_S(value), EDDY_F32, NULL);
}

Test(defaults, what_is_not_given_stays_until_it_is_set_anew) {
    eddy_scope *scope = eddy_scope_begin();
    masked m = make_masked();
    eddy_tensor_store *fixed = eddy_tensor_store_create(NULL),
                      *given = eddy_tensor_store_create(NULL);
    eddy_tensor *y;
    must(eddy_tensor_store_set(fixed, "mask", filled(2)));
    for (int i = 1; i <= 3; i++) {
        must(eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(i)}),
                                    EDDY_FETCHES({"y", &y}),
                                    EDDY_OPTIONS(program_run_named, .defaults = fixed)));
        cr_assert_eq(sum_of(y), 3 * 2 * i);
    }
    cr_assert_eq(sum_of(m.seen), 3 * 12, "the program's own state");
    must(eddy_tensor_store_set(fixed, "mask", filled(5)));
    must(eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"y", &y}),
                                EDDY_OPTIONS(program_run_named, .defaults = fixed)));
    cr_assert_eq(sum_of(y), 3 * 5);
    /* What is fed goes first, as a tensor or as data, and then what stands in the store. */
    must(eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(1)}, {"mask", filled(7)}),
                                EDDY_FETCHES({"y", &y}),
                                EDDY_OPTIONS(program_run_named, .defaults = fixed)));
    cr_assert_eq(sum_of(y), 3 * 7);
    static const float mask[] = {1, 2, 3};
    must(eddy_program_run_named(
        m.program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"y", &y}),
        EDDY_OPTIONS(program_run_named, .defaults = fixed,
                     .data = EDDY_DATA_FEEDS({"mask", mask, EDDY_SHAPE(3), EDDY_F32, NULL}))));
    cr_assert_eq(sum_of(y), 6);
    must(eddy_tensor_store_set(given, "mask", filled(9)));
    must(eddy_tensor_store_set(given, "seen", filled(0)));
    must(
        eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"y", &y}),
                               EDDY_OPTIONS(program_run_named, .defaults = fixed, .store = given)));
    cr_assert_eq(sum_of(y), 3 * 9);
    eddy_tensor_store_release(&fixed);
    eddy_tensor_store_release(&given);
    eddy_program_release(&m.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(defaults, state_is_not_taken_from_them) {
    eddy_scope *scope = eddy_scope_begin();
    masked m = make_masked();
    eddy_tensor_store *fixed = eddy_tensor_store_create(NULL),
                      *given = eddy_tensor_store_create(NULL);
    eddy_tensor *y = NULL, *other = filled(0);
    must(eddy_tensor_store_set(fixed, "seen", other));
    must(eddy_tensor_store_set(fixed, "mask", filled(2)));
    must(eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"y", &y}),
                                EDDY_OPTIONS(program_run_named, .defaults = fixed)));
    cr_assert_eq(sum_of(other), 0);
    cr_assert_eq(sum_of(m.seen), 6);
    y = NULL;
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    cr_assert_eq(
        eddy_program_run_named(m.program, EDDY_FEEDS({"x", filled(1)}), EDDY_FETCHES({"y", &y}),
                               EDDY_OPTIONS(program_run_named, .defaults = fixed, .store = given)),
        bad);
    expect_error(bad, "program_run_named: state seen is not given, nor in the store or a parent of "
                      "it");
    cr_assert_eq(eddy_program_run_named(m.program, EDDY_FEEDS({"mask", other}),
                                        EDDY_FETCHES({"y", &y}),
                                        EDDY_OPTIONS(program_run_named, .defaults = fixed)),
                 bad);
    expect_error(bad, "program_run_named: input x is not given, nor in the store or a parent of "
                      "it");
    must(eddy_tensor_store_set(fixed, "mask", zeros(EDDY_SHAPE(4))));
    cr_assert_eq(eddy_program_run_named(m.program, EDDY_FEEDS({"x", other}),
                                        EDDY_FETCHES({"y", &y}),
                                        EDDY_OPTIONS(program_run_named, .defaults = fixed)),
                 EDDY_SHAPE_MISMATCH);
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_named: input mask is f32[4], the program was recorded with f32[3]");
    cr_assert_null(y);
    cr_assert_eq(sum_of(m.seen), 6, "nothing has changed");
    eddy_tensor_store_release(&fixed);
    eddy_tensor_store_release(&given);
    eddy_program_release(&m.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
