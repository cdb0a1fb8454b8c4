/* The queue of one device's launches: a thread of its own runs works in the order of dispatch, one at a time. A work that cannot go on stalls the queue
 * until the VM lets it try again. Without a thread works run inside `dispatch` and `eddy_launcher_resume`. */
#ifndef EDDY_STREAMS_LAUNCHER_H
#define EDDY_STREAMS_LAUNCHER_H

#include <base/assert.h>
#include <streams/work_queue.h>

/* NULL when there is no memory or no thread. */
EDDY_MUST_USE eddy_work_queue *eddy_launcher_create(bool has_thread);

/* The work, which runs now, is run again, before any other, after the next eddy_launcher_resume. By the work itself, as the last that it does. */
void eddy_launcher_stall(eddy_work_queue *queue, eddy_work *work);
/* Whether a work is stalled. Any thread. */
bool eddy_launcher_is_stalled(const eddy_work_queue *queue);
/* Runs the stalled work again. One thread at a time. */
void eddy_launcher_resume(eddy_work_queue *queue);

#endif
