/* Numbers of a recorded function that are rates of dropout: replays draw with them, and so do their gradients. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define ROWS 5
#define COLUMNS 7
#define OUTPUTS_MOST 5
#define STEPS 11 /* more than there is room for numbers of calls that are not made */

typedef struct model {
    eddy_tensor *w;
    eddy_generator *generator;
    int calls;
} model;

static void model_init(model *m) {
    *m = (model){0};
    must(eddy_seed(5));
    m->w = leaf(eddy_randn(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL));
}

/* ---- functions ---- */

static eddy_status drops_once(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    call->outputs[0] = eddy_dropout(eddy_mul(call->inputs.items[0], m->w), call->scalars[0], NULL);
    return EDDY_OK;
}

/* A rate of the call twice, one that is a constant of the same value as the other in between, and the number as a factor. */
static eddy_status drops_often(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_mul(call->inputs.items[0], m->w);
    eddy_tensor *a = eddy_dropout(eddy_sin(x), call->scalars[0], NULL);
    eddy_tensor *b = eddy_dropout(eddy_mul(a, m->w), EDDY_S(0.25), NULL);
    eddy_tensor *c = eddy_dropout(eddy_add(a, b), call->scalars[1], NULL);
    call->outputs[0] = eddy_mul_s(c, call->scalars[0]);
    call->outputs[1] = eddy_square(eddy_dropout(eddy_cos(b), call->scalars[0], NULL));
    return EDDY_OK;
}

static eddy_status drops_for_many(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *x = eddy_mul(call->inputs.items[0], m->w);
    for (int i = 0; i < OUTPUTS_MOST; i++)
        call->outputs[i] = x = eddy_sin(eddy_dropout(x, call->scalars[i & 1], NULL));
    return EDDY_OK;
}

/* A pass within, and one through its gradient. */
static eddy_status drops_and_goes_back(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    eddy_tensor *y = eddy_dropout(eddy_square(m->w), call->scalars[0], NULL), *gradient;
    eddy_tensor *loss =
        eddy_sum(eddy_mul(call->inputs.items[0], eddy_mul(y, y)), EDDY_ALL_AXES, NULL);
    eddy_backward_options options = {.size = sizeof(options), .creates_graph = true};
    must(eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(m->w), (eddy_list){0}, &options, &gradient));
    must(eddy_grads_zero(EDDY_LIST(m->w)));
    must(eddy_backward(all(eddy_square(gradient))));
    call->outputs[0] = eddy_detach(gradient);
    call->outputs[1] = eddy_clone(eddy_detach(eddy_grad_of(m->w)));
    return EDDY_OK;
}

/* ---- in a loop ---- */

typedef struct looped {
    const eddy_recorded_call *call;
    const model *m;
} looped;

static eddy_status is_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status drops_in_step(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const looped *l = context;
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    return done(
        outputs + 1,
        eddy_mul(eddy_dropout(eddy_sin(inputs.items[1]), l->call->scalars[0], NULL), l->m->w));
}

static eddy_status drops_in_a_loop(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    looped l = {call, m};
    eddy_tensor *given[2], *count = eddy_full((eddy_shape){0}, EDDY_S(STEPS), EDDY_I64, NULL);
    must(eddy_while(is_left, drops_in_step, &l, EDDY_LIST(count, call->inputs.items[0]),
                    EDDY_OPTIONS(while, .most_steps = STEPS), given));
    call->outputs[0] = given[1];
    return EDDY_OK;
}

/* ---- what a call gives ---- */

static const struct {
    const char *name;
    eddy_recorded_body *body;
    int outputs;
    bool goes_back; /* a pass comes from outside */
} cases[] = {{"once", drops_once, 1, true},
             {"often", drops_often, 2, true},
             {"many", drops_for_many, OUTPUTS_MOST, true},
             {"within", drops_and_goes_back, 2, false},
             {"a loop", drops_in_a_loop, 1, true}};
#define CASES ((int)(sizeof(cases) / sizeof(*cases)))

/* Outputs, then gradients of the input and the weight, twice at most, then what is drawn next. */
typedef struct results {
    eddy_tensor *items[OUTPUTS_MOST + 5];
    int count;
} results;

static void add(results *r, eddy_tensor *tensor) {
    r->items[r->count++] = eddy_clone(eddy_detach(tensor));
}

static void go_back(results *r, eddy_tensor **outputs, int count, eddy_list leaves,
                    bool twice_over) {
    eddy_tensor *loss = all(eddy_square(outputs[0])), *gradients[2];
    for (int i = 1; i < count; i++)
        loss = eddy_add(loss, all(eddy_mul(outputs[i], outputs[i - 1])));
    must(eddy_grads_zero(leaves));
    if (!twice_over) {
        must(eddy_backward(loss));
    } else {
        eddy_backward_options options = {.size = sizeof(options), .creates_graph = true};
        must(eddy_backward_to(EDDY_LIST(loss), leaves, (eddy_list){0}, &options, gradients));
        add(r, gradients[0]);
        add(r, gradients[1]);
        must(eddy_backward(
            eddy_add(all(eddy_square(gradients[0])), all(eddy_square(gradients[1])))));
    }
    add(r, eddy_grad_of(leaves.items[0]));
    add(r, eddy_grad_of(leaves.items[1]));
}

