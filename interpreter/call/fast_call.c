#include <interpreter/call/fast_call.h>

#include <base/number.h>
#include <base/status.h>
#include <interpreter/call/fast_op.h>
#include <interpreter/call/finite.h>
#include <interpreter/call/speed.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <interpreter/handle/tensor.h>
#include <kernels/cost.h>
#include <string.h>

/* The key that all inputs share; 0 if they differ. */
static inline eddy_tensor_key key_of(eddy_tensor *tensor) {
    if (EDDY_UNLIKELY((uintptr_t)tensor <= (uintptr_t)EDDY_NONE))
        return 0;
    eddy_tensor_key key = eddy_load_acquire(&tensor->key);
    return EDDY_LIKELY(key != 0) ? key : eddy_tensor_find_key(tensor);
}

/* False if the scalar changes the compute dtype, or does not fit it. */
static bool fold_attributes(const eddy_fast_op *fast, const void *attributes,
                            eddy_fast_arguments *arguments) {
    memcpy(arguments->attributes, attributes, fast->attribute_bytes);
    if (fast->scalar_offset < 0)
        return true;
    eddy_scalar scalar;
    char *place = (char *)arguments->attributes + fast->scalar_offset;
    memcpy(&scalar, place, sizeof(scalar));
    if ((uint8_t)scalar.kind > fast->scalar_kinds ||
        !eddy_number_convert(&scalar, (eddy_dtype)fast->dtype, fast->scalar_wraps))
        return false;
    memcpy(place, &scalar, sizeof(scalar));
    return true;
}

/* A call being made: the data that both kinds of output need. */
typedef struct fast_call {
    const eddy_fast_op *fast;
    eddy_tensor_key key;
    eddy_vm_operand operands[EDDY_FAST_OPERANDS];
    eddy_fast_arguments arguments;
} fast_call;

/* False if the call is not a fast one. */
static inline __attribute__((always_inline)) bool
prepare(fast_call *call, const eddy_caller *caller, const eddy_op *op, eddy_tensor *const *inputs,
        int64_t input_count, const void *attributes) {
    if (EDDY_UNLIKELY(!op->is_elementwise || input_count != op->operand_count ||
                      (uint64_t)(input_count - 1) >= EDDY_FAST_OPERANDS - 1 ||
                      op->id == EDDY_OP_REGISTERED))
        return false;
    eddy_tensor *first = inputs[0];
    eddy_tensor_key key = key_of(first), any = key;
    if (EDDY_UNLIKELY(key == 0))
        return false;
    call->operands[0] = (eddy_vm_operand){.storage = first->storage, .access = EDDY_ACCESS_CONST};
    for (int64_t i = 1; i < input_count; i++) {
        eddy_tensor *input = inputs[i];
        eddy_tensor_key other = key_of(input);
        if (EDDY_UNLIKELY(((other ^ key) & ~EDDY_TENSOR_KEY_RECORDED) != 0 ||
                          input->runtime != first->runtime))
            return false;
        any |= other;
        call->operands[i] =
            (eddy_vm_operand){.storage = input->storage, .access = EDDY_ACCESS_CONST};
    }
    if (EDDY_UNLIKELY(any & EDDY_TENSOR_KEY_RECORDED) && caller->no_grad == 0)
        return false;
    const eddy_fast_op *fast = eddy_fast_op_find(op, eddy_tensor_key_dtype(key));
    if (EDDY_UNLIKELY(!fast || first->count > UINT32_MAX ||
                      !eddy_runtime_is_running(first->runtime)))
        return false;
    call->key = key;
    call->fast = fast;
    call->arguments.count = (uint32_t)first->count;
    call->arguments.shape_number = eddy_tensor_key_shape(key);
    return EDDY_LIKELY(fast->attribute_bytes == 0) ||
           fold_attributes(fast, attributes, &call->arguments);
}

/* As eddy_cost_flat_ps, on this machine; a count of 32 bits does not overflow. */
static inline int64_t estimate(const eddy_fast_op *fast, int64_t count) {
    int64_t cost_ps = fast->kernel->cost_base_ps + fast->kernel->cost_element_ps * count;
    if (EDDY_UNLIKELY(count > fast->near_count))
        cost_ps += eddy_cost_far_ps(count * fast->element_bytes);
    return eddy_speed_ps(cost_ps);
}

static inline __attribute__((always_inline)) eddy_status
submit(fast_call *call, eddy_caller *caller, eddy_runtime *runtime, int64_t input_count,
       bool is_plain, const void *address) {
    const eddy_fast_op *fast = call->fast;
    eddy_vm_call submission = {
        .instruction = {.descriptor = &fast->descriptor,
                        .arguments = &call->arguments,
                        .operand_count = input_count + 1,
                        .address = address},
        .argument_bytes = offsetof(eddy_fast_arguments, attributes) + fast->attribute_bytes,
        .operands = call->operands,
        .stream = EDDY_UNLIKELY(caller->stream != NULL) ? eddy_stream_of_caller(caller, runtime, 0)
                                                        : NULL,
        .cost_ps = estimate(fast, call->arguments.count),
        .place = EDDY_PLACE_ANY,
        .is_plain = is_plain,
        .releases = caller->pending.numbers,
        .release_count = eddy_pending_release_count(&caller->pending, runtime)};
    return eddy_vm_submit(runtime->vm, &submission);
}

