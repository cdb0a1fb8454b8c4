/* Gradients of the gradients of normalisations.
 *
 * With n = (x - mean) / s, s the root of variance + eps, and u = grad * weight, the gradient is P u / s, where
 * P u = u - mean(u) - n mean(u n); rms_norm leaves out the means of x and u. P is symmetric, which gives the gradient to u. The gradient
 * of n is h = -(mean(u n) v + mean(v n) u) / s; x gets P h / s through it, and -n mean(v P u / s) / s through s. */
#include <base/dtype.h>
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

enum { GRAD, X, WEIGHT };

/* The values of a normalisation of x, along axes that are kept with size 1. */
typedef struct normal {
    eddy_axes axes;
    bool is_centred;
    eddy_tensor *n;       /* x without its mean, over s */
    eddy_tensor *inverse; /* 1 / s */
} normal;

static eddy_tensor *mean(const normal *m, eddy_tensor *tensor) {
    return eddy_mean(tensor, m->axes,
                     &(eddy_mean_options){.size = sizeof(eddy_mean_options), .keeps_dims = true});
}

static void normalise(normal *m, eddy_tensor *x, double eps) {
    eddy_tensor *centred = m->is_centred ? eddy_sub(x, mean(m, x)) : x;
    m->inverse = eddy_rsqrt(eddy_add_s(mean(m, eddy_square(centred)), EDDY_S(eps)));
    m->n = eddy_mul(centred, m->inverse);
}

/* P u / s */
static eddy_tensor *project(const normal *m, eddy_tensor *u) {
    eddy_tensor *rest = eddy_sub(u, eddy_mul(m->n, mean(m, eddy_mul(u, m->n))));
    if (m->is_centred)
        rest = eddy_sub(rest, mean(m, u));
    return eddy_mul(rest, m->inverse);
}

/* The gradient to x, where v is that of the gradient of u. */
static eddy_tensor *bend(const normal *m, eddy_tensor *u, eddy_tensor *v) {
    eddy_tensor *to_n =
        eddy_add(eddy_mul(mean(m, eddy_mul(u, m->n)), v), eddy_mul(mean(m, eddy_mul(v, m->n)), u));
    eddy_tensor *by_n = project(m, eddy_mul(eddy_neg(to_n), m->inverse));
    eddy_tensor *by_s = eddy_mul(eddy_mul(m->n, mean(m, eddy_mul(v, project(m, u)))), m->inverse);
    return eddy_sub(by_n, by_s);
}

static eddy_status give(const eddy_gradient_call *call, int operand, eddy_tensor *result) {
    call->results[operand] = result;
    return result ? EDDY_OK : eddy_outcome_why(call->outcome);
}

/* The gradients of a call with its tensors in `shape`, normalised along m->axes; `weight` broadcasts to x's own
 * shape, and `sum_weight` sums its gradient. */
static eddy_status go_back(const eddy_gradient_call *call, normal *m, eddy_shape shape, double eps,
                           eddy_tensor *weight, eddy_tensor *(*sum_weight)(eddy_tensor *)) {
    const eddy_shape own = call->input_specs[X].shape;
    eddy_tensor *v = eddy_reshape(eddy_gradient_widen(call->grads[0]), shape),
                *grad = call->inputs[GRAD];
    eddy_status status = EDDY_OK;
    normalise(m, eddy_reshape(eddy_gradient_widen(call->inputs[X]), shape), eps);
    eddy_tensor *projected = NULL;
    if (call->is_wanted[GRAD] || (weight && call->is_wanted[WEIGHT]))
        projected = eddy_reshape(project(m, v), own);
    if (call->is_wanted[GRAD])
        status = give(call, GRAD, weight ? eddy_mul(projected, weight) : projected);
    if (status == EDDY_OK && call->is_wanted[X]) {
        eddy_tensor *u = eddy_gradient_widen(weight ? eddy_mul(grad, weight) : grad);
        status = give(call, X, eddy_reshape(bend(m, eddy_reshape(u, shape), v), own));
    }
    if (status == EDDY_OK && weight && call->is_wanted[WEIGHT])
        status = give(call, WEIGHT, sum_weight(eddy_mul(grad, projected)));
    return status;
}

/* ---- the last axes ---- */

/* The engine sums over leading axes. */
static eddy_tensor *leave(eddy_tensor *tensor) {
    return tensor;
}

static eddy_status last_axes(const eddy_gradient_call *call, bool is_centred) {
    const eddy_arguments_layer_norm_backward *a = call->attributes;
    normal m = {.is_centred = is_centred};
    for (int64_t d = 0; d < a->axis_count; d++)
        m.axes.axes[m.axes.count++] = (int32_t)(-1 - d);
    eddy_tensor *weight = call->inputs[WEIGHT] == EDDY_NONE ? NULL : call->inputs[WEIGHT];
    return go_back(call, &m, call->input_specs[X].shape, a->eps, weight, leave);
}

eddy_status eddy_gradient_layer_norm_backward(const eddy_gradient_call *call) {
    return last_axes(call, true);
}

eddy_status eddy_gradient_rms_norm_backward(const eddy_gradient_call *call) {
    return last_axes(call, false);
}

/* ---- channels ---- */

/* [C] in the shape that broadcasts to x [N, C, ..]; NULL if absent. */
static eddy_tensor *along_channels(const eddy_gradient_call *call) {
    const eddy_shape *x = &call->input_specs[X].shape;
    eddy_shape shape = {.rank = x->rank - 1, .dims = {x->dims[1]}};
    for (int32_t d = 1; d < shape.rank; d++)
        shape.dims[d] = 1;
    return call->inputs[WEIGHT] == EDDY_NONE ? NULL : eddy_reshape(call->inputs[WEIGHT], shape);
}

eddy_status eddy_gradient_group_norm_backward(const eddy_gradient_call *call) {
    const eddy_arguments_group_norm_backward *a = call->attributes;
    const eddy_shape *x = &call->input_specs[X].shape;
    normal m = {.axes = {1, {2}}, .is_centred = true};
    eddy_shape shape = EDDY_SHAPE(x->dims[0], a->groups, x->dims[1] / a->groups);
    for (int32_t d = 2; d < x->rank; d++)
        shape.dims[2] *= x->dims[d];
    return go_back(call, &m, shape, a->eps, along_channels(call), eddy_channel_sum);
}

eddy_status eddy_gradient_batch_norm_backward(const eddy_gradient_call *call) {
    const eddy_arguments_batch_norm_backward *a = call->attributes;
    const eddy_shape *x = &call->input_specs[X].shape;
    normal m = {.is_centred = true};
    for (int32_t d = 0; d < x->rank; d++)
        if (d != 1)
            m.axes.axes[m.axes.count++] = d;
    return go_back(call, &m, *x, a->eps, along_channels(call), eddy_channel_sum);
}
