/* Functions and ops with a gradient of the program's own. */
#include "taped.h"

#include <math.h>

#define F64(shape, ...) eddy_from_data((double[]){__VA_ARGS__}, shape, EDDY_F64, NULL)

#define CASE(name) TAPED_TEST(function, name)

static double item(eddy_tensor *tensor, int i) {
    double values[8];
    cr_assert_eq(eddy_read(tensor, values, (size_t)eddy_count_of(tensor) * sizeof(double), NULL),
                 EDDY_OK);
    return values[i];
}

/* ---- e^(a b), of which the result is saved, and a + b beside it ---- */

typedef struct counters {
    int forwards, backwards, destroyed;
    bool fails;
} counters;

static eddy_status product_forward(eddy_forward_call *call) {
    counters *c = call->context;
    c->forwards++;
    if (c->fails)
        return EDDY_UNSUPPORTED;
    eddy_tensor *a = call->inputs[0], *b = call->inputs[1];
    call->outputs[0] = eddy_exp(eddy_mul(a, b));
    call->outputs[1] = eddy_add(a, b);
    if (!call->outputs[0] || !call->outputs[1])
        return EDDY_OUT_OF_MEMORY;
    return eddy_forward_save(call, EDDY_LIST(call->outputs[0], a, b));
}

static eddy_status product_backward(eddy_backward_call *call) {
    counters *c = call->context;
    c->backwards++;
    cr_assert_eq(call->saved_count, 3);
    cr_assert(call->input_count == 2 && call->output_count == 2);
    eddy_tensor *inner = eddy_mul(call->grads[0], call->saved[0]);
    for (int i = 0; i < 2; i++)
        if (call->is_wanted[i])
            call->results[i] = eddy_add(eddy_mul(inner, call->saved[2 - i]), call->grads[1]);
    return EDDY_OK;
}

static void forget(void *context) {
    ((counters *)context)->destroyed++;
}

static const eddy_function product = {.size = sizeof(product),
                                      .name = "product",
                                      .output_count = 2,
                                      .forward = product_forward,
                                      .backward = product_backward,
                                      .destroy = forget};

static eddy_tensor *loss_of(counters *c, eddy_tensor *a, eddy_tensor *b) {
    eddy_tensor *outputs[2];
    cr_assert_eq(eddy_function_call(&product, c, EDDY_LIST(a, b), outputs), EDDY_OK);
    return eddy_sum(eddy_add(outputs[0], eddy_mul(outputs[1], outputs[1])), EDDY_ALL_AXES, NULL);
}

static eddy_tensor *count_and_double(void *context, eddy_tensor *gradient) {
    ++*(int *)context;
    return eddy_mul_s(gradient, EDDY_S(2));
}

/* a + b is the second: its gradient is 10 before the hook, that of e^(a b) is 1. */
CASE(a_hook_belongs_to_one_output) {
    static counters c; /* destroyed by `end` */
    int calls = 0;
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 0)), *b = leaf(F64(EDDY_SHAPE(1), 3)), *outputs[2];
    cr_assert_eq(eddy_function_call(&product, &c, EDDY_LIST(a, b), outputs), EDDY_OK);
    cr_assert_eq(eddy_grad_hook_add(outputs[1], count_and_double, &calls, NULL), EDDY_OK);
    eddy_tensor *sum = eddy_add(outputs[0], eddy_mul_s(outputs[1], EDDY_S(10)));
    cr_assert_eq(eddy_backward(eddy_sum(sum, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert_eq(calls, 1);
    cr_assert_eq(item(eddy_grad_of(a), 0), 3 + 20);
    cr_assert_eq(item(eddy_grad_of(b), 0), 0 + 20);
}

CASE(backward_agrees_with_differences) {
    counters c = {0};
    double at[2] = {0.3, -0.7}, step = 6e-6;
    eddy_scope *inner = eddy_scope_begin();
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), at[0])), *b = leaf(F64(EDDY_SHAPE(1), at[1]));
    cr_assert_eq(eddy_backward(loss_of(&c, a, b)), EDDY_OK);
    for (int i = 0; i < 2; i++) {
        double sides[2];
        for (int s = 0; s < 2; s++) {
            double moved[2] = {at[0], at[1]};
            moved[i] += s == 0 ? -step : step;
            sides[s] =
                item(loss_of(&c, F64(EDDY_SHAPE(1), moved[0]), F64(EDDY_SHAPE(1), moved[1])), 0);
        }
        double want = (sides[1] - sides[0]) / (2 * step);
        cr_assert_lt(fabs(item(eddy_grad_of(i == 0 ? a : b), 0) - want), 1e-8 * (1 + fabs(want)));
    }
    cr_assert(c.forwards == 5 && c.backwards == 1);
    cr_assert_eq(c.destroyed, 4, "calls that nobody goes back through need it no longer");
    eddy_scope_end(inner);
    cr_assert_eq(c.destroyed, 5);
}

