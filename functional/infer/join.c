/* Joining, repeating and moving whole parts. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <string.h>

static eddy_status check_joins(const eddy_infer *infer, int64_t i, int32_t axis) {
    const eddy_shape *first = &infer->inputs[0].shape, *shape = &infer->inputs[i].shape;
    bool fits = shape->rank == first->rank;
    for (int32_t d = 0; fits && d < first->rank; d++)
        fits = d == axis || shape->dims[d] == first->dims[d];
    if (!fits)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "tensors 0 and %lld differ in more than axis %d", (long long)i,
                               (int)axis);
    return eddy_check_same_dtype(infer, 0, i);
}

eddy_status eddy_infer_cat(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    if (infer->input_count == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no tensors to join");
    if (infer->inputs[0].shape.rank == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "tensors of rank 0 have no axis to join along");
    eddy_status status = eddy_check_axis(infer, &attributes->axis, infer->inputs[0].shape.rank);
    if (status != EDDY_OK)
        return status;
    int64_t length = 0;
    for (int64_t i = 0; i < infer->input_count; i++) {
        status = check_joins(infer, i, attributes->axis);
        if (status != EDDY_OK)
            return status;
        if (__builtin_add_overflow(length, infer->inputs[i].shape.dims[attributes->axis], &length))
            return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW,
                                   "the joined axis does not fit into 63 bits");
    }
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].shape.dims[attributes->axis] = length;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_stack(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    if (infer->input_count == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no tensors to stack");
    const eddy_shape *first = &infer->inputs[0].shape;
    if (first->rank >= EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "the result would have more than %d axes", EDDY_RANK_MAX);
    eddy_status status = eddy_check_axis(infer, &attributes->axis, first->rank + 1);
    for (int64_t i = 1; i < infer->input_count && status == EDDY_OK; i++) {
        const eddy_shape *shape = &infer->inputs[i].shape;
        if (!eddy_shape_equal(first->rank, first->dims, shape->rank, shape->dims))
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "tensors 0 and %lld differ in shape",
                                   (long long)i);
        status = eddy_check_same_dtype(infer, 0, i);
    }
    if (status != EDDY_OK)
        return status;
    eddy_shape *out = &infer->outputs[0].shape;
    out->rank = first->rank + 1;
    for (int32_t d = 0; d < out->rank; d++)
        out->dims[d] = d == attributes->axis ? infer->input_count
                                             : first->dims[d > attributes->axis ? d - 1 : d];
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

/* Extends numbers for the last axes to all axes. */
static void align(eddy_shape *numbers, int32_t rank) {
    int32_t added = rank - numbers->rank;
    memmove(numbers->dims + added, numbers->dims, (size_t)numbers->rank * sizeof(numbers->dims[0]));
    memset(numbers->dims, 0, (size_t)added * sizeof(numbers->dims[0]));
    numbers->rank = rank;
}

eddy_status eddy_infer_pad(eddy_infer *infer) {
    eddy_arguments_pad *arguments = infer->attributes;
    eddy_shape *before = &arguments->kernel.before, *after = &arguments->after;
    const eddy_shape *input = &infer->inputs[0].shape;
    if (before->rank != after->rank || before->rank < 0 || before->rank > input->rank)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "before has %d numbers, after %d and input %d axes",
                               (int)before->rank, (int)after->rank, (int)input->rank);
    align(before, input->rank);
    align(after, input->rank);
    infer->outputs[0].shape = *input;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    for (int32_t d = 0; d < input->rank; d++) {
        /* Each side alone cuts at most the whole axis, so that the kernel's offsets stay within it. */
        int64_t *dim = &infer->outputs[0].shape.dims[d], kept = 0;
        bool is_cut = before->dims[d] < -input->dims[d] || after->dims[d] < -input->dims[d];
        if (!is_cut && (__builtin_add_overflow(input->dims[d], before->dims[d], &kept) ||
                        __builtin_add_overflow(kept, after->dims[d], dim)))
            return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW, "axis %d does not fit into 63 bits",
                                   (int)d);
        if (is_cut || *dim < 0)
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                                   "more is cut off axis %d than it has", (int)d);
    }
    return EDDY_OK;
}

