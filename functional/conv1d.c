/* conv1d: rows as images of one row. */
#include <eddy/compose.h>

#include <base/status.h>
#include <eddy/view.h>
#include <functional/arguments.h>
#include <functional/door.h>
#include <functional/op_table.h>
#include <interpreter/apply.h>
#include <interpreter/tensor.h>

static eddy_status check_rank(eddy_tensor *tensor, const char *name, int32_t least, const void *address) {
    if (!eddy_tensor_check(tensor, "conv1d", name, address))
        return EDDY_INVALID_ARGUMENT;
    eddy_status status = eddy_tensor_await_shape(tensor, "conv1d", address);
    if (status != EDDY_OK)
        return status;
    if (tensor->rank < least || tensor->rank > 3) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        return eddy_fail(EDDY_SHAPE_MISMATCH, "conv1d", address, "conv1d: %s must have rank %s (%s)", name,
                         least == 3 ? "3" : "2 or 3", text);
    }
    return EDDY_OK;
}

/* Along the height nothing moves. */
static eddy_arguments_conv2d arguments_of(const eddy_conv1d_options *options) {
    eddy_arguments_conv2d a = {.stride = {1, 1}, .dilation = {1, 1}};
    if (EDDY_OPTION(options, stride))
        a.stride.width = options->stride;
    if (EDDY_OPTION(options, padding))
        a.padding.width = options->padding;
    if (EDDY_OPTION(options, dilation))
        a.dilation.width = options->dilation;
    if (EDDY_OPTION(options, groups))
        a.groups = options->groups;
    return a;
}

eddy_tensor *eddy_conv1d(eddy_tensor *x, eddy_tensor *weight, eddy_tensor *bias, const eddy_conv1d_options *options) {
    const void *address = __builtin_return_address(0);
    if (check_rank(x, "x", 2, address) != EDDY_OK || check_rank(weight, "weight", 3, address) != EDDY_OK)
        return NULL;
    eddy_arguments_conv2d arguments = arguments_of(options);
    eddy_tensor *inputs[] = {eddy_unsqueeze(x, -2), eddy_unsqueeze(weight, -2), bias}, *image = NULL, *result = NULL;
    if (inputs[0] && inputs[1])
        image = eddy_interpreter_apply_one(&eddy_op_conv2d, inputs, 3, &arguments, address);
    if (image)
        result = eddy_squeeze(image, EDDY_AXES(-2));
    eddy_release(&image);
    eddy_release(&inputs[1]);
    eddy_release(&inputs[0]);
    return result;
}
