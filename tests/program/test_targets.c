/* Outputs that are written into tensors of the caller's. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>

#define ROWS 3
#define COLUMNS 4
#define COUNT (ROWS * COLUMNS)

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(ROWS, COLUMNS), EDDY_S(value), EDDY_F32, NULL);
}

/* y = x w, turned = its transpose, sum = its sum, row = its first row, same = x, w */
static eddy_program *make(eddy_tensor *w) {
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(x, w), *sum = eddy_sum(y, EDDY_ALL_AXES, NULL);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"sum", sum, EDDY_ROLE_OUTPUT},
        {"row", eddy_select(y, 0, 0), EDDY_ROLE_OUTPUT}, {"turned", eddy_t(y), EDDY_ROLE_OUTPUT},
        {"same", x, EDDY_ROLE_OUTPUT}, {"w", w, EDDY_ROLE_STATE}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* The targets of all outputs but those that are there before a run, or parts. */
#define TARGETS(y, sum) EDDY_LIST(y, sum, EDDY_NONE, EDDY_NONE, EDDY_NONE)

Test(targets, outputs_are_written_into_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *y = filled(-1), *sum = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    eddy_tensor *kept = eddy_add_s(y, EDDY_S(0));
    for (int i = 1; i < 6; i++) {
        must(eddy_program_run_into(program, EDDY_LIST(filled(i)), TARGETS(y, sum)));
        cr_assert_eq(sum_of(y), 3 * COUNT * i);
        cr_assert_eq(eddy_item_f64(sum, NULL), 3 * COUNT * i);
    }
    cr_assert_eq(sum_of(kept), -COUNT, "what was read before stays");
    eddy_program_release(&program);
    cr_assert_eq(sum_of(y), 3 * COUNT * 5);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(targets, by_name) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *y = filled(-1), *sum = NULL, *row = NULL, *again = NULL;
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", filled(2)}),
                                EDDY_FETCHES({"sum", &sum}, {"row", &row}, {"y", &again}),
                                EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"y", y}))));
    cr_assert_eq(sum_of(y), 6 * COUNT);
    cr_assert_eq(sum_of(sum), 6 * COUNT);
    cr_assert_eq(sum_of(row), 6 * COLUMNS);
    cr_assert_eq(sum_of(again), 6 * COUNT);
    must(eddy_copy_into(filled(1), y));
    cr_assert_eq(sum_of(row), COLUMNS, "an output of the same memory is a part of the target");
    cr_assert_eq(sum_of(again), COUNT);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The strides are those that were recorded: a transposed output has a transposed target. */
Test(targets, have_the_recorded_strides) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *turned = eddy_t(filled(0)),
                *flat = eddy_reshape(turned, EDDY_SHAPE(COLUMNS, ROWS));
    must(eddy_program_run_into(program, EDDY_LIST(filled(2)),
                               EDDY_LIST(EDDY_NONE, EDDY_NONE, EDDY_NONE, turned, EDDY_NONE)));
    cr_assert_eq(sum_of(turned), 6 * COUNT);
    cr_assert_eq(eddy_program_run_into(
                     program, EDDY_LIST(filled(2)),
                     EDDY_LIST(EDDY_NONE, EDDY_NONE, EDDY_NONE, eddy_contiguous(flat), EDDY_NONE)),
                 EDDY_SHAPE_MISMATCH);
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_into: the target of output turned has the strides [3, 1], "
                 "the program was recorded with [1, 4]");
    /* A handle that shows all of another tensor's memory. */
    eddy_tensor *vector = eddy_zeros(EDDY_SHAPE(COUNT), EDDY_F32, NULL);
    must(
        eddy_program_run_into(program, EDDY_LIST(filled(2)),
                              TARGETS(eddy_reshape(vector, EDDY_SHAPE(ROWS, COLUMNS)), EDDY_NONE)));
    cr_assert_eq(sum_of(vector), 6 * COUNT);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Memory that Eddy does not own: results go straight to where a program wants them. */
