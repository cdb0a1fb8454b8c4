/* Programs on CUDA devices, on the fake driver (tests/fake_cuda): each of their calls is one of the device's. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <unistd.h>

#define THERE EDDY_CUDA(0)
#define BATCH 6
#define WIDTH 5

static void end(eddy_scope *scope, eddy_program **program) {
    eddy_program_release(program);
    eddy_scope_end(scope);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(eddy_live_count(), 0);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    char *x = malloc(bytes), *y = malloc(bytes);
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    must(eddy_read(a, x, bytes, NULL));
    must(eddy_read(b, y, bytes, NULL));
    cr_assert_eq(memcmp(x, y, bytes), 0);
    free(x);
    free(y);
}

/* Of small integers, so that sums are exact in any order. */
static eddy_tensor *integers(eddy_device device, eddy_shape shape, int64_t seed) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape.rank; d++)
        count *= shape.dims[d];
    float *elements = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)((i * 7 + seed * 5) % 11 - 5);
    eddy_tensor *here =
        eddy_from_data(elements, shape, EDDY_F32, EDDY_OPTIONS(from_data, .device = EDDY_CPU));
    free(elements);
    return eddy_to_device(here, device);
}

/* A model's step: forwards, backwards, and an update in place, by integers. */
typedef struct model {
    eddy_tensor *weight, *bias, *x, *loss;
} model;

static model model_on(eddy_device device) {
    model made = {.weight = integers(device, EDDY_SHAPE(WIDTH, WIDTH), 1),
                  .bias = integers(device, EDDY_SHAPE(WIDTH), 2),
                  .x = integers(device, EDDY_SHAPE(BATCH, WIDTH), 3)};
    must(eddy_requires_grad_set(made.weight, true));
    must(eddy_requires_grad_set(made.bias, true));
    return made;
}

static void update(eddy_tensor *leaf) {
    eddy_tensor *gradient = eddy_grad_of(leaf);
    must(eddy_sub_into(leaf, eddy_sign(gradient), leaf));
    must(eddy_grads_zero(EDDY_LIST(leaf)));
}

static eddy_tensor *step(model *m, eddy_tensor *x) {
    eddy_tensor *y = eddy_relu(eddy_linear(x, m->weight, m->bias));
    eddy_tensor *loss = eddy_sum(eddy_mul(y, y), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    update(m->weight);
    update(m->bias);
    eddy_no_grad_end();
    return loss;
}

static eddy_program *record_step(model *m, const char *passes) {
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes)));
    m->loss = step(m, m->x);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", m->x, EDDY_ROLE_INPUT}, {"weight", m->weight, EDDY_ROLE_STATE},
                      {"bias", m->bias, EDDY_ROLE_STATE}, {"loss", m->loss, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

static void trains(const char *passes) {
    eddy_scope *scope = eddy_scope_begin();
    model here = model_on(EDDY_CPU), there = model_on(THERE);
    step(&here, here.x);
    eddy_program *program = record_step(&there, passes);
    for (int run = 0; run < 4; run++) {
        eddy_tensor *loss;
        eddy_tensor *expected = step(&here, integers(EDDY_CPU, EDDY_SHAPE(BATCH, WIDTH), 10 + run));
        must(eddy_program_run(
            program, EDDY_LIST(integers(THERE, EDDY_SHAPE(BATCH, WIDTH), 10 + run)), &loss));
        cr_assert_eq(eddy_device_of(loss).kind, EDDY_DEVICE_CUDA);
        expect_same(expected, loss);
        expect_same(here.weight, there.weight);
        expect_same(here.bias, there.bias);
    }
    end(scope, &program);
}

Test(cuda_program, trains) {
    trains(NULL);
}

Test(cuda_program, trains_with_all_passes_and_with_none) {
    trains("all");
    trains("none");
    trains("all,fast");
}

/* A step is one call, and nothing of it lies in an arena. */
Test(cuda_program, is_submitted_call_by_call) {
    eddy_scope *scope = eddy_scope_begin();
    model m = model_on(THERE);
    eddy_program *program = record_step(&m, "none");
    const eddy_partitions *partitions = &program->executable->partitions;
    cr_assert_gt(partitions->count, 6);
    for (uint32_t i = 0; i < partitions->count; i++) {
        cr_assert_neq(partitions->items[i].call, EDDY_CODE_NONE);
        cr_assert_eq(partitions->items[i].arena_bytes, 0);
    }
    end(scope, &program);
}

/* ---- what runs are given ---- */

/* Where a run's input begins within its memory; elementwise calls in a row are one kernel, others calls of their own. */
Test(cuda_program, takes_views_and_targets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *all = integers(THERE, EDDY_SHAPE(4, 3, 2), 0),
                *here = eddy_to_device(all, EDDY_CPU);
    eddy_tensor *x = eddy_select(all, 0, 1), *y, *z;
    must(eddy_record_begin(NULL));
    y = eddy_add(eddy_mul(x, x), x);
    z = eddy_sum(x, EDDY_AXES(1), NULL);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int64_t i = 0; i < 4; i++) {
        eddy_tensor *part = eddy_select(here, 0, i), *results[2];
        eddy_tensor *targets[] = {
            eddy_zeros(EDDY_SHAPE(3, 2), EDDY_F32, EDDY_OPTIONS(zeros, .device = THERE)),
            eddy_zeros(EDDY_SHAPE(3), EDDY_F32, EDDY_OPTIONS(zeros, .device = THERE))};
        eddy_tensor *expected = eddy_add(eddy_mul(part, part), part);
        eddy_tensor *expected_sum = eddy_sum(part, EDDY_AXES(1), NULL);
        must(eddy_program_run(program, EDDY_LIST(eddy_select(all, 0, i)), results));
        must(eddy_program_run_into(program, EDDY_LIST(eddy_select(all, 0, i)),
                                   EDDY_LIST(targets[0], targets[1])));
        for (int k = 0; k < 2; k++) {
            expect_same(k == 0 ? expected : expected_sum, results[k]);
            expect_same(k == 0 ? expected : expected_sum, targets[k]);
        }
    }
    end(scope, &program);
}