/* ---- to a new tensor ---- */

static inline void describe_result(eddy_tensor *result, const eddy_tensor *first,
                                   const fast_call *call) {
    uint8_t dtype = call->fast->result;
    result->dtype = dtype;
    result->rank = first->rank;
    result->count = first->count;
    result->device_kind = first->device_kind;
    result->device_index = first->device_index;
    result->is_contiguous = first->is_contiguous;
    eddy_store_relaxed(&result->key, eddy_tensor_key_with(call->key, dtype));
    result->axes[0] = first->axes[0];
    result->axes[1] = first->axes[1];
    for (int32_t d = 2; d < first->rank; d++)
        result->axes[d] = first->axes[d];
}

static __attribute__((noinline)) eddy_status fail_handle(const eddy_op *op, const void *address) {
    return eddy_fail(EDDY_OUT_OF_MEMORY, (eddy_origin){op->name, address},
                     "no memory for a handle");
}

eddy_status eddy_fast_call_apply_one(eddy_caller *caller, const eddy_op *op,
                                     eddy_tensor *const *inputs, int64_t input_count,
                                     const void *attributes, const void *address,
                                     eddy_tensor **result) {
    *result = NULL;
    fast_call call;
    if (EDDY_UNLIKELY(!prepare(&call, caller, op, inputs, input_count, attributes)))
        return EDDY_OK;
    eddy_tensor *first = inputs[0];
    eddy_runtime *runtime = first->runtime;
    if (EDDY_UNLIKELY(!eddy_scope_reserve(caller, 1)))
        return fail_handle(op, address);
    eddy_tensor *made = eddy_tensor_acquire(caller, runtime, address);
    if (EDDY_UNLIKELY(!made))
        return fail_handle(op, address);
    describe_result(made, first, &call);
    eddy_vm_operand *output = &call.operands[input_count];
    *output = call.fast->output;
    output->bytes = first->count * call.fast->result_bytes;
    eddy_status status = submit(&call, caller, runtime, input_count, true, address);
    if (EDDY_UNLIKELY(status != EDDY_OK)) {
        eddy_tensor_discard(caller, made);
        return status;
    }
    made->storage = output->storage;
    if (caller->scope)
        eddy_scope_own(caller, made);
    *result = made;
    return EDDY_OK;
}

/* ---- to a given one ---- */

/* A target that a fast call serves: the whole output, or exactly an input. */
static bool fits(const eddy_op *op, const eddy_fast_op *fast, eddy_tensor *const *inputs,
                 eddy_tensor *target, eddy_tensor_key key, eddy_vm_operand *operand) {
    eddy_tensor_key wanted = eddy_tensor_key_with(key, fast->result);
    if ((key_of(target) & ~EDDY_TENSOR_KEY_RECORDED) != wanted ||
        target->runtime != inputs[0]->runtime)
        return false;
    bool is_input = false;
    for (int i = 0; i < fast->input_count; i++)
        is_input |= inputs[i]->storage == target->storage;
    if (is_input &&
        (!op->allows_alias || fast->result != fast->dtype || eddy_finite_wants_operands()))
        return false;
    *operand = (eddy_vm_operand){.storage = target->storage,
                                 .access = EDDY_ACCESS_MUT,
                                 .covers_all = !is_input && target->count == target->root->count};
    return true;
}

/* False if it is not a fast call. */
static bool apply_to(eddy_caller *caller, const eddy_apply *apply, eddy_status *status) {
    fast_call call;
    eddy_tensor *target = apply->targets[0];
    if (!prepare(&call, caller, apply->op, apply->inputs, apply->input_count, apply->attributes) ||
        !fits(apply->op, call.fast, apply->inputs, target, call.key,
              &call.operands[apply->input_count]))
        return false;
    *status =
        submit(&call, caller, apply->inputs[0]->runtime, apply->input_count, false, apply->address);
    eddy_tensor_written(target);
    return true;
}

bool eddy_fast_call_apply(eddy_caller *caller, const eddy_apply *apply, eddy_status *status) {
    if (apply->op->output_count != 1 || caller->recorder != NULL)
        return false;
    if (apply->targets)
        return apply_to(caller, apply, status);
    eddy_tensor *result;
    *status = eddy_fast_call_apply_one(caller, apply->op, apply->inputs, apply->input_count,
                                       apply->attributes, apply->address, &result);
    if (result)
        *apply->outputs = result;
    return result || *status != EDDY_OK;
}
