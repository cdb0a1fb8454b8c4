#include <base/fork_gate.h>
#include <base/memory.h>
#include <kernels/cuda/parameters.h>
#include <stdio.h>
#include <streams/cuda/backend.h>
#include <streams/cuda/foreign.h>
#include <streams/cuda/launch.h>
#include <streams/cuda/memory.h>
#include <streams/device_pool.h>
#include <streams/team.h>
#include <string.h>
#include <time.h>

_Static_assert(EDDY_CUDA_WORDS == EDDY_BACKEND_WORDS && EDDY_CUDA_SOURCES == EDDY_BACKEND_SOURCES,
               "kernels/cuda/parameters.h has its own numbers");

/* One mark stands for so many launches at most: who waits for the first of them waits until the others have run, too. */
#define MARKS_WAIT_MAX 8

/* How a reaper waits: it looks all the time for so long, then sleeps for a quarter of the time that it has waited, within bounds. So that it notices the end of
 * short work at once, of long work soon, and takes a hundredth of a processor at most. Sleeping on an event of one stream, it would miss the others'. */
#define SPIN_NS 20000
#define SPIN_CHECKS 64
#define SLEEP_NS_MIN 20000
#define SLEEP_NS_MAX 1000000
/* After so long without progress it asks the driver: what fails while it runs completes no ticket. */
#define ASK_NS 10000000
/* So long exit waits for all devices that ask a library (question.h), as a fork does. */
#define HALT_NS EDDY_FORK_GATE_WAIT_NS

typedef struct cuda_queue {
    eddy_backend_queue base; /* `completed` is written by the stream */
    eddy_cu_stream stream;   /* const after init */
    eddy_cu_event reached; /* launching thread: where another queue's wait lets the stream pause */
    _Atomic uint64_t
        marked; /* atomic: the launching thread stores (seq_cst) the last ticket it has marked */
    _Atomic uint32_t lends; /* atomic: seq_cst; open ones */
    uint64_t noticed;       /* `await` only: what was completed when it looked last */
} cuda_queue;

/* What the device writes and the host reads: pinned. */
typedef struct shared_memory {
    eddy_kernel_error errors[EDDY_BACKEND_WORDS];
    cuda_queue queues[EDDY_BACKEND_QUEUES];
} shared_memory;

typedef struct cuda_backend {
    eddy_backend base;
    const eddy_cuda_device *device;     /* const */
    shared_memory *shared;              /* const after init */
    eddy_cu_address marks;              /* const after init; the device's */
    eddy_cuda_gemms *gemms;             /* launching thread */
    eddy_cuda_dnn_answers *dnn_answers; /* launching thread */
    eddy_cuda_visit visit;    /* launching thread, within an entry: if that is a caller's */
    bool is_relaxed;          /* launching thread: it heeds no captures; if it is no caller's */
    eddy_cuda_graphs *graphs; /* launching thread; NULL: none so far */
    /* Launching thread: where launches go while a row is captured, its first ticket, and whether something was launched that cannot be. */
    eddy_cu_stream captures;
    uint64_t captured_first;
    bool is_spoiled;
    eddy_cu_event last; /* who loses the device; else the thread that makes it */
    eddy_cuda_fences fences;
    _Atomic uint32_t
        queue_count; /* atomic: who makes a queue (release); `await`, who loses the device (acquire) */
    _Atomic bool is_failing;   /* atomic: seq_cst; set once, by who loses the device */
    _Atomic bool is_over;      /* atomic: seq_cst; set once, at exit: no entry begins any more */
    _Atomic bool is_launching; /* atomic: seq_cst; the launching thread is within an entry */
    _Atomic bool
        is_asking; /* atomic: seq_cst; the launching thread asks a library, within an entry */
    _Atomic bool is_idle; /* atomic: seq_cst; `await` sleeps, and a mark has to ring */
    uint32_t unmarked;    /* launching thread: a bit for each queue with a mark that waits */
    uint32_t waiting;     /* launching thread: such marks, since none waited */
    uint32_t
        reached; /* launching thread: a bit for each device whose memory it has asked for access to */
} cuda_backend;

static cuda_backend *backend_of(const eddy_backend *backend) {
    return (cuda_backend *)(uintptr_t)backend;
}

static cuda_queue *queue_of(const eddy_backend_queue *queue) {
    return (cuda_queue *)(uintptr_t)queue;
}

