/* A backend for tests: a device simulated on the CPU, which is as strict as a device may be.
 *
 * Its addresses have no pages that the host may touch (PROT_NONE); kernels and copies see the same memory through a second mapping. What is
 * launched runs later, one piece at a time, on a thread of the backend's own, which chooses among the queues by a seed; or when the test
 * says so. */
#ifndef EDDY_STREAMS_FAR_H
#define EDDY_STREAMS_FAR_H

#include <base/assert.h>
#include <streams/backend.h>

typedef struct eddy_far_options {
    uint64_t seed;   /* of the choices among queues, and of pauses */
    int64_t bytes;   /* size of the memory; 0: 256 MB */
    bool is_by_hand; /* no thread: eddy_far_step runs what is launched */
    /* Chooses among the queues of the greatest priority alone. Else the priorities change nothing, since a device promises no more than a preference. */
    bool obeys_priorities;
} eddy_far_options;

/* NULL when there is no memory, no thread or no address space. */
EDDY_MUST_USE eddy_backend *eddy_far_create(const eddy_far_options *options);

/* Launches `run(context)`, with a copy of the `bytes` at `context` (aligned to 16); the function may touch the device's memory at eddy_far_translate'd addresses.
 * Launching thread. DEVICE_LOST, which the mark says too. */
eddy_status eddy_far_launch(eddy_backend_queue *queue, void (*run)(void *context),
                            const void *context, size_t bytes);
/* Where a kernel finds what the device has at `address` (also within or at the end of a block); addresses of the host stay. */
void *eddy_far_translate(const eddy_backend *backend, const void *address);

/* By hand: runs one piece of the queue that `choice` picks among those that may go on; false if there is none. One thread at a time. */
bool eddy_far_step(eddy_backend *backend, uint64_t choice);

/* The device is lost: nothing runs any more, no ticket completes, and each launch says so. Any thread. */
void eddy_far_lose(eddy_backend *backend);

/* The bytes of blocks that are acquired. Any thread. */
int64_t eddy_far_acquired_bytes(const eddy_backend *backend);

#endif
