#include <kernels/prepared.h>

#include <base/atomic.h>
#include <base/fork_gate.h>
#include <base/hash.h>
#include <base/memory.h>
#include <base/process.h>
#include <base/sleep.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define BUCKETS 256 /* a power of two */

typedef struct entry {
    struct entry *next;             /* lock: lock; of its bucket */
    struct entry *newer, *older;    /* lock: lock; in the order of the last look-ups */
    const eddy_prepared_kind *kind; /* const after init */
    uint64_t hash;                  /* const after init */
    size_t key_bytes;               /* const after init */
    eddy_status status;             /* const after init: OK, or UNSUPPORTED */
    /* atomic: incremented under the lock (relaxed), decremented without it (release), read for 0 under it (acquire) */
    _Atomic int64_t user_count;
    _Alignas(max_align_t) char memory
        []; /* const after init; the prepared object, and after it the key */
} entry;

static eddy_lock lock;
static entry *buckets[BUCKETS]; /* lock: lock */
static int32_t count;           /* lock: lock */
static entry *newest, *oldest;  /* lock: lock */
static uint64_t now;            /* lock: lock; look-ups so far */
static uint64_t
    look_at; /* lock: lock; from this look-up on, it pays to search for unused entries */

static char *key_of(entry *e) {
    return e->memory + e->kind->prepared_bytes;
}

static size_t entry_bytes(const eddy_prepared_kind *kind, size_t key_bytes) {
    return sizeof(entry) + kind->prepared_bytes + key_bytes;
}

static void destroy(entry *e) {
    if (e->status == EDDY_OK) {
        eddy_fork_gate_enter(); /* what a library has made is given back to it */
        e->kind->unmake(e->kind, e->memory);
        eddy_fork_gate_leave();
    }
    eddy_memory_release(e, entry_bytes(e->kind, e->key_bytes), EDDY_MEMORY_CACHE);
}

static void unlink_locked(entry *e) {
    *(e->newer ? &e->newer->older : &newest) = e->older;
    *(e->older ? &e->older->newer : &oldest) = e->newer;
}

static void link_locked(entry *e) {
    e->newer = NULL;
    e->older = newest;
    *(newest ? &newest->newer : &oldest) = e;
    newest = e;
}

static entry *take_locked(const eddy_prepared_kind *kind, const void *key, size_t key_bytes,
                          uint64_t hash) {
    now++;
    for (entry *e = buckets[hash % BUCKETS]; e; e = e->next) {
        if (e->hash != hash || e->kind != kind || e->key_bytes != key_bytes ||
            memcmp(key_of(e), key, key_bytes) != 0)
            continue;
        unlink_locked(e);
        link_locked(e);
        eddy_add_relaxed(&e->user_count, (int64_t)1);
        return e;
    }
    return NULL;
}

static void forget_locked(entry *e) {
    entry **link = &buckets[e->hash % BUCKETS];
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    unlink_locked(e);
    count--;
}

/* If many entries are in use, a pass visits this many entries for each look-up since the last pass. */
#define USED_A_LOOK 64

/* Removes unused entries, the least recently used first, as long as there are too many; returns their list. */
static entry *evict_locked(void) {
    entry *evicted = NULL;
    if (count <= EDDY_PREPARED_MOST || now < look_at)
        return NULL;
    for (entry *e = oldest, *newer; e && count > EDDY_PREPARED_MOST; e = newer) {
        newer = e->newer;
        if (eddy_load_acquire(&e->user_count) > 0)
            continue;
        forget_locked(e);
        e->next = evicted;
        evicted = e;
    }
    look_at = now + (uint64_t)(count - EDDY_PREPARED_MOST) / USED_A_LOOK;
    return evicted;
}

/* Another thread of the parent may have held the lock, in the middle of a change: only the buckets are consistent at every
 * moment. Entries that were in use in the parent are not in use here. */
static void fork_child(void) {
    lock = (eddy_lock){0};
    newest = oldest = NULL;
    count = 0;
    look_at = 0;
    for (int b = 0; b < BUCKETS; b++)
        for (entry *e = buckets[b]; e; e = e->next) {
            eddy_store_relaxed(&e->user_count, (int64_t)0);
            link_locked(e);
            count++;
        }
}

static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void watch_forks(void) {
    eddy_process_at_fork_child(fork_child);
}

/* Makes an entry that is in no bucket yet; NULL with the reason in *status. */
static entry *make(const eddy_prepared_kind *kind, const void *key, size_t key_bytes, uint64_t hash,
                   const void *context, eddy_status *status) {
    size_t bytes = entry_bytes(kind, key_bytes);
    entry *made = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_CACHE);
    if (!made) {
        *status = EDDY_OUT_OF_MEMORY;
        return NULL;
    }
    made->kind = kind;
    made->hash = hash;
    made->key_bytes = key_bytes;
    eddy_store_relaxed(&made->user_count, (int64_t)1);
    memcpy(key_of(made), key, key_bytes);
    *status = made->status = kind->make(kind, context, made->memory);
    if (*status == EDDY_OK || *status == EDDY_UNSUPPORTED)
        return made;
    eddy_memory_release(made, bytes, EDDY_MEMORY_CACHE);
    return NULL;
}

/* Inserts `made`, or returns the entry that another thread has inserted meanwhile. */
static entry *add(entry *made) {
    eddy_lock_acquire(&lock);
    entry *found = take_locked(made->kind, key_of(made), made->key_bytes, made->hash),
          *evicted = NULL;
    if (!found) {
        made->next = buckets[made->hash % BUCKETS];
        buckets[made->hash % BUCKETS] = made;
        link_locked(made);
        count++;
        evicted = evict_locked();
    }
    eddy_lock_release(&lock);
    while (evicted) {
        entry *next = evicted->next;
        destroy(evicted);
        evicted = next;
    }
    if (!found)
        return made;
    destroy(made);
    return found;
}

eddy_status eddy_prepared_acquire(const eddy_prepared_kind *kind, const void *key, size_t key_bytes,
                                  const void *context, const void **prepared) {
    pthread_once(&watched, watch_forks);
    *prepared = NULL;
    uint64_t hash = eddy_hash_64(key, key_bytes, 0);
    eddy_lock_acquire(&lock);
    entry *e = take_locked(kind, key, key_bytes, hash);
    eddy_lock_release(&lock);
    eddy_status status;
    if (!e) {
        e = make(kind, key, key_bytes, hash, context, &status);
        if (!e)
            return status;
        e = add(e);
    }
    status = e->status;
    if (status == EDDY_OK)
        *prepared = e->memory;
    else
        eddy_prepared_release(e->memory);
    return status;
}

void eddy_prepared_release(const void *prepared) {
    if (!prepared)
        return;
    entry *e = (entry *)((char *)(uintptr_t)prepared - offsetof(entry, memory));
    eddy_sub_release(&e->user_count, (int64_t)1);
}