const eddy_cuda_device *eddy_cuda_backend_device(const eddy_backend *backend) {
    return backend_of(backend)->device;
}

eddy_cu_stream eddy_cuda_backend_stream(const eddy_backend_queue *queue) {
    eddy_cu_stream captures = backend_of(queue->backend)->captures;
    return EDDY_UNLIKELY(captures != NULL) ? captures : queue_of(queue)->stream;
}

bool eddy_cuda_backend_captures(const eddy_backend *backend, uint64_t *first) {
    const cuda_backend *made = backend_of(backend);
    *first = made->captured_first;
    return EDDY_UNLIKELY(made->captures != NULL);
}

eddy_cuda_graphs *eddy_cuda_backend_graphs(const eddy_backend *backend) {
    return backend_of(backend)->graphs;
}

eddy_cuda_fences *eddy_cuda_backend_fences(eddy_backend *backend) {
    return &backend_of(backend)->fences;
}

eddy_cuda_gemms **eddy_cuda_backend_gemms(const eddy_backend *backend) {
    return &backend_of(backend)->gemms;
}

eddy_cuda_dnn_answers **eddy_cuda_backend_dnn_answers(const eddy_backend *backend) {
    return &backend_of(backend)->dnn_answers;
}

uint64_t *eddy_cuda_backend_marks(const eddy_backend *backend) {
    return (uint64_t *)(uintptr_t)backend_of(backend)->marks;
}

eddy_cu_address eddy_cuda_backend_base(const eddy_backend_queue *queue) {
    return backend_of(queue->backend)->marks +
           (2 * EDDY_CUDA_WORDS + queue->number) * sizeof(uint64_t);
}

eddy_cu_address eddy_cuda_backend_mark(const eddy_backend *backend, uint64_t ticket) {
    return backend_of(backend)->marks + ticket % EDDY_CUDA_WORDS * sizeof(uint64_t);
}

bool eddy_cuda_backend_spare(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    bool has_graphs = made->graphs && !made->captures;
    /* To give memory back may take as long as what runs. */
    (void)eddy_cuda_backend_write_marks(backend);
    if (has_graphs)
        eddy_cuda_graphs_clear(made->graphs);
    return (backend->pool && eddy_device_pool_spare(backend->pool) > 0) || has_graphs;
}

/* ---- losing it ---- */

/* Waits for what the stream was given. After an error that stays the driver answers at once. */
static eddy_cu_result settle(cuda_backend *made, eddy_cu_stream stream) {
    eddy_cu_result result = eddy_cuda.event_record(made->last, stream);
    return result == 0 ? eddy_cuda.event_synchronize(made->last) : result;
}

/* Nobody may take it for lost, and free what it uses, while something runs. Nothing is launched any more: either the launching thread sees that it is failing, or who loses
 * it sees that something is being launched. Any thread, not within an entry. */
static void lose(cuda_backend *made) {
    if (eddy_exchange_seq_cst(&made->is_failing, true))
        return;
    while (eddy_load_seq_cst(&made->is_launching))
        eddy_atomic_pause();
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(made->device, &visit);
    uint32_t count = eddy_load_acquire(&made->queue_count);
    for (uint32_t q = 0; q < count; q++)
        (void)settle(made, made->shared->queues[q].stream);
    if (result == 0)
        eddy_cuda_device_leave(visit);
    eddy_store_release(&made->base.is_lost, true);
    eddy_doorbell_ring(&made->base.progress);
}

eddy_status eddy_cuda_backend_check(eddy_backend *backend, eddy_cu_result result) {
    if (EDDY_LIKELY(result == 0))
        return EDDY_OK;
    lose(backend_of(backend));
    return EDDY_DEVICE_LOST;
}

/* ---- launching ---- */

static eddy_status end_launch(cuda_backend *made, eddy_cu_result result) {
    eddy_store_seq_cst(&made->is_launching, false);
    return eddy_cuda_backend_check(&made->base, result);
}

static eddy_cu_result enter(cuda_backend *made) {
    eddy_cu_capture_mode mode;
    eddy_cu_result result = 0;
    if (EDDY_UNLIKELY(!made->is_relaxed))
        result = eddy_cuda_thread_relax(&mode);
    made->is_relaxed = result == 0;
    return result == 0 ? eddy_cuda_device_enter(made->device) : result;
}

