/* What the pass `subbatch` has done to a program. */
#ifndef TESTS_PROGRAM_PARTS_H
#define TESTS_PROGRAM_PARTS_H

#include <program/program.h>

/* Of the recorded calls that are done in parts, the most parts; 1: there is none. */
int most_parts_of(const eddy_program *program);

#endif
