/* Copies between memory of the host and of a device by way of pinned chunks, which the device copies while the host copies others: nobody launches and waits.
 *
 * Each queue has a ring of chunks of its own, and two words that count the chunks of all its copies: what the host is done with, and what the device is. The launching thread
 * launches all of a copy at once: for each chunk a wait for the host's word, the copy, and a store of the device's. A thread does the host's side, in each queue in the order of
 * launches, a chunk of one queue after one of the next. So the device waits for the host alone, and the host for what was launched before: neither waits in a circle. */
#ifndef EDDY_STREAMS_STAGING_H
#define EDDY_STREAMS_STAGING_H

#include <streams/backend.h>

typedef struct eddy_staging eddy_staging;

/* NULL: no memory, or no thread. */
EDDY_MUST_USE eddy_staging *eddy_staging_create(eddy_backend *backend);
/* Every ticket has completed, or eddy_staging_stop was called. NULL is allowed. */
void eddy_staging_destroy(eddy_staging *staging);

/* Launches a copy; both sides stay as they are until a ticket that is marked later completes. OUT_OF_MEMORY: nothing is launched; DEVICE_LOST. Launching thread. */
EDDY_MUST_USE eddy_status eddy_staging_copy(eddy_staging *staging, eddy_backend_queue *queue,
                                            void *to, const void *from, int64_t bytes,
                                            eddy_copy_direction direction);
/* Pinned memory that it has: a ring for each queue that it has copied on, which stays. Any thread. */
int64_t eddy_staging_bytes(const eddy_staging *staging);
/* Of a lost device, and at exit, for good: no chunk is copied by the host any more, and none is being copied, when this returns: within a fraction of a
 * millisecond. Any thread. NULL is allowed. */
void eddy_staging_stop(eddy_staging *staging);

#endif
