/* CPU streams: unordered ones hand each work to the team; ordered ones are a queue with a run token, run by one worker at
 * a time. */
#ifndef EDDY_STREAMS_CPU_H
#define EDDY_STREAMS_CPU_H

#include <base/assert.h>
#include <streams/work_queue.h>

/* NULL when there is no memory. */
EDDY_MUST_USE eddy_work_queue *eddy_cpu_queue_create(bool is_ordered, int32_t priority);

#endif
