#include <interpreter/host/host.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/sleep.h>
#include <base/status.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/tensor.h>
#include <interpreter/host/row_major.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- in ---- */

/* The runtime of a new tensor from host memory, after checks of shape and device; *bytes: those of its elements. */
static eddy_runtime *check_new(eddy_caller *caller, eddy_origin origin, const void *data,
                               const eddy_shape *shape, eddy_dtype dtype, const eddy_device *asked,
                               eddy_device *device, int64_t *count, int64_t *bytes) {
    eddy_runtime *runtime;
    if (eddy_runtime_of_caller(caller, origin, &runtime) != EDDY_OK)
        return NULL;
    if (!eddy_runtime_is_running(runtime)) {
        eddy_runtime_refuse(runtime, origin, "");
        return NULL;
    }
    if (!eddy_dtype_is_valid(dtype)) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%d is no dtype", (int)dtype);
        return NULL;
    }
    if (shape->rank < 0 || shape->rank > EDDY_RANK_MAX) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "rank %d is not within 0 and %d", (int)shape->rank,
                  EDDY_RANK_MAX);
        return NULL;
    }
    char text[EDDY_RANK_MAX * 22];
    eddy_shape_format(shape->rank, shape->dims, text, sizeof(text));
    for (int32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] < 0) {
            eddy_fail(EDDY_INVALID_ARGUMENT, origin, "shape %s has a negative dim", text);
            return NULL;
        }
    if (!eddy_shape_is_valid(shape) || !eddy_shape_count(shape->rank, shape->dims, count) ||
        __builtin_mul_overflow(*count, (int64_t)eddy_dtype_bytes(dtype), bytes)) {
        eddy_fail(EDDY_SIZE_OVERFLOW, origin, "%s%s does not fit into 63 bits",
                  eddy_dtype_name(dtype), text);
        return NULL;
    }
    if (!data && *count > 0) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "data is NULL");
        return NULL;
    }
    return eddy_runtime_device(caller, runtime, asked, origin, device) == EDDY_OK ? runtime : NULL;
}

/* A handle for a tensor that fills its storage; NULL with the error recorded. */
static eddy_tensor *make(eddy_caller *caller, eddy_runtime *runtime, eddy_origin origin,
                         const eddy_shape *shape, eddy_dtype dtype, eddy_device device,
                         int64_t count) {
    eddy_tensor *tensor =
        eddy_scope_reserve(caller, 1) ? eddy_tensor_acquire(caller, runtime, origin.address) : NULL;
    if (!tensor) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a handle");
        return NULL;
    }
    tensor->dtype = (uint8_t)dtype;
    eddy_tensor_set_device(tensor, device);
    eddy_tensor_lay(tensor, shape->rank, shape->dims, count);
    return tensor;
}

/* The tensor's elements are on the host, and go to its device. */
static eddy_status upload(eddy_tensor *tensor, int64_t bytes, uint8_t vm_device,
                          eddy_origin origin) {
    eddy_storage_number source = tensor->storage;
    tensor->storage = 0;
    return eddy_vm_upload(tensor->runtime->vm, source, bytes, vm_device, origin.address,
                          &tensor->storage);
}

eddy_tensor *eddy_from_data(const void *data, eddy_shape shape, eddy_dtype dtype,
                            const eddy_from_data_options *options) {
    eddy_origin origin = EDDY_ORIGIN("from_data");
    eddy_caller *caller = eddy_caller_get();
    eddy_device device;
    int64_t count, bytes;
    eddy_runtime *runtime = check_new(caller, origin, data, &shape, dtype,
                                      options ? &options->device : NULL, &device, &count, &bytes);
    eddy_tensor *tensor =
        runtime ? make(caller, runtime, origin, &shape, dtype, device, count) : NULL;
    if (!tensor)
        return NULL;
    void *memory;
    if (eddy_vm_storage_create(runtime->vm, bytes, &tensor->storage, &memory) != EDDY_OK) {
        eddy_tensor_discard(caller, tensor);
        return NULL;
    }
    if (bytes > 0)
        memcpy(memory, data, (size_t)bytes);
    eddy_vm_storage_written(runtime->vm);
    uint8_t vm_device = eddy_runtime_vm_device(runtime, device);
    if (EDDY_UNLIKELY(vm_device != 0) && upload(tensor, bytes, vm_device, origin) != EDDY_OK) {
        eddy_tensor_discard(caller, tensor);
        return NULL;
    }
    eddy_scope_own(caller, tensor);
    return tensor;
}

