/* Gradients of reductions. */
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>
#include <interpreter/runtime.h>

/* Of the largest or smallest element: equals share it evenly, as in PyTorch's amax. */
eddy_status eddy_gradient_extreme(const eddy_gradient_call *call) {
    const eddy_arguments_max *arguments = call->attributes;
    const eddy_spec *spec = &call->input_specs[0];
    uint32_t mask = arguments->axes;
    bool keepdim = arguments->keepdim;
    eddy_tensor *is_chosen = eddy_eq(call->inputs[0], eddy_gradient_expand(call->outputs[0], spec, mask, keepdim));
    eddy_tensor *shares = eddy_cast(is_chosen, eddy_dtype_of(call->gradients[0]));
    eddy_tensor *count = eddy_sum(shares, EDDY_GRADIENT_AXES(mask),
                                  &(eddy_sum_options){.size = sizeof(eddy_sum_options), .keepdim = true});
    eddy_tensor *grad = eddy_gradient_expand(call->gradients[0], spec, mask, keepdim);
    call->results[0] = eddy_mul(eddy_div(grad, count), shares);
    return call->results[0] ? EDDY_OK : eddy_runtime_failure();
}

/* x / norm for p = 2; for others sign(x) (|x| / norm)^(p - 1). Where the norm is 0 so is the gradient. */
eddy_status eddy_gradient_norm(const eddy_gradient_call *call) {
    const eddy_arguments_norm *arguments = call->attributes;
    const eddy_spec *spec = &call->input_specs[0];
    if (arguments->p != 2)
        return eddy_gradient_refuse(call, "p other than 2");
    eddy_tensor *norm = call->outputs[0];
    eddy_tensor *factor =
        eddy_where(eddy_eq_s(norm, EDDY_S(0)), eddy_gradient_constant(call, 0), eddy_div(call->gradients[0], norm));
    call->results[0] =
        eddy_mul(call->inputs[0], eddy_gradient_expand(factor, spec, arguments->axes, arguments->keepdim));
    return call->results[0] ? EDDY_OK : eddy_runtime_failure();
}
