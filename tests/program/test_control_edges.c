/* Branches and loops where a recording could become a wrong program, or where state could be lost. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

static eddy_status nest_deeper(void *context, eddy_list inputs, eddy_tensor **outputs) {
    int *depth = context;
    if (*depth == 70)
        return twice(NULL, inputs, outputs);
    ++*depth;
    eddy_status status =
        eddy_cond(eddy_gt_s(eddy_mean(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(0)),
                  nest_deeper, same, context, inputs, 1, NULL, outputs);
    --*depth;
    return status;
}

Test(control_edges, a_recording_that_is_too_deep_is_spoiled) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y;
    int depth = 0;
    char reason[400];
    must(eddy_record_begin(NULL));
    must(nest_deeper(&depth, EDDY_LIST(x), &y));
    cr_assert_eq(sum_of(y), 6);
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, "cond cannot be part of a program: branches and loops lie too deep "
                             "within each other");
    eddy_record_cancel();
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what leaves its way ---- */

typedef struct leak {
    eddy_tensor *kept; /* the first that a function made: an effect that it should not have */
} leak;

static eddy_status leaks(void *context, eddy_list inputs, eddy_tensor **outputs) {
    leak *l = context;
    eddy_tensor *made = eddy_add_s(inputs.items[0], EDDY_S(100));
    if (!l->kept)
        l->kept = eddy_retain(made);
    return done(outputs, eddy_mul_s(made, EDDY_S(1)));
}

/* used: as an operand, or as an output. */
static void try_leak(bool is_second, bool records_only, bool is_operand, bool is_loop) {
    eddy_scope *scope = eddy_scope_begin();
    leak l = {0};
    eddy_tensor *x = of(1), *y, *predicate = truth(true);
    char reason[400];
    eddy_error error = {0};
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    if (is_loop)
        must(eddy_while(is_large, leaks, &l, EDDY_LIST(x), EDDY_OPTIONS(while, .most_steps = 1),
                        &y));
    else
        must(eddy_cond(predicate, is_second ? same : leaks, is_second ? leaks : same, &l,
                       EDDY_LIST(x), 1, NULL, &y));
    eddy_tensor *z = is_operand ? eddy_neg(l.kept) : l.kept;
    cr_assert_eq(eddy_can_record(reason, sizeof(reason)), !is_operand);
    cr_assert_null(eddy_record_end(EDDY_BINDINGS({"z", z, EDDY_ROLE_OUTPUT})));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, is_operand
                                                 ? "neg cannot be part of a program: it uses "
                                                   "what one way of a branch alone has made"
                                                 : "one way of a branch alone has made z"),
                       "%s", error.message);
    eddy_release(&l.kept);
    eddy_scope_end(scope);
}

Test(control_edges, what_one_way_has_made_does_not_leave_it) {
    for (int i = 0; i < 8; i++)
        try_leak(i & 1, i & 2, i & 4, false);
    for (int i = 0; i < 2; i++)
        try_leak(false, true, i, true);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- saved tensors that a way may overwrite ---- */

static eddy_status overwrites(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_status status = eddy_copy_into(inputs.items[0], context);
    return status == EDDY_OK ? same(NULL, inputs, outputs) : status;
}

Test(control_edges, a_gradient_needs_what_no_way_overwrites) {
    for (int is_before = 0; is_before < 2; is_before++)
        for (int is_late = 0; is_late < 2; is_late++) {
            eddy_scope *scope = eddy_scope_begin();
            eddy_tensor *w = of(2), *cap = of(3), *x = of(10), *y, *loss = NULL, *gradient;
            eddy_tensor *predicate = truth(false);
            eddy_error error = {0};
            eddy_requires_grad_set(w, true);
            if (is_before)
                loss = eddy_sum(eddy_mul(w, cap), EDDY_ALL_AXES, NULL);
            must(eddy_record_begin(NULL));
            if (!is_before && !is_late)
                loss = eddy_sum(eddy_mul(w, cap), EDDY_ALL_AXES, NULL);
            must(eddy_cond(predicate, overwrites, same, cap, EDDY_LIST(x), 1, NULL, &y));
            if (!is_before && is_late)
                loss = eddy_sum(eddy_mul(w, cap), EDDY_ALL_AXES, NULL);
            must(eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(w), (eddy_list){0}, NULL, &gradient));
            cr_assert_eq(sum_of(gradient), 9, "the calls go on");
            eddy_program *program =
                eddy_record_end(EDDY_BINDINGS({"gradient", gradient, EDDY_ROLE_OUTPUT}));
            cr_assert_eq(program != NULL, !is_before && is_late);
            if (!program) {
                eddy_error_take(&error);
                cr_assert_not_null(
                    strstr(error.message, "it needs what a branch or a loop may have overwritten"),
                    "%s", error.message);
            }
            eddy_program_release(&program);
            eddy_scope_end(scope);
        }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- graphs that were there before ---- */

static eddy_status goes_back(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *loss = context;
    return eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(inputs.items[0]), (eddy_list){0}, NULL,
                            outputs);
}

