/* Gradients of ops that pick and put elements by index. */
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

/* Rank 0 counts as a vector of one element. */
static eddy_shape with_axis(const eddy_shape *shape) {
    return shape->rank == 0 ? EDDY_SHAPE(1) : *shape;
}

/* The gradient of scatter and scatter_add to source: the elements that index names, and 0 for elements beyond it. */
eddy_status eddy_gradient_scatter(const eddy_gradient_call *call) {
    const eddy_arguments_scatter *arguments = call->attributes;
    if (!call->is_wanted[2])
        return EDDY_OK;
    eddy_shape index = with_axis(&call->input_specs[1].shape),
               source = with_axis(&call->input_specs[2].shape);
    eddy_shape before = {.rank = source.rank}, after = before;
    bool reaches_all = true;
    for (int32_t d = 0; d < source.rank; d++) {
        after.dims[d] = source.dims[d] - index.dims[d];
        reaches_all = reaches_all && after.dims[d] == 0;
    }
    eddy_tensor *picked = eddy_gather(call->grads[0], call->inputs[1], arguments->axis);
    if (!reaches_all)
        picked = eddy_pad(eddy_reshape(picked, index), before, after, EDDY_S(0));
    return give(call, 2, eddy_reshape(picked, call->input_specs[2].shape));
}

eddy_status eddy_gradient_index(const eddy_gradient_call *call) {
    eddy_list indices = {call->inputs + 1, call->input_count - 1};
    eddy_tensor *zeros = eddy_gradient_zeros(call, &call->input_specs[0]);
    return give(call, 0,
                eddy_index_put(zeros, indices, call->grads[0],
                               &(eddy_index_put_options){.size = sizeof(eddy_index_put_options),
                                                         .accumulates = true}));
}

eddy_status eddy_gradient_index_put(const eddy_gradient_call *call) {
    const eddy_arguments_index_put *arguments = call->attributes;
    eddy_list indices = {call->inputs + 1, call->input_count - 2};
    int64_t values = call->input_count - 1;
    eddy_tensor *grad = call->grads[0];
    eddy_status status = EDDY_OK;
    if (call->is_wanted[0])
        status = give(call, 0,
                      arguments->accumulates
                          ? grad
                          : eddy_index_put(grad, indices, eddy_gradient_constant(call, 0), NULL));
    if (status == EDDY_OK && call->is_wanted[values])
        status = give(call, values, eddy_index(grad, indices));
    return status;
}

/* The rows that index names; 0 for the padding index. */
eddy_status eddy_gradient_embedding_backward(const eddy_gradient_call *call) {
    const eddy_arguments_embedding_backward *arguments = call->attributes;
    eddy_tensor *rows = eddy_embedding(call->inputs[1], call->grads[0], NULL);
    if (arguments->padding_index >= 0)
        rows = eddy_masked_fill(
            rows, eddy_unsqueeze(eddy_eq_s(call->inputs[1], EDDY_S(arguments->padding_index)), -1),
            EDDY_S(0));
    return give(call, 0, rows);
}

/* To source: the gradients of the elements that were taken, in their order. Their number depends on the mask. */
eddy_status eddy_gradient_masked_scatter(const eddy_gradient_call *call) {
    if (!call->is_wanted[2])
        return EDDY_OK;
    const eddy_shape *source = &call->input_specs[2].shape;
    eddy_tensor *taken = eddy_masked_select(call->grads[0], call->inputs[1]);
    int64_t count = 1;
    for (int32_t d = 0; d < source->rank; d++)
        count *= source->dims[d];
    if (!taken)
        return eddy_outcome_why(call->outcome);
    eddy_tensor *flat =
        eddy_pad(taken, EDDY_SHAPE(0), EDDY_SHAPE(count - eddy_dim_of(taken, 0)), EDDY_S(0));
    return give(call, 2, eddy_reshape(flat, *source));
}

/* Of index_add to source: the parts that index names. Beside a number each is that number. */
eddy_status eddy_gradient_index_add(const eddy_gradient_call *call) {
    const eddy_arguments_index_add *arguments = call->attributes;
    if (!call->is_wanted[2])
        return EDDY_OK;
    if (call->input_specs[0].shape.rank == 0)
        return give(call, 2, eddy_expand(call->grads[0], call->input_specs[2].shape));
    return give(call, 2, eddy_index_select(call->grads[0], call->inputs[1], arguments->axis));
}

/* The gradient of max_dim and min_dim: to the selected element. */
eddy_status eddy_gradient_pick_along_axis(const eddy_gradient_call *call) {
    const eddy_arguments_max_dim *arguments = call->attributes;
    eddy_tensor *grad = call->grads[0], *index = call->outputs[1];
    if (!arguments->keeps_dims && call->input_specs[0].shape.rank > 0) {
        grad = eddy_unsqueeze(grad, arguments->axis);
        index = eddy_unsqueeze(index, arguments->axis);
    }
    return give(call, 0,
                eddy_scatter(eddy_gradient_zeros(call, &call->input_specs[0]), index, grad,
                             arguments->axis));
}
