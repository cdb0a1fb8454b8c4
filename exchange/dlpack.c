/* Memory shared with other libraries by DLPack. Order is not shared: see the public header. */
#include <eddy/dlpack.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>
#include <eddy/grad.h>
#include <exchange/dlpack_abi.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/stream.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/host.h>
#include <inttypes.h>
#include <string.h>

#define MAJOR 1
#define MINOR 0

/* DLPack's codes; the bits are those of Eddy's element. */
static const uint8_t codes[EDDY_DTYPE_COUNT] = {
    [EDDY_F32] = kDLFloat, [EDDY_F64] = kDLFloat, [EDDY_F16] = kDLFloat, [EDDY_BF16] = kDLBfloat,
    [EDDY_I8] = kDLInt,    [EDDY_U8] = kDLUInt,   [EDDY_I16] = kDLInt,   [EDDY_I32] = kDLInt,
    [EDDY_I64] = kDLInt,   [EDDY_BOOL] = kDLBool,
};

/* ---- out ---- */

/* A tensor that another library has; freed by its deleter. */
typedef struct exported {
    eddy_tensor *tensor; /* a reference of its own */
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
    union {
        struct DLManagedTensor plain;
        struct DLManagedTensorVersioned versioned;
    } managed;
} exported;

static void end_export(exported *e) {
    eddy_tensor *tensor = e->tensor;
    eddy_memory_release(e, sizeof(*e), EDDY_MEMORY_HANDLE);
    eddy_tensor_drop(tensor);
}

static void delete_plain(struct DLManagedTensor *self) {
    end_export(self->manager_ctx);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) {
    end_export(self->manager_ctx);
}

typedef struct exporting {
    bool is_read_only;
    uintptr_t stream; /* the consumer's */
    int64_t deadline;
    eddy_origin origin;
} exporting;

static eddy_status check_export(eddy_tensor *tensor, const exporting *how) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, how->origin);
    eddy_status status = eddy_tensor_check_shape_until(tensor, how->deadline, how->origin);
    if (status != EDDY_OK)
        return status;
    if (!eddy_runtime_is_running(tensor->runtime))
        return eddy_runtime_refuse(tensor->runtime, how->origin, "");
    eddy_device_kind kind = eddy_tensor_device(tensor).kind;
    if (kind != EDDY_DEVICE_CPU && kind != EDDY_DEVICE_CUDA)
        return eddy_fail(EDDY_UNSUPPORTED, how->origin,
                         "the tensor is neither on the CPU nor on a CUDA device");
    if (kind == EDDY_DEVICE_CPU && how->stream != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, how->origin, "a tensor on the CPU has no stream");
    if (eddy_requires_grad(tensor))
        return eddy_fail(EDDY_INVALID_ARGUMENT, how->origin,
                         "the tensor requires a gradient: detach it first");
    return eddy_recorder_refuse(caller,
                                "no run would see what others write to its memory: export before "
                                "the recording, or after it",
                                how->origin);
}

/* The memory does not move, and is not given up, while the storage lives, so the lend may end at once. */
static eddy_status find_here(const eddy_tensor *tensor, const exporting *how, void **data) {
    eddy_vm_lend *lend;
    eddy_vm_wait wait = {eddy_clock_left(how->deadline), how->origin};
    eddy_status status = eddy_vm_lend_begin(tensor->runtime->vm, tensor->storage,
                                            !how->is_read_only, &wait, data, &lend);
    if (status != EDDY_OK)
        return status;
    eddy_vm_lend_keep(tensor->runtime->vm, lend);
    eddy_vm_lend_end(tensor->runtime->vm, lend, false);
    return EDDY_OK;
}

static eddy_status find_there(const eddy_tensor *tensor, const exporting *how, void **data) {
    eddy_runtime *runtime = tensor->runtime;
    eddy_vm_stream *stream = eddy_stream_of_caller(
        eddy_caller_self, runtime, eddy_runtime_vm_device(runtime, eddy_tensor_device(tensor)));
    eddy_vm_wait wait = {eddy_clock_left(how->deadline), how->origin};
    return eddy_vm_share(runtime->vm, stream, tensor->storage, how->is_read_only, how->stream,
                         &wait, data);
}