/* A list that names one tensor several times. */
Test(cuda_program, joins_one_tensor_with_itself) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = integers(THERE, EDDY_SHAPE(2, 3), 0), *y;
    must(eddy_record_begin(NULL));
    y = eddy_cat(EDDY_LIST(x, x, x, x), 0);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *given = integers(EDDY_CPU, EDDY_SHAPE(2, 3), 4), *result;
    must(eddy_program_run(program, EDDY_LIST(eddy_to_device(given, THERE)), &result));
    expect_same(eddy_cat(EDDY_LIST(given, given, given, given), 0), result);
    end(scope, &program);
}

Test(cuda_program, goes_on_with_what_the_host_computes) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = integers(EDDY_CPU, EDDY_SHAPE(3, 3), 0), *y;
    must(eddy_record_begin(NULL));
    eddy_tensor *there = eddy_to_device(eddy_mul_s(x, EDDY_S(2.0)), THERE);
    y = eddy_add(eddy_to_device(eddy_relu(eddy_matmul(there, there)), EDDY_CPU), x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = integers(EDDY_CPU, EDDY_SHAPE(3, 3), 5 + run), *result,
                    *doubled = eddy_mul_s(given, EDDY_S(2.0));
        must(eddy_program_run(program, EDDY_LIST(given), &result));
        expect_same(eddy_add(eddy_relu(eddy_matmul(doubled, doubled)), given), result);
    }
    end(scope, &program);
}

/* ---- outputs of late shape ---- */

#define LATE_OUTPUTS 4

static void find(eddy_tensor *x, eddy_tensor **outputs) {
    eddy_tensor *y = eddy_add(x, x), *inverse;
    outputs[0] = eddy_masked_select(y, eddy_gt_s(y, EDDY_S(2.0)));
    outputs[1] = eddy_cast(eddy_sum(y, EDDY_ALL_AXES, NULL), EDDY_F32);
    must(eddy_unique_counts(y, &outputs[2], &inverse, &outputs[3]));
}

static eddy_program *record_finding(void) {
    eddy_tensor *x = integers(THERE, EDDY_SHAPE(4, 3), 0), *found[LATE_OUTPUTS];
    must(eddy_record_begin(NULL));
    find(x, found);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"a", found[0], EDDY_ROLE_OUTPUT},
                      {"b", found[1], EDDY_ROLE_OUTPUT}, {"c", found[2], EDDY_ROLE_OUTPUT},
                      {"d", found[3], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

/* The calls behind a run are the device's, too: also of a recording that takes over what the first was built to. */
static void expect_found(eddy_program *program) {
    eddy_tensor *found[LATE_OUTPUTS];
    for (int run = 0; run < 4; run++) {
        eddy_tensor *given = integers(EDDY_CPU, EDDY_SHAPE(4, 3), 4 + run), *expected[LATE_OUTPUTS];
        must(eddy_program_run(program, EDDY_LIST(eddy_to_device(given, THERE)), found));
        find(given, expected);
        for (int i = 0; i < LATE_OUTPUTS; i++) {
            cr_assert_eq(eddy_device_of(found[i]).kind, EDDY_DEVICE_CUDA);
            expect_same(eddy_cast(expected[i], EDDY_F32), eddy_cast(found[i], EDDY_F32));
        }
    }
}

Test(cuda_program, has_outputs_of_late_shape) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *first = record_finding(), *second = record_finding();
    expect_found(first);
    eddy_program_release(&first);
    expect_found(second);
    end(scope, &second);
}