Test(control_edges, a_pass_that_does_not_run_uses_no_graph_up) {
    for (int mode = 0; mode < 3; mode++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *w = of(2), *y, *loss;
        eddy_tensor *predicate = truth(mode == 0);
        eddy_requires_grad_set(w, true);
        loss = eddy_sum(eddy_square(w), EDDY_ALL_AXES, NULL);
        must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = mode == 2)));
        if (mode == 2)
            must(goes_back(loss, EDDY_LIST(w), &y));
        else
            must(eddy_cond(predicate, goes_back, same, loss, EDDY_LIST(w), 1, NULL, &y));
        if (mode == 0)
            cr_assert_eq(sum_of(y), 12);
        eddy_record_cancel();
        if (mode > 0)
            must(eddy_backward(loss));
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- more edges ---- */

Test(control_edges, state_that_a_way_would_have_set_is_as_it_was) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *state = of(5), *y, *out;
    eddy_tensor *index = eddy_full(EDDY_SHAPE(1), EDDY_S(0), EDDY_I64, NULL);
    eddy_error error;
    must(eddy_record_begin(NULL));
    eddy_tensor *chosen = eddy_index_select(x, index, 0);
    must(eddy_cond(eddy_lt_s(chosen, EDDY_S(0)), overwrites, same, state, EDDY_LIST(x), 1, NULL,
                   &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"index", index, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_I64, NULL)),
                          &out));
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(&error);
    must(eddy_recover(EDDY_LIST(state)));
    cr_assert_eq(sum_of(state), 15);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status lends(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)inputs;
    return done(outputs, eddy_from_buffer(context, EDDY_SHAPE(2), EDDY_F32, NULL, NULL, NULL));
}

Test(control_edges, memory_of_the_user_is_copied) {
    eddy_scope *scope = eddy_scope_begin();
    float buffer[2] = {1, 2};
    eddy_tensor *y, *predicate = truth(true);
    must(eddy_cond(predicate, lends, lends, buffer, (eddy_list){0}, 1, NULL, &y));
    must(eddy_mul_s_inplace(y, EDDY_S(10)));
    cr_assert_eq(sum_of(y), 30);
    cr_assert_eq(buffer[0], 1);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status constants(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *zeros = eddy_zeros(EDDY_SHAPE(3), EDDY_F32, NULL);
    return done(outputs, eddy_add(inputs.items[0], eddy_exp(zeros)));
}

Test(control_edges, what_may_never_run_is_not_folded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *y, *z;
    eddy_program_info info = {.size = sizeof(info)};
    eddy_tensor *predicate = truth(true);
    must(eddy_record_begin(EDDY_OPTIONS(record, .passes = "dead,fold")));
    must(eddy_cond(predicate, constants, same, NULL, EDDY_LIST(x), 1, NULL, &y));
    must(constants(NULL, EDDY_LIST(x), &z));
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT},
                                              {"z", z, EDDY_ROLE_OUTPUT}));
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.recorded_count, 11);
    cr_assert_eq(info.instruction_count, 9, "zeros and exp behind the branch are folded");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_edges, reasons_are_those_of_the_calls) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *out[2];
    eddy_tensor *predicate = truth(true);
    char reason[400];
    eddy_error error;
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    cr_assert_eq(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x), 2, NULL, out),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "cond: the function has not set outputs[1]");
    cr_assert_not(eddy_can_record(reason, sizeof(reason)));
    cr_assert_str_eq(reason, "cond cannot be part of a program: cond: the function has not set "
                             "outputs[1]");
    eddy_record_cancel();
    must(eddy_record_begin(NULL));
    must(eddy_cond(predicate, late, late, NULL, EDDY_LIST(x), 1, NULL, out));
    cr_assert_null(eddy_record_end(NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED, "%s", error.message);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- loops ---- */

static eddy_status two_left(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(inputs.items[0], EDDY_S(0)));
}

