/* A device as its driver offers it: queues that run what is launched later and in order, memory that the host cannot touch,
 * and words in which kernels say what went wrong. vm/DEVICES.md says how the VM uses it.
 *
 * A ticket is a number that grows on each queue. `mark` puts it behind everything launched on the queue before; when that is done, the
 * device stores it to `completed`. One thread at a time launches on a device (wait, copy, look, skip, mark, and the launch functions of each
 * backend); none of these waits for the device. */
#ifndef EDDY_STREAMS_BACKEND_H
#define EDDY_STREAMS_BACKEND_H

#include <eddy/status.h>
#include <kernels/kernel.h>
#include <stdint.h>
#include <streams/doorbell.h>

#define EDDY_BACKEND_QUEUES 16
/* Words that one launch looks at. */
#define EDDY_BACKEND_SOURCES 8
/* Rows of the table of errors. */
#define EDDY_BACKEND_WORDS 4096

typedef struct eddy_backend eddy_backend;
/* What a stream of the driver's has reached, for another to wait for. */
typedef struct eddy_backend_fence eddy_backend_fence;
struct eddy_device_pool;

typedef struct eddy_backend_queue {
    eddy_backend *backend; /* const */
    uint32_t number;       /* const; below EDDY_BACKEND_QUEUES */
    /* atomic: the device stores (release), in order; everything up to this ticket is done. On a line of its own: the rest is read for each launch. */
    _Atomic uint64_t completed __attribute__((aligned(EDDY_CACHE_LINE)));
} eddy_backend_queue;

/* Which side of a copy is the host's. */
typedef enum eddy_copy_direction {
    EDDY_COPY_TO_DEVICE,
    EDDY_COPY_TO_HOST,
    EDDY_COPY_ON_DEVICE,
    EDDY_COPY_ACROSS, /* from another device: copy_across */
} eddy_copy_direction;

/* What is launched, besides its operands. */
typedef struct eddy_backend_launch {
    eddy_backend_queue *queue;
    uint64_t ticket;
    /* Tickets of launches that it comes after, less than half the words behind: if one of their words says that its launch has failed or done nothing, this one
     * does nothing, and its own word says SKIPPED. */
    uint64_t sources[EDDY_BACKEND_SOURCES];
    uint32_t source_count;
    bool has_looked; /* launching thread: something that looks at the words was launched */
    /* Const: a part of something is written, and the rest stays. If this launch is to do nothing it stays as it was, so that what writes it has to look itself. */
    bool writes_in_place;
    /* Launching thread: there was no memory for a part of it. Nothing more is launched, which would use what that part has not written. */
    bool has_failed;
} eddy_backend_launch;

/* Launches in a queue with nothing else among them, which may come again: with the same parameters, but that the tickets, which lie in a row, are others. */
typedef struct eddy_backend_row {
    struct eddy_row_owner *owner; /* whose they are (row_owner.h) */
    uint32_t place[4];            /* where in it, and how it was come to */
    /* What they are made of, and of nothing else that may be another one next time: addresses, each with the bytes of the storage there, and which calls of theirs and ahead of
     * them are one. */
    const uint64_t *key;
    uint32_t key_count;
    uint32_t count; /* of tickets */
    uint64_t first; /* ticket */
} eddy_backend_row;

typedef enum eddy_row_way {
    EDDY_ROW_LAUNCHES, /* they are to be launched, as ever */
    EDDY_ROW_CAPTURES, /* what is launched until row_end is noted alone, and nothing else is launched on the device */
    EDDY_ROW_IS_LAUNCHED, /* as one */
} eddy_row_way;

