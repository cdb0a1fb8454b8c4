/* The interface of a work queue, to which the instructions of a stream are dispatched when they may run.
 *
 * The VM hands a queue work in submission order of its stream; an ordered queue runs works one after another in that
 * order, an unordered one in any order. The queue calls `run` once for each work, on a thread of its own choosing (not inside
 * `dispatch`, unless the VM is in one-thread mode), and `run` reports completion to the VM itself. */
#ifndef EDDY_STREAMS_WORK_QUEUE_H
#define EDDY_STREAMS_WORK_QUEUE_H

#include <base/lifo.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stdint.h>

struct eddy_work_queue;

typedef struct eddy_work {
    union { /* the queue's while it holds the work */
        struct eddy_work *next;
        eddy_lifo_link link;
    };
    /* Runs the work, or fails it with `failure` (a queue's own error: a lost device, an injected fault). */
    void (*run)(struct eddy_work *work, eddy_status failure);
} eddy_work;

/* The entries every kind of queue provides. */
typedef struct eddy_work_queue_class {
    const char *name;
    /* Takes the work; never blocks, never fails (work carries its own link). Called by the engine only. */
    void (*dispatch)(struct eddy_work_queue *queue, eddy_work *work);
    /* Frees the queue; all work has completed. */
    void (*destroy)(struct eddy_work_queue *queue);
} eddy_work_queue_class;

typedef struct eddy_work_queue {
    const eddy_work_queue_class *class; /* const after init */
    bool is_ordered;                    /* const after init */
    int32_t priority;                   /* const after init; a hint: higher first */
} eddy_work_queue;

static inline void eddy_work_queue_dispatch(eddy_work_queue *queue, eddy_work *work) {
    queue->class->dispatch(queue, work);
}

#endif
