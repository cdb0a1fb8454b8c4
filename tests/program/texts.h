/* Texts of programs that tests make. */
#ifndef TESTS_PROGRAM_TEXTS_H
#define TESTS_PROGRAM_TEXTS_H

#include <program/program.h>

/* What eddy_program_print prints; the caller frees it. */
char *printed_of(const eddy_program *program, bool shows_plan);

/* For the fuzzer to begin with (tools/fuzz.sh): writes the program's text to a file of that name in the folder that EDDY_TEST_TEXTS names, if it is set. */
void keep_text(const eddy_program *program, const char *name);

#endif
