/* An instruction of a code with its operands, as the call that would have been made outside of a program: for what looks at those. */
#ifndef EDDY_PROGRAM_SHOWN_H
#define EDDY_PROGRAM_SHOWN_H

#include <program/executable.h>

typedef struct eddy_shown {
    eddy_vm_instruction instruction;
    eddy_vm_run run; /* its operands lie in the frame, until that shows another one */
} eddy_shown;

/* Its failure would be that of the frame. `copy`: the attributes that it runs with, where words of the run are filled in; else NULL. */
void eddy_shown_make(eddy_shown *shown, const eddy_executable *executable, const eddy_code *code,
                     uint32_t instruction, eddy_frame *frame, void *copy);

#endif
