/* Reductions. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <math.h>

/* Shape of the output over the axes of a complete mask; *is_empty: there are outputs, each of no elements. */
static void reduce_over(eddy_infer *infer, uint32_t axes, bool keeps_dims, bool *is_empty) {
    const eddy_shape *input = &infer->inputs[0].shape;
    eddy_shape *output = &infer->outputs[0].shape;
    bool has_outputs = true;
    *is_empty = false;
    output->rank = 0;
    for (int32_t d = 0; d < input->rank; d++) {
        bool is_reduced = axes >> d & 1u;
        if (is_reduced && input->dims[d] == 0)
            *is_empty = true;
        if (!is_reduced && input->dims[d] == 0)
            has_outputs = false;
        if (!is_reduced || keeps_dims)
            output->dims[output->rank++] = is_reduced ? 1 : input->dims[d];
    }
    *is_empty = *is_empty && has_outputs;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
}

static eddy_status reduce(eddy_infer *infer, uint32_t *axes, bool keeps_dims, bool *is_empty) {
    eddy_status status = eddy_check_axes(infer, axes, infer->inputs[0].shape.rank);
    if (status == EDDY_OK)
        reduce_over(infer, *axes, keeps_dims, is_empty);
    return status;
}

static eddy_status refuse_nothing(const eddy_infer *infer) {
    return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no elements to choose from");
}

eddy_status eddy_infer_sum(eddy_infer *infer) {
    eddy_attributes_reduce *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty);
    if (!eddy_dtype_is_float(infer->inputs[0].dtype))
        infer->outputs[0].dtype = EDDY_I64;
    return status;
}

eddy_status eddy_infer_mean(eddy_infer *infer) {
    eddy_attributes_reduce *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = eddy_check_float(infer, 0);
    return status == EDDY_OK ? reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty)
                             : status;
}

eddy_status eddy_infer_var(eddy_infer *infer) {
    eddy_attributes_var *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (isnan(attributes->correction))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "correction is NaN");
    return reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty);
}

eddy_status eddy_infer_norm(eddy_infer *infer) {
    eddy_attributes_norm *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (isnan(attributes->p))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "p is NaN");
    status = reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty);
    /* Infinite and negative orders select an element. */
    if (status == EDDY_OK && is_empty && (isinf(attributes->p) || attributes->p < 0))
        return refuse_nothing(infer);
    return status;
}

eddy_status eddy_infer_any(eddy_infer *infer) {
    eddy_attributes_reduce *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty);
    infer->outputs[0].dtype = EDDY_BOOL;
    return status;
}

eddy_status eddy_infer_max(eddy_infer *infer) {
    eddy_attributes_reduce *attributes = infer->attributes;
    bool is_empty;
    eddy_status status = reduce(infer, &attributes->axes, attributes->keeps_dims, &is_empty);
    return status == EDDY_OK && is_empty ? refuse_nothing(infer) : status;
}

eddy_status eddy_infer_argmax(eddy_infer *infer) {
    eddy_status status = eddy_infer_max(infer);
    infer->outputs[0].dtype = EDDY_I64;
    return status;
}

eddy_status eddy_infer_max_dim(eddy_infer *infer) {
    eddy_attributes_axis_keepdim *attributes = infer->attributes;
    int32_t rank = infer->inputs[0].shape.rank;
    bool is_empty;
    eddy_status status = eddy_check_axis(infer, &attributes->axis, rank);
    if (status != EDDY_OK)
        return status;
    reduce_over(infer, rank == 0 ? 0 : 1u << attributes->axis, attributes->keeps_dims, &is_empty);
    infer->outputs[1].shape = infer->outputs[0].shape;
    infer->outputs[1].dtype = EDDY_I64;
    return is_empty ? refuse_nothing(infer) : EDDY_OK;
}