/* ---- borrowed buffers ---- */

/* Memory of the host stays there, whatever the device of creation ops is. */
static eddy_status check_on_host(const eddy_device *asked, eddy_device *device,
                                 eddy_origin origin) {
    bool is_asked = asked && asked->kind != EDDY_DEVICE_DEFAULT;
    if (is_asked && device->kind != EDDY_DEVICE_CPU)
        return eddy_fail(EDDY_UNSUPPORTED, origin,
                         "the buffer is the host's: eddy_to_device copies the tensor");
    *device = EDDY_CPU;
    return EDDY_OK;
}

typedef struct borrowed {
    void (*deleter)(void *context);
    void *context;
} borrowed;

/* Inside the deleter only retain and release are allowed. */
static void end_borrow(void *context) {
    borrowed *borrow = context;
    eddy_caller *caller = eddy_caller_get();
    eddy_callback_kind before = caller ? caller->callback : EDDY_CALLBACK_NONE;
    if (caller)
        caller->callback = EDDY_CALLBACK_DELETER;
    if (borrow->deleter)
        borrow->deleter(borrow->context);
    if (caller)
        caller->callback = before;
    eddy_memory_release(borrow, sizeof(*borrow), EDDY_MEMORY_HANDLE);
}

/* Elements from the first to the last of a layout; false if they, or their bytes, overflow int64. */
static bool find_span(const eddy_layout *layout, size_t element_bytes, int64_t *span,
                      int64_t *bytes) {
    int64_t reach = 1, step;
    for (int32_t d = 0; d < layout->rank; d++) {
        if (layout->dims[d] == 0) {
            *span = *bytes = 0;
            return true;
        }
        if (__builtin_mul_overflow(layout->dims[d] - 1, layout->strides[d], &step) ||
            __builtin_add_overflow(reach, step, &reach))
            return false;
    }
    *span = reach;
    return !__builtin_mul_overflow(reach, (int64_t)element_bytes, bytes);
}

/* Replaces the handle of the whole memory by the requested view. */
static eddy_tensor *show_strided(eddy_caller *caller, const eddy_borrow *given,
                                 const eddy_layout *layout, eddy_tensor *whole, borrowed *borrow) {
    eddy_tensor *view = eddy_tensor_view(caller, whole, layout, given->origin);
    if (!view)
        borrow->deleter = NULL; /* the caller keeps the memory */
    eddy_tensor_drop(whole);
    return view;
}

/* What is borrowed: a row of elements, which the asked view shows if `is_strided`. */
typedef struct borrowing {
    eddy_runtime *runtime;
    eddy_device device;
    eddy_layout layout;
    bool is_strided;
    eddy_shape whole_shape;
    int64_t count, bytes;
} borrowing;

static eddy_status check_borrow(eddy_caller *caller, const eddy_borrow *given, borrowing *as) {
    eddy_origin origin = given->origin;
    as->runtime = check_new(caller, origin, given->data, given->shape, given->dtype, given->device,
                            &as->device, &as->count, &as->bytes);
    if (!as->runtime)
        return EDDY_INVALID_ARGUMENT;
    if (!given->is_there && check_on_host(given->device, &as->device, origin) != EDDY_OK)
        return EDDY_UNSUPPORTED;
    as->whole_shape = *given->shape;
    as->layout = (eddy_layout){.rank = given->shape->rank};
    if (given->strides) {
        memcpy(as->layout.dims, given->shape->dims, sizeof(as->layout.dims));
        memcpy(as->layout.strides, given->strides,
               (size_t)as->layout.rank * sizeof(*as->layout.strides));
    }
    as->is_strided = given->strides && !eddy_layout_is_contiguous(&as->layout);
    if (as->is_strided) {
        if (!find_span(&as->layout, eddy_dtype_bytes(given->dtype), &as->count, &as->bytes))
            return eddy_fail(EDDY_SIZE_OVERFLOW, origin, "the strides reach beyond 63 bits");
        as->whole_shape = (eddy_shape){1, {as->count}};
    }
    if ((uintptr_t)given->data % eddy_dtype_bytes(given->dtype) != 0)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "data is not aligned for %s",
                         eddy_dtype_name(given->dtype));
    return EDDY_OK;
}

