/* Gradients of what branches and loops draw: those of the calls, bit for bit. Numbers are small integers, so that no order of sums rounds. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>

#define SIZE 24
#define STEPS 5

typedef struct model {
    eddy_tensor *w; /* gradients are wanted */
    eddy_generator *generator;
} model;

static eddy_tensor *drop(const model *m, eddy_tensor *x) {
    return eddy_dropout(x, EDDY_S(0.5), EDDY_OPTIONS(dropout, .generator = m->generator));
}

/* 0 and 1; no gradient leads there. */
static eddy_tensor *coins(const model *m) {
    return eddy_bernoulli(eddy_full(EDDY_SHAPE(SIZE), EDDY_S(0.5), EDDY_F32, NULL),
                          EDDY_OPTIONS(bernoulli, .generator = m->generator));
}

/* Values that stay small: x - 4 floor(x / 4), as the tape sees it, has the gradient of x. */
static eddy_tensor *small(eddy_tensor *x) {
    return eddy_sub(x, eddy_detach(eddy_mul_s(eddy_floor(eddy_mul_s(x, EDDY_S(0.25))), EDDY_S(4))));
}

static eddy_status dropped(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    return done(outputs, eddy_add(drop(m, eddy_mul(small(inputs.items[0]), m->w)), coins(m)));
}

/* Another number of draws, and no gradient of w. */
static eddy_status twice_dropped(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    return done(outputs, eddy_sub(drop(m, drop(m, small(inputs.items[0]))), coins(m)));
}

static eddy_status choose(model *m, eddy_tensor *x, eddy_tensor **y) {
    eddy_tensor *is_even = eddy_eq_s(
        eddy_remainder_s(eddy_sum(eddy_detach(x), EDDY_ALL_AXES, NULL), EDDY_S(2)), EDDY_S(0));
    return eddy_cond(is_even, dropped, twice_dropped, m, EDDY_LIST(x), 1, NULL, y);
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *x = drop(m, small(inputs.items[1]));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return choose(m, eddy_mul(x, drop(m, m->w)), &outputs[1]);
}

