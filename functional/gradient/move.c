/* Gradients of ops that join, repeat and move elements. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

static eddy_status give(const eddy_gradient_call *call, int64_t i, eddy_tensor *result) {
    if (!result)
        return eddy_outcome_why(call->outcome);
    call->results[i] = result;
    return EDDY_OK;
}

eddy_status eddy_gradient_cat(const eddy_gradient_call *call) {
    const eddy_arguments_cat *arguments = call->attributes;
    int64_t start = 0;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < call->input_count && status == EDDY_OK; i++) {
        int64_t length = call->input_specs[i].shape.dims[arguments->axis];
        if (call->is_wanted[i])
            status = give(call, i, eddy_narrow(call->grads[0], arguments->axis, start, length));
        start += length;
    }
    return status;
}

eddy_status eddy_gradient_stack(const eddy_gradient_call *call) {
    const eddy_arguments_stack *arguments = call->attributes;
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < call->input_count && status == EDDY_OK; i++)
        if (call->is_wanted[i])
            status = give(call, i, eddy_select(call->grads[0], arguments->axis, i));
    return status;
}

/* Padding by the negative numbers: it cuts off added elements, and elements that were cut off have the gradient 0. */
eddy_status eddy_gradient_pad(const eddy_gradient_call *call) {
    const eddy_arguments_pad *arguments = call->attributes;
    const eddy_shape *input = &call->input_specs[0].shape;
    eddy_shape before = {.rank = input->rank}, after = before;
    for (int32_t d = 0; d < input->rank; d++) {
        before.dims[d] = -arguments->kernel.before.dims[d];
        after.dims[d] =
            -(eddy_dim_of(call->grads[0], d) - input->dims[d] - arguments->kernel.before.dims[d]);
    }
    return give(call, 0, eddy_pad(call->grads[0], before, after, EDDY_S(0)));
}

/* Each axis becomes two (repeats, size), and is summed over the first. */
eddy_status eddy_gradient_repeat(const eddy_gradient_call *call) {
    const eddy_shape *input = &call->input_specs[0].shape;
    eddy_shape output = eddy_shape_of(call->grads[0]), split = {0};
    eddy_axes axes = {0};
    if (2 * output.rank > EDDY_RANK_MAX)
        return eddy_gradient_refuse(call, "a rank above 8");
    for (int32_t d = 0; d < output.rank; d++) {
        int32_t at = d - (output.rank - input->rank);
        int64_t size = at < 0 ? 1 : input->dims[at];
        axes.axes[axes.count++] = split.rank;
        split.dims[split.rank++] = size == 0 ? 1 : output.dims[d] / size;
        split.dims[split.rank++] = size;
    }
    eddy_tensor *sum =
        eddy_sum(eddy_reshape(call->grads[0], split), axes.count > 0 ? axes : EDDY_ALL_AXES, NULL);
    return give(call, 0, eddy_reshape(sum, *input));
}

eddy_status eddy_gradient_repeat_interleave(const eddy_gradient_call *call) {
    const eddy_arguments_repeat_interleave *arguments = call->attributes;
    const eddy_shape *input = &call->input_specs[0].shape;
    eddy_shape split = {0};
    if (input->rank == EDDY_RANK_MAX)
        return eddy_gradient_refuse(call, "a rank of 16");
    if (input->rank == 0)
        return give(call, 0, eddy_sum(call->grads[0], EDDY_ALL_AXES, NULL));
    for (int32_t d = 0; d < input->rank; d++) {
        split.dims[split.rank++] = input->dims[d];
        if (d == arguments->axis)
            split.dims[split.rank++] = arguments->repeats;
    }
    return give(
        call, 0,
        eddy_sum(eddy_reshape(call->grads[0], split), EDDY_AXES(arguments->axis + 1), NULL));
}

eddy_status eddy_gradient_roll(const eddy_gradient_call *call) {
    const eddy_arguments_roll *arguments = call->attributes;
    const eddy_shape *shifts = &arguments->kernel.shifts;
    if (arguments->axes.rank == 0)
        return give(call, 0,
                    eddy_roll(call->grads[0], EDDY_SHAPE(-shifts->dims[0]), EDDY_ALL_AXES));
    eddy_shape back = *shifts;
    eddy_axes axes = {0};
    for (int32_t d = 0; d < back.rank; d++) {
        back.dims[d] = -back.dims[d];
        axes.axes[axes.count++] = d;
    }
    return give(call, 0, eddy_roll(call->grads[0], back, axes));
}
