/* A queue whose completions a test controls: it holds works until the test runs them, in any order that the
 * interface allows, late, or as failures. */
#ifndef EDDY_STREAMS_FAKE_H
#define EDDY_STREAMS_FAKE_H

#include <base/assert.h>
#include <streams/work_queue.h>

/* NULL when there is no memory. */
EDDY_MUST_USE eddy_work_queue *eddy_fake_queue_create(bool is_ordered);

/* The number of held works. Any thread. */
int64_t eddy_fake_queue_held(eddy_work_queue *stream);

/* Runs the held work number `choice` modulo the count (an ordered stream: the oldest) on the calling thread; fails it
 * instead if `decide` returns another status than EDDY_OK. decide may be NULL. False if nothing is held. One thread at a time. */
bool eddy_fake_queue_step(eddy_work_queue *stream, uint64_t choice,
                          eddy_status (*decide)(void *context, const eddy_work *work),
                          void *context);

#endif
