#include <interpreter/host/transfer.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/status.h>
#include <eddy/function.h>
#include <eddy/grad.h>
#include <interpreter/call/copy.h>
#include <interpreter/call/recorder.h>

/* ---- as a call of programs ---- */

/* A run copies storages, and never comes here. */
static void run_never(const eddy_kernel_call *call) {
    EDDY_ASSERT(call == NULL);
    (void)call;
}

static eddy_status infer_transfer(eddy_infer *infer) {
    infer->outputs[0] = infer->inputs[0];
    return EDDY_OK;
}

static const eddy_kernel transfer_kernel = {.name = "to_device", .run = run_never};
static const eddy_kernel *const transfer_kernels[] = {&transfer_kernel};
static const eddy_op_operand transfer_operands[] = {
    {.name = "tensor", .kind = EDDY_OPERAND_TENSOR}};
static const char *const transfer_outputs[] = {"copy"};

const eddy_op eddy_transfer_op = {.name = "to_device",
                                  .id = EDDY_OP_REGISTERED,
                                  .operands = transfer_operands,
                                  .operand_count = 1,
                                  .outputs = transfer_outputs,
                                  .output_count = 1,
                                  .result = EDDY_RESULT_RULE,
                                  .infer = infer_transfer,
                                  .kernels = transfer_kernels};

static void record(const eddy_caller *caller, eddy_tensor *row, eddy_tensor *copy,
                   const void *address) {
    eddy_tensor *views[] = {row, copy};
    eddy_apply apply = {
        .op = &eddy_transfer_op, .inputs = &row, .input_count = 1, .address = address};
    eddy_vm_operand operands[] = {
        {.storage = row->storage, .access = EDDY_ACCESS_CONST},
        {.storage = copy->storage,
         .access = EDDY_ACCESS_MUT,
         .is_new = true,
         .bytes = copy->count * eddy_dtype_size((eddy_dtype)copy->dtype)}};
    eddy_recorder_call call = {.apply = &apply,
                               .kernel = &transfer_kernel,
                               .compute = (eddy_dtype)row->dtype,
                               .views = views,
                               .view_count = 2,
                               .input_count = 1,
                               .operands = operands,
                               .runtime = row->runtime,
                               .device = eddy_tensor_device(copy)};
    caller->recorder->call(caller->recorder, &call);
}

/* ---- without a gradient ---- */

static const char *name_transfer(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "to_device";
}

/* In place of a copy: its elements are lost. */
static eddy_status note_copy(const eddy_caller *caller, eddy_vm *vm, int64_t bytes, uint8_t device,
                             const void *address, eddy_storage_number *storage) {
    eddy_vm_operand operand = {
        .access = EDDY_ACCESS_MUT, .is_new = true, .device = device, .bytes = bytes};
    static const eddy_vm_descriptor descriptor = {.name = name_transfer};
    eddy_vm_call call = {
        .instruction = {.descriptor = &descriptor, .operand_count = 1, .address = address},
        .operands = &operand};
    eddy_status status = eddy_vm_make_lost(vm, &call, caller->recorder->lost);
    *storage = operand.storage;
    return status;
}

static eddy_status copy_storage(const eddy_caller *caller, const eddy_tensor *row, uint8_t device,
                                const void *address, eddy_storage_number *storage) {
    int64_t each = eddy_dtype_size((eddy_dtype)row->dtype);
    eddy_vm *vm = row->runtime->vm;
    return eddy_recorder_lets_run(caller)
               ? eddy_vm_copy(vm, NULL, row->storage, row->offset * each, row->count * each, device,
                              address, storage)
               : note_copy(caller, vm, row->count * each, device, address, storage);
}

static eddy_status transfer_row(eddy_caller *caller, eddy_tensor *tensor, eddy_device device,
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
    eddy_status status = copy_storage(caller, tensor, eddy_runtime_vm_device(runtime, device),
                                      origin.address, &made->storage);
    if (status != EDDY_OK) {
        eddy_tensor_discard(caller, made);
        return status;
    }
    if (EDDY_UNLIKELY(caller->recorder != NULL))
        record(caller, tensor, made, origin.address);
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
    return tensor->autograd && eddy_caller_self->no_grad == 0
               ? transfer_taped(tensor, device, origin, copy)
               : transfer(tensor, device, origin, copy);
}