eddy_status eddy_infer_repeat(eddy_infer *infer) {
    const eddy_arguments_repeat *arguments = infer->attributes;
    const eddy_shape *repeats = &arguments->repeats, *input = &infer->inputs[0].shape;
    if (repeats->rank < input->rank || repeats->rank > EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are %d repeats for %d axes",
                               (int)repeats->rank, (int)input->rank);
    eddy_shape *out = &infer->outputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    *out = *repeats;
    for (int32_t d = 0; d < out->rank; d++) {
        int32_t own = d - (out->rank - input->rank);
        if (repeats->dims[d] < 0)
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "axis %d is repeated %lld times",
                                   (int)d, (long long)repeats->dims[d]);
        if (own >= 0 && __builtin_mul_overflow(repeats->dims[d], input->dims[own], &out->dims[d]))
            return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW, "axis %d does not fit into 63 bits",
                                   (int)d);
    }
    return EDDY_OK;
}

eddy_status eddy_infer_repeat_interleave(eddy_infer *infer) {
    eddy_attributes_repeat_interleave *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape;
    if (attributes->repeats < 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "repeats is %lld",
                               (long long)attributes->repeats);
    eddy_status status = eddy_check_axis(infer, &attributes->axis, input->rank);
    if (status != EDDY_OK)
        return status;
    eddy_shape *out = &infer->outputs[0].shape;
    *out = input->rank == 0 ? EDDY_SHAPE(1) : *input;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    int64_t *dim = &out->dims[attributes->axis];
    if (__builtin_mul_overflow(*dim, attributes->repeats, dim))
        return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW,
                               "the repeated axis does not fit into 63 bits");
    return EDDY_OK;
}

eddy_status eddy_infer_flip(eddy_infer *infer) {
    eddy_attributes_flip *attributes = infer->attributes;
    infer->outputs[0].shape = infer->inputs[0].shape;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (attributes->axes == EDDY_AXES_NAMELESS) {
        attributes->axes = 0;
        return EDDY_OK;
    }
    return eddy_check_axes(infer, &attributes->axes, infer->inputs[0].shape.rank);
}

static int64_t wrapped(int64_t shift, int64_t count) {
    shift %= count > 0 ? count : 1;
    return shift < 0 ? shift + count : shift;
}

/* What shifts are for from now on, so that another inference finds them so. A number has no axis: it is one element in a row. */
static void name_all_axes(eddy_shape *axes, int32_t rank) {
    memset(axes, 0, sizeof(*axes));
    axes->rank = rank;
    for (int32_t d = 0; d < rank; d++)
        axes->dims[d] = d;
}

eddy_status eddy_infer_roll(eddy_infer *infer) {
    eddy_arguments_roll *arguments = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape;
    eddy_shape given = arguments->kernel.shifts, *shifts = &arguments->kernel.shifts;
    eddy_shape *axes = &arguments->axes;
    infer->outputs[0].shape = *input;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (given.rank != (axes->rank == 0 ? 1 : axes->rank))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are %d shifts for %d axes",
                               (int)given.rank, (int)axes->rank);
    memset(shifts, 0, sizeof(*shifts));
    if (axes->rank == 0) {
        int64_t count = 1;
        for (int32_t d = 0; d < input->rank; d++)
            count *= input->dims[d];
        shifts->rank = 1;
        shifts->dims[0] = wrapped(given.dims[0], count);
        return EDDY_OK;
    }
    for (int32_t i = 0; i < axes->rank; i++) {
        int32_t axis;
        if (!eddy_shape_axis_normalize(axes->dims[i], input->rank, &axis))
            return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE,
                                   "axis %lld is out of range for rank %d",
                                   (long long)axes->dims[i], (int)input->rank);
        if (input->rank > 0)
            shifts->dims[axis] = wrapped(
                shifts->dims[axis] + wrapped(given.dims[i], input->dims[axis]), input->dims[axis]);
    }
    name_all_axes(axes, input->rank);
    shifts->rank = input->rank == 0 ? 1 : input->rank;
    return EDDY_OK;
}
