/* The queue of one device's launches: a thread of its own runs works in the order of dispatch, one at a time. A work that cannot go on stalls the queue
 * until the VM lets it try again. Without a thread works run inside `dispatch` and `eddy_launcher_resume`. */
#ifndef EDDY_STREAMS_LAUNCHER_H
#define EDDY_STREAMS_LAUNCHER_H

#include <base/assert.h>
#include <streams/work_queue.h>

/* What the thread does while it has nothing to run; `launcher`, the queue, may not be known to others yet. */
typedef struct eddy_launcher_duty {
    void *context;
    /* Does other work; whether there was some. NULL: there never is. */
    bool (*attend)(void *context, const eddy_work_queue *launcher);
    /* Whether `attend` may find some. */
    bool (*has_work)(void *context);
    /* Before it sleeps until a dispatch, a resume or the end: what comes from here on is others'. False: it has done something, and does not sleep. */
    bool (*rest)(void *context, const eddy_work_queue *launcher);
    /* First, and after it has slept. */
    void (*wake)(void *context);
} eddy_launcher_duty;

/* NULL when there is no memory or no thread. The duty is copied; without a thread it is never called. */
EDDY_MUST_USE eddy_work_queue *eddy_launcher_create(bool has_thread, eddy_launcher_duty duty);

/* The work, which runs now, is run again, before any other, after the next eddy_launcher_resume. By the work itself, as the last that it does. */
void eddy_launcher_stall(eddy_work_queue *queue, eddy_work *work);
/* Whether there is a work to run. By the thread itself. */
bool eddy_launcher_has_next(const eddy_work_queue *queue);
/* Whether a work is stalled. Any thread. */
bool eddy_launcher_is_stalled(const eddy_work_queue *queue);
/* The next are called by the thread that dispatches, of a queue that is stalled. */

/* Runs the stalled work again. */
void eddy_launcher_resume(eddy_work_queue *queue);
/* All that the queue has, in order, the stalled one first. */
eddy_work *eddy_launcher_works(eddy_work_queue *queue);
/* None of these is run, unless it is dispatched again. */
void eddy_launcher_take_back(eddy_work_queue *queue);

#endif
