/* An instruction as its runner sees it, wherever its bytes lie: on the caller's stack, in the ring, in a node or in a
 * block of its own. */
#ifndef EDDY_VM_INSTRUCTION_H
#define EDDY_VM_INSTRUCTION_H

#include <vm/storage.h>
#include <vm/vm.h>

typedef enum eddy_instruction_kind {
    EDDY_KIND_PAD,      /* fills the ring's end */
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
} eddy_instruction_kind;

/* An operand in a record: number in the lower 26 bits. */
typedef uint32_t eddy_mention;
#define EDDY_MENTION_CONST 0u
#define EDDY_MENTION_MUT (1u << 26)
#define EDDY_MENTION_MUT2 (2u << 26)
#define EDDY_MENTION_ACCESS (3u << 26)
#define EDDY_MENTION_NEW (1u << 28)
#define EDDY_MENTION_COVERS (1u << 29) /* written whole and not read */

static inline eddy_storage_number eddy_mention_number(eddy_mention mention) {
    return mention & EDDY_STORAGE_NUMBER_MAX;
}

static inline bool eddy_mention_writes(eddy_mention mention) {
    return (mention & EDDY_MENTION_ACCESS) != 0;
}

static inline bool eddy_mention_is_input(eddy_mention mention) {
    return (mention & (EDDY_MENTION_NEW | EDDY_MENTION_COVERS)) == 0;
}

typedef struct eddy_instruction {
    uint8_t kind;  /* eddy_instruction_kind */
    uint8_t place; /* eddy_vm_place */
    uint16_t stream;
    uint32_t cost_ns;
    uint32_t operand_count;
    uint64_t sequence;
    const eddy_vm_descriptor *descriptor;
    const void *address;
    const void *arguments;
    const eddy_mention *mentions;
    const int64_t *sizes; /* of new storages, in the order of their mentions */
    struct eddy_block *block; /* owned, where the bytes lie in a block of their own; else NULL */
} eddy_instruction;

static inline eddy_vm_instruction eddy_instruction_view(const eddy_instruction *instruction) {
    return (eddy_vm_instruction){instruction->descriptor, instruction->arguments, instruction->operand_count,
                                 instruction->sequence, instruction->address};
}

static inline const char *eddy_instruction_name(const eddy_instruction *instruction) {
    static const char *const names[] = {"pad",    "release", "call",  "wait", "sync", "map",
                                        "access", "recover", "event", "stream_wait", "touch"};
    if (instruction->descriptor && instruction->descriptor->name) {
        eddy_vm_instruction view = eddy_instruction_view(instruction);
        return instruction->descriptor->name(&view);
    }
    return names[instruction->kind];
}

static inline eddy_origin eddy_instruction_origin(const eddy_instruction *instruction) {
    return (eddy_origin){eddy_instruction_name(instruction), instruction->address};
}

#endif
