/* Branches and loops of programs on CUDA devices, on the fake driver (tests/fake_cuda): runs in rounds have the bits of calls, and their errors. */
#include <base/trace.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

#define THERE EDDY_CUDA(0)
#define WIDTH 3
#define STEPS 5

static eddy_scope *begin(void) {
    eddy_device_scope_begin(THERE);
    return eddy_scope_begin();
}

static void finish(eddy_scope *scope, eddy_program **program) {
    eddy_program_release(program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
    eddy_device_scope_end();
}

/* f32[STEPS, WIDTH], every one another number. */
static eddy_tensor *rows(double first) {
    return eddy_sin(eddy_add_s(
        eddy_reshape(eddy_arange(EDDY_S(0), EDDY_S(STEPS * WIDTH), EDDY_S(1), EDDY_F32, NULL),
                     EDDY_SHAPE(STEPS, WIDTH)),
        EDDY_S(first)));
}

/* ---- what is computed ---- */

/* Two outputs of x (f32[WIDTH]) and xs (f32[STEPS, WIDTH]). */
typedef eddy_status computation(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs);

static eddy_status branch(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs) {
    eddy_tensor *is_positive = eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0));
    eddy_status status =
        eddy_cond(is_positive, twice, half, NULL, EDDY_LIST(x), 1, NULL, &outputs[0]);
    outputs[1] = eddy_add(outputs[0], eddy_select(xs, 0, 0));
    return status;
}

/* h -> 1.5 h, up to a sum of 40: so many steps as x is small. */
static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds,
                eddy_lt_s(eddy_sum(eddy_abs(inputs.items[0]), EDDY_ALL_AXES, NULL), EDDY_S(40)));
}

static eddy_status grow(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_add_s(eddy_mul_s(inputs.items[0], EDDY_S(1.5)), EDDY_S(0.25)));
}

static eddy_status loop(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs) {
    eddy_status status = eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &outputs[0]);
    outputs[1] = eddy_mul(outputs[0], eddy_select(xs, 0, 1));
    return status;
}

/* A loop within a loop, and a branch in that. */
static eddy_status alternate(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *is_large =
        eddy_gt_s(eddy_sum(eddy_abs(inputs.items[0]), EDDY_ALL_AXES, NULL), EDDY_S(10));
    return eddy_cond(is_large, grow, twice, context, inputs, 1, NULL, outputs);
}

static eddy_status shrink(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *grown;
    eddy_status status =
        eddy_while(is_small, alternate, context, EDDY_LIST(inputs.items[0]), NULL, &grown);
    outputs[0] = eddy_mul_s(grown, EDDY_S(0.125));
    outputs[1] = eddy_sub_s(inputs.items[1], EDDY_S(1));
    return status;
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds, eddy_gt_s(inputs.items[1], EDDY_S(0)));
}

static eddy_status loops(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs) {
    (void)xs;
    return eddy_while(is_left, shrink, NULL, EDDY_LIST(x, eddy_to_device(scalar(3), THERE)), NULL,
                      outputs);
}

/* (h, x) -> (tanh(h + x), h x) */
static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_tanh(eddy_add(inputs.items[0], inputs.items[1]));
    outputs[1] = eddy_mul(inputs.items[0], inputs.items[1]);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status scan(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs) {
    return eddy_scan(cell, NULL, EDDY_LIST(x), EDDY_LIST(xs), 2,
                     EDDY_OPTIONS(scan, .is_rolled = true), outputs);
}

/* More calls than a round has, and one that reads what more calls than a launch looks at have written. */
static eddy_status many(eddy_tensor *x, eddy_tensor *xs, eddy_tensor **outputs) {
    eddy_tensor *items[20];
    for (int i = 0; i < 20; i++)
        items[i] = eddy_mul_s(x, EDDY_S(i));
    eddy_tensor *all = eddy_cat((eddy_list){items, 20}, 0);
    for (int i = 0; i < 300; i++)
        all = eddy_add_s(all, EDDY_S(1));
    eddy_status status = branch(x, xs, outputs);
    outputs[1] = all;
    return status;
}

