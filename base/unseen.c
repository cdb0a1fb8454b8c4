#include <base/unseen.h>

#include <base/atomic.h>
#include <base/environment.h>
#include <base/sleep.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    _Atomic uint64_t count;   /* atomic: relaxed */
    _Atomic bool has_handler; /* atomic: the thread that sets it registers the handler */
    _Atomic bool
        is_left; /* atomic: relaxed; set before the process has other threads, or later without harm */
    eddy_lock lock;
    const void *slot; /* lock: lock; the slot of the record `first`; NULL: there is none */
    eddy_error first; /* lock: lock */
} unseen;

static void tell_alone(void) {
    eddy_error first;
    if (eddy_load_relaxed(&unseen.is_left))
        return;
    uint64_t count = eddy_unseen_count(&first);
    eddy_unseen_tell(count, first.status != EDDY_OK ? first.message : NULL);
}

void eddy_unseen_add(const void *slot, const eddy_error *error) {
    if (!eddy_load_relaxed(&unseen.has_handler) &&
        !eddy_exchange_acq_rel(&unseen.has_handler, true)) {
        int errno_before = errno;
        atexit(tell_alone);
        errno = errno_before;
    }
    eddy_add_relaxed(&unseen.count, (uint64_t)1);
    if (!error)
        return;
    eddy_lock_acquire(&unseen.lock);
    if (!unseen.slot) {
        unseen.slot = slot;
        unseen.first = *error;
    }
    eddy_lock_release(&unseen.lock);
}

void eddy_unseen_remove(const void *slot, uint64_t count) {
    eddy_sub_relaxed(&unseen.count, count);
    eddy_lock_acquire(&unseen.lock);
    if (unseen.slot == slot)
        unseen.slot = NULL;
    eddy_lock_release(&unseen.lock);
}

void eddy_unseen_keep(const void *slot) {
    eddy_lock_acquire(&unseen.lock);
    if (unseen.slot == slot)
        unseen.slot = &unseen; /* no thread's */
    eddy_lock_release(&unseen.lock);
}

uint64_t eddy_unseen_count(eddy_error *first) {
    eddy_lock_acquire(&unseen.lock);
    if (unseen.slot)
        *first = unseen.first;
    else
        *first = (eddy_error){.status = EDDY_OK};
    eddy_lock_release(&unseen.lock);
    return eddy_load_relaxed(&unseen.count);
}

void eddy_unseen_tell(uint64_t count, const char *first) {
    const char *silent = eddy_environment_string("EDDY_SILENT_EXIT");
    bool is_silent = false;
    if (count == 0 || (silent && eddy_environment_parse_bool(silent, &is_silent) && is_silent))
        return;
    fprintf(stderr, "eddy: %llu error%s that nobody looked at%s%s\n", (unsigned long long)count,
            count > 1 ? "s" : "", first ? ", the first: " : "", first ? first : "");
}

void eddy_unseen_leave(void) {
    eddy_store_relaxed(&unseen.is_left, true);
}

void eddy_unseen_fork_child(void) {
    unseen.lock = (eddy_lock){0};
    unseen.slot = NULL;
    eddy_store_relaxed(&unseen.count, (uint64_t)0);
}