/* On failure the deleter stays the caller's. */
static eddy_status borrow_storage(const eddy_borrow *given, const borrowing *as, borrowed *borrow,
                                  eddy_storage_number *storage) {
    eddy_vm *vm = as->runtime->vm;
    if (!given->is_there)
        return eddy_vm_storage_borrow(vm, given->data, as->bytes, end_borrow, borrow, storage);
    return eddy_vm_storage_borrow_there(vm, eddy_runtime_vm_device(as->runtime, as->device),
                                        given->data, as->bytes, end_borrow, borrow, given->origin,
                                        storage);
}

eddy_tensor *eddy_host_borrow(const eddy_borrow *given) {
    eddy_origin origin = given->origin;
    eddy_caller *caller = eddy_caller_get();
    borrowing as;
    if (check_borrow(caller, given, &as) != EDDY_OK)
        return NULL;
    borrowed *borrow = eddy_memory_acquire(sizeof(*borrow), EDDY_MEMORY_HANDLE);
    eddy_tensor *tensor = NULL;
    if (!borrow) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the deleter");
        return NULL;
    }
    *borrow = (borrowed){given->deleter, given->context};
    tensor = make(caller, as.runtime, origin, &as.whole_shape, given->dtype, as.device, as.count);
    if (!tensor || borrow_storage(given, &as, borrow, &tensor->storage) != EDDY_OK)
        goto fail;
    tensor->link.after = 1;
    if (given->producer && eddy_vm_storage_follow(as.runtime->vm, tensor->storage, given->producer,
                                                  origin) != EDDY_OK) {
        borrow->deleter = NULL; /* the caller keeps the memory */
        eddy_tensor_drop(tensor);
        return NULL;
    }
    if (as.is_strided)
        tensor = show_strided(caller, given, &as.layout, tensor, borrow);
    if (tensor)
        eddy_scope_own(caller, tensor);
    return tensor;

fail:
    if (tensor)
        eddy_tensor_discard(caller, tensor);
    eddy_memory_release(borrow, sizeof(*borrow), EDDY_MEMORY_HANDLE);
    return NULL;
}

eddy_tensor *eddy_from_buffer(void *data, eddy_shape shape, eddy_dtype dtype,
                              void (*deleter)(void *context), void *context,
                              const eddy_from_buffer_options *options) {
    return eddy_host_borrow(&(eddy_borrow){.data = data,
                                           .shape = &shape,
                                           .dtype = dtype,
                                           .deleter = deleter,
                                           .context = context,
                                           .device = options ? &options->device : NULL,
                                           .origin = EDDY_ORIGIN("from_buffer")});
}

/* ---- checks of arguments ---- */

/* Whether the calling thread may read or wait for the tensor; a late shape may be open. */
static eddy_status check(const eddy_tensor *tensor, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    eddy_status status = eddy_tensor_check(tensor, "tensor", origin);
    if (status == EDDY_OK && !eddy_runtime_is_running(tensor->runtime)) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        return eddy_runtime_refuse(tensor->runtime, origin, text);
    }
    return status;
}

static eddy_status check_known(eddy_tensor *tensor, int64_t deadline, eddy_origin origin) {
    eddy_status status = check(tensor, origin);
    return status == EDDY_OK ? eddy_tensor_await_shape_until(tensor, deadline, origin) : status;
}

static size_t element_bytes(const eddy_tensor *tensor) {
    return eddy_dtype_bytes((eddy_dtype)tensor->dtype);
}

/* ---- reading ---- */

#define SMALL_BYTES 64

