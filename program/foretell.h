/* A program that was not recorded: what recordings of a function at other sizes say of it, two where one size changes, four where two do.
 *
 * All have the same instructions, on the same values; dims, strides, offsets, bytes and attributes are foretold (affine.h). What comes of that is verified as
 * code from outside is, so that it is a program of that size; whether the function's calls would give it, only a recording can show. Two lowered programs (lower.h)
 * foretell one of a size between theirs, which is as they are: their code was verified before it went through the passes. */
#ifndef EDDY_PROGRAM_FORETELL_H
#define EDDY_PROGRAM_FORETELL_H

#include <program/affine.h>
#include <program/program.h>

/* known: affine->count of them. *program: one reference, not built. OK; INVALID_ARGUMENT, with nothing recorded, where they foretell none; OUT_OF_MEMORY, likewise. The known ones are not
 * built either. */
EDDY_MUST_USE eddy_status eddy_program_foretell(const eddy_program *const *known,
                                                const eddy_affine *affine, eddy_program **program);
/* The same without how gradients go back. storages: code of that size whose values are the same, and which makes what the program is given as storages; NULL. */
EDDY_MUST_USE eddy_status eddy_program_foretell_part(const eddy_program *const *known,
                                                     const eddy_affine *affine,
                                                     const eddy_code *storages,
                                                     eddy_program **program);
/* How gradients go back through a run of the foretold program. Likewise. */
EDDY_MUST_USE eddy_status
eddy_program_gradient_foretell(const struct eddy_program_gradient *const *known,
                               const eddy_affine *affine, struct eddy_program_gradient **gradient);

#endif
