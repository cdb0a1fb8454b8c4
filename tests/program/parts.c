#include <tests/program/parts.h>

/* Instructions of one call: those that add its parts up have another op. */
static bool is_of_call(const eddy_code *code, uint32_t i, uint32_t first) {
    const eddy_code_instruction *a = eddy_code_instruction_at(code, first),
                                *b = eddy_code_instruction_at(code, i);
    return a->ordinal == b->ordinal && a->op == b->op;
}

int most_parts_of(const eddy_program *program) {
    const eddy_code *code = &program->code;
    int most = 1;
    for (uint32_t first = 0; first < code->instructions.count; first++) {
        int parts = 0;
        for (uint32_t i = first; i < code->instructions.count; i++)
            parts += is_of_call(code, i, first);
        if (parts > most && eddy_code_instruction_at(code, first)->operand_count > 1)
            most = parts;
    }
    return most;
}
