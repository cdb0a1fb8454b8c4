/* Gradients of the gradients of losses. Each of these is linear in its own gradient, to which goes its result for a gradient of 1. */
#include <base/status.h>
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>

/* The operands of pair losses, after the gradient. */
enum { GRAD, INPUT, TARGET, WEIGHT, POS_WEIGHT };

static eddy_status give(const eddy_gradient_call *call, int operand, eddy_tensor *result) {
    call->results[operand] = result;
    return result ? EDDY_OK : eddy_outcome_why(call->outcome);
}

/* The tensor, divided by the number of elements if the loss is their mean. */
static eddy_tensor *reduced(const eddy_gradient_call *call, int32_t reduction,
                            eddy_tensor *tensor) {
    return reduction == EDDY_REDUCTION_MEAN
               ? eddy_div_s(tensor, EDDY_S(eddy_count_of(call->grads[0])))
               : tensor;
}

/* The incoming gradient times the operand `grad`. */
static eddy_tensor *both_gradients(const eddy_gradient_call *call) {
    return eddy_mul(call->grads[0], call->inputs[GRAD]);
}

static eddy_tensor *weighted(const eddy_gradient_call *call, eddy_tensor *tensor) {
    eddy_tensor *weight = call->inputs[WEIGHT];
    return weight == EDDY_NONE ? tensor : eddy_mul(tensor, weight);
}

/* ---- binary cross-entropy: weight (softplus(-x) (1 + (p - 1) t) + (1 - t) x) ---- */

/* - (1 + (p - 1) sigmoid(-x)) of each pair, weighted and reduced, times both gradients. */
static eddy_tensor *by_input_and_target(const eddy_gradient_call *call, int32_t reduction) {
    eddy_tensor *pos_weight = call->inputs[POS_WEIGHT];
    eddy_tensor *result = eddy_neg(weighted(call, both_gradients(call)));
    if (pos_weight != EDDY_NONE) {
        eddy_tensor *slope = eddy_mul(eddy_sigmoid(eddy_neg(call->inputs[INPUT])),
                                      eddy_sub_s(pos_weight, EDDY_S(1)));
        result = eddy_mul(result, eddy_add_s(slope, EDDY_S(1)));
    }
    return reduced(call, reduction, result);
}

/* (1 + (p - 1) t) sigmoid(x) sigmoid(-x) */
static eddy_tensor *by_input_twice(const eddy_gradient_call *call, int32_t reduction) {
    eddy_tensor *x = call->inputs[INPUT], *target = call->inputs[TARGET],
                *pos_weight = call->inputs[POS_WEIGHT];
    eddy_tensor *slope = eddy_mul(eddy_sigmoid(x), eddy_sigmoid(eddy_neg(x)));
    if (pos_weight != EDDY_NONE)
        slope = eddy_mul(
            slope, eddy_add_s(eddy_mul(eddy_sub_s(pos_weight, EDDY_S(1)), target), EDDY_S(1)));
    return reduced(call, reduction, weighted(call, eddy_mul(both_gradients(call), slope)));
}

/* 1, in the shape of the loss. */
static eddy_tensor *one(const eddy_gradient_call *call) {
    return eddy_expand(eddy_gradient_constant(call, 1), call->input_specs[GRAD].shape);
}

eddy_status eddy_gradient_bce_with_logits_backward(const eddy_gradient_call *call) {
    const eddy_arguments_bce_with_logits_backward *a = call->attributes;
    eddy_tensor *const *in = call->inputs;
    eddy_status status = EDDY_OK;
    if (call->is_wanted[GRAD]) {
        eddy_bce_with_logits_backward_options options = {.size = sizeof(options),
                                                         .reduction = (eddy_reduction)a->reduction};
        eddy_tensor *slope = eddy_bce_with_logits_backward(one(call), in[INPUT], in[TARGET],
                                                           in[WEIGHT], in[POS_WEIGHT], &options);
        status = give(call, GRAD, eddy_mul(call->grads[0], slope));
    }
    if (status == EDDY_OK && call->is_wanted[INPUT])
        status = give(call, INPUT, by_input_twice(call, a->reduction));
    if (status == EDDY_OK && call->is_wanted[TARGET])
        status = give(call, TARGET, by_input_and_target(call, a->reduction));
    return status;
}

eddy_status eddy_gradient_bce_with_logits_backward_target(const eddy_gradient_call *call) {
    const eddy_arguments_bce_with_logits_backward_target *a = call->attributes;
    eddy_tensor *const *in = call->inputs;
    eddy_status status = EDDY_OK;
    if (call->is_wanted[GRAD]) {
        eddy_bce_with_logits_backward_target_options options = {
            .size = sizeof(options), .reduction = (eddy_reduction)a->reduction};
        eddy_tensor *slope = eddy_bce_with_logits_backward_target(
            one(call), in[INPUT], in[TARGET], in[WEIGHT], in[POS_WEIGHT], &options);
        status = give(call, GRAD, eddy_mul(call->grads[0], slope));
    }
    if (status == EDDY_OK && call->is_wanted[INPUT])
        status = give(call, INPUT, by_input_and_target(call, a->reduction));
    return status;
}