static void matches(computation *compute, const char *passes) {
    eddy_scope *scope = begin();
    eddy_tensor *x = of(0.5), *xs = rows(0), *recorded[2];
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    must(compute(x, xs, recorded));
    eddy_program *program = end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"xs", xs, EDDY_ROLE_INPUT},
                      {"y", recorded[0], EDDY_ROLE_OUTPUT}, {"z", recorded[1], EDDY_ROLE_OUTPUT}));
    cr_assert_eq(program->executable->partitions.count, 0);
    for (int run = 0; run < 4; run++) {
        eddy_tensor *given = of(run - 1.75), *others = rows(run), *expected[2], *results[2];
        must(compute(given, others, expected));
        must(eddy_program_run(program, EDDY_LIST(given, others), results));
        cr_assert_eq(eddy_device_of(results[0]).kind, EDDY_DEVICE_CUDA);
        must_have_same_bits(expected[0], results[0], "y");
        must_have_same_bits(expected[1], results[1], "z");
    }
    finish(scope, &program);
}

static computation *const computations[] = {branch, loop, loops, scan, many};

Test(cuda_control, runs_have_the_bits_of_calls) {
    for (size_t i = 0; i < sizeof(computations) / sizeof(computations[0]); i++)
        matches(computations[i], NULL);
}

Test(cuda_control, passes_change_no_bit) {
    for (size_t i = 0; i < sizeof(computations) / sizeof(computations[0]); i++) {
        matches(computations[i], "none");
        matches(computations[i], "all,subbatch");
    }
}

/* Runs, calls and runs again on what runs give, and nobody waits in between. */
Test(cuda_control, runs_are_under_way_together) {
    eddy_scope *scope = begin();
    eddy_tensor *x = of(0.5), *xs = rows(0), *recorded[2], *a = of(0.25), *b = of(0.25);
    must(eddy_record_begin(NULL));
    must(loop(x, xs, recorded));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"xs", xs, EDDY_ROLE_INPUT},
                          {"y", recorded[0], EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < 6; i++) {
        eddy_tensor *expected[2];
        must(eddy_program_run(program, EDDY_LIST(a, xs), &a));
        a = eddy_mul_s(a, EDDY_S(0.0625));
        must(loop(b, xs, expected));
        b = eddy_mul_s(expected[0], EDDY_S(0.0625));
    }
    must_have_same_bits(a, b, "a");
    finish(scope, &program);
}

static void waits_for_nobody(eddy_tensor *x, eddy_program *program, eddy_tensor **result) {
    float *mapped = eddy_map(x, EDDY_WRITE, EDDY_FOREVER);
    must(mapped ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_program_run(program, EDDY_LIST(x), result));
    cr_assert_not(eddy_is_ready(*result), "the tensor is mapped that it waits for");
    mapped[1] = 3;
    must(eddy_unmap(x));
}

/* It goes on while its thread does something else; an event behind it passes once all of it is over. */
Test(cuda_control, a_run_goes_on_without_its_caller) {
    eddy_scope *scope = begin();
    eddy_tensor *x = of(0.5), *y, *result, *same;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    waits_for_nobody(x, program, &result);
    eddy_event *event = eddy_event_record(NULL);
    must(eddy_event_wait(event, EDDY_FOREVER));
    cr_assert(eddy_is_ready(result));
    must(eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &same));
    must_have_same_bits(same, result, "y");
    eddy_event_release(&event);
    finish(scope, &program);
}

static _Atomic int launched_muls, launched_adds;

static void count_launch(void *context, const eddy_trace_event *event) {
    (void)context;
    if (event->kind != EDDY_TRACE_BEGINS || event->sequence == 0)
        return;
    launched_muls += strcmp(event->op, "mul_s") == 0;
    launched_adds += strcmp(event->op, "add_s") == 0;
}

/* Whoever listens hears of each call of a round as it is launched, also where two are one launch: then of the first. */
Test(cuda_control, launches_of_a_round_are_heard) {
    const eddy_trace_listener listener = {count_launch, NULL, 1u << EDDY_TRACE_KERNEL};
    uint32_t place;
    eddy_scope *scope = begin();
    eddy_tensor *x = of(0.5), *y, *result, *called;
    must(eddy_wait(x, EDDY_FOREVER));
    must(eddy_trace_add(&listener, &place));
    must(eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &called));
    must(eddy_wait(called, EDDY_FOREVER));
    int muls = launched_muls, adds = launched_adds;
    cr_assert_gt(muls, 2);
    cr_assert_eq(adds, muls);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    must(eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_sync(EDDY_FOREVER));
    launched_muls = launched_adds = 0;
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    must(eddy_wait(result, EDDY_FOREVER));
    must_have_same_bits(called, result, "y");
    cr_assert_eq(launched_muls, muls);
    cr_assert_eq(launched_adds, adds);
    eddy_trace_remove(place);
    finish(scope, &program);
}

