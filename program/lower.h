/* What programs of all sizes between two have in common, made once: the code that the passes leave, its groups, and the layout of the arena.
 *
 *   programs of the least and the largest size --lower--> their code after the passes, alike, and one layout
 *   foretell (foretell.h) of the two lowered ones --> the code of a size in between --build--> kernels of that size, in the places of the layout
 *
 * What pays is decided at the largest size, as far as it may be done at the least. Passes ask for numbers that are equal or less: those that
 * are on a line and equal at both ends are equal between, and one that is less at both is less between. What is more than a line (bytes, elements
 * of a group, rows) is looked at anew at each size. */
#ifndef EDDY_PROGRAM_LOWER_H
#define EDDY_PROGRAM_LOWER_H

#include <program/program.h>

/* Both are foretold from the same two, and not built. They get a layout and never an executable. INVALID_ARGUMENT, recorded, where the passes leave code
 * that is not alike: then the two are of no use any more. OUT_OF_MEMORY, or a kernel's failure to prepare, likewise. */
EDDY_MUST_USE eddy_status eddy_program_lower(eddy_program *most, eddy_program *least,
                                             eddy_origin origin);
/* Whether the code of a size, as two lowered programs foretell it, holds there: what it names lies within its storages, values share memory of their
 * size, and groups are groups. *is_known: false without memory. */
bool eddy_program_lowered_holds(const eddy_program *program, const uint32_t *bases, bool *is_known);

#endif
