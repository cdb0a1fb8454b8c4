#include <vm/block.h>
#include <vm/node.h>

static size_t rounded(size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

eddy_block *eddy_block_acquire(eddy_blocks_cache *cache, uint32_t operand_count, uint32_t new_count,
                               size_t argument_bytes) {
    size_t head = rounded(sizeof(eddy_block));
    size_t mentions = rounded(operand_count * sizeof(eddy_mention));
    size_t sizes = rounded(new_count * sizeof(int64_t));
    size_t data = rounded(operand_count * sizeof(void *));
    size_t data_bytes = rounded(operand_count * sizeof(int64_t));
    size_t uses = rounded(operand_count * sizeof(eddy_use));
    size_t bytes = head + mentions + sizes + data + data_bytes + uses + rounded(argument_bytes);
    unsigned char *memory = eddy_blocks_acquire(cache, (int64_t)bytes);
    if (!memory)
        return NULL;
    eddy_block *block = (eddy_block *)(void *)memory;
    block->bytes = (int64_t)bytes;
    block->operand_count = operand_count;
    block->new_count = new_count;
    memory += head;
    block->mentions = (eddy_mention *)(void *)memory;
    memory += mentions;
    block->sizes = (int64_t *)(void *)memory;
    memory += sizes;
    block->data = (void **)(void *)memory;
    memory += data;
    block->data_bytes = (int64_t *)(void *)memory;
    memory += data_bytes;
    block->uses = (eddy_use *)(void *)memory;
    memory += uses;
    block->arguments = memory;
    return block;
}

void eddy_block_release(eddy_blocks_cache *cache, eddy_block *block) {
    if (block)
        eddy_blocks_release(cache, block, block->bytes);
}

void eddy_block_open(eddy_block *block, eddy_instruction *instruction) {
    instruction->block = block;
    instruction->view.operand_count = block->operand_count;
    instruction->mentions = block->mentions;
    instruction->sizes = block->sizes;
    instruction->view.arguments = block->arguments;
}
