/* Gradients of attention: one op gives all three. */
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>
#include <interpreter/runtime.h>

eddy_status eddy_gradient_sdpa(const eddy_gradient_call *call) {
    const eddy_arguments_sdpa *arguments = call->attributes;
    eddy_sdpa_backward_options options = {
        .size = sizeof(options), .causal = arguments->causal, .scale = arguments->scale};
    eddy_tensor *dq, *dk, *dv;
    eddy_status status = eddy_sdpa_backward(call->gradients[0], call->outputs[0], call->inputs[0], call->inputs[1],
                                            call->inputs[2], call->inputs[3], &options, &dq, &dk, &dv);
    if (status != EDDY_OK)
        return status;
    call->results[0] = dq;
    call->results[1] = dk;
    call->results[2] = dv;
    return EDDY_OK;
}
