/* A program made of another one's text. */
#ifndef TESTS_PROGRAM_REREAD_H
#define TESTS_PROGRAM_REREAD_H

#include <program/program.h>

/* Prints the program, parses the text and makes a program of it over the tensors and generators of the first. The text is the same
 * again, and each instruction has the words, kernel and patches that it had. Fails the test otherwise. */
eddy_program *reread(const eddy_program *program, const char *what);

#endif
