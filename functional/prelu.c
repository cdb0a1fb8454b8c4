/* prelu: weights along the channels. */
#include <eddy/compose.h>

#include <base/status.h>
#include <eddy/view.h>
#include <functional/composition.h>
#include <functional/op_table.h>
#include <functional/parameter.h>
#include <interpreter/call/apply.h>
#include <interpreter/handle/tensor.h>

static eddy_status check(eddy_tensor *tensor, const char *name, eddy_origin origin) {
    eddy_status status = eddy_tensor_check(tensor, name, origin);
    return status == EDDY_OK ? eddy_tensor_await_shape(tensor, origin) : status;
}

static eddy_status prelu(eddy_tensor *x, eddy_tensor *weight, eddy_tensor **result,
                         eddy_origin origin) {
    eddy_status status = check(x, "x", origin);
    if (status == EDDY_OK)
        status = check(weight, "weight", origin);
    if (status != EDDY_OK)
        return status;
    int64_t channels = x->rank > 1 ? x->axes[1].dim : 1;
    if (weight->rank > 1 || (weight->count != 1 && weight->count != channels))
        return eddy_parameter_fail(EDDY_SHAPE_MISMATCH, origin, EDDY_LIST(x, weight),
                                   "weight is neither one number nor one for each channel of x");
    eddy_shape along = {.rank = weight->count == 1 ? 0 : x->rank - 1, .dims = {weight->count}};
    for (int32_t d = 1; d < along.rank; d++)
        along.dims[d] = 1;
    eddy_outcome outcome;
    eddy_outcome_begin(&outcome);
    eddy_tensor *laid = eddy_view(weight, along), *made = NULL;
    eddy_tensor *inputs[] = {x, laid};
    if (laid)
        made =
            eddy_interpreter_apply_one(&eddy_op_prelu_broadcast, inputs, 2, NULL, origin.address);
    eddy_release(&laid);
    eddy_outcome_end(&outcome);
    if (!made)
        return eddy_outcome_why(&outcome);
    *result = made;
    return EDDY_OK;
}

eddy_tensor *eddy_prelu(eddy_tensor *x, eddy_tensor *weight) {
    eddy_tensor *result = NULL;
    return prelu(x, weight, &result, EDDY_ORIGIN("prelu")) == EDDY_OK ? result : NULL;
}

eddy_status eddy_composition_prelu(eddy_list inputs, const void *arguments, eddy_tensor **outputs,
                                   eddy_origin origin) {
    (void)arguments;
    return prelu(inputs.items[0], inputs.items[1], &outputs[0], origin);
}
