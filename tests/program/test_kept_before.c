/* Recorded functions that depend on the gradients that the tape keeps: what lies between their calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/outcome.h>

typedef struct model {
    eddy_tensor *w;
    int calls;
    bool reads,
        zeroes; /* whether there is a gradient, before it goes back; the gradient after it */
} model;

static model make(void) {
    model m = {.w = eddy_full(EDDY_SHAPE(3), EDDY_S(1), EDDY_F32, NULL), .zeroes = true};
    must(eddy_requires_grad_set(m.w, true));
    return m;
}

/* A step of training. */
static eddy_status step(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    if (m->reads)
        must(eddy_has_grad(m->w) ? EDDY_INVALID_ARGUMENT : EDDY_OK);
    eddy_tensor *loss =
        eddy_mean(eddy_square(eddy_mul(call->inputs.items[0], m->w)), EDDY_ALL_AXES, NULL);
    eddy_status status = eddy_backward(loss);
    eddy_no_grad_begin();
    if (status == EDDY_OK)
        status = eddy_sub_into(m->w, eddy_mul_s(eddy_grad_of(m->w), EDDY_S(0.125)), m->w);
    eddy_no_grad_end();
    call->outputs[0] = eddy_detach(loss);
    return status == EDDY_OK && m->zeroes ? eddy_grads_zero(EDDY_LIST(m->w)) : status;
}

static double run(model *m, eddy_recorded *recorded, int64_t rows, double value) {
    eddy_tensor *x = eddy_full(EDDY_SHAPE(rows, 3), EDDY_S(value), EDDY_F32, NULL), *loss;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &loss, .output_count = 1};
    must(recorded ? eddy_recorded_run(recorded, call.inputs, (eddy_scalars){0}, &loss)
                  : step(m, &call));
    return eddy_item_f64(loss, NULL);
}

static void expect_explained(eddy_recorded *recorded, const char *part) {
    char text[1024];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_not_null(strstr(text, part), "%s", text);
}

/* Two batch sizes by turns, and calls of the function itself, which stores gradients, in between. */
Test(kept_before, steps_of_two_sizes_are_replayed_beside_others) {
    for (int reads = 0; reads < 2; reads++) {
        eddy_scope *scope = eddy_scope_begin();
        model m = make(), eager = make();
        m.reads = eager.reads = reads;
        eddy_recorded *recorded = eddy_recorded_create(step, &m, 1, NULL);
        for (int i = 0; i < 12; i++) {
            int64_t rows = i % 3 == 0 ? 4 : 6;
            cr_assert_eq(run(&m, i % 5 == 4 ? NULL : recorded, rows, 0.5 + i),
                         run(&eager, NULL, rows, 0.5 + i), "call %d", i);
        }
        cr_assert_eq(sum_of(m.w), sum_of(eager.w));
        expect_explained(recorded, "(f32[4, 3]): ran 2 times, replayed 1 times");
        expect_explained(recorded, "(f32[6, 3]): ran 2 times, replayed 5 times");
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* One that adds to a gradient is another program than one that stores it. */
Test(kept_before, a_gradient_that_was_zeroed_is_stored_anew) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make(), eager = make();
    m.zeroes = eager.zeroes = false;
    eddy_recorded *recorded = eddy_recorded_create(step, &m, 1, NULL);
    for (int i = 0; i < 16; i++) {
        if (i == 7 || i == 12) {
            must(eddy_grads_zero(EDDY_LIST(m.w)));
            must(eddy_grads_zero(EDDY_LIST(eager.w)));
        }
        cr_assert_eq(run(&m, recorded, 4, 0.25), run(&eager, NULL, 4, 0.25), "call %d", i);
        cr_assert_eq(sum_of(eddy_grad_of(m.w)), sum_of(eddy_grad_of(eager.w)), "call %d", i);
    }
    cr_assert_lt(m.calls, 12);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Which tensor is kept counts where the calls use it. */
Test(kept_before, another_pass_gives_another_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make(), eager = make();
    m.zeroes = eager.zeroes = false;
    eddy_recorded *recorded = eddy_recorded_create(step, &m, 1, NULL);
    for (int i = 0; i < 16; i++) {
        if (i % 4 == 3)
            for (int k = 0; k < 2; k++) {
                eddy_tensor *w = k ? m.w : eager.w;
                must(eddy_grads_zero(EDDY_LIST(w)));
                must(eddy_backward(eddy_sum(eddy_mul_s(w, EDDY_S(i)), EDDY_ALL_AXES, NULL)));
            }
        cr_assert_eq(run(&m, recorded, 4, 0.25), run(&eager, NULL, 4, 0.25), "call %d", i);
        cr_assert_eq(sum_of(eddy_grad_of(m.w)), sum_of(eddy_grad_of(eager.w)), "call %d", i);
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status asks(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    call->outputs[0] =
        eddy_mul_s(call->inputs.items[0], eddy_has_grad(m->w) ? EDDY_S(3) : EDDY_S(1));
    return EDDY_OK;
}

Test(kept_before, that_there_is_a_gradient_may_be_all_that_counts) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make();
    eddy_recorded *recorded = eddy_recorded_create(asks, &m, 1, NULL);
    for (int i = 0; i < 12; i++) {
        eddy_tensor *x = eddy_full(EDDY_SHAPE(2), EDDY_S(i), EDDY_F32, NULL), *y;
        must(eddy_grads_zero(EDDY_LIST(m.w)));
        if (i < 6)
            must(eddy_backward(eddy_sum(eddy_mul_s(m.w, EDDY_S(i)), EDDY_ALL_AXES, NULL)));
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), (i < 6 ? 3 : 1) * 2 * i, "call %d", i);
    }
    cr_assert_eq(m.calls, 4, "each new gradient is as good as the one before");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* It had no place for a gradient when the calls were recorded. */
Test(kept_before, a_tensor_that_becomes_a_leaf_may_have_a_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = eddy_full(EDDY_SHAPE(3), EDDY_S(1), EDDY_F32, NULL)};
    eddy_recorded *recorded = eddy_recorded_create(asks, &m, 1, NULL);
    for (int i = 0; i < 8; i++) {
        eddy_tensor *x = eddy_full(EDDY_SHAPE(2), EDDY_S(i), EDDY_F32, NULL), *y;
        if (i == 4) {
            must(eddy_requires_grad_set(m.w, true));
            must(eddy_backward(eddy_sum(m.w, EDDY_ALL_AXES, NULL)));
        }
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), (i < 4 ? 1 : 3) * 2 * i, "call %d", i);
    }
    cr_assert_eq(m.calls, 4, "two recordings before, and two after");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status asks_input(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    ((model *)context)->calls++;
    call->outputs[0] = eddy_detach(eddy_mul_s(x, eddy_has_grad(x) ? EDDY_S(4) : EDDY_S(1)));
    return EDDY_OK;
}

