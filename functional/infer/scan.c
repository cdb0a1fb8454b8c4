/* Running totals along an axis. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

eddy_status eddy_infer_scan(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    const eddy_spec *input = &infer->inputs[0];
    infer->outputs[0].shape = input->shape;
    infer->outputs[0].dtype = eddy_dtype_is_float(input->dtype) ? input->dtype : EDDY_I64;
    return eddy_check_axis(infer, &attributes->axis, input->shape.rank);
}

/* grad, input */
eddy_status eddy_infer_scan_backward(eddy_infer *infer) {
    eddy_status status = eddy_check_float(infer, 0);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_shape(infer, 0, 1);
    return status == EDDY_OK ? eddy_infer_scan(infer) : status;
}
