/* Programs as nodes of the tape: what is refused, what fails late, and what is left behind. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <string.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

static void expect_part(eddy_status status, const char *part) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, part), "%s", error.message);
}

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(2, 3), EDDY_S(value), EDDY_F32, NULL);
}

static double grad_of(eddy_tensor *x) {
    return sum_of(eddy_grad_of(x));
}

/* y = tanh(x w) w, of a captured w. */
static eddy_tensor *compute(eddy_tensor *x, eddy_tensor *w) {
    return eddy_mul(eddy_tanh(eddy_mul(x, w)), w);
}

static eddy_program *end(eddy_tensor *x, eddy_tensor *y) {
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    return program;
}

static eddy_program *record(eddy_tensor *x, eddy_tensor *w) {
    must(eddy_record_begin(NULL));
    eddy_program *program = end(x, compute(x, w));
    must(EDDY_OK);
    cr_assert_not_null(program);
    return program;
}

static eddy_tensor *run(eddy_program *program, eddy_tensor *x) {
    eddy_tensor *y = NULL;
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    return y;
}

static eddy_status back(eddy_tensor *y, bool keeps) {
    eddy_backward_options options = {.size = sizeof(options), .keeps_graph = keeps};
    return eddy_backward_from(EDDY_LIST(eddy_sum(y, EDDY_ALL_AXES, NULL)), (eddy_list){0},
                              &options);
}

/* ---- the tape ---- */

Test(gradient_errors, a_program_says_what_its_runs_keep) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = leaf(filled(1));
    eddy_program_info info = {.size = sizeof(info)};
    eddy_program *program = record(x, w);
    must(eddy_program_describe(program, &info));
    cr_assert_eq(info.grad_count, 2);
    cr_assert_eq(info.saved_bytes, 24, "the result of tanh; x and w were there before");
    cr_assert_eq(info.instruction_count, 3);
    cr_assert_eq(info.output_count, 1);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, several_runs_before_one_backward_pass) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *other = filled(2);
    eddy_program *program = record(x, w);
    must(back(eddy_add(compute(x, w), compute(other, w)), false));
    double calls = grad_of(w);
    must(eddy_grads_zero(EDDY_LIST(w)));
    must(back(eddy_add(run(program, x), run(program, other)), false));
    cr_assert_eq(grad_of(w), calls);
    must(back(run(program, x), false));
    cr_assert_gt(grad_of(w), calls, "a later pass adds");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, goes_back_twice_where_the_graph_is_kept) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    eddy_program *program = record(x, w);
    eddy_tensor *y = run(program, x);
    must(back(y, true));
    double once = grad_of(w);
    must(back(y, false));
    cr_assert_eq(grad_of(w), 2 * once);
    cr_assert_eq(back(y, false), EDDY_INVALID_ARGUMENT);
    expect_part(EDDY_INVALID_ARGUMENT, "was given up");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, the_node_outlives_its_program) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = leaf(filled(1));
    eddy_program *program = record(x, w);
    must(back(compute(x, w), false));
    double in = grad_of(x), of = grad_of(w);
    must(eddy_grads_zero(EDDY_LIST(w, x)));
    eddy_tensor *y = run(program, x);
    eddy_program_release(&program);
    must(back(y, false));
    cr_assert_eq(grad_of(x), in);
    cr_assert_eq(grad_of(w), of);
    expect_nothing_left(scope);
}

static eddy_tensor *unchanged(void *context, eddy_tensor *gradient) {
    (void)context;
    (void)gradient;
    return NULL;
}

static eddy_status negate(eddy_forward_call *call) {
    call->outputs[0] = eddy_neg(call->inputs[0]);
    return EDDY_OK;
}

static eddy_status negate_back(eddy_backward_call *call) {
    call->results[0] = eddy_neg(call->grads[0]);
    return EDDY_OK;
}

/* A call that a run cannot be unfolded into. */
static eddy_tensor *negated(eddy_tensor *x) {
    static const eddy_function function = {.size = sizeof(function),
                                           .name = "user.negate",
                                           .forward = negate,
                                           .backward = negate_back,
                                           .output_count = 1};
    eddy_tensor *y = NULL;
    must(eddy_function_call(&function, NULL, EDDY_LIST(x), &y));
    return y;
}

