/* Stores: names and tensors in the order of the names, and a parent. */
#include <program/tensor_store.h>

#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/tape/autograd.h>
#include <string.h>

typedef struct store_item {
    char *name;          /* owned */
    eddy_tensor *tensor; /* a reference */
} store_item;

struct eddy_tensor_store {
    _Atomic uint32_t references; /* atomic: acq_rel when given up */
    eddy_tensor_store *parent;   /* const after init: a reference, or NULL */
    eddy_lock lock;              /* no other is taken while it is held */
    store_item *items;           /* lock: lock; owned, sorted by name */
    int64_t count, capacity;     /* lock: lock */
};

/* ---- life ---- */

eddy_tensor_store *eddy_tensor_store_create(eddy_tensor_store *parent) {
    eddy_tensor_store *store = eddy_memory_acquire_zeroed(sizeof(*store), EDDY_MEMORY_PROGRAM);
    if (!store) {
        eddy_fail(EDDY_OUT_OF_MEMORY, EDDY_ORIGIN("tensor_store_create"), "no memory for a store");
        return NULL;
    }
    eddy_store_relaxed(&store->references, 1u);
    store->parent = eddy_tensor_store_retain(parent);
    return store;
}

eddy_tensor_store *eddy_tensor_store_retain(eddy_tensor_store *store) {
    if (store)
        eddy_add_relaxed(&store->references, 1u);
    return store;
}

static void item_fini(store_item *item) {
    eddy_memory_release(item->name, strlen(item->name) + 1, EDDY_MEMORY_PROGRAM);
    eddy_tensor_drop(item->tensor);
}

static void destroy(eddy_tensor_store *store) {
    for (int64_t i = 0; i < store->count; i++)
        item_fini(&store->items[i]);
    eddy_memory_release(store->items, (size_t)store->capacity * sizeof(*store->items),
                        EDDY_MEMORY_PROGRAM);
    eddy_memory_release(store, sizeof(*store), EDDY_MEMORY_PROGRAM);
}

/* A loop, for chains of parents may be long. */
void eddy_tensor_store_release(eddy_tensor_store **store) {
    eddy_tensor_store *released = store ? *store : NULL;
    if (released)
        *store = NULL;
    while (released && eddy_sub_acq_rel(&released->references, 1u) == 1) {
        eddy_tensor_store *parent = released->parent;
        destroy(released);
        released = parent;
    }
}

/* ---- names ---- */

/* Where the name stands, or would stand. */
static int64_t find_locked(const eddy_tensor_store *store, const char *name, bool *is_there) {
    int64_t low = 0, high = store->count;
    *is_there = false;
    while (low < high && !*is_there) {
        int64_t middle = low + (high - low) / 2;
        int order = strcmp(name, store->items[middle].name);
        if (order > 0)
            low = middle + 1;
        else
            high = middle;
        if (order == 0) {
            *is_there = true;
            return middle;
        }
    }
    return low;
}

/* Room for one more; false without memory. */
static bool grow_locked(eddy_tensor_store *store) {
    if (store->count < store->capacity)
        return true;
    int64_t capacity = store->capacity ? 2 * store->capacity : 8;
    store_item *items = eddy_memory_grow(store->items, (size_t)store->capacity * sizeof(*items),
                                         (size_t)capacity * sizeof(*items), EDDY_MEMORY_PROGRAM);
    if (!items)
        return false;
    store->items = items;
    store->capacity = capacity;
    return true;
}

static eddy_status check_name(const eddy_tensor_store *store, const char *name,
                              eddy_origin origin) {
    if (!store)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the store is NULL");
    if (!name || !*name)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no name");
    const eddy_caller *caller = eddy_caller_get();
    return eddy_caller_may_call(caller) ? EDDY_OK : eddy_caller_refuse(caller, origin);
}

/* ---- set, get, remove ---- */

/* Takes over the item, or gives back what the caller is to end: the item that was there, with its name or the new one. */
static bool put_locked(eddy_tensor_store *store, store_item *item) {
    bool is_there;
    int64_t at = find_locked(store, item->name, &is_there);
    if (is_there) {
        /* The name that is there stays where its users know it. */
        eddy_tensor *before = store->items[at].tensor;
        store->items[at].tensor = item->tensor;
        item->tensor = before;
        return true;
    }
    if (!grow_locked(store))
        return false;
    memmove(&store->items[at + 1], &store->items[at],
            (size_t)(store->count - at) * sizeof(*store->items));
    store->items[at] = *item;
    store->count++;
    *item = (store_item){0};
    return true;
}

