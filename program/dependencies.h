/* The steps that each step depends on: those before it that wrote what it reads or writes, or read what it writes. Of those that follow from others some are left out: behind a
 * write nobody depends on what came before that. */
#ifndef EDDY_PROGRAM_DEPENDENCIES_H
#define EDDY_PROGRAM_DEPENDENCIES_H

#include <program/accesses.h>

typedef struct eddy_dependencies {
    const eddy_accesses *accesses;
    uint32_t
        *from_at;   /* [step_count + 1]: the first dependency of each step, and the number of all */
    uint32_t *from; /* steps */
    uint32_t from_room;
    uint32_t *writer_of; /* per access: 1 + the step that wrote the storage last; 0: none */
} eddy_dependencies;

/* Borrows the accesses. False without memory: nothing is left. */
EDDY_MUST_USE bool eddy_dependencies_find(eddy_dependencies *dependencies,
                                          const eddy_accesses *accesses);
void eddy_dependencies_fini(eddy_dependencies *dependencies);

#endif
