/* Gradients through branches: in programs they are those of the calls, whatever way was taken when it was recorded. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/reread.h>

#define SIZE 4

typedef struct model {
    eddy_tensor *w, *v, *x;
} model;

static void make_model(model *m, double x) {
    eddy_seed(3);
    m->w = eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    m->v = eddy_randn(EDDY_SHAPE(SIZE), EDDY_F32, NULL);
    m->x = eddy_full(EDDY_SHAPE(SIZE), EDDY_S(x), EDDY_F32, NULL);
    eddy_requires_grad_set(m->w, true);
    eddy_requires_grad_set(m->v, true);
}

static eddy_status steep(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[0] = eddy_tanh(eddy_mul(eddy_mul(inputs.items[0], m->w), m->w));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status flat(void *context, eddy_list inputs, eddy_tensor **outputs) {
    model *m = context;
    outputs[0] = eddy_exp(eddy_mul_s(eddy_add(inputs.items[0], m->v), EDDY_S(0.25)));
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status unchanged(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = inputs.items[0];
    return EDDY_OK;
}

static eddy_status nested(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *h = eddy_sin(inputs.items[0]);
    eddy_tensor *predicate = eddy_gt_s(eddy_mean(h, EDDY_ALL_AXES, NULL), EDDY_S(0.5));
    return eddy_cond(predicate, steep, unchanged, context, EDDY_LIST(h), 1, NULL, outputs);
}

static eddy_tensor *forward(model *m, eddy_tensor *x, eddy_block *then, eddy_block *otherwise) {
    eddy_tensor *h = eddy_mul(x, m->w), *y;
    eddy_tensor *predicate = eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0));
    must(eddy_cond(predicate, then, otherwise, m, EDDY_LIST(h), 1, NULL, &y));
    return eddy_mul(y, h);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b, const char *what) {
    float first[SIZE], second[SIZE];
    size_t bytes = sizeof(first);
    if (eddy_count_of(a) == 1)
        bytes = sizeof(float);
    must(eddy_read(a, first, bytes, NULL));
    must(eddy_read(b, second, bytes, NULL));
    cr_assert_arr_eq(first, second, bytes, "%s", what);
}

/* Zeros where there is none: a program leaves zeros for what the way that was taken does not lead to. */
static eddy_tensor *grad_of(eddy_tensor *leaf) {
    return eddy_has_grad(leaf) ? eddy_grad_of(leaf) : eddy_zeros_like(leaf, NULL);
}

static eddy_block *const ways[][2] = {{steep, flat},    {flat, steep},
                                      {nested, flat},   {unchanged, nested},
                                      {nested, nested}, {unchanged, unchanged}};
#define PAIRS ((int)(sizeof(ways) / sizeof(ways[0])))

/* The backward pass is a part of the program. */
static void try_step(eddy_block *const *pair, double recorded_x, bool records_only) {
    model m, eager;
    eddy_tensor *loss, *result;
    make_model(&m, recorded_x);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
    loss = eddy_mean(forward(&m, m.x, pair[0], pair[1]), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"loss", eddy_detach(loss), EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    for (int round = 0; round < 4; round++) {
        double x = round % 2 ? 0.75 : -0.5;
        make_model(&eager, x);
        eddy_tensor *expected =
            eddy_mean(forward(&eager, eager.x, pair[0], pair[1]), EDDY_ALL_AXES, NULL);
        must(eddy_backward(expected));
        must(eddy_program_run(program, EDDY_LIST(eager.x), &result));
        expect_same(result, expected, "loss");
        expect_same(grad_of(m.w), grad_of(eager.w), "w");
        expect_same(grad_of(m.v), grad_of(eager.v), "v");
    }
    eddy_program_release(&program);
}

Test(control_gradient, a_step_goes_back_through_the_way_it_took) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < 4; k++)
            try_step(ways[i], k % 2 ? 1 : -1, k / 2);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* The gradients of the recorded call itself, and of a backward pass behind the recording. */
