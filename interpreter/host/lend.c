/* Memory lent to the program, eddy_map and eddy_unmap, and to code of its device, eddy_lend_begin and eddy_lend_end. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/sleep.h>
#include <base/status.h>
#include <eddy/lend.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/stream.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/host.h>

/* An open lend; it holds a reference on the tensor. */
typedef struct open_lend {
    struct open_lend *next; /* lock: lends */
    uint64_t thread;        /* the lender's number */
    eddy_tensor *tensor;
    eddy_vm_lend *lend;
    bool is_there; /* to code of the device */
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
    return EDDY_OK;
}

/* The thread has been granted it. */
static void note(open_lend *open, const eddy_caller *caller, eddy_tensor *tensor, int flags) {
    if (flags & EDDY_WRITE)
        eddy_tensor_written(tensor);
    eddy_tensor_retain(tensor);
    open->tensor = tensor;
    open->thread = caller->thread;
    eddy_lock_acquire(&lends.lock);
    open->next = lends.first;
    lends.first = open;
    eddy_lock_release(&lends.lock);
}

/* What is asked of a lend. */
typedef struct lending {
    eddy_tensor *tensor;
    int flags;
    int64_t deadline;
    eddy_vm_stream *stream; /* to code of the device; NULL: to the program */
    eddy_origin origin;
} lending;

static eddy_status grant(const lending *asked, void **data, void **native, eddy_vm_lend **lend) {
    const eddy_tensor *tensor = asked->tensor;
    const bool is_mut = (asked->flags & EDDY_WRITE) != 0;
    const eddy_vm_wait wait = {eddy_clock_left(asked->deadline), asked->origin};
    eddy_vm *vm = tensor->runtime->vm;
    return asked->stream ? eddy_vm_lend_begin_there(vm, tensor->storage, is_mut, asked->stream,
                                                    &wait, data, native, lend)
                         : eddy_vm_lend_begin(vm, tensor->storage, is_mut, &wait, data, lend);
}

static eddy_status begin(const eddy_caller *caller, const lending *asked, void **data,
                         void **native) {
    open_lend *open = eddy_memory_acquire(sizeof(*open), EDDY_MEMORY_HANDLE);
    if (!open)
        return eddy_fail(EDDY_OUT_OF_MEMORY, asked->origin, "no memory for the lend");
    eddy_status status = grant(asked, data, native, &open->lend);
    if (status != EDDY_OK) {
        eddy_memory_release(open, sizeof(*open), EDDY_MEMORY_HANDLE);
        return status;
    }
    open->is_there = asked->stream != NULL;
    note(open, caller, asked->tensor, asked->flags);
    return EDDY_OK;
}

static void *first_element(const eddy_tensor *tensor, void *data) {
    return (char *)data + tensor->offset * (int64_t)eddy_dtype_bytes((eddy_dtype)tensor->dtype);
}

void *eddy_map(eddy_tensor *tensor, int flags, int64_t timeout) {
    static char nothing; /* the address of tensors without elements */
    eddy_origin origin = EDDY_ORIGIN("map");
    eddy_caller *caller = eddy_caller_get();
    if (check(caller, tensor, flags, origin) != EDDY_OK)
        return NULL;
    if ((flags & EDDY_WRITE) &&
        eddy_recorder_refuse(caller,
                             "no run would write it again: write before the recording, or "
                             "copy an input with eddy_copy_into",
                             origin) != EDDY_OK)
        return NULL;
    /* One deadline for the shape and for access to the memory. */
    int64_t deadline = eddy_clock_deadline(timeout);
    void *data;
    if (eddy_tensor_await_shape_until(tensor, deadline, origin) != EDDY_OK ||
        begin(caller, &(lending){tensor, flags, deadline, NULL, origin}, &data, NULL) != EDDY_OK)
        return NULL;
    if (!data || tensor->count == 0)
        return &nothing;
    char *first = first_element(tensor, data);
    if (!(flags & EDDY_WRITE))
        eddy_recorder_read_lent(caller, tensor, origin, deadline, first);
    return first;
}

/* ---- to code of the device ---- */

