/* Finds a number by a pointer and another number: of things that are met many times, and whose list would be gone through each time.
 *
 * Thread: the owner's. */
#ifndef EDDY_PROGRAM_POINTER_INDEX_H
#define EDDY_PROGRAM_POINTER_INDEX_H

#include <base/assert.h>
#include <stdbool.h>
#include <stdint.h>

struct eddy_pointer_entry;

/* Zeroed: empty. */
typedef struct eddy_pointer_index {
    struct eddy_pointer_entry *entries; /* owned: open addressing, at most half full */
    uint32_t count, capacity;           /* a power of two */
} eddy_pointer_index;

/* EDDY_CODE_NONE where there is none. */
uint32_t eddy_pointer_index_find(const eddy_pointer_index *index, const void *pointer,
                                 uint32_t number);
/* In place of the one that was there; false without memory. value: not EDDY_CODE_NONE. */
EDDY_MUST_USE bool eddy_pointer_index_set(eddy_pointer_index *index, const void *pointer,
                                          uint32_t number, uint32_t value);
void eddy_pointer_index_fini(eddy_pointer_index *index);

#endif
