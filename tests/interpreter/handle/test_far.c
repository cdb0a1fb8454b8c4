/* The simulated device through the public functions: what a GPU's user does, and what goes wrong. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tests/asleep.h>
#include <unistd.h>

static eddy_tensor *numbers(eddy_device device) {
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    eddy_from_data_options options = {.size = sizeof(options), .device = device};
    return eddy_from_data(data, EDDY_SHAPE(2, 3), EDDY_F32, &options);
}

static void expect_elements(eddy_tensor *tensor, const float *expected, int count) {
    float found[64];
    cr_assert_eq(eddy_read(tensor, found, (size_t)count * sizeof(float), NULL), EDDY_OK);
    for (int i = 0; i < count; i++)
        cr_assert_eq(found[i], expected[i], "element %d: %g", i, (double)found[i]);
}

static void expect_error(eddy_status status, const char *word) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, word), "%s", error.message);
}

Test(far, tensors_go_there_and_back_and_on) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = numbers(EDDY_CPU);
    eddy_tensor *there = eddy_to_device(eddy_transpose(here, 0, 1), EDDY_FAR(0));
    cr_assert_eq(eddy_device_of(there).kind, EDDY_DEVICE_FAR);
    expect_elements(there, (float[]){1, 4, 2, 5, 3, 6}, 6);
    eddy_tensor *on = eddy_to_device(eddy_narrow(there, 0, 1, 2), EDDY_FAR(1));
    cr_assert_eq(eddy_device_of(on).index, 1);
    eddy_tensor *back = eddy_to_device(eddy_add(on, on), EDDY_CPU);
    expect_elements(back, (float[]){4, 10, 6, 12}, 4);
    cr_assert_eq(eddy_device_of(back).kind, EDDY_DEVICE_CPU);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(far, gradients_come_back_over_devices) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_CPU);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *far = eddy_to_device(x, EDDY_FAR(0));
    eddy_tensor *squares = eddy_to_device(eddy_mul(far, far), EDDY_FAR(2));
    cr_assert_eq(eddy_backward(eddy_sum(squares, EDDY_ALL_AXES, NULL)), EDDY_OK);
    cr_assert_eq(eddy_device_of(eddy_grad_of(x)).kind, EDDY_DEVICE_CPU);
    expect_elements(eddy_grad_of(x), (float[]){2, 4, 6, 8, 10, 12}, 6);
    eddy_scope_end(scope);
}

Test(far, gradients_of_gradients_cross_devices) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_CPU);
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    eddy_tensor *far = eddy_to_device(x, EDDY_FAR(0));
    eddy_tensor *cubes = eddy_sum(eddy_mul(eddy_mul(far, far), far), EDDY_ALL_AXES, NULL);
    eddy_tensor *slope;
    cr_assert_eq(eddy_backward_to(EDDY_LIST(cubes), EDDY_LIST(x), EDDY_LIST(),
                                  EDDY_OPTIONS(backward, .creates_graph = true), &slope),
                 EDDY_OK);
    expect_elements(slope, (float[]){3, 12, 27, 48, 75, 108}, 6);
    cr_assert_eq(eddy_backward(eddy_sum(slope, EDDY_ALL_AXES, NULL)), EDDY_OK);
    expect_elements(eddy_grad_of(x), (float[]){6, 12, 18, 24, 30, 36}, 6);
    eddy_scope_end(scope);
}

/* ---- gradients lie where their tensors do ---- */

static eddy_tensor *leaf(eddy_device device) {
    eddy_tensor *made = numbers(device);
    cr_assert_eq(eddy_requires_grad_set(made, true), EDDY_OK);
    return made;
}

