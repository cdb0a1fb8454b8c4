#include <functional/gradient/helper.h>

#include <base/assert.h>
#include <base/call_site.h>
#include <base/dtype.h>
#include <base/status.h>
#include <interpreter/call/apply.h>
#include <string.h>

#define ATTRIBUTE_BYTES 64

eddy_tensor *eddy_gradient_constant(const eddy_gradient_call *call, double value) {
    eddy_full_options options = {.size = sizeof(options), .device = call->device};
    return eddy_full(EDDY_SHAPE(), EDDY_S(value), eddy_dtype_of(call->grads[0]), &options);
}

eddy_tensor *eddy_gradient_zeros(const eddy_gradient_call *call, const eddy_spec *spec) {
    eddy_zeros_options options = {.size = sizeof(options), .device = call->device};
    return eddy_zeros(spec->shape, spec->dtype, &options);
}

eddy_tensor *eddy_gradient_widen(eddy_tensor *tensor) {
    return tensor && eddy_dtype_bytes(eddy_dtype_of(tensor)) == 2 ? eddy_cast(tensor, EDDY_F32)
                                                                  : tensor;
}

static bool is_reduced(uint32_t axes, int32_t d) {
    return axes == 0 || (axes >> d & 1);
}

eddy_tensor *eddy_gradient_expand(eddy_tensor *gradient, const eddy_spec *spec, uint32_t axes,
                                  bool keeps_dims) {
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

eddy_axes eddy_gradient_axes(uint32_t mask) {
    eddy_axes axes = {0};
    for (int32_t d = 0; d < EDDY_RANK_MAX; d++)
        if (mask >> d & 1)
            axes.axes[axes.count++] = d;
    return axes;
}

bool eddy_gradient_is_fused(const eddy_gradient_call *call, uint32_t inputs, uint32_t outputs) {
    eddy_dtype dtype = eddy_dtype_of(call->grads[0]);
    bool is_alike = !call->is_recorded;
    for (int32_t i = 0; i < call->op->operand_count; i++)
        is_alike = is_alike && (!(inputs >> i & 1) || eddy_dtype_of(call->inputs[i]) == dtype);
    return is_alike && (!(outputs & 1) || eddy_dtype_of(call->outputs[0]) == dtype);
}

eddy_tensor *eddy_gradient_fused(const eddy_gradient_call *call, const eddy_op *op,
                                 eddy_tensor *const *operands) {
    _Alignas(16) char attributes[ATTRIBUTE_BYTES];
    EDDY_ASSERT(op->attribute_bytes <= sizeof(attributes));
    if (op->attribute_bytes > 0)
        memcpy(attributes, call->attributes, op->attribute_bytes);
    return eddy_interpreter_apply_one(op, operands, op->operand_count,
                                      op->attribute_bytes ? attributes : NULL, EDDY_CALL_ADDRESS());
}

eddy_status eddy_gradient_refuse(const eddy_gradient_call *call, const char *what) {
    return eddy_fail(EDDY_UNSUPPORTED, (eddy_origin){call->op->name, NULL},
                     "its gradient does not know %s", what);
}
