/* Outputs of programs whose shape depends on data: calls behind a run. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <unistd.h>

#define ROWS 4
#define COLUMNS 6
#define ROUNDS 8

static eddy_tensor *ramp(double first) {
    eddy_tensor *line =
        eddy_arange(EDDY_S(first), EDDY_S(first + ROWS * COLUMNS), EDDY_S(1), EDDY_F32, NULL);
    return eddy_reshape(line, EDDY_SHAPE(ROWS, COLUMNS));
}

static eddy_tensor *scalar(double value) {
    return eddy_full(EDDY_SHAPE(), EDDY_S(value), EDDY_F32, NULL);
}

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_program *program = eddy_record_end(bindings);
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

static void expect_no_program(const eddy_bindings *bindings, const char *part) {
    eddy_error error = {0};
    cr_assert_null(eddy_record_end(bindings));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED, "%s", error.message);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

/* ---- the same results ---- */

#define OUTPUTS 7

/* Of an input, of a part of what is made, of a captured tensor, of several results; with others between them. */
static void compute(eddy_tensor *x, eddy_tensor *captured, eddy_tensor **outputs) {
    eddy_tensor *h = eddy_relu(x), *part = eddy_t(eddy_slice(h, 1, 1, COLUMNS, 2));
    outputs[0] = eddy_nonzero(x);
    outputs[1] = eddy_tanh(h);
    outputs[2] = eddy_masked_select(part, eddy_gt(part, scalar(5)));
    outputs[3] = eddy_sum(h, EDDY_ALL_AXES, NULL);
    eddy_tensor *inverse;
    must(eddy_unique_counts(eddy_remainder_s(h, EDDY_S(4)), &outputs[4], &inverse, &outputs[5]));
    outputs[6] = eddy_nonzero(captured);
}

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

static eddy_program *record(eddy_tensor *x, eddy_tensor *captured) {
    eddy_tensor *outputs[OUTPUTS];
    eddy_binding bindings[1 + OUTPUTS] = {{"x", x, EDDY_ROLE_INPUT}};
    must(eddy_record_begin(NULL));
    compute(x, captured, outputs);
    for (int i = 0; i < OUTPUTS; i++)
        bindings[1 + i] = (eddy_binding){names[i], outputs[i], EDDY_ROLE_OUTPUT};
    return end(&(eddy_bindings){bindings, 1 + OUTPUTS});
}

static void must_be_the_same(eddy_tensor *a, eddy_tensor *b, const char *what) {
    cr_assert_eq(eddy_rank_of(a), eddy_rank_of(b), "%s", what);
    for (int32_t d = 0; d < eddy_rank_of(a); d++)
        cr_assert_eq(eddy_dim_of(a, d), eddy_dim_of(b, d), "%s", what);
    must_have_same_bits(a, b, what);
}

static void run_and_compare(eddy_program *program, eddy_tensor *captured, double first) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(first), *runs[OUTPUTS], *calls[OUTPUTS];
    must(eddy_program_run(program, EDDY_LIST(x), runs));
    compute(x, captured, calls);
    for (int i = 0; i < OUTPUTS; i++)
        must_be_the_same(runs[i], calls[i], names[i]);
    eddy_scope_end(scope);
}

Test(late_shapes, outputs_have_the_shapes_and_bits_of_calls) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3);
    eddy_program *program = record(ramp(-10), captured);
    for (int i = 0; i < ROUNDS; i++) {
        must(eddy_add_into(captured, scalar(1), captured));
        run_and_compare(program, captured, 2 - 4 * i);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(late_shapes, stay_the_same_through_a_file) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-late-%ld.program", (long)getpid());
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3);
    eddy_program *program = record(ramp(-10), captured);
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    must(program ? EDDY_OK : EDDY_IO);
    unlink(path);
    for (int i = 0; i < ROUNDS; i++)
        run_and_compare(program, captured, 2 - 4 * i);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What a program with the same code was built to serves another recording of it. */
Test(late_shapes, are_of_the_recording_that_found_its_code_built) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3);
    eddy_program *first = record(ramp(-10), captured), *second = record(ramp(-10), captured);
    eddy_program_release(&first);
    run_and_compare(second, captured, -2);
    eddy_program_release(&second);
    eddy_scope_end(scope);
}