/* Of a read that a recording knows of. */
static eddy_status read_elements(eddy_tensor *tensor, void *buffer, int64_t deadline,
                                 eddy_origin origin) {
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    eddy_vm *vm = tensor->runtime->vm;
    size_t bytes = element_bytes(tensor);
    if (tensor->is_contiguous && tensor->count > 0 &&
        (size_t)tensor->count * bytes <= SMALL_BYTES) {
        /* On failure the buffer must be unchanged. */
        char small[SMALL_BYTES];
        size_t total = (size_t)tensor->count * bytes;
        eddy_status status = eddy_vm_read_small(
            vm, tensor->storage, tensor->offset * (int64_t)bytes, total, small, &wait);
        if (status == EDDY_OK)
            memcpy(buffer, small, total);
        return status;
    }
    void *data;
    eddy_vm_lend *lend;
    eddy_status status = eddy_vm_lend_begin(vm, tensor->storage, false, &wait, &data, &lend);
    if (status != EDDY_OK)
        return status;
    eddy_layout layout;
    eddy_tensor_layout(tensor, &layout);
    if (tensor->count > 0)
        eddy_row_major_copy(&layout, bytes, data, buffer, eddy_vm_team(vm));
    eddy_vm_lend_end(vm, lend, false);
    return EDDY_OK;
}

/* Whether the elements, each of so many bytes, fill the buffer exactly. */
static eddy_status check_buffer(const eddy_tensor *tensor, size_t each, const void *buffer,
                                size_t bytes, const char *as, eddy_origin origin) {
    size_t wanted = (size_t)tensor->count * each;
    if (bytes == wanted && (buffer || wanted == 0))
        return EDDY_OK;
    if (bytes == wanted)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the buffer is NULL");
    char text[EDDY_RANK_MAX * 22];
    eddy_tensor_describe(tensor, text, sizeof(text));
    return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%s%s%s takes %zu bytes, the buffer has %zu",
                     text, *as ? " as " : "", as, wanted, bytes);
}

eddy_status eddy_read(eddy_tensor *tensor, void *buffer, size_t bytes,
                      const eddy_read_options *options) {
    eddy_origin origin = EDDY_ORIGIN("read");
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    eddy_status status = check_known(tensor, deadline, origin);
    if (status == EDDY_OK)
        status = check_buffer(tensor, element_bytes(tensor), buffer, bytes, "", origin);
    if (status != EDDY_OK)
        return status;
    tensor = eddy_recorder_read_elements(eddy_caller_self, tensor, origin, deadline);
    return read_elements(tensor, buffer, deadline, origin);
}

eddy_status eddy_read_as(eddy_tensor *tensor, eddy_dtype dtype, void *buffer, size_t bytes,
                         const eddy_read_options *options) {
    eddy_origin origin = EDDY_ORIGIN("read_as");
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    if (!eddy_dtype_is_valid(dtype))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "%d is no dtype", (int)dtype);
    eddy_status status = check_known(tensor, deadline, origin);
    if (status == EDDY_OK)
        status = check_buffer(tensor, eddy_dtype_bytes(dtype), buffer, bytes,
                              eddy_dtype_name(dtype), origin);
    if (status != EDDY_OK)
        return status;
    eddy_caller *caller = eddy_caller_get();
    tensor =
        eddy_recorder_read_elements(caller, tensor, origin, deadline); /* not what it is cast to */
    if (tensor->dtype == (uint8_t)dtype)
        return read_elements(tensor, buffer, deadline, origin);
    eddy_recorder *recorder = eddy_recorder_set_aside(caller);
    eddy_tensor *converted;
    status = eddy_copy_cast(caller, tensor, dtype, origin.address, &converted);
    eddy_recorder_go_on(caller, recorder);
    if (status != EDDY_OK)
        return status;
    status = read_elements(converted, buffer, deadline, origin);
    eddy_tensor_drop(converted);
    return status;
}

/* The only element of a tensor. */
static eddy_status read_one(eddy_tensor *tensor, uint64_t *bits, const eddy_read_options *options,
                            eddy_origin origin) {
    int64_t deadline = EDDY_OPTION_DEADLINE(options);
    eddy_status status = check_known(tensor, deadline, origin);
    if (status != EDDY_OK)
        return status;
    if (tensor->count != 1) {
        char text[EDDY_RANK_MAX * 22];
        eddy_tensor_describe(tensor, text, sizeof(text));
        return eddy_fail(EDDY_SHAPE_MISMATCH, origin, "%s has not one element", text);
    }
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    size_t bytes = element_bytes(tensor);
    tensor = eddy_recorder_read_elements(eddy_caller_self, tensor, origin, deadline);
    return eddy_vm_read_small(tensor->runtime->vm, tensor->storage, tensor->offset * (int64_t)bytes,
                              bytes, bits, &wait);
}

