#include <interpreter/host/transfer.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/function.h>
#include <eddy/grad.h>
#include <eddy/view.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/recorder.h>

/* ---- without a gradient ---- */

/* A storage of `device` with the tensor's elements, which lie in a row. Between two devices they go through the host. */
static eddy_status copy_storage(const eddy_tensor *tensor, uint8_t device, const void *address,
                                eddy_storage_number *storage) {
    eddy_vm *vm = tensor->runtime->vm;
    int64_t each = eddy_dtype_size((eddy_dtype)tensor->dtype);
    int64_t offset = tensor->offset * each, bytes = tensor->count * each;
    if (device == 0 || eddy_tensor_device(tensor).kind == EDDY_DEVICE_CPU)
        return eddy_vm_copy(vm, NULL, tensor->storage, offset, bytes, device, address, storage);
    eddy_status status =
        eddy_vm_copy(vm, NULL, tensor->storage, offset, bytes, 0, address, storage);
    return status == EDDY_OK ? eddy_vm_upload(vm, storage, device, address) : status;
}

static eddy_tensor *transfer_row(eddy_caller *caller, const eddy_tensor *tensor, eddy_device device,
                                 eddy_origin origin) {
    eddy_runtime *runtime = tensor->runtime;
    eddy_tensor *made =
        eddy_scope_reserve(caller, 1) ? eddy_tensor_acquire(caller, runtime, origin.address) : NULL;
    if (!made) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a handle");
        return NULL;
    }
    eddy_shape shape;
    eddy_tensor_shape(tensor, &shape);
    made->dtype = tensor->dtype;
    eddy_tensor_set_device(made, device);
    eddy_tensor_lay(made, shape.rank, shape.dims, tensor->count);
    if (copy_storage(tensor, eddy_runtime_vm_device(runtime, device), origin.address,
                     &made->storage) != EDDY_OK) {
        eddy_tensor_discard(caller, made);
        return NULL;
    }
    return made;
}

eddy_tensor *eddy_transfer_elements(eddy_caller *caller, eddy_tensor *tensor, eddy_device device,
                                    eddy_origin origin) {
    if (tensor->is_contiguous)
        return transfer_row(caller, tensor, device, origin);
    eddy_tensor *row;
    if (eddy_copy_contiguous(caller, tensor, origin.address, &row) != EDDY_OK)
        return NULL;
    eddy_tensor *made = transfer_row(caller, row, device, origin);
    eddy_tensor_drop(row);
    return made;
}

static eddy_tensor *transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_self;
    if (!eddy_scope_reserve(caller, 1)) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "the scope cannot grow");
        return NULL;
    }
    eddy_tensor *made = eddy_transfer_elements(caller, tensor, device, origin);
    if (made)
        eddy_scope_own(caller, made);
    return made;
}

/* ---- with one: the way back ---- */

typedef struct journey {
    eddy_device from, to;
} journey;

/* What the call before has recorded. */
static eddy_status failed_status(void) {
    eddy_error error;
    return eddy_error_peek(&error) ? error.status : EDDY_INTERNAL;
}

static eddy_status go(eddy_forward_call *call) {
    const journey *way = call->context;
    call->outputs[0] = transfer(call->inputs[0], way->to, EDDY_ORIGIN("to_device"));
    return call->outputs[0] ? EDDY_OK : failed_status();
}

static eddy_status go_back(eddy_backward_call *call) {
    const journey *way = call->context;
    call->results[0] = eddy_to_device(call->grads[0], way->from);
    return call->results[0] ? EDDY_OK : failed_status();
}

static void destroy(void *context) {
    eddy_memory_release(context, sizeof(journey), EDDY_MEMORY_TAPE);
}

static const eddy_function to_device_function = {.size = sizeof(eddy_function),
                                                 .name = "to_device",
                                                 .output_count = 1,
                                                 .forward = go,
                                                 .backward = go_back,
                                                 .destroy = destroy,
                                                 .is_pure = true};

static eddy_tensor *transfer_taped(eddy_tensor *tensor, eddy_device device, eddy_origin origin) {
    journey *way = eddy_memory_acquire(sizeof(*way), EDDY_MEMORY_TAPE);
    if (!way) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the gradient");
        return NULL;
    }
    *way = (journey){eddy_tensor_device(tensor), device};
    eddy_tensor *made = NULL;
    if (eddy_function_call(&to_device_function, way, (eddy_list){&tensor, 1}, &made) != EDDY_OK)
        destroy(way);
    return made;
}

eddy_tensor *eddy_transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_self;
    if (eddy_recorder_refuse(caller,
                             "programs run on the CPU: copy before the recording, or after it",
                             origin) != EDDY_OK)
        return NULL;
    return tensor->autograd && caller->no_grad == 0 ? transfer_taped(tensor, device, origin)
                                                    : transfer(tensor, device, origin);
}
