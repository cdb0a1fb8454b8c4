/* The data of an instruction that do not fit the ring: arguments, mentions, and the runner's arrays of operands.
 * Acquired under the submission lock, owned by the instruction, released by the engine when it retires. */
#ifndef EDDY_VM_BLOCK_H
#define EDDY_VM_BLOCK_H

#include <streams/blocks.h>
#include <vm/instruction.h>

typedef struct eddy_block {
    int64_t bytes; /* of the whole */
    uint32_t operand_count;
    uint32_t new_count;
    eddy_mention *mentions; /* operand_count */
    int64_t *sizes;         /* new_count */
    void **data;            /* operand_count: for the runner */
    int64_t *data_bytes;    /* operand_count: for the runner */
    struct eddy_use *uses;  /* operand_count: for the engine */
    void *arguments;
} eddy_block;

/* NULL if there is no memory. The caller fills in mentions, sizes and arguments. */
EDDY_MUST_USE eddy_block *eddy_block_acquire(eddy_blocks_cache *cache, uint32_t operand_count,
                                             uint32_t new_count, size_t argument_bytes);
void eddy_block_release(eddy_blocks_cache *cache, eddy_block *block);

/* Points the instruction's fields into the block. */
void eddy_block_open(eddy_block *block, eddy_instruction *instruction);

#endif
