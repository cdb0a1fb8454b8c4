/* What an instruction waits for, back to where it begins, as text. */
#ifndef EDDY_VM_EXPLAIN_H
#define EDDY_VM_EXPLAIN_H

#include <vm/machine.h>

typedef struct eddy_explanation {
    char *buffer;
    size_t size, length; /* length: of the whole text, as snprintf counts */
} eddy_explanation;

/* Lines for the node and, from one to the next, for the oldest of those that it waits for. Engine only. */
void eddy_explain_node(eddy_explanation *to, const eddy_node *node);

#endif
