/* Programs on other devices than the CPU, and on several: simulated ones, or those of CUDA (placed.h). */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/parse.h>
#include <program/program.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/placed.h>
#include <unistd.h>

/* Whatever the device of creation ops is. */
#define HERE EDDY_OPTIONS(from_data, .device = EDDY_CPU)

static double at(eddy_tensor *tensor, int64_t row, int64_t column) {
    return eddy_item_f64(eddy_select(eddy_select(tensor, 0, row), 0, column), NULL);
}

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

static void begin(const char *passes) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
}

static void expect_no_more(eddy_scope *scope, eddy_program **program) {
    eddy_program_release(program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

static void expect_failure(eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

/* Where kernels are the device's own, each call is a partition. */
static bool is_cut_by_call(void) {
    return elsewhere(0).kind == EDDY_DEVICE_CUDA;
}

/* ---- one device ---- */

Test(devices, a_program_runs_where_it_was_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *w = numbers_on(elsewhere(0), 1);
    begin(NULL);
    eddy_tensor *y = eddy_add(eddy_mul(x, w), x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(program->executable->partitions.count, is_cut_by_call() ? 2 : 0);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = numbers_on(run == 1 ? EDDY_CPU : elsewhere(0), 2 + (float)run),
                    *result;
        must(eddy_program_run(program, EDDY_LIST(given), &result));
        cr_assert_eq(eddy_device_of(result).kind, elsewhere(0).kind);
        cr_assert_eq(at(result, 1, 2), (7 + run) * 6 + 7 + run);
    }
    cr_assert_eq(info_of(program).feed_count, 1);
    expect_no_more(scope, &program);
}

/* Of equal ops on two devices both are left. */
Test(devices, are_no_common_subexpression) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *outputs[3];
    begin("all");
    for (int i = 0; i < 2; i++) {
        eddy_tensor *zeros =
            eddy_zeros(EDDY_SHAPE(2, 3), EDDY_F32, EDDY_OPTIONS(zeros, .device = elsewhere(i)));
        outputs[i] = eddy_add(zeros, eddy_to_device(x, elsewhere(i)));
    }
    outputs[2] = eddy_neg(eddy_to_device(x, elsewhere(0)));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", outputs[0], EDDY_ROLE_OUTPUT},
                      {"b", outputs[1], EDDY_ROLE_OUTPUT}, {"c", outputs[2], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(info_of(program).instruction_count, 7, "one copy to far:0 serves two ops");
    must(eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, 5)), outputs));
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(eddy_device_of(outputs[i]).index, i % 2);
        cr_assert_eq(at(outputs[i], 1, 2), i < 2 ? 10 : -10);
    }
    expect_no_more(scope, &program);
}

/* ---- several ---- */

Test(devices, a_program_goes_to_a_device_and_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *w = numbers_on(elsewhere(0), 1);
    begin(NULL);
    eddy_tensor *doubled = eddy_add(x, x);
    eddy_tensor *product = eddy_mul(eddy_to_device(doubled, elsewhere(0)), w);
    eddy_tensor *y = eddy_add(eddy_to_device(product, EDDY_CPU), doubled);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"p", product, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(program->executable->partitions.count, 5);
    cr_assert_eq(info_of(program).instruction_count, 5, "cuts are none");
    for (int run = 0; run < 3; run++) {
        eddy_tensor *results[2];
        must(eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, 2 + (float)run)), results));
        cr_assert_eq(eddy_device_of(results[0]).kind, EDDY_DEVICE_CPU);
        cr_assert_eq(eddy_device_of(results[1]).kind, elsewhere(0).kind);
        cr_assert_eq(at(results[0], 1, 2), 2 * (7 + run) * 6 + 2 * (7 + run));
        cr_assert_eq(at(results[1], 1, 2), 2 * (7 + run) * 6);
    }
    expect_no_more(scope, &program);
}

