/* Gradients of convolutions: each of conv2d and conv_transpose2d is the gradient of the other, and both share the gradient of the weight. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

/* The dim at `from_last` before the last. */
static int64_t dim(const eddy_shape *shape, int32_t from_last) {
    return shape->dims[shape->rank - 1 - from_last];
}

static eddy_tensor *convolve(const eddy_attributes_conv *a, eddy_tensor *x, eddy_tensor *weight) {
    eddy_conv2d_options options = {.size = sizeof(options),
                                   .stride = a->stride,
                                   .padding = a->padding,
                                   .dilation = a->dilation,
                                   .groups = a->groups};
    return eddy_conv2d(x, weight, EDDY_NONE, &options);
}

static eddy_tensor *of_weight(const eddy_attributes_conv *a, eddy_tensor *grad, eddy_tensor *x,
                              eddy_pair kernel) {
    eddy_conv2d_backward_weight_options options = {.size = sizeof(options),
                                                   .stride = a->stride,
                                                   .padding = a->padding,
                                                   .dilation = a->dilation,
                                                   .groups = a->groups};
    return eddy_conv2d_backward_weight(grad, x, kernel, &options);
}

/* Of `count` rows or columns of a transposed convolution's result, the number beyond its windows. */
static int64_t beyond(int64_t size, int64_t count, int64_t kernel, int64_t stride, int64_t padding,
                      int64_t dilation) {
    return size - ((count - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1);
}

/* The gradient of a convolution's input, which had the shape `x`. */
static eddy_tensor *of_input(const eddy_attributes_conv *a, eddy_tensor *grad, eddy_tensor *weight,
                             eddy_pair kernel, const eddy_shape *x) {
    eddy_shape from = eddy_shape_of(grad);
    eddy_pair more = {beyond(dim(x, 1), dim(&from, 1), kernel.height, a->stride.height,
                             a->padding.height, a->dilation.height),
                      beyond(dim(x, 0), dim(&from, 0), kernel.width, a->stride.width,
                             a->padding.width, a->dilation.width)};
    eddy_conv_transpose2d_options options = {.size = sizeof(options),
                                             .stride = a->stride,
                                             .padding = a->padding,
                                             .output_padding = more,
                                             .dilation = a->dilation,
                                             .groups = a->groups};
    return eddy_conv_transpose2d(grad, weight, EDDY_NONE, &options);
}

/* Rows and columns that `like` has; output_padding above the stride makes more. */
static eddy_tensor *cut(eddy_tensor *image, const eddy_shape *like) {
    for (int32_t d = 0; d < 2 && image; d++)
        if (eddy_dim_of(image, -1 - d) != dim(like, d))
            image = eddy_narrow(image, -1 - d, 0, dim(like, d));
    return image;
}

static eddy_tensor *of_bias(eddy_tensor *grad) {
    return eddy_sum(grad, eddy_rank_of(grad) == 4 ? EDDY_AXES(0, 2, 3) : EDDY_AXES(1, 2), NULL);
}

static eddy_status check_results(const eddy_gradient_call *call) {
    for (int64_t i = 0; i < call->input_count; i++)
        if (call->is_wanted[i] && !call->results[i])
            return eddy_outcome_why(call->outcome);
    return EDDY_OK;
}

eddy_status eddy_gradient_conv2d(const eddy_gradient_call *call) {
    const eddy_arguments_conv2d *arguments = call->attributes;
    const eddy_attributes_conv *a = &arguments->kernel;
    const eddy_shape *weight = &call->input_specs[1].shape;
    eddy_pair kernel = {weight->dims[2], weight->dims[3]};
    eddy_tensor *grad = call->grads[0];
    if (call->is_wanted[0])
        call->results[0] = of_input(a, grad, call->inputs[1], kernel, &call->input_specs[0].shape);
    if (call->is_wanted[1])
        call->results[1] = of_weight(a, grad, call->inputs[0], kernel);
    if (call->is_wanted[2])
        call->results[2] = of_bias(grad);
    return check_results(call);
}

eddy_status eddy_gradient_conv_transpose2d(const eddy_gradient_call *call) {
    const eddy_arguments_conv_transpose2d *arguments = call->attributes;
    const eddy_attributes_conv *a = &arguments->kernel;
    const eddy_shape *weight = &call->input_specs[1].shape;
    eddy_tensor *grad = call->grads[0];
    if (call->is_wanted[0])
        call->results[0] = cut(convolve(a, grad, call->inputs[1]), &call->input_specs[0].shape);
    if (call->is_wanted[1])
        call->results[1] =
            of_weight(a, call->inputs[0], grad, (eddy_pair){weight->dims[2], weight->dims[3]});
    if (call->is_wanted[2])
        call->results[2] = of_bias(grad);
    return check_results(call);
}

/* The gradient has the shape of a weight. */
eddy_status eddy_gradient_conv2d_backward_weight(const eddy_gradient_call *call) {
    const eddy_arguments_conv2d_backward_weight *arguments = call->attributes;
    const eddy_attributes_conv *a = &arguments->kernel;
    eddy_tensor *weight = call->grads[0];
    if (call->is_wanted[0])
        call->results[0] = cut(convolve(a, call->inputs[1], weight), &call->input_specs[0].shape);
    if (call->is_wanted[1])
        call->results[1] = of_input(a, call->inputs[0], weight, arguments->kernel_size,
                                    &call->input_specs[1].shape);
    return check_results(call);
}
