/* A recorded function that reads on the host what it has computed: each path through its code has a program. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/heard.h>
#include <tests/program/outcome.h>
#include <tests/program/runtimes.h>
#include <tests/program/taped.h>

typedef struct counted {
    int calls;
    eddy_tensor *state, *w;
} counted;

/* The only element, as the function's code sees it; false where it could not be computed. */
static bool is_positive(eddy_tensor *x) {
    return eddy_item_i64(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0)), NULL) != 0;
}

static eddy_tensor *call_once(eddy_recorded *recorded, eddy_tensor *x) {
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y));
    return y;
}

/* The function itself, without recording. */
static eddy_tensor *call_plainly(eddy_recorded_body *body, counted *c, eddy_tensor *x) {
    eddy_tensor *y;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y, .output_count = 1};
    must(body(c, &call));
    return y;
}

/* ---- values ---- */

static eddy_status turns(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = is_positive(x) ? eddy_neg(x) : eddy_mul_s(x, EDDY_S(3));
    return EDDY_OK;
}

static void each_path_has_a_program(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        double x = i % 3 == 0 ? -1 - i : 1 + i;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), x > 0 ? -3 * x : 9 * x, "%d", i);
    }
    cr_assert_eq(c.calls, 4); /* two recordings of each path */
    expect_explained(recorded, "(f32[3]): ran 0 times, replayed 0 times; missed 1 times; item_i64 "
                               "reads bool[], which gt_s has written: each value has a program\n");
    expect_explained(recorded,
                     "(f32[3] with what it computes = true): ran 2 times, replayed 14 times\n");
    expect_explained(recorded,
                     "(f32[3] with what it computes = false): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
}

Test(paths, each_has_a_program) {
    in_runtimes(each_path_has_a_program);
}

/* Three paths, of one and of two values. */
static eddy_status turns_twice(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(x);
    if (is_positive(x))
        return EDDY_OK;
    eddy_tensor *y = eddy_add_s(x, EDDY_S(10));
    call->outputs[0] = is_positive(y) ? y : eddy_mul(x, y);
    return EDDY_OK;
}

static void paths_of_several_values(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns_twice, &c, 1, NULL);
    static const double values[] = {1, -1, -20, -2, 2, -30, -30, 3, -3};
    for (int i = 0; i < 54; i++) {
        double x = values[i % 9] * (1 + i / 9);
        must_have_same_bits(call_once(recorded, of(x)), call_plainly(turns_twice, &plain, of(x)),
                            "a path");
    }
    cr_assert_eq(c.calls, 6);
    expect_explained(recorded, "with what it computes = false, what it computes = true): ran 2");
    expect_explained(recorded, "with what it computes = false, what it computes = false): ran 2");
    eddy_recorded_release(&recorded);
}

Test(paths, consist_of_all_values) {
    in_runtimes(paths_of_several_values);
}

/* What was read of an input is a guard; both decide. */
static eddy_status turns_and_counts(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    int64_t n = eddy_item_i64(call->inputs.items[1], NULL);
    call->outputs[0] = is_positive(x) ? eddy_mul_s(x, EDDY_S(n)) : eddy_add_s(x, EDDY_S(n));
    return EDDY_OK;
}

static void guards_and_paths(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns_and_counts, &c, 1, NULL);
    for (int i = 0; i < 40; i++) {
        double x = i % 4 < 2 ? 1 + i : -1 - i;
        int64_t n = 2 + i % 2;
        eddy_tensor *y, *count = eddy_full((eddy_shape){0}, EDDY_S(n), EDDY_I64, NULL);
        must(eddy_recorded_run(recorded, EDDY_LIST(of(x), count), EDDY_SCALARS(), &y));
        cr_assert_eq(sum_of(y), 3 * (x > 0 ? x * (double)n : x + (double)n), "%d", i);
    }
    cr_assert_eq(c.calls, 9); /* the first shows that the count is read */
    expect_explained(recorded, "with input1 = 3, what it computes = false): ran 2 times");
    eddy_recorded_release(&recorded);
}

