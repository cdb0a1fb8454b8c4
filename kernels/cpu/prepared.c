#include <kernels/cpu/prepared.h>

#include <base/hash.h>
#include <base/memory.h>
#include <base/process.h>
#include <base/sleep.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define CAPACITY 256

typedef struct entry {
    const eddy_prepared_kind *kind;      /* const after init */
    uint64_t hash;                       /* const after init */
    size_t bytes;                        /* const after init; of the entry */
    bool is_served;                      /* const after init: false keeps in mind that the library has nothing */
    int64_t user_count;                  /* lock: lock */
    uint64_t used_at;                    /* lock: lock */
    _Alignas(max_align_t) char memory[]; /* const after init; what is prepared, and behind it the key */
} entry;

static eddy_lock lock;
static entry *entries[CAPACITY]; /* lock: lock; the first `count` */
static int32_t count;            /* lock: lock */
static uint64_t now;             /* lock: lock; look-ups so far */

static char *key_of(entry *e) {
    return e->memory + e->kind->prepared_bytes;
}

static void destroy(entry *e) {
    if (!e)
        return;
    if (e->is_served)
        e->kind->unmake(e->memory);
    eddy_memory_release(e, e->bytes, EDDY_MEMORY_CACHE);
}

static entry *take_locked(const eddy_prepared_kind *kind, const void *key, uint64_t hash) {
    now++;
    for (int32_t i = 0; i < count; i++) {
        entry *e = entries[i];
        if (e->hash != hash || e->kind != kind || memcmp(key_of(e), key, kind->key_bytes) != 0)
            continue;
        e->used_at = now;
        e->user_count++;
        return e;
    }
    return NULL;
}

/* Puts the entry in, for the least recent one that nobody uses where there is no room: *evicted. False where all are used. */
static bool put_locked(entry *e, entry **evicted) {
    int32_t at = count;
    *evicted = NULL;
    if (count == CAPACITY) {
        for (int32_t i = 0; i < CAPACITY; i++)
            if (entries[i]->user_count == 0 && (at == CAPACITY || entries[i]->used_at < entries[at]->used_at))
                at = i;
        if (at == CAPACITY)
            return false;
        *evicted = entries[at];
    }
    e->used_at = now;
    entries[at] = e;
    if (at == count)
        count++;
    return true;
}

/* Some other thread of the parent may have held the lock, and what was in use there is not. */
static void fork_child(void) {
    lock = (eddy_lock){0};
    for (int32_t i = 0; i < count; i++)
        entries[i]->user_count = 0;
}

static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void watch_forks(void) {
    eddy_process_at_fork_child(fork_child);
}

static entry *find(const eddy_prepared_kind *kind, const void *key, uint64_t hash) {
    eddy_lock_acquire(&lock);
    entry *found = take_locked(kind, key, hash);
    eddy_lock_release(&lock);
    return found;
}

static entry *add(const eddy_prepared_kind *kind, const void *key, uint64_t hash) {
    size_t bytes = sizeof(entry) + kind->prepared_bytes + kind->key_bytes;
    entry *made = eddy_memory_acquire(bytes, EDDY_MEMORY_CACHE), *evicted = NULL;
    if (!made)
        return NULL;
    memset(made, 0, bytes);
    *made = (entry){.kind = kind, .hash = hash, .bytes = bytes, .user_count = 1};
    memcpy(key_of(made), key, kind->key_bytes);
    made->is_served = kind->make(key, made->memory);
    /* Of two threads that make the same one the second takes the first's. */
    eddy_lock_acquire(&lock);
    entry *found = take_locked(kind, key, hash);
    bool is_kept = !found && put_locked(made, &evicted);
    eddy_lock_release(&lock);
    if (!is_kept)
        destroy(made);
    destroy(evicted);
    return is_kept ? made : found;
}

const void *eddy_prepared_acquire(const eddy_prepared_kind *kind, const void *key) {
    pthread_once(&watched, watch_forks);
    uint64_t hash = eddy_hash64(key, kind->key_bytes, 0);
    entry *e = find(kind, key, hash);
    if (!e)
        e = add(kind, key, hash);
    if (!e || e->is_served)
        return e ? e->memory : NULL;
    eddy_prepared_release(e->memory);
    return NULL;
}

void eddy_prepared_release(const void *prepared) {
    entry *e = (entry *)((char *)(uintptr_t)prepared - offsetof(entry, memory));
    eddy_lock_acquire(&lock);
    e->user_count--;
    eddy_lock_release(&lock);
}
