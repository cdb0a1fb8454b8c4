#include <program/feeds.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/host/transfer.h>
#include <program/program.h>
#include <string.h>

/* Whether the input is where the program has it; no binding: there are too many inputs, and who runs it says so. */
static bool is_there(const eddy_tensor *input, const eddy_program_binding *binding) {
    return !binding || !eddy_tensor_is_live(input) ||
           (input->device_kind == binding->device_kind &&
            input->device_index == binding->device_index);
}

bool eddy_feeds_differ(const eddy_run *r) {
    for (int64_t i = 0; r->inputs.items && i < r->inputs.count; i++)
        if (!is_there(r->inputs.items[i], eddy_program_binding_of(r->program, EDDY_ROLE_INPUT, i)))
            return true;
    return false;
}

/* Whether the input is not row-major, and no more was the recorded one. */
static bool has_strides(const eddy_tensor *input, const eddy_program_binding *binding) {
    eddy_layout layout;
    eddy_tensor_layout(input, &layout);
    if (input->is_contiguous || layout.rank != binding->layout.rank)
        return false;
    return memcmp(layout.strides, binding->layout.strides,
                  (size_t)layout.rank * sizeof(layout.strides[0])) == 0;
}

/* With its strides, which are those that the program was recorded with: what lies between its elements comes along. */
static eddy_status bring_strided(const eddy_run *r, eddy_tensor *input, eddy_device device,
                                 eddy_tensor **brought) {
    eddy_layout layout, row = {.rank = 1, .strides = {1}};
    int64_t high;
    eddy_tensor_layout(input, &layout);
    eddy_layout_extent(&layout, &row.offset, &high);
    row.dims[0] = high - row.offset;
    eddy_tensor *all = eddy_tensor_view(r->caller, input->root, &row, r->origin), *there;
    if (!all)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = eddy_transfer_elements(r->caller, all, device, r->origin, &there);
    eddy_tensor_drop(all);
    if (status != EDDY_OK)
        return status;
    layout.offset -= row.offset;
    *brought = eddy_tensor_view(r->caller, there, &layout, r->origin);
    eddy_tensor_drop(there);
    return *brought ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static bool is_written(const eddy_run *r, const eddy_program_binding *binding) {
    return eddy_code_value_at(&r->program->code, binding->value)->is_written;
}

/* A copy in place of inputs[i]; the same if it is where the program has it already. */
static eddy_status bring(const eddy_run *r, int64_t i, eddy_tensor **brought) {
    eddy_tensor *input = r->inputs.items[i];
    const eddy_program_binding *binding = eddy_program_binding_of(r->program, EDDY_ROLE_INPUT, i);
    if (is_there(input, binding))
        return EDDY_OK;
    if (input->runtime != r->program->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, r->origin,
                         "input %s belongs to another runtime than the program", binding->name);
    if (input->autograd && r->caller->no_grad == 0)
        return eddy_fail(EDDY_DEVICE_MISMATCH, r->origin,
                         "input %s requires a gradient and lives on another device: pass "
                         "eddy_to_device of it",
                         binding->name);
    if (binding->is_donated)
        return eddy_fail(EDDY_DEVICE_MISMATCH, r->origin,
                         "input %s is donated and lives on another device, where no run takes its "
                         "memory: pass eddy_to_device of it",
                         binding->name);
    eddy_status status = eddy_tensor_await_shape(input, r->origin);
    if (status != EDDY_OK)
        return status;
    eddy_layout layout;
    eddy_tensor_layout(input, &layout);
    if (is_written(r, binding) && !eddy_layout_is_injective(&layout))
        return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                         "elements of input %s share memory, and the program writes it",
                         binding->name);
    eddy_device device = {(eddy_device_kind)binding->device_kind, binding->device_index};
    status = has_strides(input, binding)
                 ? bring_strided(r, input, device, brought)
                 : eddy_transfer_elements(r->caller, input, device, r->origin, brought);
    if (status != EDDY_OK)
        return status;
    eddy_add_relaxed(&r->program->feed_copies, (int64_t)1);
    return EDDY_OK;
}

static bool is_alias(const eddy_tensor *a, const eddy_tensor *b) {
    return !eddy_tensor_is_none(b) && eddy_tensor_is_live(b) && a->root == b->root;
}

