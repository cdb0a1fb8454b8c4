/* Recorded functions and programs with more outputs that carry gradients than there are backward programs for: the bits of calls, whichever of the outputs
 * gradients come back to. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define COUNT 5
#define OUTPUTS_MOST 64
#define ROUNDS 6

/* Elements that differ. */
static eddy_tensor *numbers(double first) {
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(first + 0.37 * i);
    return eddy_from_data(values, EDDY_SHAPE(COUNT), EDDY_F32, NULL);
}

/* A function of one input with a leaf of its own. */
typedef struct model {
    eddy_tensor *w;
    int output_count, calls;
} model;

/* Two worlds: w is that of a recorded function in the first, and the second has calls. */
typedef struct pair {
    eddy_scope *scope;
    model models[2];
    eddy_tensor *x[2], *outputs[2][OUTPUTS_MOST];
    eddy_recorded_body *body;
    eddy_recorded *recorded;
} pair;

static void begin(pair *p, eddy_recorded_body *body, int output_count) {
    *p = (pair){.scope = eddy_scope_begin(), .body = body};
    for (int i = 0; i < 2; i++)
        p->models[i] = (model){.w = leaf(numbers(0.5)), .output_count = output_count};
    p->recorded = eddy_recorded_create(body, &p->models[0], output_count, NULL);
}

/* One call in each world, with the same numbers and draws. */
static void call_both(pair *p, double first, double number) {
    eddy_scalar scalar = EDDY_S(number);
    for (int i = 0; i < 2; i++) {
        p->x[i] = leaf(numbers(first));
        must(eddy_seed(7 + (uint64_t)(100 * first)));
        eddy_recorded_call call = {.size = sizeof(call),
                                   .inputs = EDDY_LIST(p->x[i]),
                                   .scalars = &scalar,
                                   .scalar_count = 1,
                                   .outputs = p->outputs[i],
                                   .output_count = p->models[i].output_count};
        must(eddy_grads_zero(EDDY_LIST(p->models[i].w)));
        if (i == 0)
            must(eddy_recorded_run(p->recorded, EDDY_LIST(p->x[i]), EDDY_SCALARS(scalar),
                                   p->outputs[i]));
        else
            must(p->body(&p->models[i], &call));
    }
    for (int k = 0; k < p->models[0].output_count; k++)
        must_have_same_bits(p->outputs[0][k], p->outputs[1][k], "an output");
}

static void expect_same_grad(eddy_tensor *a, eddy_tensor *b, const char *what) {
    cr_assert_eq(eddy_has_grad(a), eddy_has_grad(b), "%s", what);
    if (eddy_has_grad(a))
        must_have_same_bits(eddy_grad_of(a), eddy_grad_of(b), what);
}

static void expect_same_grads(const pair *p) {
    expect_same_grad(p->models[0].w, p->models[1].w, "the gradient of w");
    expect_same_grad(p->x[0], p->x[1], "the gradient of x");
}

static void end(pair *p) {
    eddy_recorded_release(&p->recorded);
    expect_nothing_left(p->scope);
}

/* ---- which outputs ---- */

/* Each output is computed from x, w, and from the one before; a number scales them, and some are drawn. */
static eddy_status chain(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0], *before = x;
    for (int k = 0; k < m->output_count; k++) {
        eddy_tensor *y = eddy_add(eddy_mul(x, m->w), eddy_mul_s(before, call->scalars[0]));
        y = eddy_tanh(eddy_add_s(y, EDDY_S(0.125 * k)));
        before = k % 4 == 3 ? eddy_dropout(y, EDDY_S(0.25), NULL) : y;
        call->outputs[k] = before;
    }
    return EDDY_OK;
}

/* Whether the loss of that round is of the output: all of them, one, every other one, ... */
static bool is_used(int round, int k, int count) {
    switch (round) {
    case 0:
    case 3:
        return true;
    case 1:
    case 4:
        return k == count - 2;
    default:
        return k % 2 == 0;
    }
}

