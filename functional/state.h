/* Prepared states of a registered op's kernel: one per attributes, dtypes, shapes and strides, the most recent
 * kept. */
#ifndef EDDY_FUNCTIONAL_STATE_H
#define EDDY_FUNCTIONAL_STATE_H

#include <base/sleep.h>
#include <eddy/op.h>
#include <stddef.h>

#define EDDY_STATE_MAX 64

typedef struct eddy_state_entry {
    struct eddy_state_entry *next; /* lock: of the cache; most recently used first */
    void *state;                   /* const after init */
    int32_t user_count;            /* lock: of the cache */
    uint64_t hash;                 /* const after init */
    size_t key_bytes;              /* const after init */
    char key[];
} eddy_state_entry;

/* Zeroed is empty. Stays with its op for the life of the process. */
typedef struct eddy_state_cache {
    eddy_lock lock;
    eddy_state_entry *first; /* lock: lock */
    int32_t count;           /* lock: lock */
} eddy_state_cache;

/* The state for a call, made by kernel->prepare where there is none (the lock is not held meanwhile; of two
 * threads that make the same one the second keeps the first's). Until eddy_state_release it is not destroyed.
 * NULL: no memory. Worker threads. */
eddy_state_entry *eddy_state_acquire(eddy_state_cache *cache, const eddy_op_kernel *kernel, const eddy_op_call *call,
                                     size_t attribute_bytes);
void eddy_state_release(eddy_state_cache *cache, const eddy_op_kernel *kernel, eddy_state_entry *entry);

#endif
