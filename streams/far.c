#include <base/memory.h>
#include <base/thread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/far.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 512
#define DEFAULT_BYTES ((int64_t)256 << 20)
/* Of 16 choices so many let everything lie for a moment. */
#define PAUSES 3
#define RELEASED 0xDB
#define BEYOND 0xEF

typedef enum piece_kind { PIECE_RUN, PIECE_WAIT, PIECE_COPY, PIECE_MARK } piece_kind;

/* Something launched; what `run` gets follows it. */
typedef struct piece {
    struct piece *next;
    piece_kind kind;
    void (*run)(void *context);
    eddy_backend_queue *other; /* to wait for */
    uint64_t ticket;
    void *to;
    const void *from;
    int64_t copied_bytes;
    _Alignas(16) char context[];
} piece;

typedef struct far_queue {
    eddy_backend_queue base;
    int32_t priority;    /* const; 0 where the device obeys none */
    piece *head, **tail; /* lock: the device's */
} far_queue;

/* A block of the device's memory, or a gap; the whole memory in the order of addresses. */
typedef struct far_block {
    struct far_block *next;
    int64_t offset, bytes; /* of which the last ALIGNMENT are beyond what was asked for */
    bool is_used;
} far_block;

typedef struct far_device {
    eddy_backend base;
    eddy_far_options options;  /* const */
    char *addresses, *mapping; /* const: without access, and where kernels see the same */
    eddy_lock lock;
    far_queue *queues[EDDY_BACKEND_QUEUES]; /* lock: lock */
    uint32_t queue_count;                   /* lock: lock */
    far_block *blocks;                      /* lock: lock */
    int64_t acquired_bytes;                 /* lock: lock */
    bool is_running;                        /* lock: lock; a piece runs */
    bool is_to_lose;                        /* lock: lock */
    bool is_halted;                         /* lock: lock */
    eddy_doorbell launched;                 /* rung after each launch */
    _Atomic bool is_ending;                 /* atomic: release; seen after a ring of `launched` */
    uint64_t random;                        /* the device's thread only */
    eddy_thread thread;
} far_device;

static far_device *device_of(const eddy_backend *backend) {
    return (far_device *)(uintptr_t)backend;
}