Test(targets, may_be_memory_of_the_program) {
    eddy_scope *scope = eddy_scope_begin();
    static float memory[COUNT];
    eddy_program *program = make(filled(3));
    eddy_tensor *y =
        eddy_from_buffer(memory, EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL, NULL, NULL);
    must(eddy_program_run_into(program, EDDY_LIST(filled(2)), TARGETS(y, EDDY_NONE)));
    must(eddy_wait(y, EDDY_FOREVER));
    cr_assert(memory[0] == 6 && memory[COUNT - 1] == 6);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

static int64_t acquisitions(void) {
    int64_t count = 0;
    for (int purpose = 0; purpose < EDDY_MEMORY_PURPOSE_COUNT; purpose++)
        count += eddy_memory_counted((eddy_memory_purpose)purpose).acquisitions;
    return count;
}

/* No host memory is asked for, no block of tensors, no handle. */
Test(targets, a_loop_makes_nothing) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *x = filled(2), *y = filled(0), *sum = eddy_zeros(EDDY_SHAPE(), EDDY_F32, NULL);
    eddy_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    int64_t live = eddy_live_count(), asked = 0;
    for (int i = 0; i < 100; i++) {
        if (i == 20) {
            must(eddy_sync(EDDY_FOREVER));
            must(eddy_counters_read(&before));
            asked = acquisitions();
        }
        must(eddy_program_run_into(program, EDDY_LIST(x), TARGETS(y, sum)));
        must(eddy_wait(y, EDDY_FOREVER));
        cr_assert_eq(eddy_live_count(), live);
    }
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_counters_read(&after));
    cr_assert_eq(acquisitions(), asked);
    cr_assert_eq(before.bytes_live + before.bytes_cached, after.bytes_live + after.bytes_cached);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- order, errors, gradients ---- */

/* A chain through two tensors: each run waits for the one before. */
Test(targets, runs_are_ordered_by_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(2));
    eddy_tensor *one = filled(1), *two = filled(0), *copies[8];
    for (int i = 0; i < 8; i++) {
        eddy_tensor *from = i % 2 ? two : one, *to = i % 2 ? one : two;
        must(eddy_program_run_into(program, EDDY_LIST(from), TARGETS(to, EDDY_NONE)));
        copies[i] = eddy_add_s(to, EDDY_S(0));
    }
    for (int i = 0; i < 8; i++)
        cr_assert_eq(sum_of(copies[i]), COUNT * (double)(2 << i));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_tensor *place(int64_t at) {
    return eddy_from_data(&at, EDDY_SHAPE(1), EDDY_I64, NULL);
}

static eddy_status error_of(eddy_tensor *x) {
    eddy_error error = {0};
    return eddy_error_of(x, EDDY_FOREVER, &error);
}