/* d2/da2 of e^(ab) is b^2 e^(ab): the saved result has to find its way back. */
CASE(it_is_recorded_itself_for_gradients_of_gradients) {
    static counters c; /* destroyed by `end` */
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 0.5)), *b = leaf(F64(EDDY_SHAPE(1), 2)), *outputs[2],
                *first, *second;
    cr_assert_eq(eddy_function_call(&product, &c, EDDY_LIST(a, b), outputs), EDDY_OK);
    eddy_backward_options create = {.size = sizeof(create), .creates_graph = true};
    cr_assert_eq(
        eddy_backward_to(EDDY_LIST(outputs[0]), EDDY_LIST(a), (eddy_list){0}, &create, &first),
        EDDY_OK);
    cr_assert_eq(eddy_backward_to(EDDY_LIST(first), EDDY_LIST(a), (eddy_list){0}, NULL, &second),
                 EDDY_OK);
    cr_assert_lt(fabs(item(second, 0) - 4 * exp(1)), 1e-12);
}

/* What forward saved is written to by a call that depends on what forward made. */
CASE(a_write_in_place_to_what_forward_saved_closes_no_ring) {
    static counters c; /* destroyed by `end` */
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 0.5)), *b = F64(EDDY_SHAPE(1), 2), *outputs[2];
    cr_assert_eq(eddy_function_call(&product, &c, EDDY_LIST(a, b), outputs), EDDY_OK);
    cr_assert_eq(eddy_add_inplace(b, outputs[0]), EDDY_OK);
}

CASE(misuse_is_refused) {
    counters c = {.fails = true};
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 1)), *outputs[2] = {NULL, NULL};
    cr_assert_eq(eddy_function_call(&product, &c, EDDY_LIST(a, a), outputs), EDDY_UNSUPPORTED);
    expect_error(EDDY_UNSUPPORTED, "product: forward failed");
    cr_assert_eq(c.destroyed, 0, "the context stays the caller's");
    cr_assert_null(outputs[0]);
    cr_assert_eq(eddy_function_call(NULL, &c, EDDY_LIST(a), outputs), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    cr_assert_eq(eddy_function_call(&product, &c, EDDY_LIST(a, NULL), outputs),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "product: inputs[1] is NULL");
    cr_assert_eq(eddy_forward_save(NULL, EDDY_LIST(a)), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
}

static void fail_inside(void *context, const void *data, int64_t bytes, const eddy_error *error) {
    (void)data, (void)bytes, (void)error;
    ++*(int *)context;
    cr_assert_null(eddy_add(NULL, NULL));
}

/* In one-thread mode the callback runs within a call of forward's. */
static eddy_status fail_silently(eddy_forward_call *call) {
    eddy_read_async(call->inputs[0], fail_inside, call->context);
    eddy_sync(EDDY_FOREVER);
    return EDDY_UNSUPPORTED;
}

CASE(what_fails_in_a_callback_is_not_forwards_failure) {
    const eddy_function silent = {.size = sizeof(silent),
                                  .name = "silent",
                                  .output_count = 1,
                                  .forward = fail_silently,
                                  .backward = product_backward};
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    eddy_runtime_use(runtime);
    int runs = 0;
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 1)), *output;
    cr_assert_eq(eddy_function_call(&silent, &runs, EDDY_LIST(a), &output), EDDY_UNSUPPORTED);
    cr_assert_eq(runs, 1);
    expect_error(EDDY_UNSUPPORTED, "silent: forward failed");
    eddy_runtime_use(NULL);
    eddy_runtime_release(&runtime);
}

static bool call_with_failure(int64_t nth) {
    counters c = {0};
    eddy_scope *inner = eddy_scope_begin();
    eddy_tensor *a = leaf(F64(EDDY_SHAPE(1), 0.5)), *outputs[2];
    eddy_memory_fail_at(EDDY_MEMORY_TAPE, nth, 1);
    eddy_status status = eddy_function_call(&product, &c, EDDY_LIST(a, a), outputs);
    bool was_injected = eddy_memory_failures_injected() > 0;
    eddy_memory_fail_at(EDDY_MEMORY_TAPE, 0, 0);
    cr_assert_eq(status, was_injected ? EDDY_OUT_OF_MEMORY : EDDY_OK);
    eddy_error_take(NULL);
    eddy_scope_end(inner);
    cr_assert_eq(c.destroyed, !was_injected);
    return was_injected;
}

CASE(without_memory_the_context_stays_the_callers) {
    int64_t nth = 0;
    while (call_with_failure(nth))
        nth++;
    cr_assert_eq(nth, 4, "what was saved, the node, the context, what destroys it");
}

