/* Bytes of an instruction that are too many for the ring: arguments, mentions and what its runner needs per operand.
 * Taken under the submission lock, owned by the instruction, given back by the engine when it retires. */
#ifndef EDDY_VM_SPILL_H
#define EDDY_VM_SPILL_H

#include <streams/blocks.h>
#include <vm/instruction.h>

typedef struct eddy_spill {
    int64_t bytes; /* of the whole */
    uint32_t operand_count;
    uint32_t new_count;
    eddy_mention *mentions; /* operand_count */
    int64_t *sizes;         /* new_count */
    void **data;            /* operand_count: for the runner */
    int64_t *data_bytes;    /* operand_count: for the runner */
    struct eddy_use *uses;  /* operand_count: for the engine */
    void *arguments;
} eddy_spill;

/* NULL when there is no memory. Mentions, sizes and arguments are the caller's to fill. */
EDDY_MUST_USE eddy_spill *eddy_spill_acquire(eddy_blocks_cache *cache, uint32_t operand_count,
                                             uint32_t new_count, size_t argument_bytes);
void eddy_spill_release(eddy_blocks_cache *cache, eddy_spill *spill);

/* Points the instruction's fields into the spill. */
void eddy_spill_open(eddy_spill *spill, eddy_instruction *instruction);

#endif
