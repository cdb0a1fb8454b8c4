/* The object that a blocked thread waits on: a pooled block with a word.
 *
 *   PENDING --(engine, or the launcher of a SHARE: effects written, exchange acq_rel)--> DONE
 *   PENDING --(waiter: timeout, exchange acq_rel)----------> ABANDONED
 *   SLEEPING --(engine: there is work to help with, cas acq_rel)----> PENDING
 *
 * The second of the two recycles it. */
#ifndef EDDY_VM_WAITER_H
#define EDDY_VM_WAITER_H

#include <base/sleep.h>
#include <eddy/shape.h>
#include <eddy/status.h>
#include <vm/storage.h>

#define EDDY_WAITER_PENDING 0u
#define EDDY_WAITER_SLEEPING 1u /* PENDING, and the thread sleeps on the word */
#define EDDY_WAITER_DONE 2u
#define EDDY_WAITER_ABANDONED 3u

typedef struct eddy_waiter {
    eddy_sleep_word state;
    struct eddy_waiter *next_free; /* lock: the pool's */
    uint64_t thread;               /* const while PENDING: number of the waiting thread */
    uint64_t number;               /* const while PENDING: of this wait, never used again */
    /* Written by the engine before DONE. */
    eddy_status status; /* EDDY_OK, or the reason why the wait itself failed */
    const char *device; /* its name, for the words of DEVICE_LOST; NULL where the status says all */
    eddy_poison poison;
    eddy_shape shape;
    void *data;
    int64_t bytes;
    struct eddy_node *lend;
    struct eddy_backend_fence *fence; /* of a SHARE; the waiting thread's then */
    unsigned char value[EDDY_READ_SMALL_BYTES];
} eddy_waiter;

typedef struct eddy_waiter_pool {
    eddy_lock lock;
    eddy_waiter *free;
    uint64_t count; /* lock: lock; waits so far */
} eddy_waiter_pool;

/* NULL when there is no memory. */
EDDY_MUST_USE eddy_waiter *eddy_waiter_acquire(eddy_waiter_pool *pool);
void eddy_waiter_recycle(eddy_waiter_pool *pool, eddy_waiter *waiter);
void eddy_waiter_pool_fini(eddy_waiter_pool *pool);

/* The side of who finishes it, once: wakes the thread, or recycles an abandoned waiter (false then). */
bool eddy_waiter_finish(eddy_waiter_pool *pool, eddy_waiter *waiter);

/* The engine's side: sends a sleeping thread back to helping. The waiter may belong to another wait by now, whose thread then finds
 * nothing to do. */
void eddy_waiter_nudge(eddy_waiter *waiter);

static inline bool eddy_waiter_is_done(const eddy_waiter *waiter) {
    return eddy_load_acquire(&waiter->state) == EDDY_WAITER_DONE;
}

#endif