/* Whether another input, written or donated if this one is not, has the memory of input i. */
static bool has_input(const eddy_run *r, const eddy_list *given, int64_t i, bool writes) {
    for (int64_t k = 0; k < given->count; k++) {
        const eddy_program_binding *other = eddy_program_binding_of(r->program, EDDY_ROLE_INPUT, k);
        if (k != i && other && is_alias(given->items[i], given->items[k]) &&
            (writes || other->is_donated || is_written(r, other)))
            return true;
    }
    return false;
}

static bool has_target(const eddy_run *r, const eddy_tensor *input) {
    for (uint32_t i = 0; r->targets && i < r->program->output_count; i++)
        if (is_alias(input, r->targets[i]))
            return true;
    return false;
}

/* What stands for the state in this run, or a captured tensor. */
static const eddy_tensor *held_by(const eddy_run *r, uint32_t e) {
    uint32_t number = 0;
    for (uint32_t i = 0; r->states && i < r->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(r->program, i);
        if (binding->role != EDDY_ROLE_STATE)
            continue;
        const eddy_tensor *state = r->states[number++];
        if (binding->operand == e && !eddy_tensor_is_none(state))
            return state;
    }
    return eddy_program_external_at(r->program, e)->tensor;
}

static bool has_held(const eddy_run *r, const eddy_tensor *input, bool writes) {
    for (uint32_t e = 0; e < r->program->externals.count; e++) {
        const eddy_tensor *held = held_by(r, e);
        uint32_t value = eddy_program_external_at(r->program, e)->value;
        if (held && is_alias(input, held) &&
            (writes || eddy_code_value_at(&r->program->code, value)->is_written))
            return true;
    }
    return false;
}

/* A copy shares no memory with what its tensor shares it with: that matters where the run writes either. */
static eddy_status check_aliases(const eddy_run *r, const eddy_list *given) {
    for (int64_t i = 0; i < given->count; i++) {
        const eddy_program_binding *binding =
            eddy_program_binding_of(r->program, EDDY_ROLE_INPUT, i);
        if (r->inputs.items[i] == given->items[i])
            continue;
        bool writes = is_written(r, binding);
        if (has_input(r, given, i, writes) || has_target(r, given->items[i]) ||
            has_held(r, given->items[i], writes))
            return eddy_fail(EDDY_INVALID_ARGUMENT, r->origin,
                             "input %s shares its memory with another tensor of the run, and the "
                             "program writes it",
                             binding->name);
    }
    return EDDY_OK;
}

/* What the run writes of its inputs is written to what was given. */
static eddy_status write_back(const eddy_run *r, const eddy_list *given) {
    eddy_status status = EDDY_OK;
    for (int64_t i = 0; i < given->count && status == EDDY_OK; i++) {
        if (r->inputs.items[i] != given->items[i] &&
            is_written(r, eddy_program_binding_of(r->program, EDDY_ROLE_INPUT, i)))
            status =
                eddy_copy_to(r->caller, r->inputs.items[i], given->items[i], r->origin.address);
    }
    return status;
}

eddy_status eddy_feeds_run(eddy_run *r, eddy_status (*run)(eddy_run *r)) {
    if (!eddy_caller_may_call(r->caller))
        return eddy_caller_refuse(r->caller, r->origin);
    eddy_status status = eddy_program_check(r->program, r->origin);
    if (status != EDDY_OK)
        return status;
    size_t bytes = (size_t)r->inputs.count * sizeof(eddy_tensor *);
    eddy_tensor **items = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!items)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for the inputs");
    memcpy(items, r->inputs.items, bytes);
    for (int64_t i = 0; i < r->inputs.count && status == EDDY_OK; i++)
        status = bring(r, i, &items[i]);
    eddy_list given = r->inputs;
    r->inputs.items = items;
    if (status == EDDY_OK)
        status = check_aliases(r, &given);
    if (status == EDDY_OK)
        status = run(r);
    if (status == EDDY_OK)
        status = write_back(r, &given);
    r->inputs = given;
    for (int64_t i = 0; i < given.count; i++)
        if (items[i] != given.items[i])
            eddy_tensor_drop(items[i]);
    eddy_memory_release(items, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
