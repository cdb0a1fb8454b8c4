/* The text of a program (docs/program-format.md) read back. Hostile text is refused: it takes no more memory than in proportion to its
 * length, and what is accepted has passed verify.h and prints as the same text again. */
#ifndef EDDY_PROGRAM_PARSE_H
#define EDDY_PROGRAM_PARSE_H

#include <program/program.h>

typedef struct eddy_parse_error {
    uint32_t line; /* from 1; 0: the text as a whole */
    char reason[320];
} eddy_parse_error;

/* Fills in code, externals (whose tensors are NULL) and bindings of a program that has none of them. *generator_count: the generators
 * besides the running thread's own that it draws from; the program has none yet. INVALID_ARGUMENT or OUT_OF_MEMORY, with *error filled in, no error being
 * recorded; what was filled in goes with the program. */
EDDY_MUST_USE eddy_status eddy_parse_program(eddy_program *program, const char *text, size_t length,
                                             uint32_t *generator_count, eddy_parse_error *error);

#endif