/* The entries that every backend provides. A status is EDDY_OK or EDDY_DEVICE_LOST, which stays; what has nothing to launch (a wait for what is over, a copy of nothing) may say OK all the same. */
typedef struct eddy_backend_class {
    const char *name;
    /* NULL: no memory, or EDDY_BACKEND_QUEUES of them are there. */
    eddy_backend_queue *(*queue_create)(eddy_backend *backend, int32_t priority);
    /* What is launched on `queue` from now on begins after `ticket` of `other`, which is marked already, at once or later. */
    eddy_status (*wait)(eddy_backend_queue *queue, eddy_backend_queue *other, uint64_t ticket);
    eddy_status (*copy)(eddy_backend_queue *queue, void *to, const void *from, int64_t bytes,
                        eddy_copy_direction direction);
    /* Runs a function of the host with a copy of the `bytes` at `context` (aligned to 16), and where it finds what is at an address of the device (within or
     * at the end of a block; NULL stays NULL, others stay as they are). NULL: the device runs no code of the host, and kernels are its own. */
    eddy_status (*run)(eddy_backend_queue *queue, void (*function)(void *context),
                       const void *context, size_t bytes);
    void *(*translate)(const eddy_backend *backend, const void *address);
    /* Looks at the words of the launch's sources for what is launched next and does not look itself: it runs all the same. */
    eddy_status (*look)(const eddy_backend_launch *launch);
    /* Nothing is launched with the ticket: its word says SKIPPED to what is launched later. */
    eddy_status (*skip)(eddy_backend_queue *queue, uint64_t ticket);
    /* Where everything is over when it returns, progress need not ring: the launching thread looks when it has launched all there is. */
    eddy_status (*mark)(eddy_backend_queue *queue, uint64_t ticket);
    /* The same where more is launched at once: the mark may wait for one of the next marks, of any queue, or for mark_waiting, since each is a call of the driver, as a launch is. Another queue
     * waits for what was launched all the same. None waits behind a wait, or what may take long. NULL, like mark_waiting: no mark waits. */
    eddy_status (*mark_later)(eddy_backend_queue *queue, uint64_t ticket);
    eddy_status (*mark_waiting)(eddy_backend *backend);
    /* The driver's own stream under the queue, on which code that is none of Eddy's may launch: also while others launch. NULL, like `foreign`: the device runs no such
     * code. Any thread. */
    void *(*native)(const eddy_backend_queue *queue);
    /* Launching thread: calls `function`, which launches on that stream; the thread's calls of the driver are for the device then. DEVICE_LOST: it is not called. UNSUPPORTED: it
     * has left the stream capturing, and what it has captured is dropped. */
    eddy_status (*foreign)(eddy_backend_queue *queue, void (*function)(void *context),
                           void *context);
    /* The same stream, lent to such code on any thread until the end. A stream that captures then, or while something is marked on it, costs the device: what went there never runs, the
     * launching thread's launches neither. */
    void *(*lend_begin)(eddy_backend_queue *queue);
    eddy_status (*lend_end)(eddy_backend_queue *queue);
    /* Waits until a ticket completes, or backend->progress rings beyond `seen`: spins for a while, then sleeps. Any thread, one at a time. */
    void (*await)(eddy_backend *backend, uint32_t seen);
    /* What is launched on the queue from now on begins once *word, in pinned memory, is `value` or more: the host stores (release) growing values, and waits for nothing
     * that is launched later. */
    eddy_status (*await_word)(eddy_backend_queue *queue, const _Atomic uint64_t *word,
                              uint64_t value);
    /* Stores the value behind everything launched on the queue before, which the host then sees (acquire). */
    eddy_status (*store_word)(eddy_backend_queue *queue, _Atomic uint64_t *word, uint64_t value);
    /* Copies from the memory of another device of the same class, which has to be there still. SKIPPED: that one is lost, and nothing is launched. NULL: such copies go through the
     * host. */
    eddy_status (*copy_across)(eddy_backend_queue *queue, void *to, eddy_backend *other,
                               const void *from, int64_t bytes);

    /* ---- rows of launches that are one; NULL: there are none ---- */
    eddy_row_way (*row_begin)(eddy_backend_queue *queue, const eddy_backend_row *row);
    /* After CAPTURES: launches what was noted, if that is all of the row (`is_whole`) and can be. False: nothing of the row is launched. */
    bool (*row_end)(eddy_backend_queue *queue, const eddy_backend_row *row, bool is_whole);
    /* Forgets the rows it knows, and gives their memory to the pool: there is none left for a launch. Between rows. */
    void (*rows_forget)(eddy_backend *backend);

    /* ---- fences; NULL: the device has none, and shares no memory ---- */
    /* A fence behind everything that is launched on the queue so far. OUT_OF_MEMORY: there is none to be had. */
    eddy_status (*fence_record)(eddy_backend_queue *queue, eddy_backend_fence **fence);
    /* What is launched on the queue from now on begins after the fence, which may be another device's. */
    eddy_status (*fence_wait)(eddy_backend_queue *queue, const eddy_backend_fence *fence);
    /* The same for a stream of others on the device, by the driver's handle: INVALID_ARGUMENT where the driver refuses that. Nothing of this loses the device. Any
     * thread, whose current context stays. */
    eddy_status (*foreign_record)(eddy_backend *backend, uintptr_t stream,
                                  eddy_backend_fence **fence);
    eddy_status (*foreign_wait)(eddy_backend *backend, uintptr_t stream,
                                const eddy_backend_fence *fence);
    /* For the next fence; what waits for it goes on. Any thread. */
    void (*fence_recycle)(eddy_backend *backend, eddy_backend_fence *fence);
    /* Whether the bytes are memory of the device, as far as the driver knows. Any thread, whose current context stays. */
    bool (*has_memory)(eddy_backend *backend, const void *data, int64_t bytes);

    /* ---- memory ---- */
    /* Memory of the host that the device copies from and to without the help of the launching thread, aligned to 512; NULL: there is none left. The entry is NULL where all
     * memory of the host will do. Any thread. */
    void *(*pinned_acquire)(eddy_backend *backend, int64_t bytes);
    void (*pinned_release)(eddy_backend *backend, void *data, int64_t bytes);
    /* Addresses of the device, aligned to 512; NULL: there are none left. Any thread. */
    void *(*memory_acquire)(eddy_backend *backend, int64_t bytes);
    void (*memory_release)(eddy_backend *backend, void *data, int64_t bytes);
    /* At exit, for good: no function of the host and no call of the device's driver begins any more; false if one still runs at the deadline, but for a question to a library, which may take longer. NULL: there are none. */
    bool (*halt)(eddy_backend *backend, int64_t deadline_ns);
    /* Every ticket has completed, or the device is lost. */
    void (*destroy)(eddy_backend *backend);
} eddy_backend_class;

