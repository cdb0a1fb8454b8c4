/* Storages released on a thread that issues: they travel with its next call, so that a release takes no lock of its own.
 *
 * Only a few small storages of known size wait here; all others go to the VM at once. So a thread that stops issuing
 * holds back a few KB at most, until its next call, the next release that finds no room, or its end; and where the VM's lock is busy at its end, until another thread takes its
 * place, or waits for everything. */
#ifndef EDDY_INTERPRETER_HANDLE_PENDING_RELEASE_H
#define EDDY_INTERPRETER_HANDLE_PENDING_RELEASE_H

#include <base/assert.h>
#include <stdbool.h>
#include <vm/vm.h>

#define EDDY_PENDING_RELEASE_MAX 8
#define EDDY_PENDING_RELEASE_BYTES 4096

struct eddy_caller;
struct eddy_runtime;
struct eddy_tensor;

/* Of one thread. */
typedef struct eddy_pending_release {
    struct eddy_runtime *runtime; /* bound; NULL before the first */
    uint32_t count;
    eddy_storage_number numbers[EDDY_PENDING_RELEASE_MAX];
} eddy_pending_release;

/* Makes room for one storage of `runtime`: passes the pending ones to the VM; false if its lock is busy. */
bool eddy_pending_release_make_room(struct eddy_caller *caller, struct eddy_runtime *runtime);

/* Keeps a storage for the next call; false if it has to go to the VM now. */
static inline bool eddy_pending_release_add(struct eddy_caller *caller,
                                            eddy_pending_release *pending,
                                            struct eddy_runtime *runtime,
                                            eddy_storage_number storage) {
    if (EDDY_UNLIKELY(pending->runtime != runtime || pending->count == EDDY_PENDING_RELEASE_MAX) &&
        !eddy_pending_release_make_room(caller, runtime))
        return false;
    EDDY_ASSERT(pending->runtime == runtime && pending->count < EDDY_PENDING_RELEASE_MAX);
    pending->numbers[pending->count++] = storage;
    return true;
}

/* Passes everything to the VM; false if its lock is busy. Never blocks. */
bool eddy_pending_release_flush(struct eddy_caller *caller);
/* Passes everything to the VM, of this thread, and what ended threads have left of `runtime`: for who waits for all that was issued. Waits for the VM's lock. */
void eddy_pending_release_flush_all(struct eddy_caller *caller, struct eddy_runtime *runtime);

/* The number that travels with a call to `runtime`; NULL if they belong to another runtime. The call sets it to 0 itself: a
 * callback that runs inside the call, as in one-thread mode, may add pending storages and issue calls of its own. */
static inline uint32_t *eddy_pending_release_count(eddy_pending_release *pending,
                                                   const struct eddy_runtime *runtime) {
    return EDDY_LIKELY(pending->runtime == runtime) ? &pending->count : NULL;
}

#endif
