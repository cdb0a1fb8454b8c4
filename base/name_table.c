#include <base/name_table.h>

#include <base/atomic.h>
#include <base/sleep.h>
#include <string.h>

typedef struct name {
    _Atomic(const char *) key;  /* atomic: release, under the lock; NULL: free */
    char text[EDDY_NAME_BYTES]; /* const once there is a key: another op may come to lie there */
} name;

static eddy_lock lock = EDDY_LOCK_OF(EDDY_RANK_LISTENER);
static name names[EDDY_NAMES_MOST]; /* the first is none */

/* By its address, which is what makes it cheap. */
static uint32_t first_place(const char *key) {
    uint64_t hash = ((uintptr_t)key >> 3) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> (64 - EDDY_NAME_BITS));
}

static void add(name *at, const char *key) {
    size_t length = strlen(key);
    eddy_lock_acquire(&lock);
    if (!eddy_load_relaxed(&at->key) && length < EDDY_NAME_BYTES) {
        memcpy(at->text, key, length + 1);
        eddy_store_release(&at->key, key);
    }
    eddy_lock_release(&lock);
}

uint32_t eddy_name_number(const char *key) {
    uint32_t number = first_place(key);
    for (int probe = 0; probe < EDDY_NAME_PROBES; probe++, number++) {
        if (number == 0)
            continue;
        name *at = &names[number];
        if (!eddy_load_acquire(&at->key))
            add(at, key);
        const char *found = eddy_load_acquire(&at->key);
        if (!found)
            return 0;
        if (found == key)
            return strcmp(at->text, key) == 0 ? number : 0;
    }
    return 0;
}

const char *eddy_name_text(uint32_t number) {
    return names[number].text;
}

void eddy_name_table_fork_child(void) {
    eddy_lock_init(&lock, EDDY_RANK_LISTENER);
}
