#include <vm/node.h>
#include <vm/spill.h>

static size_t rounded(size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

eddy_spill *eddy_spill_acquire(eddy_blocks_cache *cache, uint32_t operand_count, uint32_t new_count,
                               size_t argument_bytes) {
    size_t head = rounded(sizeof(eddy_spill));
    size_t mentions = rounded(operand_count * sizeof(eddy_mention));
    size_t sizes = rounded(new_count * sizeof(int64_t));
    size_t data = rounded(operand_count * sizeof(void *));
    size_t data_bytes = rounded(operand_count * sizeof(int64_t));
    size_t uses = rounded(operand_count * sizeof(eddy_use));
    size_t bytes = head + mentions + sizes + data + data_bytes + uses + rounded(argument_bytes);
    unsigned char *memory = eddy_blocks_acquire(cache, (int64_t)bytes);
    if (!memory)
        return NULL;
    eddy_spill *spill = (eddy_spill *)(void *)memory;
    spill->bytes = (int64_t)bytes;
    spill->operand_count = operand_count;
    spill->new_count = new_count;
    memory += head;
    spill->mentions = (eddy_mention *)(void *)memory;
    memory += mentions;
    spill->sizes = (int64_t *)(void *)memory;
    memory += sizes;
    spill->data = (void **)(void *)memory;
    memory += data;
    spill->data_bytes = (int64_t *)(void *)memory;
    memory += data_bytes;
    spill->uses = (eddy_use *)(void *)memory;
    memory += uses;
    spill->arguments = memory;
    return spill;
}

void eddy_spill_release(eddy_blocks_cache *cache, eddy_spill *spill) {
    if (spill)
        eddy_blocks_release(cache, spill, spill->bytes);
}

void eddy_spill_open(eddy_spill *spill, eddy_instruction *instruction) {
    instruction->spill = spill;
    instruction->view.operand_count = spill->operand_count;
    instruction->mentions = spill->mentions;
    instruction->sizes = spill->sizes;
    instruction->view.arguments = spill->arguments;
}
