#include <functional/infer/check.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <interpreter/call/infer.h>
#include <stdio.h>

eddy_check_text eddy_check_name(const eddy_infer *infer, int64_t i) {
    eddy_check_text name = {"?"};
    const eddy_op_operand *operand = NULL;
    eddy_operand_iterator at;
    eddy_operand_iterator_begin(&at, infer->op, infer->list_counts);
    for (int64_t passed = 0; passed <= i; passed++)
        operand = eddy_operand_iterator_next(&at);
    if (operand && at.item >= 0)
        snprintf(name.text, sizeof(name.text), "%s[%lld]", operand->name, (long long)at.item);
    else if (operand)
        snprintf(name.text, sizeof(name.text), "%s", operand->name);
    return name;
}

eddy_status eddy_check_axis(const eddy_infer *infer, int32_t *axis, int32_t rank) {
    int32_t named = *axis;
    if (!eddy_shape_axis_normalize(named, rank, axis))
        return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE, "axis %d is out of range for rank %d",
                               (int)named, (int)rank);
    return EDDY_OK;
}

eddy_status eddy_check_axes(const eddy_infer *infer, uint32_t *mask, int32_t rank) {
    uint32_t given = *mask, axes = 0;
    if (given == 0 || given == EDDY_AXES_NAMELESS) {
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
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "axis %d is named twice",
                                   (int)axis);
        axes |= 1u << axis;
    }
    *mask = rank == 0 ? 0 : axes;
    return EDDY_OK;
}

eddy_status eddy_check_float(const eddy_infer *infer, int64_t i) {
    if (!eddy_dtype_is_float(infer->inputs[i].dtype))
        return eddy_infer_fail(
            infer, EDDY_DTYPE_MISMATCH, "%s must be f32, f64, f16 or bf16, not %s",
            eddy_check_name(infer, i).text, eddy_dtype_name(infer->inputs[i].dtype));
    return EDDY_OK;
}

eddy_status eddy_check_index(const eddy_infer *infer, int64_t i) {
    eddy_dtype dtype = infer->inputs[i].dtype;
    if (dtype != EDDY_I64 && dtype != EDDY_I32)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "%s must be i64 or i32, not %s",
                               eddy_check_name(infer, i).text, eddy_dtype_name(dtype));
    return EDDY_OK;
}

eddy_status eddy_check_same_dtype(const eddy_infer *infer, int64_t i, int64_t j) {
    if (infer->inputs[i].dtype != infer->inputs[j].dtype)
        return eddy_infer_fail(
            infer, EDDY_DTYPE_MISMATCH, "%s is %s and %s is %s", eddy_check_name(infer, i).text,
            eddy_dtype_name(infer->inputs[i].dtype), eddy_check_name(infer, j).text,
            eddy_dtype_name(infer->inputs[j].dtype));
    return EDDY_OK;
}

eddy_status eddy_check_same_shape(const eddy_infer *infer, int64_t i, int64_t j) {
    const eddy_shape *a = &infer->inputs[i].shape, *b = &infer->inputs[j].shape;
    if (!eddy_shape_equal(a->rank, a->dims, b->rank, b->dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%s and %s must have one shape",
                               eddy_check_name(infer, i).text, eddy_check_name(infer, j).text);
    return EDDY_OK;
}

eddy_status eddy_check_dtype(const eddy_infer *infer, eddy_dtype dtype) {
    if (!eddy_dtype_is_valid(dtype))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%d is no dtype", (int)dtype);
    return EDDY_OK;
}
