#include <interpreter/call/apply.h>

#include <interpreter/call/fast_call.h>
#include <interpreter/call/general_call.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/tape/autograd.h>
#include <vm/traced.h>

eddy_status eddy_interpreter_issue(eddy_caller *caller, const eddy_apply *apply) {
    if (EDDY_UNLIKELY(eddy_autograd_is_wanted(caller, apply)))
        return eddy_autograd_apply(caller, apply);
    eddy_status status;
    return eddy_fast_call_apply(caller, apply, &status) ? status
                                                        : eddy_general_call_apply(caller, apply);
}

/* The same for a call that is known not to be a fast one. */
static eddy_status issue_general(eddy_caller *caller, const eddy_apply *apply) {
    if (EDDY_UNLIKELY(eddy_autograd_is_wanted(caller, apply)))
        return eddy_autograd_apply(caller, apply);
    return eddy_general_call_apply(caller, apply);
}

eddy_status eddy_interpreter_apply(const eddy_apply *apply) {
    eddy_caller *caller = eddy_caller_get();
    if (EDDY_UNLIKELY(!eddy_caller_may_call(caller)))
        return eddy_caller_refuse(caller, eddy_apply_origin(apply));
    if (!eddy_trace_hears(EDDY_TRACE_ISSUE))
        return eddy_interpreter_issue(caller, apply);
    eddy_traced_issued = (eddy_traced_number){0};
    eddy_trace_span span =
        EDDY_TRACE_BEGIN(ISSUE, .op = apply->op->name, .address = apply->address);
    eddy_status status = eddy_interpreter_issue(caller, apply);
    EDDY_TRACE_END(span, .op = apply->op->name, .address = apply->address,
                   .runtime = eddy_traced_issued.runtime, .sequence = eddy_traced_issued.sequence);
    return status;
}

/* The parts that the common case does not need, in a function of their own. */
static __attribute__((noinline)) eddy_tensor *
apply_one_slow(const eddy_op *op, eddy_tensor *const *inputs, int64_t input_count, void *attributes,
               const void *address, eddy_caller *not_fast) {
    eddy_tensor *result = NULL;
    eddy_apply apply = {.op = op,
                        .inputs = inputs,
                        .input_count = input_count,
                        .attributes = attributes,
                        .outputs = &result,
                        .address = address};
    (void)!(not_fast ? issue_general(not_fast, &apply) : eddy_interpreter_apply(&apply));
    return result;
}

eddy_tensor *eddy_interpreter_apply_one(const eddy_op *op, eddy_tensor *const *inputs,
                                        int64_t input_count, void *attributes,
                                        const void *address) {
    eddy_caller *caller = eddy_caller_self;
    if (EDDY_UNLIKELY(!eddy_caller_may_call(caller) || caller->recorder != NULL ||
                      eddy_trace_is_on()))
        return apply_one_slow(op, inputs, input_count, attributes, address, NULL);
    eddy_tensor *result;
    eddy_status status =
        eddy_fast_call_apply_one(caller, op, inputs, input_count, attributes, address, &result);
    if (EDDY_LIKELY(result || status != EDDY_OK))
        return result;
    return apply_one_slow(op, inputs, input_count, attributes, address, caller);
}
