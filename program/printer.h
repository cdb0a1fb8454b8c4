/* Printing a program (print.h): what its sources share. */
#ifndef EDDY_PROGRAM_PRINTER_H
#define EDDY_PROGRAM_PRINTER_H

#include <program/print.h>

typedef struct eddy_printer {
    const eddy_program *program;
    eddy_text text;
    /* Per value: 1 + the binding that names it, or EDDY_PRINTER_UNNAMED and its number in the text; 0: not seen yet. */
    uint32_t *labels;
    eddy_print_what what;
} eddy_printer;

#define EDDY_PRINTER_UNNAMED (UINT32_C(1) << 31)

/* "x", or "%3" */
void eddy_printer_value(eddy_printer *p, uint32_t value);

/* ---- how it runs: print_plan.c ---- */

/* Behind the line of an instruction: what runs it, on what, and where it was called. */
void eddy_printer_step(eddy_printer *p, uint32_t instruction, int64_t group);
/* Behind the line that begins a group. */
void eddy_printer_tiles(eddy_printer *p, uint32_t group);
/* The memory of a run. */
void eddy_printer_memory(eddy_printer *p);

#endif
