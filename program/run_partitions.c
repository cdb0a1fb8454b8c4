/* A run in partitions: each is submitted in turn, as an instruction or as a copy (partitions.h). */
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/host/transfer.h>
#include <program/run.h>

static eddy_vm_operand *operand_of(const eddy_run *r, uint32_t base) {
    return &r->operands[base - 1];
}

/* ---- steps ---- */

/* What an earlier partition has made or written whole is there. */
static void bind(const eddy_run *r, const eddy_partition *partition, eddy_vm_operand *operands) {
    const eddy_partition_base *bases =
        eddy_partition_bases(&r->program->executable->partitions, partition);
    for (uint32_t k = 0; k < partition->base_count; k++) {
        operands[k] = *operand_of(r, bases[k].base);
        if (!bases[k].is_first) {
            /* It may have no memory, where what should have made it was skipped: then a whole write takes it. */
            operands[k].covers_all |= operands[k].is_new;
            operands[k].is_new = false;
        }
        operands[k].covers_all &= bases[k].is_written;
        if (!bases[k].is_written)
            operands[k].access = EDDY_ACCESS_CONST;
    }
}

static eddy_status submit_steps(const eddy_run *r, uint32_t number, eddy_vm_operand *operands) {
    const eddy_partitions *partitions = &r->program->executable->partitions;
    const eddy_partition *partition = &partitions->items[number];
    bind(r, partition, operands);
    eddy_status status = eddy_run_submit_part(
        r, &(eddy_run_part){.part = EDDY_PART_PARTITION,
                            .partition = number,
                            .device = partition->device,
                            .descriptor = &eddy_run_descriptor,
                            .operands = operands,
                            .operand_count = partition->base_count,
                            .cost_ps = partition->cost_ps,
                            .part_count = partition->end_ordinal - partition->first_ordinal});
    const eddy_partition_base *bases = eddy_partition_bases(partitions, partition);
    for (uint32_t k = 0; k < partition->base_count && status == EDDY_OK; k++)
        operand_of(r, bases[k].base)->storage = operands[k].storage;
    return status;
}

/* ---- copies ---- */

static eddy_status submit_copy(const eddy_run *r, const eddy_partition *partition) {
    const eddy_program *program = r->program;
    const eddy_code_instruction *copy =
        eddy_code_instruction_at(&program->code, partition->transfer);
    const eddy_code_operand *to = eddy_code_operand_at(&program->code, copy->operands_at + 1);
    const eddy_place *places =
        program->executable->elements + program->executable->places_at[partition->transfer];
    const eddy_code_value *source = eddy_code_value_at(
        &program->code, eddy_code_operand_at(&program->code, copy->operands_at)->value);
    eddy_transfer_part part = {
        .storage = operand_of(r, places[0].base)->storage,
        .device = eddy_runtime_vm_device(program->runtime, eddy_code_value_device(source)),
        .offset_bytes = places[0].offset + r->arguments->words[places[0].base - 1],
        .bytes = eddy_code_value_at(&program->code, to->value)->bytes};
    return eddy_transfer_storage(program->runtime->vm, &part,
                                 eddy_runtime_vm_device(program->runtime, partition->device),
                                 copy->address, &operand_of(r, places[1].base)->storage);
}

/* What stands for the result of a call behind the run, which no partition makes: a storage without bytes. */
static eddy_status make_late(const eddy_run *r) {
    const eddy_program *program = r->program;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < program->made.count && status == EDDY_OK; i++) {
        eddy_vm_operand *operand = &r->operands[program->externals.count + i];
        void *memory;
        if (!operand->is_new || operand->storage != 0)
            continue;
        EDDY_ASSERT(
            eddy_code_value_at(&program->code, eddy_program_made_at(program, i)->value)->is_late);
        status = eddy_vm_storage_create(program->runtime->vm, 0, &operand->storage, &memory);
        if (status == EDDY_OK)
            eddy_vm_storage_written(program->runtime->vm);
    }
    return status;
}

/* ---- all of it ---- */

eddy_status eddy_run_submit_partitions(const eddy_run *r, bool *has_begun) {
    const eddy_executable *executable = r->program->executable;
    size_t bytes = executable->base_count * sizeof(eddy_vm_operand);
    eddy_vm_operand *operands = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM);
    if (!operands)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < executable->partitions.count && status == EDDY_OK; i++) {
        const eddy_partition *partition = &executable->partitions.items[i];
        status = partition->transfer == EDDY_CODE_NONE ? submit_steps(r, i, operands)
                                                       : submit_copy(r, partition);
        *has_begun |= status == EDDY_OK;
    }
    if (status == EDDY_OK)
        status = make_late(r);
    eddy_run_find_roots(r);
    eddy_memory_release(operands, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
