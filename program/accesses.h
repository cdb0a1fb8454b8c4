/* What each step of an executable reads and writes, as plain numbers: what orders steps, and what proves that they are ordered, begins here.
 *
 * A storage is a block of the arena, or memory from outside that a run is given: values that share memory are one storage. The workspace of an
 * instruction is one, too, that its step alone writes. */
#ifndef EDDY_PROGRAM_ACCESSES_H
#define EDDY_PROGRAM_ACCESSES_H

#include <program/executable.h>

typedef struct eddy_step_access {
    uint32_t storage;
    bool writes; /* or it reads alone */
} eddy_step_access;

struct eddy_accesses {
    uint32_t step_count, storage_count, access_count;
    uint32_t *at; /* [step_count + 1]: the first access of each step, and the number of all */
    eddy_step_access *items;
    int64_t *costs_ps; /* [step_count]: estimated times of the steps */
    int64_t *bytes;    /* [storage_count] */
};

/* Room for so many steps and accesses, zeroed. False without memory: fini it. */
EDDY_MUST_USE bool eddy_accesses_init(eddy_accesses *accesses, uint32_t step_count,
                                      uint32_t storage_count, uint32_t access_count);
/* What the steps of an executable access that has its steps and prepared calls. Storages are the code's values, and behind them the workspaces, in the order
 * of their instructions. False without memory: fini it. */
EDDY_MUST_USE bool eddy_accesses_find(eddy_accesses *accesses, const eddy_code *code,
                                      const eddy_executable *executable);
void eddy_accesses_fini(eddy_accesses *accesses);

#endif
