#include <base/memory.h>
#include <base/thread.h>
#include <base/trace.h>
#include <streams/staging.h>
#include <streams/team.h>
#include <string.h>

/* A ring has so many chunks of at most so many bytes: the host copies one while the device copies another, and each may be a little late. */
#define CHUNKS 4
#define CHUNK_BYTES ((int64_t)2 << 20)
/* A copy that fits into the ring is cut in as many pieces as there are chunks, down to this: below it calls of the driver take longer than the copy. */
#define PIECE_BYTES ((int64_t)256 << 10)

/* How the thread waits for the device: it looks all the time for so long, then sleeps for a quarter of the time that it has waited, within bounds. */
#define SPIN_NS 20000
#define SPIN_CHECKS 64
#define SLEEP_NS_MIN 20000
#define SLEEP_NS_MAX 1000000

/* The host's side of a copy, chunk by chunk. */
typedef struct job {
    struct job *next;
    char *host;   /* what is left of it, */
    int64_t left; /* so many bytes */
    int64_t piece_bytes;
    bool is_to_device;
} job;

/* In pinned memory, ahead of the chunks: apart from each other, as two sides write them. */
typedef struct ring_words {
    _Atomic uint64_t by_host __attribute__((aligned(
        EDDY_CACHE_LINE))); /* atomic: the thread stores (release), the device waits for it */
    _Atomic uint64_t by_device __attribute__((
        aligned(EDDY_CACHE_LINE))); /* atomic: the device stores, the thread loads (acquire) */
} ring_words;

/* Chunk number c of the queue lies at place c % CHUNKS.
 *
 * to the device:  free --(by_device > c - CHUNKS: host fills)--> filled, by_host = c + 1 --(device copies)--> by_device = c + 1: free
 * to the host:    free --(by_host > c - CHUNKS: device fills)--> filled, by_device = c + 1 --(host copies)--> by_host = c + 1: free */
typedef struct ring {
    ring_words *
        words; /* launching thread: made for the first copy, before its job is there; NULL before */
    uint64_t launched; /* launching thread: chunks so far */
    uint64_t done;     /* the thread's: what by_host says */
    job *head, **tail; /* lock: the staging's; head: changed by the thread alone once it is there */
} ring;

struct eddy_staging {
    eddy_backend *backend; /* const */
    _Atomic int64_t bytes; /* atomic: relaxed; of the rings, the launching thread stores */
    eddy_lock lock;
    ring rings[EDDY_BACKEND_QUEUES];
    job *spares;             /* lock: lock */
    eddy_doorbell bell;      /* rung after there is a job, or it is to end */
    _Atomic bool is_ending;  /* atomic: release; seen after a ring */
    _Atomic bool is_stopped; /* atomic: seq_cst; set once, by who stops it */
    _Atomic bool is_copying; /* atomic: seq_cst; the thread is within a chunk */
    eddy_thread thread;
};

#define RING_BYTES ((int64_t)sizeof(ring_words) + CHUNKS * CHUNK_BYTES)

static char *chunk_at(const ring *of, uint64_t number) {
    return (char *)of->words + sizeof(ring_words) + (int64_t)(number % CHUNKS) * CHUNK_BYTES;
}

static int64_t bytes_of(const job *of) {
    return of->left < of->piece_bytes ? of->left : of->piece_bytes;
}

/* ---- the host's side: the thread ---- */

/* Whether the device has come so far that the next chunk may be copied. */
static bool may_step(const ring *of, const job *next) {
    uint64_t by_device = eddy_load_acquire(&of->words->by_device);
    return next->is_to_device ? of->done < by_device + CHUNKS : of->done < by_device;
}

/* False: it is stopped. Either the thread sees that, or who stops it sees that a chunk is being copied. */
static bool copy_chunk(eddy_staging *staging, const ring *of, const job *next) {
    eddy_store_seq_cst(&staging->is_copying, true);
    bool is_stopped = eddy_load_seq_cst(&staging->is_stopped);
    char *chunk = chunk_at(of, of->done);
    eddy_trace_span span = EDDY_TRACE_BEGIN(COPY, .op = "stage", .bytes = (int64_t)bytes_of(next),
                                            .detail = next->is_to_device ? "to device" : "to host");
    if (!is_stopped && next->is_to_device)
        memcpy(chunk, next->host, (size_t)bytes_of(next));
    else if (!is_stopped)
        memcpy(next->host, chunk, (size_t)bytes_of(next));
    EDDY_TRACE_END(span, .op = "stage", .bytes = (int64_t)bytes_of(next));
    eddy_store_seq_cst(&staging->is_copying, false);
    return !is_stopped;
}

