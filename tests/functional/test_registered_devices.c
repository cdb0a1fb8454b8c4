/* Kernels that registered ops have for kinds of devices. That for the simulated device writes another number than the CPU's, so that it shows which one ran. */
#include <base/atomic.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1000

static _Atomic int destroyed;

static eddy_status same_infer(eddy_op_inference *inference) {
    inference->outputs[0] = inference->inputs[0];
    return EDDY_OK;
}

/* y = x + `added`; 13 is no number to add. */
static eddy_status add(const eddy_op_call *call, float added) {
    const eddy_op_view *x = &call->views[0], *y = &call->views[1];
    for (int64_t i = 0; i < x->shape[0]; i++) {
        float number = ((const float *)x->data)[i * x->strides[0]];
        if (number == 13)
            return EDDY_INVALID_ARGUMENT;
        ((float *)y->data)[i * y->strides[0]] = number + added;
    }
    return EDDY_OK;
}

static eddy_status add_here(const eddy_op_call *call) {
    return add(call, 1);
}

static eddy_status add_there(const eddy_op_call *call) {
    return add(call, 2);
}

/* Through a workspace, and with what the plan holds. */
static eddy_status plan_there(const eddy_op_call *call, eddy_op_plan *plan) {
    float *added = malloc(sizeof(float));
    *added = 3;
    plan->state = added;
    plan->workspace_bytes = (size_t)call->views[0].shape[0] * sizeof(float);
    return EDDY_OK;
}

static void unplan(void *state) {
    eddy_add_relaxed(&destroyed, 1);
    free(state);
}

static eddy_status add_planned(const eddy_op_call *call) {
    const eddy_op_view *x = &call->views[0], *y = &call->views[1];
    float *copy = call->workspace;
    for (int64_t i = 0; i < x->shape[0]; i++)
        copy[i] = ((const float *)x->data)[i * x->strides[0]];
    for (int64_t i = 0; i < x->shape[0]; i++)
        ((float *)y->data)[i * y->strides[0]] = copy[i] + *(const float *)call->state;
    return EDDY_OK;
}

/* Numbers above 0. */
static eddy_status positive_infer(eddy_op_inference *inference) {
    inference->outputs[0] = (eddy_spec){.dtype = EDDY_F32, .shape = {.rank = 1}};
    return EDDY_OK;
}

static eddy_status count_positive(const eddy_op_call *call, eddy_shape *shapes) {
    shapes[0] = (eddy_shape){.rank = 1};
    for (int64_t i = 0; i < call->views[0].shape[0]; i++)
        shapes[0].dims[0] +=
            ((const float *)call->views[0].data)[i * call->views[0].strides[0]] > 0;
    return EDDY_OK;
}

static eddy_status take_positive(const eddy_op_call *call) {
    float *out = call->views[1].data;
    for (int64_t i = 0; i < call->views[0].shape[0]; i++) {
        float number = ((const float *)call->views[0].data)[i * call->views[0].strides[0]];
        if (number > 0)
            *out++ = number;
    }
    return EDDY_OK;
}

static eddy_status same_gradient(eddy_backward_call *call) {
    call->results[0] = eddy_mul_s(call->grads[0], EDDY_S(5));
    return EDDY_OK;
}

static const eddy_operand_description operand = {.name = "x"};
static const char *const output = "y";
static const eddy_op_kernel add_kernels[] = {{.device = EDDY_DEVICE_CPU, .run = add_here},
                                             {.device = EDDY_DEVICE_FAR, .run = add_there}};
static const eddy_op_kernel planned_kernels[] = {
    {.device = EDDY_DEVICE_FAR, .run = add_planned, .prepare = plan_there, .destroy = unplan},
    {.device = EDDY_DEVICE_CPU, .run = add_here}};
static const eddy_op_kernel late_kernels[] = {
    {.device = EDDY_DEVICE_CPU, .run = take_positive, .count = count_positive},
    {.device = EDDY_DEVICE_FAR, .run = take_positive, .count = count_positive}};

static eddy_op_description description(const char *name) {
    return (eddy_op_description){.size = sizeof(eddy_op_description),
                                 .name = name,
                                 .operands = &operand,
                                 .operand_count = 1,
                                 .outputs = &output,
                                 .output_count = 1,
                                 .infer = same_infer,
                                 .kernels = add_kernels,
                                 .kernel_count = 2,
                                 .backward = same_gradient};
}

static void must(eddy_status status) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s", error.message);
}

static void add_op(eddy_op_description d) {
    must(eddy_op_register(&d));
}