/* What was recorded in turns has as many partitions as it needs: the copies, then all that the device does. */
Test(devices, instructions_are_put_into_an_order_with_few_cuts) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *z = numbers_on(EDDY_CPU, 1);
    begin("none");
    eddy_tensor *a = eddy_neg(eddy_to_device(x, elsewhere(0)));
    eddy_tensor *b = eddy_add(a, eddy_to_device(z, elsewhere(0)));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    const eddy_partitions *partitions = &program->executable->partitions;
    cr_assert_eq(partitions->count, is_cut_by_call() ? 4 : 3);
    cr_assert(partitions->items[0].transfer != EDDY_CODE_NONE &&
              partitions->items[1].transfer != EDDY_CODE_NONE &&
              partitions->items[2].end_step - partitions->items[2].first_step ==
                  (is_cut_by_call() ? 1 : 2));
    must(
        eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, 3), numbers_on(EDDY_CPU, 5)), &b));
    cr_assert_eq(at(b, 1, 2), 2);
    expect_no_more(scope, &program);
}

Test(devices, a_copy_is_a_program) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(1), 0);
    begin("all");
    eddy_tensor *y = eddy_to_device(x, elsewhere(0));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(program->executable->partitions.count, 1);
    must(eddy_program_run(program, EDDY_LIST(numbers_on(elsewhere(1), 3)), &y));
    cr_assert_eq(at(y, 1, 2), 8);
    expect_no_more(scope, &program);
}

Test(devices, a_copy_that_nobody_uses_is_made) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0);
    begin("none");
    (void)eddy_to_device(x, elsewhere(0));
    eddy_tensor *y = eddy_neg(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).instruction_count, 2);
    must(eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, 3)), &y));
    cr_assert_eq(at(y, 1, 2), -8);
    expect_no_more(scope, &program);
}

/* ---- the pass ---- */

static int64_t left_by(const char *passes, int what) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *y;
    begin(passes);
    eddy_tensor *kept = eddy_clone(x), *there = eddy_to_device(kept, elsewhere(0));
    if (what == 1) /* the first one is written in between */
        must(eddy_add_into(kept, x, kept));
    if (what == 2) /* the copy is */
        must(eddy_mul_into(there, there, there));
    if (what == 3) /* a part of it comes back */
        y = eddy_neg(eddy_to_device(eddy_select(there, 0, 1), EDDY_CPU));
    else if (what == 4) /* it goes on */
        y = eddy_neg(eddy_to_device(there, elsewhere(1)));
    else
        y = eddy_neg(eddy_to_device(there, EDDY_CPU));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must(eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, 2)), &y));
    double expected = what == 2 ? -49 : -7;
    cr_assert_eq(what == 3 ? eddy_item_f64(eddy_select(y, 0, 2), NULL) : at(y, 1, 2), expected,
                 "%s, %d", passes, what);
    int64_t count = info_of(program).instruction_count;
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return count;
}

Test(devices, copies_there_and_back_are_left_out) {
    static const int64_t left[] = {2, 4, 5, 2, 3};
    for (int what = 0; what < 5; what++) {
        cr_assert_eq(left_by("transfer,dead", what), left[what], "%d: %lld", what,
                     (long long)left_by("transfer,dead", what));
        (void)left_by("none", what);
        (void)left_by("all", what);
    }
}

/* ---- inputs from elsewhere ---- */

Test(devices, what_a_run_writes_of_an_input_is_written_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *z = numbers_on(elsewhere(0), 0), *y;
    begin(NULL);
    must(eddy_mul_into(x, z, x));
    y = eddy_neg(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *here = numbers_on(EDDY_CPU, 1);
    must(eddy_program_run(program, EDDY_LIST(here, numbers_on(elsewhere(1), 2)), &y));
    cr_assert_eq(at(here, 1, 2), 6 * 7);
    cr_assert_eq(at(y, 1, 2), -6 * 7);
    cr_assert_eq(info_of(program).feed_count, 2);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(here, here), &y), EDDY_INVALID_ARGUMENT);
    expect_failure(EDDY_INVALID_ARGUMENT,
                   "input x shares its memory with another tensor of the run");
    cr_assert_eq(at(here, 1, 2), 6 * 7, "nothing has happened");
    expect_no_more(scope, &program);
}

