/* Gradients of what joins tensors. */
#include <eddy/eddy.h>
#include <functional/arguments.h>
#include <functional/gradient/helper.h>
#include <interpreter/runtime.h>

eddy_status eddy_gradient_cat(const eddy_gradient_call *call) {
    const eddy_arguments_cat *arguments = call->attributes;
    int64_t start = 0;
    for (int64_t i = 0; i < call->input_count; i++) {
        int64_t length = call->input_specs[i].shape.dims[arguments->axis];
        if (call->wanted[i]) {
            call->results[i] = eddy_narrow(call->gradients[0], arguments->axis, start, length);
            if (!call->results[i])
                return eddy_runtime_failure();
        }
        start += length;
    }
    return EDDY_OK;
}
