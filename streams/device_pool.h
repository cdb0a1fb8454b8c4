/* The memory of a device, kept for reuse. All that is known of a block stands outside of it: the host cannot touch it.
 *
 * Blocks are split and coalesced within chunks that the backend gave; a request takes the smallest free block that fits and that its queue may use
 * (best fit; the lowest address among equals). Memory may be given back while launches that use it are under way: with their tickets. A launch in the same
 * queue may have it at once, one in another queue once they are complete. Any thread (lock: the pool's, never held while the backend is asked: its memory_acquire and
 * memory_release are called from several threads at once). */
#ifndef EDDY_STREAMS_DEVICE_POOL_H
#define EDDY_STREAMS_DEVICE_POOL_H

#include <base/assert.h>
#include <base/sleep.h>
#include <streams/backend.h>
#include <streams/memory_block.h>

/* In place of a queue: who takes writes itself, at once, and gets what all launches are done with. */
#define EDDY_POOL_HOST EDDY_BACKEND_QUEUES

typedef struct eddy_device_pool eddy_device_pool;

typedef struct eddy_device_pool_statistics {
    /* Taken and not given back, as they were asked for, rounded up to 512; whole blocks where no host memory was left to split them. */
    int64_t live_bytes;
    int64_t peak_bytes;   /* the most of these */
    int64_t cached_bytes; /* held and free */
    int64_t held_bytes;   /* of the backend's: the two together */
    int64_t limit_bytes;
    int64_t found_count; /* how often it held what was asked for */
} eddy_device_pool_statistics;

/* `limit_bytes`: the most that it holds of the backend's memory. `queues`: where to look for what is complete; entries may be added by the thread that
 * takes. NULL: no memory. */
EDDY_MUST_USE eddy_device_pool *eddy_device_pool_create(eddy_backend *backend,
                                                        eddy_backend_queue *const *queues,
                                                        int64_t limit_bytes);
/* The same of the host's memory that the backend pins. */
EDDY_MUST_USE eddy_device_pool *eddy_device_pool_create_pinned(eddy_backend *backend,
                                                               eddy_backend_queue *const *queues,
                                                               int64_t limit_bytes);
/* Gives everything to the backend, also what was not given back; no ticket is open, or the device is lost. NULL is allowed. */
void eddy_device_pool_destroy(eddy_device_pool *pool);

/* At least `bytes` (0 counts as 1), aligned to 512, for launches in queue number `queue`, or EDDY_POOL_HOST. Asks the backend for more where nothing fits; where that refuses, or at the
 * limit, gives back what is free and whole, of this pool and then of those of other runtimes, waits for what other threads are about to give back, and asks again. NULL: there is no memory, of the device or for a book; what was given with tickets may come to fit later. */
EDDY_MUST_USE void *eddy_device_pool_take(eddy_device_pool *pool, int64_t bytes, uint32_t queue);

/* Gives a block back (NULL is allowed). It is free for queue `queue` at once, and for others after its `ticket`; ticket 0: for all. A ticket that was open when the
 * block was taken counts as before. Needs no memory. */
void eddy_device_pool_give(eddy_device_pool *pool, void *data, uint32_t queue, uint64_t ticket);

/* Each launch with whose ticket something was given is over, or was never made. */
void eddy_device_pool_forget_tickets(eddy_device_pool *pool);
/* Until no other thread gives anything back to the backend. */
void eddy_device_pool_await_given(eddy_device_pool *pool);
/* Gives free chunks back to the backend, but for those with open tickets; returns bytes. */
int64_t eddy_device_pool_trim(eddy_device_pool *pool);
/* The same, also of the pools of other runtimes that take the same memory: somebody lacks it. */
int64_t eddy_device_pool_spare(eddy_device_pool *pool);
/* Where more is held, free chunks go back as by a trim; what is in use stays. */
void eddy_device_pool_set_limit(eddy_device_pool *pool, int64_t limit_bytes);
eddy_device_pool_statistics eddy_device_pool_statistics_read(eddy_device_pool *pool);
/* Writes the first `capacity` of its blocks; returns how many there are. */
int64_t eddy_device_pool_list(eddy_device_pool *pool, eddy_memory_block *blocks, int64_t capacity);

#endif
