/* Attention and rotary positions. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <math.h>

/* The dims before the last two. */
static eddy_shape batch_of(const eddy_shape *shape) {
    eddy_shape batch = *shape;
    batch.rank -= 2;
    return batch;
}

static eddy_shape with_last(const eddy_shape *batch, int64_t rows, int64_t columns) {
    eddy_shape shape = *batch;
    shape.dims[shape.rank++] = rows;
    shape.dims[shape.rank++] = columns;
    return shape;
}

/* The shapes of q, k, v and mask at inputs `first` on fit; *batch is the shape that their leading dims broadcast to. */
static eddy_status check_shapes(const eddy_infer *infer, int64_t first, eddy_shape *batch) {
    const eddy_spec *q = &infer->inputs[first], *k = q + 1, *v = q + 2, *mask = q + 3;
    for (int64_t i = first; i < first + 4; i++)
        if (!infer->inputs[i].is_absent && infer->inputs[i].shape.rank < 2)
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%s must have rank 2 or more",
                                   eddy_check_name(infer, i).text);
    int64_t rows = q->shape.dims[q->shape.rank - 2], width = q->shape.dims[q->shape.rank - 1];
    int64_t columns = k->shape.dims[k->shape.rank - 2];
    if (k->shape.dims[k->shape.rank - 1] != width)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "rows of q have %lld elements, those of k %lld", (long long)width,
                               (long long)k->shape.dims[k->shape.rank - 1]);
    if (v->shape.dims[v->shape.rank - 2] != columns)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "k has %lld rows, v %lld",
                               (long long)columns, (long long)v->shape.dims[v->shape.rank - 2]);
    *batch = batch_of(&q->shape);
    for (int64_t i = first + 1; i < first + 4; i++) {
        if (infer->inputs[i].is_absent)
            continue;
        eddy_shape before = *batch, other = batch_of(&infer->inputs[i].shape);
        if (!eddy_shape_broadcast(&before, &other, batch))
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "the leading dims of %s do not broadcast",
                                   eddy_check_name(infer, i).text);
    }
    if (mask->is_absent)
        return EDDY_OK;
    int64_t mask_rows = mask->shape.dims[mask->shape.rank - 2],
            seen = mask->shape.dims[mask->shape.rank - 1];
    if ((mask_rows != rows && mask_rows != 1) || (seen != columns && seen != 1))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "mask must broadcast to [.., %lld, %lld]", (long long)rows,
                               (long long)columns);
    return EDDY_OK;
}

static eddy_status check_sdpa(const eddy_infer *infer, int64_t first, double scale, double dropout,
                              eddy_shape *batch) {
    eddy_status status = eddy_check_float(infer, first);
    for (int64_t i = first + 1; i < first + 4 && status == EDDY_OK; i++)
        if (!infer->inputs[i].is_absent && (i < first + 3 || infer->inputs[i].dtype != EDDY_BOOL))
            status = eddy_check_same_dtype(infer, first, i);
    if (status == EDDY_OK && !isfinite(scale))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "scale is %g", scale);
    if (status == EDDY_OK && !(dropout >= 0 && dropout <= 1))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "dropout is %g, which is no probability", dropout);
    return status == EDDY_OK ? check_shapes(infer, first, batch) : status;
}

static eddy_shape sdpa_shape(const eddy_infer *infer, int64_t first, const eddy_shape *batch) {
    const eddy_shape *q = &infer->inputs[first].shape, *v = &infer->inputs[first + 2].shape;
    return with_last(batch, q->dims[q->rank - 2], v->dims[v->rank - 1]);
}

eddy_status eddy_infer_sdpa(eddy_infer *infer) {
    const eddy_attributes_sdpa *attributes = infer->attributes;
    eddy_shape batch;
    eddy_status status = check_sdpa(infer, 0, attributes->scale, attributes->dropout, &batch);
    if (status != EDDY_OK)
        return status;
    infer->outputs[0].shape = sdpa_shape(infer, 0, &batch);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_sdpa_backward(eddy_infer *infer) {
    const eddy_attributes_sdpa_backward *attributes = infer->attributes;
    eddy_shape batch;
    eddy_status status = check_sdpa(infer, 2, attributes->scale, attributes->dropout, &batch);
    if (status != EDDY_OK)
        return status;
    eddy_shape result = sdpa_shape(infer, 2, &batch);
    for (int64_t i = 0; i < 2; i++) {
        const eddy_shape *shape = &infer->inputs[i].shape;
        if (!eddy_shape_equal(shape->rank, shape->dims, result.rank, result.dims))
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "%s must have the shape of the result",
                                   eddy_check_name(infer, i).text);
        status = eddy_check_same_dtype(infer, 2, i);
        if (status != EDDY_OK)
            return status;
    }
    for (int64_t o = 0; o < 3; o++) {
        const eddy_shape *operand = &infer->inputs[2 + o].shape;
        infer->outputs[o].shape =
            with_last(&batch, operand->dims[operand->rank - 2], operand->dims[operand->rank - 1]);
        infer->outputs[o].dtype = infer->inputs[2].dtype;
    }
    return EDDY_OK;
}

eddy_status eddy_infer_rope(eddy_infer *infer) {
    const eddy_attributes_rope *attributes = infer->attributes;
    const eddy_shape *x = &infer->inputs[0].shape, *positions = &infer->inputs[1].shape;
    eddy_status status = eddy_check_float(infer, 0);
    if (status != EDDY_OK)
        return status;
    if (infer->inputs[1].dtype != EDDY_I64)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "positions must be i64, not %s",
                               eddy_dtype_name(infer->inputs[1].dtype));
    if (x->rank < 2 || x->dims[x->rank - 1] % 2 != 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "x must be [.., S, D], D even");
    if (positions->rank != 1 || positions->dims[0] != x->dims[x->rank - 2])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "positions must have shape [%lld]",
                               (long long)x->dims[x->rank - 2]);
    if (!(attributes->base > 0 && isfinite(attributes->base)))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "base is %g", attributes->base);
    infer->outputs[0].shape = *x;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}
