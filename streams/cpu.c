#include <base/memory.h>
#include <base/order.h>
#include <base/sleep.h>
#include <stddef.h>
#include <streams/cpu.h>
#include <streams/team.h>
#include <string.h>

typedef struct cpu_queue {
    eddy_work_queue base;
    /* Ordered streams:  IDLE --(dispatch: token taken, drain queued)--> HELD --(drain finds the queue empty)--> IDLE */
    eddy_lock lock;
    eddy_work *head, **tail; /* lock: lock */
    bool is_held;            /* lock: lock; the run token */
    eddy_work drain;         /* in the team's queue, or running, while the token is held */
} cpu_queue;

static void dispatch_unordered(eddy_work_queue *stream, eddy_work *work) {
    eddy_team_push(work, stream->priority > 0);
}

static eddy_work *take(cpu_queue *stream) {
    eddy_lock_acquire(&stream->lock);
    eddy_work *work = stream->head;
    if (work) {
        stream->head = work->next;
        if (!stream->head)
            stream->tail = &stream->head;
    } else {
        stream->is_held = false;
    }
    eddy_lock_release(&stream->lock);
    return work;
}

/* How many works one turn runs before other queues get a turn. */
#define TURN 64

static void drain(eddy_work *drain_work, eddy_status failure) {
    cpu_queue *stream = (cpu_queue *)(void *)((char *)drain_work - offsetof(cpu_queue, drain));
    for (int i = 0; i < TURN; i++) {
        eddy_work *work = take(stream);
        /* Once the token is released the stream may be destroyed: it is not accessed afterwards. */
        if (!work)
            return;
        eddy_team_halt_point();
        work->run(work, failure);
    }
    eddy_team_push(&stream->drain, stream->base.priority > 0);
}

static void dispatch_ordered(eddy_work_queue *base, eddy_work *work) {
    cpu_queue *stream = (cpu_queue *)(void *)base;
    work->next = NULL;
    eddy_lock_acquire(&stream->lock);
    *stream->tail = work;
    stream->tail = &work->next;
    bool has_token = !stream->is_held;
    stream->is_held = true;
    eddy_lock_release(&stream->lock);
    if (has_token)
        eddy_team_push(&stream->drain, stream->base.priority > 0);
}

/* The last work may have completed while its drain still holds the token. */
static void destroy(eddy_work_queue *base) {
    cpu_queue *stream = (cpu_queue *)(void *)base;
    eddy_order_check();
    for (;;) {
        eddy_lock_acquire(&stream->lock);
        bool is_held = stream->is_held;
        eddy_lock_release(&stream->lock);
        if (!is_held)
            break;
        eddy_atomic_pause();
    }
    eddy_memory_release(stream, sizeof(*stream), EDDY_MEMORY_RUNTIME);
}

static const eddy_work_queue_class unordered_class = {"cpu", dispatch_unordered, destroy};
static const eddy_work_queue_class ordered_class = {"cpu", dispatch_ordered, destroy};

eddy_work_queue *eddy_cpu_queue_create(bool is_ordered, int32_t priority) {
    cpu_queue *stream = eddy_memory_acquire_zeroed(sizeof(*stream), EDDY_MEMORY_RUNTIME);
    if (!stream)
        return NULL;
    stream->base.class = is_ordered ? &ordered_class : &unordered_class;
    stream->base.is_ordered = is_ordered;
    stream->base.priority = priority;
    eddy_lock_init(&stream->lock, EDDY_RANK_LEAF);
    stream->tail = &stream->head;
    stream->drain.run = drain;
    return &stream->base;
}
