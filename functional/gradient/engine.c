/* The ops that going back needs whatever it goes through. */
#include <eddy/eddy.h>
#include <interpreter/gradient.h>

static eddy_status add_to(eddy_tensor *sum, eddy_tensor *summand) {
    return eddy_add_inplace(sum, summand);
}

static eddy_tensor *ones_like(eddy_tensor *tensor) {
    return eddy_ones_like(tensor, NULL);
}

static eddy_tensor *zeros(const eddy_spec *spec, eddy_device device) {
    eddy_zeros_options options = {.size = sizeof(options), .device = device};
    return eddy_zeros(spec->shape, spec->dtype, &options);
}

/* Sums over what broadcasting added in front or stretched, in the wider dtype. */
static eddy_tensor *fit(eddy_tensor *gradient, const eddy_spec *spec) {
    eddy_shape from = eddy_shape_of(gradient);
    eddy_axes axes = {0};
    int32_t added = from.rank - spec->shape.rank;
    for (int32_t d = 0; d < from.rank; d++)
        if (d < added || (spec->shape.dims[d - added] == 1 && from.dims[d] != 1))
            axes.axes[axes.count++] = d;
    if (axes.count > 0)
        gradient = eddy_sum(gradient, &axes, &(eddy_sum_options){.size = sizeof(eddy_sum_options), .keepdim = true});
    if (added > 0)
        gradient = eddy_reshape(gradient, spec->shape);
    /* What is still smaller was broadcast by the formula. */
    if (gradient)
        gradient = eddy_expand(gradient, spec->shape);
    if (gradient && eddy_dtype_of(gradient) != spec->dtype)
        gradient = eddy_cast(gradient, spec->dtype);
    return gradient;
}

const eddy_gradient_ops eddy_gradient_ops_table = {
    .add = eddy_add,
    .add_to = add_to,
    .clone = eddy_clone,
    .ones_like = ones_like,
    .zeros = zeros,
    .fit = fit,
};