Test(devices, inputs_keep_their_strides) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_t(numbers_on(elsewhere(0), 0)), *y;
    begin(NULL);
    y = eddy_neg(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(eddy_t(numbers_on(EDDY_CPU, 3))), &y));
    cr_assert_eq(at(y, 2, 1), -8);
    float row[6] = {1, 2, 3, 4, 5, 6};
    must(eddy_program_run_named(
        program, (eddy_feeds){0}, EDDY_FETCHES({"y", &y}),
        EDDY_OPTIONS(program_run_named,
                     .data = EDDY_DATA_FEEDS({"x", row, EDDY_SHAPE(3, 2), EDDY_F32, NULL}))));
    cr_assert_eq(at(y, 2, 1), -6);
    expect_no_more(scope, &program);
}

/* ---- failures ---- */

/* Poison goes through partitions as through calls: what does not depend on it is computed. */
Test(devices, errors_go_from_partition_to_partition) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t rows[2] = {0, 1}, beyond[2] = {0, 7};
    eddy_tensor *x = numbers_on(EDDY_CPU, 0),
                *pick = eddy_from_data(rows, EDDY_SHAPE(2), EDDY_I64, HERE);
    begin(NULL);
    eddy_tensor *picked =
        eddy_index_select(eddy_to_device(x, elsewhere(0)), eddy_to_device(pick, elsewhere(0)), 0);
    eddy_tensor *other = eddy_neg(eddy_to_device(x, elsewhere(0)));
    eddy_tensor *outputs[2] = {eddy_neg(eddy_to_device(picked, EDDY_CPU)),
                               eddy_neg(eddy_to_device(other, EDDY_CPU))};
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"pick", pick, EDDY_ROLE_INPUT},
                      {"a", outputs[0], EDDY_ROLE_OUTPUT}, {"b", outputs[1], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *bad = eddy_from_data(beyond, EDDY_SHAPE(2), EDDY_I64, HERE);
    must(eddy_program_run(program, EDDY_LIST(x, bad), outputs));
    eddy_error error;
    cr_assert_eq(eddy_error_of(outputs[0], EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    cr_assert_str_eq(error.op, "index_select");
    cr_assert_eq(at(outputs[1], 1, 2), 5);
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x, pick), outputs));
    cr_assert_eq(at(outputs[0], 1, 2), -5);
    expect_no_more(scope, &program);
}