Test(paths, go_on_from_guards) {
    in_runtimes(guards_and_paths);
}

/* Elements of a transposed part, and of several dtypes. */
static eddy_status looks_at_parts(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0], *y = eddy_mul_s(x, EDDY_S(2));
    float corner[4];
    int64_t all[6];
    ((counted *)context)->calls++;
    must(eddy_read(eddy_transpose(eddy_slice(y, 1, 1, 3, 1), 0, 1), corner, sizeof(corner), NULL));
    must(eddy_read(eddy_cast(y, EDDY_I64), all, sizeof(all), NULL));
    call->outputs[0] = eddy_add_s(x, EDDY_S(corner[1] * 100 + (float)all[0]));
    return EDDY_OK;
}

static void parts_of_values(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(looks_at_parts, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        float values[6] = {(float)(i % 2), 1, 2, 3, (float)(i % 3), 5};
        eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(2, 3), EDDY_F32, NULL);
        must_have_same_bits(call_once(recorded, x), call_plainly(looks_at_parts, &plain, x),
                            "parts");
    }
    cr_assert_eq(c.calls, 12);
    eddy_recorded_release(&recorded);
}

Test(paths, see_parts_of_what_is_computed) {
    in_runtimes(parts_of_values);
}

/* ---- what is not replayed ---- */

static eddy_status scales(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    double mean = eddy_item_f64(eddy_mean(x, EDDY_ALL_AXES, NULL), NULL);
    call->outputs[0] = eddy_mul_s(x, EDDY_S(mean));
    return EDDY_OK;
}

static void values_that_differ(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(i))), 3.0 * i * i);
    cr_assert_eq(c.calls, 20);
    expect_explained(recorded,
                     "not replayed: item_f64 reads f32[], which mean has written, and differs too "
                     "often; give it out and read it after the call, or decide with eddy_cond");
    /* What was recorded is given up. */
    eddy_recorded_release(&recorded);
    recorded = eddy_recorded_create(scales, &c, 1, EDDY_OPTIONS(recorded, .is_strict = true));
    eddy_tensor *y;
    for (int i = 0; i < 8; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(i))), 3.0 * i * i);
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(of(9)), EDDY_SCALARS(), &y),
                 EDDY_UNSUPPORTED);
    eddy_error_take(NULL);
    eddy_recorded_release(&recorded);
}

Test(paths, that_differ_each_time_are_given_up) {
    in_runtimes(values_that_differ);
}

/* The value that comes most is replayed, and what comes now and then just runs, or is recorded, too. */
static void rare_values(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 200; i++) {
        double x = i % 10 == 9 ? i : 2;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), 3 * x * x);
    }
    cr_assert_eq(c.calls, 22);
    eddy_recorded_release(&recorded);
}

Test(paths, that_are_rare_run) {
    in_runtimes(rare_values);
}

static eddy_status has_a_timeout(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    double sum = eddy_item_f64(eddy_sum(x, EDDY_ALL_AXES, NULL),
                               EDDY_OPTIONS(read, .timeout = INT64_C(1000000000000)));
    call->outputs[0] = sum > 0 ? eddy_neg(x) : eddy_clone(x);
    return EDDY_OK;
}

static eddy_status reads_too_much(void *context, eddy_recorded_call *call) {
    float values[65];
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    must(eddy_read(eddy_expand(eddy_neg(eddy_select(x, 0, 0)), EDDY_SHAPE(65)), values,
                   sizeof(values), NULL));
    call->outputs[0] = eddy_mul_s(x, EDDY_S(values[64]));
    return EDDY_OK;
}

static eddy_status reads_in_a_branch(void *context, eddy_list inputs, eddy_tensor **outputs) {
    bool is = is_positive(inputs.items[0]);
    (void)context;
    return done(outputs, is ? eddy_neg(inputs.items[0]) : eddy_clone(inputs.items[0]));
}

