/* The live instructions as text. */
#ifndef EDDY_VM_DUMP_H
#define EDDY_VM_DUMP_H

#include <vm/machine.h>

/* The live instructions, in lines that end with 0. */
typedef struct eddy_dump {
    size_t length;
    char text[40000]; /* 100 lines of 400 characters */
} eddy_dump;
/* Collects the live instructions; NULL if there is no memory. Engine only. */
eddy_dump *eddy_dump_live(eddy_vm *vm);
/* Writes the lines to the log and frees the memory. Called without the role, since the sink is user code and may be slow. */
void eddy_dump_log(eddy_dump *dump);

#endif