/* Another leaf in the same place has another gradient. */
Test(kept_before, gradients_of_inputs_are_asked_for_at_each_call) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {0};
    eddy_tensor *a = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_F32, NULL), *b = eddy_detach(a), *y;
    must(eddy_requires_grad_set(a, true));
    must(eddy_requires_grad_set(b, true));
    must(eddy_backward(eddy_sum(b, EDDY_ALL_AXES, NULL)));
    eddy_recorded *recorded = eddy_recorded_create(asks_input, &m, 1, NULL);
    for (int i = 0; i < 8; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(i < 4 ? a : b), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), i < 4 ? 2 : 8, "call %d", i);
    }
    expect_explained(recorded,
                     "not replayed: it uses the gradient that the tape keeps for an input");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status asks_who(void *context, eddy_recorded_call *call) {
    model *m = context;
    m->calls++;
    call->outputs[0] =
        eddy_mul_s(call->inputs.items[0], eddy_requires_grad(m->w) ? EDDY_S(8) : EDDY_S(1));
    return EDDY_OK;
}

Test(kept_before, who_gets_a_gradient_is_asked_for_at_each_call) {
    eddy_scope *scope = eddy_scope_begin();
    model m = {.w = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_F32, NULL)};
    eddy_tensor *x = eddy_full(EDDY_SHAPE(2), EDDY_S(1), EDDY_F32, NULL), *y;
    eddy_recorded *recorded = eddy_recorded_create(asks_who, &m, 1, NULL);
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            must(eddy_requires_grad_set(m.w, true));
        must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
        cr_assert_eq(sum_of(y), i < 4 ? 2 : 16, "call %d", i);
    }
    cr_assert_eq(m.calls, 4);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_tensor *twofold(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_retain(eddy_mul_s(gradient, EDDY_S(2)));
}

