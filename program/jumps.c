#include <program/jumps.h>

#include <base/memory.h>

typedef struct jumping {
    eddy_executable *executable;
    const eddy_code *code;
    const eddy_regions *regions;
    const uint32_t *step_of;
    uint32_t *of; /* per instruction that is a mark: its jump */
} jumping;

static eddy_control control_at(const jumping *j, uint32_t i) {
    return eddy_control_of(eddy_code_instruction_at(j->code, i)->op);
}

/* The mark behind which the run goes on that does not go on with the next step. */
static uint32_t target_of(const eddy_region *region, eddy_control control) {
    return control == EDDY_CONTROL_IF         ? region->middle
           : control == EDDY_CONTROL_END_LOOP ? region->begin
                                              : region->end;
}

static void set_jump(const jumping *j, uint32_t i, eddy_jump *jump) {
    const eddy_region *region = eddy_region_at(j->regions, eddy_region_of(j->regions, i));
    eddy_control control = control_at(j, i);
    uint32_t target = target_of(region, control);
    *jump = (eddy_jump){.step = j->step_of[i],
                        .to_step = j->step_of[target] + 1,
                        .to_jump = j->of[target] + 1,
                        .over_step = j->step_of[region->end] + 1,
                        .over_jump = j->of[region->end] + 1,
                        .begin = region->begin,
                        .end = region->end,
                        .loop = j->of[region->begin],
                        .control = (uint8_t)control};
    if (control == EDDY_CONTROL_LOOP_WHILE)
        jump->most_steps = *eddy_code_words(
            j->code, eddy_code_instruction_at(j->code, region->begin)->attributes_at);
}

/* A run, or this part of it, goes on behind it, or nowhere. */
static void set_single(const jumping *j, uint32_t i, eddy_jump *jump) {
    *jump = (eddy_jump){
        .step = j->step_of[i], .begin = i, .end = i + 1, .control = (uint8_t)control_at(j, i)};
}

static void set_all(const jumping *j) {
    eddy_executable *executable = j->executable;
    for (uint32_t i = 0; i < j->code->instructions.count; i++)
        if (control_at(j, i) != EDDY_CONTROL_NONE)
            j->of[i] = executable->jump_count++;
    for (uint32_t i = 0; i < j->code->instructions.count; i++) {
        eddy_jump *jump = &executable->jumps[j->of[i]];
        if (control_at(j, i) == EDDY_CONTROL_NONE)
            continue;
        if (control_at(j, i) == EDDY_CONTROL_READ || control_at(j, i) == EDDY_CONTROL_CUT)
            set_single(j, i, jump);
        else
            set_jump(j, i, jump);
        if (eddy_code_instruction_at(j->code, i)->operand_count > 0)
            jump->predicate = executable->elements[executable->places_at[i]];
    }
}

bool eddy_jumps_make(eddy_executable *executable, const eddy_code *code,
                     const eddy_regions *regions, const uint32_t *step_of) {
    uint32_t count = eddy_control_count_marks(code);
    size_t bytes = code->instructions.count * sizeof(uint32_t);
    if (count == 0)
        return true;
    jumping j = {executable, code, regions, step_of,
                 eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM)};
    if (!j.of)
        return false;
    executable->jumps =
        eddy_memory_acquire(count * sizeof(*executable->jumps), EDDY_MEMORY_PROGRAM);
    if (executable->jumps)
        set_all(&j);
    eddy_memory_release(j.of, bytes, EDDY_MEMORY_PROGRAM);
    return executable->jumps != NULL;
}