Test(control_gradient, the_recorded_call_has_its_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < PAIRS; i++)
        for (int is_behind = 0; is_behind < 2; is_behind++) {
            model m, eager;
            make_model(&m, -1);
            make_model(&eager, -1);
            must(eddy_record_begin(NULL));
            eddy_tensor *y = forward(&m, m.x, ways[i][0], ways[i][1]);
            if (is_behind)
                eddy_record_cancel();
            must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
            if (!is_behind)
                eddy_record_cancel();
            must(eddy_backward(
                eddy_sum(forward(&eager, eager.x, ways[i][0], ways[i][1]), EDDY_ALL_AXES, NULL)));
            expect_same(grad_of(m.w), grad_of(eager.w), "w");
            expect_same(grad_of(m.v), grad_of(eager.v), "v");
            if (is_behind)
                cr_assert_eq(eddy_has_grad(m.v), eddy_has_grad(eager.v));
        }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_gradient, a_run_is_one_node) {
    eddy_scope *scope = eddy_scope_begin();
    for (int i = 0; i < PAIRS; i++) {
        model m, eager;
        eddy_error error = {0};
        make_model(&m, 1);
        eddy_requires_grad_set(m.x, true);
        must(eddy_record_begin(NULL));
        eddy_tensor *y = forward(&m, m.x, ways[i][0], ways[i][1]), *result;
        eddy_program *program = eddy_record_end_with_grad(
            EDDY_BINDINGS({"x", m.x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
        for (int round = 0; round < 4; round++) {
            double x = round % 2 ? 0.75 : -0.5;
            make_model(&eager, x);
            eddy_tensor *input = eddy_full(EDDY_SHAPE(SIZE), EDDY_S(x), EDDY_F32, NULL);
            eddy_requires_grad_set(eager.x, true);
            eddy_requires_grad_set(input, true);
            must(eddy_grads_zero(EDDY_LIST(m.w, m.v)));
            must(eddy_program_run(program, EDDY_LIST(input), &result));
            eddy_tensor *expected = forward(&eager, eager.x, ways[i][0], ways[i][1]);
            must(eddy_backward(eddy_sum(result, EDDY_ALL_AXES, NULL)));
            must(eddy_backward(eddy_sum(expected, EDDY_ALL_AXES, NULL)));
            expect_same(result, expected, "y");
            expect_same(grad_of(m.w), grad_of(eager.w), "w");
            expect_same(grad_of(m.v), grad_of(eager.v), "v");
            expect_same(grad_of(input), grad_of(eager.x), "x");
        }
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- recorded functions ---- */

static eddy_status train(void *context, eddy_recorded_call *call) {
    model *m = context;
    must(eddy_grads_zero(EDDY_LIST(m->w, m->v)));
    eddy_tensor *loss =
        eddy_mean(forward(m, call->inputs.items[0], nested, flat), EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    eddy_no_grad_begin();
    must(eddy_sub_into(m->w, eddy_mul_s(grad_of(m->w), call->scalars[0]), m->w));
    must(eddy_sub_into(m->v, eddy_mul_s(grad_of(m->v), call->scalars[0]), m->v));
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    return EDDY_OK;
}

static eddy_tensor *input_of(int i) {
    return eddy_full(EDDY_SHAPE(SIZE), EDDY_S(i % 3 ? 0.5 + 0.1 * i : -0.25 * i), EDDY_F32, NULL);
}

Test(control_gradient, a_recorded_function_is_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    model m, eager;
    eddy_tensor *losses[8], *loss;
    make_model(&m, 0);
    make_model(&eager, 0);
    for (int i = 0; i < 8; i++) {
        eddy_recorded_call call = {.inputs = EDDY_LIST(input_of(i)),
                                   .scalars = (eddy_scalar[]){EDDY_S(0.125)},
                                   .outputs = &losses[i]};
        must(train(&eager, &call));
    }
    eddy_recorded *recorded = eddy_recorded_create(train, &m, 1, NULL);
    for (int i = 0; i < 8; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(input_of(i)), EDDY_SCALARS(EDDY_S(0.125)),
                               &loss));
        expect_same(loss, losses[i], "loss");
    }
    expect_same(m.w, eager.w, "w");
    expect_same(m.v, eager.v, "v");
    char text[400];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_str_eq(text, "(f32[4]): ran 2 times, replayed 6 times\n");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- a predicate that is overwritten before gradients go back ---- */

typedef struct chooser {
    model m;
    eddy_tensor *predicate;
} chooser;

static eddy_status chooses(void *context, eddy_recorded_call *call) {
    chooser *c = context;
    eddy_tensor *y;
    must(eddy_cond(c->predicate, steep, flat, &c->m, call->inputs, 1, NULL, &y));
    call->outputs[0] = eddy_sum(y, EDDY_ALL_AXES, NULL);
    return EDDY_OK;
}

/* The predicate is the function's own. */
static eddy_status chooses_and_forgets(void *context, eddy_recorded_call *call) {
    chooser *c = context;
    eddy_tensor *x = call->inputs.items[0], *y;
    eddy_tensor *predicate = eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0));
    must(eddy_cond(predicate, steep, flat, &c->m, EDDY_LIST(x), 1, NULL, &y));
    must(eddy_copy_into(eddy_logical_not(predicate), predicate));
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    call->outputs[0] = eddy_detach(y);
    return EDDY_OK;
}

/* Calls the function, by its recording or not, and takes one pass back behind the call, if there is none in it. */
static void choose_once(chooser *c, eddy_recorded *recorded, eddy_recorded_body *body, int i) {
    eddy_tensor *x = input_of(i), *y;
    eddy_recorded_call call = {.inputs = EDDY_LIST(x), .outputs = &y};
    must(eddy_grads_zero(EDDY_LIST(c->m.w, c->m.v)));
    must(eddy_copy_into(truth(i % 2), c->predicate));
    if (recorded)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    else
        must(body(c, &call));
    must(eddy_copy_into(truth(i % 2 == 0), c->predicate));
    if (body == chooses)
        must(eddy_backward(y));
}

static void expect_chosen(eddy_recorded_body *body, const char *explained) {
    eddy_scope *scope = eddy_scope_begin();
    chooser c = {.predicate = truth(true)}, eager = {.predicate = truth(true)};
    make_model(&c.m, 1);
    make_model(&eager.m, 1);
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL);
    for (int i = 0; i < 8; i++) {
        choose_once(&c, recorded, body, i);
        choose_once(&eager, NULL, body, i);
        expect_same(grad_of(c.m.w), grad_of(eager.m.w), "w");
        expect_same(grad_of(c.m.v), grad_of(eager.m.v), "v");
    }
    char text[400];
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, explained), "%s", text);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_gradient, gradients_go_back_on_the_way_that_was_taken) {
    expect_chosen(chooses, "replayed 6 times");
}