/* The tensor's first element, after all issued ops (read-only: all writes), or, on a device, before what the consumer's stream is given from now on. */
static eddy_status find_data(const eddy_tensor *tensor, const exporting *how, void **data) {
    bool is_here = eddy_tensor_device(tensor).kind == EDDY_DEVICE_CPU;
    eddy_status status = is_here ? find_here(tensor, how, data) : find_there(tensor, how, data);
    if (status != EDDY_OK)
        return status;
    *data =
        tensor->count == 0
            ? NULL
            : (char *)*data + tensor->offset * (int64_t)eddy_dtype_bytes((eddy_dtype)tensor->dtype);
    return EDDY_OK;
}

static DLDevice device_shown(eddy_device device) {
    return device.kind == EDDY_DEVICE_CPU ? (DLDevice){kDLCPU, 0}
                                          : (DLDevice){kDLCUDA, device.index};
}

static exported *export_tensor(eddy_tensor *tensor, const exporting *how, DLTensor *shown) {
    void *data;
    if (check_export(tensor, how) != EDDY_OK || find_data(tensor, how, &data) != EDDY_OK)
        return NULL;
    exported *e = eddy_memory_acquire(sizeof(*e), EDDY_MEMORY_HANDLE);
    if (!e) {
        eddy_fail(EDDY_OUT_OF_MEMORY, how->origin, "no memory for the struct");
        return NULL;
    }
    for (int32_t d = 0; d < tensor->rank; d++) {
        e->shape[d] = tensor->axes[d].dim;
        e->strides[d] = tensor->axes[d].stride;
    }
    eddy_dtype dtype = (eddy_dtype)tensor->dtype;
    *shown = (DLTensor){.data = data,
                        .device = device_shown(eddy_tensor_device(tensor)),
                        .ndim = tensor->rank,
                        .dtype = {codes[dtype], (uint8_t)(8 * eddy_dtype_bytes(dtype)), 1},
                        .shape = e->shape,
                        .strides = e->strides};
    eddy_tensor_retain(tensor);
    e->tensor = tensor;
    return e;
}

static uintptr_t stream_of(const eddy_to_dlpack_options *options) {
    return EDDY_HAS_OPTION(options, stream) ? options->stream : 0;
}

struct DLManagedTensorVersioned *eddy_to_dlpack(eddy_tensor *tensor,
                                                const eddy_to_dlpack_options *options) {
    exporting how = {EDDY_OPTION(options, is_read_only), stream_of(options),
                     EDDY_OPTION_DEADLINE(options), EDDY_ORIGIN("to_dlpack")};
    DLTensor shown;
    exported *e = export_tensor(tensor, &how, &shown);
    if (!e)
        return NULL;
    e->managed.versioned = (struct DLManagedTensorVersioned){
        .version = {MAJOR, MINOR},
        .manager_ctx = e,
        .deleter = delete_versioned,
        .flags = how.is_read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
        .dl_tensor = shown};
    return &e->managed.versioned;
}

struct DLManagedTensor *eddy_to_dlpack_unversioned(eddy_tensor *tensor,
                                                   const eddy_to_dlpack_options *options) {
    exporting how = {false, stream_of(options), EDDY_OPTION_DEADLINE(options),
                     EDDY_ORIGIN("to_dlpack_unversioned")};
    if (EDDY_OPTION(options, is_read_only)) {
        eddy_fail(EDDY_UNSUPPORTED, how.origin,
                  "the unversioned struct cannot say that it must not be written");
        return NULL;
    }
    DLTensor shown;
    exported *e = export_tensor(tensor, &how, &shown);
    if (!e)
        return NULL;
    e->managed.plain =
        (struct DLManagedTensor){.dl_tensor = shown, .manager_ctx = e, .deleter = delete_plain};
    return &e->managed.plain;
}

/* ---- in ---- */

/* On the service thread. */
static void end_plain(void *context) {
    struct DLManagedTensor *managed = context;
    if (managed->deleter)
        managed->deleter(managed);
}

static void end_versioned(void *context) {
    struct DLManagedTensorVersioned *managed = context;
    if (managed->deleter)
        managed->deleter(managed);
}

