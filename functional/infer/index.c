/* Joining and picking. */
#include <functional/infer/infer.h>

#include <functional/arguments.h>
#include <functional/infer/check.h>

static eddy_status check_joins(const eddy_infer *infer, int64_t i, int32_t axis) {
    const eddy_shape *first = &infer->inputs[0].shape, *shape = &infer->inputs[i].shape;
    bool fits = shape->rank == first->rank;
    for (int32_t d = 0; fits && d < first->rank; d++)
        fits = d == axis || shape->dims[d] == first->dims[d];
    if (!fits)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "tensors 0 and %lld differ in more than axis %d",
                               (long long)i, (int)axis);
    return eddy_check_same_dtype(infer, 0, i);
}

eddy_status eddy_infer_cat(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    if (infer->input_count == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no tensors to join");
    if (infer->inputs[0].shape.rank == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "tensors of rank 0 have no axis to join along");
    eddy_status status = eddy_check_axis(infer, &attributes->axis, infer->inputs[0].shape.rank);
    if (status != EDDY_OK)
        return status;
    int64_t length = 0;
    for (int64_t i = 0; i < infer->input_count; i++) {
        status = check_joins(infer, i, attributes->axis);
        if (status != EDDY_OK)
            return status;
        if (__builtin_add_overflow(length, infer->inputs[i].shape.dims[attributes->axis], &length))
            return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW, "the joined axis does not fit into 63 bits");
    }
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].shape.dims[attributes->axis] = length;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_index_select(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape, *index = &infer->inputs[1].shape;
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input->rank);
    if (status != EDDY_OK)
        return status;
    if (index->rank > 1 || input->rank == 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must have an axis, and index a rank of 0 or 1");
    infer->outputs[0].shape = *input;
    infer->outputs[0].shape.dims[attributes->axis] = index->rank == 1 ? index->dims[0] : 1;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_gather(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape, *index = &infer->inputs[1].shape;
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input->rank);
    if (status != EDDY_OK)
        return status;
    if (index->rank != input->rank)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "index must have input's rank");
    for (int32_t d = 0; d < index->rank; d++)
        if (d != attributes->axis && index->dims[d] > input->dims[d])
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "index is longer than input in axis %d", (int)d);
    infer->outputs[0].shape = *index;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_one_hot(eddy_infer *infer) {
    const eddy_attributes_one_hot *attributes = infer->attributes;
    const eddy_shape *index = &infer->inputs[0].shape;
    eddy_status status = eddy_check_index(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (attributes->classes < 1)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "classes is %lld", (long long)attributes->classes);
    if (index->rank >= EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "the result would have more than %d axes", EDDY_RANK_MAX);
    infer->outputs[0].shape = *index;
    infer->outputs[0].shape.dims[infer->outputs[0].shape.rank++] = attributes->classes;
    infer->outputs[0].dtype = EDDY_I64;
    return EDDY_OK;
}

/* The number of rows is the kernel's to say. */
eddy_status eddy_infer_nonzero(eddy_infer *infer) {
    infer->outputs[0].shape = (eddy_shape){.rank = 2, .dims = {0, infer->inputs[0].shape.rank}};
    infer->outputs[0].dtype = EDDY_I64;
    return EDDY_OK;
}
