/* Copies. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

eddy_status eddy_infer_same(eddy_infer *infer) {
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_cast(eddy_infer *infer) {
    const eddy_arguments_cast *arguments = infer->attributes;
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = arguments->dtype;
    return eddy_check_dtype(infer, arguments->dtype);
}

eddy_status eddy_infer_copy_into(eddy_infer *infer) {
    const eddy_shape *target = &infer->inputs[1].shape;
    eddy_shape joint;
    if (!eddy_shape_broadcast(&infer->inputs[0].shape, target, &joint) ||
        !eddy_shape_equal(joint.rank, joint.dims, target->rank, target->dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "source does not broadcast to target");
    return EDDY_OK;
}
