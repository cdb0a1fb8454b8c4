/* Losses and their gradients. */
#include <functional/infer.h>

#include <base/atomic.h>
#include <base/call_site.h>
#include <base/log.h>
#include <base/shape.h>
#include <functional/arguments.h>
#include <functional/infer/check.h>

static eddy_status check_reduction(const eddy_infer *infer, int32_t reduction) {
    if (reduction < EDDY_REDUCTION_MEAN || reduction > EDDY_REDUCTION_NONE)
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%d is no reduction", (int)reduction);
    return EDDY_OK;
}

/* The gradient at input 0 has the dtype of the loss's input and this shape. */
static eddy_status check_grad(const eddy_infer *infer, const eddy_shape *loss) {
    const eddy_shape *grad = &infer->inputs[0].shape;
    if (!eddy_shape_equal(grad->rank, grad->dims, loss->rank, loss->dims))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "grad must have the shape of the loss");
    return eddy_check_same_dtype(infer, 0, 1);
}

/* ---- losses of pairs ---- */

/* Input, target and weights from `first` on; *joint is the shape that they broadcast to. */
static eddy_status check_pair(const eddy_infer *infer, int64_t first, eddy_shape *joint) {
    const eddy_attributes_pair_loss *attributes = infer->attributes;
    eddy_status status = eddy_check_float(infer, first);
    *joint = infer->inputs[first].shape;
    for (int64_t i = first + 1; i < infer->input_count && status == EDDY_OK; i++) {
        if (infer->inputs[i].is_absent)
            continue;
        eddy_shape before = *joint;
        status = eddy_check_same_dtype(infer, first, i);
        if (status == EDDY_OK && !eddy_shape_broadcast(&before, &infer->inputs[i].shape, joint))
            return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH,
                                   "%s does not broadcast with what stands before it",
                                   eddy_check_name(infer, i).text);
    }
    if (status == EDDY_OK)
        status = check_reduction(infer, attributes->reduction);
    if (status == EDDY_OK && !(attributes->beta >= 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "beta is %g", attributes->beta);
    return status;
}

static eddy_shape pair_loss_shape(const eddy_infer *infer, const eddy_shape *joint) {
    const eddy_attributes_pair_loss *attributes = infer->attributes;
    return attributes->reduction == EDDY_REDUCTION_NONE ? *joint : (eddy_shape){0};
}

/* True the first time for each calling place of the program, of which up to PLACES_MAX are remembered. */
static bool is_news(const void *address) {
    enum { PLACES_MAX = 16 };
    static _Atomic(const void *) told[PLACES_MAX]; /* atomic: relaxed; each set once */
    for (int i = 0; i < PLACES_MAX; i++) {
        const void *before = NULL;
        if (eddy_cas_relaxed(&told[i], &before, address))
            return true;
        if (before == address)
            return false;
    }
    return false;
}

/* A target of another shape is most often a mistake: a column and a row broadcast to all their pairs. */
static void tell_broadcast(const eddy_infer *infer, const eddy_shape *joint) {
    const eddy_shape *input = &infer->inputs[0].shape, *target = &infer->inputs[1].shape;
    char is[EDDY_RANK_MAX * 22], other[EDDY_RANK_MAX * 22], both[EDDY_RANK_MAX * 22];
    if (eddy_shape_equal(input->rank, input->dims, target->rank, target->dims) ||
        !eddy_log_wants_warnings() || !is_news(infer->address))
        return;
    eddy_shape_format(input->rank, input->dims, is, sizeof(is));
    eddy_shape_format(target->rank, target->dims, other, sizeof(other));
    eddy_shape_format(joint->rank, joint->dims, both, sizeof(both));
    const char *place = eddy_call_site_place(infer->address);
    eddy_log_warning(
        "%s%s%s: input is %s and target %s: both are broadcast to %s, which is seldom meant",
        place ? place : "", place ? ": " : "", infer->op->name, is, other, both);
}

eddy_status eddy_infer_pair_loss(eddy_infer *infer) {
    eddy_shape joint;
    eddy_status status = check_pair(infer, 0, &joint);
    if (status == EDDY_OK)
        tell_broadcast(infer, &joint);
    infer->outputs[0].shape = pair_loss_shape(infer, &joint);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}

eddy_status eddy_infer_pair_loss_backward(eddy_infer *infer) {
    eddy_shape joint;
    eddy_status status = check_pair(infer, 1, &joint);
    if (status != EDDY_OK)
        return status;
    eddy_shape loss = pair_loss_shape(infer, &joint);
    infer->outputs[0].shape = joint;
    infer->outputs[0].dtype = infer->inputs[1].dtype;
    return check_grad(infer, &loss);
}

/* ---- nll_loss ---- */

/* input [N, C], target [N] and weight [C] from `first` on. */
static eddy_status check_nll(const eddy_infer *infer, int64_t first, eddy_shape *loss) {
    const eddy_attributes_cross_entropy *attributes = infer->attributes;
    const eddy_spec *input = &infer->inputs[first], *target = input + 1, *weight = input + 2;
    eddy_status status = eddy_check_float(infer, first);
    if (status == EDDY_OK)
        status = check_reduction(infer, attributes->reduction);
    if (status != EDDY_OK)
        return status;
    if (target->dtype != EDDY_I64)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "target must be i64, not %s",
                               eddy_dtype_name(target->dtype));
    if (input->shape.rank != 2 || target->shape.rank != 1 ||
        input->shape.dims[0] != target->shape.dims[0])
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "input must be [N, C] and target [N]");
    if (!weight->is_absent &&
        (weight->shape.rank != 1 || weight->shape.dims[0] != input->shape.dims[1]))
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "weight must have shape [%lld]",
                               (long long)input->shape.dims[1]);
    *loss = attributes->reduction == EDDY_REDUCTION_NONE ? target->shape : (eddy_shape){0};
    return weight->is_absent ? EDDY_OK : eddy_check_same_dtype(infer, first, first + 2);
}

eddy_status eddy_infer_nll_loss(eddy_infer *infer) {
    eddy_status status = check_nll(infer, 0, &infer->outputs[0].shape);
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    return status;
}

eddy_status eddy_infer_nll_loss_backward(eddy_infer *infer) {
    eddy_shape loss;
    eddy_status status = check_nll(infer, 1, &loss);
    infer->outputs[0].shape = infer->inputs[1].shape;
    infer->outputs[0].dtype = infer->inputs[1].dtype;
    return status == EDDY_OK ? check_grad(infer, &loss) : status;
}