static eddy_status is_small(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(eddy_sum(carried.items[0], EDDY_ALL_AXES, NULL), EDDY_S(100));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status doubled(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_add(carried.items[0], carried.items[0]);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Behind another one, so that the marks of each are its own. */
Test(devices, a_loop_lies_within_a_partition) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *y, *z;
    begin(NULL);
    must(eddy_while(is_small, doubled, NULL, EDDY_LIST(x), NULL, &y));
    eddy_tensor *there = eddy_mul_s(eddy_to_device(y, elsewhere(0)), EDDY_S(0.125));
    must(eddy_while(is_small, doubled, NULL, EDDY_LIST(there), NULL, &z));
    z = eddy_neg(eddy_to_device(z, EDDY_CPU));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_gt(program->executable->partitions.count, 3);
    for (int run = 0; run < 3; run++) {
        must(eddy_program_run(program, EDDY_LIST(numbers_on(EDDY_CPU, (float)run)), &z));
        double sum = 15 + 6 * run, scale = 1;
        while (scale * sum < 100)
            scale *= 2;
        scale /= 8;
        while (scale * sum < 100)
            scale *= 2;
        cr_assert_eq(at(z, 1, 2), -scale * (5 + run));
    }
    expect_no_more(scope, &program);
}

static eddy_status halve(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *there = eddy_to_device(inputs.items[0], elsewhere(0));
    outputs[0] = eddy_to_device(eddy_mul_s(there, EDDY_S(0.5)), EDDY_CPU);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status same(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_clone(inputs.items[0]);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(devices, that_change_within_a_branch_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *y;
    char reason[256];
    begin(NULL);
    must(eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(3)), halve, same, NULL,
                   EDDY_LIST(x), 1, NULL, &y));
    cr_assert(!eddy_can_record(reason, sizeof(reason)));
    cr_assert_not_null(strstr(reason, "the device changes within a branch"), "%s", reason);
    cr_assert_null(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
    expect_failure(EDDY_UNSUPPORTED, "the device changes within a branch");
    cr_assert_eq(at(y, 1, 2), 2.5, "the calls have run");
    eddy_scope_end(scope);
}

/* What is donated to a run in partitions is gone behind all of them. */
Test(devices, runs_take_donated_inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *z = numbers_on(elsewhere(0), 0);
    begin(NULL);
    must(eddy_add_into(x, x, x));
    eddy_tensor *y = eddy_add(eddy_to_device(eddy_neg(x), elsewhere(0)), z),
                *w = eddy_add(eddy_to_device(y, EDDY_CPU), x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_DONATED}, {"z", z, EDDY_ROLE_DONATED},
                                      {"y", y, EDDY_ROLE_OUTPUT}, {"w", w, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given[] = {numbers_on(EDDY_CPU, (float)run), numbers_on(elsewhere(0), 1)};
        eddy_tensor *before = eddy_neg(given[0]), *results[2];
        must(eddy_program_run(program, (eddy_list){given, 2}, results));
        cr_assert_eq(at(results[0], 1, 2), 6.0 - 2 * (5 + run));
        cr_assert_eq(at(results[1], 1, 2), 6.0);
        cr_assert_eq(at(before, 1, 2), -5.0 - run);
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(eddy_wait(given[i], EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
            expect_error(EDDY_INVALID_ARGUMENT,
                         i == 0 ? "the tensor was donated to a run of a program, as its input x"
                                : "the tensor was donated to a run of a program, as its input z");
        }
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(devices, rings_give_up_what_old_runs_have_made) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *d = numbers_on(EDDY_CPU, 0), *results[4];
    begin(NULL);
    eddy_tensor *y = eddy_sub(eddy_to_device(x, elsewhere(0)), eddy_to_device(d, elsewhere(0)));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"d", d, EDDY_ROLE_DONATED}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    eddy_output_ring *ring = eddy_output_ring_create(program, 2);
    must(ring ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    for (int run = 0; run < 4; run++)
        must(eddy_output_ring_run(
            ring, EDDY_LIST(numbers_on(EDDY_CPU, (float)run), numbers_on(EDDY_CPU, 0)),
            &results[run]));
    for (int run = 2; run < 4; run++)
        cr_assert_eq(at(results[run], 0, 0), (double)run);
    cr_assert_eq(eddy_wait(results[1], EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "output y of run 2 of the ring is gone: run 4 has taken "
                                        "its place (the ring keeps 2 runs)");
    eddy_output_ring_release(&ring);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* A copy of what was not made has no memory, nor has the storage that it should have made. */
Test(devices, a_later_partition_heals_what_was_skipped) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t beyond[2] = {0, 7}, rows[2] = {0, 1};
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *z = numbers_on(elsewhere(0), 3);
    eddy_tensor *pick = eddy_from_data(rows, EDDY_SHAPE(2), EDDY_I64, HERE);
    begin("none");
    eddy_tensor *y = eddy_to_device(eddy_index_select(x, pick, 0), elsewhere(0));
    eddy_tensor *seen = eddy_neg(eddy_to_device(y, EDDY_CPU));
    must(eddy_copy_into(z, y));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"pick", pick, EDDY_ROLE_INPUT},
        {"y", y, EDDY_ROLE_OUTPUT}, {"seen", seen, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *outputs[2], *bad = eddy_from_data(beyond, EDDY_SHAPE(2), EDDY_I64, HERE);
    must(eddy_program_run(program, EDDY_LIST(x, numbers_on(elsewhere(0), 4), bad), outputs));
    cr_assert_eq(at(outputs[0], 1, 2), 9);
    eddy_error error;
    cr_assert_eq(eddy_error_of(outputs[1], EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    expect_no_more(scope, &program);
}

/* The first to fail is to blame, whatever the order of partitions. */
Test(devices, the_first_call_is_to_blame) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t good[1] = {0}, far_bad[1] = {99}, here_bad[1] = {77};
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *there = numbers_on(elsewhere(0), 0);
    eddy_tensor *a = eddy_from_data(good, EDDY_SHAPE(1), EDDY_I64, HERE),
                *b = eddy_to_device(a, elsewhere(0));
    begin("none");
    eddy_tensor *first = eddy_neg(x);
    eddy_tensor *second = eddy_index_select(there, b, 0), *third = eddy_index_select(first, a, 0);
    eddy_tensor *y = eddy_add(eddy_to_device(second, EDDY_CPU), third);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_INPUT},
                                      {"b", b, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    a = eddy_from_data(here_bad, EDDY_SHAPE(1), EDDY_I64, HERE);
    b = eddy_to_device(eddy_from_data(far_bad, EDDY_SHAPE(1), EDDY_I64, HERE), elsewhere(0));
    must(eddy_program_run(program, EDDY_LIST(x, a, b), &y));
    eddy_error error;
    cr_assert_eq(eddy_error_of(y, EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    cr_assert_not_null(strstr(error.message, "99"), "%s", error.message);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE, "the other one");
    eddy_error_take(NULL);
    expect_no_more(scope, &program);
}

static eddy_status twice(void *context, eddy_recorded_call *call) {
    (void)context;
    call->outputs[0] = eddy_add(call->inputs.items[0], call->inputs.items[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(devices, signatures_of_several_are_told_apart) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(twice, NULL, 1, NULL);
    for (int i = 0; i < 8; i++) {
        eddy_device device = i % 2 ? elsewhere(i / 2 % 2) : EDDY_CPU;
        eddy_tensor *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(numbers_on(device, (float)i)), (eddy_scalars){0},
                               &y));
        cr_assert_eq(at(y, 1, 2), 2 * (5 + i));
    }
    char text[1000];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, "(f32[2, 3]; input0 is on cpu)"), "%s", text);
    cr_assert_not_null(strstr(text, about_there("(f32[2, 3]; input0 is on far:0)")), "%s", text);
    cr_assert_not_null(strstr(text, about_there("(f32[2, 3]; input0 is on far:1)")), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* The array of the inputs takes the outputs. One input is copied, the other is not. */
Test(devices, outputs_may_take_the_place_of_copied_inputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *y = numbers_on(elsewhere(0), 1);
    begin(NULL);
    eddy_tensor *a = eddy_add(x, y), *b = eddy_mul(x, y);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                                      {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    eddy_tensor *kept = numbers_on(elsewhere(0), 3), *both[] = {numbers_on(EDDY_CPU, 2), kept};
    must(eddy_program_run(program, (eddy_list){both, 2}, both));
    cr_assert_eq(at(both[0], 1, 2), 15);
    cr_assert_eq(at(both[1], 1, 2), 56);
    cr_assert_eq(at(kept, 1, 2), 8);
    expect_no_more(scope, &program);
}

Test(devices, copied_inputs_are_refused_before_they_are_copied) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *z = numbers_on(elsewhere(0), 1), *y;
    begin(NULL);
    must(eddy_add_into(x, z, x));
    y = eddy_neg(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_tensor *target = numbers_on(elsewhere(0), 7);
    /* Elements that share memory, which the program would write. */
    eddy_tensor *one =
        eddy_full(EDDY_SHAPE(1, 3), EDDY_S(4), EDDY_F32, EDDY_OPTIONS(full, .device = EDDY_CPU));
    eddy_tensor *expanded = eddy_expand(one, EDDY_SHAPE(2, 3));
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(expanded, z), &y), EDDY_INVALID_ARGUMENT);
    expect_failure(EDDY_INVALID_ARGUMENT, "elements of input x share memory");
    /* A target that is an input, too: here it could be none of the program's, which is elsewhere. */
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(numbers_on(EDDY_CPU, 1), target),
                                       (eddy_list){&target, 1}),
                 EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    cr_assert_eq(at(target, 1, 2), 12);
    cr_assert_eq(eddy_item_f64(eddy_select(eddy_select(one, 0, 0), 0, 0), NULL), 4);
    expect_no_more(scope, &program);
}

Test(devices, copied_inputs_share_no_memory_with_what_is_written) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *w = numbers_on(EDDY_CPU, 1), *y;
    begin(NULL);
    must(eddy_add_into(w, w, w));
    y = eddy_neg(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(w), &y), EDDY_INVALID_ARGUMENT);
    expect_failure(EDDY_INVALID_ARGUMENT, "input x shares its memory");
    cr_assert_eq(at(w, 1, 2), 12, "nothing has happened but the calls");
    /* Some of the outputs, by name. */
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", numbers_on(EDDY_CPU, 5)}),
                                (eddy_fetches){0}, NULL));
    cr_assert_eq(at(w, 1, 2), 24);
    expect_no_more(scope, &program);
}

/* ---- text, files, targets ---- */

Test(devices, stand_in_text_and_files) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *w = numbers_on(elsewhere(1), 1), *y;
    begin("none");
    must(eddy_add_into(w, eddy_to_device(x, elsewhere(1)), w));
    y = eddy_neg(eddy_to_device(w, EDDY_CPU));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-devices-%ld.program", (long)getpid());
    must(eddy_program_save(program, path));
    eddy_program *loaded = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(loaded);
    eddy_tensor *state = eddy_program_state(loaded, "w");
    cr_assert(eddy_device_of(state).kind == elsewhere(0).kind && eddy_device_of(state).index == 1);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *expected;
        must(eddy_program_run(program, EDDY_LIST(x), &expected));
        must(eddy_program_run(loaded, EDDY_LIST(x), &y));
        cr_assert_eq(at(y, 1, 2), at(expected, 1, 2));
    }
    char *text = NULL;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    must(eddy_program_print(loaded, memory, EDDY_OPTIONS(program_print, .shows_plan = true)));
    fclose(memory);
    cr_assert_not_null(strstr(text, about_there("state w f32[2, 3] on far:1\n")), "%s", text);
    cr_assert_not_null(
        strstr(text, about_there("%0 f32[2, 3] on far:1 = to_device(x f32[2, 3])\n")), "%s", text);
    cr_assert_not_null(strstr(text, about_there("# a partition on far:1\n")), "%s", text);
    free(text);
    eddy_program_release(&loaded);
    expect_no_more(scope, &program);
}

