#include <interpreter/handle/tensor.h>

#include <base/dtype.h>
#include <base/log.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <dlfcn.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/shape_table.h>
#include <interpreter/tape/autograd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cache ---- */

static void push_free(eddy_caller *caller, eddy_tensor *tensor) {
    tensor->link.link.next = (eddy_lifo_link *)caller->free_handles;
    caller->free_handles = tensor;
}

/* Returns an ended handle to its owner. Any thread. */
static void recycle(eddy_tensor *tensor) {
    eddy_caller *owner = tensor->owner;
    if (EDDY_LIKELY(owner == eddy_caller_self))
        push_free(owner, tensor);
    else
        eddy_lifo_push(&owner->returned, &tensor->link.link);
}

static void recycle_link(eddy_vm_release_link *link) {
    recycle((eddy_tensor *)((char *)link - offsetof(struct eddy_tensor, link)));
}

static bool add_slab(eddy_caller *caller) {
    eddy_handle_slab *slab = eddy_memory_acquire_zeroed(EDDY_HANDLE_SLAB_BYTES, EDDY_MEMORY_HANDLE);
    if (!slab)
        return false;
    for (int i = EDDY_HANDLE_SLAB_COUNT - 1; i >= 0; i--) {
        slab->handles[i].owner = caller;
        push_free(caller, &slab->handles[i]);
    }
    slab->next = caller->slabs;
    caller->slabs = slab;
    return true;
}

static void take_returned(eddy_caller *caller) {
    for (eddy_lifo_link *link = eddy_lifo_take_all(&caller->returned); link;) {
        eddy_lifo_link *next = link->next;
        push_free(caller, (eddy_tensor *)((char *)link - offsetof(struct eddy_tensor, link)));
        link = next;
    }
}

eddy_tensor *eddy_tensor_acquire_slow(eddy_caller *caller) {
    take_returned(caller);
    if (!caller->free_handles && !add_slab(caller))
        return NULL;
    return caller->free_handles;
}

void eddy_tensor_rebind(eddy_tensor *tensor, eddy_runtime *runtime) {
    eddy_runtime_bind(runtime);
    if (tensor->runtime)
        eddy_runtime_unbind(tensor->runtime);
    tensor->runtime = runtime;
}

/* A thread's slabs by address. */
typedef struct slab_index {
    eddy_handle_slab **slabs;
    size_t count;
} slab_index;

static int by_address(const void *a, const void *b) {
    const eddy_handle_slab *first = *(eddy_handle_slab *const *)a,
                           *second = *(eddy_handle_slab *const *)b;
    return (first > second) - (first < second);
}

static bool index_init(slab_index *index, const eddy_caller *caller) {
    *index = (slab_index){0};
    size_t count = 0;
    for (const eddy_handle_slab *slab = caller->slabs; slab; slab = slab->next)
        count++;
    if (count == 0 ||
        !(index->slabs = eddy_memory_acquire(count * sizeof(*index->slabs), EDDY_MEMORY_HANDLE)))
        return false;
    for (eddy_handle_slab *slab = caller->slabs; slab; slab = slab->next)
        index->slabs[index->count++] = slab;
    qsort(index->slabs, count, sizeof(*index->slabs), by_address);
    return true;
}

static void index_fini(slab_index *index) {
    eddy_memory_release(index->slabs, index->count * sizeof(*index->slabs), EDDY_MEMORY_HANDLE);
}

/* The last one that begins at or before the handle. */
static eddy_handle_slab *slab_of(const slab_index *index, const eddy_tensor *tensor) {
    size_t begin = 0, end = index->count;
    while (end - begin > 1) {
        size_t middle = begin + (end - begin) / 2;
        if ((const char *)index->slabs[middle] <= (const char *)tensor)
            begin = middle;
        else
            end = middle;
    }
    return index->slabs[begin];
}

