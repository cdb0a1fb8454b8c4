/* The VM's own kinds of instruction (instruction_kind.h): their arguments, and what the engine does with them. Engine only. */
#ifndef EDDY_VM_INSTRUCTION_KINDS_H
#define EDDY_VM_INSTRUCTION_KINDS_H

#include <vm/machine.h>

/* One read mention, or none. */
typedef struct eddy_wait_arguments {
    eddy_waiter *waiter;  /* NULL once the waiter was told already */
    eddy_vm_event *event; /* holds a reference; NULL */
    int64_t offset;
    uint32_t bytes; /* to copy */
    uint32_t wants_shape;
} eddy_wait_arguments;

typedef struct eddy_waiter_arguments {
    eddy_waiter *waiter;
} eddy_waiter_arguments;

/* One mention. */
typedef struct eddy_lend_arguments {
    eddy_waiter *waiter;
    /* Of a storage of a device, as it lies there: the queue on which the borrower launches. NULL: to the host. */
    struct eddy_device_queue *queue;
} eddy_lend_arguments;

/* One mention. */
typedef struct eddy_access_arguments {
    eddy_vm_access_fn *callback;
    void *context;
} eddy_access_arguments;

/* EVENT, GATE: holds a reference. */
typedef struct eddy_event_arguments {
    eddy_vm_event *event;
} eddy_event_arguments;

/* The event an instruction passes or waits for; NULL. */
eddy_vm_event *eddy_instruction_kind_event(const eddy_instruction *instruction);

/* Does a kind other than CALL at once, straight from the ring, when nothing is in its way; false when it needs a node. */
bool eddy_instruction_kind_run_direct(eddy_vm *vm, const eddy_instruction *instruction);
/* Does a ready node of a kind other than CALL; false when it is not over yet (a lend, a callback). */
bool eddy_instruction_kind_run(eddy_vm *vm, eddy_node *node);
/* A node was linked and has to wait: tells the helpers what is wanted, refuses waits that would never end. */
void eddy_instruction_kind_blocked(eddy_vm *vm, eddy_node *node);
/* A node that was not over came back. */
void eddy_instruction_kind_completed(eddy_vm *vm, eddy_node *node);

#endif
