/* Prepared objects, which similar calls share: oneDNN's primitives, states of registered ops. They are made when the first
 * such call is planned, and cached for the life of the process. Shared by all threads. */
#ifndef EDDY_KERNELS_PREPARED_H
#define EDDY_KERNELS_PREPARED_H

#include <base/assert.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>

/* The cache keeps this many objects, the most recently used ones, and those of calls in flight. */
#define EDDY_PREPARED_MOST 256

typedef struct eddy_prepared_kind {
    size_t prepared_bytes;
    /* Makes the object in zeroed memory, aligned as by malloc, from the context of the acquisition. UNSUPPORTED: there is
     * nothing to prepare, which is cached for the key. A failure leaves nothing to unmake. Called without a lock, so two
     * threads may make the object of one key at the same time. */
    eddy_status (*make)(const struct eddy_prepared_kind *kind, const void *context, void *prepared);
    void (*unmake)(const struct eddy_prepared_kind *kind, void *prepared);
} eddy_prepared_kind;

/* The object of a key (bytes that are compared: no padding), made if there is none. It is kept until
 * eddy_prepared_release. Fails with the status of `make`, or OUT_OF_MEMORY, without an error record; *prepared is then
 * NULL. For eddy_kernel.prepare: any thread, a lock protects the look-up. */
EDDY_MUST_USE eddy_status eddy_prepared_acquire(const eddy_prepared_kind *kind, const void *key,
                                                size_t key_bytes, const void *context,
                                                const void **prepared);
/* Takes no lock; NULL does nothing. For eddy_kernel.end: any thread. */
void eddy_prepared_release(const void *prepared);

#endif
