/* The operands of a general call: resolved once, to tensor, kind and spec. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/general_call.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/transfer.h>

/* Other results of one pass over the operands: the first that does not fit, -1 for none. */
typedef struct findings {
    const eddy_tensor *first; /* that is not absent */
    int64_t mixed;            /* on another runtime or device than the first */
    int64_t not_bool;
} findings;

static void fill_spec(eddy_spec *spec, const eddy_tensor *tensor) {
    spec->is_absent = false;
    spec->dtype = (eddy_dtype)tensor->dtype;
    eddy_tensor_shape(tensor, &spec->shape);
}

static void fill_absent(eddy_spec *spec) {
    spec->is_absent = true;
    spec->dtype = EDDY_F32;
    spec->shape.rank = 0;
}

/* `item` is its index in a list. */
static eddy_status check_input(const eddy_op_operand *kind, int64_t item, eddy_tensor *input,
                               eddy_origin origin) {
    eddy_status status = kind->kind == EDDY_OPERAND_LIST
                             ? eddy_tensor_check_item(input, kind->name, item, origin)
                             : eddy_tensor_check(input, kind->name, origin);
    return status == EDDY_OK ? eddy_tensor_await_shape(input, origin) : status;
}

static void compare(findings *found, int64_t i, const eddy_tensor *input,
                    const eddy_op_operand *kind) {
    if (!found->first)
        found->first = input;
    if (found->mixed < 0 &&
        (input->runtime != found->first->runtime ||
         !eddy_general_device_is(eddy_tensor_device(input), eddy_tensor_device(found->first))))
        found->mixed = i;
    if (found->not_bool < 0 && kind->is_bool && input->dtype != EDDY_BOOL)
        found->not_bool = i;
}

static eddy_status resolve(eddy_general_call *call, findings *found) {
    eddy_origin origin = eddy_general_call_origin(call);
    call->view_count = call->op->output_count;
    eddy_operand_iterator at;
    eddy_operand_iterator_begin(&at, call->op, call->apply->list_counts);
    for (int64_t i = 0; i < call->input_count; i++) {
        const eddy_op_operand *kind = eddy_operand_iterator_next(&at);
        eddy_tensor *input = call->apply->inputs[i];
        call->operands[i] = (eddy_call_operand){input, kind};
        call->view_count += !kind->is_spec_only;
        if (eddy_tensor_is_none(input) && kind->kind == EDDY_OPERAND_OPTIONAL) {
            fill_absent(&call->specs[i]);
            continue;
        }
        eddy_status status = check_input(kind, at.item, input, origin);
        if (EDDY_UNLIKELY(status != EDDY_OK))
            return status;
        fill_spec(&call->specs[i], input);
        call->writes_inputs |= kind->is_mut;
        compare(found, i, input, kind);
    }
    return EDDY_OK;
}

static eddy_status fail_mixed(const eddy_general_call *call, const findings *found) {
    const eddy_tensor *mixed = call->operands[found->mixed].tensor;
    char there[32], before[32];
    if (mixed->runtime != found->first->runtime)
        return eddy_infer_fail(&call->infer, EDDY_RUNTIME_MISMATCH,
                               "operand %lld lives on another runtime than those before it",
                               (long long)found->mixed);
    eddy_device_format(eddy_tensor_device(mixed), there, sizeof(there));
    eddy_device_format(eddy_tensor_device(found->first), before, sizeof(before));
    return eddy_infer_fail(&call->infer, EDDY_DEVICE_MISMATCH,
                           "operand %lld is on %s, and those before it on %s",
                           (long long)found->mixed, there, before);
}

