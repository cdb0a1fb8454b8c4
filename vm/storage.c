#include <vm/storage.h>

#define CHUNK_BYTES (EDDY_STORAGE_CHUNK * sizeof(eddy_storage))

bool eddy_storage_table_grow(eddy_storage_table *table) {
    if (table->chunk_count == EDDY_STORAGE_CHUNK_MAX)
        return false;
    eddy_storage *chunk = eddy_memory_acquire_zeroed(CHUNK_BYTES, EDDY_MEMORY_TABLE);
    if (!chunk)
        return false;
    eddy_storage_number first = table->chunk_count * EDDY_STORAGE_CHUNK;
    table->chunks[table->chunk_count++] = chunk;
    /* Number 0 names no storage. Pushed from the top, so that low numbers come out first. */
    for (uint32_t i = EDDY_STORAGE_CHUNK; i-- > (first == 0 ? 1u : 0u);) {
        chunk[i].issuer.next_free = table->free_head;
        table->free_head = first + i;
        table->free_count++;
    }
    return true;
}

void eddy_storage_table_fini(eddy_storage_table *table) {
    for (uint32_t i = 0; i < table->chunk_count; i++)
        eddy_memory_release(table->chunks[i], CHUNK_BYTES, EDDY_MEMORY_TABLE);
    table->chunk_count = 0;
}
