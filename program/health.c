#include <program/health.h>

#include <base/status.h>
#include <program/control.h>
#include <stdio.h>

/* ---- operands ---- */

void eddy_health_find_operands(const eddy_health *h, uint32_t *operands) {
    const eddy_partition_base *bases =
        eddy_partition_bases(&h->executable->partitions, h->partition);
    memset(operands, 0, h->executable->base_count * sizeof(*operands));
    for (uint32_t k = 0; k < h->partition->base_count; k++)
        operands[bases[k].base] = k + 1;
}

bool eddy_health_is_good(const eddy_health *h) {
    for (uint32_t b = 1; b < h->executable->base_count; b++) {
        int64_t operand = eddy_health_operand(h, b);
        if (operand >= 0 && EDDY_UNLIKELY(eddy_vm_run_poison(h->run, operand) != 0))
            return false;
    }
    return true;
}

void eddy_health_look(const eddy_health *h) {
    const eddy_executable *executable = h->executable;
    memset(h->poison, 0, executable->value_count * sizeof(*h->poison));
    for (uint32_t b = 1; b < executable->base_count; b++) {
        int64_t operand = eddy_health_operand(h, b);
        if (operand >= 0)
            h->poison[executable->base_values[b - 1]] = eddy_vm_run_poison(h->run, operand);
    }
}

static bool is_written(const eddy_health *h, uint32_t base) {
    const eddy_executable *executable = h->executable;
    if (EDDY_UNLIKELY(h->partition != NULL))
        return h->operands[base] != 0 &&
               eddy_partition_bases(&executable->partitions, h->partition)[h->operands[base] - 1]
                   .is_written;
    return eddy_code_value_at(h->code, executable->base_values[base - 1])->is_written;
}

void eddy_health_tell(const eddy_health *h) {
    for (uint32_t b = 1; b < h->executable->base_count; b++)
        if (is_written(h, b))
            eddy_vm_run_poison_set(h->run, eddy_health_operand(h, b),
                                   h->poison[h->executable->base_values[b - 1]]);
    if (h->skipped > 0)
        eddy_vm_run_skip(h->run, h->skipped);
}

/* ---- instructions ---- */

/* Whether the run was given all of a storage as this value. */
static bool is_whole(const eddy_health *h, uint32_t value) {
    uint32_t base = h->executable->value_places[value].base;
    return base > 0 && h->shifts[base - 1] == 0 &&
           h->bytes[eddy_health_operand(h, base)] == eddy_code_value_at(h->code, value)->bytes;
}

bool eddy_health_is_input(const eddy_health *h, const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand) ||
        operand->access & (EDDY_CODE_COVERS | EDDY_CODE_MAKES))
        return false;
    return !(operand->access & EDDY_CODE_COVERS_INPUT && is_whole(h, operand->value));
}

eddy_poison eddy_health_blame(const eddy_health *h, const eddy_code_instruction *instruction) {
    eddy_poison lowest = 0;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(h->code, instruction->operands_at + k);
        if (eddy_health_is_input(h, operand))
            lowest = eddy_poison_lowest(lowest, h->poison[operand->value]);
    }
    return lowest;
}

/* root 0: the instruction has succeeded. */
static void mark(const eddy_health *h, const eddy_code_instruction *instruction, uint64_t root,
                 eddy_poison_state in_place) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(h->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        eddy_poison *poison = &h->poison[operand->value];
        if (eddy_health_is_input(h, operand) && !(operand->access & EDDY_CODE_REPLACES))
            *poison = root ? eddy_poison_after_write(*poison, root, in_place) : *poison;
        else
            *poison = root ? eddy_poison_make(root, EDDY_POISON_LOST) : 0;
    }
}

void eddy_health_succeed(const eddy_health *h, uint32_t instruction) {
    mark(h, eddy_code_instruction_at(h->code, instruction), 0, EDDY_POISON_NONE);
}

void eddy_health_skip(eddy_health *h, uint32_t instruction, eddy_poison blame) {
    mark(h, eddy_code_instruction_at(h->code, instruction), eddy_poison_sequence(blame),
         EDDY_POISON_SKIPPED);
    h->skipped++;
}

/* What the call says that would have been made outside of a program. */
static void explain(const eddy_health *h, uint32_t i, const eddy_kernel_error *error, void *copy,
                    char *text, size_t size) {
    eddy_vm_instruction shown;
    if (eddy_control_of(eddy_code_instruction_at(h->code, i)->op) == EDDY_CONTROL_LOOP_WHILE) {
        snprintf(text, size, "while: " EDDY_CONTROL_MOST_STEPS,
                 (long long)eddy_load_relaxed(&error->position));
        return;
    }
    eddy_executable_instruction(h->executable, h->code, i, &shown);
    if (copy)
        shown.arguments = eddy_executable_patched(h->executable, i, copy);
    shown.descriptor->explain(&shown, error, text, size);
}

void eddy_health_fail(const eddy_health *h, uint32_t i, const eddy_kernel_error *failure,
                      void *copy) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(h->code, i);
    char text[400] = "";
    explain(h, i, failure, copy, text, sizeof(text));
    eddy_error error;
    eddy_error_fill(&error, (eddy_status)eddy_load_relaxed(&failure->status),
                    (eddy_origin){instruction->op->name, instruction->address},
                    eddy_health_sequence(h, i), "%s", text);
    /* A loop may come here again. */
    if (!eddy_vm_run_has_failed(h->run, error.sequence))
        eddy_vm_run_fail(h->run, &error);
    mark(h, instruction, error.sequence, EDDY_POISON_TORN);
}

/* ---- regions ---- */

/* What was there before the run holds what it held, also where all of it would have been written. */
static void pass_writes(const eddy_health *h, const eddy_code_instruction *instruction,
                        uint64_t root) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(h->code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
            continue;
        eddy_poison *poison = &h->poison[operand->value];
        if (eddy_code_value_at(h->code, operand->value)->kind == EDDY_VALUE_MADE)
            *poison = eddy_poison_make(root, EDDY_POISON_LOST);
        else
            *poison = eddy_poison_after_write(*poison, root, EDDY_POISON_SKIPPED);
    }
}

void eddy_health_pass_over(const eddy_health *h, const eddy_jump *jump, uint64_t root) {
    for (uint32_t i = jump->begin; i < jump->end; i++)
        pass_writes(h, eddy_code_instruction_at(h->code, i), root);
}
