/* Recorded functions within a larger model: they are replayed, and gradients go back through the replays. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

/* ---- a cell in a loop ---- */

typedef struct cell {
    eddy_tensor *w, *u, *out; /* leaves; the last is the model's around it */
    int calls;
} cell;

static void cell_init(cell *c) {
    *c = (cell){0};
    must(eddy_seed(11));
    c->w = leaf(eddy_randn(EDDY_SHAPE(6, 4), EDDY_F32, NULL));
    c->u = leaf(eddy_randn(EDDY_SHAPE(6, 6), EDDY_F32, NULL));
    c->out = leaf(eddy_randn(EDDY_SHAPE(1, 6), EDDY_F32, NULL));
}

/* inputs: x, h; a number: how much of h is kept. outputs: the next h, and its square. */
static eddy_status cell_step(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    eddy_tensor *x = call->inputs.items[0], *h = call->inputs.items[1];
    eddy_tensor *next =
        eddy_tanh(eddy_add(eddy_linear(x, c->w, EDDY_NONE), eddy_linear(h, c->u, EDDY_NONE)));
    next = eddy_add(eddy_mul_s(h, call->scalars[0]), eddy_dropout(next, EDDY_S(0.25), NULL));
    call->outputs[0] = next;
    call->outputs[1] = eddy_square(next);
    return EDDY_OK;
}

/* Some steps of training of a loop over the cell; fills the losses. recorded: NULL for the function itself. */
static void train(cell *c, eddy_recorded *recorded, double *losses, int count) {
    for (int i = 0; i < count; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_list params = EDDY_LIST(c->w, c->u, c->out);
        eddy_tensor *h[2] = {eddy_zeros(EDDY_SHAPE(3, 6), EDDY_F32, NULL)};
        must(eddy_grads_zero(params));
        for (int t = 0; t < 3; t++) {
            eddy_tensor *x = eddy_randn(EDDY_SHAPE(3, 4), EDDY_F32, NULL);
            eddy_scalar keep = EDDY_S(0.5 / (i + t + 1));
            eddy_recorded_call call = {.size = sizeof(call),
                                       .inputs = EDDY_LIST(x, h[0]),
                                       .scalars = &keep,
                                       .scalar_count = 1,
                                       .outputs = h,
                                       .output_count = 2};
            if (recorded)
                must(eddy_recorded_run(recorded, EDDY_LIST(x, h[0]), EDDY_SCALARS(keep), h));
            else
                must(cell_step(c, &call));
        }
        eddy_tensor *loss = eddy_mean(
            eddy_square(eddy_linear(i & 1 ? h[0] : h[1], c->out, EDDY_NONE)), EDDY_ALL_AXES, NULL);
        must(eddy_backward(loss));
        eddy_no_grad_begin();
        for (int k = 0; k < 3; k++)
            must(eddy_sub_into(params.items[k],
                               eddy_mul_s(eddy_grad_of(params.items[k]), EDDY_S(0.05)),
                               params.items[k]));
        eddy_no_grad_end();
        losses[i] = eddy_item_f64(loss, NULL);
        eddy_scope_end(scope);
    }
}

#define STEPS 8

