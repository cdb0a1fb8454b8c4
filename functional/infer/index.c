/* Picking, and places of elements. */
#include <functional/infer.h>

#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

/* The shape of rank 0 as a vector of one element, which is compatible with vectors; other shapes unchanged. */
static eddy_shape with_axis(const eddy_shape *shape) {
    return shape->rank == 0 ? EDDY_SHAPE(1) : *shape;
}

/* Parts that an index of rank 0 or 1 names. */
static int64_t part_count(const eddy_shape *index) {
    return index->rank == 1 ? index->dims[0] : 1;
}

eddy_status eddy_infer_index_select(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape, *index = &infer->inputs[1].shape;
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input->rank);
    if (status != EDDY_OK)
        return status;
    if (index->rank > 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "index must have a rank of 0 or 1");
    if (input->rank == 0 && part_count(index) != 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a number has one part, and index names %lld",
                               (long long)part_count(index));
    infer->outputs[0].shape = *input;
    if (input->rank > 0)
        infer->outputs[0].shape.dims[attributes->axis] = part_count(index);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_gather(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    eddy_shape input = with_axis(&infer->inputs[0].shape),
               index = with_axis(&infer->inputs[1].shape);
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input.rank);
    if (status != EDDY_OK)
        return status;
    if (index.rank != input.rank)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "index must have input's rank");
    for (int32_t d = 0; d < index.rank; d++)
        if (d != attributes->axis && index.dims[d] > input.dims[d])
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "index is longer than input in axis %d", (int)d);
    infer->outputs[0].shape = infer->inputs[1].shape;
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
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "classes is %lld",
                               (long long)attributes->classes);
    if (index->rank >= EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "the result would have more than %d axes", EDDY_RANK_MAX);
    infer->outputs[0].shape = *index;
    infer->outputs[0].shape.dims[infer->outputs[0].shape.rank++] = attributes->classes;
    infer->outputs[0].dtype = EDDY_I64;
    return EDDY_OK;
}

/* The kernel determines the number of rows. */
eddy_status eddy_infer_nonzero(eddy_infer *infer) {
    infer->outputs[0].shape = (eddy_shape){.rank = 2, .dims = {0, infer->inputs[0].shape.rank}};
    infer->outputs[0].dtype = EDDY_I64;
    return EDDY_OK;
}

/* ---- putting ---- */

/* The result is like input `i`. */
static void be_like(eddy_infer *infer, int64_t i) {
    infer->outputs[0].shape = infer->inputs[i].shape;
    infer->outputs[0].dtype = infer->inputs[i].dtype;
}

eddy_status eddy_infer_scatter(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    eddy_shape input = with_axis(&infer->inputs[0].shape),
               index = with_axis(&infer->inputs[1].shape);
    eddy_shape source = with_axis(&infer->inputs[2].shape);
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 2);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input.rank);
    if (status != EDDY_OK)
        return status;
    if (index.rank != input.rank || source.rank != input.rank)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "input, index and source must have one rank");
    for (int32_t d = 0; d < index.rank; d++) {
        if (index.dims[d] > source.dims[d])
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "index is longer than source in axis %d", (int)d);
        if (d != attributes->axis && index.dims[d] > input.dims[d])
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "index is longer than input in axis %d", (int)d);
    }
    be_like(infer, 0);
    return EDDY_OK;
}

eddy_status eddy_infer_index_add(eddy_infer *infer) {
    eddy_attributes_axis *attributes = infer->attributes;
    const eddy_shape *input = &infer->inputs[0].shape, *index = &infer->inputs[1].shape;
    const eddy_shape *source = &infer->inputs[2].shape;
    eddy_status status = eddy_check_index(infer, 1);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 2);
    if (status == EDDY_OK)
        status = eddy_check_axis(infer, &attributes->axis, input->rank);
    if (status != EDDY_OK)
        return status;
    int32_t rank = input->rank == 0 && source->rank <= 1 ? source->rank : input->rank;
    if (index->rank > 1 || source->rank != rank)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "input and source must have one rank, and index a rank of 0 or 1");
    if (rank == 0 && part_count(index) != 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "source is a number, and index names %lld parts",
                               (long long)part_count(index));
    for (int32_t d = 0; d < rank; d++) {
        int64_t wanted = d == attributes->axis ? part_count(index) : input->dims[d];
        if (source->dims[d] != wanted)
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "axis %d of source has %lld parts instead of %lld", (int)d,
                                   (long long)source->dims[d], (long long)wanted);
    }
    be_like(infer, 0);
    return EDDY_OK;
}

/* The shape that index gives: that of the indices (inputs 1 .. count) together, then input's other dims. */
static eddy_status pick_shape(eddy_infer *infer, int64_t count, eddy_shape *shape) {
    const eddy_shape *input = &infer->inputs[0].shape;
    if (count == 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are no indices");
    if (count > input->rank)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "there are %lld indices for %d axes",
                               (long long)count, (int)input->rank);
    eddy_shape joint = {.rank = 0};
    for (int64_t i = 1; i <= count; i++) {
        eddy_status status = eddy_check_index(infer, i);
        if (status != EDDY_OK)
            return status;
        eddy_shape before = joint;
        if (!eddy_shape_broadcast(&before, &infer->inputs[i].shape, &joint))
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "index %lld does not broadcast with those before it",
                                   (long long)(i - 1));
    }
    if (joint.rank + input->rank - count > EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "the result would have more than %d axes", EDDY_RANK_MAX);
    *shape = joint;
    for (int32_t d = (int32_t)count; d < input->rank; d++)
        shape->dims[shape->rank++] = input->dims[d];
    return EDDY_OK;
}

