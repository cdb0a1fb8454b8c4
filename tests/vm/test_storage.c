#include <criterion/criterion.h>
#include <stdlib.h>
#include <vm/storage.h>

static eddy_storage_table table;

Test(storage, numbers_are_handed_out_once_lowest_first_and_zero_never) {
    cr_assert(eddy_storage_table_grow(&table));
    cr_assert_eq(table.free_count, EDDY_STORAGE_CHUNK - 1);
    eddy_storage_number expected = 1;
    for (eddy_storage_number n = table.free_head; n;
         n = eddy_storage_at(&table, n)->issuer.next_free)
        cr_assert_eq(n, expected++);
    cr_assert_eq(expected, EDDY_STORAGE_CHUNK);
    eddy_storage_table_fini(&table);
}

Test(storage, growing_never_moves_a_storage) {
    cr_assert(eddy_storage_table_grow(&table));
    eddy_storage *seven = eddy_storage_at(&table, 7);
    seven->issuer.generation = 42;
    for (int i = 0; i < 20; i++)
        cr_assert(eddy_storage_table_grow(&table));
    cr_assert_eq(eddy_storage_at(&table, 7), seven);
    cr_assert_eq(eddy_storage_at(&table, 7)->issuer.generation, 42);
    cr_assert_eq(table.free_head, 20 * EDDY_STORAGE_CHUNK, "the newest chunk's come first");
    cr_assert_eq(table.free_count, 21 * EDDY_STORAGE_CHUNK - 1);
    eddy_storage_table_fini(&table);
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_TABLE).bytes, 0);
}

Test(storage, a_refused_chunk_leaves_the_table_as_it_was) {
    cr_assert(eddy_storage_table_grow(&table));
    eddy_memory_fail_at(EDDY_MEMORY_TABLE, 0, 1);
    cr_assert_not(eddy_storage_table_grow(&table));
    cr_assert_eq(table.chunk_count, 1);
    cr_assert_eq(table.free_head, 1);
    cr_assert(eddy_storage_table_grow(&table));
    eddy_storage_table_fini(&table);
}

Test(storage, each_writer_has_a_line_of_its_own) {
    cr_assert_eq(sizeof(eddy_storage) % EDDY_CACHE_LINE, 0);
    cr_assert_eq(offsetof(eddy_storage, shared) % EDDY_CACHE_LINE, 0);
    cr_assert_eq(offsetof(eddy_storage, engine) % EDDY_CACHE_LINE, 0);
    cr_assert_geq(offsetof(eddy_storage, shared), EDDY_CACHE_LINE);
    cr_assert_geq(offsetof(eddy_storage, engine) - offsetof(eddy_storage, shared), EDDY_CACHE_LINE);
    cr_assert_leq((size_t)EDDY_STORAGE_CHUNK * EDDY_STORAGE_CHUNK_MAX - 1, EDDY_STORAGE_NUMBER_MAX);
}

Test(storage, a_poison_keeps_its_root_and_its_state) {
    uint64_t sequence = ((uint64_t)1 << 40) - 1;
    for (int state = EDDY_POISON_LOST; state <= EDDY_POISON_TORN; state++) {
        eddy_poison poison = eddy_poison_make(sequence, (eddy_poison_state)state);
        cr_assert_eq(eddy_poison_sequence(poison), sequence);
        cr_assert_eq(eddy_poison_state_of(poison), (eddy_poison_state)state);
        cr_assert_neq(poison, 0);
    }
}