/* y is computed from h, and both are outputs: what comes back to h from y is seen by nobody, as passes cannot go through the calls. */
Test(gradient_errors, a_gradient_that_stays_within_a_run_is_not_looked_at) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *outputs[3], *gradient;
    must(eddy_record_begin(NULL));
    eddy_tensor *h = eddy_mul(x, w), *y = eddy_square(h), *apart = negated(w);
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"h", h, EDDY_ROLE_OUTPUT},
                      {"y", y, EDDY_ROLE_OUTPUT}, {"apart", apart, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    cr_assert_eq(eddy_grad_keep(outputs[0]), EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "another of its outputs was computed from it");
    cr_assert_eq(eddy_grad_hook_add(outputs[0], unchanged, NULL, NULL), EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "another of its outputs was computed from it");
    eddy_tensor *loss = eddy_sum(outputs[1], EDDY_ALL_AXES, NULL);
    cr_assert_eq(
        eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(outputs[0]), (eddy_list){0}, NULL, &gradient),
        EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "another of its outputs was computed from it");
    for (int i = 1; i < 3; i++) {
        must(eddy_grad_keep(outputs[i]));
        must(eddy_grad_hook_add(outputs[i], unchanged, NULL, NULL));
    }
    must(back(outputs[1], false));
    cr_assert_eq(grad_of(w), 6 * 2 * 0.5);
    cr_assert(eddy_has_grad(outputs[1]) && !eddy_has_grad(outputs[2]));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* A run whose outputs nobody takes is no op of the tape. */
Test(gradient_errors, a_run_into_nothing_wants_no_gradient) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = leaf(filled(1)), *none = EDDY_NONE;
    eddy_program *program = record(x, w);
    must(eddy_program_run_into(program, EDDY_LIST(x), (eddy_list){&none, 1}));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, an_output_written_in_place_is_noticed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_program *program = end(x, eddy_tanh(eddy_mul(x, w)));
    must(EDDY_OK);
    eddy_tensor *y = run(program, x);
    must(eddy_mul_into(y, x, y));
    cr_assert_eq(back(y, false), EDDY_INVALID_ARGUMENT);
    expect_part(EDDY_INVALID_ARGUMENT, "written to in place");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, a_captured_tensor_written_since_is_noticed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = leaf(filled(1));
    eddy_program *program = record(x, w);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *y = run(program, x), *written = i ? x : w;
        eddy_no_grad_begin();
        must(eddy_mul_into(written, filled(2), written));
        eddy_no_grad_end();
        cr_assert_eq(back(y, false), EDDY_INVALID_ARGUMENT);
        expect_part(EDDY_INVALID_ARGUMENT, "what program had saved");
    }
    must(back(run(program, x), false));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* The written tensor refers to the run's node, which must not refer to it. */
Test(gradient_errors, a_captured_tensor_that_goes_back_through_a_run_does_not_hold_itself) {
    for (int reads = 0; reads < 2; reads++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *w = leaf(filled(0.5)), *state = filled(1), *x = filled(2);
        must(eddy_record_begin(NULL));
        eddy_tensor *y = reads ? eddy_mul(eddy_mul(x, w), state) : eddy_add(eddy_mul(x, w), state);
        eddy_program *program = end(x, y);
        must(EDDY_OK);
        must(eddy_add_into(state, run(program, x), state));
        eddy_program_release(&program);
        if (reads)
            cr_assert_eq(back(state, false), EDDY_INVALID_ARGUMENT, "what it read is overwritten");
        else
            must(back(state, false));
        eddy_error_take(NULL);
        expect_nothing_left(scope);
    }
}

/* A custom function whose backward pass writes, or reads a tensor of its own. */
typedef struct custom {
    eddy_tensor *factor;
    bool writes;
} custom;

static eddy_status custom_forward(eddy_forward_call *call) {
    call->outputs[0] = eddy_tanh(call->inputs[0]);
    return EDDY_OK;
}

