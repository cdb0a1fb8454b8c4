/* Reductions. */
#include <functional/infer/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

/* Shape of the output, and how many elements each of its elements is made of (0 or not 0 is all that callers
 * ask). */
static eddy_status reduce(eddy_infer *infer, bool *is_empty) {
    eddy_attributes_reduce *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape;
    eddy_shape *output = &infer->outputs[0].shape;
    eddy_status status = eddy_check_axes(infer, &attributes->axes, input->rank);
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
