#include <program/partitions.h>

#include <base/memory.h>
#include <interpreter/host/transfer.h>
#include <program/control.h>
#include <program/cut.h>
#include <program/executable.h>
#include <program/late_calls.h>
#include <stdlib.h>

static bool is_cut(const eddy_code *code, uint32_t i) {
    return eddy_control_of(eddy_code_instruction_at(code, i)->op) == EDDY_CONTROL_CUT;
}

void eddy_partitions_find_shared(const eddy_code *code, uint32_t *first, bool *is_shared) {
    uint32_t partition = 1, count = eddy_late_calls_first(code); /* those are in no partition */
    bool is_by_call = eddy_cut_is_by_call(code);
    for (uint32_t v = 0; v < code->values.count; v++) {
        first[v] = 0;
        is_shared[v] = false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        partition += is_cut(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            uint32_t value = eddy_code_operand_at(code, instruction->operands_at + k)->value;
            if (value == EDDY_CODE_NONE)
                continue;
            /* A copy and a call of its own are between storages, also where nobody uses them. */
            is_shared[value] |=
                (first[value] != 0 && first[value] != partition) ||
                instruction->op == &eddy_transfer_op ||
                (is_by_call &&
                 eddy_cut_has_own_kernels(eddy_code_value_device(eddy_code_value_at(code, value))));
            first[value] = first[value] ? first[value] : partition;
        }
    }
}

/* Partitions being found. */
typedef struct finding {
    eddy_executable *executable;
    const eddy_code *code;
    const uint32_t *step_of; /* per instruction */
    bool is_by_call;         /* cut.h */
    uint32_t number;         /* of the partition that is looked at */
    uint32_t *last;          /* per base: 1 + the last partition that uses it; 0: none yet */
    uint32_t *listed;        /* per base: its row, if the partition has listed it */
    eddy_code_array rows;
} finding;

static eddy_partition_base *row_at(const finding *f, uint32_t i) {
    return (eddy_partition_base *)f->rows.items + i;
}

static bool use_base(finding *f, uint32_t base, bool writes) {
    uint32_t index;
    if (f->last[base] != f->number + 1) {
        if (!eddy_code_array_add(&f->rows, sizeof(eddy_partition_base), 1, &index))
            return false;
        *row_at(f, index) = (eddy_partition_base){.base = base, .is_first = f->last[base] == 0};
        f->listed[base] = index;
        f->last[base] = f->number + 1;
    }
    row_at(f, f->listed[base])->is_written |= writes;
    return true;
}

static bool use_operands(finding *f, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(f->code, i);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(f->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        uint32_t base = f->executable->value_places[operand->value].base;
        if (base != 0 && !use_base(f, base, operand->access & EDDY_CODE_WRITES))
            return false;
    }
    return true;
}

/* An instruction of the partition: its bases, time and number. */
static bool add_instruction(finding *f, eddy_partition *partition, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(f->code, i);
    if (instruction->operand_count > 0)
        partition->device = eddy_code_instruction_device(f->code, instruction);
    if (instruction->op == &eddy_transfer_op)
        partition->transfer = i;
    else if (f->is_by_call && eddy_cut_has_own_kernels(partition->device))
        partition->call = i;
    if (partition->first_ordinal > instruction->ordinal)
        partition->first_ordinal = instruction->ordinal;
    if (partition->end_ordinal < instruction->ordinal + 1)
        partition->end_ordinal = instruction->ordinal + 1;
    if (eddy_control_of(instruction->op) == EDDY_CONTROL_LOOP)
        partition->cost_ps = f->executable->most_ps;
    else if (partition->cost_ps < f->executable->most_ps)
        partition->cost_ps += eddy_executable_cost(f->executable, i);
    return use_operands(f, i);
}

static int compare_rows(const void *a, const void *b) {
    uint32_t x = ((const eddy_partition_base *)a)->base, y = ((const eddy_partition_base *)b)->base;
    return x < y ? -1 : x > y;
}

