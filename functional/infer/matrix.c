/* Matrix products. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/infer/check.h>

/* One dtype, and not bool. */
static eddy_status check_dtypes(eddy_infer *infer) {
    for (int64_t i = 1; i < infer->input_count; i++) {
        if (infer->inputs[i].is_absent)
            continue;
        eddy_status status = eddy_check_same_dtype(infer, 0, i);
        if (status != EDDY_OK)
            return status;
    }
    if (infer->inputs[0].dtype == EDDY_BOOL)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "there is no product of bool matrices");
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

/* The dims before the last `count` (fewer where there are fewer). */
static eddy_shape leading_dims(const eddy_shape *shape, int32_t count) {
    eddy_shape leading = *shape;
    leading.rank = shape->rank > count ? shape->rank - count : 0;
    return leading;
}

static void append(eddy_shape *shape, int64_t dim) {
    if (shape->rank < EDDY_RANK_MAX)
        shape->dims[shape->rank] = dim;
    shape->rank++;
}

eddy_status eddy_infer_matmul(eddy_infer *infer) {
    const eddy_shape *a = &infer->inputs[0].shape, *b = &infer->inputs[1].shape;
    eddy_status status = check_dtypes(infer);
    if (status != EDDY_OK)
        return status;
    if (a->rank == 0 || b->rank == 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a matrix product needs operands of rank 1 or more");
    int64_t inner_a = a->dims[a->rank - 1], inner_b = b->dims[b->rank > 1 ? b->rank - 2 : 0];
    if (inner_a != inner_b)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "rows of a have %lld elements, columns of b %lld",
                               (long long)inner_a, (long long)inner_b);
    eddy_shape batch_a = leading_dims(a, 2), batch_b = leading_dims(b, 2),
               *out = &infer->outputs[0].shape;
    if (!eddy_shape_broadcast(&batch_a, &batch_b, out))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "the dims before the last two do not broadcast");
    if (a->rank > 1)
        append(out, a->dims[a->rank - 2]);
    if (b->rank > 1)
        append(out, b->dims[b->rank - 1]);
    return EDDY_OK;
}

eddy_status eddy_infer_mm(eddy_infer *infer) {
    if (infer->inputs[0].shape.rank != 2 || infer->inputs[1].shape.rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "both operands must be matrices");
    return eddy_infer_matmul(infer);
}

eddy_status eddy_infer_bmm(eddy_infer *infer) {
    const eddy_shape *a = &infer->inputs[0].shape, *b = &infer->inputs[1].shape;
    if (a->rank != 3 || b->rank != 3 || a->dims[0] != b->dims[0])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "both operands must be as many matrices");
    return eddy_infer_matmul(infer);
}

eddy_status eddy_infer_addmm(eddy_infer *infer) {
    const eddy_shape *input = &infer->inputs[0].shape, *out = &infer->outputs[0].shape;
    eddy_shape joint;
    eddy_status status = check_dtypes(infer);
    if (status != EDDY_OK)
        return status;
    if (infer->inputs[1].shape.rank != 2 || infer->inputs[2].shape.rank != 2 ||
        infer->inputs[1].shape.dims[1] != infer->inputs[2].shape.dims[0])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a and b must be matrices of shapes [M, K] and [K, N]");
    infer->outputs[0].shape =
        EDDY_SHAPE(infer->inputs[1].shape.dims[0], infer->inputs[2].shape.dims[1]);
    if (!eddy_shape_broadcast(input, out, &joint) ||
        !eddy_shape_equal(joint.rank, joint.dims, out->rank, out->dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "input does not broadcast to the product");
    return EDDY_OK;
}

eddy_status eddy_infer_linear(eddy_infer *infer) {
    const eddy_shape *x = &infer->inputs[0].shape, *weight = &infer->inputs[1].shape;
    eddy_status status = check_dtypes(infer);
    if (status != EDDY_OK)
        return status;
    if (x->rank == 0 || weight->rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "x must be of rank 1 or more and weight a matrix");
    if (x->dims[x->rank - 1] != weight->dims[1])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "rows of x have %lld elements, those of weight %lld",
                               (long long)x->dims[x->rank - 1], (long long)weight->dims[1]);
    const eddy_spec *bias = &infer->inputs[2];
    if (!bias->is_absent && (bias->shape.rank != 1 || bias->shape.dims[0] != weight->dims[0]))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "bias must have shape [%lld]",
                               (long long)weight->dims[0]);
    infer->outputs[0].shape = leading_dims(x, 1);
    append(&infer->outputs[0].shape, weight->dims[0]);
    return EDDY_OK;
}