static results run(int k, model *m, eddy_recorded *recorded, int i, bool twice_over) {
    static const double rates[] = {0.25, 0.5, 0, 0.25, 1, 0.125, 0.75, 0.25};
    must(eddy_seed((uint64_t)i + 1));
    results r = {0};
    eddy_tensor *x = leaf(eddy_randn(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL)),
                *outputs[OUTPUTS_MOST];
    if (!cases[k].goes_back)
        must(eddy_requires_grad_set(x, false));
    eddy_scalar numbers[] = {EDDY_S(rates[i % 8]), EDDY_S(rates[(i + 3) % 8])};
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(x),
                               .scalars = numbers,
                               .scalar_count = 2,
                               .outputs = outputs,
                               .output_count = cases[k].outputs};
    must(recorded ? eddy_recorded_run(recorded, call.inputs, (eddy_scalars){numbers, 2}, outputs)
                  : cases[k].body(m, &call));
    for (int o = 0; o < cases[k].outputs; o++)
        add(&r, outputs[o]);
    if (cases[k].goes_back)
        go_back(&r, outputs, cases[k].outputs, EDDY_LIST(x, m->w), twice_over);
    add(&r, eddy_rand(EDDY_SHAPE(2), EDDY_F32, NULL));
    return r;
}

Test(rates, replays_drop_as_the_function_does) {
    for (int k = 0; k < CASES; k++)
        for (int twice_over = 0; twice_over < 2; twice_over++) {
            eddy_scope *scope = eddy_scope_begin();
            model m, eager;
            model_init(&m);
            model_init(&eager);
            eddy_recorded *recorded =
                eddy_recorded_create(cases[k].body, &m, cases[k].outputs, NULL);
            for (int i = 0; i < 10; i++) {
                results a = run(k, &m, recorded, i, twice_over),
                        b = run(k, &eager, NULL, i, twice_over);
                for (int o = 0; o < a.count; o++) {
                    char what[64];
                    snprintf(what, sizeof(what), "%s, call %d, result %d", cases[k].name, i, o);
                    must_have_same_bits(a.items[o], b.items[o], what);
                }
            }
            cr_assert_eq(m.calls, 2, "%s: %d calls", cases[k].name, m.calls);
            expect_explained(recorded, "ran 2 times, replayed 8 times");
            eddy_recorded_release(&recorded);
            expect_nothing_left(scope);
        }
}

/* The function says it as it would without a program. */
Test(rates, what_is_no_rate_is_the_functions_to_refuse) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    model_init(&m);
    eddy_recorded *recorded = eddy_recorded_create(drops_once, &m, 1, NULL);
    const double wrong[] = {1.5, -0.25, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 10; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL), *y;
        eddy_scalar rate = EDDY_S(i % 2 && i > 1 ? wrong[(i - 3) / 2] : 0.5);
        eddy_status status = eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(rate), &y);
        eddy_error error = {0};
        if (i % 2 && i > 1) {
            cr_assert_eq(status, EDDY_INVALID_ARGUMENT, "call %d", i);
            eddy_error_take(&error);
            cr_assert_not_null(strstr(error.message, "which is no probability"), "%s",
                               error.message);
        } else {
            must(status);
        }
    }
    cr_assert_eq(m.calls, 6, "%d", m.calls);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- gradients that the function computes itself ---- */

/* The same draw with a constant, which is the number when it is recorded. */
static eddy_status draws_again_by_hand(void *context, eddy_recorded_call *call) {
    model *m = context;
    eddy_tensor *x = call->inputs.items[0];
    call->outputs[0] =
        eddy_dropout(x, call->scalars[0], EDDY_OPTIONS(dropout, .generator = m->generator));
    call->outputs[1] = eddy_dropout_backward(x, EDDY_S(0.5), 9, m->calls++);
    return EDDY_OK;
}

Test(rates, a_constant_that_is_equal_stays_a_constant) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.generator = eddy_generator_create(9)},
          eager = {.generator = eddy_generator_create(9)};
    eddy_recorded *recorded = eddy_recorded_create(draws_again_by_hand, &m, 2, NULL);
    for (int i = 0; i < 5; i++) {
        eddy_tensor *x = eddy_randn(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL), *y[2], *wanted[2];
        eddy_scalar rate = EDDY_S(i < 2 ? 0.5 : 0.125);
        eddy_recorded_call call = {.size = sizeof(call),
                                   .inputs = EDDY_LIST(x),
                                   .scalars = &rate,
                                   .scalar_count = 1,
                                   .outputs = wanted,
                                   .output_count = 2};
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){&rate, 1}, y));
        must(draws_again_by_hand(&eager, &call));
        must_have_same_bits(y[0], wanted[0], "drawn");
        must_have_same_bits(y[1], wanted[1], "drawn again");
    }
    cr_assert_eq(m.calls, 2);
    eddy_recorded_release(&recorded);
    eddy_generator_release(&m.generator);
    eddy_generator_release(&eager.generator);
    expect_nothing_left(scope);
}

static eddy_status goes_back_by_hand(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    call->outputs[0] = eddy_dropout_backward(call->inputs.items[0], call->scalars[0], 3, 4);
    return EDDY_OK;
}

Test(rates, a_number_that_gradients_would_lose_is_explained) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    model_init(&m);
    eddy_recorded *recorded = eddy_recorded_create(goes_back_by_hand, &m, 1, NULL);
    for (int i = 0; i < 4; i++) {
        eddy_tensor *x = eddy_ones(EDDY_SHAPE(ROWS), EDDY_F32, NULL), *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(0.125 * i)), &y));
        must_have_same_bits(y, eddy_dropout_backward(x, EDDY_S(0.125 * i), 3, 4), "by hand");
    }
    expect_explained(recorded, "not replayed: number 0 of the call would be a constant in "
                               "gradients, those of dropout_backward");
    cr_assert_eq(m.calls, 4);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