static void go_back(const pair *p, int round) {
    for (int i = 0; i < 2; i++) {
        eddy_tensor *loss = NULL;
        for (int k = 0; k < p->models[i].output_count; k++) {
            if (!is_used(round, k, p->models[i].output_count))
                continue;
            eddy_tensor *part = all(eddy_square(p->outputs[i][k]));
            loss = loss ? eddy_add(loss, part) : part;
        }
        must(eddy_backward(loss));
    }
}

static void check_count(int output_count) {
    pair p;
    begin(&p, chain, output_count);
    for (int round = 0; round < ROUNDS; round++) {
        call_both(&p, 0.1 * round - 0.3, 0.5 / (round + 1));
        go_back(&p, round);
        expect_same_grads(&p);
    }
    expect_explained(p.recorded, "ran 2 times, replayed 4 times");
    cr_assert_eq(p.models[0].calls, 2, "%d outputs: %d calls", output_count, p.models[0].calls);
    end(&p);
}

Test(gradient_many, any_outputs_have_the_bits_of_calls) {
    const int counts[] = {4, 5, 17, 33, 63, 64};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        check_count(counts[i]);
}

/* Zeros for the outputs to which no gradient comes would be NaNs here, and in a program that goes on from them. */
static eddy_status has_a_pole(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] = eddy_sqrt(x);
    for (int k = 1; k < m->output_count; k++)
        call->outputs[k] = eddy_mul_s(eddy_mul(x, m->w), EDDY_S(k));
    return EDDY_OK;
}