static eddy_status one_less(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_sub_s(inputs.items[0], EDDY_S(1)));
}

/* A step with a loop of two steps, which may have three. */
static eddy_status inner_loop(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *left;
    eddy_status status = eddy_while(two_left, one_less, context, EDDY_LIST(scalar(2)),
                                    EDDY_OPTIONS(while, .most_steps = 3), &left);
    outputs[0] = status == EDDY_OK ? eddy_sub_s(eddy_sub(inputs.items[0], left), EDDY_S(1)) : NULL;
    return status;
}

Test(control_edges, a_loop_counts_its_steps_anew) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = scalar(5), *y, *out;
    must(eddy_record_begin(NULL));
    must(eddy_while(two_left, inner_loop, NULL, EDDY_LIST(x), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < 3; i++) {
        must(eddy_program_run(program, EDDY_LIST(scalar(20)), &out));
        cr_assert_eq(sum_of(out), 0);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* (count, sum) -> (count - 1, sum - context) */
static eddy_status add_neg(void *context, eddy_list inputs, eddy_tensor **outputs) {
    outputs[0] = eddy_sub_s(inputs.items[0], EDDY_S(1));
    outputs[1] = eddy_add(inputs.items[1], eddy_neg(context));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(control_edges, a_step_finds_what_the_one_before_has_found) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(1), *count = scalar(3), *out[2], *result;
    must(eddy_record_begin(NULL));
    eddy_tensor *found = eddy_mul_s(x, EDDY_S(2));
    must(eddy_while(two_left, add_neg, found, EDDY_LIST(count, x), NULL, out));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"count", count, EDDY_ROLE_INPUT},
                          {"sum", out[1], EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < 6; i++) {
        must(eddy_program_run(program, EDDY_LIST(of(1), scalar(i)), &result));
        cr_assert_eq(sum_of(result), 3 - 6 * i);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- hooks, other runtimes, a shutdown in between ---- */

static eddy_tensor *times_five(void *context, eddy_tensor *grad) {
    (void)context;
    eddy_tensor *made = eddy_mul_s(grad, EDDY_S(5));
    eddy_retain(made);
    return made;
}

static eddy_status with_hook(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_tensor *inner = eddy_mul_s(inputs.items[0], EDDY_S(3));
    must(eddy_grad_hook_add(inner, times_five, NULL, NULL));
    return done(outputs, eddy_mul_s(inner, EDDY_S(2)));
}

Test(control_edges, a_hook_within_a_way_runs_as_without_a_recording) {
    for (int is_due = 0; is_due < 2; is_due++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = of(1), *y, *predicate = truth(is_due);
        eddy_error error;
        eddy_requires_grad_set(x, true);
        must(eddy_record_begin(NULL));
        must(eddy_cond(predicate, with_hook, twice, NULL, EDDY_LIST(x), 1, NULL, &y));
        must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
        cr_assert_eq(sum_of(eddy_grad_of(x)), is_due ? 3 * 2 * 3 * 5 : 6);
        cr_assert_null(eddy_record_end(NULL));
        cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED, "%s", error.message);
        cr_assert_not_null(strstr(error.message, "hook"), "%s", error.message);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

typedef struct seen {
    eddy_tensor *w;
    bool is_kept;               /* its gradient is kept, instead of a hook added */
    int runs, calls, destroyed; /* of the hook */
} seen;

static eddy_tensor *counts_runs(void *context, eddy_tensor *grad) {
    (void)grad;
    ((seen *)context)->runs++;
    return NULL;
}

static void counts_destroyed(void *context) {
    ((seen *)context)->destroyed++;
}

static eddy_status watches_outside(void *context, eddy_list inputs, eddy_tensor **outputs) {
    seen *s = context;
    s->calls++;
    eddy_status status = s->is_kept ? eddy_grad_keep(s->w)
                                    : eddy_grad_hook_add(s->w, counts_runs, s, counts_destroyed);
    return status == EDDY_OK ? twice(NULL, inputs, outputs) : status;
}

Test(control_edges, a_way_watches_gradients_outside_only_where_it_is_due) {
    for (int i = 0; i < 4; i++) {
        bool is_due = i & 1, is_kept = i & 2;
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *leaf = of(1), *y, *predicate = truth(is_due);
        char reason[400];
        eddy_requires_grad_set(leaf, true);
        seen s = {.w = eddy_mul_s(leaf, EDDY_S(3)), .is_kept = is_kept};
        must(eddy_record_begin(NULL));
        must(eddy_cond(predicate, watches_outside, twice, &s, EDDY_LIST(s.w), 1, NULL, &y));
        must(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)));
        cr_assert_eq(s.runs, is_due && !is_kept);
        cr_assert_eq(eddy_has_grad(s.w), is_due && is_kept);
        cr_assert_not(eddy_can_record(reason, sizeof(reason)));
        cr_assert_not_null(
            strstr(reason, "cannot be part of a program: who sees a gradient would depend on a "
                           "branch or a loop"),
            "%s", reason);
        eddy_record_cancel();
        eddy_scope_end(scope);
        cr_assert_eq(s.destroyed, is_kept ? 0 : s.calls);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_edges, a_predicate_of_another_runtime_spoils_the_recording) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *other = eddy_runtime_create(NULL);
    eddy_tensor *x = of(1), *y;
    eddy_error error;
    must(eddy_runtime_use(other));
    /* Numbers of storages that the first runtime does not have. */
    eddy_tensor *many[300], *predicate;
    for (int i = 0; i < 300; i++)
        many[i] = scalar(i);
    predicate = eddy_gt_s(many[299], EDDY_S(0));
    must(eddy_runtime_use(NULL));
    must(eddy_record_begin(NULL));
    must(eddy_cond(predicate, twice, half, NULL, EDDY_LIST(x), 1, NULL, &y));
    cr_assert_eq(sum_of(y), 6);
    cr_assert_null(eddy_record_end(EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT})));
    cr_assert_eq(eddy_error_take(&error), EDDY_RUNTIME_MISMATCH, "%s", error.message);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
}

