/* Dead code, by one walk backwards over the instructions. */
#include <base/memory.h>
#include <program/control.h>
#include <program/passes/passes.h>
#include <string.h>

static bool is_live(const eddy_code *code, const eddy_code_instruction *instruction,
                    const bool *is_wanted) {
    if (instruction->op->may_fail || (code->draws_late && instruction->op->is_random))
        return true;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (operand->access & EDDY_CODE_WRITES && is_wanted[operand->value])
            return true;
    }
    return false;
}

/* What the instruction needs before it runs. Within a region it takes no wish back: there is another way, or another step, that has it. */
static void want(const eddy_code *code, const eddy_code_instruction *instruction, bool is_in_region,
                 const uint32_t *bases, bool *is_wanted) {
    const eddy_code_operand *operands = eddy_code_operand_at(code, instruction->operands_at);
    /* If the instruction is skipped, a value from outside keeps what was written before. A target among the inputs (copy_into's) cannot be
     * where a value begins. */
    for (uint32_t k = instruction->input_count; k < instruction->operand_count && !is_in_region;
         k++)
        if (operands[k].access & (EDDY_CODE_MAKES | EDDY_CODE_COVERS) &&
            bases[operands[k].value] == 0)
            is_wanted[operands[k].value] = false;
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_READS)
            is_wanted[operands[k].value] = true;
}

static bool want_reads(const eddy_code *code, const eddy_code_instruction *instruction,
                       bool *is_wanted) {
    bool is_changed = false;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (!(operand->access & EDDY_CODE_READS) || is_wanted[operand->value])
            continue;
        is_wanted[operand->value] = is_changed = true;
    }
    return is_changed;
}

/* A step of a loop needs what the one before it has left, if that is needed for what is wanted behind the loop, or by what is always there. */
static void want_step(const eddy_code *code, const eddy_region *loop, bool *is_wanted) {
    bool is_changed = true;
    while (is_changed) {
        is_changed = false;
        for (uint32_t i = loop->end; i-- > loop->begin;) {
            const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
            if (is_live(code, instruction, is_wanted))
                is_changed |= want_reads(code, instruction, is_wanted);
        }
    }
}

/* A value whose maker is left out begins where it is written whole. */
static void make_anew(eddy_code *code, const uint32_t *bases, bool *is_there) {
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
            if (eddy_code_operand_is_absent(operand) || bases[operand->value] != 0)
                continue;
            if (!is_there[operand->value] && operand->access & EDDY_CODE_COVERS)
                operand->access = EDDY_CODE_WRITES | EDDY_CODE_MAKES;
            is_there[operand->value] = true;
        }
    }
}

/* Those that are kept move to the end of the array; returns the first of them. Outer loops wish before inner ones, so that each wish of a
 * loop is there before its last instruction is looked at. */
static uint32_t keep_live(eddy_code *code, const eddy_regions *regions, const uint32_t *bases,
                          bool *is_wanted) {
    uint32_t kept = code->instructions.count;
    for (uint32_t i = kept; i-- > 0;) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        uint32_t region = eddy_region_of(regions, i);
        if (eddy_control_of(instruction->op) == EDDY_CONTROL_END_LOOP)
            want_step(code, eddy_region_at(regions, region), is_wanted);
        if (!is_live(code, instruction, is_wanted))
            continue;
        want(code, instruction, region != EDDY_CODE_NONE, bases, is_wanted);
        *eddy_code_instruction_at(code, --kept) = *instruction;
    }
    return kept;
}

bool eddy_pass_dead(eddy_code *code, const uint32_t *bases) {
    uint32_t count = code->instructions.count;
    eddy_regions regions;
    bool *is_wanted = eddy_memory_acquire_zeroed(code->values.count, EDDY_MEMORY_PROGRAM);
    if (!is_wanted || !eddy_regions_find(code, &regions)) {
        eddy_memory_release(is_wanted, code->values.count, EDDY_MEMORY_PROGRAM);
        return false;
    }
    for (uint32_t v = 0; v < code->values.count; v++)
        is_wanted[v] = bases[v] != 0;
    uint32_t kept = keep_live(code, &regions, bases, is_wanted);
    eddy_regions_fini(&regions);
    code->instructions.count = count - kept;
    for (uint32_t i = 0; i < code->instructions.count; i++)
        *eddy_code_instruction_at(code, i) = *eddy_code_instruction_at(code, kept + i);
    memset(is_wanted, 0, code->values.count);
    make_anew(code, bases, is_wanted);
    eddy_memory_release(is_wanted, code->values.count, EDDY_MEMORY_PROGRAM);
    return true;
}
