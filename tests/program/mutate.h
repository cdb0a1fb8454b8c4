/* Random changes of a program's text. */
#ifndef TESTS_PROGRAM_MUTATE_H
#define TESTS_PROGRAM_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct mutator {
    uint64_t state; /* not 0 */
} mutator;

/* A number below the bound. */
uint32_t mutator_below(mutator *m, uint32_t bound);
/* Changes some bytes, or puts parts of such texts in place of others; returns the new length, at most 64 more. */
size_t mutator_change(mutator *m, char *text, size_t length);
/* Puts other numbers in place of some that stand there, so that the text stays well formed; returns the new length, at most 64 more. */
size_t mutator_renumber(mutator *m, char *text, size_t length);

#endif