static eddy_status shuts_down(void *context, eddy_list inputs, eddy_tensor **outputs) {
    int *calls = context;
    eddy_status status = twice(NULL, inputs, outputs);
    if (++*calls == 2)
        must(eddy_runtime_shutdown(eddy_runtime_of(inputs.items[0]), EDDY_FOREVER));
    return status;
}

/* Once noted, once run: the runtime is gone when the result is shown to the recording. */
Test(control_edges, a_function_shuts_the_runtime_down) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_runtime *other = eddy_runtime_create(NULL);
    int calls = 0;
    eddy_error error;
    must(eddy_runtime_use(other));
    eddy_tensor *x = of(1), *y, *predicate = truth(true);
    must(eddy_record_begin(NULL));
    (void)!eddy_cond(predicate, shuts_down, half, &calls, EDDY_LIST(x), 1, NULL, &y);
    eddy_error_take(NULL);
    cr_assert_eq(calls, 2);
    cr_assert_null(eddy_record_end(NULL));
    cr_assert_eq(eddy_error_take(&error), EDDY_SHUT_DOWN, "%s", error.message);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&other);
}

/* ---- what no run would do again ---- */

static eddy_status restores(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_status status = eddy_generator_restore(eddy_generator_default(), 77, 5);
    return status == EDDY_OK ? twice(NULL, inputs, outputs) : status;
}

