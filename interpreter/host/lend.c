/* Memory lent to the program: eddy_map and eddy_unmap. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/host.h>

/* An open lend; it holds a reference on the tensor. */
typedef struct open_lend {
    struct open_lend *next; /* lock: lends */
    uint64_t thread;        /* the lender's number */
    eddy_tensor *tensor;
    eddy_vm_lend *lend;
} open_lend;

static struct {
    eddy_lock lock;
    open_lend *first; /* lock: lock; newest first */
} lends;

static eddy_status check(const eddy_caller *caller, const eddy_tensor *tensor, int flags,
                         eddy_origin origin) {
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    if (flags == 0 || (flags & ~(EDDY_READ | EDDY_WRITE)) != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "flags are %d, not EDDY_READ, EDDY_WRITE or both", flags);
    if (!eddy_runtime_is_running(tensor->runtime))
        return eddy_runtime_refuse(tensor->runtime, origin, "");
    if (flags & EDDY_WRITE)
        return eddy_recorder_refuse(caller,
                                    "no run would write it again: write before the recording, or "
                                    "copy an input with eddy_copy_into",
                                    origin);
    return EDDY_OK;
}

void *eddy_map(eddy_tensor *tensor, int flags, int64_t timeout) {
    static char nothing; /* the address of tensors without elements */
    eddy_origin origin = EDDY_ORIGIN("map");
    eddy_caller *caller = eddy_caller_get();
    if (check(caller, tensor, flags, origin) != EDDY_OK)
        return NULL;
    /* One deadline for the shape and for access to the memory. */
    int64_t deadline = eddy_clock_deadline(timeout);
    if (eddy_tensor_await_shape_until(tensor, deadline, origin) != EDDY_OK)
        return NULL;
    open_lend *open = eddy_memory_acquire(sizeof(*open), EDDY_MEMORY_HANDLE);
    if (!open) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the lend");
        return NULL;
    }
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    void *data;
    if (eddy_vm_lend_begin(tensor->runtime->vm, tensor->storage, (flags & EDDY_WRITE) != 0, &wait,
                           &data, &open->lend) != EDDY_OK) {
        eddy_memory_release(open, sizeof(*open), EDDY_MEMORY_HANDLE);
        return NULL;
    }
    if (flags & EDDY_WRITE)
        eddy_tensor_written(tensor);
    eddy_tensor_retain(tensor);
    open->tensor = tensor;
    open->thread = caller->thread;
    eddy_lock_acquire(&lends.lock);
    open->next = lends.first;
    lends.first = open;
    eddy_lock_release(&lends.lock);
    if (!data || tensor->count == 0)
        return &nothing;
    char *first =
        (char *)data + tensor->offset * (int64_t)eddy_dtype_bytes((eddy_dtype)tensor->dtype);
    if (!(flags & EDDY_WRITE))
        eddy_recorder_read_lent(caller, tensor, origin, deadline, first);
    return first;
}

/* The thread's newest lend of the tensor, else the newest of all. */
static open_lend **find_locked(const eddy_tensor *tensor, uint64_t thread) {
    open_lend **other = NULL;
    for (open_lend **place = &lends.first; *place; place = &(*place)->next) {
        if ((*place)->tensor != tensor)
            continue;
        if ((*place)->thread == thread)
            return place;
        if (!other)
            other = place;
    }
    return other;
}

static open_lend *take(const eddy_tensor *tensor, uint64_t thread) {
    eddy_lock_acquire(&lends.lock);
    open_lend **place = find_locked(tensor, thread), *found = place ? *place : NULL;
    if (found)
        *place = found->next;
    eddy_lock_release(&lends.lock);
    return found;
}

eddy_status eddy_unmap(eddy_tensor *tensor) {
    eddy_origin origin = EDDY_ORIGIN("unmap");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    open_lend *open = take(tensor, caller->thread);
    if (!open)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the tensor is not mapped");
    /* Also while the runtime shuts down, which waits for this. */
    eddy_vm_lend_end(tensor->runtime->vm, open->lend, false);
    eddy_memory_release(open, sizeof(*open), EDDY_MEMORY_HANDLE);
    eddy_tensor_drop(tensor);
    return EDDY_OK;
}

bool eddy_host_has_lend(const eddy_runtime *runtime, uint64_t thread) {
    bool has_lend = false;
    eddy_lock_acquire(&lends.lock);
    for (const open_lend *open = lends.first; open && !has_lend; open = open->next)
        has_lend = open->thread == thread && open->tensor->runtime == runtime;
    eddy_lock_release(&lends.lock);
    return has_lend;
}

void eddy_host_fork_child(void) {
    lends.lock = (eddy_lock){0};
}