/* A loop of as many steps as are left, and rows. */
static eddy_status nested(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *inner[2];
    must(eddy_while(is_left, step, m, EDDY_LIST(inputs.items[0], drop(m, small(inputs.items[1]))),
                    EDDY_OPTIONS(while, .most_steps = STEPS), inner));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = drop(m, small(inner[1]));
    outputs[2] = eddy_mul(drop(m, outputs[1]), m->w);
    return outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status scan_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[0] = eddy_add(drop(m, small(inputs.items[0])), inputs.items[1]);
    outputs[1] = eddy_mul(drop(m, inputs.items[1]), m->w);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* ---- models ---- */

static eddy_tensor *with_branch(model *m, eddy_tensor *x, eddy_tensor *count) {
    eddy_tensor *y;
    (void)count;
    must(choose(m, eddy_mul(x, m->w), &y));
    return eddy_add(drop(m, y), m->w);
}

static eddy_tensor *with_loop(model *m, eddy_tensor *x, eddy_tensor *count) {
    eddy_tensor *y[2];
    must(eddy_while(is_left, step, m, EDDY_LIST(count, x), EDDY_OPTIONS(while, .most_steps = STEPS),
                    y));
    return eddy_add(drop(m, y[1]), m->w);
}

static eddy_tensor *with_nest(model *m, eddy_tensor *x, eddy_tensor *count) {
    eddy_tensor *y[3];
    must(eddy_while(is_left, nested, m, EDDY_LIST(count, drop(m, x)),
                    EDDY_OPTIONS(while, .most_steps = STEPS, .list_count = 1), y));
    return eddy_add(eddy_add(eddy_sum(y[2], EDDY_AXES(0), NULL), y[1]), m->w);
}

static eddy_tensor *with_scan(model *m, eddy_tensor *x, eddy_tensor *count) {
    eddy_tensor *y[2], *xs = eddy_mul(eddy_expand(x, EDDY_SHAPE(4, SIZE)), m->w);
    (void)count;
    must(eddy_scan(scan_step, m, EDDY_LIST(x), EDDY_LIST(xs), 2,
                   EDDY_OPTIONS(scan, .is_rolled = true, .is_reversed = true), y));
    return eddy_add(eddy_sum(y[1], EDDY_AXES(0), NULL), y[0]);
}

/* Attention over fixed keys and values: it keeps no integers, but one way of gradients alone. */
static eddy_status attend(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    eddy_tensor *keys = eddy_detach(eddy_reshape(m->w, EDDY_SHAPE(4, SIZE / 4)));
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_sdpa(inputs.items[1], keys, keys, EDDY_NONE,
                           EDDY_OPTIONS(sdpa, .dropout = 0.5, .generator = m->generator));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_tensor *with_attention(model *m, eddy_tensor *x, eddy_tensor *count) {
    eddy_tensor *y[2], *begin = eddy_reshape(eddy_mul(m->w, x), EDDY_SHAPE(4, SIZE / 4));
    must(eddy_while(is_left, attend, m, EDDY_LIST(count, begin),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    return eddy_reshape(y[1], EDDY_SHAPE(SIZE));
}

typedef eddy_tensor *forward(model *m, eddy_tensor *x, eddy_tensor *count);
static forward *const models[] = {with_branch, with_loop, with_nest, with_scan, with_attention};
#define MODELS 5

/* ---- the same as the calls ---- */

static void read_values(eddy_tensor *x, float *values) {
    must(eddy_read(eddy_detach(x), values, SIZE * sizeof(*values), NULL));
}

typedef struct result {
    float y[SIZE], grad[SIZE];
    uint64_t counter;
} result;

static uint64_t counter_of(const model *m) {
    uint64_t seed, counter;
    must(eddy_generator_state(m->generator, &seed, &counter));
    return counter;
}

static eddy_tensor *loss_of(eddy_tensor *y) {
    return eddy_sum(
        eddy_mul(y, eddy_arange(EDDY_S(1), EDDY_S(SIZE + 1), EDDY_S(1), EDDY_F32, NULL)),
        EDDY_ALL_AXES, NULL);
}

static void finish(const model *m, eddy_tensor *y, result *r) {
    read_values(y, r->y);
    read_values(eddy_grad_of(m->w), r->grad);
    r->counter = counter_of(m);
}

static void call(forward *compute, model *m, eddy_tensor *x, eddy_tensor *count, result *r) {
    must(eddy_generator_restore(m->generator, 7, 100));
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    eddy_tensor *y = compute(m, x, count);
    must(eddy_backward(loss_of(y)));
    finish(m, y, r);
}

static void expect_same(const result *is, const result *expected, int number, double steps) {
    cr_assert_eq(is->counter, expected->counter, "model %d, %g steps: %d draws, not %d", number,
                 steps, (int)is->counter, (int)expected->counter);
    cr_assert_eq(memcmp(is->y, expected->y, sizeof(is->y)), 0, "model %d, %g steps", number, steps);
    for (int i = 0; i < SIZE; i++)
        cr_assert_eq(is->grad[i], expected->grad[i], "model %d, %g steps: grad[%d] is %g, not %g",
                     number, steps, i, (double)is->grad[i], (double)expected->grad[i]);
}

static void run(eddy_program *program, bool is_node, model *m, eddy_tensor *x, eddy_tensor *count,
                result *r) {
    eddy_tensor *y;
    must(eddy_generator_restore(m->generator, 7, 100));
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    must(eddy_program_run(program, EDDY_LIST(x, count), &y));
    if (is_node) {
        /* Draws in between change nothing of what the run has drawn. */
        uint64_t counter = counter_of(m);
        must(eddy_generator_restore(m->generator, 99, 5));
        must(eddy_backward(loss_of(y)));
        cr_assert_eq(counter_of(m), 5);
        must(eddy_generator_restore(m->generator, 7, counter));
    }
    finish(m, y, r);
}

static eddy_tensor *input(int number) {
    eddy_tensor *numbers = eddy_arange(EDDY_S(0), EDDY_S(SIZE), EDDY_S(1), EDDY_F32, NULL);
    return eddy_sub_s(eddy_remainder_s(eddy_add_s(numbers, EDDY_S(number)), EDDY_S(4)), EDDY_S(1));
}

static void try_model(int number, bool is_node, const char *passes, bool records_only) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {eddy_add_s(input(1), EDDY_S(2)), eddy_generator_create(7)};
    eddy_requires_grad_set(m.w, true);
    eddy_tensor *x = input(2), *count = scalar(2);
    result expected, is;
    call(models[number], &m, x, count, &expected);
    must(eddy_generator_restore(m.generator, 7, 100));
    must(eddy_grads_zero(EDDY_LIST(m.w)));
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = passes, .records_only = records_only)));
    if (!is_node)
        must(eddy_grads_zero(EDDY_LIST(m.w)));
    eddy_tensor *y = models[number](&m, x, count);
    if (!is_node)
        must(eddy_backward(loss_of(y)));
    eddy_bindings bindings = {(eddy_binding[]){{"x", x, EDDY_ROLE_INPUT},
                                               {"count", count, EDDY_ROLE_INPUT},
                                               {"y", y, EDDY_ROLE_OUTPUT}},
                              3};
    if (!is_node && !records_only) {
        finish(&m, y, &is);
        expect_same(&is, &expected, number, 2);
    }
    eddy_program *program =
        is_node ? eddy_record_end_with_grad(&bindings) : eddy_record_end(&bindings);
    must(EDDY_OK);
    eddy_program *copy = is_node ? eddy_program_retain(program) : reread(program, passes);
    for (int i = 0; i < 6; i++) {
        eddy_tensor *other = input(i), *steps = scalar(i % STEPS);
        call(models[number], &m, other, steps, &expected);
        run(program, is_node, &m, other, steps, &is);
        expect_same(&is, &expected, number, i % STEPS);
    }
    eddy_program_release(&program);
    eddy_program_release(&copy);
    eddy_generator_release(&m.generator);
    eddy_scope_end(scope);
}

