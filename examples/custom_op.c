/* An op of the program's own: user.decay, y[i] = x[i] + factor * y[i - 1], is registered and called by name. It refuses wrong
 * operands like a built-in op. */
#include <eddy/eddy.h>
#include <stdio.h>

static eddy_status decay_infer(eddy_op_inference *call) { /* within the call, on its thread */
    if (call->inputs[0].shape.rank != 1 || call->inputs[0].dtype != EDDY_F32) {
        snprintf(call->message, call->message_bytes, "wants an f32 signal of rank 1");
        return EDDY_INVALID_ARGUMENT;
    }
    call->outputs[0] = call->inputs[0];
    return EDDY_OK;
}

static eddy_status decay_run(const eddy_op_call *call) { /* runs later, on a worker thread */
    const eddy_op_view *x = &call->views[0], *y = &call->views[1];
    double factor = *(const double *)call->attributes, last = 0;
    for (int64_t i = 0; i < x->shape[0]; i++) {
        last = ((const float *)x->data)[i * x->strides[0]] + factor * last;
        ((float *)y->data)[i * y->strides[0]] = (float)last;
    }
    return EDDY_OK;
}

/* clang-format off */
static const eddy_op_description decay = {
    .size = sizeof(decay), .name = "user.decay", .summary = "Each element plus what is left of those before it.",
    .operands = (const eddy_operand_description[]){{.name = "x"}}, .operand_count = 1,
    .outputs = (const char *const[]){"y"}, .output_count = 1,
    .attributes = (const eddy_attribute_description[]){
        {.name = "factor", .type = EDDY_ATTRIBUTE_FLOAT, .is_required = true}},
    .attribute_count = 1, .attribute_bytes = sizeof(double), .infer = decay_infer,
    .kernels = (const eddy_op_kernel[]){{.device = EDDY_DEVICE_CPU, .run = decay_run}}, .kernel_count = 1};
/* clang-format on */

int main(void) {
    eddy_scope *scope = eddy_scope_begin();
    const float values[] = {8, 0, 0, 4, 0, 0};
    eddy_tensor *x = eddy_from_data(values, EDDY_SHAPE(6), EDDY_F32, NULL), *y = NULL;
    eddy_tensor *matrix = eddy_reshape(x, EDDY_SHAPE(2, 3));
    eddy_op_register(&decay);
    eddy_call("user.decay", EDDY_LIST(x),
              EDDY_ATTRIBUTES({"factor", EDDY_ATTRIBUTE_FLOAT, {.floating = 0.5}}), &y);
    eddy_print(eddy_mul_s(y, EDDY_S(2)), stdout);
    eddy_call("user.decay", EDDY_LIST(matrix),
              EDDY_ATTRIBUTES({"factor", EDDY_ATTRIBUTE_FLOAT, {.floating = 1}}), &y);
    eddy_error error;
    eddy_status status = eddy_error_take(&error);
    bool is_meant = status == EDDY_INVALID_ARGUMENT;
    fprintf(is_meant ? stdout : stderr, "%s%s: %s\n",
            is_meant ? "A matrix is refused, as it should be: " : "", eddy_status_name(status),
            error.message);
    eddy_scope_end(scope);
    return !is_meant || fflush(stdout) != 0;
}