static eddy_tensor *call(const char *name, eddy_tensor *x) {
    eddy_tensor *y = NULL;
    return eddy_call(name, EDDY_LIST(x), NULL, &y) == EDDY_OK ? y : NULL;
}

static eddy_tensor *numbers(eddy_device device) {
    return eddy_arange(EDDY_S(100), EDDY_S(100 + COUNT), EDDY_S(1), EDDY_F32,
                       EDDY_OPTIONS(arange, .device = device));
}

static void expect_added(eddy_tensor *y, float added) {
    float found[COUNT];
    cr_assert_not_null(y);
    must(eddy_read(y, found, sizeof(found), NULL));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(found[i], (float)(100 + i) + added, "%d: %g", i, (double)found[i]);
}

static void expect_error(eddy_status status, const char *message) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, message), "%s", error.message);
}

Test(registered_devices, each_kind_of_device_has_its_kernel) {
    eddy_scope *scope = eddy_scope_begin();
    add_op(description("test.add"));
    expect_added(call("test.add", numbers(EDDY_CPU)), 1);
    for (int i = 0; i < 4; i++) {
        eddy_tensor *y = call("test.add", numbers(EDDY_FAR(i)));
        cr_assert(eddy_device_of(y).kind == EDDY_DEVICE_FAR && eddy_device_of(y).index == i);
        expect_added(y, 2);
    }
    eddy_tensor *chained = call("test.add", call("test.add", numbers(EDDY_FAR(0))));
    expect_added(eddy_to_device(chained, EDDY_CPU), 4);
    eddy_scope_end(scope);
}

Test(registered_devices, an_op_without_one_is_refused_there) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_op_description d = description("test.cpu_only");
    d.kernel_count = 1;
    add_op(d);
    expect_added(call("test.cpu_only", numbers(EDDY_CPU)), 1);
    cr_assert_null(call("test.cpu_only", numbers(EDDY_FAR(0))));
    expect_error(EDDY_UNSUPPORTED, "test.cpu_only: it has no kernel for far (f32[1000])");
    eddy_scope_end(scope);
}

Test(registered_devices, plans_workspace_and_state) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_op_description d = description("test.planned");
    d.kernels = planned_kernels;
    add_op(d);
    expect_added(call("test.planned", numbers(EDDY_FAR(1))), 3);
    expect_added(call("test.planned", numbers(EDDY_CPU)), 1);
    for (int i = 0; i < 50; i++)
        expect_added(call("test.planned", numbers(EDDY_FAR(1))), 3);
    cr_assert_eq(destroyed, 0, "one plan serves them all");
    eddy_scope_end(scope);
}

