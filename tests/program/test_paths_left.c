/* Paths that are left, and what has happened by then: nothing. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/heard.h>
#include <tests/program/outcome.h>
#include <tests/program/paths.h>
#include <tests/program/runtimes.h>
#include <tests/program/taped.h>
#include <tests/rounds.h>

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

Test(paths_left, that_are_left_put_back_what_was_written) {
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

Test(paths_left, that_are_left_put_back_inputs) {
    in_runtimes(inputs_that_are_written);
}

/* The result is there before it is known which path is taken. */
static eddy_status gives_early(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((counted *)context)->calls++;
    call->outputs[0] = eddy_mul_s(x, EDDY_S(3));
    if (is_positive(x))
        must(eddy_sub_into(call->outputs[0], eddy_mul_s(x, EDDY_S(4)), call->outputs[0]));
    return EDDY_OK;
}

/* The memory of what a run would have given is free. */
static void no_memory_is_left(void) {
    counted c = {0};
    eddy_counters first = {.size = sizeof(first)}, last = {.size = sizeof(last)};
    eddy_recorded *recorded = eddy_recorded_create(gives_early, &c, 1, NULL);
    for (int i = 0; i < 800; i++) { /* of which half would leave 40,000 bytes */
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = eddy_full(EDDY_SHAPE(10000), EDDY_S(i % 2 ? 1 : -1), EDDY_F32, NULL);
        cr_assert_eq(sum_of(call_once(recorded, x)), i % 2 ? -10000 : -30000, "%d", i);
        eddy_scope_end(scope);
        must(eddy_sync(EDDY_FOREVER));
        must(eddy_counters_read(i < 10 ? &first : &last));
    }
    cr_assert_eq(c.calls, 4);
    cr_assert_leq(last.bytes_live, first.bytes_live + (4 << 20), "%lld",
                  (long long)last.bytes_live);
    eddy_recorded_release(&recorded);
}

Test(paths_left, take_no_memory_with_them) {
    in_runtimes(no_memory_is_left);
}

/* Behind the last read the function writes what the thread itself has mapped: nobody waits for that. */
static eddy_status adds_behind(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0];
    c->calls++;
    bool is = is_positive(x);
    must(eddy_add_into(c->state, x, c->state));
    call->outputs[0] = is ? eddy_neg(x) : eddy_clone(x);
    return EDDY_OK;
}

static void what_is_mapped_is_not_waited_for(void) {
    counted c = {.state = of(0)};
    eddy_recorded *recorded = eddy_recorded_create(adds_behind, &c, 1, NULL);
    for (int i = 0; i < 4; i++)
        call_once(recorded, of(1));
    for (int i = 4; i < 8; i++) {
        const float *state = eddy_map(c.state, EDDY_READ, EDDY_FOREVER);
        eddy_tensor *y = call_once(recorded, of(1));
        cr_assert_eq(state[0], (float)i);
        must(eddy_unmap(c.state));
        cr_assert_eq(sum_of(y), -3);
    }
    cr_assert_eq(sum_of(c.state), 3 * 8);
    cr_assert_eq(c.calls, 2 + 4);
    expect_explained(recorded, "missed 4 times (this thread has mapped a tensor, which what it "
                               "reads might wait for)");
    eddy_recorded_release(&recorded);
}

Test(paths_left, are_those_of_a_thread_that_has_mapped_something) {
    in_runtimes(what_is_mapped_is_not_waited_for);
}

/* The same, mapped by another thread, which waits for the call to return. */
typedef struct holder {
    eddy_tensor *tensor;
    pthread_barrier_t mapped, returned;
} holder;

static void *holds(void *context) {
    holder *h = context;
    eddy_map(h->tensor, EDDY_READ, EDDY_FOREVER);
    pthread_barrier_wait(&h->mapped);
    pthread_barrier_wait(&h->returned);
    eddy_unmap(h->tensor);
    return NULL;
}

/* A replay while another thread has mapped the state, until the call has returned. */
static void call_beside_a_lend(eddy_recorded *recorded, counted *c) {
    holder h = {.tensor = c->state};
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        call_once(recorded, of(1));
    must(eddy_sync(EDDY_FOREVER));
    pthread_barrier_init(&h.mapped, NULL, 2);
    pthread_barrier_init(&h.returned, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, holds, &h), 0);
    pthread_barrier_wait(&h.mapped);
    eddy_tensor *y = call_once(recorded, of(1));
    pthread_barrier_wait(&h.returned);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_eq(sum_of(y), -3);
    cr_assert_eq(sum_of(c->state), 3 * 5);
    cr_assert_eq(c->calls, 2);
}