static eddy_status decides_in_a_branch(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    return eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(-100)), reads_in_a_branch,
                     same, NULL, EDDY_LIST(x), 1, NULL, call->outputs);
}

static eddy_status draws_in_a_branch_of_its_own(void *context, eddy_list inputs,
                                                eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_mul(inputs.items[0], eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL)));
}

static eddy_status draws_in_a_branch(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    if (is_positive(x))
        x = eddy_neg(x);
    return eddy_cond(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(-100)),
                     draws_in_a_branch_of_its_own, same, NULL, EDDY_LIST(x), 1, NULL,
                     call->outputs);
}

static void expect_never_replayed(eddy_recorded_body *body, const char *why) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL);
    for (uint64_t i = 0; i < 20; i++) {
        eddy_tensor *x = of(i % 2 ? 1 : -1);
        eddy_seed(i);
        eddy_tensor *y = call_once(recorded, x);
        eddy_seed(i);
        must_have_same_bits(y, call_plainly(body, &plain, x), why);
    }
    cr_assert_eq(c.calls, plain.calls);
    expect_explained(recorded, why);
    eddy_recorded_release(&recorded);
}

static void other_reads(void) {
    expect_never_replayed(has_a_timeout, "not replayed: item_f64 reads f32[], which sum has "
                                         "written, with a timeout; give it out and read it");
    expect_never_replayed(reads_too_much, "not replayed: read reads f32[65], which neg has "
                                          "written, and 256 bytes decide at most; give it out");
    expect_never_replayed(decides_in_a_branch, "item_i64 reads bool[], which gt_s has written; ");
    expect_never_replayed(draws_in_a_branch,
                          "not replayed: item_i64 reads bool[], which gt_s has written, and it "
                          "draws random numbers in a branch or a loop; give it out");
}

Test(paths, other_reads_show_none) {
    in_runtimes(other_reads);
}

/* What is not replayed on one path leaves the others alone. */
static eddy_status prints_seldom(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_neg(x);
    if (is_positive(x))
        return EDDY_OK;
    FILE *nowhere = fopen("/dev/null", "w");
    must(eddy_print(call->outputs[0], nowhere));
    fclose(nowhere);
    return EDDY_OK;
}

static void a_path_that_is_not_replayed(void) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(prints_seldom, &c, 1, NULL);
    for (int i = 0; i < 60; i++) {
        double x = i % 10 ? 1 + i : -1 - i;
        cr_assert_eq(sum_of(call_once(recorded, of(x))), -3 * x);
    }
    cr_assert_eq(c.calls, 2 + 6);
    expect_explained(recorded, "with what it computes = false): ran 6 times, replayed 0 times; not "
                               "replayed: print reads f32[3], which neg has written; give it out");
    eddy_recorded_release(&recorded);
}

Test(paths, that_is_not_replayed_leaves_others_alone) {
    in_runtimes(a_path_that_is_not_replayed);
}

/* ---- what has happened by then ---- */

/* Adds to a state before it reads, draws before and after, and writes the state once more on one path. */
static eddy_status steps(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    eddy_tensor *x = call->inputs.items[0];
    must(eddy_add_inplace(c->state, x));
    eddy_tensor *noise = eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL);
    must(eddy_add_inplace(eddy_select(c->state, 0, 1), eddy_select(noise, 0, 0)));
    if (is_positive(c->state)) {
        must(eddy_mul_inplace(c->state, eddy_rand(EDDY_SHAPE(3), EDDY_F32, NULL)));
        call->outputs[0] = eddy_mul(x, noise);
    } else {
        call->outputs[0] = eddy_neg(noise);
    }
    return EDDY_OK;
}

