/* Losses through the public calls. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>

/* Such a call has no workspace. */
Test(loss, nothing_has_a_sum_of_0_and_a_mean_of_nan) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *nothing = eddy_zeros(EDDY_SHAPE(3, 0), EDDY_F32, NULL);
    double sum = eddy_item_f64(
        eddy_mse_loss(nothing, nothing, EDDY_OPTIONS(mse_loss, .reduction = EDDY_REDUCTION_SUM)),
        NULL);
    double mean = eddy_item_f64(eddy_mse_loss(nothing, nothing, NULL), NULL);
    cr_assert(sum == 0 && isnan(mean), "%g and %g", sum, mean);
    eddy_scope_end(scope);
}
