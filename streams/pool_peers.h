/* Pools that take the same memory of a device: those of several runtimes. What one keeps unused may be what another lacks. */
#ifndef EDDY_STREAMS_POOL_PEERS_H
#define EDDY_STREAMS_POOL_PEERS_H

#include <base/sleep.h>
#include <stdint.h>

struct eddy_device_pool;

typedef struct eddy_pool_peer {
    struct eddy_pool_peer *next, **link; /* lock: the list's */
    const void *memory;                  /* const: which it is; peers have the same */
    struct eddy_device_pool *pool;       /* const */
    /* atomic: changed under the list's lock (release): threads that trim the pool, or are about to; whether one does */
    eddy_sleep_word users, is_trimmed;
} eddy_pool_peer;

/* With `memory` and `pool` filled in. The memory, which is a device's, is as good as lost to a forked child, and so are the pools. */
void eddy_pool_peer_join(eddy_pool_peer *peer);
/* Afterwards nobody trims its pool any more: waits for those that do. */
void eddy_pool_peer_leave(eddy_pool_peer *peer);
/* Trims the pools of the others; returns bytes. What another thread is about to give back is waited for. Any thread that holds no lock of a pool; may wait for the device. */
int64_t eddy_pool_peers_trim(const eddy_pool_peer *peer);

#endif