static eddy_status custom_backward(eddy_backward_call *call) {
    custom *c = call->context;
    call->results[0] = eddy_mul(call->grads[0], c->factor);
    return c->writes ? eddy_add_into(c->factor, c->factor, c->factor) : EDDY_OK;
}

static const eddy_function custom_function = {.size = sizeof(custom_function),
                                              .name = "user.custom",
                                              .output_count = 1,
                                              .forward = custom_forward,
                                              .backward = custom_backward};

static eddy_tensor *call_custom(custom *c, eddy_tensor *x) {
    eddy_tensor *y = NULL;
    must(eddy_function_call(&custom_function, c, EDDY_LIST(x), &y));
    return y;
}

Test(gradient_errors, custom_functions_within) {
    eddy_scope *scope = eddy_scope_begin();
    custom c = {.factor = filled(3)};
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_program *program = end(x, call_custom(&c, eddy_mul(x, w)));
    must(EDDY_OK);
    must(back(run(program, filled(2)), false));
    cr_assert_eq(grad_of(w), 6 * 2 * 3);
    eddy_program_release(&program);
    c.writes = true;
    must(eddy_record_begin(NULL));
    cr_assert_null(end(x, call_custom(&c, eddy_mul(x, w))));
    expect_part(EDDY_UNSUPPORTED, "writes to a tensor that it has not made");
    expect_nothing_left(scope);
}

static eddy_tensor *doubles(void *context, eddy_tensor *grad) {
    ++*(int *)context;
    return eddy_mul_s(grad, EDDY_S(2));
}

Test(gradient_errors, hooks_of_leaves_see_what_comes_out_of_a_run) {
    eddy_scope *scope = eddy_scope_begin();
    int count = 0;
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    must(eddy_grad_hook_add(w, doubles, &count, NULL));
    eddy_program *program = record(x, w);
    cr_assert_eq(count, 0, "recording runs no hook");
    must(back(compute(x, w), false));
    double calls = grad_of(w);
    must(eddy_grads_zero(EDDY_LIST(w)));
    must(back(run(program, x), false));
    cr_assert_eq(grad_of(w), calls);
    cr_assert_eq(count, 2);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, of_a_tensor_in_between) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *u = leaf(filled(0.25)), *x = filled(1), *grad;
    eddy_tensor *h = eddy_mul(x, u);
    eddy_program *program = record(h, w);
    eddy_tensor *other = eddy_mul(x, u), *y = eddy_sum(run(program, other), EDDY_ALL_AXES, NULL);
    must(eddy_backward_to(EDDY_LIST(y), EDDY_LIST(other), (eddy_list){0}, NULL, &grad));
    cr_assert(!eddy_has_grad(w), "no leaf is changed");
    double into = sum_of(grad);
    must(back(compute(eddy_mul(x, u), w), false));
    cr_assert_eq(grad_of(u), into, "x is one everywhere");
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, without_the_tape_a_run_is_a_run) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    eddy_program *program = record(x, w);
    eddy_no_grad_begin();
    eddy_tensor *y = run(program, x);
    eddy_no_grad_end();
    cr_assert(!eddy_requires_grad(y));
    cr_assert_eq(sum_of(y), sum_of(compute(x, w)));
    cr_assert(eddy_requires_grad(run(program, x)));
    eddy_tensor *fetched = NULL;
    must(
        eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &fetched}), NULL));
    cr_assert(eddy_requires_grad(fetched));
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), (eddy_fetches){0}, NULL));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- what is refused ---- */

Test(gradient_errors, an_input_that_wants_a_gradient_only_now) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *y = NULL;
    eddy_program *program = record(x, w);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(leaf(filled(2))), &y), EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "input x wants a gradient");
    cr_assert_null(y);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