/* Sorts the cached handles: those of slabs that are cached completely are dropped, the others are cached again. */
static void keep_of_others(eddy_caller *caller, const slab_index *index) {
    eddy_tensor *rest = caller->free_handles;
    caller->free_handles = NULL;
    while (rest) {
        eddy_tensor *tensor = rest;
        rest = (eddy_tensor *)tensor->link.link.next;
        if (slab_of(index, tensor)->cached < EDDY_HANDLE_SLAB_COUNT)
            push_free(caller, tensor);
        else if (tensor->runtime)
            eddy_runtime_unbind(tensor->runtime);
    }
}

/* Frees slabs whose handles are all cached; none if there is no memory to sort them. */
static int64_t trim_slabs(eddy_caller *caller) {
    take_returned(caller);
    slab_index index;
    if (!index_init(&index, caller))
        return 0;
    for (size_t i = 0; i < index.count; i++)
        index.slabs[i]->cached = 0;
    for (eddy_tensor *tensor = caller->free_handles; tensor;
         tensor = (eddy_tensor *)tensor->link.link.next)
        slab_of(&index, tensor)->cached++;
    keep_of_others(caller, &index);
    index_fini(&index);
    int64_t bytes = 0;
    for (eddy_handle_slab **place = &caller->slabs; *place;) {
        eddy_handle_slab *slab = *place;
        if (slab->cached < EDDY_HANDLE_SLAB_COUNT) {
            place = &slab->next;
            continue;
        }
        *place = slab->next;
        eddy_memory_release(slab, EDDY_HANDLE_SLAB_BYTES, EDDY_MEMORY_HANDLE);
        bytes += (int64_t)EDDY_HANDLE_SLAB_BYTES;
    }
    return bytes;
}

int64_t eddy_caller_trim(eddy_caller *caller) {
    return trim_slabs(caller) + eddy_scope_trim(caller) + eddy_caller_scratch_trim(caller);
}

/* ---- end ---- */

void eddy_tensor_discard(eddy_caller *caller, eddy_tensor *tensor) {
    eddy_store_relaxed(&tensor->references, 0u);
    eddy_store_relaxed(&tensor->key, (eddy_tensor_key)0);
    eddy_caller_count(caller, -1);
    recycle(tensor);
}

/* Whether a root's storage may wait for the thread's next call: it is small, of known size, and has no deleter. */
static bool may_wait(const eddy_tensor *root) {
    return root->link.after == 0 && !eddy_load_relaxed(&root->is_late) &&
           root->count <= EDDY_PENDING_RELEASE_BYTES / (int64_t)sizeof(double);
}

/* Releases the storage to the VM, and the handle to its owner, now or when the VM has recycled the link. */
static void release_storage(eddy_caller *caller, eddy_tensor *root) {
    if (EDDY_LIKELY(caller != NULL && may_wait(root)) &&
        eddy_pending_release_add(caller, &caller->pending, root->runtime, root->storage)) {
        recycle(root);
        return;
    }
    root->link.storage = root->storage;
    root->link.recycle = recycle_link;
    eddy_vm_release(root->runtime->vm, &root->link);
}

void eddy_tensor_finish(eddy_tensor *tensor) {
    eddy_caller *caller = eddy_caller_self; /* NULL in a thread that only releases */
    for (;;) {
        if (EDDY_LIKELY(caller != NULL))
            eddy_caller_count(caller, -1);
        else
            eddy_caller_live_add(-1);
        if (EDDY_UNLIKELY(tensor->autograd != 0))
            eddy_autograd_set(tensor, 0);
        eddy_store_relaxed(&tensor->key, (eddy_tensor_key)0);
        eddy_tensor *root = tensor->root;
        if (EDDY_LIKELY(root == tensor)) {
            if (EDDY_UNLIKELY(eddy_load_relaxed(&tensor->is_saved)))
                eddy_store_relaxed(&tensor->is_saved, false);
            release_storage(caller, tensor);
            return;
        }
        tensor->stands_in = false;
        recycle(tensor);
        if (eddy_load_acquire(&root->references) != 1 &&
            eddy_sub_acq_rel(&root->references, 1u) != 1)
            return;
        eddy_store_relaxed(&root->references, 0u);
        tensor = root;
    }
}