static job *first_job(eddy_staging *staging, ring *of) {
    eddy_lock_acquire(&staging->lock);
    job *first = of->head;
    eddy_lock_release(&staging->lock);
    return first;
}

static void end_job(eddy_staging *staging, ring *of, job *over) {
    eddy_lock_acquire(&staging->lock);
    if (!(of->head = over->next))
        of->tail = &of->head;
    over->next = staging->spares;
    staging->spares = over;
    eddy_lock_release(&staging->lock);
}

/* Whether it has copied a chunk; *waits: there is one that the device is not done with. */
static bool step(eddy_staging *staging, ring *of, bool *waits) {
    job *next = first_job(staging, of);
    if (!next)
        return false;
    if (!may_step(of, next)) {
        *waits = true;
        return false;
    }
    if (!copy_chunk(staging, of, next))
        return false;
    int64_t bytes = bytes_of(next);
    next->host += bytes;
    next->left -= bytes;
    bool is_over = next->left == 0;
    of->done++;
    /* After the last chunk to the host the copy's memory may be gone at once, but not its job. */
    eddy_store_release(&of->words->by_host, of->done);
    if (is_over)
        end_job(staging, of, next);
    return true;
}

/* Whether it has copied something. */
static bool step_all(eddy_staging *staging, bool *waits) {
    bool has_any = false;
    *waits = false;
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++)
        has_any |= step(staging, &staging->rings[q], waits);
    return has_any;
}

/* The device is not done; it has been waited for since `begin_ns`. */
static void wait_for_device(eddy_staging *staging, uint32_t seen, int64_t begin_ns) {
    int64_t now = eddy_clock_ns();
    if (now < begin_ns + SPIN_NS && eddy_team_spin_begin()) {
        for (int i = 0; i < SPIN_CHECKS; i++)
            eddy_atomic_pause();
        eddy_team_spin_end();
        return;
    }
    int64_t part = (now - begin_ns) / 4;
    part = part < SLEEP_NS_MIN ? SLEEP_NS_MIN : part > SLEEP_NS_MAX ? SLEEP_NS_MAX : part;
    eddy_doorbell_sleep(&staging->bell, seen, now + part);
}

static void staging_main(void *context) {
    eddy_staging *staging = context;
    int64_t begin_ns = 0;
    for (;;) {
        uint32_t seen = eddy_doorbell_seen(&staging->bell);
        bool waits;
        if (step_all(staging, &waits)) {
            begin_ns = 0;
            continue;
        }
        if (eddy_load_acquire(&staging->is_ending))
            return;
        if (waits && !eddy_load_seq_cst(&staging->is_stopped)) {
            begin_ns = begin_ns ? begin_ns : eddy_clock_ns();
            wait_for_device(staging, seen, begin_ns);
        } else if (!eddy_doorbell_spin(&staging->bell, seen)) {
            eddy_doorbell_sleep(&staging->bell, seen, EDDY_CLOCK_FOREVER);
        }
    }
}

int64_t eddy_staging_bytes(const eddy_staging *staging) {
    return eddy_load_relaxed(&staging->bytes);
}

void eddy_staging_stop(eddy_staging *staging) {
    if (!staging)
        return;
    eddy_store_seq_cst(&staging->is_stopped, true);
    while (eddy_load_seq_cst(&staging->is_copying))
        eddy_atomic_pause();
}

/* ---- the device's side: the launching thread ---- */

static job *acquire_job(eddy_staging *staging) {
    eddy_lock_acquire(&staging->lock);
    job *spare = staging->spares;
    if (spare)
        staging->spares = spare->next;
    eddy_lock_release(&staging->lock);
    return spare ? spare : eddy_memory_acquire(sizeof(*spare), EDDY_MEMORY_RUNTIME);
}

static void push_job(eddy_staging *staging, ring *to, job *made) {
    eddy_lock_acquire(&staging->lock);
    *to->tail = made;
    to->tail = &made->next;
    eddy_lock_release(&staging->lock);
    eddy_doorbell_ring(&staging->bell);
}

static bool has_ring(eddy_staging *staging, ring *of) {
    if (of->words)
        return true;
    ring_words *words = staging->backend->class->pinned_acquire(staging->backend, RING_BYTES);
    if (!words)
        return false;
    *words = (ring_words){0};
    of->words = words;
    eddy_add_relaxed(&staging->bytes, RING_BYTES);
    return true;
}