static uint64_t draw(far_device *device) {
    uint64_t x = device->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- launching ---- */

static piece *piece_create(piece_kind kind, size_t context_bytes) {
    size_t bytes = sizeof(piece) + context_bytes;
    /* As a driver does, without asking the library: no limit and no injected failure is meant for it. */
    piece *made = aligned_alloc(16, (bytes + 15) & ~(size_t)15);
    if (!made)
        return NULL;
    memset(made, 0, sizeof(*made));
    made->kind = kind;
    return made;
}

static eddy_status launch(eddy_backend_queue *base, piece *made) {
    far_device *device = device_of(base->backend);
    far_queue *queue = (far_queue *)(void *)base;
    if (!made)
        eddy_far_lose(base->backend);
    eddy_lock_acquire(&device->lock);
    bool is_lost = device->is_to_lose;
    if (!is_lost) {
        *queue->tail = made;
        queue->tail = &made->next;
    }
    eddy_lock_release(&device->lock);
    if (is_lost) {
        free(made);
        return EDDY_DEVICE_LOST;
    }
    eddy_doorbell_ring(&device->launched);
    return EDDY_OK;
}

eddy_status eddy_far_launch(eddy_backend_queue *queue, void (*run)(void *context),
                            const void *context, size_t bytes) {
    piece *made = piece_create(PIECE_RUN, bytes);
    if (made) {
        made->run = run;
        memcpy(made->context, context, bytes);
    }
    return launch(queue, made);
}

static eddy_status launch_wait(eddy_backend_queue *queue, eddy_backend_queue *other,
                               uint64_t ticket) {
    piece *made = piece_create(PIECE_WAIT, 0);
    if (made) {
        made->other = other;
        made->ticket = ticket;
    }
    return launch(queue, made);
}

static eddy_status launch_copy(eddy_backend_queue *queue, void *to, const void *from, int64_t bytes,
                               eddy_copy_direction direction) {
    piece *made = piece_create(PIECE_COPY, 0);
    if (made) {
        made->to = direction == EDDY_COPY_TO_HOST ? to : eddy_far_translate(queue->backend, to);
        made->from =
            direction == EDDY_COPY_TO_DEVICE ? from : eddy_far_translate(queue->backend, from);
        made->copied_bytes = bytes;
    }
    return launch(queue, made);
}

static void run_look(void *context) {
    (void)eddy_backend_may_run(context);
}

static eddy_status launch_look(const eddy_backend_launch *launch) {
    return eddy_far_launch(launch->queue, run_look, launch, sizeof(*launch));
}

static eddy_status skip(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_store_relaxed(&eddy_backend_error(queue->backend, ticket)->status, (int32_t)EDDY_SKIPPED);
    return eddy_load_acquire(&queue->backend->is_lost) ? EDDY_DEVICE_LOST : EDDY_OK;
}

static eddy_status launch_mark(eddy_backend_queue *queue, uint64_t ticket) {
    piece *made = piece_create(PIECE_MARK, 0);
    if (made)
        made->ticket = ticket;
    return launch(queue, made);
}

/* ---- running ---- */

static bool may_run(const far_queue *queue) {
    const piece *head = queue->head;
    return head &&
           (head->kind != PIECE_WAIT || eddy_load_acquire(&head->other->completed) >= head->ticket);
}

/* The queues of the greatest priority among those that may go on. The lock is held. */
static uint32_t find_choices(const far_device *device, far_queue **choices) {
    uint32_t count = 0;
    for (uint32_t q = 0; q < device->queue_count; q++) {
        far_queue *queue = device->queues[q];
        if (!may_run(queue) || (count > 0 && queue->priority < choices[0]->priority))
            continue;
        if (count > 0 && queue->priority > choices[0]->priority)
            count = 0;
        choices[count++] = queue;
    }
    return count;
}

/* Takes the head of a queue that may go on, number `choice` of these; NULL: there is none. */
static piece *take(far_device *device, uint64_t choice, far_queue **from) {
    piece *taken = NULL;
    far_queue *choices[EDDY_BACKEND_QUEUES];
    eddy_lock_acquire(&device->lock);
    uint32_t count = find_choices(device, choices);
    if (count > 0 && !device->is_to_lose && !device->is_halted) {
        far_queue *queue = *from = choices[choice % count];
        taken = queue->head;
        if (!(queue->head = taken->next))
            queue->tail = &queue->head;
        device->is_running = true;
    }
    eddy_lock_release(&device->lock);
    return taken;
}

static void say_lost(far_device *device) {
    eddy_store_release(&device->base.is_lost, true);
    eddy_doorbell_ring(&device->base.progress);
}

static bool run_one(far_device *device, uint64_t choice) {
    far_queue *queue;
    piece *taken = take(device, choice, &queue);
    if (!taken)
        return false;
    if (taken->kind == PIECE_RUN)
        taken->run(taken->context);
    else if (taken->kind == PIECE_COPY && taken->copied_bytes > 0)
        memcpy(taken->to, taken->from, (size_t)taken->copied_bytes);
    eddy_lock_acquire(&device->lock);
    device->is_running = false;
    bool is_lost = device->is_to_lose;
    eddy_lock_release(&device->lock);
    if (is_lost) {
        say_lost(device);
    } else if (taken->kind == PIECE_MARK) {
        eddy_store_release(&queue->base.completed, taken->ticket);
        eddy_doorbell_ring(&device->base.progress);
    }
    free(taken);
    return true;
}

bool eddy_far_step(eddy_backend *backend, uint64_t choice) {
    return run_one(device_of(backend), choice);
}

static void far_main(void *context) {
    far_device *device = context;
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&device->launched);
        uint64_t choice = draw(device);
        if (choice % 16 < PAUSES)
            sched_yield();
        else if (run_one(device, choice >> 8))
            continue;
        else if (eddy_load_acquire(&device->is_ending))
            return;
        else
            eddy_doorbell_sleep(&device->launched, seen, EDDY_CLOCK_FOREVER);
    }
}

void eddy_far_lose(eddy_backend *backend) {
    far_device *device = device_of(backend);
    eddy_lock_acquire(&device->lock);
    device->is_to_lose = true;
    bool is_running = device->is_running;
    eddy_lock_release(&device->lock);
    if (!is_running)
        say_lost(device);
}