Test(gradient_many, an_output_that_nobody_goes_back_from_adds_nothing) {
    pair p;
    begin(&p, has_a_pole, 4);
    for (int round = 0; round < 4; round++) {
        call_both(&p, 0, 1);
        for (int i = 0; i < 2; i++)
            must(eddy_backward(all(eddy_add(p.outputs[i][1], p.outputs[i][3]))));
        expect_same_grads(&p);
        cr_assert_lt(sum_of(eddy_grad_of(p.x[0])), 100, "neither infinite nor NaN");
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

/* ---- one pass after another ---- */

/* What only the second pass needs is there for it; what both need is not, as after calls. */
Test(gradient_many, passes_from_one_output_after_another) {
    pair p;
    begin(&p, has_a_pole, 4);
    for (int round = 0; round < 4; round++) {
        call_both(&p, 0.25, 1);
        for (int k = 1; k < 4; k++) {
            for (int i = 0; i < 2; i++)
                must(eddy_backward(all(p.outputs[i][k])));
            expect_same_grads(&p);
        }
        for (int i = 0; i < 2; i++) {
            eddy_error error = {0};
            cr_assert_eq(eddy_backward(all(p.outputs[i][1])), EDDY_INVALID_ARGUMENT);
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "was given up"), "%s", error.message);
        }
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

Test(gradient_many, a_graph_that_is_kept_and_one_that_is_created) {
    pair p;
    begin(&p, chain, 6);
    for (int round = 0; round < 4; round++) {
        call_both(&p, 0.2, 0.5);
        for (int i = 0; i < 2; i++) {
            eddy_tensor **y = p.outputs[i], *gradient;
            must(eddy_backward_from(EDDY_LIST(all(y[2])), (eddy_list){0},
                                    EDDY_OPTIONS(backward, .keeps_graph = true)));
            must(eddy_backward_to(EDDY_LIST(all(eddy_square(y[4]))), EDDY_LIST(p.x[i]),
                                  (eddy_list){0}, EDDY_OPTIONS(backward, .creates_graph = true),
                                  &gradient));
            must(eddy_backward(eddy_add(all(eddy_square(gradient)), all(y[5]))));
        }
        expect_same_grads(&p);
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

/* ---- hooks, and kept gradients ---- */

typedef struct seen {
    double sum;
    int count;
} seen;

static eddy_tensor *see(void *context, eddy_tensor *gradient) {
    seen *s = context;
    s->sum += sum_of(gradient);
    s->count++;
    return eddy_retain(eddy_mul_s(gradient, EDDY_S(3)));
}

/* Others are computed from the outputs that are looked at: calls show all of their gradients, and so do replays. */
Test(gradient_many, hooks_and_kept_gradients_of_outputs) {
    pair p;
    begin(&p, chain, 40);
    for (int round = 0; round < 4; round++) {
        seen both[2] = {{0}};
        eddy_tensor *asked[2];
        call_both(&p, 0.3, 0.5);
        for (int i = 0; i < 2; i++) {
            eddy_tensor **y = p.outputs[i];
            must(eddy_grad_hook_add(y[34], see, &both[i], NULL));
            must(eddy_grad_keep(y[33]));
            must(eddy_backward_from(EDDY_LIST(all(eddy_add(y[38], y[10]))), (eddy_list){0},
                                    EDDY_OPTIONS(backward, .keeps_graph = true)));
            must(eddy_backward_to(EDDY_LIST(all(y[39])), EDDY_LIST(y[35]), (eddy_list){0}, NULL,
                                  &asked[i]));
        }
        cr_assert_eq(both[0].count, 1);
        cr_assert_eq(both[0].sum, both[1].sum);
        expect_same_grad(p.outputs[0][33], p.outputs[1][33], "the kept gradient");
        must_have_same_bits(asked[0], asked[1], "the gradient of an output");
        expect_same_grads(&p);
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

/* ---- branches ---- */

static eddy_status steep(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    outputs[0] = eddy_exp(eddy_mul(inputs.items[0], m->w));
    outputs[1] = eddy_mul(outputs[0], inputs.items[0]);
    return EDDY_OK;
}

static eddy_status flat(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const model *m = context;
    outputs[0] = eddy_tanh(inputs.items[0]);
    outputs[1] = eddy_sub(m->w, inputs.items[0]);
    return EDDY_OK;
}

static eddy_status branches(void *context, eddy_recorded_call *call) {
    model *m = context;
    eddy_tensor *x = call->inputs.items[0];
    m->calls++;
    call->outputs[2] = eddy_mul(x, m->w);
    call->outputs[3] = eddy_square(m->w);
    return eddy_cond(eddy_gt_s(all(x), EDDY_S(0)), steep, flat, m, EDDY_LIST(call->outputs[2]), 2,
                     NULL, call->outputs);
}

/* The recorded calls go back through a branch as one op, which adds up in another order; replays do not. */
Test(gradient_many, the_way_that_the_run_has_taken) {
    pair p;
    begin(&p, branches, 4);
    for (int round = 0; round < ROUNDS; round++) {
        call_both(&p, round % 2 ? 0.3 : -2, 1);
        go_back(&p, round);
        if (round >= 2)
            expect_same_grads(&p);
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

static eddy_program *record(eddy_recorded_body *body, model *m) {
    char names[OUTPUTS_MOST][16];
    eddy_tensor *x = leaf(numbers(0.5)), *outputs[OUTPUTS_MOST];
    eddy_scalar number = EDDY_S(0.5);
    eddy_binding bindings[1 + OUTPUTS_MOST] = {{"x", x, EDDY_ROLE_INPUT}};
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(x),
                               .scalars = &number,
                               .scalar_count = 1,
                               .outputs = outputs,
                               .output_count = m->output_count};
    must(eddy_record_begin(NULL));
    must(body(m, &call));
    for (int i = 0; i < m->output_count; i++) {
        snprintf(names[i], sizeof(names[i]), "y%d", i);
        bindings[1 + i] = (eddy_binding){names[i], outputs[i], EDDY_ROLE_OUTPUT};
    }
    eddy_program *program =
        eddy_record_end_with_grad(&(eddy_bindings){bindings, 1 + m->output_count});
    must(EDDY_OK);
    return program;
}

/* Nobody can say which way a run has taken whose predicate has an error. */
Test(gradient_many, a_branch_whose_predicate_has_an_error) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = leaf(numbers(0.5)), .output_count = 4};
    eddy_program *program = record(branches, &m);
    eddy_tensor *bad =
        eddy_index_select(numbers(1), eddy_full(EDDY_SHAPE(COUNT), EDDY_S(99), EDDY_I64, NULL), 0);
    eddy_tensor *y[4];
    must(eddy_program_run(program, EDDY_LIST(eddy_mul(bad, leaf(numbers(1)))), y));
    cr_assert_eq(eddy_backward(all(y[0])), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED,
                 "program: a backward pass cannot go back through this run: the "
                 "predicate of a branch, or the number of a loop's steps, cannot be read");
    (void)eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- programs ---- */

/* Gives the outputs of a run, and behind them those of the function. */
static void run_both(eddy_program *program, eddy_recorded_body *body, pair *p) {
    eddy_scalar number = EDDY_S(0.5);
    for (int i = 0; i < 2; i++) {
        p->x[i] = leaf(numbers(-0.4));
        must(eddy_seed(3));
        eddy_recorded_call call = {.size = sizeof(call),
                                   .inputs = EDDY_LIST(p->x[i]),
                                   .scalars = &number,
                                   .scalar_count = 1,
                                   .outputs = p->outputs[i],
                                   .output_count = p->models[i].output_count};
        if (i == 0)
            must(eddy_program_run(program, EDDY_LIST(p->x[i]), p->outputs[i]));
        else
            must(body(&p->models[i], &call));
    }
}

Test(gradient_many, programs_have_the_bits_of_calls) {
    pair p;
    begin(&p, chain, 5);
    eddy_program *program = record(chain, &p.models[0]);
    for (int round = 0; round < 3; round++) {
        run_both(program, chain, &p);
        go_back(&p, round);
        expect_same_grads(&p);
    }
    eddy_program_release(&program);
    end(&p);
}

/* ---- what fails ---- */

/* w is saved by the run. */
Test(gradient_many, saved_tensors_that_are_overwritten) {
    pair p;
    begin(&p, chain, 4);
    for (int round = 0; round < 3; round++) {
        call_both(&p, 0.2, 0.5);
        for (int i = 0; i < 2; i++) {
            eddy_error error = {0};
            eddy_no_grad_begin();
            must(eddy_mul_s_inplace(p.models[i].w, EDDY_S(2)));
            eddy_no_grad_end();
            cr_assert_eq(eddy_backward(all(p.outputs[i][1])), EDDY_INVALID_ARGUMENT);
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "was written to in place since"), "%s",
                               error.message);
        }
    }
    cr_assert_eq(p.models[0].calls, 2);
    end(&p);
}

static eddy_status is_small(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_lt_s(all(inputs.items[0]), EDDY_S(8));
    return EDDY_OK;
}

static eddy_status twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_mul_s(inputs.items[0], EDDY_S(2));
    return EDDY_OK;
}

static eddy_status loops(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    for (int k = 1; k < m->output_count; k++)
        call->outputs[k] = eddy_mul_s(m->w, EDDY_S(k));
    return eddy_while(is_small, twice, NULL, EDDY_LIST(eddy_mul(call->inputs.items[0], m->w)),
                      EDDY_OPTIONS(while, .most_steps = 4), call->outputs);
}

Test(gradient_many, a_loop_among_the_calls) {
    for (int output_count = 3; output_count < 5; output_count++) {
        pair p;
        begin(&p, loops, output_count);
        for (int round = 0; round < 4; round++) {
            call_both(&p, 0.1, 1);
            go_back(&p, round);
            if (output_count == 4 && round >= 2) /* a recorded loop adds up in another order */
                expect_same_grads(&p);
        }
        cr_assert_eq(p.models[0].calls, 2);
        expect_explained(p.recorded, "ran 2 times, replayed 2 times");
        end(&p);
    }
}

/* Each output but the first is computed from the one before. */
static eddy_status cubes(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_status status = eddy_function_call(
        &cube_function, NULL, EDDY_LIST(eddy_mul(call->inputs.items[0], m->w)), call->outputs);
    for (int k = 1; k < m->output_count && status == EDDY_OK; k++)
        call->outputs[k] = eddy_mul(call->outputs[k - 1], m->w);
    return status;
}

/* There are no calls to go through: a function with so many outputs runs. */
Test(gradient_many, a_function_of_the_users_among_the_calls) {
    for (int output_count = 3; output_count < 5; output_count++) {
        pair p;
        begin(&p, cubes, output_count);
        for (int round = 0; round < 4; round++) {
            call_both(&p, 0.1, 1);
            go_back(&p, round);
            if (output_count == 4)
                expect_same_grads(&p);
        }
        cr_assert_eq(p.models[0].calls, output_count == 3 ? 2 : 4);
        expect_explained(p.recorded,
                         output_count == 3
                             ? "ran 2 times, replayed 2 times"
                             : "not replayed: more than 3 of its outputs carry a gradient, and "
                               "user.cube");
        end(&p);
    }
}

/* A part of the gradient of an output that another one was computed from stays within such a run. */
Test(gradient_many, an_output_whose_gradient_does_not_show) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = leaf(numbers(0.5)), .output_count = 40};
    eddy_program *program = record(cubes, &m);
    eddy_tensor *y[OUTPUTS_MOST];
    must(eddy_program_run(program, EDDY_LIST(leaf(numbers(0.1))), y));
    must(eddy_grad_keep(y[39]));
    cr_assert_eq(eddy_grad_keep(y[35]), EDDY_UNSUPPORTED);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "stays within the program"), "%s", error.message);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* Two views in turn: the code and its operands are the same, and a gradient is summed up in another order. */
