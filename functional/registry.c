/* Built-in ops: a sorted table. Registered ones: open addressing. A reader loads the table (acquire) and its
 * slots (acquire, which pairs with the release that filled them); a larger table is filled before it is
 * published, and an old one is never freed, since a reader may use it: each is twice as large as the one before, so that
 * all old ones together are no larger than the newest. */
#include <functional/registry.h>

#include <base/atomic.h>
#include <base/hash.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <functional/op_table.h>
#include <string.h>

typedef struct table {
    struct table *older; /* const after init: kept reachable */
    size_t slot_count;   /* const after init: a power of two */
    size_t used;         /* lock: guard */
    _Atomic(const eddy_op *)
        slots[]; /* atomic: the holder of `guard` stores (release), readers load (acquire) */
} table;

static eddy_lock guard;
static _Atomic(table *)
    current; /* atomic: the holder of `guard` stores (release), readers load (acquire) */

/* In `count` ops in the order of strcmp. */
static const eddy_op *find_among(const eddy_op *const *ops, uint32_t count, const char *name) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, ops[middle]->name);
        if (order == 0)
            return ops[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const eddy_op *eddy_op_find_built_in(const char *name) {
    const eddy_op *op = find_among(eddy_op_by_name, eddy_op_table_count, name);
    return op ? op : find_among(eddy_op_looped, eddy_op_looped_count, name);
}

static size_t registry_start(const table *t, const char *name) {
    return (size_t)eddy_hash_64(name, strlen(name), 0) & (t->slot_count - 1);
}

static const eddy_op *find_registered(const table *t, const char *name) {
    if (!t)
        return NULL;
    for (size_t i = registry_start(t, name);; i = (i + 1) & (t->slot_count - 1)) {
        const eddy_op *op = eddy_load_acquire(&t->slots[i]);
        if (!op || strcmp(op->name, name) == 0)
            return op;
    }
}

const eddy_op *eddy_op_find(const char *name) {
    const eddy_op *op = find_among(eddy_op_by_name, eddy_op_table_count, name);
    return op ? op : find_registered(eddy_load_acquire(&current), name);
}

static void put(table *t, const eddy_op *op) {
    size_t i = registry_start(t, op->name);
    while (eddy_load_relaxed(&t->slots[i]))
        i = (i + 1) & (t->slot_count - 1);
    eddy_store_release(&t->slots[i], op);
    t->used++;
}

/* A table with room for one more, at least half empty; NULL without memory. Guard held. */
static table *make_room_locked(void) {
    table *old = eddy_load_relaxed(&current);
    if (old && old->used < old->slot_count / 2)
        return old;
    size_t slots = old ? old->slot_count * 2 : 16;
    table *larger = eddy_memory_acquire_zeroed(sizeof(*larger) + slots * sizeof(larger->slots[0]),
                                               EDDY_MEMORY_REGISTRY);
    if (!larger)
        return NULL;
    larger->older = old;
    larger->slot_count = slots;
    for (size_t i = 0; old && i < old->slot_count; i++) {
        const eddy_op *op = eddy_load_relaxed(&old->slots[i]);
        if (op)
            put(larger, op);
    }
    eddy_store_release(&current, larger);
    return larger;
}

eddy_registry_result eddy_registry_add(const eddy_op *op) {
    if (eddy_op_find_built_in(op->name))
        return EDDY_REGISTRY_TAKEN;
    eddy_registry_result result = EDDY_REGISTRY_ADDED;
    eddy_lock_acquire(&guard);
    if (find_registered(eddy_load_relaxed(&current), op->name)) {
        result = EDDY_REGISTRY_TAKEN;
    } else {
        table *t = make_room_locked();
        if (t)
            put(t, op);
        else
            result = EDDY_REGISTRY_FULL;
    }
    eddy_lock_release(&guard);
    return result;
}
