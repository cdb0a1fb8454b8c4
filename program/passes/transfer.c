/* Copies between devices.
 *
 * What was copied to a device and comes back to the one that it came from is the operand of the first copy, and one that goes on to a third device is copied from there,
 * where nobody writes the operand, or either copy, from the first copy on. A copy that nobody uses then is dead code (dead.c); of two equal ones the pass `same` leaves one. */
#include <interpreter/host/transfer.h>
#include <program/passes/passes.h>
#include <program/passes/stands.h>

typedef struct shortening {
    eddy_code *code;
    const uint32_t *bases;
    eddy_stands stands;
} shortening;

/* Whether the copy is left out: its result is where its operand's elements came from. Else it may become one of those. */
static bool is_left_out(const shortening *s, const eddy_code_instruction *instruction) {
    eddy_code_operand *operands = eddy_code_operand_at(s->code, instruction->operands_at);
    const eddy_code_operand *source =
        eddy_stands_source(&s->stands, &operands[0], &eddy_transfer_op);
    if (!source)
        return false;
    int64_t first = source->offset + operands[0].offset;
    uint32_t from = source->value, to = operands[1].value;
    if (!eddy_code_has_same_device(eddy_code_value_at(s->code, from),
                                   eddy_code_value_at(s->code, to))) {
        operands[0].offset = first;
        operands[0].value = from;
        return false;
    }
    if (s->bases[to] != 0 || s->stands.written[to] != 1)
        return false;
    eddy_stands_set(&s->stands, &operands[1], from, first);
    return true;
}

static void shorten_all(const shortening *s) {
    uint32_t count = s->code->instructions.count, kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        eddy_code_instruction *instruction = eddy_code_instruction_at(s->code, kept);
        *instruction = *eddy_code_instruction_at(s->code, i);
        eddy_stands_rename(&s->stands, instruction);
        if (instruction->op != &eddy_transfer_op || !is_left_out(s, instruction))
            eddy_stands_keep(&s->stands, kept++);
    }
    s->code->instructions.count = kept;
}

static bool has_copies(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (eddy_code_instruction_at(code, i)->op == &eddy_transfer_op)
            return true;
    return false;
}

bool eddy_pass_transfer(eddy_code *code, const uint32_t *bases) {
    shortening s = {.code = code, .bases = bases};
    if (!has_copies(code))
        return true;
    if (!eddy_stands_begin(&s.stands, code))
        return false;
    shorten_all(&s);
    eddy_stands_end(&s.stands);
    return true;
}
