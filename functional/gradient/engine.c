/* The ops that every backward pass needs. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <interpreter/tape/gradient.h>

static eddy_status add_to(eddy_tensor *sum, eddy_tensor *summand) {
    return eddy_add_inplace(sum, summand);
}

/* The status of `made`, which was made since the outcome began. */
static eddy_status give(eddy_outcome *outcome, eddy_tensor *made, eddy_tensor **result) {
    eddy_outcome_end(outcome);
    if (!made)
        return eddy_outcome_why(outcome);
    *result = made;
    return EDDY_OK;
}

static eddy_status add(eddy_tensor *a, eddy_tensor *b, eddy_tensor **result) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, eddy_add(a, b), result);
}

static eddy_status clone(eddy_tensor *tensor, eddy_tensor **result) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, eddy_clone(tensor), result);
}

static eddy_status ones_like(eddy_tensor *tensor, eddy_tensor **result) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, eddy_ones_like(tensor, NULL), result);
}

static eddy_status zeros(const eddy_spec *spec, eddy_device device, eddy_tensor **result) {
    eddy_zeros_options options = {.size = sizeof(options), .device = device};
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, eddy_zeros(spec->shape, spec->dtype, &options), result);
}

static eddy_status room(const eddy_spec *spec, const eddy_view_attributes *part, eddy_device device,
                        eddy_tensor **result) {
    eddy_empty_options options = {.size = sizeof(options), .device = device};
    eddy_shape shape = spec->shape;
    eddy_axes back = {.count = shape.rank};
    for (int32_t d = 0; d < shape.rank; d++) {
        shape.dims[d] = spec->shape.dims[part->order[d]];
        back.axes[part->order[d]] = d;
    }
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, eddy_permute(eddy_empty(shape, spec->dtype, &options), back), result);
}

static eddy_tensor *view_of(eddy_tensor *whole, const eddy_view_attributes *part) {
    if (part->is_removed)
        return eddy_select(whole, part->axes[0], part->start);
    if (part->step == 1 || part->length == 0)
        return eddy_narrow(whole, part->axes[0], part->start, part->length);
    return eddy_slice(whole, part->axes[0], part->start,
                      part->start + (part->length - 1) * part->step + 1, part->step);
}

static eddy_status place_of(eddy_tensor *whole, const eddy_view_attributes *part,
                            eddy_tensor **place) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, view_of(whole, part), place);
}

static eddy_status put_part(eddy_tensor *whole, const eddy_view_attributes *part,
                            eddy_tensor *gradient) {
    eddy_tensor *place = NULL;
    eddy_status status = place_of(whole, part, &place);
    return status == EDDY_OK ? eddy_copy_into(gradient, place) : status;
}

static eddy_status add_part(eddy_tensor *whole, const eddy_view_attributes *part,
                            eddy_tensor *gradient) {
    eddy_tensor *place = NULL;
    eddy_status status = place_of(whole, part, &place);
    return status == EDDY_OK ? eddy_add_inplace(place, gradient) : status;
}

static eddy_status clear(eddy_tensor *whole, int32_t axis, int64_t begin, int64_t end) {
    if (begin == end)
        return EDDY_OK;
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *place = eddy_narrow(whole, axis, begin, end - begin);
    eddy_zeros_options options = {.size = sizeof(options), .device = eddy_device_of(whole)};
    eddy_tensor *zero =
        eddy_expand(eddy_zeros(EDDY_SHAPE(), eddy_dtype_of(whole), &options), eddy_shape_of(whole));
    zero = eddy_narrow(zero, axis, begin, end - begin);
    eddy_outcome_end(&outcome);
    return place && zero ? eddy_copy_into(zero, place) : eddy_outcome_why(&outcome);
}

/* Sums over axes that broadcasting added in front or repeated, in the wider dtype. */
static eddy_tensor *fitted(eddy_tensor *gradient, const eddy_spec *spec) {
    eddy_shape from = eddy_shape_of(gradient);
    eddy_axes axes = {0};
    int32_t added = from.rank - spec->shape.rank;
    for (int32_t d = 0; d < from.rank; d++)
        if (d < added || (spec->shape.dims[d - added] == 1 && from.dims[d] != 1))
            axes.axes[axes.count++] = d;
    if (axes.count > 0)
        gradient =
            eddy_sum(gradient, axes,
                     &(eddy_sum_options){.size = sizeof(eddy_sum_options), .keeps_dims = true});
    if (added > 0)
        gradient = eddy_reshape(gradient, spec->shape);
    /* Axes that are still smaller were broadcast by the formula. */
    if (gradient)
        gradient = eddy_expand(gradient, spec->shape);
    if (gradient && eddy_dtype_of(gradient) != spec->dtype)
        gradient = eddy_cast(gradient, spec->dtype);
    return gradient;
}

static eddy_status fit(eddy_tensor *gradient, const eddy_spec *spec, eddy_tensor **result) {
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    return give(&outcome, fitted(gradient, spec), result);
}

const eddy_gradient_ops eddy_gradient_ops_table = {
    .add = add,
    .add_to = add_to,
    .clone = clone,
    .ones_like = ones_like,
    .zeros = zeros,
    .room = room,
    .put_part = put_part,
    .add_part = add_part,
    .clear = clear,
    .fit = fit,
};