static eddy_status chooses(void *context, eddy_recorded_call *call) {
    return eddy_cond(context, restores, same, NULL, call->inputs, 1, NULL, call->outputs);
}

/* In a recorded function, which runs on: where the way is due, and not where it is only recorded. */
Test(control_edges, a_way_restores_a_generator_only_where_it_is_due) {
    for (int is_due = 0; is_due < 2; is_due++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_recorded *recorded = eddy_recorded_create(chooses, truth(is_due), 1, NULL);
        for (int i = 0; i < 4; i++) {
            uint64_t seed, counter;
            eddy_tensor *y;
            must(eddy_generator_restore(eddy_generator_default(), 3, 100));
            must(eddy_recorded_run(recorded, EDDY_LIST(of(1)), (eddy_scalars){0}, &y));
            cr_assert_eq(sum_of(y), is_due ? 6 : 3);
            must(eddy_generator_state(eddy_generator_default(), &seed, &counter));
            cr_assert(is_due ? seed == 77 && counter == 5 : seed == 3 && counter == 100,
                      "call %d: %llu, %llu", i, (unsigned long long)seed,
                      (unsigned long long)counter);
        }
        eddy_recorded_release(&recorded);
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- inputs that a function gives up ---- */

static eddy_status gives_up(void *context, eddy_list inputs, eddy_tensor **outputs) {
    const int *which = context;
    eddy_tensor *input = inputs.items[*which];
    outputs[0] = eddy_mul_s(inputs.items[0], EDDY_S(0.5));
    eddy_release(&input);
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_status call_loop(int kind, int which, eddy_tensor *x, eddy_tensor *xs,
                             eddy_tensor **y) {
    if (kind == 0)
        return eddy_while(is_large, gives_up, &which, EDDY_LIST(x),
                          EDDY_OPTIONS(while, .most_steps = 9), y);
    return eddy_scan(gives_up, &which, EDDY_LIST(x), EDDY_LIST(xs), 1,
                     EDDY_OPTIONS(scan, .is_rolled = kind == 2), y);
}

static void release_is_refused(void) {
    expect_error(EDDY_INVALID_ARGUMENT, "release: a function does not release its inputs, which "
                                        "belong to its caller");
}

/* mode: calls alone, recorded calls, recorded calls that do not run. */
static void try_gives_up(int kind, int which, int mode, bool with_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(4), *xs = of(2), *y = NULL;
    eddy_requires_grad_set(x, with_gradient);
    if (mode > 0)
        must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = mode == 2)));
    cr_assert_eq(call_loop(kind, which, x, xs, &y), EDDY_OK);
    if (mode < 2) {
        release_is_refused();
        cr_assert_eq(sum_of(y), kind == 0 ? 3 : 1.5);
    }
    eddy_record_cancel();
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(control_edges, a_loop_keeps_what_its_body_releases) {
    for (int kind = 0; kind < 3; kind++)
        for (int mode = 0; mode < 3; mode++)
            for (int i = 0; i < 4; i++)
                if (kind > 0 || i < 2)
                    try_gives_up(kind, i / 2, mode, i & 1);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_edges, a_branch_keeps_what_a_way_releases) {
    for (int i = 0; i < 6; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *x = of(4), *y = NULL, *predicate = truth(true);
        int which = 0, mode = i / 2;
        if (i & 1)
            x = eddy_scope_return(scope, x);
        if (mode > 0)
            must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = mode == 2)));
        cr_assert_eq(eddy_cond(predicate, gives_up, same, &which, EDDY_LIST(x), 1, NULL, &y),
                     EDDY_OK);
        if (mode < 2 && i & 1)
            release_is_refused();
        eddy_error_take(NULL);
        if (mode < 2)
            cr_assert_eq(sum_of(y), 6);
        eddy_record_cancel();
        eddy_error_take(NULL);
        if (i & 1) {
            cr_assert_eq(sum_of(x), 12);
            eddy_release(&x);
        }
        eddy_scope_end(scope);
    }
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- what no step writes ---- */

