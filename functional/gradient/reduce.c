/* Gradients of reductions. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>
#include <math.h>

/* The gradient of the largest or smallest element: equal ones share it evenly, as in PyTorch's amax. */
eddy_status eddy_gradient_extreme(const eddy_gradient_call *call) {
    const eddy_arguments_max *arguments = call->attributes;
    const eddy_spec *spec = &call->input_specs[0];
    uint32_t mask = arguments->axes;
    bool keeps_dims = arguments->keeps_dims;
    eddy_tensor *is_chosen =
        eddy_eq(call->inputs[0], eddy_gradient_expand(call->outputs[0], spec, mask, keeps_dims));
    eddy_tensor *shares = eddy_cast(is_chosen, eddy_dtype_of(call->grads[0]));
    eddy_tensor *count =
        eddy_sum(shares, eddy_gradient_axes(mask),
                 &(eddy_sum_options){.size = sizeof(eddy_sum_options), .keeps_dims = true});
    eddy_tensor *grad = eddy_gradient_expand(call->grads[0], spec, mask, keeps_dims);
    call->results[0] = eddy_mul(eddy_div(grad, count), shares);
    return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
}

/* Orders inf and -inf select elements: equal ones share the gradient evenly, with the signs of x. */
static eddy_tensor *norm_by_choice(const eddy_gradient_call *call, eddy_tensor *size,
                                   eddy_tensor *norm, eddy_tensor *grad) {
    const eddy_arguments_norm *arguments = call->attributes;
    eddy_tensor *shares = eddy_cast(eddy_eq(size, norm), eddy_dtype_of(grad));
    eddy_tensor *count =
        eddy_sum(shares, eddy_gradient_axes(arguments->axes),
                 &(eddy_sum_options){.size = sizeof(eddy_sum_options), .keeps_dims = true});
    return eddy_mul(eddy_div(grad, count), eddy_mul(shares, eddy_sign(call->inputs[0])));
}

/* x / norm; 0 where the norm is 0. */
static eddy_tensor *norm_of_squares(const eddy_gradient_call *call) {
    const eddy_arguments_norm *arguments = call->attributes;
    eddy_tensor *norm = call->outputs[0];
    eddy_tensor *factor = eddy_where(eddy_eq_s(norm, EDDY_S(0)), eddy_gradient_constant(call, 0),
                                     eddy_div(call->grads[0], norm));
    return eddy_mul(call->inputs[0], eddy_gradient_expand(factor, &call->input_specs[0],
                                                          arguments->axes, arguments->keeps_dims));
}

/* sign(x) (|x| / norm)^(p - 1). 0 where x is 0, as in PyTorch. */
static eddy_tensor *norm_of_powers(eddy_tensor *x, eddy_tensor *norm, eddy_tensor *grad, double p,
                                   eddy_tensor *zero) {
    eddy_tensor *slope =
        eddy_mul(eddy_sign(x), eddy_pow_s(eddy_div(eddy_abs(x), norm), EDDY_S(p - 1)));
    return eddy_where(eddy_eq_s(x, EDDY_S(0)), zero, eddy_mul(grad, slope));
}

eddy_status eddy_gradient_norm(const eddy_gradient_call *call) {
    const eddy_arguments_norm *arguments = call->attributes;
    const eddy_spec *spec = &call->input_specs[0];
    eddy_tensor *x = call->inputs[0];
    if (arguments->p == 0) { /* a count */
        call->results[0] = eddy_gradient_zeros(call, spec);
        return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
    }
    eddy_tensor *norm =
        eddy_gradient_expand(call->outputs[0], spec, arguments->axes, arguments->keeps_dims);
    eddy_tensor *grad =
        eddy_gradient_expand(call->grads[0], spec, arguments->axes, arguments->keeps_dims);
    if (arguments->p == 2)
        call->results[0] = norm_of_squares(call);
    else if (isinf(arguments->p))
        call->results[0] = norm_by_choice(call, eddy_abs(x), norm, grad);
    else
        call->results[0] =
            norm_of_powers(x, norm, grad, arguments->p, eddy_gradient_constant(call, 0));
    return call->results[0] ? EDDY_OK : eddy_outcome_why(call->outcome);
}