bool eddy_cuda_backend_begin(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    eddy_store_seq_cst(&made->is_launching, true);
    if (EDDY_UNLIKELY(eddy_load_seq_cst(&made->is_failing) || eddy_load_seq_cst(&made->is_over))) {
        eddy_store_seq_cst(&made->is_launching, false);
        return false;
    }
    eddy_cu_result result = EDDY_UNLIKELY(backend->is_on_callers_thread)
                                ? eddy_cuda_device_visit(made->device, &made->visit)
                                : enter(made);
    return EDDY_LIKELY(result == 0) || end_launch(made, result) == EDDY_OK;
}

eddy_status eddy_cuda_backend_end(eddy_backend *backend, eddy_cu_result result) {
    if (EDDY_UNLIKELY(backend->is_on_callers_thread))
        eddy_cuda_device_leave(backend_of(backend)->visit);
    return end_launch(backend_of(backend), result);
}

void eddy_cuda_backend_asks_set(eddy_backend *backend, bool asks) {
    eddy_store_seq_cst(&backend_of(backend)->is_asking, asks);
}

bool eddy_cuda_backend_spoil(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    made->is_spoiled |= made->captures != NULL;
    return made->captures != NULL;
}

void eddy_cuda_backend_end_library(eddy_backend *backend, bool has_launched) {
    bool is_spoiled = !has_launched && eddy_cuda_backend_spoil(backend);
    (void)eddy_cuda_backend_end(backend, has_launched || is_spoiled ? 0 : EDDY_CU_LAUNCH_FAILED);
}

/* The event stands at the end of what is launched on the other queue so far, at `ticket` or behind it: waits for tickets that the other queue has just marked, which is
 * what they mostly are, wait for no more than that, and no mark costs an event. */
