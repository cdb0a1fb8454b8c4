#include <criterion/criterion.h>
#include <string.h>
#include <vm/node.h>
#include <vm/spill.h>

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

Test(spill, its_parts_do_not_overlap_and_lie_inside) {
    begin();
    for (uint32_t operands = 0; operands < 300; operands = operands * 3 + 1)
        for (uint32_t news = 0; news <= operands; news += operands / 3 + 1)
            for (size_t bytes = 0; bytes < 5000; bytes = bytes * 4 + 3) {
                eddy_spill *spill = eddy_spill_acquire(&cache, operands, news, bytes);
                cr_assert_not_null(spill);
                size_t whole = (size_t)spill->bytes;
                memset(spill->mentions, 1, operands * sizeof(*spill->mentions));
                memset(spill->sizes, 2, news * sizeof(*spill->sizes));
                memset(spill->data, 3, operands * sizeof(*spill->data));
                memset(spill->data_bytes, 4, operands * sizeof(*spill->data_bytes));
                memset(spill->uses, 5, operands * sizeof(*spill->uses));
                memset(spill->arguments, 6, bytes);
                cr_assert_eq((size_t)spill->bytes, whole);
                cr_assert_eq(spill->operand_count, operands);
                cr_assert_eq(spill->new_count, news);
                unsigned char *end_of_arguments = (unsigned char *)spill->arguments + bytes;
                cr_assert_leq((size_t)(end_of_arguments - (unsigned char *)(void *)spill), whole);
                if (operands > 0) {
                    cr_assert_eq(*(unsigned char *)spill->mentions, 1);
                    cr_assert_eq(((unsigned char *)(spill->mentions + operands))[-1], 1);
                    cr_assert_eq(((unsigned char *)(spill->data + operands))[-1], 3);
                    cr_assert_eq(((unsigned char *)(spill->data_bytes + operands))[-1], 4);
                    cr_assert_eq(((unsigned char *)(spill->uses + operands))[-1], 5);
                }
                cr_assert_eq((uintptr_t)spill->arguments % 16, 0);
                cr_assert_eq((uintptr_t)spill->uses % _Alignof(eddy_use), 0);
                eddy_spill_release(&cache, spill);
            }
    end();
}

Test(spill, opening_points_the_instruction_into_it) {
    begin();
    eddy_spill *spill = eddy_spill_acquire(&cache, 9, 2, 16);
    eddy_instruction instruction = {0};
    eddy_spill_open(spill, &instruction);
    cr_assert_eq(instruction.spill, spill);
    cr_assert_eq(instruction.view.operand_count, 9);
    cr_assert_eq(instruction.mentions, spill->mentions);
    cr_assert_eq(instruction.sizes, spill->sizes);
    cr_assert_eq(instruction.view.arguments, spill->arguments);
    eddy_spill_release(&cache, spill);
    eddy_spill_release(&cache, NULL);
    end();
}

Test(spill, no_memory_is_an_answer) {
    begin();
    eddy_memory_fail_at(EDDY_MEMORY_ARGUMENT, 0, 1);
    cr_assert_null(eddy_spill_acquire(&cache, 100000, 1, 16));
    end();
}
