#include <program/undo.h>

#include <base/memory.h>
#include <program/control.h>

/* Instructions up to the last mark; 0: there is none. */
static uint32_t last_read(const eddy_code *code) {
    uint32_t i = code->instructions.count;
    while (i > 0 && eddy_control_of(eddy_code_instruction_at(code, i - 1)->op) != EDDY_CONTROL_READ)
        i--;
    return i;
}

static bool has(const eddy_executable *executable, uint32_t base) {
    for (uint32_t i = 0; i < executable->undo_count; i++)
        if (executable->undo[i].base == base)
            return true;
    return false;
}

/* What the run makes is gone with it. */
static void add(eddy_executable *executable, const eddy_code *code,
                const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand) || !(operand->access & EDDY_CODE_WRITES))
        return;
    uint32_t value = eddy_code_holder_of(code, operand->value),
             base = executable->value_places[value].base;
    const eddy_code_value *written = eddy_code_value_at(code, value);
    if (written->kind == EDDY_VALUE_MADE || has(executable, base))
        return;
    executable->undo[executable->undo_count++] = (eddy_undo){base, written->bytes};
}

bool eddy_undo_find(eddy_executable *executable, const eddy_code *code) {
    uint32_t end = last_read(code);
    if (end == 0)
        return true;
    executable->undo = eddy_memory_acquire(executable->base_count * sizeof(*executable->undo),
                                           EDDY_MEMORY_PROGRAM);
    if (!executable->undo)
        return false;
    for (uint32_t i = 0; i < end; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++)
            add(executable, code, eddy_code_operand_at(code, instruction->operands_at + k));
    }
    return true;
}

void eddy_undo_fini(eddy_executable *executable) {
    eddy_memory_release(executable->undo, executable->base_count * sizeof(*executable->undo),
                        EDDY_MEMORY_PROGRAM);
}

size_t eddy_undo_bytes(const eddy_executable *executable) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < executable->undo_count; i++)
        bytes += eddy_frame_lined((size_t)executable->undo[i].bytes);
    return bytes;
}

void eddy_undo_keep(const eddy_executable *executable, char *const *bases, void *room) {
    char *at = room;
    for (uint32_t i = 0; i < executable->undo_count; i++) {
        const eddy_undo *undo = &executable->undo[i];
        void *kept = eddy_frame_take(&at, (size_t)undo->bytes);
        if (undo->bytes > 0)
            memcpy(kept, bases[undo->base], (size_t)undo->bytes);
    }
}

void eddy_undo_put_back(const eddy_executable *executable, char *const *bases, const void *room) {
    char *at = (char *)room;
    for (uint32_t i = 0; i < executable->undo_count; i++) {
        const eddy_undo *undo = &executable->undo[i];
        const void *kept = eddy_frame_take(&at, (size_t)undo->bytes);
        if (undo->bytes > 0)
            memcpy(bases[undo->base], kept, (size_t)undo->bytes);
    }
}