/* What code from outside says of devices is checked as calls are. */
Test(devices, wrong_texts_are_refused) {
    static const struct {
        const char *lines, *reason;
    } wrong[] = {
        {"input x f32[2] on far:9\noutput y f32[2] of %0\n%0 f32[2] on far:9 = neg(x f32[2])\n",
         "expected a device that is here, not 'far:9"},
        {"input x f32[2] on cuda:99\noutput y f32[2] of %0\n%0 f32[2] on cuda:99 = neg(x f32[2])\n",
         "expected a device that is here, not 'cuda:99"},
        {"input x f32[2] on far:0\noutput y f32[2] of %0\n%0 f32[2] = neg(x f32[2])\n",
         "its operands are on several devices"},
        {"input x f32[2]\noutput y f32[2] of %0\n%0 f32[2] = to_device(x f32[2])\n",
         "it is copied to the device that it is on"},
        {"input x f32[2, 2] strides [1, 2]\noutput y f32[2, 2] of %0\n"
         "%0 f32[2, 2] on far:0 = to_device(x f32[2, 2] strides [1, 2])\n",
         "what is copied to a device does not lie in a row"},
    };
    eddy_runtime *runtime;
    must(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[300];
        eddy_parse_error error = {0};
        uint32_t generators;
        int length = snprintf(text, sizeof(text), "eddy program, version 1, 1 instructions\n%s",
                              about_there(wrong[i].lines));
        eddy_program *program = eddy_program_create(runtime);
        cr_assert_eq(eddy_parse_program(program, text, (size_t)length, &generators, &error),
                     EDDY_INVALID_ARGUMENT, "%s", text);
        const char *reason = about_there(wrong[i].reason);
        cr_assert_not_null(strstr(error.reason, reason), "%s: %s", reason, error.reason);
        eddy_program_destroy(program);
    }
}

