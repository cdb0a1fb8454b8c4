/* The tensors that a general call writes to: each element once, and no tensor that is read is overwritten. */
#include <base/memory.h>
#include <base/shape.h>
#include <base/status.h>
#include <interpreter/call/general_call.h>
#include <interpreter/call/overlap.h>
#include <interpreter/handle/tensor.h>
#include <string.h>

/* A tensor that is written to must contain each element once. */
static eddy_status check_writable(const eddy_general_call *call, const eddy_tensor *target,
                                  const char *name) {
    if (target->is_contiguous)
        return EDDY_OK;
    eddy_layout layout;
    eddy_tensor_layout(target, &layout);
    if (eddy_layout_is_injective(&layout))
        return EDDY_OK;
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(target, text, sizeof(text));
    return eddy_infer_fail(&call->infer, EDDY_OVERLAP,
                           "%s %s cannot be written to: some of its elements share memory", name,
                           text);
}

/* A written tensor may be read only as exactly the same elements, and only if the op allows it. */
static eddy_status check_pair(const eddy_general_call *call, const eddy_tensor *written,
                              const char *name, const eddy_tensor *other, bool allows_alias) {
    if (written->storage != other->storage)
        return EDDY_OK;
    eddy_layout a, b;
    eddy_tensor_layout(written, &a);
    eddy_tensor_layout(other, &b);
    if ((allows_alias && eddy_overlap_is_same_layout(&a, &b)) || !eddy_overlap_layouts(&a, &b))
        return EDDY_OK;
    return eddy_infer_fail(&call->infer, EDDY_OVERLAP, "%s overlaps another operand in memory",
                           name);
}

bool eddy_general_targets_cover(const eddy_general_call *call, const eddy_tensor *tensor,
                                int64_t except) {
    if (tensor->offset != 0 || tensor->count != tensor->root->count)
        return false;
    for (int64_t i = 0; i < call->input_count; i++)
        if (i != except && !call->specs[i].is_absent &&
            call->operands[i].tensor->storage == tensor->storage)
            return false;
    return true;
}

static eddy_status check_target(eddy_general_call *call, int32_t i) {
    eddy_tensor *target = call->apply->targets[i];
    const eddy_spec *spec = &call->output_specs[i];
    eddy_origin origin = eddy_general_call_origin(call);
    eddy_status status = eddy_tensor_check(target, "target", origin);
    if (status == EDDY_OK)
        status = eddy_tensor_await_shape(target, origin);
    if (status != EDDY_OK)
        return status;
    if (target->runtime != call->runtime)
        return eddy_infer_fail(&call->infer, EDDY_RUNTIME_MISMATCH,
                               "the target belongs to another runtime");
    if (!eddy_general_device_is(eddy_tensor_device(target), call->device))
        return eddy_infer_fail(&call->infer, EDDY_DEVICE_MISMATCH,
                               "the target lives on another device");
    eddy_shape shape;
    eddy_tensor_shape(target, &shape);
    bool fits = eddy_shape_equal(shape.rank, shape.dims, spec->shape.rank, spec->shape.dims);
    if (!fits || target->dtype != (uint8_t)spec->dtype) {
        char is[EDDY_RANK_MAX * 22], wanted[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(target, is, sizeof(is));
        eddy_shape_format(spec->shape.rank, spec->shape.dims, wanted, sizeof(wanted));
        return eddy_infer_fail(&call->infer, fits ? EDDY_DTYPE_MISMATCH : EDDY_SHAPE_MISMATCH,
                               "the result is %s%s, the target %s", eddy_dtype_name(spec->dtype),
                               wanted, is);
    }
    status = check_writable(call, target, "target");
    for (int64_t k = 0; k < call->input_count && status == EDDY_OK; k++)
        if (!call->specs[k].is_absent)
            status = check_pair(call, target, "target", call->operands[k].tensor,
                                call->op->allows_alias && call->specs[k].dtype == spec->dtype &&
                                    (k == 0 || !call->op->alias_is_first));
    for (int32_t k = 0; k < i && status == EDDY_OK; k++)
        status = check_pair(call, target, "target", call->apply->targets[k], false);
    return status;
}

/* Inputs by storage: a chain of those that share one, so that only they are compared in pairs. */
typedef struct sharing {
    uint32_t *heads; /* per bucket: 1 + the newest input in it, 0 for none */
    uint32_t *next;  /* per input: 1 + the one before it in the bucket */
    uint32_t mask;
    size_t bytes;
    uint32_t on_stack[768];
} sharing;

static bool sharing_init(sharing *s, const eddy_general_call *call) {
    uint32_t buckets = 16;
    while (buckets < 2 * (uint64_t)call->input_count)
        buckets *= 2;
    s->bytes = ((size_t)buckets + (size_t)call->input_count) * sizeof(uint32_t);
    s->heads = s->bytes <= sizeof(s->on_stack)
                   ? s->on_stack
                   : eddy_memory_acquire(s->bytes, EDDY_MEMORY_ARGUMENT);
    if (!s->heads)
        return false;
    memset(s->heads, 0, buckets * sizeof(uint32_t));
    s->next = s->heads + buckets;
    s->mask = buckets - 1;
    return true;
}

static void sharing_fini(sharing *s) {
    if (s->heads != s->on_stack)
        eddy_memory_release(s->heads, s->bytes, EDDY_MEMORY_ARGUMENT);
}

static void sharing_add(sharing *s, const eddy_general_call *call, int64_t i) {
    uint32_t *head = &s->heads[call->operands[i].tensor->storage & s->mask];
    s->next[i] = *head;
    *head = (uint32_t)i + 1;
}

/* Operands written in place: each against all others of its storage. */
static eddy_status check_mut_inputs(const eddy_general_call *call) {
    sharing s;
    if (!sharing_init(&s, call))
        return eddy_fail(EDDY_OUT_OF_MEMORY, eddy_general_call_origin(call),
                         "no memory for the call");
    for (int64_t i = 0; i < call->input_count; i++)
        if (!call->specs[i].is_absent)
            sharing_add(&s, call, i);
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < call->input_count && status == EDDY_OK; i++) {
        const eddy_call_operand *operand = &call->operands[i];
        if (!operand->kind->is_mut || call->specs[i].is_absent)
            continue;
        const char *name = operand->kind->name;
        status = check_writable(call, operand->tensor, name);
        for (uint32_t k = s.heads[operand->tensor->storage & s.mask]; k != 0 && status == EDDY_OK;
             k = s.next[k - 1])
            if (k - 1 != (uint64_t)i)
                status = check_pair(call, operand->tensor, name, call->operands[k - 1].tensor,
                                    call->op->allows_alias);
    }
    sharing_fini(&s);
    return status;
}

eddy_status eddy_general_targets_check(eddy_general_call *call) {
    eddy_status status = EDDY_OK;
    for (int32_t i = 0; call->apply->targets && i < call->op->output_count && status == EDDY_OK;
         i++)
        status = check_target(call, i);
    return status == EDDY_OK && call->writes_inputs ? check_mut_inputs(call) : status;
}

void eddy_general_targets_written(const eddy_general_call *call) {
    for (int32_t i = 0; call->apply->targets && i < call->op->output_count; i++)
        eddy_tensor_written(call->apply->targets[i]);
    for (int64_t i = 0; call->writes_inputs && i < call->input_count; i++)
        if (call->operands[i].kind->is_mut && !call->specs[i].is_absent)
            eddy_tensor_written(call->operands[i].tensor);
}