/* Runtime and device: those of the operands, else of the thread. */
static eddy_status find_device(eddy_general_call *call, const eddy_tensor *first) {
    const eddy_apply *apply = call->apply;
    eddy_origin origin = eddy_general_call_origin(call);
    if (first) {
        call->runtime = first->runtime;
        call->device = eddy_tensor_device(first);
    } else {
        eddy_status status = eddy_runtime_of_caller(call->caller, origin, &call->runtime);
        if (status != EDDY_OK)
            return status;
    }
    if (!eddy_runtime_is_running(call->runtime)) {
        char operands[192] = "";
        eddy_infer_describe(&call->infer, operands, sizeof(operands));
        return eddy_runtime_refuse(call->runtime, origin, operands);
    }
    bool is_asked = apply->device && apply->device->kind != EDDY_DEVICE_DEFAULT;
    if (first && !is_asked)
        return EDDY_OK;
    return eddy_runtime_device(call->caller, call->runtime, apply->device, origin, &call->device);
}

static eddy_status find_place(eddy_general_call *call, const eddy_tensor *first) {
    eddy_status status = find_device(call, first);
    if (status == EDDY_OK)
        call->vm_device = eddy_runtime_vm_device(call->runtime, call->device);
    return status;
}

/* A temporary in place of the source, which is dropped as casts are. */
static eddy_status bring_source(eddy_general_call *call, findings *found) {
    const eddy_tensor *target = call->operands[1].tensor;
    eddy_tensor *brought;
    eddy_status status =
        eddy_transfer_elements(call->caller, call->operands[0].tensor, eddy_tensor_device(target),
                               eddy_general_call_origin(call), &brought);
    if (status != EDDY_OK)
        return status;
    call->operands[0].tensor = brought;
    call->cast_count++;
    found->first = target;
    return EDDY_OK;
}

static bool may_cross(const eddy_general_call *call, const findings *found) {
    return call->op->crosses_devices &&
           call->operands[found->mixed].tensor->runtime == found->first->runtime;
}

eddy_status eddy_general_check_operands(eddy_general_call *call) {
    findings found = {NULL, -1, -1};
    eddy_status status = resolve(call, &found);
    if (status == EDDY_OK && EDDY_UNLIKELY(found.mixed >= 0))
        status = may_cross(call, &found) ? bring_source(call, &found) : fail_mixed(call, &found);
    if (status != EDDY_OK)
        return status;
    status = find_place(call, found.first);
    if (status == EDDY_OK && EDDY_UNLIKELY(found.not_bool >= 0))
        return eddy_infer_fail(&call->infer, EDDY_DTYPE_MISMATCH, "%s has to be bool",
                               call->operands[found.not_bool].kind->name);
    return status;
}

/* More are no memory's: a broadcast view's, in which a kernel would go for years. Below it, sizes that kernels compute, of up to 32 bytes for each
 * element of a few operands, fit into 63 bits. */
#define ELEMENTS_MOST (INT64_C(1) << 56)

static eddy_status check_operand_sizes(const eddy_general_call *call) {
    for (int64_t i = 0; i < call->input_count; i++) {
        const eddy_call_operand *operand = &call->operands[i];
        if (!eddy_tensor_is_none(operand->tensor) && !operand->kind->is_spec_only &&
            EDDY_UNLIKELY(operand->tensor->count > ELEMENTS_MOST))
            return eddy_infer_fail(&call->infer, EDDY_SIZE_OVERFLOW,
                                   "%s has %lld elements, more than ops work on",
                                   operand->kind->name, (long long)operand->tensor->count);
    }
    return EDDY_OK;
}

eddy_status eddy_general_check_sizes(const eddy_general_call *call) {
    bool makes_outputs = !call->apply->targets && !call->op->has_late_shape;
    for (int32_t i = 0; i < call->op->output_count && makes_outputs; i++) {
        const eddy_spec *spec = &call->output_specs[i];
        int64_t bytes;
        if (!eddy_shape_count(spec->shape.rank, spec->shape.dims, &bytes) ||
            __builtin_mul_overflow(bytes, eddy_dtype_size(spec->dtype), &bytes))
            bytes = INT64_MAX;
        if (bytes > (INT64_C(1) << 30) && bytes > eddy_memory_limit())
            return eddy_infer_fail(&call->infer, EDDY_OUT_OF_MEMORY,
                                   "the result takes %lld bytes, more than the %lld there are",
                                   (long long)bytes, (long long)eddy_memory_limit());
    }
    return check_operand_sizes(call);
}