static eddy_status wait(eddy_backend_queue *queue, eddy_backend_queue *other, uint64_t ticket) {
    eddy_backend *backend = queue->backend;
    cuda_queue *source = queue_of(other);
    if (eddy_load_acquire(&other->completed) >= ticket)
        return EDDY_OK;
    if (!eddy_cuda_backend_begin(backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = eddy_cuda_backend_write_marks(backend);
    if (result == 0)
        result = eddy_cuda.event_record(source->reached, source->stream);
    if (result == 0)
        result = eddy_cuda.stream_wait_event(queue_of(queue)->stream, source->reached, 0);
    return eddy_cuda_backend_end(backend, result);
}

static eddy_cu_address address_of(const void *data) {
    return (eddy_cu_address)(uintptr_t)data;
}

static eddy_status copy(eddy_backend_queue *queue, void *to, const void *from, int64_t bytes,
                        eddy_copy_direction direction) {
    if (bytes == 0)
        return EDDY_OK;
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_stream stream = queue_of(queue)->stream;
    size_t size = (size_t)bytes;
    eddy_cu_result result =
        direction == EDDY_COPY_TO_DEVICE
            ? eddy_cuda.copy_to_device(address_of(to), from, size, stream)
        : direction == EDDY_COPY_TO_HOST
            ? eddy_cuda.copy_to_host(to, address_of(from), size, stream)
            : eddy_cuda.copy_on_device(address_of(to), address_of(from), size, stream);
    return eddy_cuda_backend_end(queue->backend, result);
}

/* ---- from another device ---- */

/* Access is a shorter way for copies: without it, or where others have asked for it already, the driver finds one. */
static void reach(cuda_backend *made, const eddy_cuda_device *other) {
    uint32_t bit = UINT32_C(1) << other->index;
    int can = 0;
    if (made->reached & bit)
        return;
    made->reached |= bit;
    if (eddy_cuda.can_reach(&can, made->device->number, other->number) == 0 && can)
        (void)eddy_cuda.reach(other->context, 0);
}

/* A copy was refused: for an error that the other device has had, and nobody has noticed yet. Afterwards the thread's context is this device's again. */
static bool is_others_fault(cuda_backend *made, cuda_backend *other) {
    eddy_cu_result result = eddy_cuda_device_enter(other->device);
    if (result == 0)
        result = eddy_cuda.stream_query(other->shared->queues[0].stream);
    bool is_other = result != 0 && result != EDDY_CU_NOT_READY;
    return eddy_cuda_device_enter(made->device) == 0 && is_other;
}

static eddy_status copy_across(eddy_backend_queue *queue, void *to, eddy_backend *other,
                               const void *from, int64_t bytes) {
    cuda_backend *made = backend_of(queue->backend), *source = backend_of(other);
    if (bytes == 0)
        return EDDY_OK;
    if (eddy_load_acquire(&other->is_lost))
        return EDDY_SKIPPED;
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    reach(made, source->device);
    eddy_cu_result result =
        eddy_cuda.copy_across(address_of(to), made->device->context, address_of(from),
                              source->device->context, (size_t)bytes, queue_of(queue)->stream);
    if (EDDY_LIKELY(result == 0) || !is_others_fault(made, source))
        return eddy_cuda_backend_end(queue->backend, result);
    eddy_status status = eddy_cuda_backend_end(queue->backend, 0);
    return status == EDDY_OK ? EDDY_SKIPPED : status;
}

/* ---- fences ---- */

static eddy_status fence_record(eddy_backend_queue *queue, eddy_backend_fence **fence) {
    eddy_backend *backend = queue->backend;
    eddy_cuda_fences *fences = eddy_cuda_backend_fences(backend);
    eddy_backend_fence *made;
    if (!eddy_cuda_backend_begin(backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = eddy_cuda_fence_acquire(fences, &made);
    if (result == EDDY_CU_OUT_OF_MEMORY)
        return eddy_cuda_backend_end(backend, 0) == EDDY_OK ? EDDY_OUT_OF_MEMORY : EDDY_DEVICE_LOST;
    if (result == 0) {
        result = eddy_cuda.event_record(made->event, queue_of(queue)->stream);
        if (result == 0)
            *fence = made;
        else
            eddy_cuda_fence_recycle(fences, made);
    }
    return eddy_cuda_backend_end(backend, result);
}

static eddy_status fence_wait(eddy_backend_queue *queue, const eddy_backend_fence *fence) {
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = eddy_cuda_backend_write_marks(queue->backend);
    if (result == 0)
        result = eddy_cuda.stream_wait_event(queue_of(queue)->stream, fence->event, 0);
    return eddy_cuda_backend_end(queue->backend, result);
}

static void fence_recycle(eddy_backend *backend, eddy_backend_fence *fence) {
    eddy_cuda_fence_recycle(eddy_cuda_backend_fences(backend), fence);
}

/* ---- tickets ---- */

static eddy_status skip(eddy_backend_queue *queue, uint64_t ticket) {
    eddy_backend *backend = queue->backend;
    eddy_store_relaxed(&eddy_backend_error(backend, ticket)->status, (int32_t)EDDY_SKIPPED);
    if (EDDY_UNLIKELY(eddy_cuda_backend_spoil(backend)))
        return EDDY_OK;
    if (!eddy_cuda_backend_begin(backend))
        return EDDY_DEVICE_LOST;
    return eddy_cuda_backend_end(
        backend, eddy_cuda.stream_write(queue_of(queue)->stream,
                                        eddy_cuda_backend_mark(backend, ticket), ticket, 0));
}

/* Only a stream that is lent is asked: nobody has the handle of another. */
static eddy_cu_result refuse_capture(const cuda_queue *queue) {
    if (EDDY_LIKELY(eddy_load_seq_cst(&queue->lends) == 0))
        return 0;
    eddy_cu_capture_status status = EDDY_CU_CAPTURES_NOT;
    eddy_cu_result result = eddy_cuda.capture_status(queue->stream, &status);
    return status == EDDY_CU_CAPTURES_NOT ? result : EDDY_CU_CAPTURE_INVALIDATED;
}

/* Where the program captures a stream that was lent to it, neither the ticket nor what it stands for ever comes. A capture may
 * begin after the first look, or end before the second. */
static eddy_cu_result write_ticket(eddy_backend_queue *queue, uint64_t ticket) {
    const cuda_queue *made = queue_of(queue);
    eddy_cu_result result = refuse_capture(made);
    if (result == 0)
        result = eddy_cuda.stream_write(made->stream, address_of(&queue->completed), ticket, 0);
    return result == 0 ? refuse_capture(made) : result;
}

/* One that is refused waits on, for a call that says why. */
eddy_cu_result eddy_cuda_backend_write_marks(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    eddy_cu_result result = 0;
    for (uint32_t left = made->unmarked; left && result == 0; left &= left - 1) {
        cuda_queue *queue = &made->shared->queues[__builtin_ctz(left)];
        result = write_ticket(&queue->base, eddy_load_relaxed(&queue->marked));
        if (result == 0)
            made->unmarked &= ~(left & -left);
    }
    made->waiting = 0;
    return result;
}

static eddy_status mark_waiting(eddy_backend *backend) {
    if (!backend_of(backend)->unmarked)
        return EDDY_OK;
    if (!eddy_cuda_backend_begin(backend))
        return EDDY_DEVICE_LOST;
    return eddy_cuda_backend_end(backend, eddy_cuda_backend_write_marks(backend));
}

static void note_mark(eddy_backend_queue *queue, uint64_t ticket) {
    cuda_backend *made = backend_of(queue->backend);
    made->unmarked |= UINT32_C(1) << queue->number;
    eddy_store_seq_cst(&queue_of(queue)->marked, ticket);
    if (eddy_load_seq_cst(&made->is_idle))
        eddy_doorbell_ring(&made->base.progress);
}

static eddy_status mark(eddy_backend_queue *queue, uint64_t ticket) {
    note_mark(queue, ticket);
    return mark_waiting(queue->backend);
}

/* Not on a stream that is lent: the sooner a mark is written, the less may be captured unseen. */
static eddy_status mark_later(eddy_backend_queue *queue, uint64_t ticket) {
    note_mark(queue, ticket);
    bool may_wait = ++backend_of(queue->backend)->waiting < MARKS_WAIT_MAX &&
                    eddy_load_seq_cst(&queue_of(queue)->lends) == 0;
    return may_wait ? EDDY_OK : mark_waiting(queue->backend);
}

static eddy_status await_word(eddy_backend_queue *queue, const _Atomic uint64_t *word,
                              uint64_t value) {
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = eddy_cuda_backend_write_marks(queue->backend);
    if (result == 0)
        result = eddy_cuda.stream_await(queue_of(queue)->stream, address_of((const void *)word),
                                        value, EDDY_CU_AWAIT_AT_LEAST);
    return eddy_cuda_backend_end(queue->backend, result);
}

static eddy_status store_word(eddy_backend_queue *queue, _Atomic uint64_t *word, uint64_t value) {
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    return eddy_cuda_backend_end(
        queue->backend,
        eddy_cuda.stream_write(queue_of(queue)->stream, address_of((const void *)word), value, 0));
}

static void *native(const eddy_backend_queue *queue) {
    return queue_of(queue)->stream;
}

static eddy_status foreign(eddy_backend_queue *queue, void (*function)(void *context),
                           void *context) {
    if (!eddy_cuda_backend_begin(queue->backend))
        return EDDY_DEVICE_LOST;
    eddy_cu_result result = eddy_cuda_backend_write_marks(queue->backend);
    if (result != 0)
        return eddy_cuda_backend_end(queue->backend, result);
    function(context);
    /* It may have set the thread to something else. */
    backend_of(queue->backend)->is_relaxed = false;
    result = enter(backend_of(queue->backend));
    bool has_captured = result == 0 && eddy_cuda_foreign_capture_end(queue_of(queue)->stream);
    eddy_status status = eddy_cuda_backend_end(queue->backend, result);
    return status == EDDY_OK && has_captured ? EDDY_UNSUPPORTED : status;
}

static void *lend_begin(eddy_backend_queue *queue) {
    eddy_add_seq_cst(&queue_of(queue)->lends, 1u);
    return queue_of(queue)->stream;
}

static eddy_status lend_end(eddy_backend_queue *queue) {
    cuda_backend *made = backend_of(queue->backend);
    cuda_queue *lent = queue_of(queue);
    eddy_cuda_visit visit;
    bool has_captured = false;
    if (eddy_cuda_device_visit(made->device, &visit) == 0) {
        has_captured = eddy_cuda_foreign_capture_end(lent->stream);
        eddy_cuda_device_leave(visit);
    }
    eddy_sub_seq_cst(&lent->lends, 1u);
    return eddy_cuda_backend_check(queue->backend, has_captured ? EDDY_CU_CAPTURE_INVALIDATED : 0);
}

/* ---- rows ---- */

static eddy_cu_result launch_graph(eddy_backend_queue *queue, const eddy_backend_row *row,
                                   eddy_cu_graph_exec exec) {
    eddy_cu_stream stream = queue_of(queue)->stream;
    eddy_cu_result result =
        eddy_cuda.stream_write(stream, eddy_cuda_backend_base(queue), row->first, 0);
    return result == 0 ? eddy_cuda.graph_launch(exec, stream) : result;
}

static eddy_row_way row_begin(eddy_backend_queue *queue, const eddy_backend_row *row) {
    cuda_backend *made = backend_of(queue->backend);
    eddy_cu_graph_exec exec;
    if (!made->graphs)
        made->graphs = eddy_cuda_graphs_create();
    if (!made->graphs || !eddy_cuda_backend_begin(queue->backend))
        return EDDY_ROW_LAUNCHES;
    eddy_cu_stream captures;
    eddy_row_way way = eddy_cuda_graphs_find(made->graphs, queue, row, &exec, &captures);
    eddy_cu_result result = way == EDDY_ROW_IS_LAUNCHED ? launch_graph(queue, row, exec) : 0;
    if (EDDY_UNLIKELY(result == EDDY_CU_OUT_OF_MEMORY)) {
        way = EDDY_ROW_LAUNCHES;
        result = 0;
    }
    if (eddy_cuda_backend_end(queue->backend, result) == EDDY_OK && way == EDDY_ROW_CAPTURES) {
        made->captures = captures;
        made->captured_first = row->first;
        made->is_spoiled = false;
    }
    return way;
}

static bool row_end(eddy_backend_queue *queue, const eddy_backend_row *row, bool is_whole) {
    cuda_backend *made = backend_of(queue->backend);
    made->captures = NULL;
    if (!eddy_cuda_backend_begin(queue->backend))
        return false;
    eddy_cu_graph_exec exec = eddy_cuda_graphs_end(made->graphs, is_whole && !made->is_spoiled);
    eddy_cu_result result = exec ? launch_graph(queue, row, exec) : 0;
    bool lacks_memory = result == EDDY_CU_OUT_OF_MEMORY;
    return eddy_cuda_backend_end(queue->backend, lacks_memory ? 0 : result) == EDDY_OK && exec &&
           !lacks_memory;
}

static void rows_forget(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    if (!made->graphs || !eddy_cuda_backend_begin(backend))
        return;
    eddy_cuda_graphs_clear(made->graphs);
    (void)eddy_cuda_backend_end(backend, 0);
}

/* ---- waiting ---- */

/* Whether something was completed since it was called last. */
static bool has_progress(cuda_backend *made) {
    bool has_any = false;
    uint32_t count = eddy_load_acquire(&made->queue_count);
    for (uint32_t q = 0; q < count; q++) {
        cuda_queue *queue = &made->shared->queues[q];
        uint64_t completed = eddy_load_acquire(&queue->base.completed);
        has_any |= completed != queue->noticed;
        queue->noticed = completed;
    }
    return has_any;
}

/* Whether something is to be completed, or was since has_progress was called last: what is marked and completed in between rings no bell. Of a lost device nothing
 * is, and every mark rings. */
static bool is_working(cuda_backend *made) {
    if (eddy_load_acquire(&made->base.is_lost))
        return false;
    uint32_t count = eddy_load_acquire(&made->queue_count);
    for (uint32_t q = 0; q < count; q++) {
        cuda_queue *queue = &made->shared->queues[q];
        uint64_t marked = eddy_load_seq_cst(&queue->marked);
        uint64_t completed = eddy_load_acquire(&queue->base.completed);
        if (marked != completed || completed != queue->noticed)
            return true;
    }
    return false;
}

static bool is_over(cuda_backend *made, uint32_t seen) {
    return has_progress(made) || eddy_doorbell_seen(&made->base.progress) != seen;
}

static void sleep_idle(cuda_backend *made, uint32_t seen) {
    eddy_store_seq_cst(&made->is_idle, true);
    if (!is_working(made))
        eddy_doorbell_sleep(&made->base.progress, seen, EDDY_CLOCK_FOREVER);
    eddy_store_seq_cst(&made->is_idle, false);
}

/* Whether the streams go on; else the device is lost. */
static void ask(cuda_backend *made) {
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(made->device, &visit);
    bool is_there = result == 0;
    uint32_t count = eddy_load_acquire(&made->queue_count);
    for (uint32_t q = 0; q < count && result == 0; q++) {
        result = eddy_cuda.stream_query(made->shared->queues[q].stream);
        if (result == EDDY_CU_NOT_READY)
            result = 0;
    }
    if (is_there)
        eddy_cuda_device_leave(visit);
    (void)eddy_cuda_backend_check(&made->base, result);
}

static void sleep_working(cuda_backend *made, uint32_t seen, int64_t now, int64_t begin_ns) {
    int64_t part = (now - begin_ns) / 4;
    if (now - begin_ns >= ASK_NS)
        ask(made);
    part = part < SLEEP_NS_MIN ? SLEEP_NS_MIN : part > SLEEP_NS_MAX ? SLEEP_NS_MAX : part;
    eddy_doorbell_sleep(&made->base.progress, seen, now + part);
}

static void await(eddy_backend *backend, uint32_t seen) {
    cuda_backend *made = backend_of(backend);
    int64_t begin_ns = eddy_clock_ns();
    bool may_spin = eddy_team_spin_begin();
    while (may_spin && eddy_clock_ns() < begin_ns + SPIN_NS)
        for (int i = 0; i < SPIN_CHECKS; i++) {
            if (is_over(made, seen)) {
                eddy_team_spin_end();
                return;
            }
            eddy_atomic_pause();
        }
    if (may_spin)
        eddy_team_spin_end();
    while (!is_over(made, seen))
        if (is_working(made))
            sleep_working(made, seen, eddy_clock_ns(), begin_ns);
        else
            sleep_idle(made, seen);
}

/* ---- life ---- */

/* The driver's numbers fall as the priority grows. */
static int driver_priority(int32_t priority) {
    int least = 0, greatest = 0;
    if (eddy_cuda.priority_range(&least, &greatest) != 0)
        return 0;
    return priority < -least ? least : priority > -greatest ? greatest : -priority;
}

static eddy_cu_result open_queue(cuda_queue *queue, int32_t priority) {
    eddy_cu_result result = eddy_cuda.event_create(&queue->reached, EDDY_CU_EVENT_DISABLE_TIMING);
    if (result != 0)
        return result;
    result = eddy_cuda.stream_create(&queue->stream, EDDY_CU_STREAM_NON_BLOCKING,
                                     driver_priority(priority));
    if (result != 0)
        (void)eddy_cuda.event_destroy(queue->reached);
    return result;
}

static eddy_backend_queue *queue_create(eddy_backend *backend, int32_t priority) {
    cuda_backend *made = backend_of(backend);
    uint32_t count = eddy_load_relaxed(&made->queue_count);
    eddy_cuda_visit visit;
    if (count == EDDY_BACKEND_QUEUES || eddy_cuda_device_visit(made->device, &visit) != 0)
        return NULL;
    cuda_queue *queue = &made->shared->queues[count];
    eddy_cu_result result = open_queue(queue, priority);
    eddy_cuda_device_leave(visit);
    if (result != 0)
        return NULL;
    queue->base.backend = backend;
    queue->base.number = count;
    eddy_store_release(&made->queue_count, count + 1);
    return &queue->base;
}

/* By the clock. One for all devices, and set by the first that is halted. */
static int64_t questions_end_ns(void) {
    static _Atomic int64_t end_ns; /* atomic: acq_rel; 0 before */
    int64_t none = 0, made = eddy_clock_ns() + HALT_NS;
    return eddy_cas_acq_rel(&end_ns, &none, made) ? made : none;
}

/* The driver and the libraries end behind this. Either the launching thread sees that it is over, or this sees that it is within an entry. A registered op's own code may be within one, too, and gets no
 * longer than `deadline_ns`. */
static bool halt(eddy_backend *backend, int64_t deadline_ns) {
    cuda_backend *made = backend_of(backend);
    int64_t questions_end = questions_end_ns();
    eddy_store_seq_cst(&made->is_over, true);
    while (eddy_load_seq_cst(&made->is_launching)) {
        bool is_asking = eddy_load_seq_cst(&made->is_asking);
        if (eddy_clock_ns() >= (is_asking ? questions_end : deadline_ns))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return true;
}

/* Also of one that is half made. */
static void destroy(eddy_backend *backend) {
    cuda_backend *made = backend_of(backend);
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(made->device, &visit);
    eddy_cuda_gemms_destroy(made->gemms);
    eddy_cuda_graphs_destroy(made->graphs);
    eddy_cuda_dnn_answers_destroy(made->dnn_answers);
    uint32_t count = eddy_load_acquire(&made->queue_count);
    for (uint32_t q = 0; q < count; q++) {
        (void)eddy_cuda.event_destroy(made->shared->queues[q].reached);
        (void)eddy_cuda.stream_destroy(made->shared->queues[q].stream);
    }
    eddy_cuda_fences_fini(&made->fences);
    if (made->last)
        (void)eddy_cuda.event_destroy(made->last);
    if (made->marks)
        (void)eddy_cuda.memory_release(made->marks);
    if (made->shared)
        (void)eddy_cuda.host_release(made->shared);
    if (result == 0)
        eddy_cuda_device_leave(visit);
    eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
}

static const eddy_backend_class cuda_class = {
    .name = "cuda",
    .queue_create = queue_create,
    .wait = wait,
    .copy = copy,
    .copy_across = copy_across,
    .look = eddy_cuda_launch_look,
    .skip = skip,
    .mark = mark,
    .mark_later = mark_later,
    .mark_waiting = mark_waiting,
    .native = native,
    .foreign = foreign,
    .lend_begin = lend_begin,
    .lend_end = lend_end,
    .await = await,
    .await_word = await_word,
    .store_word = store_word,
    .row_begin = row_begin,
    .row_end = row_end,
    .rows_forget = rows_forget,
    .pinned_acquire = eddy_cuda_memory_pinned_acquire,
    .pinned_release = eddy_cuda_memory_pinned_release,
    .fence_record = fence_record,
    .fence_wait = fence_wait,
    .foreign_record = eddy_cuda_foreign_record,
    .foreign_wait = eddy_cuda_foreign_wait,
    .fence_recycle = fence_recycle,
    .has_memory = eddy_cuda_foreign_memory,
    .memory_acquire = eddy_cuda_memory_acquire,
    .memory_release = eddy_cuda_memory_release,
    .halt = halt,
    .destroy = destroy,
};

/* No launch may find its ticket in the table by chance. */
static eddy_cu_result clear_marks(cuda_backend *made) {
    /* With those of infinities, and the first tickets of graphs. */
    size_t bytes = (2 * EDDY_CUDA_WORDS + EDDY_BACKEND_QUEUES) * sizeof(uint64_t);
    eddy_cu_stream stream;
    eddy_cu_result result = eddy_cuda.memory_acquire(&made->marks, bytes);
    if (result == 0)
        result = eddy_cuda.stream_create(&stream, EDDY_CU_STREAM_NON_BLOCKING, 0);
    if (result != 0)
        return result;
    result = eddy_cuda.fill_bytes(made->marks, 0, bytes, stream);
    if (result == 0)
        result = settle(made, stream);
    /* Where nobody says that it is over, the driver keeps the memory. */
    if (result != 0 && settle(made, stream) != 0)
        made->marks = 0;
    eddy_cu_result ended = eddy_cuda.stream_destroy(stream);
    return result != 0 ? result : ended;
}

static eddy_cu_result make_parts(cuda_backend *made) {
    void *shared;
    eddy_cu_result result = eddy_cuda.host_acquire(&shared, sizeof(shared_memory),
                                                   EDDY_CU_HOST_PORTABLE | EDDY_CU_HOST_MAPPED);
    if (result != 0)
        return result;
    memset(shared, 0, sizeof(shared_memory));
    made->shared = shared;
    made->base.errors = made->shared->errors;
    result = eddy_cuda.event_create(&made->last,
                                    EDDY_CU_EVENT_BLOCKING_SYNC | EDDY_CU_EVENT_DISABLE_TIMING);
    return result == 0 ? clear_marks(made) : result;
}

static eddy_cu_result prepare(cuda_backend *made) {
    eddy_cuda_visit visit;
    eddy_cu_result result = eddy_cuda_device_visit(made->device, &visit);
    if (result != 0)
        return result;
    result = make_parts(made);
    eddy_cuda_device_leave(visit);
    return result;
}

eddy_status eddy_cuda_backend_create(const eddy_cuda_device *device,
                                     const eddy_backend_options *options, eddy_backend **backend,
                                     char *why, size_t size) {
    cuda_backend *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made) {
        snprintf(why, size, "no memory");
        return EDDY_OUT_OF_MEMORY;
    }
    made->base.class = &cuda_class;
    made->base.options = *options;
    made->base.memory = device;
    made->device = device;
    eddy_cu_result result = prepare(made);
    if (result != 0) {
        destroy(&made->base);
        return eddy_cuda_explain(result, why, size);
    }
    *backend = &made->base;
    return EDDY_OK;
}
