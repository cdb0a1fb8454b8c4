/* Hands a general call to the VM. */
#include <base/dtype.h>
#include <interpreter/call/general_call.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/stream.h>
#include <string.h>

/* Writes a random op's seed and counter to the first two words of its attributes. *has_drawn: a generator gave them. */
static eddy_status draw(const eddy_general_call *call, bool *has_drawn) {
    const eddy_op *op = call->op;
    unsigned char *attributes = call->apply->attributes;
    uint64_t state[2] = {0};
    double chance = 1;
    if (op->chance_of > 0)
        memcpy(&chance, attributes + op->attributes[op->chance_of - 1].offset, sizeof(chance));
    eddy_status status = EDDY_OK;
    *has_drawn = chance != 0;
    if (*has_drawn && !eddy_recorder_lets_run(call->caller))
        eddy_recorder_draw(call->caller->recorder, state);
    else if (*has_drawn)
        status = eddy_generator_draw(call->caller, call->runtime, call->apply->generator,
                                     eddy_general_call_origin(call), &state[0], &state[1]);
    memcpy(attributes, state, sizeof(state));
    return status;
}

/* In place of a submission: the results have no elements. */
static eddy_status note(eddy_general_call *call) {
    eddy_vm_call made = {.instruction = {.descriptor = eddy_packed_descriptor(call->packed),
                                         .arguments = call->packed,
                                         .operand_count = call->vm_operand_count,
                                         .address = call->apply->address},
                         .operands = call->vm_operands};
    eddy_status status = eddy_vm_make_lost(call->runtime->vm, &made, call->caller->recorder->lost);
    eddy_packed_end(call->packed);
    return status;
}

static eddy_status submit(eddy_general_call *call) {
    eddy_caller *caller = call->caller;
    if (!eddy_recorder_lets_run(caller))
        return note(call);
    eddy_vm_call made = {
        .instruction = {.descriptor = eddy_packed_descriptor(call->packed),
                        .arguments = call->packed,
                        .operand_count = call->vm_operand_count,
                        .address = call->apply->address},
        .argument_bytes = call->packed_bytes,
        .operands = call->vm_operands,
        .stream = eddy_stream_of_caller(caller, call->runtime, call->vm_device),
        .cost_ps = call->cost_ps,
        .place = call->op->is_registered || call->vm_device ? EDDY_PLACE_WORKER : EDDY_PLACE_ANY,
        .releases = caller->pending.numbers,
        .release_count = eddy_pending_release_count(&caller->pending, call->runtime)};
    eddy_status status = eddy_vm_submit(call->runtime->vm, &made);
    if (status != EDDY_OK)
        eddy_packed_end(call->packed);
    return status;
}

static void record(const eddy_general_call *call, const eddy_kernel *kernel, bool has_drawn) {
    eddy_recorder *recorder = call->caller->recorder;
    eddy_recorder_call seen = {.apply = call->apply,
                               .kernel = kernel,
                               .compute = call->compute,
                               .views = call->views,
                               .view_count = call->view_count,
                               .input_count = call->view_count - call->op->output_count,
                               .operands = call->vm_operands,
                               .has_drawn = has_drawn,
                               .runtime = call->runtime,
                               .device = call->device};
    recorder->call(recorder, &seen);
}

static eddy_status fail_unsupported(eddy_general_call *call) {
    if (!call->op->is_registered && !eddy_op_kernel_for(call->op, call->compute))
        return eddy_infer_fail(&call->infer, EDDY_UNSUPPORTED, "not supported for %s",
                               eddy_dtype_name(call->compute));
    if (call->op->is_registered && call->device.kind == EDDY_DEVICE_CUDA)
        return eddy_infer_fail(&call->infer, EDDY_UNSUPPORTED, "registered ops do not run on cuda");
    return eddy_infer_fail(&call->infer, EDDY_UNSUPPORTED, "it has no kernel for %s",
                           eddy_runtime_device_kind_name(call->device.kind));
}

eddy_status eddy_general_submit(eddy_general_call *call) {
    const eddy_op *op = call->op;
    const eddy_kernel *kernel = eddy_op_kernel_on(op, call->compute, call->device.kind);
    if (!kernel)
        return fail_unsupported(call);
    if (op->has_late_shape && !eddy_recorder_lets_run(call->caller))
        return eddy_infer_fail(&call->infer, EDDY_UNSUPPORTED,
                               "the shape of its result depends on its data, and the recording "
                               "does not run its calls");
    bool has_drawn = false;
    eddy_status status = op->is_random ? draw(call, &has_drawn) : EDDY_OK;
    if (status == EDDY_OK && !call->apply->targets)
        status = eddy_general_results_make(call);
    if (status != EDDY_OK)
        return status;
    status = eddy_general_pack(call, kernel);
    if (status == EDDY_OK)
        status = submit(call);
    if (status != EDDY_OK) {
        eddy_general_results_discard(call);
        return status;
    }
    eddy_general_results_keep(call);
    eddy_general_targets_written(call);
    if (EDDY_UNLIKELY(call->caller->recorder != NULL))
        record(call, kernel, has_drawn);
    return EDDY_OK;
}