static void what_was_written_is_put_back(void) {
    counted c = {.state = of(0)}, plain = {.state = of(0)};
    eddy_recorded *recorded = eddy_recorded_create(steps, &c, 1, NULL);
    eddy_tensor *outputs[2][40];
    uint64_t seed, counters[2];
    for (int side = 0; side < 2; side++) {
        eddy_seed(7);
        for (int i = 0; i < 40; i++) {
            eddy_tensor *x = of((i * 5 % 7 - 3) * 0.5);
            outputs[side][i] = side == 0 ? call_once(recorded, x) : call_plainly(steps, &plain, x);
        }
        must(eddy_generator_state(eddy_generator_default(), &seed, &counters[side]));
    }
    for (int i = 0; i < 40; i++)
        must_have_same_bits(outputs[0][i], outputs[1][i], "an output");
    must_have_same_bits(c.state, plain.state, "the state");
    cr_assert_eq(counters[0], counters[1]);
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
}

Test(paths, that_are_left_put_back_what_was_written) {
    in_runtimes(what_was_written_is_put_back);
}

/* The input is written before it decides. */
static eddy_status writes_its_input(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    must(eddy_add_inplace(x, scalar(1)));
    call->outputs[0] = is_positive(x) ? eddy_neg(x) : eddy_mul_s(x, EDDY_S(3));
    return EDDY_OK;
}

static void inputs_that_are_written(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(writes_its_input, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        /* Rows of larger tensors, whose others stay. */
        eddy_tensor *all[2] = {eddy_full(EDDY_SHAPE(3, 3), EDDY_S(i % 3 - 1.5), EDDY_F32, NULL),
                               eddy_full(EDDY_SHAPE(3, 3), EDDY_S(i % 3 - 1.5), EDDY_F32, NULL)};
        must_have_same_bits(call_once(recorded, eddy_select(all[0], 1, 1)),
                            call_plainly(writes_its_input, &plain, eddy_select(all[1], 1, 1)),
                            "an output");
        must_have_same_bits(all[0], all[1], "an input");
    }
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
}

Test(paths, that_are_left_put_back_inputs) {
    in_runtimes(inputs_that_are_written);
}

/* ---- failures ---- */

/* Row `index` of a table, read; then another look-up. Either fails beyond the table. */
static eddy_status looks_up(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *index = call->inputs.items[0];
    c->calls++;
    must(eddy_add_inplace(c->state, scalar(1)));
    eddy_tensor *row = eddy_index_select(c->w, eddy_slice(index, 0, 0, 1, 1), 0);
    double first = eddy_item_f64(eddy_sum(row, EDDY_ALL_AXES, NULL), NULL);
    eddy_tensor *other = eddy_index_select(c->w, eddy_slice(index, 0, 1, 2, 1), 0);
    call->outputs[0] = first > 2 ? eddy_neg(other) : eddy_add(other, other);
    return EDDY_OK;
}

typedef struct looked {
    eddy_status status, synced;
    eddy_error error, sync_error;
    double sum, state;
} looked;

static looked look(eddy_recorded *recorded, counted *c, int64_t i, int64_t k) {
    int64_t numbers[] = {i, k};
    eddy_tensor *index = eddy_from_data(numbers, EDDY_SHAPE(2), EDDY_I64, NULL), *y = NULL;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(index), .outputs = &y, .output_count = 1};
    looked l = {0};
    l.status = recorded ? eddy_recorded_run(recorded, EDDY_LIST(index), EDDY_SCALARS(), &y)
                        : looks_up(c, &call);
    eddy_error_take(&l.error);
    l.synced = eddy_sync(EDDY_FOREVER);
    eddy_error_take(&l.sync_error);
    l.sum = y ? sum_of(y) : 0;
    eddy_error_take(NULL);
    l.state = sum_of(c->state);
    return l;
}

