/* conv1d: rows as images of one row. */
#include <eddy/compose.h>

#include <base/status.h>
#include <eddy/view.h>
#include <functional/arguments.h>
#include <functional/composition.h>
#include <functional/op_table.h>
#include <functional/parameter.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

static eddy_status check_rank(eddy_list operands, int64_t i, const char *name, int32_t least,
                              eddy_origin origin) {
    eddy_tensor *tensor = operands.items[i];
    eddy_status status = eddy_tensor_check(tensor, name, origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(tensor, origin);
    if (status != EDDY_OK)
        return status;
    if (tensor->rank < least || tensor->rank > 3)
        return eddy_parameter_fail(EDDY_SHAPE_MISMATCH, origin, operands, "%s must have rank %s",
                                   name, least == 3 ? "3" : "2 or 3");
    return EDDY_OK;
}

/* The window has one place along the height. What lies between fields is 0, too: recorded calls are compared byte by byte. */
static void along_rows(const eddy_arguments_conv1d *a, eddy_arguments_conv2d *rows) {
    memset(rows, 0, sizeof(*rows));
    rows->kernel = (eddy_attributes_conv){.stride = {1, a->stride != 0 ? a->stride : 1},
                                          .padding = {0, a->padding},
                                          .dilation = {1, a->dilation != 0 ? a->dilation : 1},
                                          .groups = a->groups};
}

static eddy_status conv1d(eddy_tensor *x, eddy_tensor *weight, eddy_tensor *bias,
                          const eddy_arguments_conv1d *given, eddy_tensor **result,
                          eddy_origin origin) {
    eddy_list operands = EDDY_LIST(x, weight, bias);
    eddy_status status = check_rank(operands, 0, "x", 2, origin);
    if (status == EDDY_OK)
        status = check_rank(operands, 1, "weight", 3, origin);
    if (status == EDDY_OK && bias != EDDY_NONE)
        status = eddy_tensor_check(bias, "bias", origin);
    if (status != EDDY_OK)
        return status;
    eddy_arguments_conv2d arguments;
    along_rows(given, &arguments);
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *inputs[] = {eddy_unsqueeze(x, -2), eddy_unsqueeze(weight, -2), bias},
                *image = NULL, *rows = NULL;
    if (inputs[0] && inputs[1])
        image = eddy_interpreter_apply_one(&eddy_op_conv2d, inputs, 3, &arguments, origin.address);
    if (image)
        rows = eddy_squeeze(image, EDDY_AXES(-2));
    eddy_release(&image);
    eddy_release(&inputs[1]);
    eddy_release(&inputs[0]);
    eddy_outcome_end(&outcome);
    if (!rows)
        return eddy_outcome_why(&outcome);
    *result = rows;
    return EDDY_OK;
}

eddy_tensor *eddy_conv1d(eddy_tensor *x, eddy_tensor *weight, eddy_tensor *bias,
                         const eddy_conv1d_options *options) {
    eddy_arguments_conv1d arguments = {0};
    if (EDDY_OPTION(options, stride))
        arguments.stride = options->stride;
    if (EDDY_OPTION(options, padding))
        arguments.padding = options->padding;
    if (EDDY_OPTION(options, dilation))
        arguments.dilation = options->dilation;
    if (EDDY_OPTION(options, groups))
        arguments.groups = options->groups;
    eddy_tensor *result = NULL;
    eddy_status status = conv1d(x, weight, bias, &arguments, &result, EDDY_ORIGIN("conv1d"));
    return status == EDDY_OK ? result : NULL;
}

eddy_status eddy_composition_conv1d(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                    eddy_origin origin) {
    return conv1d(inputs.items[0], inputs.items[1], inputs.items[2], arguments, &outputs[0],
                  origin);
}
