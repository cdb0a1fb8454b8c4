/* Gradients of pooling. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

/* The gradient of each window comes from the place that `indices` names. */
static eddy_status take_back(const eddy_gradient_call *call, eddy_tensor *indices) {
    eddy_tensor *taken =
        eddy_gather(eddy_flatten(call->grads[0], -2, -1), eddy_flatten(indices, -2, -1), -1);
    call->results[0] = eddy_reshape(taken, eddy_shape_of(indices));
    return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
}

eddy_status eddy_gradient_max_pool2d_backward(const eddy_gradient_call *call) {
    return take_back(call, call->inputs[1]);
}

eddy_status eddy_gradient_max_pool2d_backward_from_x(const eddy_gradient_call *call) {
    const eddy_arguments_max_pool2d_backward_from_x *arguments = call->attributes;
    const eddy_attributes_pool *pool = &arguments->kernel;
    eddy_max_pool2d_with_indices_options options = {.size = sizeof(options),
                                                    .stride = pool->stride,
                                                    .padding = pool->padding,
                                                    .dilation = pool->dilation,
                                                    .is_ceil_mode = arguments->is_ceil_mode};
    eddy_tensor *values, *indices;
    eddy_status status = eddy_max_pool2d_with_indices(
        eddy_detach(call->inputs[1]), pool->kernel_size, &options, &values, &indices);
    return status == EDDY_OK ? take_back(call, indices) : status;
}

/* The average of each window's gradients. */
eddy_status eddy_gradient_adaptive_avg_pool2d_backward(const eddy_gradient_call *call) {
    const eddy_shape *shape = &call->input_specs[0].shape;
    eddy_pair size = {shape->dims[shape->rank - 2], shape->dims[shape->rank - 1]};
    call->results[0] = eddy_adaptive_avg_pool2d(call->grads[0], size);
    return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
}

/* To the same places with the same weights. */
eddy_status eddy_gradient_interpolate_backward(const eddy_gradient_call *call) {
    const eddy_arguments_interpolate_backward *arguments = call->attributes;
    const eddy_shape *shape = &call->input_specs[0].shape;
    eddy_interpolate_options options = {.size = sizeof(options),
                                        .scale = arguments->kernel.scale,
                                        .mode = (eddy_mode)arguments->kernel.mode,
                                        .aligns_corners = arguments->kernel.aligns_corners};
    if (options.scale == 0)
        options.output_size =
            (eddy_pair){shape->dims[shape->rank - 2], shape->dims[shape->rank - 1]};
    call->results[0] = eddy_interpolate(call->grads[0], &options);
    return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
}