static void failures_are_those_of_the_calls(void) {
    float table[] = {1, 2, 3};
    counted c = {.state = of(0), .w = eddy_from_data(table, EDDY_SHAPE(3, 1), EDDY_F32, NULL)};
    counted plain = {.state = of(0), .w = c.w};
    eddy_recorded *recorded = eddy_recorded_create(looks_up, &c, 1, NULL);
    static const int64_t pairs[][2] = {{0, 0}, {0, 1}, {2, 1}, {2, 2}, {0, 2}, {2, 0},
                                       {0, 9}, {7, 0}, {2, 9}, {0, 1}, {8, 8}, {2, 1}};
    for (int n = 0; n < 36; n++) {
        looked got = look(recorded, &c, pairs[n % 12][0], pairs[n % 12][1]);
        looked wanted = look(NULL, &plain, pairs[n % 12][0], pairs[n % 12][1]);
        cr_assert_eq(got.status, wanted.status, "%d", n);
        cr_assert_eq(got.synced, wanted.synced, "%d", n);
        cr_assert_str_eq(got.error.message, wanted.error.message);
        cr_assert_str_eq(got.sync_error.message, wanted.sync_error.message, "%d", n);
        cr_assert_str_eq(got.sync_error.op, wanted.sync_error.op, "%d", n);
        cr_assert(got.sum == wanted.sum || (got.sum != got.sum && wanted.sum != wanted.sum));
        cr_assert_eq(got.state, wanted.state, "%d", n);
    }
    cr_assert_lt(c.calls, plain.calls - 8);
    eddy_recorded_release(&recorded);
}

Test(paths, fail_as_the_calls_do) {
    in_runtimes(failures_are_those_of_the_calls);
}

static void poison_is_that_of_the_calls(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns, &c, 1, NULL);
    for (int i = 0; i < 6; i++)
        call_once(recorded, of(i % 2 ? 1 : -1));
    int64_t nine = 9;
    eddy_tensor *index = eddy_from_data(&nine, EDDY_SHAPE(1), EDDY_I64, NULL);
    eddy_tensor *lost = eddy_index_select(of(1), index, 0);
    lost = eddy_expand(lost, EDDY_SHAPE(3));
    eddy_tensor *y = NULL;
    eddy_error errors[2];
    cr_assert_neq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_error_take(NULL);
    eddy_status status =
        eddy_recorded_run(recorded, EDDY_LIST(eddy_contiguous(lost)), EDDY_SCALARS(), &y);
    eddy_error_take(&errors[0]);
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(eddy_contiguous(lost)),
                               .outputs = &y,
                               .output_count = 1};
    cr_assert_eq(turns(&plain, &call), status);
    eddy_error_take(&errors[1]);
    cr_assert_str_eq(errors[0].message, errors[1].message);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(sum_of(call_once(recorded, of(2))), -6);
    cr_assert_eq(c.calls, 5);
    eddy_recorded_release(&recorded);
}

Test(paths, are_left_for_poisoned_inputs) {
    in_runtimes(poison_is_that_of_the_calls);
}

static void checked_runs(void) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    counted c = {.state = of(0)};
    eddy_recorded *recorded = eddy_recorded_create(steps, &c, 1, NULL);
    for (int i = 0; i < 12; i++)
        call_once(recorded, of(i % 3 - 1));
    cr_assert_eq(c.calls, 4);
    must(eddy_sync(EDDY_FOREVER));
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

Test(paths, are_followed_where_each_op_is_looked_at) {
    checked_runs();
}

/* ---- gradients ---- */