Test(control_draws_gradient, a_backward_pass_in_the_program_is_that_of_the_calls, .timeout = 300) {
    for (int number = 0; number < MODELS; number++)
        for (int i = 0; i < 4; i++)
            try_model(number, false, i & 1 ? "all" : "none", i & 2);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_draws_gradient, a_backward_pass_through_a_run_is_that_of_the_calls, .timeout = 300) {
    for (int number = 0; number < MODELS; number++)
        for (int i = 0; i < 4; i++)
            try_model(number, true, i & 1 ? "all" : "none", i & 2);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- recorded functions ---- */

static eddy_status train(void *context, eddy_recorded_call *call) {
    model *m = context;
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    eddy_tensor *y = with_nest(m, call->inputs.items[0], call->inputs.items[1]);
    must(eddy_backward(loss_of(y)));
    call->outputs[0] = eddy_detach(y);
    return EDDY_OK;
}

Test(control_draws_gradient, a_recorded_function_draws_what_it_would) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {eddy_add_s(input(1), EDDY_S(2)), eddy_generator_create(7)};
    eddy_requires_grad_set(m.w, true);
    result expected[8], is;
    eddy_recorded *recorded = eddy_recorded_create(train, &m, 1, NULL);
    for (int is_replayed = 0; is_replayed < 2; is_replayed++) {
        must(eddy_generator_restore(m.generator, 7, 100));
        for (int i = 0; i < 8; i++) {
            eddy_list inputs = EDDY_LIST(input(i), scalar(i % STEPS));
            eddy_tensor *y;
            eddy_recorded_call call = {.inputs = inputs, .outputs = &y};
            must(is_replayed ? eddy_recorded_run(recorded, inputs, (eddy_scalars){0}, &y)
                             : train(&m, &call));
            finish(&m, y, is_replayed ? &is : &expected[i]);
            if (is_replayed)
                expect_same(&is, &expected[i], 2, i % STEPS);
        }
    }
    char text[400];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_str_eq(text, "(f32[24], f32[]): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
    eddy_generator_release(&m.generator);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
