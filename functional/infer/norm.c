/* Normalisations and their gradients. */
#include <functional/infer.h>

#include <base/dtype.h>
#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

static eddy_status check_eps(const eddy_infer *infer, double eps) {
    if (!(eps >= 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "eps is %g", eps);
    return EDDY_OK;
}

/* Input `i` is absent, or has the shape, and the dtype of input `x`, or f32 if that has 16 bits. */
static eddy_status check_parameter(const eddy_infer *infer, int64_t i, const eddy_shape *shape,
                                   int64_t x) {
    const eddy_spec *spec = &infer->inputs[i];
    if (spec->is_absent)
        return EDDY_OK;
    if (!eddy_shape_equal(spec->shape.rank, spec->shape.dims, shape->rank, shape->dims)) {
        char text[EDDY_RANK_MAX * 22];
        eddy_shape_format(shape->rank, shape->dims, text, sizeof(text));
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%s must have shape %s",
                               eddy_check_name(infer, i).text, text);
    }
    bool is_wider = spec->dtype == EDDY_F32 && eddy_dtype_bytes(infer->inputs[x].dtype) == 2;
    return is_wider ? EDDY_OK : eddy_check_same_dtype(infer, x, i);
}

/* grad and x at inputs 0 and 1 of a gradient. */
static eddy_status check_gradient(const eddy_infer *infer) {
    eddy_status status = eddy_check_same_shape(infer, 0, 1);
    return status == EDDY_OK ? eddy_check_same_dtype(infer, 0, 1) : status;
}

static void set_output(eddy_infer *infer, const eddy_shape *shape, int64_t like) {
    infer->outputs[0].shape = *shape;
    infer->outputs[0].dtype = infer->inputs[like].dtype;
}

/* ---- layer_norm, rms_norm ---- */

/* The last axes, over which input `x` is normalised. */
static eddy_status last_axes(const eddy_infer *infer, int64_t x, eddy_shape *axes) {
    const eddy_attributes_layer_norm *attributes = infer->attributes;
    const eddy_shape *shape = &infer->inputs[x].shape;
    eddy_status status = eddy_check_float(infer, x);
    if (status == EDDY_OK)
        status = check_eps(infer, attributes->eps);
    if (status != EDDY_OK)
        return status;
    if (attributes->axis_count < 1 || attributes->axis_count > shape->rank)
        return eddy_infer_fail(infer, EDDY_OUT_OF_RANGE,
                               "axis_count %lld is not within 1 and the rank %d",
                               (long long)attributes->axis_count, (int)shape->rank);
    axes->rank = (int32_t)attributes->axis_count;
    for (int32_t d = 0; d < axes->rank; d++)
        axes->dims[d] = shape->dims[shape->rank - axes->rank + d];
    return EDDY_OK;
}

static eddy_status check_parameters(const eddy_infer *infer, int64_t first, const eddy_shape *shape,
                                    int64_t x) {
    eddy_status status = EDDY_OK;
    for (int64_t i = first; i < infer->input_count && status == EDDY_OK; i++)
        status = check_parameter(infer, i, shape, x);
    return status;
}

eddy_status eddy_infer_layer_norm(eddy_infer *infer) {
    eddy_shape axes;
    eddy_status status = last_axes(infer, 0, &axes);
    if (status == EDDY_OK)
        status = check_parameters(infer, 1, &axes, 0);
    set_output(infer, &infer->inputs[0].shape, 0);
    return status;
}

eddy_status eddy_infer_layer_norm_backward(eddy_infer *infer) {
    eddy_shape axes;
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = last_axes(infer, 1, &axes);
    if (status == EDDY_OK)
        status = check_parameters(infer, 2, &axes, 1);
    set_output(infer, &infer->inputs[1].shape, 1);
    return status;
}

eddy_status eddy_infer_layer_norm_backward_weight(eddy_infer *infer) {
    eddy_shape axes = {0};
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = last_axes(infer, 1, &axes);
    set_output(infer, &axes, 1);
    return status;
}

/* ---- group_norm ---- */

/* [C] of input `x`, which is [N, C, ..]. */
static eddy_status channels_of(const eddy_infer *infer, int64_t x, eddy_shape *channels) {
    const eddy_shape *shape = &infer->inputs[x].shape;
    eddy_status status = eddy_check_float(infer, x);
    if (status != EDDY_OK)
        return status;
    if (shape->rank < 2)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "%s must be [N, C, ..]",
                               eddy_check_name(infer, x).text);
    *channels = (eddy_shape){.rank = 1, .dims = {shape->dims[1]}};
    return EDDY_OK;
}