/* The partition that ends before instruction `end`. A run's operands are in the order of its bases. */
static bool add_partition(finding *f, uint32_t first, uint32_t end) {
    eddy_partition *partition = &f->executable->partitions.items[f->number];
    *partition = (eddy_partition){.device = EDDY_CPU,
                                  .first_step = f->step_of[first],
                                  .end_step = f->step_of[end - 1] + 1,
                                  .first_ordinal = UINT32_MAX,
                                  .bases_at = f->rows.count,
                                  .transfer = EDDY_CODE_NONE,
                                  .call = EDDY_CODE_NONE};
    while (partition->first_jump < f->executable->jump_count &&
           f->executable->jumps[partition->first_jump].step < partition->first_step)
        partition->first_jump++;
    for (uint32_t i = first; i < end; i++)
        if (!add_instruction(f, partition, i))
            return false;
    partition->base_count = f->rows.count - partition->bases_at;
    if (partition->base_count > 0)
        qsort(row_at(f, partition->bases_at), partition->base_count, sizeof(eddy_partition_base),
              compare_rows);
    f->number++;
    return true;
}

static bool add_all(finding *f) {
    uint32_t first = 0, count = f->code->instructions.count;
    for (uint32_t i = 0; i <= count; i++) {
        if (i < count && !is_cut(f->code, i))
            continue;
        if (!add_partition(f, first, i))
            return false;
        first = i + 1;
    }
    return true;
}

/* How far each partition reaches into the arena: blocks live within one. */
static void find_arenas(const finding *f, const eddy_arena_block *blocks, uint32_t block_count) {
    eddy_partitions *partitions = &f->executable->partitions;
    for (uint32_t i = 0; i < block_count; i++) {
        uint32_t p = 0;
        if (blocks[i].bytes == 0)
            continue;
        while (blocks[i].first >= partitions->items[p].end_step)
            p++;
        EDDY_ASSERT(blocks[i].last < partitions->items[p].end_step);
        int64_t end = blocks[i].offset + blocks[i].bytes;
        if (partitions->items[p].arena_bytes < end)
            partitions->items[p].arena_bytes = end;
    }
}

bool eddy_partitions_find(eddy_executable *executable, const eddy_code *code,
                          const uint32_t *step_of, const eddy_arena_block *blocks,
                          uint32_t block_count) {
    eddy_partitions *partitions = &executable->partitions;
    uint32_t cuts = eddy_cut_count(code), bases = executable->base_count;
    if (!code->is_cut)
        return true;
    finding f = {.executable = executable,
                 .code = code,
                 .step_of = step_of,
                 .is_by_call = eddy_cut_is_by_call(code)};
    size_t bytes = 2 * (size_t)bases * sizeof(uint32_t);
    f.last = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    partitions->items =
        eddy_memory_acquire((cuts + 1) * sizeof(*partitions->items), EDDY_MEMORY_PROGRAM);
    partitions->count = partitions->items ? cuts + 1 : 0;
    if (f.last)
        f.listed = f.last + bases;
    bool has_memory = f.last && partitions->items && add_all(&f);
    if (has_memory)
        find_arenas(&f, blocks, block_count);
    partitions->bases = f.rows;
    eddy_memory_release(f.last, bytes, EDDY_MEMORY_PROGRAM);
    return has_memory;
}

void eddy_partitions_fini(eddy_partitions *partitions) {
    eddy_memory_release(partitions->items, partitions->count * sizeof(*partitions->items),
                        EDDY_MEMORY_PROGRAM);
    eddy_code_array_fini(&partitions->bases, sizeof(eddy_partition_base));
}

int64_t eddy_partitions_bytes(const eddy_partitions *partitions) {
    return (int64_t)(partitions->count * sizeof(*partitions->items) +
                     partitions->bases.capacity * sizeof(eddy_partition_base));
}
