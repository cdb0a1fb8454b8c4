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