Test(late_shapes, are_described) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record(ramp(-10), ramp(-3));
    eddy_program_info info = {.size = sizeof(info)};
    eddy_program_binding_info binding = {.size = sizeof(binding)};
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.output_count, OUTPUTS);
    must(eddy_program_binding_describe(program, 1, &binding));
    cr_assert_str_eq(binding.name, "a");
    cr_assert_eq(binding.shape.rank, -1);
    cr_assert_eq(binding.dtype, EDDY_I64);
    must(eddy_program_binding_describe(program, 2, &binding));
    cr_assert_eq(binding.shape.rank, 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- what is not wanted ---- */

Test(late_shapes, are_computed_where_they_are_wanted) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3), *x = ramp(-7), *calls[OUTPUTS], *c, *d, *f;
    eddy_program *program = record(ramp(-10), captured);
    must(eddy_program_prepare(program, (const char *const[]){"c", "f"}, 2));
    compute(x, captured, calls);
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"f", &f}, {"c", &c}),
                                NULL));
    must_be_the_same(c, calls[2], "c");
    must_be_the_same(f, calls[5], "f");
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"d", &d}), NULL));
    must_be_the_same(d, calls[3], "d");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static int64_t submitted(void) {
    eddy_counters counters = {.size = sizeof(counters)};
    must(eddy_counters_read(&counters));
    return counters.submitted;
}

Test(late_shapes, have_no_target) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *h, *n,
                *target = eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    h = eddy_relu(x);
    n = eddy_nonzero(h);
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"h", h, EDDY_ROLE_OUTPUT},
                                              {"n", n, EDDY_ROLE_OUTPUT}));
    eddy_tensor *places = eddy_zeros(EDDY_SHAPE(0), EDDY_I64, NULL);
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(target, places)),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "program_run_into: output n has no target, since its shape depends on data");
    int64_t before = submitted();
    must(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(target, EDDY_NONE)));
    int64_t of_run = submitted() - before;
    must_have_same_bits(target, h, "h");
    eddy_tensor *given;
    before = submitted();
    must(eddy_program_run_named(
        program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"n", &given}),
        EDDY_OPTIONS(program_run_named, .targets = EDDY_FEEDS({"h", target}))));
    cr_assert_eq(submitted() - before, of_run + 1, "a call that nobody wants is not made");
    must_be_the_same(given, n, "n");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* Of a call that gives several. */
Test(late_shapes, that_nobody_named_are_released) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *values, *inverse, *counts, *given;
    must(eddy_record_begin(NULL));
    must(eddy_unique_counts(eddy_relu(x), &values, &inverse, &counts));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"counts", counts, EDDY_ROLE_OUTPUT}));
    int64_t before = eddy_live_count();
    must(eddy_program_run(program, EDDY_LIST(x), &given));
    cr_assert_eq(eddy_live_count() - before, 1);
    must_be_the_same(given, counts, "counts");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(late_shapes, of_batches_are_put_together) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *y, *wanted;
    must(eddy_record_begin(NULL));
    eddy_tensor *h = eddy_relu(x), *chosen = eddy_masked_select(h, eddy_gt(h, scalar(2)));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"chosen", chosen, EDDY_ROLE_OUTPUT}));
    eddy_tensor *larger = eddy_cat(EDDY_LIST(ramp(-20), ramp(-9), ramp(-2)), 0);
    must(eddy_program_run_batches(program, EDDY_LIST(larger), &y));
    h = eddy_relu(larger);
    wanted = eddy_masked_select(h, eddy_gt(h, scalar(2)));
    must_be_the_same(y, wanted, "batches");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- the order of calls ---- */

