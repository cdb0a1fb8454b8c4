/* What an instruction waits for, back to where it begins, as text. */
#ifndef EDDY_VM_EXPLAIN_H
#define EDDY_VM_EXPLAIN_H

#include <vm/machine.h>

typedef struct eddy_explanation {
    char *buffer;
    size_t size, length; /* length: of the whole text, as snprintf counts */
} eddy_explanation;

/* Appends; what does not fit is left out, and counted. */
void eddy_explanation_add(eddy_explanation *to, const char *format, ...) EDDY_PRINTF(2, 3);

/* Visits each that the node waits for; one may come several times. Engine only. */
void eddy_explain_sources(const eddy_node *node,
                          void (*visit)(void *context, const eddy_node *source), void *context);
/* "runs, or waits for a thread that runs it". Engine only. */
const char *eddy_explain_state(const eddy_node *node);
/* Lines for the node and, from one to the next, for the oldest of those that it waits for. Engine only. */
void eddy_explain_node(eddy_explanation *to, const eddy_node *node);

#endif
