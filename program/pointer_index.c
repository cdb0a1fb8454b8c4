#include <program/pointer_index.h>

#include <base/memory.h>
#include <program/code.h>

typedef struct eddy_pointer_entry {
    const void *pointer; /* NULL: free */
    uint32_t number, value;
} eddy_pointer_entry;

/* The pointer's entry, or the free one that would be its. */
static eddy_pointer_entry *entry_of(const eddy_pointer_index *index, const void *pointer,
                                    uint32_t number) {
    uint64_t hash = ((uintptr_t)pointer / 8 + number) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = index->capacity - 1, at = (uint32_t)(hash >> 32) & mask;
    while (index->entries[at].pointer &&
           (index->entries[at].pointer != pointer || index->entries[at].number != number))
        at = (at + 1) & mask;
    return &index->entries[at];
}

static bool grow(eddy_pointer_index *index) {
    eddy_pointer_index larger = {.count = index->count,
                                 .capacity = index->capacity ? 2 * index->capacity : 16};
    if (2 * (index->count + 1) <= index->capacity)
        return true;
    larger.entries =
        eddy_memory_acquire_zeroed(larger.capacity * sizeof(*larger.entries), EDDY_MEMORY_PROGRAM);
    if (!larger.entries)
        return false;
    for (uint32_t i = 0; i < index->capacity; i++) {
        const eddy_pointer_entry *entry = &index->entries[i];
        if (entry->pointer)
            *entry_of(&larger, entry->pointer, entry->number) = *entry;
    }
    eddy_pointer_index_fini(index);
    *index = larger;
    return true;
}

uint32_t eddy_pointer_index_find(const eddy_pointer_index *index, const void *pointer,
                                 uint32_t number) {
    const eddy_pointer_entry *entry = index->count > 0 ? entry_of(index, pointer, number) : NULL;
    return entry && entry->pointer ? entry->value : EDDY_CODE_NONE;
}

bool eddy_pointer_index_set(eddy_pointer_index *index, const void *pointer, uint32_t number,
                            uint32_t value) {
    if (!grow(index))
        return false;
    eddy_pointer_entry *entry = entry_of(index, pointer, number);
    index->count += entry->pointer == NULL;
    *entry = (eddy_pointer_entry){pointer, number, value};
    return true;
}

void eddy_pointer_index_fini(eddy_pointer_index *index) {
    eddy_memory_release(index->entries, index->capacity * sizeof(*index->entries),
                        EDDY_MEMORY_PROGRAM);
    *index = (eddy_pointer_index){0};
}
