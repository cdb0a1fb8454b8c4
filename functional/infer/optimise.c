/* Optimiser steps: lists of one length, their i-th items alike. */
#include <functional/infer.h>

#include <functional/arguments.h>
#include <functional/infer/check.h>
#include <math.h>

/* `list_count` lists of the same length follow each other from input 0 on. */
static eddy_status check_lists(const eddy_infer *infer, int32_t list_count) {
    int64_t count = infer->list_counts[0];
    for (int32_t list = 1; list < list_count; list++)
        if (infer->list_counts[list] != count)
            return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "there are %lld %s but %lld %s",
                                   (long long)count, infer->op->operands[0].name,
                                   (long long)infer->list_counts[list],
                                   infer->op->operands[list].name);
    for (int64_t i = 0; i < count; i++) {
        eddy_status status = eddy_check_float(infer, i);
        for (int32_t list = 1; status == EDDY_OK && list < list_count; list++) {
            status = eddy_check_same_shape(infer, i, list * count + i);
            if (status == EDDY_OK)
                status = eddy_check_same_dtype(infer, i, list * count + i);
        }
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

/* A rate or a decay that is negative or not finite would ruin every parameter at once. */
static eddy_status check_rate(const eddy_infer *infer, const char *name, double value) {
    if (value >= 0 && isfinite(value))
        return EDDY_OK;
    return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "%s is %g", name, value);
}

static eddy_status check_beta(const eddy_infer *infer, const char *name, double value) {
    if (value >= 0 && value < 1)
        return EDDY_OK;
    return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT,
                           "%s is %g, not within 0 and 1 (1 excluded)", name, value);
}

eddy_status eddy_infer_sgd_step(eddy_infer *infer) {
    const eddy_arguments_sgd_step *arguments = infer->attributes;
    eddy_status status = check_rate(infer, "lr", arguments->lr);
    if (status == EDDY_OK)
        status = check_rate(infer, "weight_decay", arguments->weight_decay);
    return status == EDDY_OK ? check_lists(infer, 2) : status;
}

eddy_status eddy_infer_sgd_momentum_step(eddy_infer *infer) {
    const eddy_arguments_sgd_momentum_step *arguments = infer->attributes;
    eddy_status status = check_rate(infer, "lr", arguments->lr);
    if (status == EDDY_OK)
        status = check_rate(infer, "momentum", arguments->momentum);
    if (status == EDDY_OK)
        status = check_rate(infer, "weight_decay", arguments->weight_decay);
    return status == EDDY_OK ? check_lists(infer, 3) : status;
}

/* Of adam_step and adamw_step. */
static eddy_status check_adam(const eddy_infer *infer) {
    const eddy_arguments_adam_step *arguments = infer->attributes;
    eddy_status status = check_rate(infer, "lr", arguments->lr);
    if (status == EDDY_OK)
        status = check_beta(infer, "beta1", arguments->beta1);
    if (status == EDDY_OK)
        status = check_beta(infer, "beta2", arguments->beta2);
    if (status == EDDY_OK)
        status = check_rate(infer, "eps", arguments->eps);
    if (status == EDDY_OK)
        status = check_rate(infer, "weight_decay", arguments->weight_decay);
    return status;
}

eddy_status eddy_infer_adam_step(eddy_infer *infer) {
    eddy_status status = check_adam(infer);
    if (status == EDDY_OK)
        status = check_lists(infer, 4);
    if (status != EDDY_OK)
        return status;
    const eddy_spec *step = &infer->inputs[infer->input_count - 1];
    if (step->dtype != EDDY_I64 || step->shape.rank != 0)
        return eddy_infer_fail(infer, EDDY_DTYPE_MISMATCH, "step must be an i64 of rank 0");
    return EDDY_OK;
}

eddy_status eddy_infer_clip_grad_norm(eddy_infer *infer) {
    const eddy_arguments_clip_grad_norm *arguments = infer->attributes;
    if (!(arguments->max_norm >= 0))
        return eddy_infer_fail(infer, EDDY_INVALID_ARGUMENT, "max_norm is %g", arguments->max_norm);
    int64_t count = infer->input_count - 1;
    const eddy_spec *norm = &infer->inputs[count];
    for (int64_t i = 0; i < count + !norm->is_absent; i++) {
        eddy_status status = eddy_check_float(infer, i);
        if (status != EDDY_OK)
            return status;
    }
    if (!norm->is_absent && norm->shape.rank != 0)
        return eddy_infer_fail(infer, EDDY_SHAPE_MISMATCH, "norm must be of rank 0");
    return EDDY_OK;
}
