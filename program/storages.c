#include <program/storages.h>

#include <base/memory.h>

static size_t bytes_of(const eddy_program *program) {
    return program->externals.count * sizeof(uint32_t) +
           (size_t)program->code.values.count * (sizeof(uint32_t) + sizeof(uint8_t));
}

/* Per value: 1 + its external. */
static void find_externals(const eddy_program *program, uint32_t *found) {
    for (uint32_t e = 0; e < program->externals.count; e++)
        found[eddy_program_external_at(program, e)->value] = 1 + e;
}

static void find_dtypes(const eddy_program *program, uint8_t *dtypes) {
    for (uint32_t i = 0; i < program->bindings.count; i++)
        dtypes[eddy_program_binding_at(program, i)->value] =
            eddy_program_binding_at(program, i)->dtype;
    for (uint32_t i = 0; i < program->code.operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(&program->code, i);
        if (!eddy_code_operand_is_absent(operand))
            dtypes[operand->value] = operand->dtype;
    }
}

bool eddy_storages_make(eddy_storages *storages, const eddy_program *program) {
    *storages = (eddy_storages){.bytes = bytes_of(program)};
    storages->externals = eddy_memory_acquire_zeroed(bytes_of(program), EDDY_MEMORY_PROGRAM);
    if (!storages->externals)
        return false;
    uint32_t *found = storages->externals + program->externals.count;
    uint8_t *dtypes = (uint8_t *)(found + program->code.values.count);
    find_externals(program, found);
    find_dtypes(program, dtypes);
    storages->dtypes = dtypes;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        bool is_held = binding->role == EDDY_ROLE_STATE || binding->role == EDDY_ROLE_CONSTANT;
        if (!is_held || found[binding->value] == 0)
            continue;
        storages->externals[storages->count++] = found[binding->value] - 1;
        found[binding->value] = 0; /* listed */
    }
    for (uint32_t e = 0; e < program->externals.count; e++) {
        uint32_t value = eddy_program_external_at(program, e)->value;
        if (eddy_code_value_at(&program->code, value)->kind == EDDY_VALUE_CAPTURED)
            storages->externals[storages->count++] = e;
    }
    return true;
}

void eddy_storages_fini(eddy_storages *storages) {
    if (storages->externals)
        eddy_memory_release(storages->externals, storages->bytes, EDDY_MEMORY_PROGRAM);
    *storages = (eddy_storages){0};
}
