/* A lock-free stack of intrusive links: many push, one pops all (Concurrency Kit's ck_stack, push upmc + batch pop).
 * Push never blocks or fails; the popping thread sees what was written before the push. */
#ifndef EDDY_BASE_LIFO_H
#define EDDY_BASE_LIFO_H

#include <stdbool.h>
#include <stddef.h>

typedef struct eddy_lifo_link {
    struct eddy_lifo_link *next;
} eddy_lifo_link;

typedef struct eddy_lifo {
    eddy_lifo_link *head; /* only through the functions below */
} eddy_lifo;

/* Returns true when the stack was empty before (the first pusher wakes the reader). */
bool eddy_lifo_push(eddy_lifo *stack, eddy_lifo_link *link);
/* Takes everything, newest first; NULL when empty. */
eddy_lifo_link *eddy_lifo_take_all(eddy_lifo *stack);
/* The same, oldest first. */
eddy_lifo_link *eddy_lifo_take_all_in_order(eddy_lifo *stack);
static inline bool eddy_lifo_is_empty(const eddy_lifo *stack) {
    return __atomic_load_n(&stack->head, __ATOMIC_RELAXED) == NULL;
}

#endif