/* One chunk, number of->launched. */
static eddy_status launch_chunk(ring *of, eddy_backend_queue *queue, char *there, int64_t bytes,
                                bool is_to_device) {
    const eddy_backend_class *class = queue->backend->class;
    uint64_t number = of->launched++;
    char *chunk = chunk_at(of, number);
    eddy_status status = EDDY_OK;
    if (is_to_device)
        status = class->await_word(queue, &of->words->by_host, number + 1);
    else if (number >= CHUNKS)
        status = class->await_word(queue, &of->words->by_host, number + 1 - CHUNKS);
    if (status == EDDY_OK)
        status = is_to_device ? class->copy(queue, there, chunk, bytes, EDDY_COPY_TO_DEVICE)
                              : class->copy(queue, chunk, there, bytes, EDDY_COPY_TO_HOST);
    return status == EDDY_OK ? class->store_word(queue, &of->words->by_device, number + 1) : status;
}

static int64_t piece_of(int64_t bytes) {
    int64_t piece = (bytes / CHUNKS + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    return piece < PIECE_BYTES ? PIECE_BYTES : piece < CHUNK_BYTES ? piece : CHUNK_BYTES;
}

static eddy_status launch_all(ring *of, eddy_backend_queue *queue, char *there, int64_t bytes,
                              int64_t piece_bytes, bool is_to_device) {
    eddy_status status = EDDY_OK;
    for (int64_t at = 0; at < bytes && status == EDDY_OK; at += piece_bytes) {
        int64_t rest = bytes - at;
        status = launch_chunk(of, queue, there + at, rest < piece_bytes ? rest : piece_bytes,
                              is_to_device);
    }
    /* What comes later in the queue finds all of it on the host. */
    return status == EDDY_OK && !is_to_device
               ? queue->backend->class->await_word(queue, &of->words->by_host, of->launched)
               : status;
}

eddy_status eddy_staging_copy(eddy_staging *staging, eddy_backend_queue *queue, void *to,
                              const void *from, int64_t bytes, eddy_copy_direction direction) {
    EDDY_ASSERT(bytes > 0 && direction != EDDY_COPY_ON_DEVICE);
    ring *of = &staging->rings[queue->number];
    job *made = has_ring(staging, of) ? acquire_job(staging) : NULL;
    if (!made)
        return EDDY_OUT_OF_MEMORY;
    bool is_to_device = direction == EDDY_COPY_TO_DEVICE;
    int64_t piece_bytes = piece_of(bytes);
    *made = (job){.host = is_to_device ? (char *)(uintptr_t)from : to,
                  .left = bytes,
                  .piece_bytes = piece_bytes,
                  .is_to_device = is_to_device};
    /* First the host's side: what is launched by a call that fails later waits for it. */
    push_job(staging, of, made);
    return launch_all(of, queue, is_to_device ? to : (char *)(uintptr_t)from, bytes, piece_bytes,
                      is_to_device);
}

/* ---- life ---- */

eddy_staging *eddy_staging_create(eddy_backend *backend) {
    eddy_staging *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return NULL;
    made->backend = backend;
    eddy_lock_init(&made->lock, EDDY_RANK_LEAF);
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++)
        made->rings[q].tail = &made->rings[q].head;
    if (eddy_thread_create(&made->thread, "eddy-staging", staging_main, made) == EDDY_OK)
        return made;
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
    return NULL;
}

static void release_jobs(job *first) {
    while (first) {
        job *next = first->next;
        eddy_memory_release(first, sizeof(*first), EDDY_MEMORY_RUNTIME);
        first = next;
    }
}

void eddy_staging_destroy(eddy_staging *staging) {
    if (!staging)
        return;
    eddy_store_release(&staging->is_ending, true);
    eddy_doorbell_ring(&staging->bell);
    eddy_thread_join(&staging->thread);
    for (uint32_t q = 0; q < EDDY_BACKEND_QUEUES; q++) {
        release_jobs(staging->rings[q].head);
        if (staging->rings[q].words)
            staging->backend->class->pinned_release(staging->backend, staging->rings[q].words,
                                                    RING_BYTES);
    }
    release_jobs(staging->spares);
    eddy_memory_release(staging, sizeof(*staging), EDDY_MEMORY_RUNTIME);
}
