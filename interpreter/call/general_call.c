#include <interpreter/call/general_call.h>

#include <base/status.h>
#include <base/trace.h>
#include <interpreter/call/fast_call.h>
#include <interpreter/call/list_gaps.h>
#include <interpreter/handle/tensor.h>

#define STACK_BYTES 8192
/* Up to so many views their dims are not counted: there is room for the most they may have. */
#define SMALL_VIEWS 8

/* An upper bound of the packed call's bytes. */
static size_t packed_bytes_most(const eddy_general_call *call) {
    const eddy_op *op = call->op;
    int64_t views = call->input_count + op->output_count;
    /* Views of elementwise calls have the joint shape. */
    if (op->is_elementwise || views <= SMALL_VIEWS)
        return eddy_packed_bytes_max(op, views);
    size_t bytes = eddy_packed_bytes_max(op, op->output_count) +
                   (size_t)call->input_count * sizeof(eddy_packed_view);
    for (int64_t i = 0; i < call->input_count; i++) {
        const eddy_tensor *input = call->apply->inputs[i];
        if (!input || eddy_tensor_is_none(input))
            continue;
        /* No thread has waited for the late shape yet. */
        int32_t rank = eddy_tensor_is_late(input) ? EDDY_RANK_MAX : input->rank;
        bytes += (size_t)rank * 2 * sizeof(int64_t);
    }
    return bytes;
}

/* One block for all arrays. */
static eddy_status take_memory(eddy_general_call *call, void *stack) {
    int64_t count = call->input_count, views = count + call->op->output_count;
    size_t bytes = (size_t)count * (sizeof(*call->specs) + sizeof(*call->operands)) +
                   (size_t)views * (sizeof(*call->vm_operands) + sizeof(*call->views)) +
                   packed_bytes_most(call);
    call->is_on_stack = bytes <= STACK_BYTES;
    call->memory_bytes = bytes;
    call->memory = call->is_on_stack ? stack : eddy_caller_scratch_begin(call->caller, bytes);
    if (!call->memory)
        return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_general_call_origin(call),
                         "no memory for %lld operands", (long long)count);
    call->specs = call->memory;
    call->operands = (eddy_call_operand *)(void *)(call->specs + count);
    call->views = (eddy_tensor **)(void *)(call->operands + count);
    call->vm_operands = (eddy_vm_operand *)(void *)(call->views + views);
    call->packed = (eddy_packed_arguments *)(void *)(call->vm_operands + views);
    return EDDY_OK;
}

/* Field by field: an initialiser would first clear it all. */
static void begin(eddy_general_call *call, eddy_caller *caller, const eddy_apply *apply,
                  eddy_spec *output_specs) {
    call->apply = apply;
    call->op = apply->op;
    call->caller = caller;
    call->runtime = NULL;
    call->input_count = apply->input_count;
    call->output_specs = output_specs;
    call->cast_count = 0;
    call->writes_inputs = false;
    for (int32_t i = 0; i < apply->op->output_count; i++)
        call->results[i] = NULL;
}

static void begin_infer(eddy_general_call *call) {
    call->infer.op = call->op;
    call->infer.inputs = call->specs;
    call->infer.input_count = call->input_count;
    call->infer.list_counts = call->apply->list_counts;
    call->infer.attributes = call->apply->attributes;
    call->infer.outputs = call->output_specs;
    call->infer.address = call->apply->address;
}

/* All checks that may refuse the call; nothing is issued before they have passed. */
static eddy_status run_checks(eddy_general_call *call) {
    eddy_status status = eddy_general_check_operands(call);
    if (status != EDDY_OK)
        return status;
    eddy_general_promote_specs(call);
    status = eddy_infer_run(&call->infer, call->compute);
    if (status == EDDY_OK)
        status = eddy_general_check_sizes(call);
    if (status == EDDY_OK && (call->apply->targets || call->writes_inputs))
        status = eddy_general_targets_check(call);
    return status == EDDY_OK ? eddy_general_promote_numbers(call) : status;
}

static eddy_status check(eddy_general_call *call) {
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(INFER, .op = call->op->name, .address = call->apply->address);
    eddy_status status = run_checks(call);
    EDDY_TRACE_END(span, .op = call->op->name, .address = call->apply->address);
    return status;
}

/* After casts a call may be a fast one: mixed dtypes, a scalar of a higher category. */
static bool is_fast(eddy_general_call *call, eddy_status *status) {
    const eddy_apply *apply = call->apply;
    if (call->cast_count == 0 || !call->op->is_elementwise || call->op->output_count != 1 ||
        call->input_count > EDDY_FAST_CALL_INPUTS)
        return false;
    eddy_tensor *inputs[EDDY_FAST_CALL_INPUTS];
    for (int64_t i = 0; i < call->input_count; i++)
        inputs[i] = call->operands[i].tensor;
    eddy_apply cast = *apply;
    cast.inputs = inputs;
    return eddy_fast_call_apply(call->caller, &cast, status);
}

eddy_status eddy_general_call_apply(eddy_caller *caller, const eddy_apply *apply) {
    if (EDDY_UNLIKELY(apply->op->skips_of > 0) && eddy_list_gaps_is_needed(apply))
        return eddy_list_gaps_apply(caller, apply);
    eddy_spec output_specs[EDDY_OP_OUTPUT_MAX];
    int64_t stack[STACK_BYTES / 8];
    eddy_general_call call;
    begin(&call, caller, apply, output_specs);
    if (eddy_infer_input_count(call.op, apply->list_counts) != call.input_count ||
        (call.input_count > 0 && !apply->inputs))
        return eddy_fail(EDDY_INVALID_ARGUMENT, eddy_apply_origin(apply),
                         "%lld operands do not fit the op", (long long)call.input_count);
    eddy_status status = take_memory(&call, stack);
    if (status != EDDY_OK)
        return status;
    begin_infer(&call);
    status = check(&call);
    if (status == EDDY_OK)
        status = eddy_general_promote_inputs(&call);
    if (status == EDDY_OK && !is_fast(&call, &status))
        status = eddy_general_submit(&call);
    eddy_general_promote_drop(&call);
    if (!call.is_on_stack)
        eddy_caller_scratch_end(caller, call.memory, call.memory_bytes);
    return status;
}