eddy_status eddy_tensor_store_set(eddy_tensor_store *store, const char *name, eddy_tensor *tensor) {
    eddy_origin origin = EDDY_ORIGIN("tensor_store_set");
    eddy_status status = check_name(store, name, origin);
    if (status == EDDY_OK)
        status = eddy_tensor_check(tensor, name, origin);
    if (status != EDDY_OK)
        return status;
    size_t bytes = strlen(name) + 1;
    store_item item = {.name = eddy_memory_acquire(bytes, EDDY_MEMORY_PROGRAM), .tensor = tensor};
    if (!item.name)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a name");
    memcpy(item.name, name, bytes);
    eddy_tensor_retain(tensor);
    eddy_lock_acquire(&store->lock);
    bool is_set = put_locked(store, &item);
    eddy_lock_release(&store->lock);
    if (item.name)
        item_fini(&item);
    return is_set ? EDDY_OK : eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a name");
}

eddy_tensor *eddy_tensor_store_take(eddy_tensor_store *store, const char *name) {
    eddy_tensor *tensor = NULL;
    for (; store && !tensor; store = store->parent) {
        bool is_there;
        eddy_lock_acquire(&store->lock);
        int64_t at = find_locked(store, name, &is_there);
        if (is_there) {
            tensor = store->items[at].tensor;
            eddy_tensor_retain(tensor);
        }
        eddy_lock_release(&store->lock);
    }
    return tensor;
}

eddy_tensor *eddy_tensor_store_get(eddy_tensor_store *store, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("tensor_store_get");
    if (check_name(store, name, origin) != EDDY_OK)
        return NULL;
    eddy_tensor *tensor = eddy_tensor_store_take(store, name);
    if (!tensor) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "neither the store nor a parent of it has %.100s",
                  name);
        return NULL;
    }
    eddy_caller *caller = eddy_caller_get();
    eddy_tensor *handle = eddy_autograd_hand_out(caller, tensor, origin);
    if (handle) {
        eddy_autograd_follow(handle, tensor);
        eddy_scope_own(caller, handle);
    }
    eddy_tensor_drop(tensor);
    return handle;
}

eddy_status eddy_tensor_store_remove(eddy_tensor_store *store, const char *name) {
    eddy_origin origin = EDDY_ORIGIN("tensor_store_remove");
    eddy_status status = check_name(store, name, origin);
    if (status != EDDY_OK)
        return status;
    store_item item = {0};
    bool is_there;
    eddy_lock_acquire(&store->lock);
    int64_t at = find_locked(store, name, &is_there);
    if (is_there) {
        item = store->items[at];
        store->count--;
        memmove(&store->items[at], &store->items[at + 1],
                (size_t)(store->count - at) * sizeof(*store->items));
    }
    eddy_lock_release(&store->lock);
    if (!is_there)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the store itself has no %.100s", name);
    item_fini(&item);
    return EDDY_OK;
}

/* ---- listing ---- */

int64_t eddy_tensor_store_count(eddy_tensor_store *store) {
    if (!store) {
        eddy_fail(EDDY_INVALID_ARGUMENT, EDDY_ORIGIN("tensor_store_count"), "the store is NULL");
        return -1;
    }
    eddy_lock_acquire(&store->lock);
    int64_t count = store->count;
    eddy_lock_release(&store->lock);
    return count;
}

const char *eddy_tensor_store_name(eddy_tensor_store *store, int64_t index) {
    eddy_origin origin = EDDY_ORIGIN("tensor_store_name");
    if (!store) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the store is NULL");
        return NULL;
    }
    eddy_lock_acquire(&store->lock);
    int64_t count = store->count;
    const char *name = index >= 0 && index < count ? store->items[index].name : NULL;
    eddy_lock_release(&store->lock);
    if (!name)
        eddy_fail(EDDY_OUT_OF_RANGE, origin, "there is no name %lld: there are %lld",
                  (long long)index, (long long)count);
    return name;
}