Test(gradient_recorded, a_cell_in_a_loop_trains_as_the_function_does) {
    eddy_scope *scope = eddy_scope_begin();
    double calls[STEPS], runs[STEPS];
    cell c;
    cell_init(&c);
    train(&c, NULL, calls, STEPS);
    cell_init(&c);
    eddy_recorded *recorded = eddy_recorded_create(cell_step, &c, 2, NULL);
    train(&c, recorded, runs, STEPS);
    for (int i = 0; i < STEPS; i++)
        cr_assert_eq(calls[i], runs[i], "step %d: %.17g and %.17g", i, calls[i], runs[i]);
    cr_assert_eq(c.calls, 4,
                 "two for the first h, which wants no gradient, and two for the others");
    expect_explained(recorded, "ran 2 times, replayed 14 times");
    expect_explained(recorded, "ran 2 times, replayed 6 times");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- who wants a gradient ---- */

static eddy_status scales(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    call->outputs[0] = eddy_mul(call->inputs.items[0], c->w);
    return EDDY_OK;
}

static eddy_tensor *ones(void) {
    return eddy_ones(EDDY_SHAPE(4), EDDY_F32, NULL);
}

static eddy_tensor *call(eddy_recorded *recorded, eddy_tensor *x) {
    eddy_tensor *y = NULL;
    must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
    return y;
}

Test(gradient_recorded, a_parameter_that_is_frozen_and_thawed) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {.w = ones()};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 12; i++) {
        bool wants = i / 4 != 1;
        if (i % 4 == 0)
            must(eddy_requires_grad_set(c.w, wants));
        eddy_tensor *y = call(recorded, ones());
        cr_assert_eq(eddy_requires_grad(y), wants, "call %d", i);
        if (!wants)
            continue;
        must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
        cr_assert_eq(sum_of(eddy_grad_of(c.w)), 4 * (i % 4 + 1), "call %d", i);
    }
    cr_assert_eq(c.calls, 6);
    expect_explained(recorded, "ran 6 times, replayed 6 times");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(gradient_recorded, new_leaves_as_inputs_are_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {.w = leaf(ones())};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 5; i++) {
        eddy_tensor *x = leaf(eddy_mul_s(ones(), EDDY_S(i + 1.0)));
        must(eddy_backward(eddy_sum(call(recorded, x), EDDY_ALL_AXES, NULL)));
        cr_assert_eq(sum_of(eddy_grad_of(x)), 4);
    }
    cr_assert_eq(sum_of(eddy_grad_of(c.w)), 4 * (1 + 2 + 3 + 4 + 5));
    cr_assert_eq(c.calls, 2);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* A view of a captured tensor becomes a leaf: its root says nothing of it. */
Test(gradient_recorded, a_view_that_becomes_a_leaf) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *flat = eddy_ones(EDDY_SHAPE(8), EDDY_F32, NULL);
    cell c = {.w = eddy_narrow(flat, 0, 2, 4)};
    eddy_recorded *recorded = eddy_recorded_create(scales, &c, 1, NULL);
    for (int i = 0; i < 3; i++)
        cr_assert(!eddy_requires_grad(call(recorded, ones())));
    leaf(c.w);
    for (int i = 0; i < 3; i++)
        cr_assert(eddy_requires_grad(call(recorded, ones())), "call %d", i);
    cr_assert_eq(c.calls, 4);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- what is not replayed ---- */

static eddy_status keeps_inside(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    eddy_tensor *y = eddy_tanh(eddy_mul(call->inputs.items[0], c->w));
    must(eddy_grad_keep(y));
    call->outputs[0] = eddy_square(y);
    return EDDY_OK;
}

static eddy_status adds_in_place(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    must(eddy_add_into(c->u, eddy_mul(call->inputs.items[0], c->w), c->u));
    call->outputs[0] = eddy_detach(c->u);
    return EDDY_OK;
}

static eddy_status goes_back_inside(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    eddy_tensor *y = eddy_mul(call->inputs.items[0], c->w);
    must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
    call->outputs[0] = eddy_detach(y);
    return EDDY_OK;
}

/* Beside an input that wants a gradient. */
static eddy_status goes_back_to_its_own(void *context, eddy_recorded_call *call) {
    cell *c = context;
    c->calls++;
    eddy_tensor *gradient, *y = eddy_mul(call->inputs.items[0], c->w);
    must(eddy_backward_to(EDDY_LIST(eddy_sum(y, EDDY_ALL_AXES, NULL)), EDDY_LIST(c->w),
                          (eddy_list){0}, EDDY_OPTIONS(backward, .creates_graph = true),
                          &gradient));
    call->outputs[0] = eddy_mul(y, gradient);
    return EDDY_OK;
}

static void expect_not_replayed(eddy_recorded_body *body, const char *part) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {.w = leaf(ones()), .u = ones()};
    eddy_recorded *recorded = eddy_recorded_create(body, &c, 1, NULL);
    for (int i = 0; i < 4; i++)
        call(recorded, leaf(ones()));
    cr_assert_eq(c.calls, 4);
    expect_explained(recorded, part);
    must(EDDY_OK);
    eddy_recorded_release(&recorded);
    c.u = NULL;
    expect_nothing_left(scope);
}