/* ---- layout ---- */

void eddy_tensor_lay(eddy_tensor *tensor, int32_t rank, const int64_t *dims, int64_t count) {
    int64_t stride = 1;
    for (int32_t d = rank - 1; d >= 0; d--) {
        tensor->axes[d].dim = dims[d];
        tensor->axes[d].stride = stride;
        stride *= dims[d] > 1 ? dims[d] : 1;
    }
    tensor->rank = (int8_t)rank;
    tensor->count = count;
    tensor->is_contiguous = true;
}

void eddy_tensor_lay_like(eddy_tensor *tensor, int32_t rank, const int64_t *dims, int64_t count,
                          const eddy_tensor *like) {
    EDDY_ASSERT(like->rank == rank);
    if (like->is_contiguous) {
        eddy_tensor_lay(tensor, rank, dims, count);
        return;
    }
    eddy_layout layout, followed;
    eddy_tensor_layout(like, &followed);
    layout.rank = rank;
    layout.offset = 0;
    memcpy(layout.dims, dims, sizeof(*dims) * (size_t)rank);
    eddy_shape_strides_follow(rank, dims, &followed.strides, 1, layout.strides);
    eddy_tensor_set_layout(tensor, &layout);
}

void eddy_tensor_lay_last(eddy_tensor *tensor, const eddy_shape *shape) {
    int32_t rank = shape->rank, channels = rank - 3;
    EDDY_ASSERT(channels >= 0);
    eddy_layout layout = {.rank = rank};
    int64_t stride = shape->dims[channels] > 1 ? shape->dims[channels] : 1;
    memcpy(layout.dims, shape->dims, sizeof(layout.dims));
    for (int32_t d = rank - 1; d >= 0; d--) {
        layout.strides[d] = d == channels ? 1 : stride;
        stride *= d != channels && layout.dims[d] > 1 ? layout.dims[d] : 1;
    }
    eddy_tensor_set_layout(tensor, &layout);
}

void eddy_tensor_set_layout(eddy_tensor *tensor, const eddy_layout *layout) {
    int64_t count = 1;
    for (int32_t d = 0; d < layout->rank; d++)
        count *= layout->dims[d];
    tensor->offset = layout->offset;
    if (eddy_layout_is_contiguous(layout)) {
        eddy_tensor_lay(tensor, layout->rank, layout->dims, count);
        return;
    }
    for (int32_t d = 0; d < layout->rank; d++) {
        tensor->axes[d].dim = layout->dims[d];
        tensor->axes[d].stride = layout->strides[d];
    }
    tensor->rank = (int8_t)layout->rank;
    tensor->count = count;
    tensor->is_contiguous = false;
}

void eddy_tensor_layout(const eddy_tensor *tensor, eddy_layout *layout) {
    layout->rank = tensor->rank;
    layout->offset = tensor->offset;
    for (int32_t d = 0; d < tensor->rank; d++) {
        layout->dims[d] = tensor->axes[d].dim;
        layout->strides[d] = tensor->axes[d].stride;
    }
}

void eddy_tensor_shape(const eddy_tensor *tensor, eddy_shape *shape) {
    shape->rank = tensor->rank;
    for (int32_t d = 0; d < tensor->rank; d++)
        shape->dims[d] = tensor->axes[d].dim;
}

uint32_t eddy_tensor_shape_number(const eddy_tensor *tensor) {
    eddy_tensor_key key = eddy_load_relaxed(&tensor->key);
    if (key != 0)
        return eddy_tensor_key_shape(key);
    eddy_shape shape;
    eddy_tensor_shape(tensor, &shape);
    return eddy_shape_table_intern(shape.rank, shape.dims);
}

#define ORDER_BITS 3
#define ORDERED_AXES (16 / ORDER_BITS)

/* The rank of each axis' stride: with the shape this determines the strides, if they leave no gaps. 0 if they
 * do, or if there is no room. */
