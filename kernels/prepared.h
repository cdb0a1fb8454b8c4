/* What calls share that are alike, made where the first of them is planned and kept for the process: oneDNN's primitives, states of
 * registered ops. Shared by all threads. */
#ifndef EDDY_KERNELS_PREPARED_H
#define EDDY_KERNELS_PREPARED_H

#include <base/assert.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>

/* So many are kept, the most recently used; those that calls in flight use are kept beyond. */
#define EDDY_PREPARED_MOST 256

typedef struct eddy_prepared_kind {
    size_t prepared_bytes;
    /* Into zeroed memory, aligned as malloc's, from what who acquires gave. UNSUPPORTED: there is nothing to prepare, which is kept in
     * mind for the key. After a failure nothing is left to unmake. Called without a lock, so maybe twice at once for one key. */
    eddy_status (*make)(const struct eddy_prepared_kind *kind, const void *context, void *prepared);
    void (*unmake)(const struct eddy_prepared_kind *kind, void *prepared);
} eddy_prepared_kind;

/* What is prepared for a key (bytes that are compared: no padding), made where there is nothing. It is not unmade until
 * eddy_prepared_release. Fails as `make` does, or OUT_OF_MEMORY, without a record; *prepared is NULL then. For eddy_kernel.prepare:
 * any thread, a lock guards the look-up. */
EDDY_MUST_USE eddy_status eddy_prepared_acquire(const eddy_prepared_kind *kind, const void *key,
                                                size_t key_bytes, const void *context,
                                                const void **prepared);
/* Takes no lock; NULL does nothing. For eddy_kernel.end: any thread. */
void eddy_prepared_release(const void *prepared);

#endif