Test(gradient_errors, tensors_that_are_given_to_a_run) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *target = filled(0), *other = filled(2);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = compute(x, w);
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    cr_assert_eq(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(target)), EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "y is given");
    cr_assert_eq(eddy_program_run_named(program, EDDY_FEEDS({"x", x}, {"w", other}),
                                        EDDY_FETCHES({"y", &y}), NULL),
                 EDDY_UNSUPPORTED);
    expect_part(EDDY_UNSUPPORTED, "w is given");
    eddy_no_grad_begin();
    must(eddy_program_run_into(program, EDDY_LIST(x), EDDY_LIST(target)));
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}, {"w", other}),
                                EDDY_FETCHES({"y", &y}), NULL));
    eddy_no_grad_end();
    cr_assert_eq(sum_of(target), sum_of(compute(x, w)));
    cr_assert_eq(sum_of(y), sum_of(compute(x, other)));
    must(back(run(program, x), false));
    must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &y}), NULL));
    cr_assert(eddy_requires_grad(y));
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* What depends on constants alone is folded, also where a way back reads it. */
Test(gradient_errors, constants_within) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *scale = filled(3);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mul(eddy_mul(x, w), eddy_exp(scale));
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"scale", scale, EDDY_ROLE_CONSTANT},
                      {"y", y, EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    must(back(eddy_mul(eddy_mul(filled(2), w), eddy_exp(scale)), false));
    double calls = grad_of(w);
    for (int i = 0; i < 2; i++) {
        must(eddy_grads_zero(EDDY_LIST(w)));
        must(back(run(program, filled(2)), false));
        cr_assert_eq(grad_of(w), calls);
    }
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

static void expect_refused(eddy_tensor *x, eddy_tensor *y, eddy_status status, const char *part) {
    cr_assert_null(end(x, y));
    expect_part(status, part);
    char reason[64];
    cr_assert(!eddy_can_record(reason, sizeof(reason)), "the recording has ended");
}

Test(gradient_errors, recordings_without_a_way_back) {
    eddy_scope *scope = eddy_scope_begin();
    int count = 0;
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1), *y, *before;
    must(eddy_record_begin(NULL));
    expect_refused(x, eddy_tanh(x), EDDY_INVALID_ARGUMENT, "no output carries a gradient");
    must(eddy_record_begin(NULL));
    compute(x, w);
    expect_refused(x, w, EDDY_INVALID_ARGUMENT, "no output carries a gradient");
    must(eddy_record_begin(NULL));
    y = compute(x, w);
    must(eddy_grad_hook_add(y, doubles, &count, NULL));
    expect_refused(x, y, EDDY_UNSUPPORTED, "has a hook");
    must(eddy_record_begin(NULL));
    y = compute(x, w);
    must(eddy_grad_keep(y));
    expect_refused(x, y, EDDY_UNSUPPORTED, "keeps its gradient");
    must(eddy_record_begin(NULL));
    y = compute(x, leaf(eddy_clone(x)));
    expect_refused(x, y, EDDY_UNSUPPORTED, "a gradient of its own");
    before = eddy_mul(x, w);
    must(eddy_record_begin(NULL));
    must(eddy_add_into(before, w, before));
    expect_refused(x, eddy_tanh(before), EDDY_UNSUPPORTED, "writes in place");
    must(eddy_record_begin(NULL));
    y = eddy_tanh(eddy_mul(x, w));
    before = eddy_square(y);
    eddy_no_grad_begin();
    must(eddy_copy_into(x, y));
    eddy_no_grad_end();
    expect_refused(x, before, EDDY_INVALID_ARGUMENT, "written to in place");
    must(eddy_record_begin(NULL));
    y = compute(x, w);
    must(back(y, false));
    expect_refused(x, y, EDDY_INVALID_ARGUMENT, "was given up");
    cr_assert_eq(eddy_record_end_with_grad(NULL), NULL);
    expect_part(EDDY_INVALID_ARGUMENT, "no recording is open");
    cr_assert_eq(count, 0);
    expect_nothing_left(scope);
}

/* ---- late failures ---- */

static eddy_tensor *places(int64_t second) {
    int64_t at[2] = {1, second};
    return eddy_from_data(at, EDDY_SHAPE(2), EDDY_I64, NULL);
}

/* A look-up that may fail, beside a result that does not depend on it. */
static void look_up(eddy_tensor *at, eddy_tensor *w, eddy_tensor *u, eddy_tensor **y) {
    y[0] = eddy_tanh(eddy_index_select(w, at, 0));
    y[1] = eddy_exp(u);
}