Test(far, a_pass_begins_with_seeds_that_are_there) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = leaf(EDDY_FAR(0)),
                *outputs[] = {eddy_mul(x, x), x, eddy_reshape(x, EDDY_SHAPE(6))};
    eddy_tensor *seeds[] = {numbers(EDDY_FAR(1)), numbers(EDDY_CPU),
                            eddy_reshape(numbers(EDDY_FAR(1)), EDDY_SHAPE(6))};
    static const char *const reasons[] = {"seeds[0] is on far:1, its output on far:0",
                                          "seeds[0] is on cpu, its output on far:0",
                                          "seeds[0] is on far:1, its output on far:0"};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(eddy_backward_from(EDDY_LIST(outputs[i]), EDDY_LIST(seeds[i]), NULL),
                     EDDY_DEVICE_MISMATCH);
        expect_error(EDDY_DEVICE_MISMATCH, reasons[i]);
        cr_assert_not(eddy_has_grad(x));
    }
    eddy_scope_end(scope);
}

static eddy_tensor *send_away(void *context, eddy_tensor *gradient) {
    (void)context;
    return eddy_to_device(gradient, EDDY_FAR(1));
}

Test(far, a_hook_leaves_a_gradient_where_it_is) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = leaf(EDDY_FAR(0));
    cr_assert_eq(eddy_grad_hook_add(x, send_away, NULL, NULL), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(x, EDDY_ALL_AXES, NULL)), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "another shape, dtype or device");
    cr_assert_not(eddy_has_grad(x));
    eddy_scope_end(scope);
}

