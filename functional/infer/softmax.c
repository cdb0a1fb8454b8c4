/* Softmax, the loss, and their gradients. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

eddy_status eddy_infer_softmax(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    eddy_status status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, infer->inputs[0].shape.rank);
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}

eddy_status eddy_infer_softmax_backward(eddy_infer *infer) {
    eddy_status status = eddy_check_same_dtype(infer, 0, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_shape(infer, 0, 1);
    return status == EDDY_OK ? eddy_infer_softmax(infer) : status;
}

/* input [N, C] and target [N] at `first` and after it. */
static eddy_status check_loss(const eddy_infer *infer, int64_t first) {
    const eddy_attributes_cross_entropy *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[first].shape,
                     *target = &infer->inputs[first + 1].shape;
    eddy_status status = eddy_check_float(infer, first);
    if (status != EDDY_OK)
        return status;
    if (infer->inputs[first + 1].dtype != EDDY_I64)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "target must be i64, not %s",
                               eddy_dtype_name(infer->inputs[first + 1].dtype));
    if (input->rank != 2 || target->rank != 1 || input->dims[0] != target->dims[0])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must be [N, C] and target [N]");
    if (attributes->reduction < EDDY_REDUCTION_MEAN || attributes->reduction > EDDY_REDUCTION_NONE)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%d is no reduction",
                               (int)attributes->reduction);
    return EDDY_OK;
}

static eddy_shape loss_shape(const eddy_infer *infer, int64_t first) {
    const eddy_attributes_cross_entropy *attributes = infer->attributes;
    eddy_shape shape = {0};
    if (attributes->reduction == EDDY_REDUCTION_NONE)
        shape = infer->inputs[first + 1].shape;
    return shape;
}

eddy_status eddy_infer_cross_entropy(eddy_infer *infer) {
    eddy_status status = check_loss(infer, 0);
    if (status != EDDY_OK)
        return status;
    infer->outputs[0].shape = loss_shape(infer, 0);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_cross_entropy_backward(eddy_infer *infer) {
    eddy_status status = check_loss(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 1);
    if (status != EDDY_OK)
        return status;
    eddy_shape loss = loss_shape(infer, 1);
    const eddy_shape *grad = &infer->inputs[0].shape;
    if (!eddy_shape_equal(grad->rank, grad->dims, loss.rank, loss.dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad must have the shape of the loss");
    infer->outputs[0].shape = infer->inputs[1].shape;
    infer->outputs[0].dtype = infer->inputs[1].dtype;
    return EDDY_OK;
}