/* As an op that writes all of its target: an error of the run goes there, and one that was there is gone after the next. */
Test(targets, errors_go_there_and_heal) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *table = filled(5), *at = place(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *found = eddy_index_select(table, at, 0), *twice = eddy_add(found, found),
                *apart = eddy_neg(table);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"at", at, EDDY_ROLE_INPUT}, {"found", found, EDDY_ROLE_OUTPUT},
                      {"twice", twice, EDDY_ROLE_OUTPUT}, {"apart", apart, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_tensor *targets[3] = {eddy_zeros(EDDY_SHAPE(1, COLUMNS), EDDY_F32, NULL),
                               eddy_zeros(EDDY_SHAPE(1, COLUMNS), EDDY_F32, NULL), filled(0)};
    for (int i = 0; i < 3; i++) {
        must(eddy_program_run_into(program, EDDY_LIST(place(99)), (eddy_list){targets, 3}));
        cr_assert_eq(error_of(targets[0]), EDDY_OUT_OF_RANGE);
        cr_assert_eq(error_of(targets[1]), EDDY_OUT_OF_RANGE);
        cr_assert_eq(error_of(targets[2]), EDDY_OK);
        eddy_sync(EDDY_FOREVER);
        eddy_error_take(NULL);
        must(eddy_program_run_into(program, EDDY_LIST(place(2)), (eddy_list){targets, 3}));
        cr_assert_eq(error_of(targets[0]), EDDY_OK);
        cr_assert_eq(sum_of(targets[1]), 10 * COLUMNS);
        cr_assert_eq(sum_of(targets[2]), -5 * COUNT);
    }
    /* Targets that hold an error of their own; the op of the second did not run, so that it has no memory yet. */
    eddy_tensor *torn = eddy_index_select(table, place(77), 0), *skipped = eddy_neg(torn);
    eddy_wait(skipped, EDDY_FOREVER);
    eddy_error_take(NULL);
    must(eddy_program_run_into(program, EDDY_LIST(place(2)), EDDY_LIST(torn, skipped, EDDY_NONE)));
    cr_assert_eq(sum_of(torn), 5 * COLUMNS);
    cr_assert_eq(sum_of(skipped), 10 * COLUMNS);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(targets, a_gradient_sees_that_its_operand_was_written) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *factor = filled(1), *w = filled(2);
    must(eddy_requires_grad_set(w, true));
    eddy_tensor *product = eddy_mul(w, factor); /* its gradient needs the factor */
    must(eddy_program_run_into(program, EDDY_LIST(filled(2)), TARGETS(factor, EDDY_NONE)));
    eddy_error error = {0};
    cr_assert_neq(eddy_backward(eddy_sum(product, EDDY_ALL_AXES, NULL)), EDDY_OK);
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "written to in place"), "%s", error.message);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- bad input ---- */

/* The target of y is refused, and nothing has changed. */
static void expect_fails(eddy_program *program, eddy_tensor *x, eddy_tensor *y, eddy_status status,
                         const char *sentence) {
    char message[512];
    snprintf(message, sizeof(message), "program_run_into: %s", sentence);
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), TARGETS(y, EDDY_NONE)), status, "%s",
                 sentence);
    expect_error(status, message);
}

Test(targets, what_does_not_fit_names_its_output) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = filled(3), *x = filled(2), *y = filled(7);
    eddy_program *program = make(w);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    expect_fails(program, x, eddy_zeros(EDDY_SHAPE(2, 2), EDDY_F32, NULL), EDDY_SHAPE_MISMATCH,
                 "the target of output y is f32[2, 2], the program was recorded with f32[3, 4]");
    expect_fails(program, x, eddy_cast(y, EDDY_I64), EDDY_DTYPE_MISMATCH,
                 "the target of output y is i64[3, 4], the program was recorded with f32[3, 4]");
    expect_fails(program, x, eddy_t(eddy_zeros(EDDY_SHAPE(4, 3), EDDY_F32, NULL)),
                 EDDY_SHAPE_MISMATCH,
                 "the target of output y has the strides [1, 3], "
                 "the program was recorded with [4, 1]");
    eddy_tensor *large = eddy_zeros(EDDY_SHAPE(9, COLUMNS), EDDY_F32, NULL);
    expect_fails(program, x, eddy_narrow(large, 0, 3, ROWS), bad,
                 "the target of output y is a part of a larger tensor: a run writes whole ones");
    expect_fails(program, x, eddy_narrow(large, 0, 0, ROWS), bad,
                 "the target of output y is a part of a larger tensor: a run writes whole ones");
    expect_fails(
        program, x, x, bad,
        "input x shares its memory with the target of output y, and the program writes it");
    expect_fails(program, x, w, bad,
                 "the target of output y shares its memory with w, and the program writes it");
    expect_fails(program, x, NULL, bad, "y is NULL");
    eddy_tensor *far = filled(1);
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 1}); /* there is none so far */
    expect_fails(program, x, far, EDDY_DEVICE_MISMATCH,
                 "the target of output y lives on another device");
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 0});
    eddy_runtime *other = eddy_runtime_create(NULL);
    must(eddy_runtime_use(other));
    eddy_tensor *foreign = filled(1);
    must(eddy_runtime_use(NULL));
    expect_fails(program, x, foreign, EDDY_RUNTIME_MISMATCH,
                 "the target of output y belongs to another runtime than the program");
    cr_assert_eq(sum_of(y), 7 * COUNT);
    cr_assert_eq(sum_of(x), 2 * COUNT);
    cr_assert_eq(sum_of(w), 3 * COUNT);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(targets, outputs_that_have_none) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *x = filled(2), *y = filled(7);
    eddy_tensor *row = eddy_zeros(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL);
    eddy_status bad = EDDY_INVALID_ARGUMENT;