/* ---- failures ---- */

static eddy_program *record_picks(eddy_device device, eddy_tensor **table) {
    int64_t index[] = {0, 1};
    *table = integers(device, EDDY_SHAPE(4, 2), 0);
    eddy_tensor *i = eddy_to_device(
        eddy_from_data(index, EDDY_SHAPE(2), EDDY_I64, EDDY_OPTIONS(from_data, .device = EDDY_CPU)),
        device);
    must(eddy_record_begin(NULL));
    eddy_tensor *picked = eddy_mul_s(eddy_index_select(*table, i, 0), EDDY_S(2.0)),
                *sum = eddy_add_s(*table, EDDY_S(1.0));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"i", i, EDDY_ROLE_INPUT}, {"table", *table, EDDY_ROLE_STATE},
                      {"picked", picked, EDDY_ROLE_OUTPUT}, {"sum", sum, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

static eddy_error failure_on(eddy_device device) {
    int64_t index[] = {0, 9};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *table, *results[2];
    eddy_program *program = record_picks(device, &table);
    eddy_tensor *i = eddy_to_device(
        eddy_from_data(index, EDDY_SHAPE(2), EDDY_I64, EDDY_OPTIONS(from_data, .device = EDDY_CPU)),
        device);
    must(eddy_program_run(program, EDDY_LIST(i), results));
    eddy_error error = {0};
    cr_assert_eq(eddy_error_of(results[0], EDDY_FOREVER, &error), EDDY_OUT_OF_RANGE);
    must(eddy_error_of(results[1], EDDY_FOREVER, NULL));
    expect_same(eddy_add_s(table, EDDY_S(1.0)), results[1]);
    end(scope, &program);
    return error;
}

Test(cuda_program, fails_as_on_the_host) {
    eddy_error here = failure_on(EDDY_CPU), there = failure_on(THERE);
    cr_assert_str_eq(here.message, there.message);
    cr_assert_str_eq(here.op, there.op);
}

/* A failed result that is written whole is good again, and so is one that a later call of the run writes. */
Test(cuda_program, heals_what_is_written_whole) {
    int64_t bad[] = {9};
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *table = integers(THERE, EDDY_SHAPE(1, 2), 0),
                *target = integers(THERE, EDDY_SHAPE(1, 2), 1),
                *x = integers(THERE, EDDY_SHAPE(1, 2), 2), *result;
    eddy_tensor *i = eddy_to_device(
        eddy_from_data(bad, EDDY_SHAPE(1), EDDY_I64, EDDY_OPTIONS(from_data, .device = EDDY_CPU)),
        THERE);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_add_into(x, x, target);
    eddy_tensor *y = eddy_mul(target, x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"t", target, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must(eddy_index_select_into(table, i, target, 0));
    cr_assert_eq(eddy_error_of(target, EDDY_FOREVER, NULL), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    must(eddy_error_of(result, EDDY_FOREVER, NULL));
    expect_same(eddy_add(x, x), target);
    end(scope, &program);
}

/* A target of what fails holds the error, as that of a call does, and is good again with the next run. */
Test(cuda_program, heals_its_targets) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *table;
    eddy_program *program = record_picks(THERE, &table);
    eddy_tensor *targets[] = {integers(THERE, EDDY_SHAPE(2, 2), 1),
                              integers(THERE, EDDY_SHAPE(4, 2), 1)};
    for (int64_t run = 0; run < 4; run++) {
        int64_t index[] = {0, run % 2 == 0 ? 9 : 1};
        eddy_tensor *i = eddy_to_device(eddy_from_data(index, EDDY_SHAPE(2), EDDY_I64,
                                                       EDDY_OPTIONS(from_data, .device = EDDY_CPU)),
                                        THERE);
        must(eddy_program_run_into(program, EDDY_LIST(i), (eddy_list){targets, 2}));
        cr_assert_eq(eddy_error_of(targets[0], EDDY_FOREVER, NULL),
                     run % 2 == 0 ? EDDY_OUT_OF_RANGE : EDDY_OK);
        must(eddy_error_of(targets[1], EDDY_FOREVER, NULL));
    }
    end(scope, &program);
}

/* Without an output nobody reads what it gives. */
Test(cuda_program, computes_what_nobody_uses) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = integers(THERE, EDDY_SHAPE(3), 0), *y, *result;
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "none")));
    eddy_neg(x);
    y = eddy_add(x, x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must(eddy_program_run(program, EDDY_LIST(x), &result));
    expect_same(y, result);
    end(scope, &program);
}