static eddy_status turns(void *context, eddy_recorded_call *call) {
    model *m = context;
    bool is_odd = m->calls++ % 2;
    eddy_tensor *one = eddy_reshape(eddy_narrow(call->inputs.items[0], 0, 0, 1), EDDY_SHAPE(1, 1));
    one = eddy_expand(one, is_odd ? EDDY_SHAPE(1, COUNT) : EDDY_SHAPE(COUNT, 1));
    eddy_tensor *wide = eddy_expand(one, EDDY_SHAPE(COUNT, COUNT));
    for (int k = 0; k < m->output_count; k++)
        call->outputs[k] = eddy_mul(wide, m->w);
    return EDDY_OK;
}

Test(gradient_many, recordings_that_differ_in_views_alone) {
    pair p;
    begin(&p, turns, 4);
    for (int round = 0; round < 4; round++) {
        call_both(&p, 0.3, 1);
        go_back(&p, round);
        expect_same_grads(&p);
    }
    cr_assert_eq(p.models[0].calls, 4);
    expect_explained(p.recorded, "gradients go back through two recordings in different ways");
    end(&p);
}

static eddy_status too_many(void *context, eddy_recorded_call *call) {
    ++*(int *)context;
    for (int64_t k = 0; k < call->output_count; k++)
        call->outputs[k] = eddy_mul_s(call->inputs.items[0], EDDY_S((double)k));
    return EDDY_OK;
}

Test(gradient_many, more_outputs_than_a_node_has) {
    eddy_scope *scope = eddy_scope_begin();
    int calls = 0;
    eddy_recorded *recorded = eddy_recorded_create(too_many, &calls, OUTPUTS_MOST + 1, NULL);
    for (int i = 0; i < 3; i++) {
        eddy_tensor *x = leaf(numbers(1)), *y[OUTPUTS_MOST + 1];
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, y));
        must(eddy_backward(all(eddy_add(y[2], y[OUTPUTS_MOST]))));
        cr_assert_eq(sum_of(eddy_grad_of(x)), COUNT * (2 + OUTPUTS_MOST));
    }
    cr_assert_eq(calls, 3);
    expect_explained(recorded, "not replayed: recorded_run: more than 64 outputs carry a gradient");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