/* Copies on two devices. Back go the gradients of both, or, astray, the first as it is. */
static eddy_status spread(eddy_forward_call *call) {
    for (int i = 0; i < 2; i++)
        call->outputs[i] = eddy_to_device(call->inputs[0], EDDY_FAR(i));
    return call->outputs[0] && call->outputs[1] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status join(eddy_backward_call *call) {
    for (int i = 0; i < 2; i++)
        cr_assert_eq(eddy_device_of(call->grads[i]).index, i);
    if (call->context)
        call->results[0] = eddy_retain(call->grads[0]);
    else
        call->results[0] = eddy_add(eddy_to_device(call->grads[0], EDDY_CPU),
                                    eddy_to_device(call->grads[1], EDDY_CPU));
    return call->results[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static const eddy_function spreading = {.size = sizeof(spreading),
                                        .name = "spread",
                                        .output_count = 2,
                                        .forward = spread,
                                        .backward = join};

/* The gradient of an output that nobody uses is zeros, made where that lies. */
Test(far, a_function_has_outputs_on_two_devices) {
    eddy_scope *scope = eddy_scope_begin();
    for (int used = 0; used < 2; used++) {
        eddy_tensor *x = leaf(EDDY_CPU), *outputs[2];
        cr_assert_eq(eddy_function_call(&spreading, NULL, EDDY_LIST(x), outputs), EDDY_OK);
        eddy_tensor *square = eddy_mul(outputs[used], outputs[used]);
        cr_assert_eq(eddy_backward(eddy_sum(square, EDDY_ALL_AXES, NULL)), EDDY_OK);
        expect_elements(eddy_grad_of(x), (float[]){2, 4, 6, 8, 10, 12}, 6);
    }
    eddy_scope_end(scope);
}

Test(far, a_function_gives_gradients_where_its_inputs_are) {
    eddy_scope *scope = eddy_scope_begin();
    static int astray;
    eddy_tensor *x = leaf(EDDY_CPU), *outputs[2];
    cr_assert_eq(eddy_function_call(&spreading, &astray, EDDY_LIST(x), outputs), EDDY_OK);
    cr_assert_eq(eddy_backward(eddy_sum(outputs[0], EDDY_ALL_AXES, NULL)), EDDY_DEVICE_MISMATCH);
    expect_error(EDDY_DEVICE_MISMATCH,
                 "the gradient of spread for its input 0 is on far:0, the input on cpu");
    cr_assert_not(eddy_has_grad(x));
    eddy_scope_end(scope);
}

/* ---- the runtime ends ---- */

Test(far, what_outlives_its_runtime_is_refused) {
    eddy_runtime *runtime = eddy_runtime_create(NULL);
    cr_assert_eq(eddy_runtime_use(runtime), EDDY_OK);
    eddy_tensor *there = numbers(EDDY_FAR(0)), *here = numbers(EDDY_CPU);
    eddy_stream *stream = eddy_stream_create(EDDY_FAR(0), NULL);
    cr_assert_eq(eddy_runtime_shutdown(runtime, EDDY_FOREVER), EDDY_OK);
    cr_assert_null(eddy_to_device(there, EDDY_CPU));
    expect_error(EDDY_SHUT_DOWN, "");
    cr_assert_null(eddy_to_device(there, EDDY_FAR(1)));
    expect_error(EDDY_SHUT_DOWN, "");
    cr_assert_null(eddy_to_device(here, EDDY_FAR(0)));
    expect_error(EDDY_SHUT_DOWN, "");
    cr_assert_eq(eddy_copy_into(here, there), EDDY_SHUT_DOWN);
    cr_assert_null(eddy_add(there, there));
    cr_assert_null(eddy_event_record(stream));
    cr_assert_null(eddy_map(there, EDDY_READ, EDDY_FOREVER));
    eddy_error_take(NULL);
    eddy_stream_release(&stream);
    eddy_release(&there);
    eddy_release(&here);
    eddy_runtime_release(&runtime);
}

typedef struct issuing {
    eddy_runtime *runtime;
    eddy_tensor *there;
    _Atomic bool has_begun;
} issuing;

static void *issue_until_refused(void *context) {
    issuing *at = context;
    cr_assert_eq(eddy_runtime_use(at->runtime), EDDY_OK);
    for (bool is_refused = false; !is_refused; at->has_begun = true) {
        eddy_tensor *sum = eddy_add(at->there, at->there);
        eddy_tensor *back = sum ? eddy_to_device(sum, EDDY_CPU) : NULL;
        eddy_tensor *again = back ? eddy_to_device(back, EDDY_FAR(0)) : NULL;
        is_refused = !again || eddy_copy_into(back, again) != EDDY_OK;
        eddy_release(&sum);
        eddy_release(&back);
        eddy_release(&again);
    }
    expect_error(EDDY_SHUT_DOWN, "");
    return NULL;
}

Test(far, a_shutdown_beside_issuing_threads) {
    for (int round = 0; round < 20; round++) {
        issuing at = {.runtime = eddy_runtime_create(NULL)};
        cr_assert_eq(eddy_runtime_use(at.runtime), EDDY_OK);
        at.there = numbers(EDDY_FAR(0));
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            cr_assert_eq(pthread_create(&threads[i], NULL, issue_until_refused, &at), 0);
        while (!at.has_begun)
            sched_yield();
        cr_assert_eq(eddy_runtime_shutdown(at.runtime, EDDY_FOREVER), EDDY_OK);
        for (int i = 0; i < 2; i++)
            cr_assert_eq(pthread_join(threads[i], NULL), 0);
        eddy_release(&at.there);
        eddy_runtime_release(&at.runtime);
    }
}

/* ---- what is refused, and what is not ---- */

Test(far, operands_of_two_devices_are_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = numbers(EDDY_CPU), *there = numbers(EDDY_FAR(0)),
                *elsewhere = numbers(EDDY_FAR(1));
    cr_assert_null(eddy_add(here, there));
    expect_error(EDDY_DEVICE_MISMATCH, "operand 1 is on far:0, and those before it on cpu");
    cr_assert_null(eddy_add(there, elsewhere));
    expect_error(EDDY_DEVICE_MISMATCH, "operand 1 is on far:1, and those before it on far:0");
    cr_assert_neq(eddy_add_into(there, there, here), EDDY_OK);
    expect_error(EDDY_DEVICE_MISMATCH, "device");
    cr_assert_null(eddy_to_device(here, EDDY_FAR(4)));
    expect_error(EDDY_UNSUPPORTED, "far:4");
    eddy_scope_end(scope);
}

Test(far, copy_into_goes_from_device_to_device) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *here = eddy_zeros(EDDY_SHAPE(3, 2), EDDY_F64, NULL);
    eddy_tensor *there =
        eddy_zeros(EDDY_SHAPE(2, 2, 3), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_FAR(1)));
    cr_assert_eq(eddy_copy_into(numbers(EDDY_FAR(0)), there), EDDY_OK);
    expect_elements(there, (float[]){1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, 12);
    cr_assert_eq(eddy_copy_into(eddy_transpose(eddy_select(there, 0, 0), 0, 1), here), EDDY_OK);
    cr_assert_eq(eddy_item_f64(eddy_select(eddy_select(here, 0, 0), 0, 1), NULL), 4);
    cr_assert_neq(eddy_copy_into(eddy_zeros(EDDY_SHAPE(4), EDDY_F32, NULL), there), EDDY_OK);
    expect_error(EDDY_SHAPE_MISMATCH, "copy_into");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(far, a_buffer_of_the_host_stays_there) {
    float data[2] = {1, 2};
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_device_scope_begin(EDDY_FAR(0)), EDDY_OK);
    eddy_tensor *borrowed = eddy_from_buffer(data, EDDY_SHAPE(2), EDDY_F32, NULL, NULL, NULL);
    cr_assert_eq(eddy_device_of(borrowed).kind, EDDY_DEVICE_CPU);
    cr_assert_eq(eddy_device_of(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL)).kind, EDDY_DEVICE_FAR);
    eddy_from_buffer_options options = {.size = sizeof(options), .device = EDDY_FAR(0)};
    cr_assert_null(eddy_from_buffer(data, EDDY_SHAPE(2), EDDY_F32, NULL, NULL, &options));
    expect_error(EDDY_UNSUPPORTED, "eddy_to_device");
    cr_assert_null(eddy_to_dlpack(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), NULL));
    expect_error(EDDY_UNSUPPORTED, "CPU");
    eddy_device_scope_end();
    eddy_scope_end(scope);
}

