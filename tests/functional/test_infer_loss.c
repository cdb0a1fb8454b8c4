/* Losses: what their rules accept and refuse. */
#include "inferring.h"

Test(infer_loss, pairs_broadcast_and_reduce) {
    eddy_arguments_mse_loss a = {.reduction = EDDY_REDUCTION_MEAN};
    const eddy_spec x = SPEC(F16, 4, 1), t = SPEC(F16, 3), number = SPEC(F16, );
    ACCEPTS(mse_loss, &a, F16, EDDY_SHAPE(), x, t);
    ACCEPTS(mse_loss_backward, &a, F16, EDDY_SHAPE(4, 3), number, x, t);
    ACCEPTS(bce_with_logits, &a, F16, EDDY_SHAPE(), x, t, ABSENT, ABSENT);
    a.reduction = EDDY_REDUCTION_NONE;
    ACCEPTS(l1_loss, &a, F16, EDDY_SHAPE(4, 3), x, t);
    ACCEPTS(bce_with_logits, &a, F16, EDDY_SHAPE(2, 4, 3), x, t, SPEC(F16, 2, 4, 3), t);
    ACCEPTS(kl_div_backward_target, &a, F16, EDDY_SHAPE(4, 3), SPEC(F16, 4, 3), x, t);
    REFUSES(kl_div_backward, &a, SHAPE_MISMATCH, "shape of the loss", number, x, t);
    REFUSES(kl_div_backward, &a, DTYPE_MISMATCH, "grad is f32", SPEC(F32, 4, 3), x, t);
    REFUSES(kl_div, &a, SHAPE_MISMATCH, "target does not broadcast", SPEC(F32, 4), SPEC(F32, 3));
    REFUSES(bce_with_logits, &a, SHAPE_MISMATCH, "pos_weight does not", x, t, ABSENT, SPEC(F16, 2));
    REFUSES(mse_loss, &a, DTYPE_MISMATCH, "input must be", SPEC(I64, 4), SPEC(I64, 4));
    REFUSES(mse_loss, &a, DTYPE_MISMATCH, "target is f32", x, SPEC(F32, 4, 1));
    a.reduction = 3;
    REFUSES(mse_loss, &a, INVALID_ARGUMENT, "3 is no reduction", x, t);
    eddy_arguments_smooth_l1_loss s = {.beta = -1};
    REFUSES(smooth_l1_loss, &s, INVALID_ARGUMENT, "beta is -1", x, t);
}

Test(infer_loss, nll_takes_labels_and_a_weight_per_class) {
    eddy_arguments_nll_loss a = {.reduction = EDDY_REDUCTION_NONE};
    const eddy_spec x = SPEC(F32, 8, 10), t = SPEC(I64, 8);
    ACCEPTS(nll_loss, &a, F32, EDDY_SHAPE(8), x, t, SPEC(F32, 10));
    ACCEPTS(nll_loss_backward, &a, F32, EDDY_SHAPE(8, 10), SPEC(F32, 8), x, t, ABSENT);
    REFUSES(nll_loss, &a, SHAPE_MISMATCH, "weight must have shape [10]", x, t, SPEC(F32, 8));
    REFUSES(nll_loss, &a, DTYPE_MISMATCH, "weight is f64", x, t, SPEC(F64, 10));
    REFUSES(nll_loss, &a, DTYPE_MISMATCH, "target must be i64", x, SPEC(I32, 8), ABSENT);
    REFUSES(nll_loss, &a, SHAPE_MISMATCH, "[N, C]", x, SPEC(I64, 9), ABSENT);
    a.reduction = EDDY_REDUCTION_SUM;
    REFUSES(nll_loss_backward, &a, SHAPE_MISMATCH, "shape of the loss", SPEC(F32, 8), x, t, ABSENT);
}
