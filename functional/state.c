#include <functional/state.h>

#include <base/hash.h>
#include <base/memory.h>
#include <stdbool.h>
#include <string.h>

/* Attributes, then dtype, rank, shape and strides of each view. */
static size_t key_size(const eddy_op_call *call, size_t attribute_bytes) {
    size_t bytes = attribute_bytes;
    for (int32_t i = 0; i < call->view_count; i++)
        bytes += 2 * sizeof(int32_t) + (call->views[i].rank > 0 ? (size_t)call->views[i].rank * 16 : 0);
    return bytes;
}

static char *append(char *key, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(key, data, bytes);
    return key + bytes;
}

static void write_key(char *key, const eddy_op_call *call, size_t attribute_bytes) {
    key = append(key, call->attributes, attribute_bytes);
    for (int32_t i = 0; i < call->view_count; i++) {
        const eddy_op_view *view = &call->views[i];
        int32_t head[2] = {(int32_t)view->dtype, view->rank};
        key = append(key, head, sizeof(head));
        size_t bytes = view->rank > 0 ? (size_t)view->rank * sizeof(int64_t) : 0;
        key = append(key, view->shape, bytes);
        key = append(key, view->strides, bytes);
    }
}

static size_t entry_bytes(const eddy_state_entry *entry) {
    return sizeof(*entry) + entry->key_bytes;
}

/* The entry equal to `wanted`, moved to the front and counted; NULL when there is none. */
static eddy_state_entry *take_locked(eddy_state_cache *cache, const eddy_state_entry *wanted) {
    for (eddy_state_entry **link = &cache->first; *link; link = &(*link)->next) {
        eddy_state_entry *entry = *link;
        if (entry->hash != wanted->hash || entry->key_bytes != wanted->key_bytes ||
            memcmp(entry->key, wanted->key, entry->key_bytes) != 0)
            continue;
        *link = entry->next;
        entry->next = cache->first;
        cache->first = entry;
        entry->user_count++;
        return entry;
    }
    return NULL;
}

/* Unlinks the least recently used entry that nobody uses, where there are too many; NULL otherwise. */
static eddy_state_entry *evict_locked(eddy_state_cache *cache) {
    eddy_state_entry **last = NULL;
    if (cache->count <= EDDY_STATE_MAX)
        return NULL;
    for (eddy_state_entry **link = &cache->first; *link; link = &(*link)->next)
        if ((*link)->user_count == 0)
            last = link;
    eddy_state_entry *entry = last ? *last : NULL;
    if (entry) {
        *last = entry->next;
        cache->count--;
    }
    return entry;
}

static void destroy(const eddy_op_kernel *kernel, eddy_state_entry *entry) {
    if (!entry)
        return;
    if (entry->state && kernel->destroy)
        kernel->destroy(entry->state);
    eddy_memory_release(entry, entry_bytes(entry), EDDY_MEMORY_CACHE);
}

#define STACK_VIEWS 16

/* kernel->prepare on views without data, which the state may not depend on; NULL without memory too. */
static void *prepare_without_data(const eddy_op_kernel *kernel, const eddy_op_call *call) {
    eddy_op_view on_stack[STACK_VIEWS], *views = on_stack;
    size_t bytes = (size_t)call->view_count * sizeof(*views);
    if (call->view_count > STACK_VIEWS && !(views = eddy_memory_acquire(bytes, EDDY_MEMORY_WORKSPACE)))
        return NULL;
    memcpy(views, call->views, bytes);
    for (int32_t i = 0; i < call->view_count; i++)
        views[i].data = NULL;
    eddy_op_call without = *call;
    without.views = views;
    void *state = kernel->prepare(&without);
    if (views != on_stack)
        eddy_memory_release(views, bytes, EDDY_MEMORY_WORKSPACE);
    return state;
}

eddy_state_entry *eddy_state_acquire(eddy_state_cache *cache, const eddy_op_kernel *kernel, const eddy_op_call *call,
                                     size_t attribute_bytes) {
    size_t bytes = key_size(call, attribute_bytes);
    eddy_state_entry *made = eddy_memory_acquire(sizeof(*made) + bytes, EDDY_MEMORY_CACHE);
    if (!made)
        return NULL;
    *made = (eddy_state_entry){.user_count = 1, .key_bytes = bytes};
    write_key(made->key, call, attribute_bytes);
    made->hash = eddy_hash64(made->key, bytes, 0);

    eddy_lock_acquire(&cache->lock);
    eddy_state_entry *found = take_locked(cache, made);
    eddy_lock_release(&cache->lock);
    if (!found) {
        made->state = prepare_without_data(kernel, call);
        if (!made->state) {
            destroy(kernel, made);
            return NULL;
        }
        eddy_lock_acquire(&cache->lock);
        found = take_locked(cache, made);
        if (!found) {
            made->next = cache->first;
            cache->first = made;
            cache->count++;
            found = made;
        }
        eddy_lock_release(&cache->lock);
    }
    if (found != made)
        destroy(kernel, made);
    return found;
}

void eddy_state_release(eddy_state_cache *cache, const eddy_op_kernel *kernel, eddy_state_entry *entry) {
    eddy_lock_acquire(&cache->lock);
    entry->user_count--;
    eddy_state_entry *evicted = evict_locked(cache);
    eddy_lock_release(&cache->lock);
    destroy(kernel, evicted);
}