static uint16_t order_code(const eddy_tensor *tensor) {
    int64_t reach = 1;
    for (int32_t d = 0; d < tensor->rank; d++)
        reach += (tensor->axes[d].dim - 1) * tensor->axes[d].stride;
    if (tensor->rank > ORDERED_AXES || reach != tensor->count)
        return 0;
    eddy_layout layout;
    int64_t strides[EDDY_RANK_MAX];
    eddy_tensor_layout(tensor, &layout);
    eddy_shape_strides_follow(layout.rank, layout.dims, &layout.strides, 1, strides);
    uint32_t code = 0;
    for (int32_t d = 0; d < layout.rank; d++) {
        if (strides[d] != layout.strides[d])
            return 0;
        for (int32_t e = 0; e < layout.rank; e++)
            code += (uint32_t)(strides[e] < strides[d]) << ORDER_BITS * d;
    }
    return (uint16_t)code;
}

eddy_tensor_key eddy_tensor_find_key(eddy_tensor *tensor) {
    if (eddy_load_relaxed(&tensor->references) == 0 || eddy_tensor_is_late(tensor) ||
        tensor->offset != 0 || tensor->device_kind != EDDY_DEVICE_CPU)
        return 0;
    uint16_t order = tensor->is_contiguous ? 0 : order_code(tensor);
    if (order == 0 && !tensor->is_contiguous)
        return 0;
    uint32_t number = eddy_tensor_shape_number(tensor);
    if (number == 0)
        return 0;
    eddy_tensor_key key = eddy_tensor_key_make(number, order, tensor->dtype);
    if (tensor->autograd)
        key |= EDDY_TENSOR_KEY_RECORDED;
    eddy_store_release(&tensor->key, key);
    return key;
}

/* Makes a new handle refer to the tensor's storage. */
static void show(eddy_tensor *handle, const eddy_tensor *tensor, const eddy_layout *layout) {
    handle->dtype = tensor->dtype;
    handle->device_kind = tensor->device_kind;
    handle->device_index = tensor->device_index;
    handle->root = tensor->root;
    handle->storage = tensor->storage;
    eddy_tensor_retain(handle->root);
    eddy_tensor_set_layout(handle, layout);
}

eddy_tensor *eddy_tensor_view(eddy_caller *caller, eddy_tensor *tensor, const eddy_layout *layout,
                              eddy_origin origin) {
    eddy_tensor *view = eddy_tensor_acquire(caller, tensor->runtime, origin.address);
    if (!view) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a handle");
        return NULL;
    }
    show(view, tensor, layout);
    return view;
}

void eddy_tensor_alias(eddy_tensor *alias, const eddy_tensor *tensor) {
    eddy_layout layout;
    eddy_tensor_layout(tensor, &layout);
    show(alias, tensor, &layout);
}

void eddy_tensor_find_order(const eddy_tensor *tensor, uint8_t *order) {
    eddy_layout layout;
    int64_t strides[EDDY_RANK_MAX];
    eddy_tensor_layout(tensor, &layout);
    eddy_shape_strides_follow(layout.rank, layout.dims, &layout.strides, 1, strides);
    for (int32_t d = 0; d < layout.rank; d++) {
        int32_t at = d;
        for (; at > 0 && strides[order[at - 1]] < strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = (uint8_t)d;
    }
}

/* ---- checks of arguments ---- */

eddy_status eddy_tensor_refuse(const eddy_tensor *tensor, const char *what, eddy_origin origin) {
    if (!tensor) {
        /* It failed before, and the slot holds the reason; only an empty slot gets a new record. */
        eddy_error error;
        if (eddy_error_peek(&error))
            return EDDY_INVALID_ARGUMENT;
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s is NULL", what);
    }
    if (eddy_tensor_is_none(tensor))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "%s is EDDY_NONE, which stands for absent optional operands only", what);
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s was released before, or is no tensor",
                     what);
}

