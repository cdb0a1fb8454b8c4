/* Gradients through loops: in programs they are those of the calls, however many steps there were when it was recorded. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>
#include <unistd.h>

#define SIZE 4
#define STEPS 5

typedef struct model {
    eddy_tensor *w, *v;
    eddy_tensor *x, *count; /* what a run is given */
} model;

static eddy_tensor *count_of(int count) {
    return eddy_full((eddy_shape){0}, EDDY_S(count), EDDY_I64, NULL);
}

static void make_model(model *m, double x, int count) {
    eddy_seed(3);
    m->w = eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    m->v = eddy_sign(eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL)); /* 1 and -1 */
    m->x = eddy_full(EDDY_SHAPE(SIZE), EDDY_S(x), EDDY_F32, NULL);
    m->count = count_of(count);
    eddy_requires_grad_set(m->w, true);
    eddy_requires_grad_set(m->v, true);
    eddy_requires_grad_set(m->x, true);
}

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status counted(eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return outputs[0] && outputs[1] && outputs[2] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* Bodies carry a number of steps that are left, and two tensors. They use a weight once in a step, where sums of gradients have one order; else all that is
 * summed up is exact. */

static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = eddy_tanh(eddy_add(eddy_mul(inputs.items[1], m->w), inputs.items[2]));
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

/* The two change places. */
static eddy_status swap(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[1] = inputs.items[2];
    outputs[2] = eddy_mul(inputs.items[1], m->v);
    return counted(inputs, outputs);
}

/* Views of what is saved, and a tensor written in place before it is. */
static eddy_status views(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *both = eddy_stack(EDDY_LIST(inputs.items[1], inputs.items[2]), 0);
    eddy_tensor *turned = eddy_t(eddy_sin(both)), *own = eddy_mul(eddy_select(turned, 1, 0), m->w);
    must(eddy_mul_s_inplace(own, EDDY_S(0.5)));
    outputs[1] = eddy_mul(eddy_sigmoid(own), eddy_select(turned, 1, 1));
    outputs[2] = eddy_cos(eddy_select(turned, 1, 1));
    return counted(inputs, outputs);
}

/* What is carried, and a tensor of the body's that wants no gradient before. */
static eddy_status in_place(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *own = eddy_zeros(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    must(eddy_add_inplace(inputs.items[1], m->w));
    must(eddy_add_inplace(own, inputs.items[1]));
    outputs[1] = eddy_tanh(own);
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

static eddy_status steep(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return done(outputs, eddy_tanh(eddy_mul(inputs.items[0], m->w)));
}

static eddy_status flat(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_cos(eddy_exp(eddy_mul_s(inputs.items[0], EDDY_S(0.25)))));
}

static eddy_status branches(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *h = eddy_sin(inputs.items[1]), *predicate;
    predicate = eddy_gt_s(eddy_mean(h, EDDY_ALL_AXES, NULL), EDDY_S(0.25));
    must(eddy_cond(predicate, steep, flat, context, EDDY_LIST(h), 1, NULL, &outputs[1]));
    outputs[1] = eddy_add(outputs[1], inputs.items[2]);
    outputs[2] = inputs.items[1];
    return counted(inputs, outputs);
}

/* As many steps as are left. */
static eddy_status nested(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *inner[3];
    must(eddy_while(is_left, swap, context, inputs, EDDY_OPTIONS(while, .most_steps = STEPS),
                    inner));
    outputs[1] = eddy_neg(inner[1]);
    outputs[2] = inner[2];
    return counted(inputs, outputs);
}

static eddy_block *const bodies[] = {cell, swap, views, in_place, branches, nested};
#define BODIES ((int)(sizeof(bodies) / sizeof(bodies[0])))

static eddy_tensor *forward(model *m, eddy_block *body) {
    eddy_tensor *y[3], *h = eddy_mul_s(m->x, EDDY_S(0.5));
    must(eddy_while(is_left, body, m, EDDY_LIST(m->count, h, m->x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    return eddy_mul(y[1], eddy_detach(y[2]));
}

static void expect_same(eddy_tensor *a, eddy_tensor *b, const char *what) {
    float first[SIZE], second[SIZE];
    size_t bytes = eddy_count_of(a) == 1 ? sizeof(float) : sizeof(first);
    must(eddy_read(a, first, bytes, NULL));
    must(eddy_read(b, second, bytes, NULL));
    cr_assert_arr_eq(first, second, bytes, "%s", what);
}

/* A leaf to which no step leads has no gradient after the calls, and one of 0 after a program: either sign. */
static void expect_same_grads(eddy_tensor *program, eddy_tensor *calls, const char *what) {
    if (eddy_has_grad(calls))
        expect_same(eddy_grad_of(program), eddy_grad_of(calls), what);
    else if (eddy_has_grad(program))
        cr_assert_eq(sum_of(eddy_abs(eddy_grad_of(program))), 0, "%s", what);
}

/* The backward pass is a part of the program. */
static void try_step(eddy_block *body, int recorded_count, bool records_only, bool is_read_again) {
    model m, eager;
    make_model(&m, 0.75, recorded_count);
    eddy_requires_grad_set(m.x, false);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
    eddy_tensor *loss = eddy_mean(forward(&m, body), EDDY_ALL_AXES, NULL), *result;
    must(eddy_backward(loss));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"count", m.count, EDDY_ROLE_INPUT},
                          {"loss", eddy_detach(loss), EDDY_ROLE_OUTPUT}));
    if (is_read_again) {
        eddy_program *copy = reread(program, "loop");
        eddy_program_release(&copy);
    }
    for (int count = 0; count <= STEPS; count++) {
        make_model(&eager, 0.125 * count - 0.75, count);
        eddy_requires_grad_set(eager.x, false);
        eddy_tensor *expected = eddy_mean(forward(&eager, body), EDDY_ALL_AXES, NULL);
        if (eddy_requires_grad(expected))
            must(eddy_backward(expected));
        must(eddy_program_run(program, EDDY_LIST(eager.x, eager.count), &result));
        expect_same(result, expected, "loss");
        expect_same_grads(m.w, eager.w, "w");
        expect_same_grads(m.v, eager.v, "v");
    }
    eddy_program_release(&program);
}

Test(loop_gradient, a_step_goes_back_through_as_many_steps_as_it_took) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 4; k++)
            try_step(bodies[i], k % 2 ? 2 : 0, k / 2, k == 1);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The gradients of the recorded call itself, and of a backward pass behind the recording. */
Test(loop_gradient, the_recorded_call_has_its_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 6; k++) {
            model m, eager;
            make_model(&m, 0.75, k / 2);
            make_model(&eager, 0.75, k / 2);
            must(eddy_record_begin(NULL));
            eddy_tensor *y = forward(&m, bodies[i]);
            if (k % 2)
                eddy_record_cancel();
            must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
            if (k % 2 == 0)
                eddy_record_cancel();
            must(eddy_backward(eddy_sum(forward(&eager, bodies[i]), EDDY_ALL_AXES, NULL)));
            expect_same_grads(m.w, eager.w, "w");
            expect_same_grads(m.v, eager.v, "v");
            expect_same_grads(m.x, eager.x, "x");
            if (k % 2)
                cr_assert_eq(eddy_has_grad(m.w), eddy_has_grad(eager.w));
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(loop_gradient, a_run_is_one_node) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < BODIES; i++) {
        model m, eager;
        eddy_tensor *result;
        eddy_error error = {0};
        make_model(&m, 0.75, i % 3);
        must(eddy_record_begin(NULL));
        eddy_program *program = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"count", m.count, EDDY_ROLE_INPUT},
                          {"y", forward(&m, bodies[i]), EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
        for (int count = 0; count <= STEPS; count++) {
            make_model(&eager, 0.5, count);
            eddy_tensor *x = eddy_full(EDDY_SHAPE(SIZE), EDDY_S(0.5), EDDY_F32, NULL);
            eddy_requires_grad_set(x, true);
            must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
            must(eddy_program_run(program, EDDY_LIST(x, eager.count), &result));
            eddy_tensor *expected = forward(&eager, bodies[i]);
            must(eddy_backward(eddy_sum(result, EDDY_ALL_AXES, NULL)));
            must(eddy_backward(eddy_sum(expected, EDDY_ALL_AXES, NULL)));
            expect_same(result, expected, "y");
            expect_same_grads(m.w, eager.w, "w");
            expect_same_grads(m.v, eager.v, "v");
            expect_same_grads(x, eager.x, "x");
        }
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what wants a gradient ---- */

static eddy_status sign_of(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return done(outputs, eddy_sign(eddy_mul(inputs.items[0], m->w)));
}

/* The weights have no gradient, and what was computed from them requires one. */
static eddy_status signs(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *predicate =
        eddy_gt_s(eddy_mean(inputs.items[1], EDDY_ALL_AXES, NULL), EDDY_S(0.25));
    must(eddy_cond(predicate, sign_of, same, context, EDDY_LIST(inputs.items[1]), 1, NULL,
                   &outputs[1]));
    outputs[2] = eddy_add_s(inputs.items[2], EDDY_S(1));
    return counted(inputs, outputs);
}

Test(loop_gradient, what_depends_on_a_weight_requires_a_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    for (int records_only = 0; records_only < 2; records_only++) {
        model m;
        eddy_tensor *y[3];
        make_model(&m, 0.75, 2);
        eddy_requires_grad_set(m.x, false);
        must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
        must(eddy_while(is_left, signs, &m, EDDY_LIST(m.count, m.x, m.x),
                        EDDY_OPTIONS(while, .most_steps = STEPS), y));
        cr_assert_not(eddy_requires_grad(y[0]));
        cr_assert(eddy_requires_grad(y[1]));
        cr_assert_not(eddy_requires_grad(y[2]));
        must(eddy_backward(eddy_sum(y[1], EDDY_ALL_AXES, NULL)));
        eddy_program *program = end(
            EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"y", eddy_detach(y[1]), EDDY_ROLE_OUTPUT}));
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status apart(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[1] = eddy_sin(inputs.items[1]);
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

/* The inner loop carries what depends on a weight, and gives out the other tensor. */
static eddy_status beside(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *inner[3];
    must(eddy_while(is_left, apart, NULL,
                    EDDY_LIST(inputs.items[0], inputs.items[1], eddy_mul(inputs.items[1], m->w)),
                    EDDY_OPTIONS(while, .most_steps = STEPS), inner));
    outputs[1] = inner[1];
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

Test(loop_gradient, what_stands_beside_a_weight_does_not) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        model m;
        eddy_tensor *y[3];
        make_model(&m, 0.75, 2);
        eddy_requires_grad_set(m.x, false);
        if (is_recorded)
            must(eddy_record_begin(NULL));
        must(eddy_while(is_left, beside, &m, EDDY_LIST(m.count, m.x, m.x),
                        EDDY_OPTIONS(while, .most_steps = STEPS), y));
        cr_assert_not(eddy_requires_grad(y[1]));
        eddy_record_cancel();
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- recorded functions ---- */

static eddy_status train(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->x = call->inputs.items[0];
    m->count = call->inputs.items[1];
    must(eddy_grads_zero(EDDY_LIST(m->w, m->v)));
    eddy_tensor *loss = eddy_mean(forward(m, cell), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    must(eddy_sub_into(m->w, eddy_mul_s(eddy_grad_of(m->w), call->scalars[0]), m->w));
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    return EDDY_OK;
}

static eddy_tensor *run_one(eddy_recorded *recorded, model *m, int i) {
    eddy_list inputs = EDDY_LIST(eddy_full(EDDY_SHAPE(SIZE), EDDY_S(0.5 + 0.1 * i), EDDY_F32, NULL),
                                 count_of(1 + i % 4));
    eddy_scalar rate = EDDY_S(0.125);
    eddy_tensor *loss;
    eddy_recorded_call call = {.inputs = inputs, .scalars = &rate, .outputs = &loss};
    must(recorded ? eddy_recorded_run(recorded, inputs, EDDY_SCALARS(rate), &loss)
                  : train(m, &call));
    return loss;
}

Test(loop_gradient, a_recorded_function_is_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    model m, eager;
    eddy_tensor *losses[8];
    make_model(&m, 0, 0);
    make_model(&eager, 0, 0);
    for (int i = 0; i < 8; i++)
        losses[i] = run_one(NULL, &eager, i);
    eddy_recorded *recorded = eddy_recorded_create(train, &m, 1, NULL);
    for (int i = 0; i < 8; i++)
        expect_same(run_one(recorded, &m, i), losses[i], "loss");
    expect_same(m.w, eager.w, "w");
    char text[400];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_str_eq(text, "(f32[4], i64[]): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what a program is ---- */

static int64_t instructions_of(eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info.instruction_count;
}

/* Nobody goes back: what the gradient would need is not there. */
Test(loop_gradient, lists_that_nobody_reads_are_left_out) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t counts[2];
    for (int wants = 0; wants < 2; wants++) {
        model m;
        make_model(&m, 0.75, 2);
        eddy_requires_grad_set(m.w, wants);
        eddy_requires_grad_set(m.x, false);
        must(eddy_record_begin(NULL));
        eddy_tensor *y = eddy_detach(forward(&m, cell));
        eddy_program *program =
            end(EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"count", m.count, EDDY_ROLE_INPUT},
                              {"y", y, EDDY_ROLE_OUTPUT}));
        counts[wants] = instructions_of(program);
        eddy_program_release(&program);
    }
    /* The values of the loop are its own where a gradient may need them: three copies more. */
    cr_assert_leq(counts[1], counts[0] + 3);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(loop_gradient, a_file_has_it) {
    eddy_scope *scope = eddy_scope_begin();
    model m, eager;
    eddy_tensor *result[2];
    char path[64];
    snprintf(path, sizeof(path), "/tmp/eddy-loop-%ld.program", (long)getpid());
    make_model(&m, 0.75, 1);
    must(eddy_record_begin(NULL));
    must(eddy_backward(eddy_sum(forward(&m, branches), EDDY_ALL_AXES, NULL)));
    eddy_program *program = end(EDDY_BINDINGS(
        {"x", m.x, EDDY_ROLE_INPUT}, {"count", m.count, EDDY_ROLE_INPUT},
        {"w'", eddy_grad_of(m.w), EDDY_ROLE_OUTPUT}, {"x'", eddy_grad_of(m.x), EDDY_ROLE_OUTPUT}));
    must(eddy_program_save(program, path));
    eddy_program_release(&program);
    program = eddy_program_load(path);
    unlink(path);
    cr_assert_not_null(program);
    for (int count = 1; count <= STEPS; count++) {
        make_model(&eager, 0.25 * count, count);
        must(eddy_backward(eddy_sum(forward(&eager, branches), EDDY_ALL_AXES, NULL)));
        must(eddy_program_run(program, EDDY_LIST(eager.x, eager.count), result));
        if (eddy_has_grad(eager.w))
            expect_same(result[0], eddy_grad_of(eager.w), "w");
        expect_same(result[1], eddy_grad_of(eager.x), "x");
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What a step could not compute poisons the gradients, and nothing else. */
Test(loop_gradient, a_poisoned_count_poisons_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y, *x = eddy_ones(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    make_model(&m, 0.75, 1);
    must(eddy_record_begin(NULL));
    must(eddy_grads_zero(EDDY_LIST(m.w)));
    eddy_tensor *loss = eddy_sum(forward(&m, cell), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"count", m.count, EDDY_ROLE_INPUT},
                          {"y", eddy_detach(loss), EDDY_ROLE_OUTPUT}));
    int64_t number = 7;
    eddy_tensor *one = eddy_ones(EDDY_SHAPE(1), EDDY_I64, NULL),
                *wrong = eddy_from_data(&number, EDDY_SHAPE(1), EDDY_I64, NULL);
    eddy_tensor *bad = eddy_select(eddy_index_select(one, wrong, 0), 0, 0);
    must(eddy_program_run(program, EDDY_LIST(x, bad), &y));
    cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    cr_assert_eq(eddy_wait(eddy_grad_of(m.w), EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    must(eddy_program_run(program, EDDY_LIST(x, count_of(2)), &y));
    must(eddy_wait(y, EDDY_FOREVER));
    must(eddy_wait(eddy_grad_of(m.w), EDDY_FOREVER));
    eddy_program_release(&program);
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what is refused ---- */

static eddy_status overwrites(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = eddy_exp(inputs.items[1]);
    outputs[1] = eddy_mul(h, m->w);
    outputs[2] = inputs.items[2];
    must(eddy_mul_s_inplace(h, EDDY_S(2)));
    return counted(inputs, outputs);
}

static eddy_status goes_back(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *h = eddy_mul(inputs.items[1], m->w), *gradient;
    eddy_status status =
        eddy_backward_to(EDDY_LIST(eddy_sum(h, EDDY_ALL_AXES, NULL)), EDDY_LIST(inputs.items[1]),
                         (eddy_list){0}, NULL, &gradient);
    if (status != EDDY_OK)
        return status;
    outputs[1] = eddy_mul(gradient, m->w);
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

static eddy_status has_late_shape(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_tensor *where = eddy_nonzero(inputs.items[1]);
    outputs[1] =
        eddy_mul(eddy_mul(inputs.items[1], m->w),
                 eddy_cast(eddy_sum(eddy_gt_s(where, EDDY_S(-1)), EDDY_ALL_AXES, NULL), EDDY_F32));
    outputs[2] = inputs.items[2];
    return counted(inputs, outputs);
}

/* Two loops, of which the inner one cannot be recorded. */
static eddy_status nests(model *m, eddy_block *inner, int64_t most_steps, eddy_list inputs,
                         eddy_tensor **outputs) {
    eddy_tensor *count = eddy_full((eddy_shape){0}, EDDY_S(2), EDDY_I64, NULL), *made[3];
    eddy_status status =
        eddy_while(is_left, inner, m, EDDY_LIST(count, inputs.items[1], inputs.items[2]),
                   EDDY_OPTIONS(while, .most_steps = most_steps), made);
    if (status != EDDY_OK)
        return status;
    outputs[1] = made[1];
    outputs[2] = made[2];
    return counted(inputs, outputs);
}

static eddy_status nests_unbounded(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return nests(context, cell, 0, inputs, outputs);
}

static eddy_status nests_goes_back(void *context, eddy_list inputs, eddy_tensor **outputs) {
    return nests(context, goes_back, 2, inputs, outputs);
}

/* The recording is spoiled, and the calls have their gradients all the same. */
static void try_refused(eddy_block *body, int64_t most_steps, bool is_of_gradients,
                        const char *why) {
    model m, eager;
    eddy_tensor *y[3], *expected[3];
    char reason[400];
    make_model(&m, 0.5, 2);
    make_model(&eager, 0.5, 2);
    eddy_requires_grad_set(m.v, false);
    eddy_requires_grad_set(eager.v, false);
    eddy_while_options options = {.size = sizeof(options), .most_steps = most_steps};
    eddy_seed(1);
    must(eddy_while(is_left, body, &eager, EDDY_LIST(eager.count, eager.x, eager.x), &options,
                    expected));
    must(eddy_backward(eddy_sum(expected[1], EDDY_ALL_AXES, NULL)));
    must(eddy_record_begin(NULL));
    eddy_seed(1);
    must(eddy_while(is_left, body, &m, EDDY_LIST(m.count, m.x, m.x), &options, y));
    must(eddy_backward(eddy_sum(y[1], EDDY_ALL_AXES, NULL)));
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_not_null(strstr(reason, why), "%s", reason);
    cr_assert_eq(strstr(reason, "a gradient goes") != NULL, is_of_gradients, "%s", reason);
    cr_assert_null(strstr(reason, "loop: a gradient"), "%s", reason);
    eddy_record_cancel();
    expect_same_grads(m.w, eager.w, "w");
}

Test(loop_gradient, what_cannot_be_recorded_goes_on) {
    eddy_scope *scope = eddy_scope_begin();
    try_refused(cell, 0, true,
                "while cannot be part of a program: a gradient goes back through a loop without "
                "most_steps");
    try_refused(
        has_late_shape, STEPS, false,
        "while cannot be part of a program: nonzero: the shape of its result depends on its data");
    try_refused(goes_back, STEPS, true,
                "a backward pass within a loop goes on to what was before it");
    try_refused(nests_unbounded, STEPS, true,
                "while cannot be part of a program: a gradient goes back through a loop without "
                "most_steps");
    try_refused(nests_goes_back, STEPS, true,
                "a backward pass within a loop goes on to what was before it");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The calls fail, too: in the backward pass. */
Test(loop_gradient, what_was_overwritten_is_noticed) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y[3];
    eddy_error error;
    char reason[400];
    make_model(&m, 0.5, 2);
    eddy_requires_grad_set(m.v, false);
    must(eddy_record_begin(NULL));
    must(eddy_while(is_left, overwrites, &m, EDDY_LIST(m.count, m.x, m.x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_not_null(strstr(reason, "was written to in place since"), "%s", reason);
    eddy_record_cancel();
    eddy_scope_end(scope);
    eddy_error_take(&error);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(loop_gradient, gradients_of_gradients_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *gradient;
    make_model(&m, 0.5, 2);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_sum(forward(&m, cell), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(m.w), (eddy_list){0},
                                  EDDY_OPTIONS(backward, .creates_graph = true), &gradient),
                 EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "while: the gradient of a recorded branch or loop has no gradient");
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(loop_gradient, nothing_goes_back_to_what_did_not_run) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_error error;
    make_model(&m, 1, 2);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *y = forward(&m, cell);
    eddy_record_cancel();
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    float values[SIZE];
    for (int i = 0; i < 2; i++) {
        eddy_tensor *leaf = i ? m.x : m.w;
        cr_assert_eq(eddy_read(eddy_grad_of(leaf), values, sizeof(values), NULL), EDDY_UNSUPPORTED);
        eddy_error_take(&error);
        cr_assert_str_eq(error.message,
                         "it is the result of a call that was recorded and did not run");
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what a body does beside ---- */

static eddy_tensor *twofold(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_retain(eddy_mul_s(gradient, EDDY_S(2)));
}

static eddy_status hooks(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_status status = eddy_grad_hook_add(inputs.items[1], twofold, NULL, NULL);
    outputs[1] = eddy_mul(inputs.items[1], m->w);
    outputs[2] = inputs.items[2];
    return status == EDDY_OK ? counted(inputs, outputs) : status;
}

static eddy_status keeps(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    eddy_status status = eddy_grad_keep(inputs.items[1]);
    outputs[1] = eddy_mul(inputs.items[1], m->w);
    outputs[2] = inputs.items[2];
    return status == EDDY_OK ? counted(inputs, outputs) : status;
}

Test(loop_gradient, gradients_that_a_body_asks_for_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_block *const watching[] = {hooks, keeps};
    for (int i = 0; i < 2; i++) {
        model m;
        eddy_tensor *y[3];
        char reason[400];
        make_model(&m, 0.5, 0);
        must(eddy_record_begin(NULL));
        must(eddy_while(is_left, watching[i], &m, EDDY_LIST(m.count, m.x, m.x),
                        EDDY_OPTIONS(while, .most_steps = STEPS), y));
        cr_assert_not(eddy_can_record(reason, sizeof(reason)));
        cr_assert_not_null(strstr(reason, "a step adds a hook to what it was given"), "%s", reason);
        eddy_record_cancel();
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_tensor *passes;

static eddy_status square_forward(eddy_forward_call *call) {
    call->outputs[0] = eddy_square(call->inputs[0]);
    return eddy_forward_save(call, EDDY_LIST(call->inputs[0]));
}

static eddy_status square_backward(eddy_backward_call *call) {
    eddy_status status = eddy_add_s_inplace(passes, EDDY_S(1));
    call->results[0] = eddy_mul_s(eddy_mul(call->grads[0], call->saved[0]), EDDY_S(2));
    return status;
}

static const eddy_function own_square = {.size = sizeof(eddy_function),
                                         .name = "own_square",
                                         .output_count = 1,
                                         .forward = square_forward,
                                         .backward = square_backward};

static eddy_status squares(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[2] = inputs.items[2];
    eddy_status status = eddy_function_call(
        &own_square, NULL, EDDY_LIST(eddy_mul(inputs.items[1], m->w)), &outputs[1]);
    return status == EDDY_OK ? counted(inputs, outputs) : status;
}

static eddy_status squares_one(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    return eddy_function_call(&own_square, NULL, EDDY_LIST(eddy_mul(inputs.items[0], m->w)),
                              outputs);
}

/* A gradient of the program's own writes to a tensor: once for each step that is gone back through, and never before. */
Test(loop_gradient, nobody_goes_back_before_the_backward_pass) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y[3], *z;
    make_model(&m, 0.5, 2);
    passes = eddy_zeros((eddy_shape){0}, EDDY_F32, NULL);
    must(eddy_record_begin(NULL));
    must(eddy_while(is_left, squares, &m, EDDY_LIST(m.count, m.x, m.x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    must(eddy_cond(truth(true), squares_one, same, &m, EDDY_LIST(y[1]), 1, NULL, &z));
    cr_assert_eq(sum_of(passes), 0);
    eddy_record_cancel();
    must(eddy_backward(eddy_sum(z, EDDY_ALL_AXES, NULL)));
    cr_assert_eq(sum_of(passes), 3);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status times_context(eddy_forward_call *call) {
    call->outputs[0] = eddy_mul(call->inputs[0], call->context);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status times_context_back(eddy_backward_call *call) {
    call->results[0] = eddy_mul(call->grads[0], call->context);
    return call->results[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static void drop_context(void *context) {
    eddy_tensor *tensor = context;
    eddy_release(&tensor);
}

static const eddy_function by_context = {.size = sizeof(eddy_function),
                                         .name = "by_context",
                                         .output_count = 1,
                                         .forward = times_context,
                                         .backward = times_context_back,
                                         .destroy = drop_context};

static eddy_status saves_nothing(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[2] = inputs.items[2];
    eddy_status status =
        eddy_function_call(&by_context, eddy_retain(inputs.items[1]),
                           EDDY_LIST(eddy_mul(inputs.items[1], m->w)), &outputs[1]);
    return status == EDDY_OK ? counted(inputs, outputs) : status;
}

/* A gradient of the program's own that reads what it has not saved: in a program that would be what the last step has left. */
Test(loop_gradient, what_is_carried_and_not_saved_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    model m, eager;
    eddy_tensor *y[3], *expected[3];
    char reason[400];
    make_model(&m, 0.5, 2);
    make_model(&eager, 0.5, 2);
    must(eddy_while(is_left, saves_nothing, &eager, EDDY_LIST(eager.count, eager.x, eager.x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), expected));
    must(eddy_backward(eddy_sum(expected[1], EDDY_ALL_AXES, NULL)));
    must(eddy_record_begin(NULL));
    must(eddy_while(is_left, saves_nothing, &m, EDDY_LIST(m.count, m.x, m.x),
                    EDDY_OPTIONS(while, .most_steps = STEPS), y));
    cr_assert(eddy_can_record(reason, sizeof(reason)), "%s", reason);
    must(eddy_backward(eddy_sum(y[1], EDDY_ALL_AXES, NULL)));
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_not_null(
        strstr(reason, "mul cannot be part of a program: it uses what a loop carried"), "%s",
        reason);
    eddy_record_cancel();
    expect_same_grads(m.w, eager.w, "w");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* What was saved, and written to in place, and recorded alone: nothing is left of it. */
Test(loop_gradient, what_is_overwritten_and_did_not_run_is_given_back) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    make_model(&m, 0.5, 2);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *h = eddy_clone(eddy_detach(m.x)), *product = eddy_mul(h, m.w);
    must(eddy_add_inplace(h, eddy_sin(product)));
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