#define INTO(...) eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(__VA_ARGS__))
    cr_assert_eq(INTO(EDDY_NONE, EDDY_NONE, row, EDDY_NONE, EDDY_NONE), bad);
    expect_error(bad, "program_run_into: output row is a part of a tensor of the program: it is "
                      "not written into another");
    cr_assert_eq(INTO(EDDY_NONE, EDDY_NONE, EDDY_NONE, EDDY_NONE, y), bad);
    expect_error(bad, "program_run_into: output same is a tensor that is there before a run, or a "
                      "part of one: it is not written into another");
    cr_assert_eq(INTO(y, EDDY_NONE, EDDY_NONE, eddy_t(filled(0)), EDDY_NONE), bad);
    expect_error(bad, "program_run_into: output turned shares its memory with another output that "
                      "has a target");
    cr_assert_eq(INTO(y), bad);
    expect_error(bad, "program_run_into: 1 targets, the program has 5 outputs: "
                      "y, sum, row, turned, same");
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), (eddy_list){NULL, 5}), bad);
    expect_error(bad, "program_run_into: the list of targets has count 5, but its items are NULL");
    eddy_program_run_named_options options = {.size = sizeof(options),
                                              .targets = EDDY_FEEDS({"z", y})};
    cr_assert_eq(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0}, &options),
                 bad);
    expect_error(bad, "program_run_named: the program has no output z: there are "
                      "y, sum, row, turned, same");
    options.targets = EDDY_FEEDS({"y", y}, {"y", x});
    cr_assert_eq(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0}, &options),
                 bad);
    expect_error(bad, "program_run_named: the target of output y is given twice");
    options.targets = (eddy_feeds){NULL, 1};
    cr_assert_eq(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0}, &options),
                 bad);
    expect_error(bad, "program_run_named: the list of targets has count 1, but its items are NULL");
    cr_assert_eq(sum_of(y), 7 * COUNT);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Two outputs of their own in one tensor. */
Test(targets, one_tensor_is_no_target_of_two) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1), *both = filled(0);
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_neg(x), *b = eddy_exp(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(both, both)),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_run_into: the target of output a shares its memory with the target of "
                 "output b, and the program writes it");
    cr_assert_eq(sum_of(both), 0);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(targets, whose_gradient_is_wanted_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = make(filled(3));
    eddy_tensor *x = filled(2), *leaf = filled(1);
    must(eddy_requires_grad_set(leaf, true));
    eddy_tensor *made = eddy_neg(leaf);
    expect_fails(program, x, leaf, EDDY_INVALID_ARGUMENT,
                 "the target of output y requires a gradient, which cannot follow into it; between "
                 "no_grad_begin and _end that is allowed");
    expect_fails(program, x, made, EDDY_UNSUPPORTED,
                 "the target of output y requires a gradient, which cannot follow into it; between "
                 "no_grad_begin and _end that is allowed");
    cr_assert_eq(sum_of(eddy_detach(leaf)), COUNT);
    eddy_no_grad_begin();
    must(eddy_program_run_into(program, EDDY_LIST(x), TARGETS(leaf, EDDY_NONE)));
    eddy_no_grad_end();
    cr_assert_eq(sum_of(eddy_detach(leaf)), 6 * COUNT);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(targets, outputs_without_elements_have_targets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_zeros(EDDY_SHAPE(0, 0), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_clone(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run_into(program, EDDY_LIST(x),
                               EDDY_LIST(eddy_empty(EDDY_SHAPE(0, 0), EDDY_F32, NULL))));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