static eddy_status status_of(eddy_tensor *tensor, eddy_error *error) {
    eddy_status status = eddy_error_of(tensor, EDDY_FOREVER, error);
    eddy_error_take(NULL);
    return status;
}

static void expect_same_error(eddy_tensor *a, eddy_tensor *b) {
    eddy_error x = {0}, y = {0};
    cr_assert_eq(status_of(a, &x), status_of(b, &y));
    cr_assert_str_eq(x.message, y.message);
    cr_assert_str_eq(x.op, y.op);
    if (x.status == EDDY_OK)
        cr_assert_eq(sum_of(a), sum_of(b));
}

/* Results, and gradients, of calls where program is NULL. */
static void back_through(eddy_program *program, eddy_tensor *at, eddy_tensor *w, eddy_tensor *u,
                         eddy_tensor *scale, eddy_tensor **found) {
    eddy_tensor *y[2];
    must(eddy_grads_zero(EDDY_LIST(w, u)));
    if (program)
        must(eddy_program_run(program, EDDY_LIST(at), y));
    else
        look_up(at, w, u, y);
    must(eddy_backward(eddy_add(eddy_sum(eddy_mul(y[0], scale), EDDY_ALL_AXES, NULL),
                                eddy_sum(y[1], EDDY_ALL_AXES, NULL))));
    found[0] = y[0];
    found[1] = y[1];
    found[2] = eddy_grad_of(w);
    found[3] = eddy_grad_of(u);
    must(EDDY_OK);
}

Test(gradient_errors, late_failures_go_where_those_of_calls_go) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(eddy_ones(EDDY_SHAPE(4, 3), EDDY_F32, NULL)), *u = leaf(filled(0.5));
    eddy_tensor *good = places(2), *y[2], *one = filled(1);
    must(eddy_record_begin(NULL));
    look_up(good, w, u, y);
    eddy_program *program = eddy_record_end_with_grad(EDDY_BINDINGS({"at", good, EDDY_ROLE_INPUT},
                                                                    {"y", y[0], EDDY_ROLE_OUTPUT},
                                                                    {"z", y[1], EDDY_ROLE_OUTPUT}));
    must(EDDY_OK);
    cr_assert_not_null(program);
    for (int bad = 0; bad < 4; bad++) {
        /* The forward pass, the gradient that comes back, or both. */
        eddy_tensor *at = bad & 1 ? places(9) : places(3);
        eddy_tensor *scale = bad & 2 ? eddy_index_select(one, places(7), 0) : one;
        eddy_tensor *calls[4], *runs[4];
        back_through(NULL, at, w, u, scale, calls);
        back_through(program, at, w, u, scale, runs);
        for (int i = 0; i < 4; i++)
            expect_same_error(calls[i], runs[i]);
        eddy_error error = {0};
        cr_assert_eq(status_of(runs[2], &error), bad ? EDDY_OUT_OF_RANGE : EDDY_OK);
        cr_assert_eq(status_of(runs[3], &error), EDDY_OK);
        eddy_error_take(NULL);
    }
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}

/* ---- another thread ---- */

static void *go_back_there(void *loss) {
    eddy_status status = eddy_backward(loss);
    eddy_error_take(NULL);
    return (void *)(intptr_t)status;
}

Test(gradient_errors, another_thread_goes_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(filled(0.5)), *x = filled(1);
    must(eddy_seed(3));
    must(eddy_record_begin(NULL));
    eddy_program *program = end(x, eddy_dropout(compute(x, w), EDDY_S(0.5), NULL));
    must(EDDY_OK);
    must(eddy_seed(3));
    must(back(eddy_dropout(compute(x, w), EDDY_S(0.5), NULL), false));
    double calls = grad_of(w);
    must(eddy_grads_zero(EDDY_LIST(w)));
    must(eddy_seed(3));
    eddy_tensor *loss = eddy_sum(run(program, x), EDDY_ALL_AXES, NULL);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, go_back_there, loss);
    pthread_join(thread, &result);
    cr_assert_eq((intptr_t)result, EDDY_OK);
    cr_assert_eq(grad_of(w), calls);
    eddy_program_release(&program);
    expect_nothing_left(scope);
}
