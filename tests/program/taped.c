#include "taped.h"

#include <base/memory.h>
#include <criterion/criterion.h>
#include <string.h>
#include <tests/program/outcome.h>

eddy_tensor *leaf(eddy_tensor *tensor) {
    must(eddy_requires_grad_set(tensor, true));
    return tensor;
}

eddy_tensor *all(eddy_tensor *x) {
    return eddy_sum(x, EDDY_ALL_AXES, NULL);
}

static eddy_status cube(eddy_forward_call *call) {
    eddy_tensor *x = call->inputs[0];
    call->outputs[0] = eddy_mul(eddy_square(x), x);
    return eddy_forward_save(call, EDDY_LIST(x));
}

static eddy_status cube_back(eddy_backward_call *call) {
    call->results[0] = eddy_mul(call->grads[0], eddy_mul_s(eddy_square(call->saved[0]), EDDY_S(3)));
    return EDDY_OK;
}

const eddy_function cube_function = {.size = sizeof(eddy_function),
                                     .name = "user.cube",
                                     .forward = cube,
                                     .backward = cube_back,
                                     .output_count = 1};

void expect_nothing_left(eddy_scope *scope) {
    eddy_scope_end(scope);
    must(EDDY_OK);
    must(eddy_sync(EDDY_FOREVER)); /* runs under way hold their programs */
    cr_assert_eq(eddy_live_count(), 0);
    eddy_trim(); /* what programs were built to is kept for others */
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, 0);
}

void expect_explained(eddy_recorded *recorded, const char *part) {
    char text[2048];
    cr_assert_gt(eddy_recorded_explain(recorded, text, sizeof(text)), 0);
    cr_assert_not_null(strstr(text, part), "%s", text);
}
