/* Texts of programs that tests make, for the fuzzer to begin with (tools/fuzz.sh). */
#ifndef TESTS_PROGRAM_TEXTS_H
#define TESTS_PROGRAM_TEXTS_H

#include <program/program.h>

/* Writes the program's text to a file of that name in the folder that EDDY_TEST_TEXTS names, if it is set. */
void keep_text(const eddy_program *program, const char *name);

#endif
