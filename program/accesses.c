#include <program/accesses.h>

#include <base/memory.h>

static size_t at_bytes(const eddy_accesses *accesses) {
    return ((size_t)accesses->step_count + 1) * sizeof(*accesses->at);
}

static size_t item_bytes(const eddy_accesses *accesses) {
    return (size_t)accesses->access_count * sizeof(*accesses->items);
}

static size_t cost_bytes(const eddy_accesses *accesses) {
    return (size_t)accesses->step_count * sizeof(*accesses->costs_ps);
}

static size_t size_bytes(const eddy_accesses *accesses) {
    return (size_t)accesses->storage_count * sizeof(*accesses->bytes);
}

bool eddy_accesses_init(eddy_accesses *accesses, uint32_t step_count, uint32_t storage_count,
                        uint32_t access_count) {
    *accesses = (eddy_accesses){
        .step_count = step_count, .storage_count = storage_count, .access_count = access_count};
    accesses->at = eddy_memory_acquire_zeroed(at_bytes(accesses), EDDY_MEMORY_PROGRAM);
    accesses->items = eddy_memory_acquire_zeroed(item_bytes(accesses), EDDY_MEMORY_PROGRAM);
    accesses->costs_ps = eddy_memory_acquire_zeroed(cost_bytes(accesses), EDDY_MEMORY_PROGRAM);
    accesses->bytes = eddy_memory_acquire_zeroed(size_bytes(accesses), EDDY_MEMORY_PROGRAM);
    return accesses->at && accesses->items && accesses->costs_ps && accesses->bytes;
}

static uint32_t count_workspaces(const eddy_executable *executable) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < executable->instruction_count; i++)
        count += eddy_executable_call(executable, i)->workspace_bytes > 0;
    return count;
}

static void add(eddy_accesses *accesses, uint32_t *at, uint32_t storage, bool writes) {
    accesses->items[(*at)++] = (eddy_step_access){storage, writes};
}

/* The operands of one instruction, and its workspace: the storage number *workspace, which is the next one's then. */
static void add_instruction(eddy_accesses *accesses, const eddy_code *code,
                            const eddy_executable *executable, uint32_t i, uint32_t *at,
                            uint32_t *workspace) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (!eddy_code_operand_is_absent(operand))
            add(accesses, at, eddy_code_holder_of(code, operand->value),
                operand->access & EDDY_CODE_WRITES);
    }
    if (eddy_executable_call(executable, i)->workspace_bytes > 0)
        add(accesses, at, (*workspace)++, true);
}

bool eddy_accesses_find(eddy_accesses *accesses, const eddy_code *code,
                        const eddy_executable *executable) {
    uint32_t workspaces = count_workspaces(executable), workspace = code->values.count, at = 0;
    if (!eddy_accesses_init(accesses, executable->step_count, code->values.count + workspaces,
                            code->operands.count + workspaces))
        return false;
    for (uint32_t v = 0; v < code->values.count; v++)
        accesses->bytes[v] = eddy_code_value_at(code, v)->bytes;
    for (uint32_t step = 0; step < executable->step_count; step++) {
        for (uint32_t i = executable->first_of[step]; i < executable->first_of[step + 1]; i++) {
            add_instruction(accesses, code, executable, i, &at, &workspace);
            accesses->costs_ps[step] += eddy_executable_cost(executable, i);
        }
        accesses->at[step + 1] = at;
    }
    return true;
}

void eddy_accesses_fini(eddy_accesses *accesses) {
    eddy_memory_release(accesses->at, at_bytes(accesses), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(accesses->items, item_bytes(accesses), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(accesses->costs_ps, cost_bytes(accesses), EDDY_MEMORY_PROGRAM);
    eddy_memory_release(accesses->bytes, size_bytes(accesses), EDDY_MEMORY_PROGRAM);
    *accesses = (eddy_accesses){0};
}
