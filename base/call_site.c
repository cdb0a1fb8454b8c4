#include <base/call_site.h>

#include <base/atomic.h>
#include <base/hash.h>
#include <base/sleep.h>
#include <stdint.h>

/* The number of places that are recorded; calls from others have addresses alone. */
#define SITES_MAX 8192
#define BUCKET_COUNT (2 * SITES_MAX)

typedef struct site {
    const void *address;
    const char *place;
} site;

static struct {
    eddy_lock lock;
    uint32_t count; /* lock: lock */
    _Atomic uint32_t buckets
        [BUCKET_COUNT]; /* atomic: 1 + site; stored under the lock (release) after it, read acquire */
    site sites[SITES_MAX]; /* const once its number is in a bucket */
} table;

_Thread_local const char *eddy_call_site_noted;

const char *eddy_call_site_set(const char *place) {
    const char *before = eddy_call_site_noted;
    eddy_call_site_noted = place;
    return before;
}

/* The site in the probe sequence of `hash`; NULL with *bucket at the free place. */
static site *find(uint64_t hash, const site *wanted, uint32_t *bucket) {
    for (*bucket = (uint32_t)hash % BUCKET_COUNT;; *bucket = (*bucket + 1) % BUCKET_COUNT) {
        uint32_t number = eddy_load_acquire(&table.buckets[*bucket]);
        if (number == 0)
            return NULL;
        site *found = &table.sites[number - 1];
        if (found->address == wanted->address && found->place == wanted->place)
            return found;
    }
}

const void *eddy_call_site_intern(const void *address) {
    site wanted = {address, eddy_call_site_noted};
    uint64_t hash = eddy_hash_64(&wanted, sizeof(wanted), 0);
    uint32_t bucket;
    const site *found = find(hash, &wanted, &bucket);
    if (found)
        return found;
    eddy_lock_acquire(&table.lock);
    found = find(hash, &wanted, &bucket);
    if (!found && table.count < SITES_MAX) {
        table.sites[table.count] = wanted;
        found = &table.sites[table.count++];
        eddy_store_release(&table.buckets[bucket], table.count);
    }
    eddy_lock_release(&table.lock);
    return found ? (const void *)found : address;
}

static const site *site_of(const void *word) {
    uintptr_t at = (uintptr_t)word, first = (uintptr_t)table.sites;
    return at >= first && at < first + sizeof(table.sites) ? word : NULL;
}

const void *eddy_call_site_address(const void *word) {
    const site *known = site_of(word);
    return known ? known->address : word;
}

const char *eddy_call_site_place(const void *word) {
    const site *known = site_of(word);
    return known ? known->place : NULL;
}

void eddy_call_site_fork_child(void) {
    table.lock = (eddy_lock){0};
}