Test(registered_devices, a_failure_poisons_what_depends_on_it) {
    const eddy_device devices[] = {EDDY_CPU, EDDY_FAR(0)};
    eddy_scope *scope = eddy_scope_begin();
    add_op(description("test.add"));
    for (int i = 0; i < 2; i++) {
        eddy_tensor *x = eddy_add_s(eddy_mul_s(numbers(devices[i]), EDDY_S(0)), EDDY_S(13)),
                    *good = numbers(devices[i]);
        eddy_tensor *y = call("test.add", x), *z = eddy_neg(y), *w = call("test.add", z);
        cr_assert_eq(eddy_wait(w, EDDY_FOREVER), EDDY_INVALID_ARGUMENT);
        expect_error(EDDY_INVALID_ARGUMENT, "test.add");
        must(eddy_wait(good, EDDY_FOREVER));
        expect_added(call("test.add", good), i == 0 ? 1 : 2);
    }
    eddy_scope_end(scope);
    eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

Test(registered_devices, late_shapes) {
    const eddy_device devices[] = {EDDY_CPU, EDDY_FAR(0)};
    eddy_scope *scope = eddy_scope_begin();
    eddy_op_description d = description("test.positive");
    d.kernels = late_kernels;
    d.infer = positive_infer;
    d.has_late_shape = d.has_no_grad = true;
    d.backward = NULL;
    add_op(d);
    for (int i = 0; i < 2; i++) {
        eddy_tensor *y = call("test.positive", eddy_sub_s(numbers(devices[i]), EDDY_S(600)));
        float found[COUNT];
        cr_assert_eq(eddy_count_of(y), 499);
        must(eddy_read(y, found, 499 * sizeof(float), NULL));
        cr_assert(found[0] == 1 && found[498] == 499);
    }
    eddy_scope_end(scope);
}

Test(registered_devices, gradients_go_back_there) {
    eddy_scope *scope = eddy_scope_begin();
    add_op(description("test.add"));
    eddy_tensor *x = numbers(EDDY_FAR(2));
    must(eddy_requires_grad_set(x, true));
    must(eddy_backward(eddy_sum(call("test.add", x), EDDY_ALL_AXES, NULL)));
    eddy_tensor *grad = eddy_grad_of(x);
    cr_assert_eq(eddy_device_of(grad).kind, EDDY_DEVICE_FAR);
    cr_assert_eq(eddy_item_f64(eddy_max(grad, EDDY_ALL_AXES, NULL), NULL), 5);
    eddy_scope_end(scope);
}

/* Recorded and replayed, also on several devices, and at sizes that were not recorded. */
Test(registered_devices, programs_run_the_devices_kernel) {
    eddy_scope *scope = eddy_scope_begin();
    add_op(description("test.add"));
    eddy_tensor *x = numbers(EDDY_FAR(0)), *out;
    must(eddy_record_begin(NULL));
    eddy_tensor *there = call("test.add", x);
    eddy_tensor *y = call("test.add", eddy_to_device(there, EDDY_CPU));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    for (int run = 0; run < 3; run++) {
        must(eddy_program_run(program, EDDY_LIST(x), &out));
        expect_added(out, 3);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

static eddy_status add_body(void *context, eddy_recorded_call *recorded) {
    (void)context;
    recorded->outputs[0] = eddy_mul_s(call("test.add", recorded->inputs.items[0]), EDDY_S(1));
    return recorded->outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

Test(registered_devices, recorded_functions_foretell_sizes_there) {
    eddy_scope *scope = eddy_scope_begin();
    add_op(description("test.add"));
    eddy_recorded *recorded =
        eddy_recorded_create(add_body, NULL, 1, EDDY_OPTIONS(recorded, .foretells_shapes = true));
    cr_assert_not_null(recorded);
    for (int turn = 0; turn < 3; turn++)
        for (int64_t count = 4; count < 12; count++) {
            eddy_tensor *x = eddy_full(EDDY_SHAPE(count), EDDY_S(7), EDDY_F32,
                                       EDDY_OPTIONS(full, .device = EDDY_FAR(0))),
                        *y = NULL;
            must(eddy_recorded_run(recorded, EDDY_LIST(x), (eddy_scalars){0}, &y));
            cr_assert_eq(eddy_count_of(y), count);
            cr_assert_eq(eddy_item_f64(eddy_max(y, EDDY_ALL_AXES, NULL), NULL), 9);
            cr_assert_eq(eddy_item_f64(eddy_min(y, EDDY_ALL_AXES, NULL), NULL), 9);
        }
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

static void *issue(void *context) {
    eddy_device device = *(const eddy_device *)context;
    for (int i = 0; i < 100; i++) {
        eddy_scope *scope = eddy_scope_begin();
        expect_added(call("test.add", numbers(device)), device.kind == EDDY_DEVICE_CPU ? 1 : 2);
        eddy_scope_end(scope);
    }
    return NULL;
}

Test(registered_devices, several_threads_and_devices_at_once) {
    eddy_device devices[] = {EDDY_CPU, EDDY_FAR(0), EDDY_FAR(1), EDDY_FAR(0)};
    pthread_t threads[4];
    add_op(description("test.add"));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, issue, &devices[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void expect_refused(const eddy_op_kernel *kernels, int32_t count, const char *message) {
    eddy_op_description d = description("test.bad");
    d.kernels = kernels;
    d.kernel_count = count;
    cr_assert_neq(eddy_op_register(&d), EDDY_OK);
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, message), "%s", error.message);
}

Test(registered_devices, descriptions_that_make_no_sense) {
    const eddy_op_kernel two[] = {{.device = EDDY_DEVICE_CPU, .run = add_here},
                                  {.device = EDDY_DEVICE_CPU, .run = add_there}},
                         none[] = {{.device = EDDY_DEVICE_DEFAULT, .run = add_here}},
                         unknown[] = {{.device = EDDY_DEVICE_CPU, .run = add_here},
                                      {.device = (eddy_device_kind)99, .run = add_here}},
                         empty[] = {{.device = EDDY_DEVICE_CPU, .run = add_here},
                                    {.device = EDDY_DEVICE_FAR}},
                         far[] = {{.device = EDDY_DEVICE_FAR, .run = add_there}};
    expect_refused(two, 2, "it has two kernels for one kind of device");
    expect_refused(none, 1, "a kernel is for no kind of device");
    expect_refused(unknown, 2, "a kernel is for no kind of device");
    expect_refused(empty, 2, "its kernel has no run");
    expect_refused(far, 1, "it has no kernel for the CPU");
}