/* A replay runs no hook. */
Test(kept_before, a_hook_between_two_calls_is_seen) {
    eddy_scope *scope = eddy_scope_begin();
    model m = make(), eager = make();
    eddy_recorded *recorded = eddy_recorded_create(step, &m, 1, NULL);
    for (int i = 0; i < 8; i++) {
        if (i == 4) {
            must(eddy_grad_hook_add(m.w, twofold, NULL, NULL));
            must(eddy_grad_hook_add(eager.w, twofold, NULL, NULL));
        }
        cr_assert_eq(run(&m, recorded, 4, 0.25), run(&eager, NULL, 4, 0.25), "call %d", i);
    }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what has nothing to do with the function ---- */

/* Others become leaves, views too, get hooks and keep gradients. */
static void change_others(int i) {
    eddy_tensor *other = eddy_full(EDDY_SHAPE(4), EDDY_S(i), EDDY_F32, NULL);
    eddy_tensor *view =
        eddy_reshape(eddy_full(EDDY_SHAPE(4), EDDY_S(1), EDDY_F32, NULL), EDDY_SHAPE(2, 2));
    must(eddy_requires_grad_set(other, true));
    must(eddy_requires_grad_set(view, true));
    must(eddy_grad_hook_add(other, twofold, NULL, NULL));
    must(eddy_grad_keep(eddy_mul_s(other, EDDY_S(2))));
    must(eddy_requires_grad_set(view, false));
}

Test(kept_before, leaves_of_others_leave_it_replayed) {
    eddy_recorded_body *const bodies[] = {step, asks, asks_who};
    for (int b = 0; b < 3; b++) {
        eddy_scope *scope = eddy_scope_begin();
        model m = make();
        must(eddy_requires_grad_set(m.w, b < 2));
        eddy_recorded *recorded = eddy_recorded_create(bodies[b], &m, 1, NULL);
        for (int i = 0; i < 8; i++) {
            eddy_tensor *x = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(1), EDDY_F32, NULL), *y;
            must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
            change_others(i);
        }
        cr_assert_eq(m.calls, 2, "body %d", b);
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what has to do with it, and lies further off ---- */

typedef struct graph {
    eddy_tensor *w, *view, *made;
    int calls;
} graph;

static graph make_graph(void) {
    graph g = {.w = eddy_full(EDDY_SHAPE(2), EDDY_S(3), EDDY_F32, NULL)};
    g.view = eddy_reshape(g.w, EDDY_SHAPE(1, 2));
    must(eddy_requires_grad_set(g.w, true));
    g.made = eddy_square(g.w);
    return g;
}

/* A pass through a call from before. */
static eddy_status goes_through(void *context, eddy_recorded_call *call) {
    graph *g = context;
    g->calls++;
    must(eddy_grads_zero(EDDY_LIST(g->w)));
    eddy_tensor *loss = eddy_sum(eddy_mul(call->inputs.items[0], g->made), EDDY_ALL_AXES, NULL);
    eddy_backward_options options = {.size = sizeof(options), .keeps_graph = true};
    must(eddy_backward_from(EDDY_LIST(loss), (eddy_list){0}, &options));
    call->outputs[0] = eddy_detach(eddy_grad_of(g->w));
    return EDDY_OK;
}

/* Whether its own view is a leaf. */
static eddy_status asks_view(void *context, eddy_recorded_call *call) {
    graph *g = context;
    g->calls++;
    call->outputs[0] =
        eddy_mul_s(call->inputs.items[0], eddy_requires_grad(g->view) ? EDDY_S(8) : EDDY_S(1));
    return EDDY_OK;
}

/* Its own view is a leaf of its own gradients. */
static eddy_status uses_view(void *context, eddy_recorded_call *call) {
    graph *g = context;
    g->calls++;
    call->outputs[0] = eddy_mul(call->inputs.items[0], g->view);
    return EDDY_OK;
}

static void hook_made(graph *g) {
    must(eddy_grad_hook_add(g->made, twofold, NULL, NULL));
}

static void keep_made(graph *g) {
    must(eddy_grad_keep(g->made));
}

static void make_view_a_leaf(graph *g) {
    must(eddy_requires_grad_set(g->view, true));
}

/* What tells a call with the change from one without. is_own: the function's own tensor is its input as well. */
static double run_graph(graph *g, eddy_recorded_body *body, eddy_recorded *recorded, bool is_own) {
    eddy_tensor *x = is_own ? g->w : eddy_full(EDDY_SHAPE(2), EDDY_S(2), EDDY_F32, NULL), *y;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y, .output_count = 1};
    must(recorded ? eddy_recorded_run(recorded, call.inputs, (eddy_scalars){0}, &y)
                  : body(g, &call));
    return sum_of(y) + (eddy_requires_grad(y) ? 0.5 : 0) + (eddy_has_grad(g->made) ? 0.25 : 0);
}

Test(kept_before, what_lies_further_off_is_seen) {
    static const struct {
        eddy_recorded_body *body;
        void (*change)(graph *);
        bool has_leaf, is_own;
        int calls;
    } cases[] = {
        {goes_through, hook_made, true, false, 4},
        {goes_through, keep_made, true, false, 5},
        {asks_view, make_view_a_leaf, true, false, 4},
        {uses_view, make_view_a_leaf, false, false, 4},
        {asks_view, make_view_a_leaf, false, true, 4},
        {uses_view, make_view_a_leaf, false, true, 4},
    };
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        eddy_scope *scope = eddy_scope_begin();
        graph g = make_graph(), eager = make_graph();
        must(eddy_requires_grad_set(g.w, cases[k].has_leaf));
        must(eddy_requires_grad_set(eager.w, cases[k].has_leaf));
        eddy_recorded *recorded = eddy_recorded_create(cases[k].body, &g, 1, NULL);
        for (int i = 0; i < 8; i++) {
            if (i == 4) {
                cases[k].change(&g);
                cases[k].change(&eager);
            }
            cr_assert_eq(run_graph(&g, cases[k].body, recorded, cases[k].is_own),
                         run_graph(&eager, cases[k].body, NULL, cases[k].is_own),
                         "case %zu, call %d", k, i);
        }
        cr_assert_eq(g.calls, cases[k].calls, "case %zu: %d", k, g.calls);
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}