static bool halt(eddy_backend *backend, int64_t deadline_ns) {
    far_device *device = device_of(backend);
    bool is_running = true;
    while (is_running && eddy_clock_ns() < deadline_ns) {
        eddy_lock_acquire(&device->lock);
        device->is_halted = true;
        is_running = device->is_running;
        eddy_lock_release(&device->lock);
        if (is_running)
            sched_yield();
    }
    return !is_running;
}

static void await(eddy_backend *backend, uint32_t seen) {
    if (!eddy_doorbell_spin(&backend->progress, seen))
        eddy_doorbell_sleep(&backend->progress, seen, EDDY_CLOCK_FOREVER);
}

/* ---- memory ---- */

void *eddy_far_translate(const eddy_backend *backend, const void *address) {
    const far_device *device = device_of(backend);
    uintptr_t offset = (uintptr_t)address - (uintptr_t)device->addresses;
    return offset <= (uintptr_t)device->options.bytes ? device->mapping + offset
                                                      : (void *)(uintptr_t)address;
}

/* A used block begins with what was asked for; a pattern follows, which no kernel may change. */
static void *acquire(eddy_backend *backend, int64_t bytes) {
    far_device *device = device_of(backend);
    bytes = (bytes + 2 * ALIGNMENT - 1) & -(int64_t)ALIGNMENT;
    far_block *rest = eddy_memory_acquire_zeroed(sizeof(*rest), EDDY_MEMORY_RUNTIME);
    if (!rest)
        return NULL;
    eddy_lock_acquire(&device->lock);
    far_block *block = device->blocks;
    while (block && (block->is_used || block->bytes < bytes))
        block = block->next;
    if (block) {
        *rest = (far_block){block->next, block->offset + bytes, block->bytes - bytes, false};
        *block = (far_block){rest, block->offset, bytes, true};
        device->acquired_bytes += bytes - ALIGNMENT;
    }
    eddy_lock_release(&device->lock);
    if (!block) {
        eddy_memory_release(rest, sizeof(*rest), EDDY_MEMORY_RUNTIME);
        return NULL;
    }
    memset(device->mapping + block->offset + bytes - ALIGNMENT, BEYOND, ALIGNMENT);
    return device->addresses + block->offset;
}

static void check_beyond(const char *beyond) {
    for (int i = 0; i < ALIGNMENT; i++)
        if ((unsigned char)beyond[i] != BEYOND) {
            fprintf(stderr, "far: a kernel has written beyond a block\n");
            abort();
        }
}

/* Joins free neighbours; the lock is held. Returns what is to be freed. */
static far_block *join_free(far_device *device) {
    far_block *joined = NULL;
    for (far_block *block = device->blocks; block && block->next;) {
        far_block *next = block->next;
        if (block->is_used || next->is_used) {
            block = next;
            continue;
        }
        block->bytes += next->bytes;
        block->next = next->next;
        next->next = joined;
        joined = next;
    }
    return joined;
}

static void release(eddy_backend *backend, void *data, int64_t bytes) {
    (void)bytes;
    far_device *device = device_of(backend);
    eddy_lock_acquire(&device->lock);
    far_block *block = device->blocks;
    /* A free one of no bytes, which is left where a hole was filled exactly, lies at the same place. */
    while (block && (!block->is_used || block->offset != (char *)data - device->addresses))
        block = block->next;
    EDDY_ASSERT(block);
    check_beyond(device->mapping + block->offset + block->bytes - ALIGNMENT);
    memset(device->mapping + block->offset, RELEASED, (size_t)block->bytes);
    block->is_used = false;
    device->acquired_bytes -= block->bytes - ALIGNMENT;
    far_block *joined = join_free(device);
    eddy_lock_release(&device->lock);
    while (joined) {
        far_block *next = joined->next;
        eddy_memory_release(joined, sizeof(*joined), EDDY_MEMORY_RUNTIME);
        joined = next;
    }
}

int64_t eddy_far_acquired_bytes(const eddy_backend *backend) {
    far_device *device = device_of(backend);
    eddy_lock_acquire(&device->lock);
    int64_t bytes = device->acquired_bytes;
    eddy_lock_release(&device->lock);
    return bytes;
}

