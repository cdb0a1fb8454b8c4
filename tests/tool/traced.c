/* A program to be traced: ops, a range, places of calls, a wait. */
#define EDDY_CALL_SITES
#include <eddy/eddy.h>
#include <stdio.h>

int main(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(64, 64), EDDY_S(1), EDDY_F32, NULL);
    eddy_range_push("forty additions");
    for (int i = 0; i < 40; i++)
        x = eddy_add(x, x);
    eddy_range_pop();
    double mean = eddy_item_f64(eddy_mean(x, EDDY_ALL_AXES, NULL), NULL);
    eddy_scope_end(scope);
    return eddy_error_take(NULL) != EDDY_OK || mean != 1099511627776.0;
}