eddy_status eddy_tensor_check_item(const eddy_tensor *tensor, const char *list, int64_t item,
                                   eddy_origin origin) {
    if (EDDY_LIKELY(eddy_tensor_is_live(tensor)))
        return EDDY_OK;
    char what[96];
    snprintf(what, sizeof(what), "%s[%lld]", list, (long long)item);
    return eddy_tensor_refuse(tensor, what, origin);
}

/* A late shape is written once, by the first thread that asks for it. */
static eddy_lock late_lock;

eddy_status eddy_tensor_await_late_shape(eddy_tensor *tensor, int64_t deadline,
                                         eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime = tensor->runtime;
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    eddy_shape shape;
    eddy_recorder_read_other(caller, tensor, origin);
    eddy_status status = eddy_vm_late_shape(runtime->vm, tensor->storage, &wait, &shape);
    if (status != EDDY_OK)
        return status;
    eddy_lock_acquire(&late_lock);
    if (eddy_load_relaxed(&tensor->is_late)) {
        int64_t count = 1;
        for (int32_t d = 0; d < shape.rank; d++)
            count *= shape.dims[d];
        eddy_tensor_lay(tensor, shape.rank, shape.dims, count);
        eddy_store_release(&tensor->is_late, false);
    }
    eddy_lock_release(&late_lock);
    return EDDY_OK;
}

void eddy_tensor_fork_child(void) {
    late_lock = (eddy_lock){0};
}

eddy_status eddy_tensor_check_shape(const eddy_tensor *tensor, eddy_origin origin) {
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    return status == EDDY_OK ? eddy_tensor_await_shape((eddy_tensor *)tensor, origin) : status;
}

eddy_status eddy_tensor_check_shape_until(eddy_tensor *tensor, int64_t deadline,
                                          eddy_origin origin) {
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    return status == EDDY_OK ? eddy_tensor_await_shape_until(tensor, deadline, origin) : status;
}

eddy_status eddy_tensor_check_item_shape(eddy_tensor *tensor, const char *list, int64_t item,
                                         eddy_origin origin) {
    eddy_status status = eddy_tensor_check_item(tensor, list, item, origin);
    return status == EDDY_OK ? eddy_tensor_await_shape(tensor, origin) : status;
}

int eddy_tensor_describe(const eddy_tensor *tensor, char *buffer, size_t size) {
    const char *dtype = eddy_dtype_name((eddy_dtype)tensor->dtype);
    if (eddy_tensor_is_late(tensor))
        return snprintf(buffer, size, "%s[?]", dtype);
    eddy_shape shape;
    eddy_tensor_shape(tensor, &shape);
    char text[EDDY_RANK_MAX * 22];
    eddy_shape_format(shape.rank, shape.dims, text, sizeof(text));
    return snprintf(buffer, size, "%s%s", dtype, text);
}

/* ---- leaks ---- */

static void report(const eddy_tensor *tensor) {
    char text[320];
    eddy_tensor_describe(tensor, text, sizeof(text));
    const void *address = eddy_call_site_address(tensor->address);
    const char *name = eddy_call_site_place(tensor->address);
    Dl_info place;
    if (!name && address && dladdr(address, &place))
        name = place.dli_sname ? place.dli_sname : place.dli_fname;
    eddy_log_answer("live tensor %s, %u references%s, made by the call at %p (%s)", text,
                    eddy_load_relaxed(&tensor->references),
                    tensor->root == tensor ? "" : ", a view", address, name ? name : "?");
}

int64_t eddy_leaks_report(void) {
    int64_t count = 0;
    for (const eddy_caller *caller = eddy_caller_first(); caller; caller = caller->next)
        for (const eddy_handle_slab *slab = caller->slabs; slab; slab = slab->next)
            for (int i = 0; i < EDDY_HANDLE_SLAB_COUNT; i++)
                if (eddy_load_acquire(&slab->handles[i].references) != 0) {
                    report(&slab->handles[i]);
                    count++;
                }
    return count;
}

int64_t eddy_live_count(void) {
    return eddy_caller_live_count();
}