/* ---- a registered op ---- */

static eddy_status square_infer(eddy_op_inference *inference) {
    inference->outputs[0] = inference->inputs[0];
    return EDDY_OK;
}

static eddy_status square_run(const eddy_op_call *call) {
    const double *x = call->views[0].data;
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        ((double *)call->views[1].data)[i] =
            x[i * call->views[0].strides[0]] * x[i * call->views[0].strides[0]];
    return EDDY_OK;
}

static eddy_status square_gradient(eddy_backward_call *call) {
    cr_assert_null(call->outputs[0], "it does not ask for it");
    call->results[0] = eddy_mul(call->grads[0], eddy_mul_s(call->inputs[0], EDDY_S(2)));
    return EDDY_OK;
}

static eddy_tensor *call_op(const char *name, eddy_tensor *x) {
    eddy_tensor *output = NULL;
    return eddy_call(name, EDDY_LIST(x), NULL, &output) == EDDY_OK ? output : NULL;
}

CASE(a_registered_op_may_bring_its_gradient) {
    eddy_operand_description operand = {.name = "x"};
    const char *output = "y";
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = square_run};
    eddy_op_description d = {.size = sizeof(d),
                             .name = "user.square",
                             .operands = &operand,
                             .operand_count = 1,
                             .outputs = &output,
                             .output_count = 1,
                             .infer = square_infer,
                             .kernels = &kernel,
                             .kernel_count = 1,
                             .backward = square_gradient,
                             .backward_inputs = 1};
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    eddy_tensor *x = leaf(F64(EDDY_SHAPE(2), 3, 5));
    cr_assert_eq(eddy_backward(eddy_sum(call_op("user.square", x), EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert(item(eddy_grad_of(x), 0) == 6 && item(eddy_grad_of(x), 1) == 10);

    d.name = "user.square_without";
    d.backward = NULL;
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    cr_assert_null(call_op("user.square_without", x));
    expect_error(EDDY_UNSUPPORTED, "user.square_without: it has no gradient");
    d.name = "user.square_none";
    d.has_no_grad = true;
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    cr_assert_not(eddy_requires_grad(call_op("user.square_none", x)));
    d.name = "user.square_both";
    d.backward = square_gradient;
    cr_assert_eq(eddy_op_register(&d), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "says that it has none");
}

/* y = x, and + b where b is there: what comes first may be absent. */
static eddy_status shifted_infer(eddy_op_inference *inference) {
    inference->outputs[0] = inference->inputs[1];
    return EDDY_OK;
}

static eddy_status shifted_run(const eddy_op_call *call) {
    const eddy_op_view *b = &call->views[0], *x = &call->views[1];
    for (int64_t i = 0; i < x->shape[0]; i++) {
        double shift = b->rank < 0 ? 0 : ((const double *)b->data)[i * b->strides[0]];
        ((double *)call->views[2].data)[i] = shift + ((const double *)x->data)[i * x->strides[0]];
    }
    return EDDY_OK;
}

static eddy_status shifted_gradient(eddy_backward_call *call) {
    for (int i = 0; i < 2; i++)
        if (call->is_wanted[i])
            call->results[i] = eddy_add_s(call->grads[0], EDDY_S(0));
    return EDDY_OK;
}

CASE(the_first_operand_of_a_registered_op_may_be_absent) {
    eddy_operand_description operands[] = {{.name = "b", .kind = EDDY_OPERAND_OPTIONAL},
                                           {.name = "x"}};
    const char *output = "y";
    eddy_op_kernel kernel = {.device = EDDY_DEVICE_CPU, .run = shifted_run};
    eddy_op_description d = {.size = sizeof(d),
                             .name = "user.shifted",
                             .operands = operands,
                             .operand_count = 2,
                             .outputs = &output,
                             .output_count = 1,
                             .infer = shifted_infer,
                             .kernels = &kernel,
                             .kernel_count = 1,
                             .backward = shifted_gradient};
    cr_assert_eq(eddy_op_register(&d), EDDY_OK);
    eddy_tensor *x = leaf(F64(EDDY_SHAPE(2), 3, 5)), *b = leaf(F64(EDDY_SHAPE(2), 1, 1)), *y = NULL;
    cr_assert_eq(eddy_call("user.shifted", EDDY_LIST(EDDY_NONE, x), NULL, &y), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert(item(eddy_grad_of(x), 0) == 1 && item(eddy_grad_of(x), 1) == 1);
    cr_assert_eq(eddy_call("user.shifted", EDDY_LIST(b, x), NULL, &y), EDDY_OK);
    cr_assert_eq(item(y, 1), 6);
    cr_assert_eq(eddy_backward(eddy_sum(y, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert(item(eddy_grad_of(x), 0) == 2 && item(eddy_grad_of(b), 1) == 1);
}
