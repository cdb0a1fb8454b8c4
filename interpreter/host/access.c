/* Callbacks on a tensor's memory, in order with the ops: eddy_read_async and eddy_access_async. */
#include <interpreter/host/access.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/callback_state.h>
#include <interpreter/host/host.h>
#include <interpreter/host/row_major.h>
#include <streams/team.h>
#include <string.h>

/* The data for the service thread, which frees them. */
typedef struct access {
    eddy_read_callback *read; /* one of the two */
    eddy_access_callback *access;
    void *context;
    const void *address;
    bool is_late; /* the whole storage, whatever its shape */
    bool is_contiguous;
    size_t element_bytes;
    int64_t count;
    eddy_layout layout;
} access;

static void deliver(const access *a, void *data, int64_t bytes, const eddy_error *error) {
    if (a->access)
        a->access(a->context, data, error);
    else
        a->read(a->context, data, bytes, error);
}

/* Strided elements are packed for the reader. */
static void deliver_packed(const access *a, char *data, int64_t bytes) {
    char *packed = eddy_memory_acquire((size_t)bytes, EDDY_MEMORY_WORKSPACE);
    if (!packed) {
        eddy_error error;
        eddy_error_fill(&error, EDDY_OUT_OF_MEMORY, (eddy_origin){"read_async", a->address}, 0,
                        "read_async: no memory for %lld bytes", (long long)bytes);
        deliver(a, NULL, 0, &error);
        return;
    }
    eddy_row_major_copy(&a->layout, a->element_bytes, data, packed, &eddy_team_serial);
    deliver(a, packed, bytes, NULL);
    eddy_memory_release(packed, (size_t)bytes, EDDY_MEMORY_WORKSPACE);
}

/* On the service thread, or in one-thread mode on any calling thread. */
static void access_run(void *context, void *storage, int64_t storage_bytes,
                       const eddy_error *error) {
    static char nothing; /* the address of tensors without elements */
    access *a = context;
    eddy_caller *caller = eddy_caller_get();
    eddy_callback_state kept;
    if (caller)
        eddy_callback_state_leave(caller, &kept);
    char *data = storage ? storage : &nothing;
    int64_t bytes = a->is_late ? storage_bytes : a->count * (int64_t)a->element_bytes;
    if (storage && !a->is_late)
        data += a->layout.offset * (int64_t)a->element_bytes;
    if (error && error->status != EDDY_OK)
        deliver(a, NULL, 0, error);
    else if (a->access || a->is_contiguous || bytes == 0)
        deliver(a, data, bytes, NULL);
    else
        deliver_packed(a, storage, bytes);
    if (caller)
        eddy_callback_state_return(caller, &kept);
    eddy_memory_release(a, sizeof(*a), EDDY_MEMORY_HANDLE);
}

/* ---- as a call of programs ---- */

typedef struct read_attributes {
    eddy_read_callback *callback;
    void *context;
} read_attributes;

/* It is issued behind a run, and no instruction of one. */
static void run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

static eddy_status infer_read(eddy_infer *infer) {
    (void)infer;
    return EDDY_OK;
}

static const eddy_kernel read_kernel = {.name = "read_async", .run = run_nothing};
static const eddy_kernel *const read_kernels[] = {&read_kernel};
static const eddy_op_operand read_operands[] = {{.name = "tensor", .kind = EDDY_OPERAND_TENSOR}};

const eddy_op eddy_access_op = {.name = "read_async",
                                .id = EDDY_OP_REGISTERED,
                                .operands = read_operands,
                                .operand_count = 1,
                                .attribute_bytes = sizeof(read_attributes),
                                .may_fail = true,
                                .result = EDDY_RESULT_RULE,
                                .infer = infer_read,
                                .kernels = read_kernels};

static void record_read(eddy_caller *caller, eddy_tensor *tensor, const access *given,
                        eddy_origin origin) {
    read_attributes attributes = {given->read, given->context};
    eddy_apply apply = {.op = &eddy_access_op,
                        .inputs = &tensor,
                        .input_count = 1,
                        .attributes = &attributes,
                        .address = origin.address};
    eddy_vm_operand operand = {.storage = tensor->storage, .access = EDDY_ACCESS_CONST};
    eddy_recorder_call call = {.apply = &apply,
                               .kernel = &read_kernel,
                               .compute = (eddy_dtype)tensor->dtype,
                               .views = &tensor,
                               .view_count = 1,
                               .input_count = 1,
                               .operands = &operand,
                               .runtime = tensor->runtime,
                               .device = eddy_tensor_device(tensor)};
    caller->recorder->call(caller->recorder, &call);
}

