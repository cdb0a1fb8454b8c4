/* Promotion of a general call: its compute dtype, and the casts to it. */
#include <interpreter/call/copy.h>
#include <interpreter/call/general_call.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

static bool is_to_cast(const eddy_general_call *call, int64_t i) {
    const eddy_call_operand *operand = &call->operands[i];
    return !call->specs[i].is_absent && operand->tensor->dtype != (uint8_t)call->compute &&
           eddy_infer_is_promoted(call->op, operand->kind);
}

void eddy_general_promote_specs(eddy_general_call *call) {
    call->compute = eddy_infer_compute(&call->infer);
    for (int64_t i = 0; i < call->input_count; i++)
        if (EDDY_UNLIKELY(is_to_cast(call, i))) {
            call->cast_count++;
            /* Rules see the operands as the kernel will; other messages show them as the user gave them. */
            if (call->op->infer)
                call->specs[i].dtype = call->compute;
        }
}

eddy_status eddy_general_promote_numbers(eddy_general_call *call) {
    const eddy_op *op = call->op;
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        if (!attribute->is_held)
            continue;
        eddy_dtype dtype = i < op->scalar_count ? call->compute : call->output_specs[0].dtype;
        char *place = (char *)call->apply->attributes + attribute->offset;
        eddy_scalar number;
        memcpy(&number, place, sizeof(number));
        eddy_status status = eddy_infer_number(&call->infer, attribute->name, &number, dtype);
        if (status != EDDY_OK)
            return status;
        memcpy(place, &number, sizeof(number));
    }
    return EDDY_OK;
}

eddy_status eddy_general_promote_inputs(eddy_general_call *call) {
    for (int64_t i = 0; i < call->input_count && call->cast_count > 0; i++) {
        if (!is_to_cast(call, i))
            continue;
        eddy_tensor **tensor = &call->operands[i].tensor;
        eddy_status status =
            eddy_copy_cast(call->caller, *tensor, call->compute, call->apply->address, tensor);
        if (status != EDDY_OK)
            return status;
    }
    return EDDY_OK;
}

void eddy_general_promote_drop(eddy_general_call *call) {
    for (int64_t i = 0; i < call->input_count && call->cast_count > 0; i++)
        if (call->operands[i].tensor != call->apply->inputs[i])
            eddy_tensor_drop(call->operands[i].tensor);
}
