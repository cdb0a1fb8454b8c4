/* The text of a program (docs/program-format.md), in memory. */
#ifndef EDDY_PROGRAM_PRINT_H
#define EDDY_PROGRAM_PRINT_H

#include <interpreter/call/describe.h>
#include <program/program.h>

#define EDDY_PRINT_VERSION 1

typedef struct eddy_printed {
    char *text;
    size_t length; /* without its final 0 */
} eddy_printed;

typedef enum eddy_print_what {
    EDDY_PRINT_CODE,    /* what a program can be made of again: all that goes into files */
    EDDY_PRINT_READING, /* also gradients that a run leaves on the tape, and groups */
    EDDY_PRINT_PLAN,    /* and how each instruction runs, as remarks */
} eddy_print_what;

/* Makes the text; false without memory. Ended by eddy_printed_fini. */
EDDY_MUST_USE bool eddy_printed_make(eddy_printed *printed, const eddy_program *program,
                                     eddy_print_what what);
void eddy_printed_fini(eddy_printed *printed);

/* A name: as it is where it reads as one, in quotes elsewhere. */
void eddy_print_name(eddy_text *text, const char *name);

#endif