/* ---- devices ---- */

Test(cuda_control, the_host_computes_before_and_behind) {
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_to_device(of(0.5), EDDY_CPU), *y;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_small, grow, NULL,
                    EDDY_LIST(eddy_to_device(eddy_mul_s(x, EDDY_S(2)), THERE)), NULL, &y));
    y = eddy_add(eddy_to_device(y, EDDY_CPU), x);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(program->executable->partitions.count, 5);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = eddy_to_device(of(run - 0.75), EDDY_CPU), *result, *expected;
        must(eddy_while(is_small, grow, NULL, EDDY_LIST(eddy_mul_s(given, EDDY_S(2))), NULL,
                        &expected));
        must(eddy_program_run(program, EDDY_LIST(given), &result));
        must_have_same_bits(eddy_add(expected, given), result, "y");
    }
    finish(scope, &program);
}

static eddy_status there_and_back(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs,
                eddy_to_device(eddy_neg(eddy_to_device(inputs.items[0], EDDY_CPU)), THERE));
}

Test(cuda_control, no_branch_is_on_two_devices) {
    eddy_scope *scope = begin();
    eddy_tensor *x = of(0.5), *y;
    must(eddy_record_begin(NULL));
    must(eddy_cond(truth(true), twice, there_and_back, NULL, EDDY_LIST(x), 1, NULL, &y));
    cr_assert_null(
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT})));
    expect_error(EDDY_UNSUPPORTED, "record_end: calls are on several devices, and the device "
                                   "changes within a branch or a loop");
    eddy_program *none = NULL;
    finish(scope, &none);
}

/* ---- failures ---- */

/* (index, table) -> (index + 1, table + the row): fails once the index is no row. */
static eddy_status pick(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *row = eddy_index_select(inputs.items[1], inputs.items[0], 0);
    outputs[0] = eddy_add_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add(inputs.items[1], row);
    return outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status is_early(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds, eddy_lt_s(eddy_sum(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(7)));
}

typedef struct outcome {
    eddy_error errors[4];
    double beside;
} outcome;

/* A loop that may fail, what depends on it, and what does not; a table that is written in place before and behind. */
static outcome fails_on(eddy_device device, int64_t first, int64_t most_steps) {
    eddy_device_scope_begin(device);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *i = eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_I64, NULL),
                *table = eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL), *looped[2], *results[3];
    must(eddy_record_begin(NULL));
    must(eddy_while(is_early, pick, NULL, EDDY_LIST(i, table),
                    EDDY_OPTIONS(while, .most_steps = most_steps), looped));
    eddy_tensor *after = eddy_neg(looped[1]), *beside = eddy_neg(table);
    must(eddy_sub_into(table, after, table));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"table", table, EDDY_ROLE_STATE},
                      {"index", looped[0], EDDY_ROLE_OUTPUT}, {"after", after, EDDY_ROLE_OUTPUT},
                      {"beside", beside, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_program_run(
        program, EDDY_LIST(eddy_full(EDDY_SHAPE(1), EDDY_S(first), EDDY_I64, NULL)), results));
    outcome made = {0};
    for (int k = 0; k < 3; k++)
        (void)eddy_error_of(results[k], EDDY_FOREVER, &made.errors[k]);
    (void)eddy_error_of(table, EDDY_FOREVER, &made.errors[3]);
    cr_assert_eq(made.errors[2].status, EDDY_OK, "%s", made.errors[2].message);
    made.beside = sum_of(results[2]);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_device_scope_end();
    return made;
}