Test(late_shapes, see_what_was_written_before_them) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *state = ramp(-5), *own = eddy_clone(state), *n;
    must(eddy_record_begin(NULL));
    must(eddy_add_into(state, x, state));
    n = eddy_nonzero(eddy_relu(state));
    (void)eddy_neg(x);
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE}, {"n", n, EDDY_ROLE_OUTPUT}));
    must(eddy_add_into(own, x, own));
    for (int i = 0; i < ROUNDS; i++) {
        must(eddy_program_run(program, EDDY_LIST(ramp(3 - i)), &n));
        must(eddy_add_into(own, ramp(3 - i), own));
        must_be_the_same(n, eddy_nonzero(eddy_relu(own)), "n");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* A call behind a run would see what was written after the recorded call. */
Test(late_shapes, of_what_is_written_later_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *state = ramp(-5), *n;
    char reason[320];
    must(eddy_record_begin(NULL));
    n = eddy_nonzero(eddy_narrow(state, 0, 1, 2));
    cr_assert(eddy_can_record(NULL, 0));
    must(eddy_add_into(state, x, state));
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, "nonzero is called behind each run, since the shape of its result "
                             "depends on data, and add has written then what it reads");
    expect_no_program(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"state", state, EDDY_ROLE_STATE},
                                    {"n", n, EDDY_ROLE_OUTPUT}),
                      reason);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- ops of your own ---- */

static eddy_status infer_vector(eddy_op_inference *inference) {
    inference->outputs[0] = (eddy_spec){.dtype = EDDY_F32, .shape = {.rank = 1}};
    return EDDY_OK;
}

static eddy_status count_positive(const eddy_op_call *call, eddy_shape *shapes) {
    const float *x = call->views[0].data;
    shapes[0] = (eddy_shape){.rank = 1};
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        shapes[0].dims[0] += x[i] > 0;
    return EDDY_OK;
}

/* Gives the positive elements. */
static eddy_status take_positive(const eddy_op_call *call) {
    const float *x = call->views[0].data;
    float *out = call->views[1].data;
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        if (x[i] > 0)
            *out++ = x[i];
    return EDDY_OK;
}

/* And makes them negative. */
static eddy_status pop_positive(const eddy_op_call *call) {
    float *x = call->views[0].data;
    (void)!take_positive(call);
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        x[i] = x[i] > 0 ? -x[i] : x[i];
    return EDDY_OK;
}

static void register_op(const char *name, bool is_mut, eddy_status (*run)(const eddy_op_call *)) {
    const char *output = "positive";
    must(eddy_op_register(&(eddy_op_description){
        .size = sizeof(eddy_op_description),
        .name = name,
        .operands = &(eddy_operand_description){.name = "x", .is_mut = is_mut},
        .operand_count = 1,
        .outputs = &output,
        .output_count = 1,
        .infer = infer_vector,
        .kernels =
            &(eddy_op_kernel){.device = EDDY_DEVICE_CPU, .run = run, .count = count_positive},
        .kernel_count = 1,
        .has_late_shape = true}));
}

static eddy_tensor *call_op(const char *name, eddy_tensor *x) {
    eddy_tensor *result;
    must(eddy_call(name, EDDY_LIST(x), NULL, &result));
    return result;
}

Test(late_shapes, of_registered_ops_are_outputs) {
    register_op("test.take_positive", false, take_positive);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_flatten(ramp(-7), 0, 1), *taken;
    must(eddy_record_begin(NULL));
    taken = call_op("test.take_positive", eddy_neg(x));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"taken", taken, EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < ROUNDS; i++) {
        eddy_tensor *fed = eddy_flatten(ramp(-3 * i), 0, 1);
        must(eddy_program_run(program, EDDY_LIST(fed), &taken));
        must_be_the_same(taken, call_op("test.take_positive", eddy_neg(fed)), "taken");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status count_three(const eddy_op_call *call, eddy_shape *shapes) {
    (void)call;
    shapes[0] = EDDY_SHAPE(3);
    return EDDY_OK;
}

static eddy_status give_three(const eddy_op_call *call) {
    float *out = call->views[0].data;
    for (int i = 0; i < 3; i++)
        out[i] = (float)i;
    return EDDY_OK;
}

/* Without operands there is nothing that says where a call belongs. */
Test(late_shapes, belong_to_the_runtime_of_the_program) {
    const char *output = "three";
    must(eddy_op_register(&(eddy_op_description){
        .size = sizeof(eddy_op_description),
        .name = "test.give_three",
        .outputs = &output,
        .output_count = 1,
        .infer = infer_vector,
        .kernels =
            &(eddy_op_kernel){.device = EDDY_DEVICE_CPU, .run = give_three, .count = count_three},
        .kernel_count = 1,
        .has_late_shape = true}));
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *three, *places, *x = ramp(-7), *outputs[2];
    must(eddy_record_begin(NULL));
    must(eddy_call("test.give_three", (eddy_list){0}, NULL, &three));
    places = eddy_nonzero(x);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"three", three, EDDY_ROLE_OUTPUT},
                          {"places", places, EDDY_ROLE_OUTPUT}));
    eddy_runtime *other = eddy_runtime_create(NULL);
    must(eddy_runtime_use(other));
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    cr_assert_eq(eddy_runtime_current(), other);
    must(eddy_runtime_use(NULL));
    must_be_the_same(eddy_add(outputs[0], scalar(1)), eddy_add(three, scalar(1)), "three");
    must_be_the_same(outputs[1], places, "places");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What it writes would come behind the calls that read it. */
