#include <interpreter/host/transfer.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/function.h>
#include <eddy/grad.h>
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
    return status == EDDY_OK ? eddy_vm_upload(vm, storage, bytes, device, address) : status;
}

static eddy_status transfer_row(eddy_caller *caller, const eddy_tensor *tensor, eddy_device device,
                                eddy_origin origin, eddy_tensor **copy) {
    eddy_runtime *runtime = tensor->runtime;
    eddy_tensor *made = eddy_tensor_acquire(caller, runtime, origin.address);
    if (!made)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a handle");
    eddy_shape shape;
    eddy_tensor_shape(tensor, &shape);
    made->dtype = tensor->dtype;
    eddy_tensor_set_device(made, device);
    eddy_tensor_lay(made, shape.rank, shape.dims, tensor->count);
    eddy_status status = copy_storage(tensor, eddy_runtime_vm_device(runtime, device),
                                      origin.address, &made->storage);
    if (status != EDDY_OK) {
        eddy_tensor_discard(caller, made);
        return status;
    }
    *copy = made;
    return EDDY_OK;
}

eddy_status eddy_transfer_elements(eddy_caller *caller, eddy_tensor *tensor, eddy_device device,
                                   eddy_origin origin, eddy_tensor **copy) {
    if (tensor->is_contiguous)
        return transfer_row(caller, tensor, device, origin, copy);
    eddy_tensor *row;
    eddy_status status = eddy_copy_contiguous(caller, tensor, origin.address, &row);
    if (status != EDDY_OK)
        return status;
    status = transfer_row(caller, row, device, origin, copy);
    eddy_tensor_drop(row);
    return status;
}

/* The copy belongs to the scope or the caller. */
static eddy_status transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin,
                            eddy_tensor **copy) {
    eddy_caller *caller = eddy_caller_self;
    if (!eddy_scope_reserve(caller, 1))
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "the scope cannot grow");
    eddy_status status = eddy_transfer_elements(caller, tensor, device, origin, copy);
    if (status == EDDY_OK)
        eddy_scope_own(caller, *copy);
    return status;
}

/* ---- with one: the way back ---- */

typedef struct journey {
    eddy_device from, to;
} journey;

static eddy_status go(eddy_forward_call *call) {
    const journey *way = call->context;
    return transfer(call->inputs[0], way->to, EDDY_ORIGIN("to_device"), &call->outputs[0]);
}

static eddy_status go_back(eddy_backward_call *call) {
    const journey *way = call->context;
    return eddy_transfer(call->grads[0], way->from, EDDY_ORIGIN("to_device"), &call->results[0]);
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

static eddy_status transfer_taped(eddy_tensor *tensor, eddy_device device, eddy_origin origin,
                                  eddy_tensor **copy) {
    journey *way = eddy_memory_acquire(sizeof(*way), EDDY_MEMORY_TAPE);
    if (!way)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the gradient");
    *way = (journey){eddy_tensor_device(tensor), device};
    eddy_status status =
        eddy_function_call(&to_device_function, way, (eddy_list){&tensor, 1}, copy);
    if (status != EDDY_OK)
        destroy(way);
    return status;
}

eddy_status eddy_transfer(eddy_tensor *tensor, eddy_device device, eddy_origin origin,
                          eddy_tensor **copy) {
    eddy_caller *caller = eddy_caller_self;
    eddy_status status = eddy_recorder_refuse(
        caller, "programs run on the CPU: copy before the recording, or after it", origin);
    if (status != EDDY_OK)
        return status;
    return tensor->autograd && caller->no_grad == 0 ? transfer_taped(tensor, device, origin, copy)
                                                    : transfer(tensor, device, origin, copy);
}