/* Why no run would call it again, as a clause; NULL: each will. */
static const char *refuse_again(const eddy_recorder *recorder, const eddy_tensor *tensor,
                                const access *given) {
    if (!given->read)
        return "no run would call back: do it before the recording, or after it";
    if (eddy_tensor_is_late(tensor))
        return "the shape of what it reads depends on data: give that out, and read it after the "
               "run";
    return recorder->refuse_again(recorder);
}

/* ---- calls ---- */

static eddy_status issue(eddy_tensor *tensor, bool is_mut, const access *given,
                         eddy_origin origin) {
    access *a = eddy_memory_acquire(sizeof(*a), EDDY_MEMORY_HANDLE);
    if (!a)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the callback");
    *a = *given;
    a->address = origin.address;
    a->element_bytes = eddy_dtype_bytes((eddy_dtype)tensor->dtype);
    a->is_late = eddy_tensor_is_late(tensor);
    a->is_contiguous = tensor->is_contiguous;
    if (!a->is_late) {
        a->count = tensor->count;
        eddy_tensor_layout(tensor, &a->layout);
    }
    eddy_status status =
        eddy_vm_access(tensor->runtime->vm, tensor->storage, is_mut, access_run, a, origin);
    if (status != EDDY_OK)
        eddy_memory_release(a, sizeof(*a), EDDY_MEMORY_HANDLE);
    return status;
}

/* While the thread records. The callback may release the tensor before it is recorded. */
static eddy_status submit_recorded(eddy_caller *caller, eddy_tensor *tensor, bool is_mut,
                                   const access *given, eddy_origin origin) {
    const char *reason = refuse_again(caller->recorder, tensor, given);
    eddy_status status = reason ? eddy_recorder_refuse(caller, reason, origin) : EDDY_OK;
    if (status != EDDY_OK)
        return status;
    eddy_tensor_retain(tensor);
    if (reason || eddy_recorder_lets_run(caller))
        status = issue(tensor, is_mut, given, origin);
    if (status == EDDY_OK && !reason)
        record_read(caller, tensor, given, origin);
    eddy_tensor_drop(tensor);
    return status;
}

static eddy_status submit_checked(eddy_caller *caller, eddy_tensor *tensor, bool is_mut,
                                  const access *given, eddy_origin origin) {
    if (!eddy_runtime_is_running(tensor->runtime))
        return eddy_runtime_refuse(tensor->runtime, origin, "");
    return EDDY_LIKELY(caller->recorder == NULL)
               ? issue(tensor, is_mut, given, origin)
               : submit_recorded(caller, tensor, is_mut, given, origin);
}

static eddy_status submit(eddy_tensor *tensor, bool is_mut, const access *given,
                          eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status != EDDY_OK)
        return status;
    if (!given->read && !given->access)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the callback is NULL");
    return submit_checked(caller, tensor, is_mut, given, origin);
}

eddy_status eddy_access_again(eddy_tensor *tensor, const void *attributes, const void *address) {
    eddy_origin origin = {eddy_access_op.name, address};
    read_attributes of;
    memcpy(&of, attributes, sizeof(of));
    access again = {.read = of.callback, .context = of.context};
    return submit_checked(eddy_caller_get(), tensor, false, &again, origin);
}

eddy_status eddy_read_async(eddy_tensor *tensor, eddy_read_callback *callback, void *context) {
    access a = {.read = callback, .context = context};
    return submit(tensor, false, &a, EDDY_ORIGIN("read_async"));
}

eddy_status eddy_access_async(eddy_tensor *tensor, int flags, eddy_access_callback *callback,
                              void *context) {
    eddy_origin origin = EDDY_ORIGIN("access_async");
    if (flags == 0 || (flags & ~(EDDY_READ | EDDY_WRITE)) != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "flags are %d, not EDDY_READ, EDDY_WRITE or both", flags);
    access a = {.access = callback, .context = context};
    eddy_status status = submit(tensor, (flags & EDDY_WRITE) != 0, &a, origin);
    if (status == EDDY_OK && (flags & EDDY_WRITE))
        eddy_tensor_written(tensor);
    return status;
}