/* The step of training is left out where the gradient is too large. */
static eddy_status trains(void *context, eddy_recorded_call *call) {
    counted *c = context;
    c->calls++;
    eddy_grads_zero(EDDY_LIST(c->w));
    must(eddy_add_inplace(c->state, scalar(1)));
    eddy_tensor *loss =
        eddy_mean(eddy_square(eddy_mul(call->inputs.items[0], c->w)), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    call->outputs[0] = eddy_detach(loss);
    eddy_no_grad_begin();
    eddy_tensor *gradient = eddy_grad_of(c->w);
    bool is_large =
        eddy_item_i64(eddy_gt_s(eddy_max(eddy_abs(gradient), EDDY_ALL_AXES, NULL), EDDY_S(50)),
                      NULL) != 0;
    eddy_status status =
        is_large ? EDDY_OK : eddy_sub_into(c->w, eddy_mul_s(gradient, EDDY_S(0.0625)), c->w);
    eddy_no_grad_end();
    return status;
}

static void training_steps(void) {
    counted c = {.state = of(0), .w = leaf(of(1))}, plain = {.state = of(0), .w = leaf(of(1))};
    eddy_recorded *recorded = eddy_recorded_create(trains, &c, 1, NULL);
    for (int i = 0; i < 30; i++) {
        eddy_tensor *x = of(i % 5 == 3 ? 100 : 0.5 + i % 3);
        must_have_same_bits(call_once(recorded, x), call_plainly(trains, &plain, x), "a loss");
        must_have_same_bits(eddy_detach(c.w), eddy_detach(plain.w), "a parameter");
        must_have_same_bits(eddy_grad_of(c.w), eddy_grad_of(plain.w), "a gradient");
    }
    must_have_same_bits(c.state, plain.state, "a state");
    cr_assert_leq(c.calls, 6);
    eddy_recorded_release(&recorded);
}

Test(paths, of_a_training_step) {
    in_runtimes(training_steps);
}

static eddy_status turns_with_weight(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0], *y = eddy_mul(x, c->w);
    c->calls++;
    eddy_no_grad_begin();
    bool is = is_positive(y);
    eddy_no_grad_end();
    call->outputs[0] = is ? eddy_square(y) : eddy_tanh(y);
    return EDDY_OK;
}

static void gradients_go_back(void) {
    counted c = {.w = leaf(of(1.5))}, plain = {.w = leaf(of(1.5))};
    eddy_recorded *recorded = eddy_recorded_create(turns_with_weight, &c, 1, NULL);
    for (int i = 0; i < 20; i++) {
        eddy_tensor *x[2] = {leaf(of(i % 3 - 1.25)), leaf(of(i % 3 - 1.25))};
        eddy_tensor *y[2] = {call_once(recorded, x[0]),
                             call_plainly(turns_with_weight, &plain, x[1])};
        for (int side = 0; side < 2; side++)
            must(eddy_backward(all(y[side])));
        must_have_same_bits(eddy_grad_of(x[0]), eddy_grad_of(x[1]), "the gradient of an input");
        must_have_same_bits(eddy_grad_of(c.w), eddy_grad_of(plain.w), "that of a weight");
    }
    cr_assert_leq(c.calls, 8);
    eddy_recorded_release(&recorded);
}

Test(paths, let_gradients_go_back) {
    in_runtimes(gradients_go_back);
}

/* ---- behind a run ---- */

static eddy_status tells(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    listen_to(eddy_sum(x, EDDY_ALL_AXES, NULL), 1);
    bool is = is_positive(x);
    call->outputs[0] = is ? eddy_nonzero(eddy_gt_s(x, EDDY_S(2))) : eddy_nonzero(x);
    return EDDY_OK;
}

static void what_is_behind_a_run(void) {
    counted c = {0}, plain = {0};
    eddy_recorded *recorded = eddy_recorded_create(tells, &c, 1, NULL);
    for (int i = 0; i < 20; i++) {
        eddy_tensor *x = of(i % 4 - 1);
        eddy_tensor *y = call_once(recorded, x);
        heard got = *settle();
        eddy_tensor *wanted = call_plainly(tells, &plain, x);
        expect_heard(&got, "what it tells");
        must_have_same_bits(y, wanted, "a late shape");
    }
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
}

Test(paths, are_left_with_nothing_behind) {
    in_runtimes(what_is_behind_a_run);
}

/* ---- threads ---- */

typedef struct caller {
    eddy_recorded *recorded;
    int number;
} caller;

