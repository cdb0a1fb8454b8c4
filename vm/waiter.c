#include <vm/waiter.h>

#include <string.h>

eddy_waiter *eddy_waiter_acquire(eddy_waiter_pool *pool) {
    eddy_lock_acquire(&pool->lock);
    eddy_waiter *waiter = pool->free;
    if (waiter)
        pool->free = waiter->next_free;
    uint64_t number = ++pool->count;
    eddy_lock_release(&pool->lock);
    if (!waiter)
        waiter = eddy_memory_acquire(sizeof(*waiter), EDDY_MEMORY_RUNTIME);
    if (waiter)
        memset(waiter, 0, offsetof(eddy_waiter, value));
    if (waiter)
        waiter->number = number;
    return waiter;
}

void eddy_waiter_recycle(eddy_waiter_pool *pool, eddy_waiter *waiter) {
    eddy_lock_acquire(&pool->lock);
    waiter->next_free = pool->free;
    pool->free = waiter;
    eddy_lock_release(&pool->lock);
}

void eddy_waiter_pool_fini(eddy_waiter_pool *pool) {
    while (pool->free) {
        eddy_waiter *next = pool->free->next_free;
        eddy_memory_release(pool->free, sizeof(eddy_waiter), EDDY_MEMORY_RUNTIME);
        pool->free = next;
    }
}

bool eddy_waiter_finish(eddy_waiter_pool *pool, eddy_waiter *waiter) {
    /* The thread may leave as soon as it reads DONE, and recycle the waiter: the wake-up below then reaches memory that
     * the pool still owns, and wakes a thread that checks again. */
    uint32_t before = eddy_exchange_acq_rel(&waiter->state, EDDY_WAITER_DONE);
    if (before == EDDY_WAITER_ABANDONED) {
        eddy_waiter_recycle(pool, waiter);
        return false;
    }
    if (before == EDDY_WAITER_SLEEPING)
        eddy_sleep_wake_all(&waiter->state);
    return true;
}

void eddy_waiter_nudge(eddy_waiter *waiter) {
    uint32_t sleeping = EDDY_WAITER_SLEEPING;
    if (eddy_cas_acq_rel(&waiter->state, &sleeping, EDDY_WAITER_PENDING))
        eddy_sleep_wake_all(&waiter->state);
}
