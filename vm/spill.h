/* The data of an instruction that do not fit the ring: arguments, mentions, and the runner's arrays of operands.
 * Acquired under the submission lock, owned by the instruction, released by the engine when it retires. */
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

/* NULL if there is no memory. The caller fills in mentions, sizes and arguments. */
EDDY_MUST_USE eddy_spill *eddy_spill_acquire(eddy_blocks_cache *cache, uint32_t operand_count,
                                             uint32_t new_count, size_t argument_bytes);
void eddy_spill_release(eddy_blocks_cache *cache, eddy_spill *spill);

/* Points the instruction's fields into the spill. */
void eddy_spill_open(eddy_spill *spill, eddy_instruction *instruction);

#endif