/* ---- life ---- */

static eddy_backend_queue *queue_create(eddy_backend *backend, int32_t priority) {
    far_device *device = device_of(backend);
    far_queue *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->base.backend = backend;
    made->priority = device->options.obeys_priorities ? priority : 0;
    made->tail = &made->head;
    eddy_lock_acquire(&device->lock);
    bool has_room = device->queue_count < EDDY_BACKEND_QUEUES;
    if (has_room) {
        made->base.number = device->queue_count;
        device->queues[device->queue_count++] = made;
    }
    eddy_lock_release(&device->lock);
    if (has_room)
        return &made->base;
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
    return NULL;
}

static void queue_free(far_queue *queue) {
    while (queue->head) {
        piece *next = queue->head->next;
        free(queue->head);
        queue->head = next;
    }
    eddy_memory_release(queue, sizeof(*queue), EDDY_MEMORY_RUNTIME);
}

/* Also of one that is half made. */
static void device_free(far_device *device) {
    for (uint32_t q = 0; q < device->queue_count; q++)
        queue_free(device->queues[q]);
    while (device->blocks) {
        far_block *next = device->blocks->next;
        eddy_memory_release(device->blocks, sizeof(*device->blocks), EDDY_MEMORY_RUNTIME);
        device->blocks = next;
    }
    if (device->addresses)
        munmap(device->addresses, (size_t)device->options.bytes);
    if (device->mapping)
        munmap(device->mapping, (size_t)device->options.bytes);
    eddy_memory_release(device->base.errors, EDDY_BACKEND_WORDS * sizeof(eddy_kernel_error),
                        EDDY_MEMORY_RUNTIME);
    eddy_memory_release(device, sizeof(*device), EDDY_MEMORY_RUNTIME);
}

static void destroy(eddy_backend *backend) {
    far_device *device = device_of(backend);
    if (!device->options.is_by_hand) {
        eddy_store_release(&device->is_ending, true);
        eddy_doorbell_ring(&device->launched);
        eddy_thread_join(&device->thread);
    }
    EDDY_ASSERT(device->acquired_bytes == 0);
    device_free(device);
}

static const eddy_backend_class far_class = {
    .name = "far",
    .queue_create = queue_create,
    .wait = launch_wait,
    .copy = launch_copy,
    .run = eddy_far_launch,
    .translate = eddy_far_translate,
    .look = launch_look,
    .skip = skip,
    .mark = launch_mark,
    .await = await,
    .memory_acquire = acquire,
    .memory_release = release,
    .halt = halt,
    .destroy = destroy,
};

/* The same pages at two places. */
static bool map_twice(far_device *device) {
    size_t bytes = (size_t)device->options.bytes;
    int file = memfd_create("eddy-far", MFD_CLOEXEC);
    if (file < 0)
        return false;
    void *mapping = MAP_FAILED, *addresses = MAP_FAILED;
    if (ftruncate(file, (off_t)bytes) == 0) {
        mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
        addresses = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    }
    close(file);
    device->mapping = mapping == MAP_FAILED ? NULL : mapping;
    device->addresses = addresses == MAP_FAILED ? NULL : addresses;
    return device->mapping && device->addresses;
}

eddy_backend *eddy_far_create(const eddy_far_options *options) {
    far_device *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->base.class = &far_class;
    made->options = *options;
    if (made->options.bytes == 0)
        made->options.bytes = DEFAULT_BYTES;
    made->random = options->seed;
    eddy_lock_init(&made->lock, EDDY_RANK_LEAF);
    made->base.errors = eddy_memory_acquire_zeroed(EDDY_BACKEND_WORDS * sizeof(eddy_kernel_error),
                                                   EDDY_MEMORY_RUNTIME);
    made->blocks = eddy_memory_acquire_zeroed(sizeof(*made->blocks), EDDY_MEMORY_RUNTIME);
    if (made->blocks)
        made->blocks->bytes = made->options.bytes;
    if (made->base.errors && made->blocks && map_twice(made) &&
        (options->is_by_hand ||
         eddy_thread_create(&made->thread, "eddy-far", far_main, made) == EDDY_OK))
        return &made->base;
    device_free(made);
    return NULL;
}