Test(gradient_recorded, what_a_replay_cannot_follow_runs) {
    expect_not_replayed(keeps_inside, "keeps its gradient");
    expect_not_replayed(adds_in_place, "writes in place");
    expect_not_replayed(goes_back_to_its_own, "a backward pass is among its calls");
    expect_not_replayed(goes_back_inside, "a backward pass is among its calls, and a gradient goes "
                                          "back through its inputs or outputs");
}

/* ---- a pass inside that leaves the outputs their way ---- */

typedef struct penalised {
    eddy_tensor *w, *v;
    bool creates_graph; /* the gradient is a part of the loss, else a number to it */
    int calls;
} penalised;

static eddy_status penalises(void *context, eddy_recorded_call *call) {
    penalised *p = context;
    p->calls++;
    eddy_tensor *gradient, *h = eddy_tanh(eddy_mul(call->inputs.items[0], p->w));
    eddy_tensor *y =
        eddy_dropout(eddy_mul_s(eddy_mul(h, p->v), call->scalars[0]), EDDY_S(0.25), NULL);
    eddy_tensor *loss = all(eddy_square(y));
    must(eddy_backward_to(
        EDDY_LIST(loss), EDDY_LIST(p->w), (eddy_list){0},
        EDDY_OPTIONS(backward, .keeps_graph = true, .creates_graph = p->creates_graph), &gradient));
    call->outputs[0] = eddy_add(loss, all(eddy_square(gradient)));
    call->outputs[1] = eddy_mul(y, h);
    return EDDY_OK;
}

/* The gradients of w and v, and the gradient of those of w. */
static void find_gradients(penalised *p, eddy_recorded *recorded, int i, eddy_tensor *found[3]) {
    eddy_seed((uint64_t)i);
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(5), EDDY_F32, NULL), *outputs[2], *gradients[2];
    eddy_scalar factor = EDDY_S(0.5 + i);
    eddy_recorded_call call = {.inputs = EDDY_LIST(x), .scalars = &factor, .outputs = outputs};
    if (recorded)
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(factor), outputs));
    else
        must(penalises(p, &call));
    eddy_tensor *from = i % 3 == 0 ? outputs[0] : i % 3 == 1 ? all(outputs[1]) : NULL;
    if (!from)
        from = eddy_add(outputs[0], all(outputs[1]));
    must(eddy_backward_to(EDDY_LIST(from), EDDY_LIST(p->w, p->v), (eddy_list){0},
                          EDDY_OPTIONS(backward, .creates_graph = true), gradients));
    must(eddy_backward_to(EDDY_LIST(all(eddy_square(gradients[0]))), EDDY_LIST(p->w),
                          (eddy_list){0}, NULL, &found[2]));
    found[0] = gradients[0];
    found[1] = gradients[1];
}

static void expect_penalised(bool creates_graph) {
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_seed(7));
    penalised p = {.w = leaf(eddy_randn(EDDY_SHAPE(5), EDDY_F32, NULL)),
                   .v = leaf(eddy_randn(EDDY_SHAPE(5), EDDY_F32, NULL)),
                   .creates_graph = creates_graph};
    penalised alone = p;
    eddy_recorded *recorded = eddy_recorded_create(penalises, &p, 2, NULL);
    for (int i = 0; i < 8; i++) {
        eddy_tensor *wanted[3], *found[3];
        find_gradients(&alone, NULL, i, wanted);
        find_gradients(&p, recorded, i, found);
        for (int k = 0; k < 3; k++)
            must_have_same_bits(found[k], wanted[k], "gradient");
    }
    cr_assert_eq(p.calls, 2);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(gradient_recorded, a_penalty_on_a_gradient_is_replayed) {
    expect_penalised(true);
    expect_penalised(false);
}

/* ---- outputs that nobody goes back from ---- */

static eddy_status counts(void *context, eddy_recorded_call *call) {
    ((cell *)context)->calls++;
    call->outputs[0] = eddy_argmax(call->inputs.items[0], EDDY_AXES(0), NULL);
    return EDDY_OK;
}

Test(gradient_recorded, results_without_a_gradient_of_inputs_with_one) {
    eddy_scope *scope = eddy_scope_begin();
    cell c = {0};
    eddy_recorded *recorded = eddy_recorded_create(counts, &c, 1, NULL);
    for (int i = 0; i < 4; i++)
        cr_assert(!eddy_requires_grad(call(recorded, leaf(ones()))));
    cr_assert_eq(c.calls, 2);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