static void *calls_often(void *context) {
    const caller *self = context;
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 200; i++) {
        double x = (i / 7 + self->number) % 2 ? 1 + i : -1 - i;
        cr_assert_eq(sum_of(call_once(self->recorded, of(x))), x > 0 ? -3 * x : 9 * x, "%d", i);
    }
    eddy_scope_end(scope);
    return NULL;
}

Test(paths, of_several_threads) {
    counted c = {0};
    eddy_recorded *recorded = eddy_recorded_create(turns, &c, 1, NULL);
    pthread_t threads[3];
    caller callers[3];
    for (int i = 0; i < 3; i++) {
        callers[i] = (caller){recorded, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, calls_often, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    eddy_recorded_release(&recorded);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A callback may not wait, so that a read in it fails: in the function as in its replay. */
typedef struct called_back {
    eddy_recorded *recorded;
    eddy_tensor *x;
    eddy_status status;
    char message[512];
} called_back;

static void calls_in_a_callback(void *context, void *data, const eddy_error *error) {
    called_back *back = context;
    eddy_tensor *y = NULL;
    eddy_error own;
    (void)data;
    (void)error;
    eddy_scope *scope = eddy_scope_begin();
    back->status = eddy_recorded_run(back->recorded, EDDY_LIST(back->x), EDDY_SCALARS(), &y);
    eddy_error_take(&own);
    snprintf(back->message, sizeof(back->message), "%s", own.message);
    eddy_scope_end(scope);
}

static eddy_status turns_or_fails(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0], *sum = eddy_sum(x, EDDY_ALL_AXES, NULL);
    int64_t value = 0;
    ((counted *)context)->calls++;
    eddy_status status = eddy_read_i64(eddy_gt_s(sum, EDDY_S(0)), &value, NULL);
    call->outputs[0] = value ? eddy_neg(x) : eddy_clone(x);
    return status;
}

Test(paths, are_not_waited_for_in_callbacks) {
    eddy_scope *scope = eddy_scope_begin();
    counted c = {0};
    called_back backs[2] = {{.x = of(1)}, {.x = of(1)}};
    for (int i = 0; i < 2; i++) {
        backs[i].recorded = eddy_recorded_create(turns_or_fails, &c, 1, NULL);
        for (int k = 0; k < 3 * i; k++) /* the second is replayed */
            call_once(backs[i].recorded, of(1));
        must(eddy_access_async(of(0), EDDY_READ, calls_in_a_callback, &backs[i]));
        must(eddy_sync(EDDY_FOREVER));
        must(eddy_sync_deleters(EDDY_FOREVER));
    }
    cr_assert_eq(backs[0].status, backs[1].status);
    cr_assert_str_eq(backs[0].message, backs[1].message);
    cr_assert_eq(c.calls, 1 + 2 + 1);
    for (int i = 0; i < 2; i++)
        eddy_recorded_release(&backs[i].recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A recorded function within another one: its reads are the outer one's. */
static eddy_status calls_another(void *context, eddy_recorded_call *call) {
    caller *inner = context;
    inner->number++;
    return eddy_recorded_run(inner->recorded, call->inputs, EDDY_SCALARS(), call->outputs);
}

static void within_another(void) {
    counted c = {0};
    caller inner = {.recorded = eddy_recorded_create(turns, &c, 1, NULL)};
    eddy_recorded *outer = eddy_recorded_create(calls_another, &inner, 1, NULL);
    for (int i = 0; i < 20; i++) {
        double x = i % 2 ? 1 + i : -1 - i;
        cr_assert_eq(sum_of(call_once(outer, of(x))), x > 0 ? -3 * x : 9 * x, "%d", i);
    }
    cr_assert_eq(inner.number, 4);
    eddy_recorded_release(&outer);
    eddy_recorded_release(&inner.recorded);
}

Test(paths, are_those_of_functions_within) {
    in_runtimes(within_another);
}
