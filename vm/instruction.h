/* An instruction as its runner sees it, wherever its bytes lie: on the caller's stack, in the ring, in a node or in a
 * spill. */
#ifndef EDDY_VM_INSTRUCTION_H
#define EDDY_VM_INSTRUCTION_H

#include <vm/instruction_kind.h>
#include <vm/storage.h>
#include <vm/vm.h>

/* An operand in a record: number in the lower 26 bits. */
typedef uint32_t eddy_mention;
#define EDDY_MENTION_CONST 0u
#define EDDY_MENTION_MUT (1u << 26)
#define EDDY_MENTION_MUT2 (2u << 26)
#define EDDY_MENTION_ACCESS (3u << 26)
#define EDDY_MENTION_NEW (1u << 28)
#define EDDY_MENTION_COVERS (1u << 29) /* written whole and not read */
#define EDDY_MENTION_GIVEN_UP (1u << 30)

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
    eddy_vm_instruction view; /* what its descriptor sees */
    uint8_t kind;             /* eddy_instruction_kind */
    uint8_t place;            /* eddy_vm_place */
    uint16_t stream;
    uint32_t cost_ns;
    const eddy_mention *mentions;
    const int64_t *sizes;     /* of new storages, in the order of their mentions */
    struct eddy_spill *spill; /* owned, where the bytes are too many for a record; else NULL */
} eddy_instruction;

static inline const char *eddy_instruction_name(const eddy_instruction *instruction) {
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    return descriptor && descriptor->name ? descriptor->name(&instruction->view)
                                          : eddy_instruction_kinds[instruction->kind].name;
}

/* Once, when it has retired. */
static inline void eddy_instruction_end(const eddy_instruction *instruction) {
    const eddy_vm_descriptor *descriptor = instruction->view.descriptor;
    if (descriptor && EDDY_UNLIKELY(descriptor->end != NULL))
        descriptor->end(&instruction->view);
}

static inline bool eddy_instruction_has(const eddy_instruction *instruction,
                                        eddy_instruction_kind_rule rule) {
    return (eddy_instruction_kinds[instruction->kind].rules & (unsigned)rule) != 0;
}

/* Whether another operand is the same storage. */
static inline bool eddy_instruction_is_named_again(const eddy_instruction *instruction,
                                                   uint32_t operand) {
    eddy_storage_number number = eddy_mention_number(instruction->mentions[operand]);
    for (uint32_t k = 0; k < instruction->view.operand_count; k++)
        if (k != operand && eddy_mention_number(instruction->mentions[k]) == number)
            return true;
    return false;
}

static inline eddy_origin eddy_instruction_origin(const eddy_instruction *instruction) {
    return (eddy_origin){eddy_instruction_name(instruction), instruction->view.address};
}

#endif