static void fails_alike(int64_t first, int64_t most_steps, eddy_status status) {
    outcome here = fails_on(EDDY_CPU, first, most_steps),
            there = fails_on(THERE, first, most_steps);
    cr_assert_eq(here.errors[1].status, status);
    cr_assert_eq(here.beside, there.beside);
    for (int k = 0; k < 4; k++) {
        cr_assert_eq(here.errors[k].status, there.errors[k].status, "%d: %s", k,
                     there.errors[k].message);
        cr_assert_str_eq(here.errors[k].message, there.errors[k].message);
        if (here.errors[k].status != EDDY_OK)
            cr_assert_str_eq(here.errors[k].op, there.errors[k].op);
    }
}

Test(cuda_control, a_step_fails_as_on_the_host) {
    fails_alike(0, 9, EDDY_OUT_OF_RANGE);     /* the fourth */
    fails_alike(7, 9, EDDY_OK);               /* there is none */
    fails_alike(0, 2, EDDY_INVALID_ARGUMENT); /* a third one would begin */
}

/* What is written in place has the elements of before, where what it depends on has failed in the same round, or in an earlier one. */
static void keeps_elements(int64_t first, bool is_later) {
    eddy_scope *scope = begin();
    eddy_tensor *i = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL),
                *table = eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL), *state = of(1), *way;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_tensor *p = eddy_gt_s(eddy_sum(state, EDDY_ALL_AXES, NULL), EDDY_S(0));
    eddy_tensor *sum = eddy_sum(eddy_index_select(table, i, 0), EDDY_ALL_AXES, NULL);
    if (is_later)
        must(eddy_cond(p, twice, half, NULL, EDDY_LIST(state), 1, NULL, &way));
    must(eddy_add_into(state, sum, state));
    if (!is_later)
        must(eddy_cond(p, twice, half, NULL, EDDY_LIST(table), 1, NULL, &way));
    eddy_program *program =
        end(EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                          {"way", way, EDDY_ROLE_OUTPUT}));
    must(eddy_copy_into(of(5), state));
    must(eddy_program_run(
        program, EDDY_LIST(eddy_full(EDDY_SHAPE(1), EDDY_S(first), EDDY_I64, NULL)), &way));
    must(eddy_error_of(way, EDDY_FOREVER, NULL));
    if (first == 9) {
        cr_assert_eq(eddy_error_of(state, EDDY_FOREVER, NULL), EDDY_SKIPPED);
        must(eddy_recover(EDDY_LIST(state)));
    }
    cr_assert_eq(sum_of(state), first == 9 ? 15 : 21);
    finish(scope, &program);
}

Test(cuda_control, what_is_skipped_has_its_elements) {
    keeps_elements(1, false);
    keeps_elements(9, false);
    keeps_elements(1, true);
    keeps_elements(9, true);
}

/* Nobody knows the way: what either of them would have written is lost, and what is beside it is there. */
Test(cuda_control, a_poisoned_predicate_takes_no_way) {
    eddy_scope *scope = begin();
    int64_t beyond[] = {9};
    eddy_tensor *x = of(0.5), *one = eddy_ones(EDDY_SHAPE(1), EDDY_F32, NULL), *y, *results[2];
    must(eddy_record_begin(NULL));
    eddy_tensor *p = eddy_gt_s(eddy_sum(one, EDDY_ALL_AXES, NULL), EDDY_S(0));
    must(eddy_cond(p, twice, half, NULL, EDDY_LIST(x), 1, NULL, &y));
    eddy_program *program = end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"one", one, EDDY_ROLE_INPUT},
                      {"y", eddy_neg(y), EDDY_ROLE_OUTPUT}, {"z", eddy_neg(x), EDDY_ROLE_OUTPUT}));
    eddy_tensor *bad =
        eddy_index_select(one, eddy_from_data(beyond, EDDY_SHAPE(1), EDDY_I64, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(x, bad), results));
    cr_assert_eq(eddy_error_of(results[0], EDDY_FOREVER, NULL), EDDY_OUT_OF_RANGE);
    must(eddy_error_of(results[1], EDDY_FOREVER, NULL));
    must_have_same_bits(eddy_neg(x), results[1], "z");
    must(eddy_program_run(program, EDDY_LIST(x, one), results));
    must_have_same_bits(eddy_neg(eddy_mul_s(x, EDDY_S(2))), results[0], "y");
    finish(scope, &program);
}

/* ---- EDDY_CHECK_FINITE ---- */