static eddy_status read_f64(eddy_tensor *tensor, double *value, const eddy_read_options *options,
                            eddy_origin origin) {
    uint64_t bits = 0;
    if (!value)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "value is NULL");
    eddy_status status = read_one(tensor, &bits, options, origin);
    if (status == EDDY_OK)
        *value = eddy_dtype_load_f64((eddy_dtype)tensor->dtype, &bits);
    return status;
}

static eddy_status read_i64(eddy_tensor *tensor, int64_t *value, const eddy_read_options *options,
                            eddy_origin origin) {
    uint64_t bits = 0;
    if (!value)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "value is NULL");
    eddy_status status = read_one(tensor, &bits, options, origin);
    if (status == EDDY_OK)
        *value = eddy_dtype_load_i64((eddy_dtype)tensor->dtype, &bits);
    return status;
}

eddy_status eddy_read_f64(eddy_tensor *tensor, double *value, const eddy_read_options *options) {
    return read_f64(tensor, value, options, EDDY_ORIGIN("read_f64"));
}

eddy_status eddy_read_i64(eddy_tensor *tensor, int64_t *value, const eddy_read_options *options) {
    return read_i64(tensor, value, options, EDDY_ORIGIN("read_i64"));
}

double eddy_item_f64(eddy_tensor *tensor, const eddy_read_options *options) {
    double value = NAN;
    return read_f64(tensor, &value, options, EDDY_ORIGIN("item_f64")) == EDDY_OK ? value : NAN;
}

int64_t eddy_item_i64(eddy_tensor *tensor, const eddy_read_options *options) {
    int64_t value = INT64_MIN;
    return read_i64(tensor, &value, options, EDDY_ORIGIN("item_i64")) == EDDY_OK ? value
                                                                                 : INT64_MIN;
}

/* ---- waiting ---- */

bool eddy_is_ready(const eddy_tensor *tensor) {
    if (eddy_tensor_check(tensor, "tensor", EDDY_ORIGIN("is_ready")) != EDDY_OK)
        return false;
    return !eddy_runtime_is_running(tensor->runtime) ||
           eddy_vm_is_ready(tensor->runtime->vm, tensor->storage);
}

int eddy_explain(const eddy_tensor *tensor, char *buffer, size_t size) {
    eddy_origin origin = EDDY_ORIGIN("explain");
    size_t length;
    if (eddy_tensor_check(tensor, "tensor", origin) != EDDY_OK)
        return -1;
    if (size > 0 && !buffer) {
        eddy_fail(EDDY_INVALID_ARGUMENT, origin, "there is no room for the text");
        return -1;
    }
    eddy_vm_explain(tensor->runtime->vm, tensor->storage, buffer, size, &length);
    return (int)length;
}

eddy_status eddy_host_wait(eddy_tensor *tensor, int64_t deadline, eddy_origin origin) {
    eddy_status status = check(tensor, origin);
    eddy_vm_wait wait = {eddy_clock_left(deadline), origin};
    return status == EDDY_OK ? eddy_vm_wait_storage(tensor->runtime->vm, tensor->storage, &wait)
                             : status;
}

eddy_status eddy_wait(eddy_tensor *tensor, int64_t timeout) {
    eddy_origin origin = EDDY_ORIGIN("wait");
    eddy_status status = check(tensor, origin);
    eddy_vm_wait wait = {timeout, origin};
    return status == EDDY_OK ? eddy_vm_wait_storage(tensor->runtime->vm, tensor->storage, &wait)
                             : status;
}

eddy_status eddy_error_of(eddy_tensor *tensor, int64_t timeout, eddy_error *error) {
    eddy_origin origin = EDDY_ORIGIN("error_of");
    eddy_status status = check(tensor, origin);
    if (status != EDDY_OK)
        return status;
    eddy_error record = {0};
    eddy_vm_wait wait = {timeout, origin};
    eddy_recorder_read_other(eddy_caller_self, tensor, origin);
    status = eddy_vm_poison(tensor->runtime->vm, tensor->storage, &wait, &record);
    if (error)
        *error = record;
    return status;
}
