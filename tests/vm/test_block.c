#include <criterion/criterion.h>
#include <string.h>
#include <vm/block.h>
#include <vm/node.h>

static eddy_blocks_pool pool;
static eddy_blocks_cache cache;

static void begin(void) {
    eddy_blocks_pool_init(&pool, EDDY_MEMORY_ARGUMENT);
    eddy_blocks_cache_init(&cache, &pool);
}

static void end(void) {
    eddy_blocks_cache_fini(&cache);
    eddy_blocks_pool_fini(&pool);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_ARGUMENT).bytes, 0);
}

Test(block, its_parts_do_not_overlap_and_lie_inside) {
    begin();
    for (uint32_t operands = 0; operands < 300; operands = operands * 3 + 1)
        for (uint32_t news = 0; news <= operands; news += operands / 3 + 1)
            for (size_t bytes = 0; bytes < 5000; bytes = bytes * 4 + 3) {
                eddy_block *block = eddy_block_acquire(&cache, operands, news, bytes);
                cr_assert_not_null(block);
                size_t whole = (size_t)block->bytes;
                memset(block->mentions, 1, operands * sizeof(*block->mentions));
                memset(block->sizes, 2, news * sizeof(*block->sizes));
                memset(block->data, 3, operands * sizeof(*block->data));
                memset(block->data_bytes, 4, operands * sizeof(*block->data_bytes));
                memset(block->uses, 5, operands * sizeof(*block->uses));
                memset(block->arguments, 6, bytes);
                cr_assert_eq((size_t)block->bytes, whole);
                cr_assert_eq(block->operand_count, operands);
                cr_assert_eq(block->new_count, news);
                unsigned char *end_of_arguments = (unsigned char *)block->arguments + bytes;
                cr_assert_leq((size_t)(end_of_arguments - (unsigned char *)(void *)block), whole);
                if (operands > 0) {
                    cr_assert_eq(*(unsigned char *)block->mentions, 1);
                    cr_assert_eq(((unsigned char *)(block->mentions + operands))[-1], 1);
                    cr_assert_eq(((unsigned char *)(block->data + operands))[-1], 3);
                    cr_assert_eq(((unsigned char *)(block->data_bytes + operands))[-1], 4);
                    cr_assert_eq(((unsigned char *)(block->uses + operands))[-1], 5);
                }
                cr_assert_eq((uintptr_t)block->arguments % 16, 0);
                cr_assert_eq((uintptr_t)block->uses % _Alignof(eddy_use), 0);
                eddy_block_release(&cache, block);
            }
    end();
}

Test(block, opening_points_the_instruction_into_it) {
    begin();
    eddy_block *block = eddy_block_acquire(&cache, 9, 2, 16);
    eddy_instruction instruction = {0};
    eddy_block_open(block, &instruction);
    cr_assert_eq(instruction.block, block);
    cr_assert_eq(instruction.view.operand_count, 9);
    cr_assert_eq(instruction.mentions, block->mentions);
    cr_assert_eq(instruction.sizes, block->sizes);
    cr_assert_eq(instruction.view.arguments, block->arguments);
    eddy_block_release(&cache, block);
    eddy_block_release(&cache, NULL);
    end();
}

Test(block, no_memory_is_an_answer) {
    begin();
    eddy_memory_fail_at(EDDY_MEMORY_ARGUMENT, 0, 1);
    cr_assert_null(eddy_block_acquire(&cache, 100000, 1, 16));
    end();
}
