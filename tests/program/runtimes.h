/* A test on runtimes of different kinds. */
#ifndef TESTS_PROGRAM_RUNTIMES_H
#define TESTS_PROGRAM_RUNTIMES_H

/* Calls the test in a scope, on a runtime that has the service thread, on one with workers beside it, and on one with neither; nothing is left then. */
void in_runtimes(void (*test)(void));

#endif
