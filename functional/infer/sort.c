/* Sorting, choosing by rank, and counting. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

/* values in input's dtype and indices, or indices alone. */
static void set_outputs(eddy_infer *infer, const eddy_shape *shape) {
    int32_t count = infer->op->output_count;
    for (int32_t o = 0; o < count; o++) {
        infer->outputs[o].shape = *shape;
        infer->outputs[o].dtype = o == count - 1 ? EDDY_I64 : infer->inputs[0].dtype;
    }
}

eddy_status eddy_infer_sort(eddy_infer *infer) {
    eddy_attributes_sort *attributes = infer->attributes;
    set_outputs(infer, &infer->inputs[0].shape);
    return eddy_check_axis(infer, &attributes->axis, infer->inputs[0].shape.rank);
}

eddy_status eddy_infer_topk(eddy_infer *infer) {
    eddy_arguments_topk *attributes = infer->attributes;
    eddy_shape shape = infer->inputs[0].shape;
    eddy_status status = eddy_check_axis(infer, &attributes->kernel.axis, shape.rank);
    if (status != EDDY_OK)
        return status;
    int64_t length = shape.rank == 0 ? 1 : shape.dims[attributes->kernel.axis];
    if (attributes->k < 0 || attributes->k > length)
        return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE,
                               "k is %lld, and the axis has %lld elements",
                               (long long)attributes->k, (long long)length);
    if (shape.rank == 0 && attributes->k == 0)
        return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE,
                               "k is 0, and input has no axis to shorten");
    if (shape.rank > 0)
        shape.dims[attributes->kernel.axis] = attributes->k;
    set_outputs(infer, &shape);
    return EDDY_OK;
}

/* The kernel determines their number. */
eddy_status eddy_infer_unique(eddy_infer *infer) {
    infer->outputs[0].shape = (eddy_shape){.rank = 1};
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (infer->op->output_count == 1)
        return EDDY_OK;
    infer->outputs[1].shape = infer->inputs[0].shape;
    infer->outputs[2].shape = infer->outputs[0].shape;
    infer->outputs[1].dtype = infer->outputs[2].dtype = EDDY_I64;
    return EDDY_OK;
}

eddy_status eddy_infer_bincount(eddy_infer *infer) {
    const eddy_attributes_bincount *attributes = infer->attributes;
    const eddy_spec *input = &infer->inputs[0], *weights = &infer->inputs[1];
    if (eddy_dtype_is_float(input->dtype) || input->dtype == EDDY_BOOL)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "input must hold integers, not %s",
                               eddy_dtype_name(input->dtype));
    if (input->shape.rank != 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must be of rank 1");
    if (attributes->minlength < 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "minlength is %lld",
                               (long long)attributes->minlength);
    infer->outputs[0].shape = (eddy_shape){.rank = 1};
    infer->outputs[0].dtype = EDDY_I64;
    if (weights->is_absent)
        return EDDY_OK;
    infer->outputs[0].dtype = weights->dtype == EDDY_F32 ? EDDY_F32 : EDDY_F64;
    return eddy_check_same_shape(infer, 0, 1);
}