/* A copy goes to the caller's tensor at once. */
Test(devices, copies_are_written_into_targets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(1), 0);
    begin(NULL);
    eddy_tensor *y = eddy_to_device(eddy_neg(x), EDDY_CPU),
                *z = eddy_to_device(eddy_exp(x), elsewhere(0));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *targets[] = {numbers_on(EDDY_CPU, 0), numbers_on(elsewhere(0), 0)};
    must(eddy_program_run_into(program, EDDY_LIST(numbers_on(elsewhere(1), 3)),
                               (eddy_list){targets, 2}));
    cr_assert_eq(at(targets[0], 1, 2), -8);
    cr_assert_gt(at(targets[1], 1, 2), 2900);
    targets[1] = numbers_on(EDDY_CPU, 0);
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), (eddy_list){targets, 2}),
                 EDDY_DEVICE_MISMATCH);
    expect_failure(EDDY_DEVICE_MISMATCH, "the target of output z lives on another device");
    expect_no_more(scope, &program);
}

/* ---- threads ---- */

#define THREADS 4

typedef struct runs {
    eddy_program *program;
    eddy_runtime *runtime;
    int count;        /* of a thread */
    _Atomic int done; /* atomic: by all threads */
    bool may_end;     /* a run may fail: the main thread shuts the runtime down */
} runs;

