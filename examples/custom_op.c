/* An op of the program's own: user.smooth, a moving average over a signal, is registered, called by name, and fails like
 * a built-in op where its operand does not fit. */
#include <eddy/eddy.h>
#include <stdio.h>

typedef struct smooth_attributes {
    int64_t radius; /* neighbours on each side */
} smooth_attributes;

/* The output is like the input; what does not fit is refused at the call. */
static eddy_status smooth_infer(eddy_op_inference *call) {
    if (call->inputs[0].shape.rank != 1 || call->inputs[0].dtype != EDDY_F32) {
        snprintf(call->message, call->message_bytes, "smooths an f32 signal of rank 1");
        return EDDY_INVALID_ARGUMENT;
    }
    call->outputs[0] = call->inputs[0];
    return EDDY_OK;
}

/* Runs on a worker thread, behind the caller's back. */
static eddy_status smooth_run(const eddy_op_call *call) {
    const smooth_attributes *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    const float *source = in->data;
    float *target = out->data;
    int64_t count = in->shape[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t first = i > attributes->radius ? i - attributes->radius : 0, used = 0;
        float sum = 0;
        for (int64_t j = first; j < count && j - i <= attributes->radius; j++, used++)
            sum += source[j * in->strides[0]];
        target[i * out->strides[0]] = sum / (float)used;
    }
    return EDDY_OK;
}

static const eddy_op_description smooth = {
    .size = sizeof(smooth),
    .name = "user.smooth",
    .summary = "The mean of each element and its neighbours.",
    .operands = (const eddy_operand_description[]){{.name = "signal"}},
    .operand_count = 1,
    .outputs = (const char *const[]){"smoothed"},
    .output_count = 1,
    .attributes = (const eddy_attribute_description[]){{.name = "radius",
                                                        .type = EDDY_ATTRIBUTE_INT,
                                                        .offset = offsetof(smooth_attributes, radius),
                                                        .default_value = {EDDY_SCALAR_INT, {.integer = 1}}}},
    .attribute_count = 1,
    .attribute_bytes = sizeof(smooth_attributes),
    .infer = smooth_infer,
    .kernels = (const eddy_op_kernel[]){{.device = EDDY_DEVICE_CPU, .run = smooth_run}},
    .kernel_count = 1,
};

int main(void) {
    eddy_scope *scope = eddy_scope_begin();
    const float values[] = {0, 0, 9, 0, 0, 3, 3, 3};
    eddy_tensor *signal = eddy_from_data(values, EDDY_SHAPE(8), EDDY_F32, NULL), *smoothed = NULL;
    eddy_op_register(&smooth);
    eddy_call("user.smooth", EDDY_LIST(signal), EDDY_ATTRIBUTES({"radius", EDDY_ATTRIBUTE_INT, {.integer = 1}}),
              &smoothed);
    eddy_print(eddy_mul_s(smoothed, EDDY_S(2)), stdout);
    if (eddy_error_take(NULL) != EDDY_OK)
        return 1;

    eddy_call("user.smooth", EDDY_LIST(eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL)), NULL, &smoothed);
    eddy_error error;
    eddy_status status = eddy_error_take(&error);
    printf("%s: %s\n", eddy_status_name(status), error.message);
    eddy_scope_end(scope);
    return status != EDDY_INVALID_ARGUMENT;
}
