/* Constant folding: what depends on declared constants and on nothing else is computed once, when the program is built.
 *
 * The instructions that do so become a program of their own, a startup program; it runs at once, and the program captures its results
 * in their place. Ops without operands (zeros, arange) are folded only with what is computed from them: they are cheap, and their
 * results would take memory for the life of the program. */
#ifndef EDDY_PROGRAM_FOLD_H
#define EDDY_PROGRAM_FOLD_H

#include <program/program.h>

/* Folds where the values that are kept take no more than so much. */
#define EDDY_FOLD_BYTES_MOST (INT64_C(64) << 20)

/* bases: per value, as the passes see them; they are out of date afterwards. OUT_OF_MEMORY, or what a run fails with, recorded. */
EDDY_MUST_USE eddy_status eddy_program_fold(eddy_program *program, const uint32_t *bases,
                                            eddy_origin origin);

#endif
