/* The kinds of instruction: what each is called, what it does, and how it is ordered. To add one, add it here, and its row and functions in
 * instruction_kinds.c. */
#ifndef EDDY_VM_INSTRUCTION_KIND_H
#define EDDY_VM_INSTRUCTION_KIND_H

#include <stdbool.h>
#include <stdint.h>

/* How instructions of a kind are ordered, beside their operands. */
typedef enum eddy_instruction_kind_rule {
    EDDY_KIND_IS_STREAMED =
        1 << 0,                   /* takes its turn on its stream; others hang on storages alone */
    EDDY_KIND_IS_QUEUED = 1 << 1, /* goes through the queue of an ordered stream */
    EDDY_KIND_ENDS_STREAM = 1 << 2,  /* runs once everything before it on its stream has retired */
    EDDY_KIND_ENDS_ALL = 1 << 3,     /* the same, of all streams */
    EDDY_KIND_GATES_STREAM = 1 << 4, /* what comes after on its stream waits for it */
    EDDY_KIND_MAKES_EVENT = 1 << 5, /* its event passes with it; others that have one wait for it */
    EDDY_KIND_IS_USERS = 1 << 6,    /* user code decides when it ends: it needs a node */
    EDDY_KIND_HAS_WAITER = 1 << 7,  /* the waiter is the first of its arguments */
    EDDY_KIND_IS_WAIT =
        1 << 8, /* nothing but a wait: counts as finished at once (PROTOCOL.md 10) */
    EDDY_KIND_USES_DATA = 1 << 9, /* of its storage, on the host */
} eddy_instruction_kind_rule;

typedef enum eddy_instruction_kind {
    EDDY_KIND_PAD,      /* fills the ring's end; the engine's own matter, as the next two are */
    EDDY_KIND_RELEASES, /* only releases */
    EDDY_KIND_CALL,     /* runs a descriptor */
    EDDY_KIND_WAIT,     /* tells a waiter, and copies a small value for it */
    EDDY_KIND_BARRIER,  /* tells a waiter once everything before it has retired */
    EDDY_KIND_LEND,     /* lends a storage to foreign code until the lend ends */
    EDDY_KIND_ACCESS,   /* calls user code on the service thread */
    EDDY_KIND_RECOVER,  /* clears SKIPPED */
    EDDY_KIND_EVENT,    /* passes an event once what came before on its stream has retired */
    EDDY_KIND_GATE,     /* what comes after on its stream runs after an event */
    EDDY_KIND_TOUCH,    /* reads, does nothing */
    EDDY_KIND_SHARE, /* tells a waiter where a device has a storage, once what comes before is launched */
    EDDY_KIND_COUNT
} eddy_instruction_kind;

struct eddy_vm;
struct eddy_node;
struct eddy_instruction;
struct eddy_vm_event;

typedef struct eddy_instruction_kind_row {
    const char *name; /* in errors and dumps; a call's is its op's */
    /* The event that an instruction passes or waits for; NULL. */
    struct eddy_vm_event *(*event)(const struct eddy_instruction *instruction);
    /* Does what is in order, straight from the ring (`node` NULL) or as a node; false when it is not over yet. */
    bool (*run)(struct eddy_vm *vm, const struct eddy_instruction *instruction,
                struct eddy_node *node);
    /* What was not over is. */
    void (*completed)(struct eddy_vm *vm, struct eddy_node *node);
    uint32_t rules; /* eddy_instruction_kind_rule */
} eddy_instruction_kind_row;

extern const eddy_instruction_kind_row eddy_instruction_kinds[];

#endif