static eddy_status check_groups(const eddy_infer *infer, int64_t x, eddy_shape *channels) {
    const eddy_attributes_group_norm *attributes = infer->attributes;
    eddy_status status = channels_of(infer, x, channels);
    if (status == EDDY_OK)
        status = check_eps(infer, attributes->eps);
    if (status != EDDY_OK)
        return status;
    if (channels->dims[0] == 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "there are no channels to make groups of");
    if (attributes->groups < 1 || channels->dims[0] % attributes->groups != 0)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                               "%lld channels cannot be cut into %lld groups",
                               (long long)channels->dims[0], (long long)attributes->groups);
    return EDDY_OK;
}

eddy_status eddy_infer_group_norm(eddy_infer *infer) {
    eddy_shape channels;
    eddy_status status = check_groups(infer, 0, &channels);
    if (status == EDDY_OK)
        status = check_parameters(infer, 1, &channels, 0);
    set_output(infer, &infer->inputs[0].shape, 0);
    return status;
}

eddy_status eddy_infer_group_norm_backward(eddy_infer *infer) {
    eddy_shape channels;
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = check_groups(infer, 1, &channels);
    if (status == EDDY_OK)
        status = check_parameters(infer, 2, &channels, 1);
    set_output(infer, &infer->inputs[1].shape, 1);
    return status;
}

eddy_status eddy_infer_group_norm_backward_weight(eddy_infer *infer) {
    eddy_shape channels = {0};
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = check_groups(infer, 1, &channels);
    set_output(infer, &channels, 1);
    return status;
}

/* ---- batch_norm ---- */

static eddy_status check_batch_norm(const eddy_infer *infer) {
    const eddy_attributes_batch_norm *attributes = infer->attributes;
    eddy_shape channels;
    eddy_status status = channels_of(infer, 0, &channels);
    if (status == EDDY_OK)
        status = check_eps(infer, attributes->eps);
    return status == EDDY_OK ? check_parameters(infer, 1, &channels, 0) : status;
}

eddy_status eddy_infer_batch_norm(eddy_infer *infer) {
    eddy_status status = check_batch_norm(infer);
    set_output(infer, &infer->inputs[0].shape, 0);
    return status;
}

eddy_status eddy_infer_batch_norm_training(eddy_infer *infer) {
    const eddy_attributes_batch_norm *attributes = infer->attributes;
    const eddy_shape *x = &infer->inputs[0].shape;
    eddy_status status = check_batch_norm(infer);
    if (status != EDDY_OK)
        return status;
    if (!(attributes->momentum >= 0 && attributes->momentum <= 1))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "momentum %g is not within 0 and 1",
                               attributes->momentum);
    int64_t values = 1;
    for (int32_t d = 0; d < x->rank; d++)
        values *= d == 1 ? 1 : x->dims[d];
    if (values == 1)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                               "a channel of one value has no variance");
    set_output(infer, x, 0);
    return EDDY_OK;
}

eddy_status eddy_infer_batch_norm_backward(eddy_infer *infer) {
    const eddy_attributes_batch_norm *attributes = infer->attributes;
    eddy_shape channels;
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = channels_of(infer, 1, &channels);
    if (status == EDDY_OK)
        status = check_eps(infer, attributes->eps);
    if (status == EDDY_OK)
        status = check_parameters(infer, 2, &channels, 1);
    set_output(infer, &infer->inputs[1].shape, 1);
    return status;
}

eddy_status eddy_infer_batch_norm_backward_weight(eddy_infer *infer) {
    const eddy_attributes_batch_norm *attributes = infer->attributes;
    eddy_shape channels = {0};
    eddy_status status = check_gradient(infer);
    if (status == EDDY_OK)
        status = channels_of(infer, 1, &channels);
    if (status == EDDY_OK)
        status = check_eps(infer, attributes->eps);
    set_output(infer, &channels, 1);
    return status;
}

eddy_status eddy_infer_channel_sum(eddy_infer *infer) {
    eddy_attributes_reduce *attributes = infer->attributes;
    eddy_shape channels = {0};
    eddy_status status = channels_of(infer, 0, &channels);
    attributes->axes = ((1u << infer->inputs[0].shape.rank) - 1) & ~2u;
    set_output(infer, &channels, 0);
    return status;
}
