#include <base/process.h>
#include <streams/device_pool.h>
#include <streams/pool_peers.h>

static struct {
    eddy_lock lock;
    eddy_pool_peer *first; /* lock: lock */
    bool watches_forks;    /* lock: lock */
} peers = {.lock = EDDY_LOCK_OF(EDDY_RANK_POOLS)};

static void forget_peers(void) {
    eddy_lock_init(&peers.lock, EDDY_RANK_POOLS);
    peers.first = NULL;
}

void eddy_pool_peer_join(eddy_pool_peer *peer) {
    eddy_lock_acquire(&peers.lock);
    if (!peers.watches_forks)
        eddy_process_at_fork_child(forget_peers);
    peers.watches_forks = true;
    peer->next = peers.first;
    peer->link = &peers.first;
    if (peer->next)
        peer->next->link = &peer->next;
    peers.first = peer;
    eddy_lock_release(&peers.lock);
}

/* The list's lock is held, but not meanwhile. */
static void await_zero_locked(eddy_sleep_word *word) {
    uint32_t value;
    while ((value = eddy_load_relaxed(word)) != 0) {
        eddy_lock_release(&peers.lock);
        eddy_sleep_wait(word, value, EDDY_CLOCK_FOREVER);
        eddy_lock_acquire(&peers.lock);
    }
}

void eddy_pool_peer_leave(eddy_pool_peer *peer) {
    eddy_lock_acquire(&peers.lock);
    await_zero_locked(&peer->users);
    *peer->link = peer->next;
    if (peer->next)
        peer->next->link = peer->link;
    eddy_lock_release(&peers.lock);
}

/* Without the lock, as it may take as long as what the device does. The peer stays in the list meanwhile. */
static int64_t trim_locked(eddy_pool_peer *peer) {
    eddy_add_release(&peer->users, 1u);
    await_zero_locked(&peer->is_trimmed);
    eddy_store_release(&peer->is_trimmed, 1u);
    eddy_lock_release(&peers.lock);
    int64_t bytes = eddy_device_pool_trim(peer->pool);
    eddy_device_pool_await_given(peer->pool);
    eddy_lock_acquire(&peers.lock);
    eddy_store_release(&peer->is_trimmed, 0u);
    eddy_sleep_wake_all(&peer->is_trimmed);
    eddy_sub_release(&peer->users, 1u);
    eddy_sleep_wake_all(&peer->users);
    return bytes;
}

int64_t eddy_pool_peers_trim(const eddy_pool_peer *peer) {
    int64_t bytes = 0;
    eddy_lock_acquire(&peers.lock);
    for (eddy_pool_peer *other = peers.first; other; other = other->next)
        if (other != peer && other->memory == peer->memory)
            bytes += trim_locked(other);
    eddy_lock_release(&peers.lock);
    return bytes;
}