/* Gradients that are added up, which one op does on the host. */
Test(cuda_program, adds_up_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *results[2];
    for (int side = 0; side < 2; side++) {
        eddy_device device = side == 0 ? EDDY_CPU : THERE;
        eddy_tensor *a = integers(device, EDDY_SHAPE(4, 3), 1),
                    *b = integers(device, EDDY_SHAPE(3, 4), 2),
                    *sum = integers(device, EDDY_SHAPE(4, 4), 3);
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all,fast,subbatch")));
        eddy_tensor *first = eddy_add(sum, eddy_matmul(a, b));
        eddy_tensor *y = eddy_add(first, eddy_matmul(a, b));
        eddy_program *program = eddy_record_end(
            EDDY_BINDINGS({"a", a, EDDY_ROLE_INPUT}, {"b", b, EDDY_ROLE_INPUT},
                          {"sum", sum, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(program);
        must(eddy_program_run(program, EDDY_LIST(a, b, sum), &results[side]));
        eddy_program_release(&program);
    }
    expect_same(results[0], results[1]);
    eddy_scope_end(scope);
}

/* ---- what others make of programs ---- */

static eddy_status square(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_tensor *squares = eddy_mul(call->inputs.items[0], call->inputs.items[0]);
    call->outputs[0] = eddy_mul_s(squares, call->scalars[0]);
    call->outputs[1] = eddy_mul_s(eddy_sum(squares, EDDY_ALL_AXES, NULL), call->scalars[0]);
    return call->outputs[1] ? EDDY_OK : EDDY_UNSUPPORTED;
}

/* The number is filled in at each run: in a kernel of elementwise calls in a row, and in a call of its own. */
Test(cuda_program, is_what_a_recorded_function_runs) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(square, NULL, 2, NULL);
    for (int i = 0; i < 6; i++) {
        eddy_tensor *x = integers(EDDY_CPU, EDDY_SHAPE(4), i), *results[2];
        eddy_scalar number = EDDY_S((double)i);
        must(eddy_recorded_run(recorded, EDDY_LIST(eddy_to_device(x, THERE)), EDDY_SCALARS(number),
                               results));
        expect_same(eddy_mul_s(eddy_mul(x, x), number), results[0]);
        expect_same(eddy_mul_s(eddy_sum(eddy_mul(x, x), EDDY_ALL_AXES, NULL), number), results[1]);
    }
    char text[1000];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, "replayed 4 times"), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

Test(cuda_program, is_written_and_read) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = integers(THERE, EDDY_SHAPE(3, 3), 0),
                *weight = integers(THERE, EDDY_SHAPE(3, 3), 1), *y;
    char path[] = "/tmp/eddy_cuda_programXXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    must(eddy_record_begin(NULL));
    y = eddy_relu(eddy_matmul(x, weight));
    eddy_program *program = eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT},
                                                          {"weight", weight, EDDY_ROLE_CONSTANT},
                                                          {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(program);
    eddy_tensor *given = integers(EDDY_CPU, EDDY_SHAPE(3, 3), 5), *result;
    must(eddy_program_run(program, EDDY_LIST(eddy_to_device(given, THERE)), &result));
    expect_same(eddy_relu(eddy_matmul(given, eddy_to_device(weight, EDDY_CPU))), result);
    end(scope, &program);
}

/* ---- EDDY_CHECK_FINITE ---- */

/* exp(log(x)) of what is given, by a program that was recorded on the device: the failure's words, "" without one. */
static void look_by_program(eddy_device device, const float *given, int runs, char *words,
                            size_t size) {
    eddy_scope *scope = eddy_scope_begin();
    const float ones[] = {1, 1};
    eddy_tensor *x = eddy_to_device(eddy_from_data(ones, EDDY_SHAPE(2), EDDY_F32, NULL), device),
                *y;
    must(eddy_record_begin(NULL));
    y = eddy_exp(eddy_log(x));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    for (int run = 0; run < runs; run++) {
        eddy_tensor *at =
            eddy_to_device(eddy_from_data(given + 2 * run, EDDY_SHAPE(2), EDDY_F32, NULL), device);
        eddy_tensor *result;
        must(eddy_program_run(program, EDDY_LIST(at), &result));
        eddy_error error = {0};
        eddy_status status = eddy_error_of(result, EDDY_FOREVER, &error);
        int length = snprintf(words, size, "%s: %s; ", eddy_status_name(status), error.message);
        words += length;
        size -= (size_t)length;
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
}

Test(cuda_program, looks_at_the_results_of_its_calls) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    /* fine; an infinity that log makes, and one that it is given; too much for exp; NaN */
    const float given[] = {1, 2, 0, 1, 1, INFINITY, 1, 2, -1, 1};
    char here[2000], there[2000];
    look_by_program(EDDY_CPU, given, 5, here, sizeof(here));
    look_by_program(THERE, given, 5, there, sizeof(there));
    cr_assert_str_eq(there, here);
    cr_assert_not_null(strstr(here, "NOT_FINITE: log: the result holds a NaN"), "%s", here);
}
