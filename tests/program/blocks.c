#include <criterion/criterion.h>
#include <tests/program/blocks.h>

eddy_status done(eddy_tensor **outputs, eddy_tensor *tensor) {
    outputs[0] = tensor;
    return tensor ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

eddy_status twice(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_mul_s(inputs.items[0], EDDY_S(2)));
}

eddy_status same(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, inputs.items[0]);
}

eddy_status half(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_mul_s(inputs.items[0], EDDY_S(0.5)));
}

eddy_status is_large(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs, eddy_gt_s(eddy_sum(inputs.items[0], EDDY_ALL_AXES, NULL), EDDY_S(4)));
}

eddy_status late(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    return done(outputs,
                eddy_cast(eddy_sum(eddy_nonzero(inputs.items[0]), EDDY_AXES(1), NULL), EDDY_F32));
}

eddy_tensor *of(double value) {
    return eddy_full(EDDY_SHAPE(3), EDDY_S(value), EDDY_F32, NULL);
}

eddy_tensor *scalar(double value) {
    return eddy_full((eddy_shape){0}, EDDY_S(value), EDDY_F32, NULL);
}

eddy_tensor *truth(bool value) {
    return eddy_full((eddy_shape){0}, EDDY_S(value), EDDY_BOOL, NULL);
}

eddy_program *end(const eddy_bindings *bindings) {
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(bindings);
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    return program;
}
