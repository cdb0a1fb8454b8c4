#include <program/passes/stands.h>

#include <base/memory.h>

static eddy_code_operand *operands_of(const eddy_stands *s,
                                      const eddy_code_instruction *instruction) {
    return eddy_code_operand_at(s->code, instruction->operands_at);
}

static void note_writes(const eddy_stands *s, const eddy_code_instruction *instruction,
                        uint32_t *per_value) {
    const eddy_code_operand *operands = operands_of(s, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_WRITES)
            per_value[operands[k].value]++;
}

bool eddy_stands_begin(eddy_stands *s, eddy_code *code) {
    uint32_t values = code->values.count;
    *s = (eddy_stands){.code = code,
                       .bytes = (1 + (size_t)values) * (sizeof(*s->items) + 4 * sizeof(uint32_t))};
    s->items = eddy_memory_acquire_zeroed(s->bytes, EDDY_MEMORY_PROGRAM);
    if (!s->items)
        return false;
    s->written = (uint32_t *)(void *)(s->items + values);
    s->version = s->written + values;
    s->maker = s->version + values;
    s->seen = s->maker + values;
    for (uint32_t v = 0; v < values; v++)
        s->items[v] = (eddy_stand){0, v};
    for (uint32_t i = 0; i < code->instructions.count; i++)
        note_writes(s, eddy_code_instruction_at(code, i), s->written);
    return true;
}

void eddy_stands_rename(const eddy_stands *s, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = operands_of(s, instruction);
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        if (eddy_code_operand_is_absent(&operands[k]))
            continue;
        operands[k].offset += s->items[operands[k].value].offset;
        operands[k].value = s->items[operands[k].value].value;
    }
}

void eddy_stands_keep(const eddy_stands *s, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(s->code, i);
    const eddy_code_operand *operands = operands_of(s, instruction);
    note_writes(s, instruction, s->version);
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (operands[k].access & EDDY_CODE_MAKES) {
            bool has_first = k > 0 && !eddy_code_operand_is_absent(&operands[0]);
            s->maker[operands[k].value] = 1 + i;
            s->seen[operands[k].value] = has_first ? s->version[operands[0].value] : 0;
        }
}

void eddy_stands_end(eddy_stands *s) {
    eddy_memory_release(s->items, s->bytes, EDDY_MEMORY_PROGRAM);
}

const eddy_code_instruction *eddy_stands_maker(const eddy_stands *s,
                                               const eddy_code_operand *operand) {
    uint32_t maker = s->maker[operand->value];
    return maker != 0 && s->written[operand->value] == 1
               ? eddy_code_instruction_at(s->code, maker - 1)
               : NULL;
}

const eddy_code_operand *eddy_stands_source(const eddy_stands *s, const eddy_code_operand *operand,
                                            const eddy_op *op) {
    const eddy_code_instruction *made = eddy_stands_maker(s, operand);
    if (!made || made->op != op)
        return NULL;
    const eddy_code_operand *source = operands_of(s, made);
    return s->seen[operand->value] == s->written[source->value] ? source : NULL;
}
