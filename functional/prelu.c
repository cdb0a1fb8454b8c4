/* prelu: weights laid along the channels. */
#include <eddy/compose.h>

#include <base/status.h>
#include <eddy/view.h>
#include <functional/op_table.h>
#include <interpreter/apply.h>
#include <interpreter/tensor.h>

static bool is_known(eddy_tensor *tensor, const char *name, const void *address) {
    return eddy_tensor_check(tensor, "prelu", name, address) &&
           eddy_tensor_await_shape(tensor, "prelu", address) == EDDY_OK;
}

eddy_tensor *eddy_prelu(eddy_tensor *x, eddy_tensor *weight) {
    const void *address = __builtin_return_address(0);
    if (!is_known(x, "x", address) || !is_known(weight, "weight", address))
        return NULL;
    int64_t channels = x->rank > 1 ? x->axes[1].dim : 1;
    if (weight->rank > 1 || (weight->count != 1 && weight->count != channels)) {
        char text[2][EDDY_RANK_MAX * 22];
        eddy_tensor_describe(x, text[0], sizeof(text[0]));
        eddy_tensor_describe(weight, text[1], sizeof(text[1]));
        eddy_fail(EDDY_SHAPE_MISMATCH, "prelu", address,
                  "prelu: weight %s is neither one nor one for each channel of x %s", text[1], text[0]);
        return NULL;
    }
    eddy_shape along = {.rank = weight->count == 1 ? 0 : x->rank - 1, .dims = {weight->count}};
    for (int32_t d = 1; d < along.rank; d++)
        along.dims[d] = 1;
    eddy_tensor *laid = eddy_view(weight, along), *result = NULL;
    eddy_tensor *inputs[] = {x, laid};
    if (laid)
        result = eddy_interpreter_apply_one(&eddy_op_prelu_broadcast, inputs, 2, NULL, address);
    eddy_release(&laid);
    return result;
}