Test(far, what_is_written_through_a_map_is_copied_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_FAR(0));
    float *elements = eddy_map(there, EDDY_READ | EDDY_WRITE, EDDY_FOREVER);
    cr_assert_eq(elements[5], 6);
    elements[5] = 60;
    eddy_tensor *sum = eddy_sum(there, EDDY_ALL_AXES, NULL);
    cr_assert_not(eddy_is_ready(sum));
    cr_assert_eq(eddy_unmap(there), EDDY_OK);
    cr_assert_eq(eddy_item_f64(sum, NULL), 75);
    eddy_scope_end(scope);
}

/* A record as the CPU's, however late it comes. */
Test(far, a_failure_there_reads_as_one_here) {
    eddy_error errors[2];
    for (int i = 0; i < 2; i++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_device device = i == 0 ? EDDY_CPU : EDDY_FAR(0);
        int64_t indices[2] = {1, 7};
        eddy_from_data_options options = {.size = sizeof(options), .device = device};
        eddy_tensor *index = eddy_from_data(indices, EDDY_SHAPE(2), EDDY_I64, &options);
        eddy_tensor *picked = eddy_index_select(numbers(device), index, 0);
        cr_assert_not_null(picked);
        eddy_tensor *after = eddy_add(picked, picked);
        cr_assert_eq(eddy_wait(after, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
        eddy_error_take(&errors[i]);
        eddy_scope_end(scope);
        cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK, "it was seen");
    }
    cr_assert_str_eq(errors[0].message, errors[1].message);
}

Test(far, a_late_shape_is_known_when_it_is_asked_for) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_FAR(0));
    eddy_tensor *places = eddy_nonzero(eddy_gt_s(there, EDDY_S(4)));
    cr_assert_eq(eddy_dim_of(places, 0), 2);
    int64_t found[4];
    cr_assert_eq(eddy_read(places, found, sizeof(found), NULL), EDDY_OK);
    cr_assert(found[0] == 1 && found[1] == 1 && found[2] == 1 && found[3] == 2);
    eddy_scope_end(scope);
}