static eddy_status find_dtype(const DLDataType *type, const eddy_borrow *borrow,
                              eddy_dtype *dtype) {
    for (int i = 0; i < EDDY_DTYPE_COUNT; i++)
        if (codes[i] == type->code && 8 * eddy_dtype_bytes((eddy_dtype)i) == type->bits &&
            type->lanes == 1) {
            *dtype = (eddy_dtype)i;
            return EDDY_OK;
        }
    return eddy_fail(EDDY_UNSUPPORTED, borrow->origin,
                     "an element type that Eddy does not have: code %d, %d bits, %d lanes",
                     type->code, type->bits, type->lanes);
}

/* What is pinned or managed is the host's, too. */
static bool is_hosts(DLDevice device) {
    return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
           device.device_type == kDLCUDAManaged;
}

static eddy_status check_import(const DLTensor *given, const eddy_borrow *borrow) {
    bool is_there = given->device.device_type == kDLCUDA;
    if (!is_there && !is_hosts(given->device))
        return eddy_fail(EDDY_UNSUPPORTED, borrow->origin,
                         "a device of type %d, which is neither the CPU nor CUDA's",
                         given->device.device_type);
    if (!is_there && borrow->producer)
        return eddy_fail(EDDY_INVALID_ARGUMENT, borrow->origin,
                         "memory of the host has no stream: wait for it before");
    if (given->ndim < 0 || given->ndim > EDDY_RANK_MAX)
        return eddy_fail(EDDY_UNSUPPORTED, borrow->origin, "rank %d is not within 0 and %d",
                         given->ndim, EDDY_RANK_MAX);
    if (given->ndim > 0 && !given->shape)
        return eddy_fail(EDDY_INVALID_ARGUMENT, borrow->origin, "no shape");
    for (int32_t d = 0; given->strides && d < given->ndim; d++)
        if (given->strides[d] < 0)
            return eddy_fail(EDDY_UNSUPPORTED, borrow->origin, "axis %d has the stride %" PRId64, d,
                             given->strides[d]);
    return EDDY_OK;
}

/* `borrow` has the deleter, the producer's stream and the origin of the call. */
static eddy_tensor *import_tensor(const DLTensor *given, eddy_borrow *borrow) {
    if (check_import(given, borrow) != EDDY_OK ||
        find_dtype(&given->dtype, borrow, &borrow->dtype) != EDDY_OK)
        return NULL;
    eddy_shape shape = {.rank = given->ndim};
    for (int32_t d = 0; d < given->ndim; d++)
        shape.dims[d] = given->shape[d];
    borrow->is_there = given->device.device_type == kDLCUDA;
    const eddy_device device = borrow->is_there ? EDDY_CUDA(given->device.device_id) : EDDY_CPU;
    borrow->data = given->data ? (char *)given->data + given->byte_offset : NULL;
    borrow->shape = &shape;
    borrow->strides = given->strides;
    borrow->device = &device;
    return eddy_host_borrow(borrow);
}

eddy_tensor *eddy_from_dlpack(struct DLManagedTensorVersioned *managed,
                              const eddy_from_dlpack_options *options) {
    eddy_origin origin = EDDY_ORIGIN("from_dlpack");
    if (!managed) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no struct");
        return NULL;
    }
    if (managed->version.major != MAJOR) {
        eddy_fail(EDDY_UNSUPPORTED, origin, "DLPack %u, not %d", managed->version.major, MAJOR);
        return NULL;
    }
    if ((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) &&
        !EDDY_OPTION(options, takes_read_only)) {
        eddy_fail(
            EDDY_UNSUPPORTED, origin,
            "the memory must not be written; the option takes_read_only promises that no op does");
        return NULL;
    }
    eddy_borrow borrow = {.deleter = end_versioned,
                          .context = managed,
                          .producer = EDDY_HAS_OPTION(options, stream) ? options->stream : 0,
                          .origin = origin};
    return import_tensor(&managed->dl_tensor, &borrow);
}

eddy_tensor *eddy_from_dlpack_unversioned(struct DLManagedTensor *managed,
                                          const eddy_from_dlpack_options *options) {
    eddy_origin origin = EDDY_ORIGIN("from_dlpack_unversioned");
    if (!managed) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "no struct");
        return NULL;
    }
    eddy_borrow borrow = {.deleter = end_plain,
                          .context = managed,
                          .producer = EDDY_HAS_OPTION(options, stream) ? options->stream : 0,
                          .origin = origin};
    return import_tensor(&managed->dl_tensor, &borrow);
}
