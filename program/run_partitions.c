/* A run in partitions: each is submitted in turn, as an instruction, as a call or as a copy (partitions.h), calls also several as one (fusions.h), and then what gives up what the run does. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/host/transfer.h>
#include <program/fusions.h>
#include <program/run.h>
#include <string.h>

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
        operands[k].is_given_up = false; /* behind all partitions */
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

/* ---- calls ---- */

/* Room for the operands of a partition, and for the packed block of a call. */
typedef struct rooms {
    eddy_vm_operand *operands;
    eddy_packed_arguments *packed;
} rooms;

static const eddy_partition_base *find_base(const eddy_run *r, const eddy_partition *partition,
                                            uint32_t base) {
    const eddy_partition_base *at =
        eddy_partition_bases(&r->program->executable->partitions, partition);
    while (at->base != base)
        at++;
    return at;
}

eddy_vm_operand eddy_run_operand_for(const eddy_run *r, const eddy_partition *partition,
                                     uint32_t base, uint8_t access) {
    eddy_vm_operand operand = *operand_of(r, base);
    bool is_covered = (access & (EDDY_CODE_COVERS | EDDY_CODE_MAKES)) ||
                      ((access & EDDY_CODE_COVERS_INPUT) && operand.covers_all);
    operand.is_new &= find_base(r, partition, base)->is_first;
    operand.covers_all = operand.is_new || is_covered;
    if (access & EDDY_CODE_WRITES)
        return operand;
    operand.access = EDDY_ACCESS_CONST;
    operand.covers_all = false;
    return operand;
}

/* The prepared block, which counts from where operands are in this run and has the run's words; and its operands, as many as are returned. */
static uint32_t bind_call(const eddy_run *r, const eddy_partition *partition, const rooms *to) {
    const eddy_executable *executable = r->program->executable;
    const eddy_code *code = &r->program->code;
    const eddy_code_instruction *call = eddy_code_instruction_at(code, partition->call);
    const eddy_prepared_call *prepared = eddy_executable_call(executable, partition->call);
    const int64_t *shifts = r->arguments->words, *words = shifts + executable->base_count - 1;
    uint32_t first = executable->places_at[partition->call],
             count = executable->places_at[partition->call + 1] - first;
    memcpy(to->packed, prepared->packed, prepared->bytes);
    for (uint32_t k = 0; k < count; k++) {
        const eddy_place *place = &executable->elements[first + k];
        EDDY_ASSERT(place->base > 0);
        eddy_packed_view *view = &to->packed->views[place->view];
        view->offset =
            (place->offset + shifts[place->base - 1]) / eddy_dtype_size((eddy_dtype)view->dtype);
        to->operands[k] = eddy_run_operand_for(
            r, partition, place->base,
            eddy_code_operand_at(code, call->operands_at + place->view)->access);
    }
    int64_t *attributes = (int64_t *)(void *)to->packed + to->packed->attributes_at;
    for (uint32_t k = 0; k < call->patch_count; k++) {
        const eddy_patch *patch = &executable->patches[call->patches_at + k];
        attributes[patch->to] = words[patch->from];
    }
    return count;
}

static eddy_status submit_call(const eddy_run *r, const eddy_partition *partition,
                               const rooms *with) {
    const eddy_executable *executable = r->program->executable;
    const eddy_prepared_call *prepared = eddy_executable_call(executable, partition->call);
    uint32_t count = bind_call(r, partition, with);
    /* What is submitted is ended by the VM. */
    eddy_status status = eddy_packed_hold(with->packed);
    if (status != EDDY_OK)
        return eddy_fail(status, (eddy_origin){with->packed->op->name, NULL}, "%s",
                         eddy_status_text(status));
    status = eddy_run_submit_call(
        r,
        &(eddy_run_part){.device = partition->device,
                         .descriptor = prepared->descriptor,
                         .operands = with->operands,
                         .operand_count = count,
                         .cost_ps = partition->cost_ps,
                         .address =
                             eddy_code_instruction_at(&r->program->code, partition->call)->address},
        with->packed, prepared->bytes);
    const eddy_place *places = executable->elements + executable->places_at[partition->call];
    if (status != EDDY_OK)
        eddy_packed_end(with->packed);
    for (uint32_t k = 0; k < count && status == EDDY_OK; k++)
        operand_of(r, places[k].base)->storage = with->operands[k].storage;
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
    return eddy_vm_copy(program->runtime->vm, NULL, operand_of(r, places[0].base)->storage,
                        places[0].offset + r->arguments->words[places[0].base - 1],
                        eddy_code_value_at(&program->code, to->value)->bytes,
                        eddy_runtime_vm_device(program->runtime, partition->device), copy->address,
                        &operand_of(r, places[1].base)->storage);
}

