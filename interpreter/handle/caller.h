/* The interpreter's state of a calling thread: its runtime, scopes, cached handles, generators.
 *
 * Made on a thread's first call, found through one thread-local pointer, and released by a destructor when the thread
 * ends. A caller outlives its thread: the next new thread adopts it with its handles and arrays, so that
 * short-lived threads cost nothing.
 *
 *   new --> IN USE (a thread) --thread ends--> IDLE --first call of a new thread--> IN USE
 *
 * Threads: all fields belong to the thread that uses the caller, except tagged ones. */
#ifndef EDDY_INTERPRETER_HANDLE_CALLER_H
#define EDDY_INTERPRETER_HANDLE_CALLER_H

#include <base/assert.h>
#include <base/atomic.h>
#include <base/call_site.h>
#include <base/lifo.h>
#include <base/range.h>
#include <eddy/device.h>
#include <eddy/status.h>
#include <eddy/stream.h>
#include <eddy/tensor.h>
#include <interpreter/handle/pending_release.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of user code that the thread runs, which decides the calls that are refused. */
typedef enum eddy_callback_kind {
    EDDY_CALLBACK_NONE,
    EDDY_CALLBACK_ACCESS,  /* may issue; waits are refused by the VM */
    EDDY_CALLBACK_DELETER, /* may retain and release only */
} eddy_callback_kind;

typedef struct eddy_caller_generator {
    uint64_t runtime_id; /* 0: free */
    uint64_t epoch;      /* of the runtime's seed; a newer epoch there restarts the generator */
    uint64_t seed;
    uint64_t counter;
    /* A reference, once it was held for another thread: seed and counter are there. NULL: here. */
    struct eddy_generator *held;
} eddy_caller_generator;

typedef struct eddy_caller {
    struct eddy_tensor *free_handles; /* last in, first out */
    eddy_scope *scope;                /* innermost open one */
    eddy_runtime *runtime;            /* current, a reference; NULL: the default one */
    struct eddy_stream
        *stream; /* of the innermost stream scope, NULL: the default one; the scope holds it */
    struct eddy_recorder *recorder; /* of the recording that the thread has begun; NULL: none */
    uint64_t thread;                /* the thread's number in the process, never reused */
    eddy_callback_kind callback;
    int32_t no_grad; /* nesting depth of eddy_no_grad_begin */
    eddy_pending_release pending;

    /* atomic: the thread stores (relaxed), eddy_live_count reads: handles made less handles ended by this caller. */
    _Atomic int64_t live;

    eddy_lifo returned; /* any thread pushes: handles of this caller that ended elsewhere */

    struct eddy_handle_slab *slabs;
    eddy_scope *idle_scopes;
    eddy_device *devices; /* open device scopes, outermost first */
    int32_t device_count, device_capacity;
    struct eddy_stream **streams; /* open stream scopes, a reference each */
    int32_t stream_count, stream_capacity;
    eddy_caller_generator *generators;
    int32_t generator_count;
    void *scratch; /* arrays of calls with many operands */
    size_t scratch_bytes;
    bool is_scratch_taken;
    eddy_ranges ranges; /* of the user's, that are open */

    struct eddy_caller *next;      /* const after init: all callers of the process */
    struct eddy_caller *next_idle; /* lock: callers */
} eddy_caller;

/* NULL until the thread's first call, and again once the thread ends. */
extern _Thread_local eddy_caller *eddy_caller_self __attribute__((tls_model("initial-exec")));

/* Makes or adopts one for the calling thread; NULL (nothing recorded) if there is no memory. */
eddy_caller *eddy_caller_begin(void);

static inline eddy_caller *eddy_caller_get(void) {
    eddy_caller *caller = eddy_caller_self;
    return EDDY_LIKELY(caller != NULL) ? caller : eddy_caller_begin();
}

/* The newest caller of the process; follow `next`. Callers are never freed. */
eddy_caller *eddy_caller_first(void);

/* Takes what a thread that has ended has released of the runtime's storages and could not pass on, EDDY_PENDING_RELEASE_MAX at most; how many. Any thread. */
uint32_t eddy_caller_left_take(const struct eddy_runtime *runtime, eddy_storage_number *numbers);

/* Handles with references, made less ended, of all callers and of threads without one. */
int64_t eddy_caller_live_count(void);
/* Counts for a thread that has no caller. Any thread. */
void eddy_caller_live_add(int64_t count);

static inline void eddy_caller_count(eddy_caller *caller, int64_t count) {
    eddy_store_relaxed(&caller->live, eddy_load_relaxed(&caller->live) + count);
}

/* Whether the thread may call more than retain and release now: OUT_OF_MEMORY (caller is NULL) and WRONG_THREAD
 * (inside a deleter) are recorded under `op`. */
EDDY_MUST_USE eddy_status eddy_caller_refuse(const eddy_caller *caller, eddy_origin origin);

static inline bool eddy_caller_may_call(const eddy_caller *caller) {
    return EDDY_LIKELY(caller != NULL && caller->callback != EDDY_CALLBACK_DELETER);
}

/* ---- scratch ---- */

/* At least `bytes` of memory for one array, kept for the next call; NULL where there is none, or where it is taken
 * (then take memory). Given back with eddy_caller_scratch_end. */
void *eddy_caller_scratch_begin(eddy_caller *caller, size_t bytes);
void eddy_caller_scratch_end(eddy_caller *caller, void *memory, size_t bytes);
/* Frees what is kept, if it is not taken; returns its bytes. */
int64_t eddy_caller_scratch_trim(eddy_caller *caller);

/* In a forked child: the other threads are gone, in the middle of whatever they did. */
void eddy_caller_fork_child(void);

/* Bytes given back by freeing handles and arrays that the calling thread has cached. */
int64_t eddy_caller_trim(eddy_caller *caller);

#endif
