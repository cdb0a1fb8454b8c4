/* What an instruction waits for, back to where it begins, as text. */
#ifndef EDDY_VM_EXPLAIN_H
#define EDDY_VM_EXPLAIN_H

#include <vm/machine.h>

typedef enum eddy_look_result {
    EDDY_LOOK_DONE,
    EDDY_LOOK_CLOSED, /* the VM, or it is the parent process's */
    EDDY_LOOK_BUSY, /* whoever orders instructions has not let go for 0.2 s: it may be running a kernel */
} eddy_look_result;

/* Calls `look` in the engine's role, by which nodes stand still. Any thread that has no lock of the VM. */
eddy_look_result eddy_explain_look(eddy_vm *vm, void (*look)(eddy_vm *vm, void *context),
                                   void *context);

typedef struct eddy_explanation {
    char *buffer;
    size_t size, length; /* length: of the whole text, as snprintf counts */
} eddy_explanation;

/* Appends; what does not fit is left out, and counted. */
void eddy_explanation_add(eddy_explanation *to, const char *format, ...) EDDY_PRINTF(2, 3);

/* Visits each that the node waits for; one may come several times. Engine only. */
void eddy_explain_sources(const eddy_node *node,
                          void (*visit)(void *context, const eddy_node *source), void *context);
/* "add(f32[16], f32[16])", or the name alone. Engine only. */
void eddy_explain_call(const eddy_node *node, char *buffer, size_t size);
/* "runs, or waits for a thread that runs it". Engine only. */
const char *eddy_explain_state(const eddy_node *node);
/* Lines for the node and, from one to the next, for the oldest of those that it waits for. Engine only. */
void eddy_explain_node(eddy_explanation *to, const eddy_node *node);

#endif