Test(late_shapes, of_ops_that_write_are_refused) {
    register_op("test.pop_positive", true, pop_positive);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *state = eddy_flatten(ramp(-7), 0, 1), *popped, *after;
    must(eddy_record_begin(NULL));
    popped = call_op("test.pop_positive", state);
    after = eddy_neg(state);
    expect_no_program(EDDY_BINDINGS({"state", state, EDDY_ROLE_STATE},
                                    {"popped", popped, EDDY_ROLE_OUTPUT},
                                    {"after", after, EDDY_ROLE_OUTPUT}),
                      "the shape of its result depends on its data, and it writes to an operand");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- bindings that cannot be ---- */

Test(late_shapes, are_outputs_as_they_are) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *n;
    must(eddy_record_begin(NULL));
    n = eddy_nonzero(x);
    expect_no_program(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"rows", eddy_select(n, 1, 0), EDDY_ROLE_OUTPUT}),
        "rows is a view of a result whose shape depends on data");
    must(eddy_record_begin(NULL));
    n = eddy_nonzero(x);
    expect_no_program(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"n", n, EDDY_ROLE_OUTPUT},
                                    {"m", n, EDDY_ROLE_OUTPUT}),
                      ", whose shape depends on data, has two names");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(late_shapes, carry_no_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *chosen;
    must(eddy_requires_grad_set(x, true));
    must(eddy_record_begin(NULL));
    chosen = eddy_masked_select(x, eddy_gt(x, scalar(0)));
    expect_no_program(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", chosen, EDDY_ROLE_OUTPUT}),
                      "a gradient goes back through y, whose shape depends on data");
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_square(x), *places = eddy_nonzero(x);
    eddy_error error;
    cr_assert_null(eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"n", places, EDDY_ROLE_OUTPUT})));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "the shape of a result depends on data"), "%s",
                       error.message);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- recorded functions ---- */

#define DETECTED 4

static eddy_status detect(void *context, eddy_recorded_call *call) {
    ++*(int *)context;
    eddy_tensor *score = eddy_sigmoid(call->inputs.items[0]),
                *mask = eddy_gt(score, eddy_full(EDDY_SHAPE(), EDDY_S(0.75), EDDY_F32, NULL));
    call->outputs[0] = eddy_nonzero(mask);
    call->outputs[1] = eddy_mean(score, EDDY_ALL_AXES, NULL);
    call->outputs[2] = eddy_masked_select(score, mask);
    call->outputs[3] = eddy_nonzero(call->inputs.items[0]);
    return EDDY_OK;
}

/* Inputs have elements behind them, which no call may see. Each size twice, then more often, so that the third size is the first one that follows. */
static char explained[2000];

static int count_calls(const eddy_recorded_options *options, int sizes) {
    int calls = 0, alone = 0;
    eddy_recorded *recorded = eddy_recorded_create(detect, &calls, DETECTED, options);
    for (int i = 0; i < 4 * sizes; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_narrow(eddy_cat(EDDY_LIST(ramp(-i), ramp(-9), ramp(3 - i)), 0), 0, 0,
                                     2 + i / 4),
                    *outputs[DETECTED], *wanted[DETECTED];
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, outputs));
        must(detect(&alone, &(eddy_recorded_call){.inputs = EDDY_LIST(x), .outputs = wanted}));
        for (int k = 0; k < DETECTED; k++)
            must_be_the_same(outputs[k], wanted[k], "recorded");
        eddy_scope_end(scope);
    }
    eddy_recorded_explain(recorded, explained, sizeof(explained));
    eddy_recorded_release(&recorded);
    cr_assert_eq(eddy_live_count(), 0);
    return calls;
}