/* What stands for the result of a call behind the run, which no partition makes: a storage without bytes. */
static eddy_status make_late(const eddy_run *r) {
    const eddy_program *program = r->program;
    eddy_status status = EDDY_OK;
    for (uint32_t i = 0; i < program->made.count && status == EDDY_OK; i++) {
        eddy_vm_operand *operand = &r->operands[program->externals.count + i];
        void *memory;
        const eddy_code_value *value =
            eddy_code_value_at(&program->code, eddy_program_made_at(program, i)->value);
        /* What lives within a fusion alone has no storage either, and needs none. */
        if (!operand->is_new || operand->storage != 0 || !value->is_late)
            continue;
        status = eddy_vm_storage_create(program->runtime->vm, 0, &operand->storage, &memory);
        if (status == EDDY_OK)
            eddy_vm_storage_written(program->runtime->vm);
    }
    return status;
}

/* ---- what the run gives up ---- */

/* Donated inputs in the order of their bindings, and what the run makes old in its ring: the instruction behind all others. */
static uint32_t given_up_count(const eddy_run *r) {
    return r->program->donated_count + eddy_ring_turn_count(r->turn);
}

static void bind_given_up(const eddy_run *r, eddy_vm_operand *operands) {
    const eddy_program *program = r->program;
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->is_donated)
            operands[count++] = (eddy_vm_operand){.storage = r->operands[binding->operand].storage,
                                                  .access = EDDY_ACCESS_MUT,
                                                  .covers_all = true,
                                                  .is_given_up = true};
    }
    if (eddy_ring_turn_count(r->turn) > 0)
        eddy_ring_turn_operands(r->turn, operands + count);
}

static eddy_status submit_given_up(const eddy_run *r, eddy_vm_operand *operands) {
    uint32_t count = given_up_count(r);
    eddy_status status = EDDY_OK;
    bind_given_up(r, operands);
    if (count > 0)
        status = eddy_run_submit_part(
            r, &(eddy_run_part){.part = EDDY_PART_GIVES,
                                .device = EDDY_CPU,
                                .descriptor = &eddy_run_giving_descriptor,
                                .operands = operands,
                                .operand_count = count,
                                .part_count = count,
                                .gone = eddy_ring_turn_count(r->turn) > 0 ? r->turn->gone : NULL});
    if (status == EDDY_OK && r->turn)
        eddy_ring_turn_submitted(r->turn);
    return status;
}

/* ---- all of it ---- */

/* As one instruction, if partition *i begins a fusion whose kernel is there; *i is its last one then. */
static bool submit_fused(const eddy_run *r, uint32_t *fusion, uint32_t *i, eddy_status *status) {
    const eddy_fusions *fusions = &r->program->executable->fusions;
    if (*fusion == fusions->count || fusions->items[*fusion].first != *i)
        return false;
    uint32_t number = (*fusion)++;
    if (!eddy_run_submit_fused(r, number, status))
        return false;
    *i += fusions->items[number].count - 1;
    return true;
}

static eddy_status submit_partition(const eddy_run *r, uint32_t number, const rooms *with) {
    const eddy_partition *partition = &r->program->executable->partitions.items[number];
    return partition->transfer != EDDY_CODE_NONE ? submit_copy(r, partition)
           : partition->call != EDDY_CODE_NONE   ? submit_call(r, partition, with)
                                                 : submit_steps(r, number, with->operands);
}

eddy_status eddy_run_submit_partitions(const eddy_run *r, bool *has_begun) {
    const eddy_executable *executable = r->program->executable;
    if (r->turn && !eddy_ring_turn_take(r->turn))
        return eddy_run_fail_place(r);
    size_t operands = executable->base_count > executable->most_views ? executable->base_count
                                                                      : executable->most_views;
    if (operands < given_up_count(r))
        operands = given_up_count(r);
    size_t bytes = operands * sizeof(eddy_vm_operand) + executable->most_call_bytes;
    rooms with = {.operands = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM)};
    if (!with.operands)
        return eddy_fail(EDDY_OUT_OF_MEMORY, r->origin, "no memory for a run");
    with.packed = (eddy_packed_arguments *)(void *)(with.operands + operands);
    eddy_status status = EDDY_OK;
    uint32_t fusion = 0;
    for (uint32_t i = 0; i < executable->partitions.count && status == EDDY_OK; i++) {
        if (!submit_fused(r, &fusion, &i, &status))
            status = submit_partition(r, i, &with);
        *has_begun |= status == EDDY_OK;
    }
    if (status == EDDY_OK)
        status = make_late(r);
    if (status == EDDY_OK)
        status = submit_given_up(r, with.operands);
    eddy_run_find_roots(r);
    eddy_memory_release(with.operands, bytes, EDDY_MEMORY_PROGRAM);
    return status;
}
