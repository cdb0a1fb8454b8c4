#include <program/shown.h>

void eddy_shown_make(eddy_shown *shown, const eddy_executable *executable, const eddy_code *code,
                     uint32_t instruction, eddy_frame *frame, void *copy) {
    uint32_t first = executable->places_at[instruction],
             count = executable->places_at[instruction + 1] - first;
    eddy_executable_instruction(executable, code, instruction, &shown->instruction);
    if (copy)
        shown->instruction.arguments = eddy_executable_patched(executable, instruction, copy);
    eddy_frame_find(frame, executable->places + first, count);
    shown->run = (eddy_vm_run){.instruction = &shown->instruction,
                               .data = frame->data,
                               .bytes = executable->place_bytes + first,
                               .team = frame->team,
                               .error = &frame->error,
                               .launch = frame->launch};
}