Test(far, streams_and_events_of_a_device) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_stream *stream = eddy_stream_create(EDDY_FAR(0), NULL);
    cr_assert_not_null(stream);
    cr_assert_eq(eddy_stream_scope_begin(stream), EDDY_OK);
    eddy_tensor *there = numbers(EDDY_FAR(0));
    eddy_tensor *doubled = eddy_add(there, there);
    eddy_tensor *here = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    eddy_tensor *elsewhere = eddy_add(numbers(EDDY_FAR(1)), numbers(EDDY_FAR(1)));
    eddy_event *event = eddy_event_record(stream);
    eddy_stream_scope_end();
    cr_assert_eq(eddy_event_wait(event, EDDY_FOREVER), EDDY_OK);
    cr_assert(eddy_is_ready(doubled));
    cr_assert_eq(eddy_stream_wait(NULL, event), EDDY_OK);
    expect_elements(elsewhere, (float[]){2, 4, 6, 8, 10, 12}, 6);
    cr_assert_eq(eddy_item_f64(eddy_sum(here, EDDY_ALL_AXES, NULL), NULL), 2);
    eddy_event_release(&event);
    eddy_stream_release(&stream);
    eddy_scope_end(scope);
}

static int times_called;

static eddy_status twice(void *context, eddy_recorded_call *call) {
    (void)context;
    times_called++;
    call->outputs[0] = eddy_add(call->inputs.items[0], call->inputs.items[0]);
    return call->outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(far, a_recorded_function_is_replayed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(twice, NULL, 1, NULL);
    cr_assert_not_null(recorded);
    for (int i = 0; i < 4; i++) {
        eddy_tensor *there = numbers(EDDY_FAR(0)), *result = NULL;
        cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(there), EDDY_SCALARS(), &result),
                     EDDY_OK);
        expect_elements(result, (float[]){2, 4, 6, 8, 10, 12}, 6);
    }
    cr_assert_eq(times_called, 2);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
}

/* A few steps of training have the CPU's bits. */
static void train(eddy_device device, float *weights) {
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_device_scope_begin(device), EDDY_OK);
    eddy_seed(7);
    eddy_tensor *w = eddy_randn(EDDY_SHAPE(6, 5), EDDY_F32, NULL);
    eddy_tensor *x = eddy_randn(EDDY_SHAPE(9, 6), EDDY_F32, NULL);
    cr_assert_eq(eddy_requires_grad_set(w, true), EDDY_OK);
    for (int step = 0; step < 8; step++) {
        eddy_scope *inner = eddy_scope_begin();
        eddy_tensor *loss =
            eddy_mean(eddy_gelu(eddy_softmax(eddy_matmul(x, w), -1), NULL), EDDY_ALL_AXES, NULL);
        cr_assert_eq(eddy_backward(loss), EDDY_OK);
        eddy_no_grad_begin();
        cr_assert_eq(eddy_sub_inplace(w, eddy_mul_s(eddy_grad_of(w), EDDY_S(0.5))), EDDY_OK);
        eddy_no_grad_end();
        cr_assert_eq(eddy_grads_zero(EDDY_LIST(w)), EDDY_OK);
        eddy_scope_end(inner);
    }
    cr_assert_eq(eddy_read(w, weights, 30 * sizeof(float), NULL), EDDY_OK);
    eddy_device_scope_end();
    eddy_scope_end(scope);
}

Test(far, training_has_the_bits_of_the_cpu) {
    float here[30], there[30];
    train(EDDY_CPU, here);
    train(EDDY_FAR(3), there);
    cr_assert_arr_eq(here, there, sizeof(here));
}

Test(far, a_forked_child_is_refused_and_the_parent_goes_on) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there = numbers(EDDY_FAR(0)), *sum = eddy_sum(there, EDDY_ALL_AXES, NULL);
    await_safe_fork();
    pid_t child = fork();
    if (child == 0) {
        bool is_well = eddy_wait(sum, EDDY_FOREVER) == EDDY_FORKED;
#ifndef __SANITIZE_THREAD__ /* it starts no thread behind a fork */
        eddy_tensor *own = numbers(EDDY_CPU);
        is_well &= own && eddy_item_f64(eddy_sum(own, EDDY_ALL_AXES, NULL), NULL) == 21;
#endif
        _exit(is_well ? 0 : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(eddy_item_f64(sum, NULL), 21);
    eddy_scope_end(scope);
}

Test(far, exit_does_not_wait_for_the_device_for_long) {
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        eddy_scope_begin();
        eddy_tensor *x = numbers(EDDY_FAR(0));
        for (int i = 0; i < 2000; i++)
            x = eddy_add(x, x);
        exit(0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}