/* Gives its first tensor as it is, and twice the second one. */
static eddy_status first_stays(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = inputs.items[0];
    return done(outputs + 1, eddy_mul_s(inputs.items[1], EDDY_S(2)));
}

/* The same bits where the loop ends, and nothing where it fails: as it would not come to an end in time, or as it is not known whether it has. */
static void try_first_stays(bool has_gradient, bool records_only) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = of(0), *z = of(1), *y[2];
    int64_t at = 3;
    eddy_error error;
    must(eddy_requires_grad_set(z, has_gradient));
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = records_only)));
    must(eddy_while(is_large, first_stays, NULL, EDDY_LIST(x, z),
                    EDDY_OPTIONS(while, .most_steps = 3), y));
    const eddy_bindings *bindings =
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_INPUT},
                      {"y", y[0], EDDY_ROLE_OUTPUT}, {"t", y[1], EDDY_ROLE_OUTPUT});
    eddy_program *program = has_gradient ? eddy_record_end_with_grad(bindings) : end(bindings);
    must(EDDY_OK);
    must(eddy_program_run(program, EDDY_LIST(of(-0.0), z), y));
    must_have_same_bits(y[0], of(-0.0), "no step");
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        eddy_tensor *large = of(5);
        if (is_bad)
            large = eddy_squeeze(
                eddy_index_select(eddy_expand(large, EDDY_SHAPE(1, 3)),
                                  eddy_from_data(&at, EDDY_SHAPE(1), EDDY_I64, NULL), 0),
                EDDY_AXES(0));
        must(eddy_program_run(program, EDDY_LIST(large, z), y));
        for (int i = 0; i < 2; i++) {
            float values[3];
            cr_assert_eq(eddy_read(y[i], values, sizeof(values), NULL),
                         is_bad ? EDDY_OUT_OF_RANGE : EDDY_INVALID_ARGUMENT, "output %d", i);
            eddy_error_take(&error);
            cr_assert_str_eq(error.op, is_bad ? "index_select" : "loop_while");
        }
    }
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_edges, what_no_step_writes_is_lost_where_a_loop_fails) {
    for (int i = 0; i < 4; i++)
        try_first_stays(i & 1, i & 2);
}

#define OFTEN 300 /* more than there are records of errors */

static eddy_status is_early(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_lt_s(inputs.items[0], EDDY_S(OFTEN)));
}

/* What fails is used by no one. */
static eddy_status fails_beside(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)eddy_index_select(of(1), context, 0);
    return done(outputs, eddy_add_s(inputs.items[0], EDDY_S(1)));
}

/* It has one number, whatever steps it fails in, and one record: those of others stay. */
Test(control_edges, a_call_that_fails_in_each_step_has_one_error) {
    eddy_scope *scope = eddy_scope_begin();
    int64_t at = 99;
    eddy_tensor *bad = eddy_from_data(&at, EDDY_SHAPE(1), EDDY_I64, NULL), *count = scalar(0), *y;
    eddy_tensor *others[] = {eddy_index_select(of(1), bad, 0), eddy_index_select(of(1), bad, 0)};
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    must(eddy_while(is_early, fails_beside, bad, EDDY_LIST(count), NULL, &y));
    eddy_program *program =
        end(EDDY_BINDINGS({"count", count, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(count), &y));
    cr_assert_eq(sum_of(y), OFTEN);
    eddy_error errors[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(eddy_error_of(others[i], EDDY_FOREVER, &errors[i]), EDDY_OUT_OF_RANGE);
    cr_assert_str_eq(errors[0].message, errors[1].message);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
