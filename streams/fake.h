/* A stream whose completions a test controls: it holds what it is given until the test lets it go, in any order that the
 * contract allows, late, or as a failure. */
#ifndef EDDY_STREAMS_FAKE_H
#define EDDY_STREAMS_FAKE_H

#include <base/assert.h>
#include <streams/work_queue.h>

/* NULL when there is no memory. */
EDDY_MUST_USE eddy_work_queue *eddy_fake_queue_create(bool is_ordered);

/* Works that are held now. Any thread. */
int64_t eddy_fake_queue_held(eddy_work_queue *stream);

/* Runs the held work number `choice` modulo the count (an ordered stream: the oldest) on the calling thread; fails it
 * instead where `decide` answers other than EDDY_OK. decide may be NULL. False when nothing is held. One thread at a time. */
bool eddy_fake_queue_step(eddy_work_queue *stream, uint64_t choice,
                          eddy_status (*decide)(void *context, const eddy_work *work),
                          void *context);

#endif
