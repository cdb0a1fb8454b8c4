/* Gradients of the gradients of activations that take more than a formula. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments_all.h>
#include <functional/gradient/helper.h>

/* The second derivative of gelu: the density of the normal distribution times 2 - x^2. */
static eddy_tensor *curvature_exact(eddy_tensor *x) {
    eddy_tensor *square = eddy_square(x);
    eddy_tensor *density =
        eddy_mul_s(eddy_exp(eddy_mul_s(square, EDDY_S(-0.5))), EDDY_S(0.39894228040143268));
    return eddy_mul(density, eddy_add_s(eddy_neg(square), EDDY_S(2)));
}

/* Of x (1 + tanh u) / 2 with u = k (x + a x^3): sech^2 u (u' + x (u'' / 2 - tanh u u'^2)). */
static eddy_tensor *curvature_tanh(eddy_tensor *x) {
    const double k = 0.79788456080286536, a = 0.044715;
    eddy_tensor *square = eddy_square(x);
    eddy_tensor *u = eddy_mul(x, eddy_add_s(eddy_mul_s(square, EDDY_S(k * a)), EDDY_S(k)));
    eddy_tensor *slope = eddy_add_s(eddy_mul_s(square, EDDY_S(3 * k * a)), EDDY_S(k));
    eddy_tensor *t = eddy_tanh(u);
    eddy_tensor *bend = eddy_sub(eddy_mul_s(x, EDDY_S(3 * k * a)), eddy_mul(t, eddy_square(slope)));
    eddy_tensor *sech2 = eddy_add_s(eddy_neg(eddy_square(t)), EDDY_S(1));
    return eddy_mul(sech2, eddy_add(slope, eddy_mul(x, bend)));
}

eddy_status eddy_gradient_gelu_backward(const eddy_gradient_call *call) {
    const eddy_arguments_gelu_backward *arguments = call->attributes;
    eddy_tensor *grad = call->grads[0], *x = call->inputs[1];
    if (call->is_wanted[0]) {
        eddy_gelu_backward_options options = {
            .size = sizeof(options), .approximate = (eddy_approximate)arguments->approximate};
        call->results[0] = eddy_gelu_backward(grad, x, &options);
        if (!call->results[0])
            return eddy_outcome_why(call->outcome);
    }
    if (call->is_wanted[1]) {
        eddy_tensor *curvature = arguments->approximate == EDDY_APPROXIMATE_NONE
                                     ? curvature_exact(x)
                                     : curvature_tanh(x);
        call->results[1] = eddy_mul(eddy_mul(grad, call->inputs[0]), curvature);
        if (!call->results[1])
            return eddy_outcome_why(call->outcome);
    }
    return EDDY_OK;
}