/* ---- kl_div: t (log t - x), or e^t (t - x) ---- */

/* -t or -e^t */
static eddy_tensor *minus_probability(eddy_tensor *target, bool is_log) {
    return eddy_neg(is_log ? eddy_exp(target) : target);
}

eddy_status eddy_gradient_kl_div_backward(const eddy_gradient_call *call) {
    const eddy_arguments_kl_div_backward *a = call->attributes;
    eddy_tensor *target = call->inputs[TARGET];
    eddy_status status = EDDY_OK;
    if (call->is_wanted[GRAD])
        status =
            give(call, GRAD,
                 reduced(call, a->reduction,
                         eddy_mul(call->grads[0], minus_probability(target, a->target_is_log))));
    if (status == EDDY_OK && call->is_wanted[TARGET]) {
        eddy_tensor *both = both_gradients(call);
        both = a->target_is_log ? eddy_mul(both, minus_probability(target, true)) : eddy_neg(both);
        status = give(call, TARGET, reduced(call, a->reduction, both));
    }
    return status;
}

eddy_status eddy_gradient_kl_div_backward_target(const eddy_gradient_call *call) {
    const eddy_arguments_kl_div_backward_target *a = call->attributes;
    eddy_tensor *input = call->inputs[INPUT], *target = call->inputs[TARGET];
    eddy_status status = EDDY_OK;
    if (call->is_wanted[GRAD]) {
        eddy_kl_div_backward_target_options options = {.size = sizeof(options),
                                                       .reduction = (eddy_reduction)a->reduction,
                                                       .target_is_log = a->target_is_log};
        eddy_tensor *slope = eddy_kl_div_backward_target(one(call), input, target, &options);
        status = give(call, GRAD, eddy_mul(call->grads[0], slope));
    }
    if (status == EDDY_OK && call->is_wanted[INPUT]) {
        eddy_tensor *both = both_gradients(call);
        both = a->target_is_log ? eddy_mul(both, minus_probability(target, true)) : eddy_neg(both);
        status = give(call, INPUT, reduced(call, a->reduction, both));
    }
    if (status == EDDY_OK && call->is_wanted[TARGET]) {
        eddy_tensor *both = both_gradients(call);
        if (a->target_is_log)
            both = eddy_mul(
                both, eddy_mul(eddy_exp(target), eddy_add_s(eddy_sub(target, input), EDDY_S(2))));
        else
            both = eddy_where(eddy_eq_s(target, EDDY_S(0)), eddy_gradient_constant(call, 0),
                              eddy_div(both, target));
        status = give(call, TARGET, reduced(call, a->reduction, both));
    }
    return status;
}

/* ---- cross_entropy: grad (softmax(input) - one at the label) of the rows that count ---- */

/* [N]: 1 for rows that count, over their number if the loss is the mean; 0 for ignored rows. */
static eddy_tensor *row_weights(const eddy_gradient_call *call, eddy_tensor *is_counted) {
    const eddy_arguments_cross_entropy_backward *a = call->attributes;
    eddy_tensor *weights = eddy_cast(is_counted, call->input_specs[INPUT].dtype);
    return a->reduction == EDDY_REDUCTION_MEAN
               ? eddy_div(weights, eddy_sum(weights, EDDY_ALL_AXES, NULL))
               : weights;
}

eddy_status eddy_gradient_cross_entropy_backward(const eddy_gradient_call *call) {
    const eddy_arguments_cross_entropy_backward *a = call->attributes;
    eddy_tensor *grad = call->grads[0], *labels = call->inputs[TARGET];
    eddy_tensor *is_counted = eddy_ne_s(labels, EDDY_S(a->ignore_index));
    eddy_tensor *weights = row_weights(call, is_counted),
                *share = eddy_softmax(call->inputs[INPUT], 1);
    eddy_status status = EDDY_OK;
    if (call->is_wanted[GRAD]) {
        /* Ignored labels may be out of range. */
        eddy_tensor *place = eddy_unsqueeze(eddy_mul(labels, is_counted), 1);
        eddy_tensor *at_label = eddy_squeeze(eddy_gather(grad, place, 1), EDDY_AXES(1));
        eddy_tensor *rows = eddy_sub(eddy_sum(eddy_mul(grad, share), EDDY_AXES(1), NULL), at_label);
        status = give(call, GRAD, eddy_mul(rows, weights));
    }
    if (status == EDDY_OK && call->is_wanted[INPUT]) {
        eddy_tensor *scale = eddy_unsqueeze(eddy_mul(weights, call->inputs[GRAD]), 1);
        status = give(call, INPUT, eddy_softmax_backward(eddy_mul(grad, scale), share, 1));
    }
    return status;
}
