/* The gradient of cumprod's gradient.
 *
 * dx[i] is the sum over k >= i of grad[k] M[i, k], M[i, k] being the product of the elements up to k without x[i]. M is a cumprod of
 * matrices, so that this holds where elements are 0 too; it takes the square of the axis' length in memory. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

enum { GRAD, X };

/* bool [n, n]: true on the main diagonal. */
static eddy_tensor *diagonal(int64_t n, eddy_device device) {
    eddy_arange_options options = {.size = sizeof(options), .device = device};
    eddy_tensor *index = eddy_arange(EDDY_S(0), EDDY_S(n), EDDY_S(1), EDDY_I64, &options);
    return eddy_eq(index, eddy_unsqueeze(index, 1));
}

/* The sum over an axis of matrices, whose leading axes are those of x without `axis`; `axis` returns to its place. */
static eddy_tensor *sum_back(eddy_tensor *matrices, int32_t over, int32_t axis) {
    return eddy_transpose(eddy_sum(matrices, EDDY_AXES(over), NULL), axis, -1);
}

eddy_status eddy_gradient_cumprod_backward(const eddy_gradient_call *call) {
    if (call->input_specs[X].shape.rank == 0) { /* dx is grad */
        call->results[GRAD] = call->grads[0];
        return EDDY_OK;
    }
    int32_t axis = ((const eddy_arguments_cumprod_backward *)call->attributes)->axis;
    eddy_tensor *came = eddy_transpose(eddy_gradient_widen(call->grads[0]), axis, -1);
    eddy_tensor *grad = eddy_transpose(eddy_gradient_widen(call->inputs[GRAD]), axis, -1);
    eddy_tensor *x =
        eddy_unsqueeze(eddy_transpose(eddy_gradient_widen(call->inputs[X]), axis, -1), -2);
    if (!x)
        return eddy_outcome_why(call->outcome);
    eddy_shape shape = eddy_shape_of(x);
    int64_t n = shape.dims[shape.rank - 1];
    shape.dims[shape.rank - 2] = n;
    eddy_tensor *self = diagonal(n, call->device);
    eddy_tensor *others = eddy_masked_fill(eddy_expand(x, shape), self, EDDY_S(1));
    came = eddy_unsqueeze(came, -1);
    if (call->is_wanted[GRAD]) {
        eddy_tensor *products = eddy_triu(eddy_cumprod(others, -1), 0);
        call->results[GRAD] = sum_back(eddy_mul(products, came), -2, axis);
        if (!call->results[GRAD])
            return eddy_outcome_why(call->outcome);
    }
    if (call->is_wanted[X]) {
        eddy_tensor *to_products = eddy_triu(eddy_mul(eddy_unsqueeze(grad, -2), came), 0);
        eddy_tensor *to_others =
            eddy_masked_fill(eddy_cumprod_backward(to_products, others, -1), self, EDDY_S(0));
        call->results[X] = sum_back(to_others, -2, axis);
        if (!call->results[X])
            return eddy_outcome_why(call->outcome);
    }
    return EDDY_OK;
}
