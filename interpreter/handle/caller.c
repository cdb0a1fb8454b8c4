#include <interpreter/handle/caller.h>

#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/generator.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>
#include <pthread.h>
#include <string.h>

_Thread_local eddy_caller *eddy_caller_self;

static struct {
    eddy_lock lock;
    _Atomic(eddy_caller *) first; /* atomic: stored under the lock (release); read acquire */
    eddy_caller *idle;            /* lock: lock */
    bool has_key;                 /* lock: lock */
    uint64_t last_thread;         /* lock: lock */
    pthread_key_t key;            /* const once has_key */
    _Atomic int64_t live;         /* atomic: relaxed counts of threads without a caller */
} callers;

/* ---- life ---- */

static void end_caller(void *context) {
    eddy_caller *caller = context;
    /* Another destructor may have made a call already, and so a new state of the thread. */
    eddy_caller_self = caller;
    caller->callback = EDDY_CALLBACK_NONE;
    if (caller->recorder)
        caller->recorder->abandon(caller->recorder);
    caller->recorder = NULL;
    eddy_scope_end_all(caller);
    eddy_stream_scope_end_all(caller);
    caller->device_count = 0;
    caller->ranges.depth = 0;
    eddy_ranges_own = NULL;
    /* If the lock is busy they wait for the next thread that adopts the caller, or that waits for everything. */
    (void)eddy_pending_release_flush(caller);
    eddy_runtime *runtime = caller->runtime;
    caller->runtime = NULL;
    eddy_runtime_release(&runtime);
    eddy_generator_forget_all(caller);
    eddy_caller_self = NULL;
    eddy_lock_acquire(&callers.lock);
    caller->next_idle = callers.idle;
    callers.idle = caller;
    eddy_lock_release(&callers.lock);
}

/* Adopts an idle caller; NULL if there is none. */
static eddy_caller *adopt_locked(void) {
    eddy_caller *caller = callers.idle;
    if (caller)
        callers.idle = caller->next_idle;
    return caller;
}

eddy_caller *eddy_caller_begin(void) {
    eddy_lock_acquire(&callers.lock);
    if (!callers.has_key)
        callers.has_key = pthread_key_create(&callers.key, end_caller) == 0;
    bool has_key = callers.has_key;
    eddy_caller *caller = has_key ? adopt_locked() : NULL;
    uint64_t thread = ++callers.last_thread;
    eddy_lock_release(&callers.lock);
    if (!has_key)
        return NULL;
    if (!caller) {
        caller = eddy_memory_acquire_zeroed(sizeof(*caller), EDDY_MEMORY_RUNTIME);
        if (!caller)
            return NULL;
        eddy_lock_acquire(&callers.lock);
        caller->next = eddy_load_relaxed(&callers.first);
        eddy_store_release(&callers.first, caller);
        eddy_lock_release(&callers.lock);
    }
    if (pthread_setspecific(callers.key, caller) != 0) {
        eddy_lock_acquire(&callers.lock);
        caller->next_idle = callers.idle;
        callers.idle = caller;
        eddy_lock_release(&callers.lock);
        return NULL;
    }
    caller->thread = thread;
    eddy_caller_self = caller;
    return caller;
}

uint32_t eddy_caller_left_take(const eddy_runtime *runtime, eddy_storage_number *numbers) {
    uint32_t count = 0;
    eddy_lock_acquire(&callers.lock);
    for (eddy_caller *caller = callers.idle; caller && count == 0; caller = caller->next_idle) {
        eddy_pending_release *pending = &caller->pending;
        if (pending->runtime != runtime)
            continue;
        count = pending->count;
        memcpy(numbers, pending->numbers, count * sizeof(*numbers));
        pending->count = 0;
    }
    eddy_lock_release(&callers.lock);
    return count;
}

eddy_caller *eddy_caller_first(void) {
    return eddy_load_acquire(&callers.first);
}

int64_t eddy_caller_live_count(void) {
    int64_t count = eddy_load_relaxed(&callers.live);
    for (const eddy_caller *caller = eddy_caller_first(); caller; caller = caller->next)
        count += eddy_load_relaxed(&caller->live);
    return count;
}

void eddy_caller_live_add(int64_t count) {
    eddy_add_relaxed(&callers.live, count);
}

eddy_status eddy_caller_refuse(const eddy_caller *caller, eddy_origin origin) {
    if (!caller)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the thread's state");
    return eddy_fail(EDDY_WRONG_THREAD, origin, "a deleter may only retain and release");
}

/* ---- scratch ---- */

void *eddy_caller_scratch_begin(eddy_caller *caller, size_t bytes) {
    if (caller->is_scratch_taken)
        return eddy_memory_acquire(bytes, EDDY_MEMORY_ARGUMENT);
    if (caller->scratch_bytes < bytes) {
        size_t rounded = (bytes | 4095) + 1;
        void *memory = eddy_memory_acquire(rounded, EDDY_MEMORY_ARGUMENT);
        if (!memory)
            return NULL;
        eddy_memory_release(caller->scratch, caller->scratch_bytes, EDDY_MEMORY_ARGUMENT);
        caller->scratch = memory;
        caller->scratch_bytes = rounded;
    }
    caller->is_scratch_taken = true;
    return caller->scratch;
}

void eddy_caller_scratch_end(eddy_caller *caller, void *memory, size_t bytes) {
    if (memory && memory == caller->scratch)
        caller->is_scratch_taken = false;
    else
        eddy_memory_release(memory, bytes, EDDY_MEMORY_ARGUMENT);
}

int64_t eddy_caller_scratch_trim(eddy_caller *caller) {
    if (caller->is_scratch_taken)
        return 0;
    int64_t bytes = (int64_t)caller->scratch_bytes;
    eddy_memory_release(caller->scratch, caller->scratch_bytes, EDDY_MEMORY_ARGUMENT);
    caller->scratch = NULL;
    caller->scratch_bytes = 0;
    return bytes;
}

/* ---- fork ---- */

void eddy_caller_fork_child(void) {
    callers.lock = (eddy_lock){0};
}