/* The state is read in front of the read, and written behind it. */
static eddy_status adds_what_it_has_read(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0];
    c->calls++;
    bool is = is_positive(eddy_add(x, c->state));
    must(eddy_add_into(c->state, x, c->state));
    call->outputs[0] = is ? eddy_neg(x) : eddy_clone(x);
    return EDDY_OK;
}

static void what_another_thread_has_mapped(void) {
    static eddy_recorded_body *const bodies[] = {adds_behind, adds_what_it_has_read};
    for (int i = 0; i < 2; i++) {
        counted c = {.state = of(0)};
        eddy_recorded *recorded = eddy_recorded_create(bodies[i], &c, 1, NULL);
        call_beside_a_lend(recorded, &c);
        eddy_recorded_release(&recorded);
    }
}

Test(paths_left, do_not_wait_for_what_is_written_behind_the_last_read) {
    in_runtimes(what_another_thread_has_mapped);
}

/* The same where the beginning would write all of the state, on a path that the call does not take. */
static eddy_status covers_and_takes_much(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0];
    c->calls++;
    call->outputs[0] = eddy_neg(x);
    if (!is_positive(x))
        return EDDY_OK;
    must(eddy_copy_into(x, c->state));
    eddy_tensor *large = eddy_expand(eddy_slice(x, 0, 0, 1, 1), EDDY_SHAPE(8 << 20));
    if (is_positive(eddy_cumsum(large, 0)))
        call->outputs[0] = eddy_clone(x);
    return EDDY_OK;
}

/* There is no memory for the beginning of a path, and the function needs none. */
static eddy_status takes_much(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0];
    c->calls++;
    must(eddy_add_inplace(c->state, x));
    call->outputs[0] = eddy_neg(x);
    if (is_positive(x)) {
        eddy_tensor *large = eddy_expand(eddy_slice(x, 0, 0, 1, 1), EDDY_SHAPE(8 << 20));
        call->outputs[0] = eddy_add(eddy_sum(eddy_cumsum(large, 0), EDDY_ALL_AXES, NULL), x);
    }
    return EDDY_OK;
}

static void little_memory(eddy_recorded_body *body, double state) {
    counted c = {.state = of(0)};
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL);
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < 4; i++)
        call_once(recorded, of(1));
    eddy_scope_end(scope);
    cr_assert_eq(c.calls, 2);
    eddy_tensor *other = eddy_zeros(EDDY_SHAPE(25 << 20), EDDY_F32, NULL); /* of 128 MB */
    must(eddy_sync(EDDY_FOREVER));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(sum_of(call_once(recorded, of(-1))), 3);
    must(eddy_sync(EDDY_FOREVER));
    cr_assert_eq(sum_of(c.state), state);
    cr_assert_eq(c.calls, 6);
    expect_explained(recorded, "missed 4 times (there was no memory for its beginning)");
    eddy_release(&other);
    eddy_recorded_release(&recorded);
}

Test(paths_left, are_left_where_there_is_no_memory_for_them) {
    for (int threads = 0; threads < 3; threads++) {
        eddy_runtime *runtime = eddy_runtime_create(
            EDDY_OPTIONS(runtime, .uses_one_thread = threads == 0, .threads = threads ? threads : 1,
                         .memory_limit = 128 << 20));
        must(eddy_runtime_use(runtime));
        eddy_scope *scope = eddy_scope_begin();
        little_memory(takes_much, 0);
        little_memory(covers_and_takes_much, 3);
        eddy_scope_end(scope);
        must(eddy_runtime_use(NULL));
        eddy_runtime_release(&runtime);
    }
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
    must(eddy_add_inplace(c->late, scalar(1)));
    eddy_tensor *other = eddy_index_select(c->w, eddy_slice(index, 0, 1, 2, 1), 0);
    call->outputs[0] = first > 2 ? eddy_neg(other) : eddy_add(other, other);
    return EDDY_OK;
}

typedef struct looked {
    eddy_status status, synced;
    eddy_error error, sync_error;
    double sum, state, late;
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
    l.late = sum_of(c->late);
    return l;
}

static void failures_are_those_of_the_calls(void) {
    float table[] = {1, 2, 3};
    counted c = {.state = of(0),
                 .late = of(0),
                 .w = eddy_from_data(table, EDDY_SHAPE(3, 1), EDDY_F32, NULL)};
    counted plain = {.state = of(0), .late = of(0), .w = c.w};
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
        cr_assert_eq(got.late, wanted.late, "%d", n);
    }
    cr_assert_lt(c.calls, plain.calls - 8);
    eddy_recorded_release(&recorded);
}

