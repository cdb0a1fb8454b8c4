/* Reductions. */
#include <functional/infer/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

/* The mask of the attributes, complete now that the rank is known (interpreter/op.h tells its form before). */
static eddy_status complete_axes(const eddy_infer *infer, uint32_t *mask, int32_t rank) {
    uint32_t given = *mask, axes = 0;
    if (given == 0) {
        *mask = (1u << rank) - 1;
        return EDDY_OK;
    }
    for (int32_t bit = 0; bit < 32; bit++) {
        if (!(given >> bit & 1u))
            continue;
        int32_t axis = bit < 16 ? bit : 15 - bit;
        eddy_status status = eddy_check_axis(infer, &axis, rank);
        if (status != EDDY_OK)
            return status;
        if (axes >> axis & 1u)
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "axis %d is named twice", (int)axis);
        axes |= 1u << axis;
    }
    *mask = rank == 0 ? 0 : axes;
    return EDDY_OK;
}

/* Shape of the output, and how many elements each of its elements is made of (0 or not 0 is all that callers
 * ask). */
static eddy_status reduce(eddy_infer *infer, bool *is_empty) {
    eddy_attributes_reduce *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape;
    eddy_shape *output = &infer->outputs[0].shape;
    eddy_status status = complete_axes(infer, &attributes->axes, input->rank);
    if (status != EDDY_OK)
        return status;
    *is_empty = false;
    output->rank = 0;
    for (int32_t d = 0; d < input->rank; d++) {
        bool is_reduced = attributes->axes >> d & 1u;
        if (is_reduced && input->dims[d] == 0)
            *is_empty = true;
        if (!is_reduced || attributes->keepdim)
            output->dims[output->rank++] = is_reduced ? 1 : input->dims[d];
    }
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_sum(eddy_infer *infer) {
    bool is_empty;
    eddy_status status = reduce(infer, &is_empty);
    if (!eddy_dtype_is_float(infer->inputs[0].dtype))
        infer->outputs[0].dtype = EDDY_I64;
    return status;
}

eddy_status eddy_infer_mean(eddy_infer *infer) {
    bool is_empty;
    eddy_status status = eddy_check_float(infer, 0);
    return status == EDDY_OK ? reduce(infer, &is_empty) : status;
}

eddy_status eddy_infer_max(eddy_infer *infer) {
    bool is_empty;
    eddy_status status = reduce(infer, &is_empty);
    if (status != EDDY_OK || !is_empty)
        return status;
    /* Nothing is asked for either where the output has no elements. */
    for (int32_t d = 0; d < infer->outputs[0].shape.rank; d++)
        if (infer->outputs[0].shape.dims[d] == 0)
            return EDDY_OK;
    return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no elements to choose from");
}

eddy_status eddy_infer_argmax(eddy_infer *infer) {
    eddy_status status = eddy_infer_max(infer);
    infer->outputs[0].dtype = EDDY_I64;
    return status;
}