static eddy_status check_there(const eddy_caller *caller, eddy_device device, eddy_lend *lend,
                               eddy_origin origin) {
    if (!lend || lend->size < sizeof(*lend))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "lend is NULL, or does not say its size");
    eddy_status status = eddy_recorder_refuse(
        caller, "no run would launch it again: make it an op of your own", origin);
    if (status != EDDY_OK || device.kind == EDDY_DEVICE_CUDA)
        return status;
    char name[32];
    eddy_device_format(device, name, sizeof(name));
    return eddy_fail(
        EDDY_UNSUPPORTED, origin,
        "%s runs no code but the library's: eddy_map shows the elements to the program", name);
}

eddy_status eddy_lend_begin(eddy_tensor *tensor, int flags, int64_t timeout, eddy_lend *lend) {
    eddy_origin origin = EDDY_ORIGIN("lend_begin");
    eddy_caller *caller = eddy_caller_get();
    eddy_status status = check(caller, tensor, flags, origin);
    if (status != EDDY_OK)
        return status;
    const eddy_device device = {(eddy_device_kind)tensor->device_kind, tensor->device_index};
    status = check_there(caller, device, lend, origin);
    if (status != EDDY_OK)
        return status;
    eddy_runtime *runtime = tensor->runtime;
    eddy_vm_stream *stream =
        eddy_stream_of_caller(caller, runtime, eddy_runtime_vm_device(runtime, device));
    const int64_t deadline = eddy_clock_deadline(timeout);
    void *data, *native;
    status = eddy_tensor_await_shape_until(tensor, deadline, origin);
    if (status == EDDY_OK)
        status = begin(caller, &(lending){tensor, flags, deadline, stream, origin}, &data, &native);
    if (status != EDDY_OK)
        return status;
    lend->data = data && tensor->count > 0 ? first_element(tensor, data) : NULL;
    lend->stream = native;
    return EDDY_OK;
}

/* ---- the end ---- */

/* The thread's newest lend of the tensor, else the newest of all. */
static open_lend **find_locked(const eddy_tensor *tensor, uint64_t thread, bool is_there) {
    open_lend **other = NULL;
    for (open_lend **place = &lends.first; *place; place = &(*place)->next) {
        if ((*place)->tensor != tensor || (*place)->is_there != is_there)
            continue;
        if ((*place)->thread == thread)
            return place;
        if (!other)
            other = place;
    }
    return other;
}

static open_lend *take(const eddy_tensor *tensor, uint64_t thread, bool is_there) {
    eddy_lock_acquire(&lends.lock);
    open_lend **place = find_locked(tensor, thread, is_there), *found = place ? *place : NULL;
    if (found)
        *place = found->next;
    eddy_lock_release(&lends.lock);
    return found;
}

static eddy_status fail_captured(eddy_status status, eddy_device device, eddy_origin origin) {
    char name[32];
    eddy_device_format(device, name, sizeof(name));
    return eddy_fail(status, origin,
                     "the lent stream was left capturing, so that nothing on it runs: %s is lost",
                     name);
}

static eddy_status end(eddy_tensor *tensor, bool is_there, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    open_lend *open = take(tensor, caller->thread, is_there);
    if (!open)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the tensor is not %s",
                         is_there ? "lent" : "mapped");
    /* Also while the runtime shuts down, which waits for this. */
    eddy_vm *vm = tensor->runtime->vm;
    if (is_there)
        status = eddy_vm_lend_end_there(vm, open->lend);
    else
        eddy_vm_lend_end(vm, open->lend, false);
    eddy_memory_release(open, sizeof(*open), EDDY_MEMORY_HANDLE);
    const eddy_device device = eddy_tensor_device(tensor);
    eddy_tensor_drop(tensor);
    return status == EDDY_OK ? EDDY_OK : fail_captured(status, device, origin);
}

eddy_status eddy_unmap(eddy_tensor *tensor) {
    return end(tensor, false, EDDY_ORIGIN("unmap"));
}

eddy_status eddy_lend_end(eddy_tensor *tensor) {
    return end(tensor, true, EDDY_ORIGIN("lend_end"));
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
