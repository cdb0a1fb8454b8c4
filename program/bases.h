/* The base of each value of a program, from which its operands count (executable.h): 0 for those that live within a run. So do values that
 * passes add. */
#ifndef EDDY_PROGRAM_BASES_H
#define EDDY_PROGRAM_BASES_H

#include <program/code.h>

typedef struct eddy_bases {
    uint32_t *of; /* per value */
    uint32_t count;
} eddy_bases;

/* Room for all values of the code: those that are new have 0. False without memory, with the bases as they were. Zeroed bases have room for none. */
EDDY_MUST_USE bool eddy_bases_fit(eddy_bases *bases, const eddy_code *code);
void eddy_bases_fini(eddy_bases *bases);

#endif