/* x -> log(x), up to a sum of -1. */
static eddy_status is_above(void *context, eddy_list inputs, eddy_tensor **holds) {
    (void)context;
    return done(holds, eddy_gt_s(eddy_sum(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(-1)));
}

static eddy_status take_log(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_log(inputs.items[0]));
}

/* What the results say, of runs in rounds or on the host, with numbers of the run that may be infinite. */
static void look_on(eddy_device device, const float (*given)[2], int runs, char *words,
                    size_t size) {
    eddy_device_scope_begin(device);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(2), EDDY_S(-2), EDDY_F32, NULL), *y, *results[2];
    must(eddy_record_begin(NULL));
    must(eddy_while(is_above, take_log, NULL, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 9),
                    &y));
    eddy_tensor *z = eddy_exp(x);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                              {"z", z, EDDY_ROLE_OUTPUT}));
    for (int run = 0; run < runs; run++) {
        must(eddy_program_run(program,
                              EDDY_LIST(eddy_from_data(given[run], EDDY_SHAPE(2), EDDY_F32, NULL)),
                              results));
        for (int k = 0; k < 2; k++) {
            eddy_error error = {0};
            eddy_status status = eddy_error_of(results[k], EDDY_FOREVER, &error);
            int length = snprintf(words, size, "%d: %s: %s: %s\n", run, eddy_status_name(status),
                                  error.op, error.message);
            words += length;
            size -= (size_t)length;
        }
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_device_scope_end();
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
}

Test(cuda_control, looks_at_the_results_of_its_calls) {
    static const float given[][2] = {{2, 2}, {INFINITY, 3}, {0.5, 0.5}, {-1, 4}, {1000, 1}};
    char here[3000], there[3000];
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    look_on(EDDY_CPU, given, 5, here, sizeof(here));
    look_on(THERE, given, 5, there, sizeof(there));
    cr_assert_str_eq(there, here);
    cr_assert_not_null(strstr(here, "NOT_FINITE: log: log: the result holds a NaN"), "%s", here);
    cr_assert_not_null(strstr(here, "NOT_FINITE: exp: exp: the result holds"), "%s", here);
}

/* ---- memory ---- */

static int64_t live_bytes(void) {
    eddy_device_memory memory = {.size = sizeof(memory)};
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_device_memory_read(THERE, &memory));
    return memory.live_bytes;
}

#define LARGE (1 << 16)

static eddy_program *record_large(eddy_role role) {
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(LARGE), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = x;
    for (int i = 0; i < 4; i++)
        y = eddy_add_s(y, EDDY_S(1));
    eddy_tensor *sum = eddy_sum(y, EDDY_ALL_AXES, NULL);
    return end(EDDY_BINDINGS({"x", x, role}, {"sum", sum, EDDY_ROLE_OUTPUT}));
}

