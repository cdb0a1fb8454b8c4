/* What oneDNN prepares for one geometry each (it generates code, which takes longer than most calls): the most recent are kept,
 * for the process, and shared by all threads. */
#ifndef EDDY_KERNELS_CPU_PREPARED_H
#define EDDY_KERNELS_CPU_PREPARED_H

#include <base/assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Something to prepare. Keys are zeroed structs that are filled: their bytes are compared. */
typedef struct eddy_prepared_kind {
    size_t key_bytes, prepared_bytes;
    /* Into zeroed memory. False where the library does not serve: then nothing is left to unmake. */
    bool (*make)(const void *key, void *prepared);
    void (*unmake)(void *prepared);
} eddy_prepared_kind;

/* What is prepared for a key, made where there is nothing; it is not destroyed until eddy_prepared_release. NULL where the
 * library does not serve (which is kept in mind too), or no memory. Any thread; a lock guards a look-up. */
EDDY_MUST_USE const void *eddy_prepared_acquire(const eddy_prepared_kind *kind, const void *key);
void eddy_prepared_release(const void *prepared);

#endif
