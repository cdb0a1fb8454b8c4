/* The first program: one layer, then softmax. Only eddy_print and eddy_item_f64 wait. */
#include <eddy/eddy.h>
#include <stdio.h>

int main(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(2, 3), EDDY_S(0.5), EDDY_F32, NULL);
    eddy_tensor *w = eddy_rand(EDDY_SHAPE(4, 3), EDDY_F32, NULL);
    eddy_tensor *y = eddy_softmax(eddy_relu(eddy_linear(x, w, EDDY_NONE)), 1);
    eddy_print(y, stdout);
    printf("sum %g\n", eddy_item_f64(eddy_sum(y, EDDY_ALL_AXES, NULL), NULL));
    eddy_scope_end(scope);
    eddy_error error;
    if (eddy_error_take(&error) != EDDY_OK)
        fprintf(stderr, "%s\n", error.message);
    return error.status != EDDY_OK || fflush(stdout) != 0;
}