/* All that is computed lies in the memory of what is donated, which is gone then. */
Test(cuda_control, a_donated_input_is_where_the_run_computes) {
    eddy_scope *scope = begin();
    eddy_program *program = record_large(EDDY_ROLE_DONATED);
    cr_assert_lt(program->executable->arena.bytes, (int64_t)sizeof(float) * LARGE);
    for (int run = 0; run < 3; run++) {
        int64_t before = live_bytes();
        eddy_tensor *x = eddy_full(EDDY_SHAPE(LARGE), EDDY_S(run), EDDY_F32, NULL), *sum;
        must(eddy_program_run(program, EDDY_LIST(x), &sum));
        cr_assert_lt(live_bytes(), before + (int64_t)sizeof(float) * LARGE);
        cr_assert_eq(eddy_item_f64(sum, NULL), (double)LARGE * (run + 4));
        cr_assert_eq(eddy_wait(x, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
        expect_error(EDDY_INVALID_ARGUMENT,
                     "the tensor was donated to a run of a program, as its input x");
        /* It has no memory any more: nothing of this is launched. */
        must(eddy_program_run(program, EDDY_LIST(x), &sum));
        cr_assert_eq(eddy_wait(sum, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
        eddy_error_take(NULL);
    }
    finish(scope, &program);
}

/* Runs call by call, too: the outputs of older ones are gone, and their memory is somebody else's. */
Test(cuda_control, a_ring_gives_up_old_outputs) {
    eddy_scope *scope = begin();
    for (int loops_too = 0; loops_too < 2; loops_too++) {
        eddy_tensor *x = of(0.5), *y, *results[4];
        must(eddy_record_begin(NULL));
        if (loops_too)
            must(eddy_while(is_small, grow, NULL, EDDY_LIST(x), NULL, &y));
        else
            y = eddy_add_s(x, EDDY_S(1));
        eddy_program *program =
            end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        eddy_output_ring *ring = eddy_output_ring_create(program, 2);
        must(ring ? EDDY_OK : EDDY_INVALID_ARGUMENT);
        for (int run = 0; run < 4; run++)
            must(eddy_output_ring_run(ring, EDDY_LIST(of(run)), &results[run]));
        for (int run = 0; run < 4; run++)
            cr_assert_eq(eddy_wait(results[run], EDDY_FOREVER),
                         run < 2 ? EDDY_INVALID_ARGUMENT : EDDY_OK);
        eddy_error_take(NULL);
        eddy_output_ring_release(&ring);
        eddy_program_release(&program);
    }
    eddy_program *none = NULL;
    finish(scope, &none);
}

/* A run waits for the memory that it takes, which calls under way will give back, and then for none. */
Test(cuda_control, a_run_waits_for_memory_before_it_begins) {
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(LARGE), EDDY_F32, NULL), *y, *result;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_early, twice, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_sync(EDDY_FOREVER));
    eddy_device_memory memory = {.size = sizeof(memory)};
    must(eddy_device_memory_read(THERE, &memory));
    must(eddy_device_memory_limit_set(THERE,
                                      memory.live_bytes + 8 * LARGE * (int64_t)sizeof(float)));
    eddy_tensor *begun = eddy_full(EDDY_SHAPE(LARGE), EDDY_S(1.0 / LARGE), EDDY_F32, NULL);
    for (int i = 0; i < 20; i++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *passing = begun;
        for (int k = 0; k < 4; k++)
            passing = eddy_add_s(passing, EDDY_S(1));
        must(eddy_program_run(program, EDDY_LIST(begun), &result));
        cr_assert_eq(sum_of(result), 8);
        eddy_scope_end(inner);
    }
    eddy_tensor *held = eddy_zeros(EDDY_SHAPE(2 * LARGE), EDDY_F32, NULL),
                *refused = eddy_zeros(EDDY_SHAPE(7 * LARGE), EDDY_F32, NULL);
    must(eddy_program_run(program, EDDY_LIST(begun), &result));
    cr_assert_eq(eddy_error_of(refused, EDDY_FOREVER, NULL), EDDY_OUT_OF_MEMORY);
    cr_assert_eq(sum_of(result), 8, "what is behind it goes on");
    cr_assert_eq(sum_of(held), 0);
    must(eddy_device_memory_limit_set(THERE, INT64_C(1) << 28));
    finish(scope, &program);
}

/* Further rounds of the run come ahead of what has no memory beside it. */
Test(cuda_control, what_lacks_the_memory_of_a_run_has_it_once_that_is_over) {
    eddy_scope *scope = begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(LARGE), EDDY_F32, NULL), *y, *result;
    must(eddy_record_begin(NULL));
    must(eddy_while(is_early, twice, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    eddy_tensor *start = eddy_full(EDDY_SHAPE(LARGE), EDDY_S(1.0 / LARGE), EDDY_F32, NULL);
    must(eddy_sync(EDDY_FOREVER));
    eddy_device_memory memory = {.size = sizeof(memory)};
    must(eddy_device_memory_read(THERE, &memory));
    must(eddy_device_memory_limit_set(THERE,
                                      memory.live_bytes + 8 * LARGE * (int64_t)sizeof(float)));
    for (int i = 0; i < 4; i++) {
        eddy_scope *inner = eddy_scope_begin();
        must(eddy_program_run(program, EDDY_LIST(start), &result));
        eddy_tensor *large = eddy_ones(EDDY_SHAPE(4 * LARGE), EDDY_F32, NULL),
                    *behind = eddy_add_s(result, EDDY_S(1));
        cr_assert_eq(sum_of(large), 4 * LARGE);
        cr_assert_eq(sum_of(result), 8);
        cr_assert_eq(sum_of(behind), 8 + LARGE);
        eddy_scope_end(inner);
    }
    must(eddy_device_memory_limit_set(THERE, INT64_C(1) << 28));
    finish(scope, &program);
}
