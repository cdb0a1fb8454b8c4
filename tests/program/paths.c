#include "paths.h"

#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

bool is_positive(eddy_tensor *x) {
    return eddy_item_i64(eddy_gt_s(eddy_sum(x, EDDY_ALL_AXES, NULL), EDDY_S(0)), NULL) != 0;
}

eddy_status turns(void *context, eddy_recorded_call *call) {
    eddy_tensor *x = call->inputs.items[0];
    if (context)
        ((counted *)context)->calls++;
    call->outputs[0] = is_positive(x) ? eddy_neg(x) : eddy_mul_s(x, EDDY_S(3));
    return EDDY_OK;
}

eddy_tensor *call_once(eddy_recorded *recorded, eddy_tensor *x) {
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(), &y));
    return y;
}

eddy_tensor *call_plainly(eddy_recorded_body *body, counted *c, eddy_tensor *x) {
    eddy_tensor *y;
    eddy_recorded_call call = {
        .size = sizeof(call), .inputs = EDDY_LIST(x), .outputs = &y, .output_count = 1};
    must(body(c, &call));
    return y;
}

eddy_status is_short(void *context, eddy_list carried, eddy_tensor **predicate) {
    (void)context;
    return done(predicate, eddy_lt_s(eddy_sum(carried.items[0], EDDY_ALL_AXES, NULL), EDDY_S(50)));
}