static void run_once(runs *r, float first) {
    eddy_tensor *y = NULL;
    float got[6];
    eddy_status status = eddy_program_run(r->program, EDDY_LIST(numbers_on(EDDY_CPU, first)), &y);
    if (status == EDDY_OK)
        status = eddy_read(y, got, sizeof(got), NULL);
    if (r->may_end && status != EDDY_OK) {
        eddy_error_take(NULL);
        return;
    }
    cr_assert_eq(status, EDDY_OK);
    for (int i = 0; i < 6; i++)
        cr_assert_eq(got[i], 2 * (first + (float)i) * (float)(1 + i) - 2 * (first + (float)i));
}

static void *run_many(void *context) {
    runs *r = context;
    must(eddy_runtime_use(r->runtime));
    for (int i = 0; i < r->count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        run_once(r, (float)(i % 17));
        eddy_scope_end(scope);
        eddy_add_relaxed(&r->done, 1);
    }
    return NULL;
}

/* Threads run one program of two devices. Where may_end is true, the runtime is shut down while they
 * do, so that runs end between their partitions. */
static void run_beside(bool may_end, int count) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .threads = 2));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *w = numbers_on(elsewhere(0), 1);
    begin(NULL);
    eddy_tensor *doubled = eddy_add(x, x);
    eddy_tensor *product = eddy_mul(eddy_to_device(doubled, elsewhere(0)), w);
    eddy_tensor *y = eddy_sub(eddy_to_device(product, EDDY_CPU), doubled);
    runs r = {.runtime = runtime, .count = count, .may_end = may_end};
    r.program = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE},
                                              {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(r.program);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &r), 0);
    while (may_end && eddy_load_relaxed(&r.done) < THREADS * count / 4)
        sched_yield();
    if (may_end)
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_program_release(&r.program);
    eddy_scope_end(scope);
    if (!may_end)
        must(eddy_runtime_shutdown(runtime, EDDY_FOREVER));
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(devices, threads_run_one_program) {
    run_beside(false, 100);
}

Test(devices, a_runtime_is_shut_down_between_partitions) {
    for (int round = 0; round < 12; round++)
        run_beside(true, 40);
}

/* ---- gradients ---- */

Test(devices, gradients_go_back_between_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers_on(elsewhere(0), 0), *w = numbers_on(EDDY_CPU, 1), *loss;
    must(eddy_requires_grad_set(w, true));
    begin(NULL);
    loss = eddy_sum(eddy_square(eddy_mul(x, eddy_to_device(w, elsewhere(0)))), EDDY_ALL_AXES, NULL);
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"loss", loss, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int run = 0; run < 2; run++) {
        must(eddy_program_run(program, EDDY_LIST(numbers_on(elsewhere(0), (float)run)), &loss));
        must(eddy_grads_zero(EDDY_LIST(w)));
        must(eddy_backward(loss));
        eddy_tensor *gradient = eddy_grad_of(w);
        cr_assert_eq(eddy_device_of(gradient).kind, EDDY_DEVICE_CPU);
        cr_assert_eq(at(gradient, 1, 2), 2 * 6 * (5 + run) * (5 + run));
    }
    must(eddy_grads_zero(EDDY_LIST(w)));
    expect_no_more(scope, &program);
}
