#include <functional/gradient/helper.h>

#include <base/dtype.h>
#include <base/status.h>

eddy_tensor *eddy_gradient_constant(const eddy_gradient_call *call, double value) {
    eddy_full_options options = {.size = sizeof(options), .device = call->device};
    return eddy_full(EDDY_SHAPE(), EDDY_S(value), eddy_dtype_of(call->grads[0]), &options);
}

eddy_tensor *eddy_gradient_zeros(const eddy_gradient_call *call, const eddy_spec *spec) {
    eddy_zeros_options options = {.size = sizeof(options), .device = call->device};
    return eddy_zeros(spec->shape, spec->dtype, &options);
}

eddy_tensor *eddy_gradient_widen(eddy_tensor *tensor) {
    return tensor && eddy_dtype_bytes(eddy_dtype_of(tensor)) == 2 ? eddy_cast(tensor, EDDY_F32) : tensor;
}

static bool is_reduced(uint32_t axes, int32_t d) {
    return axes == 0 || (axes >> d & 1);
}

eddy_tensor *eddy_gradient_expand(eddy_tensor *gradient, const eddy_spec *spec, uint32_t axes, bool keeps_dims) {
    if (!keeps_dims) {
        eddy_shape kept = spec->shape;
        for (int32_t d = 0; d < kept.rank; d++)
            if (is_reduced(axes, d))
                kept.dims[d] = 1;
        gradient = eddy_reshape(gradient, kept);
    }
    return eddy_expand(gradient, spec->shape);
}

double eddy_gradient_count(const eddy_spec *spec, uint32_t axes) {
    double count = 1;
    for (int32_t d = 0; d < spec->shape.rank; d++)
        if (is_reduced(axes, d))
            count *= (double)spec->shape.dims[d];
    return count;
}

const eddy_axes *eddy_gradient_axes(uint32_t mask, eddy_axes *axes) {
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        if (mask >> d & 1)
            axes->axes[axes->count++] = d;
    return axes;
}

eddy_status eddy_gradient_refuse(const eddy_gradient_call *call, const char *what) {
    return eddy_fail(EDDY_UNSUPPORTED, (eddy_origin){call->op->name, NULL}, "its gradient does not know %s", what);
}