Test(paths_left, fail_as_the_calls_do) {
    in_runtimes(failures_are_those_of_the_calls);
}

/* Submitted by a call that fails where it reads. */
static int64_t submitted_by(eddy_recorded *recorded, counted *c) {
    eddy_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    must(eddy_counters_read(&before));
    look(recorded, c, 9, 0);
    must(eddy_counters_read(&after));
    return after.submitted - before.submitted;
}

static void a_failure_tries_one_path(void) {
    float table[] = {1, 2, 3};
    counted c = {.state = of(0),
                 .late = of(0),
                 .w = eddy_from_data(table, EDDY_SHAPE(3, 1), EDDY_F32, NULL)};
    eddy_recorded *recorded = eddy_recorded_create(looks_up, &c, 1, NULL);
    for (int n = 0; n < 6; n++)
        look(recorded, &c, n % 2 * 2, 1);
    int64_t got = submitted_by(recorded, &c), plain = submitted_by(NULL, &c);
    /* Those of the calls, and as many of one run. */
    cr_assert_leq(got, 2 * plain, "%lld, %lld", (long long)got, (long long)plain);
    eddy_recorded_release(&recorded);
}

Test(paths_left, are_left_once_where_something_fails) {
    in_runtimes(a_failure_tries_one_path);
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
    expect_explained(recorded, "missed 2 times (something that it has computed, or was given, "
                               "before what it reads had failed)");
    eddy_recorded_release(&recorded);
}

Test(paths_left, are_left_for_poisoned_inputs) {
    in_runtimes(poison_is_that_of_the_calls);
}

/* A loop that has too many steps, in front of the read. */
static eddy_status loops_too_often(void *context, eddy_recorded_call *call) {
    counted *c = context;
    eddy_tensor *x = call->inputs.items[0], *y;
    c->calls++;
    must(eddy_add_inplace(c->state, scalar(1)));
    eddy_status status =
        eddy_while(is_short, twice, NULL, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 3), &y);
    call->outputs[0] = status == EDDY_OK && is_positive(eddy_sub_s(y, EDDY_S(24)))
                           ? eddy_neg(x)
                           : eddy_mul_s(x, EDDY_S(3));
    return status;
}

static void loops_that_fail(void) {
    counted c = {.state = of(0)}, plain = {.state = of(0)};
    eddy_recorded *recorded = eddy_recorded_create(loops_too_often, &c, 1, NULL);
    for (int i = 0; i < 24; i++) {
        eddy_tensor *x = of(i % 5 == 4 ? 0.1 : 4 + i % 2 * 5), *y[2] = {NULL};
        eddy_error errors[2];
        eddy_recorded_call call = {
            .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y[1], .output_count = 1};
        eddy_status status = eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y[0]);
        eddy_error_take(&errors[0]);
        cr_assert_eq(loops_too_often(&plain, &call), status);
        eddy_error_take(&errors[1]);
        cr_assert_str_eq(errors[0].message, errors[1].message);
        must(eddy_sync(EDDY_FOREVER));
        cr_assert_eq(sum_of(c.state), sum_of(plain.state), "%d", i);
    }
    cr_assert_lt(c.calls, 12);
    eddy_recorded_release(&recorded);
}

Test(paths_left, whose_loops_have_too_many_steps) {
    in_runtimes(loops_that_fail);
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
    loops_that_fail();
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

Test(paths_left, are_followed_where_each_op_is_looked_at) {
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

Test(paths_left, of_a_training_step) {
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

Test(paths_left, let_gradients_go_back) {
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

Test(paths_left, are_left_with_nothing_behind) {
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
    for (int i = 0; i < ROUNDS_OF(200); i++) {
        double x = (i / 7 + self->number) % 2 ? 1 + i : -1 - i;
        cr_assert_eq(sum_of(call_once(self->recorded, of(x))), x > 0 ? -3 * x : 9 * x, "%d", i);
    }
    eddy_scope_end(scope);
    return NULL;
}

Test(paths_left, of_several_threads) {
    eddy_recorded *recorded = eddy_recorded_create(turns, NULL, 1, NULL);
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

Test(paths_left, are_not_waited_for_in_callbacks) {
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

Test(paths_left, are_those_of_functions_within) {
    in_runtimes(within_another);
}
