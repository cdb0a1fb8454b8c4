/* New handles for the results of a general call. */
#include <base/status.h>
#include <interpreter/call/general_call.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/tensor.h>

void eddy_general_results_discard(eddy_general_call *call) {
    for (int32_t i = 0; i < call->op->output_count; i++)
        if (call->results[i])
            eddy_tensor_discard(call->caller, call->results[i]);
}

static bool wants_channels_last(const eddy_general_call *call) {
    const eddy_op *op = call->op;
    return op->last_where > 0 &&
           *((const bool *)call->apply->attributes + op->attributes[op->last_where - 1].offset);
}

eddy_status eddy_general_results_make(eddy_general_call *call) {
    const eddy_op *op = call->op;
    bool has_room = eddy_scope_reserve(call->caller, (uint32_t)op->output_count);
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_tensor *result =
            has_room ? eddy_tensor_acquire(call->caller, call->runtime, call->apply->address)
                     : NULL;
        if (!result) {
            eddy_general_results_discard(call);
            return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_general_call_origin(call),
                             "no memory for a handle");
        }
        const eddy_spec *spec = &call->output_specs[i];
        int64_t count = 1;
        for (int32_t d = 0; d < spec->shape.rank && !op->has_late_shape; d++)
            count *= spec->shape.dims[d];
        bool is_following =
            op->layout_of > 0 && op->layout_of <= call->input_count && !call->apply->is_row_major;
        const eddy_tensor *like = is_following ? call->operands[op->layout_of - 1].tensor : NULL;
        if (is_following && wants_channels_last(call))
            eddy_tensor_lay_last(result, &spec->shape);
        else if (like && like->rank == spec->shape.rank)
            eddy_tensor_lay_like(result, spec->shape.rank, spec->shape.dims, count, like);
        else
            eddy_tensor_lay(result, op->has_late_shape ? 0 : spec->shape.rank, spec->shape.dims,
                            count);
        result->dtype = (uint8_t)spec->dtype;
        eddy_tensor_set_device(result, call->device);
        eddy_store_relaxed(&result->is_late, op->has_late_shape);
        call->results[i] = result;
    }
    return EDDY_OK;
}

void eddy_general_results_keep(eddy_general_call *call) {
    const eddy_op *op = call->op;
    const eddy_vm_operand *outputs = &call->vm_operands[call->vm_operand_count - op->output_count];
    for (int32_t i = 0; i < op->output_count; i++) {
        eddy_tensor *result = call->results[i];
        if (!result)
            continue;
        result->storage = outputs[i].storage;
        eddy_scope_own(call->caller, result);
        call->apply->outputs[i] = result;
    }
}