Test(late_shapes, of_recorded_functions_are_replayed) {
    cr_assert_eq(count_calls(EDDY_OPTIONS(recorded, .is_strict = true), 5), 2 * 5);
}

/* Each further size is recorded once, and is as was foretold. */
Test(late_shapes, of_other_sizes_follow) {
    cr_assert_eq(count_calls(EDDY_OPTIONS(recorded, .foretells_shapes = true), 7), 2 + 2 + 5);
}

/* The third size alone is. */
Test(late_shapes, of_sizes_of_a_bucket_follow) {
    cr_assert_eq(count_calls(EDDY_OPTIONS(recorded, .foretells_shapes = true, .most_size = 10), 7),
                 2 + 2 + 1);
    cr_assert_not_null(strstr(explained, "sizes 5 to 8, 4 derived"), "%s", explained);
}

/* ---- failures ---- */

static eddy_tensor *poisoned(void) {
    return eddy_index_select(ramp(1), eddy_full(EDDY_SHAPE(ROWS), EDDY_S(ROWS), EDDY_I64, NULL), 0);
}

static void must_fail_alike(eddy_tensor *run, eddy_tensor *call) {
    eddy_error a = {0}, b = {0};
    cr_assert_neq(eddy_wait(run, EDDY_FOREVER), EDDY_OK);
    eddy_error_take(&a);
    cr_assert_neq(eddy_wait(call, EDDY_FOREVER), EDDY_OK);
    eddy_error_take(&b);
    cr_assert_eq(a.status, b.status);
    cr_assert_str_eq(a.op, b.op);
    cr_assert_str_eq(a.message, b.message);
}

Test(late_shapes, of_what_has_failed_have_failed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3), *x = poisoned(), *runs[OUTPUTS], *calls[OUTPUTS];
    eddy_program *program = record(ramp(-10), captured);
    must(eddy_program_run(program, EDDY_LIST(x), runs));
    compute(x, captured, calls);
    for (int i = 0; i < OUTPUTS - 1; i++)
        must_fail_alike(runs[i], calls[i]);
    must_be_the_same(runs[OUTPUTS - 1], calls[OUTPUTS - 1], "of what has not failed");
    run_and_compare(program, captured, -4);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What a recording has computed says nothing about its runs. */
Test(late_shapes, of_recordings_that_have_failed_are_outputs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *captured = ramp(-3);
    eddy_program *program = record(poisoned(), captured);
    for (int i = 0; i < ROUNDS; i++)
        run_and_compare(program, captured, 2 - 4 * i);
    eddy_program_release(&program);
    int calls = 0;
    eddy_recorded *recorded =
        eddy_recorded_create(detect, &calls, DETECTED, EDDY_OPTIONS(recorded, .is_strict = true));
    eddy_tensor *outputs[DETECTED];
    for (int i = 0; i < ROUNDS; i++)
        must(eddy_recorded_run(recorded, EDDY_LIST(i < 2 ? poisoned() : ramp(-i)),
                               (eddy_scalars){0}, outputs));
    cr_assert_eq(calls, 2);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Behind branches they find what the way that was taken has made. */
static eddy_status doubled(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_add(inputs.items[0], inputs.items[0]);
    return EDDY_OK;
}

static eddy_status kept_positive(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_relu(inputs.items[0]);
    return EDDY_OK;
}

Test(late_shapes, behind_branches_see_the_way_that_was_taken) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = ramp(-7), *y, *n;
    must(eddy_record_begin(NULL));
    must(eddy_cond(eddy_gt(eddy_sum(x, EDDY_ALL_AXES, NULL), scalar(0)), doubled, kept_positive,
                   NULL, EDDY_LIST(x), 1, NULL, &y));
    n = eddy_nonzero(y);
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"n", n, EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < ROUNDS; i++) {
        eddy_tensor *fed = ramp(-20 + 3 * i);
        must(eddy_program_run(program, EDDY_LIST(fed), &n));
        must(eddy_cond(eddy_gt(eddy_sum(fed, EDDY_ALL_AXES, NULL), scalar(0)), doubled,
                       kept_positive, NULL, EDDY_LIST(fed), 1, NULL, &y));
        must_be_the_same(n, eddy_nonzero(y), "behind a branch");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