/* What is multiplied by libraries of the device's maker, where a runtime allows it. */
typedef struct eddy_backend_options {
    bool allows_tf32;            /* of f32: rounded to TF32 */
    bool allows_rounded_weights; /* of attention: weights rounded to the dtype of what they weigh */
} eddy_backend_options;

struct eddy_backend {
    const eddy_backend_class *class; /* const after init */
    /* atomic: set once (release), with the first DEVICE_LOST; nothing that was launched runs then */
    _Atomic bool is_lost;
    /* const after init: which memory it takes; backends of several runtimes that take the same have the same. NULL: its own */
    const void *memory;
    /* const after init: where launches take memory that is theirs alone, on the launching thread; NULL: nowhere */
    struct eddy_device_pool *pool;
    eddy_backend_options options; /* const after init */
    /* const after init: launches are, and leave the driver's state of that thread as it is */
    bool is_on_callers_thread;
    /* The word of ticket t is number t % EDDY_BACKEND_WORDS: the launching thread's before the launch, then the device's, until the ticket is
     * complete. */
    eddy_kernel_error
        *errors; /* const after init; EDDY_BACKEND_WORDS of them, which the device may write */
    /* Rung after tickets were completed, or to end a sleep. On a line of its own: the rest is read for each launch. */
    eddy_doorbell progress __attribute__((aligned(EDDY_CACHE_LINE)));
};

static inline eddy_kernel_error *eddy_backend_error(eddy_backend *backend, uint64_t ticket) {
    return &backend->errors[ticket % EDDY_BACKEND_WORDS];
}

/* Of what cannot be launched, or not all of it: its word says the status, and SKIPPED is what later launches learn. Launching thread. */
static inline void eddy_backend_fail(const eddy_backend_launch *launch, eddy_status status) {
    eddy_backend *backend = launch->queue->backend;
    eddy_kernel_error *error = eddy_backend_error(backend, launch->ticket);
    (void)backend->class->skip(launch->queue, launch->ticket);
    eddy_store_relaxed(&error->position, 0);
    eddy_store_relaxed(&error->status, (int32_t)status);
}

/* What a launch does before anything else on a device that runs code of the host: false, and its word says SKIPPED, if one of its sources has failed or done nothing. */
static inline bool eddy_backend_may_run(const eddy_backend_launch *launch) {
    eddy_backend *backend = launch->queue->backend;
    for (uint32_t i = 0; i < launch->source_count; i++)
        if (eddy_load_acquire(&eddy_backend_error(backend, launch->sources[i])->status) !=
            EDDY_OK) {
            eddy_store_release(&eddy_backend_error(backend, launch->ticket)->status,
                               (int32_t)EDDY_SKIPPED);
            return false;
        }
    return true;
}

#endif
