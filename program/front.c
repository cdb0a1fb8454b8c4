#include <program/front.h>

#include <base/memory.h>
#include <program/control.h>

/* Instructions up to the last mark; 0: there is none. */
static uint32_t find_end(const eddy_code *code) {
    uint32_t i = code->instructions.count;
    while (i > 0 && eddy_control_of(eddy_code_instruction_at(code, i - 1)->op) != EDDY_CONTROL_READ)
        i--;
    return i;
}

/* The estimated time of instructions; with a loop among them that of all, as often as they may run. */
static int64_t cost_of(const eddy_executable *executable, const eddy_code *code, uint32_t first,
                       uint32_t end) {
    int64_t cost_ps = 0;
    for (uint32_t i = first; i < end; i++) {
        if (eddy_control_of(eddy_code_instruction_at(code, i)->op) == EDDY_CONTROL_LOOP)
            return executable->most_ps;
        cost_ps += eddy_executable_cost(executable, i);
    }
    return cost_ps;
}

static void use(eddy_executable *executable, const eddy_code *code,
                const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand))
        return;
    uint32_t value = eddy_code_holder_of(code, operand->value),
             base = executable->value_places[value].base;
    const eddy_code_value *used = eddy_code_value_at(code, value);
    eddy_front_base *at = &executable->front.bases[base];
    at->is_used = true;
    at->is_written |= (operand->access & EDDY_CODE_WRITES) != 0;
    /* What the run makes is gone with it. */
    if (at->is_written && used->kind != EDDY_VALUE_MADE)
        at->kept_bytes = used->bytes;
}

bool eddy_front_find(eddy_executable *executable, const eddy_code *code) {
    eddy_front *front = &executable->front;
    uint32_t end = find_end(code);
    if (end == 0)
        return true;
    front->bases = eddy_memory_acquire_zeroed(executable->base_count * sizeof(*front->bases),
                                              EDDY_MEMORY_PROGRAM);
    if (!front->bases)
        return false;
    for (uint32_t i = 0; i < end; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++)
            use(executable, code, eddy_code_operand_at(code, instruction->operands_at + k));
    }
    front->front_ps = cost_of(executable, code, 0, end);
    front->back_ps = cost_of(executable, code, end, code->instructions.count);
    for (uint32_t b = 1; b < executable->base_count; b++) {
        front->bases[b].operand = front->operand_count;
        front->operand_count += front->bases[b].is_used;
    }
    front->recorded_count = eddy_code_instruction_at(code, end - 1)->ordinal + 1;
    while (executable->first_of[front->steps] < end)
        front->steps++;
    while (front->jumps < executable->jump_count &&
           executable->jumps[front->jumps].step < front->steps)
        front->read_count += executable->jumps[front->jumps++].control == EDDY_CONTROL_READ;
    return true;
}

void eddy_front_fini(eddy_executable *executable) {
    eddy_memory_release(executable->front.bases,
                        executable->base_count * sizeof(*executable->front.bases),
                        EDDY_MEMORY_PROGRAM);
}

size_t eddy_front_kept_bytes(const eddy_executable *executable) {
    size_t bytes = 0;
    for (uint32_t b = 1; b < executable->base_count && eddy_front_exists(executable); b++)
        bytes += eddy_frame_lined((size_t)executable->front.bases[b].kept_bytes);
    return bytes;
}

void eddy_front_keep(const eddy_executable *executable, char *const *bases, void *room) {
    char *at = room;
    for (uint32_t b = 1; b < executable->base_count; b++) {
        size_t bytes = (size_t)executable->front.bases[b].kept_bytes;
        void *kept = eddy_frame_take(&at, bytes);
        if (bytes > 0)
            memcpy(kept, bases[b], bytes);
    }
}

void eddy_front_put_back(const eddy_executable *executable, char *const *bases, const void *room) {
    char *at = (char *)room;
    for (uint32_t b = 1; b < executable->base_count; b++) {
        size_t bytes = (size_t)executable->front.bases[b].kept_bytes;
        const void *kept = eddy_frame_take(&at, bytes);
        if (bytes > 0)
            memcpy(bases[b], kept, bytes);
    }
}