eddy_status eddy_infer_index(eddy_infer *infer) {
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return pick_shape(infer, infer->input_count - 1, &infer->outputs[0].shape);
}

eddy_status eddy_infer_index_put(eddy_infer *infer) {
    eddy_shape wanted, joint;
    int64_t values = infer->input_count - 1;
    eddy_status status = pick_shape(infer, values - 1, &wanted);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, values);
    if (status != EDDY_OK)
        return status;
    if (!eddy_shape_broadcast(&wanted, &infer->inputs[values].shape, &joint) ||
        !eddy_shape_equal(joint.rank, joint.dims, wanted.rank, wanted.dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "values do not broadcast to what the indices name");
    be_like(infer, 0);
    return EDDY_OK;
}

static eddy_status check_embedding(eddy_infer *infer, int64_t index, int64_t weight) {
    eddy_status status = eddy_check_index(infer, index);
    if (status != EDDY_OK)
        return status;
    if (infer->inputs[weight].shape.rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "weight must be a matrix");
    if (infer->inputs[index].shape.rank >= EDDY_RANK_MAX)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "the result would have more than %d axes", EDDY_RANK_MAX);
    return EDDY_OK;
}

eddy_status eddy_infer_embedding(eddy_infer *infer) {
    eddy_status status = check_embedding(infer, 0, 1);
    if (status != EDDY_OK)
        return status;
    eddy_shape *out = &infer->outputs[0].shape;
    *out = infer->inputs[0].shape;
    out->dims[out->rank++] = infer->inputs[1].shape.dims[1];
    infer->outputs[0].dtype = infer->inputs[1].dtype;
    return EDDY_OK;
}

eddy_status eddy_infer_embedding_backward(eddy_infer *infer) {
    eddy_status status = check_embedding(infer, 1, 2);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 2);
    if (status != EDDY_OK)
        return status;
    eddy_shape wanted = infer->inputs[1].shape;
    const eddy_shape *grad = &infer->inputs[0].shape;
    wanted.dims[wanted.rank++] = infer->inputs[2].shape.dims[1];
    if (!eddy_shape_equal(grad->rank, grad->dims, wanted.rank, wanted.dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "grad must have the shape of the embedding");
    be_like(infer, 2);
    return EDDY_OK;
}

/* ---- masks ---- */

/* The result has the shape that input and mask broadcast to. */
eddy_status eddy_infer_masked(eddy_infer *infer) {
    if (!eddy_shape_broadcast(&infer->inputs[0].shape, &infer->inputs[1].shape,
                              &infer->outputs[0].shape))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input and mask do not broadcast");
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return EDDY_OK;
}

/* The kernel determines the number of elements. */
eddy_status eddy_infer_masked_select(eddy_infer *infer) {
    eddy_status status = eddy_infer_masked(infer);
    infer->outputs[0].shape = (eddy_shape){.rank = 1};
    return status;
}

eddy_status eddy_infer_masked_scatter(eddy_infer *infer) {
    eddy_status status = eddy_check_same_dtype(infer, 0, 2);
    return status == EDDY_OK ? eddy_infer_masked(infer) : status;
}

/* ---- diagonals ---- */

eddy_status eddy_infer_triangle(eddy_infer *infer) {
    if (infer->inputs[0].shape.rank < 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must have two axes or more");
    be_like(infer, 0);
    return EDDY_OK;
}

/* The result of diag of `input`. The diagonal is clamped to the shape, so that kernels need not check for overflow. */
static eddy_status diag_shape(const eddy_infer *infer, const eddy_shape *input, int64_t *diagonal,
                              eddy_shape *shape) {
    if (input->rank == 1) {
        int64_t size = *diagonal;
        if ((size < 0 && __builtin_sub_overflow(0, size, &size)) ||
            __builtin_add_overflow(size, input->dims[0], &size))
            return eddy_infer_fail(infer, EDDY_SIZE_OVERFLOW,
                                   "the matrix does not fit into 63 bits");
        *shape = EDDY_SHAPE(size, size);
        return EDDY_OK;
    }
    if (input->rank != 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must be a vector or a matrix");
    int64_t rows = input->dims[0], columns = input->dims[1];
    *diagonal = *diagonal < -rows ? -rows : *diagonal > columns ? columns : *diagonal;
    rows += *diagonal < 0 ? *diagonal : 0;
    columns -= *diagonal > 0 ? *diagonal : 0;
    *shape = EDDY_SHAPE(rows < columns ? rows : columns);
    return EDDY_OK;
}

eddy_status eddy_infer_diag(eddy_infer *infer) {
    eddy_attributes_diagonal *attributes = infer->attributes;
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return diag_shape(infer, &infer->inputs[0].shape, &attributes->diagonal,
                      &infer->outputs[0].shape);
}

eddy_status eddy_infer_diag_backward(eddy_infer *infer) {
    eddy_attributes_diagonal *attributes = infer->attributes;
    eddy_shape wanted;
    eddy_status status = diag_shape(infer, &infer->inputs[1].shape, &attributes->diagonal, &wanted);
    if (status == EDDY_OK)
        status = eddy_check_same_dtype(infer, 0, 1);
    if (status != EDDY_OK)
        return status;
    const eddy_shape *grad = &infer->inputs[0].shape;
    if (!eddy_shape_equal(grad->rank, grad->dims, wanted.rank, wanted.dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "grad must have the shape of the result of diag");
    be_like(infer, 1);
    return EDDY_OK;
}
