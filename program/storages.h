/* The storages of a program that lie in its file, in the order of the text: those of states, then the captured ones. */
#ifndef EDDY_PROGRAM_STORAGES_H
#define EDDY_PROGRAM_STORAGES_H

#include <program/program.h>

typedef struct eddy_storages {
    size_t bytes;        /* of its memory */
    uint32_t *externals; /* by their numbers; owned */
    uint32_t count;
    const uint8_t *dtypes; /* per value, in the same block: of what the program names */
} eddy_storages;

/* False without memory. */
EDDY_MUST_USE bool eddy_storages_make(eddy_storages *storages, const eddy_program *program);
void eddy_storages_fini(eddy_storages *storages);

#endif