Test(control_gradient, a_predicate_that_the_function_overwrites_leaves_it_running) {
    expect_chosen(chooses_and_forgets,
                  "ran 8 times, replayed 0 times; not replayed: cond cannot be part of a program: "
                  "its predicate was overwritten, and its gradient needs that");
}

/* ---- what is refused ---- */

Test(control_gradient, a_predicate_that_was_overwritten_spoils_a_recording) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_tensor *y;
    char why[300];
    make_model(&m, 1);
    must(eddy_record_begin(NULL));
    eddy_tensor *predicate = eddy_logical_not(truth(false));
    must(eddy_cond(predicate, steep, flat, &m, EDDY_LIST(m.x), 1, NULL, &y));
    must(eddy_copy_into(truth(false), predicate));
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    cr_assert_not(eddy_can_record(why, sizeof(why)));
    cr_assert_str_eq(why, "cond cannot be part of a program: its predicate was overwritten, and "
                          "its gradient needs that");
    eddy_record_cancel();
    cr_assert(eddy_has_grad(m.w) && !eddy_has_grad(m.v));
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_gradient, nothing_goes_back_to_what_did_not_run) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    eddy_error error;
    make_model(&m, 1);
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *y = forward(&m, m.x, steep, flat);
    eddy_record_cancel();
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    float values[SIZE];
    cr_assert_eq(eddy_read(eddy_grad_of(m.w), values, sizeof(values), NULL), EDDY_UNSUPPORTED);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "it is the result of a call that was recorded and did not run");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
