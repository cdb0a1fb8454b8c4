/* A program, as devices know it whose rows of launches they keep (backend.h). They keep its owner, too, and learn by it that the program is over and its rows do not come again. */
#ifndef EDDY_STREAMS_ROW_OWNER_H
#define EDDY_STREAMS_ROW_OWNER_H

#include <base/atomic.h>
#include <base/memory.h>

typedef struct eddy_row_owner {
    _Atomic uint32_t references; /* atomic: release, acquire by the last */
    _Atomic bool is_over; /* atomic: relaxed, since rows that are kept a while longer do no harm */
} eddy_row_owner;

/* With one reference; NULL: no memory. */
static inline eddy_row_owner *eddy_row_owner_create(void) {
    eddy_row_owner *owner = eddy_memory_acquire_zeroed(sizeof(*owner), EDDY_MEMORY_PROGRAM);
    if (owner)
        eddy_store_relaxed(&owner->references, 1u);
    return owner;
}

static inline eddy_row_owner *eddy_row_owner_retain(eddy_row_owner *owner) {
    eddy_add_relaxed(&owner->references, 1u);
    return owner;
}

/* NULL is allowed. */
static inline void eddy_row_owner_release(eddy_row_owner *owner) {
    if (owner && eddy_sub_acq_rel(&owner->references, 1u) == 1)
        eddy_memory_release(owner, sizeof(*owner), EDDY_MEMORY_PROGRAM);
}

#endif
