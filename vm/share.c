#include <base/status.h>
#include <vm/marks.h>
#include <vm/service.h>
#include <vm/share.h>
#include <vm/submit.h>
#include <vm/wait.h>

/* The VM does not close until eddy_vm_inside_end. */
static eddy_status enter_for_long(eddy_vm *vm, eddy_origin origin) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    eddy_vm_inside_begin(vm);
    eddy_vm_leave(vm);
    return EDDY_OK;
}

/* ---- out: SHARE ---- */

typedef struct share_arguments {
    eddy_waiter *waiter; /* NULL once it was told */
    uint64_t wants_fence;
} share_arguments;

_Static_assert(sizeof(share_arguments) <= sizeof(((eddy_node *)NULL)->payload), "in its node");

void eddy_share_launch(eddy_vm_device *device, eddy_node *node) {
    share_arguments *arguments = (share_arguments *)(void *)node->payload;
    eddy_waiter *waiter = arguments->waiter;
    eddy_storage *storage =
        eddy_vm_storage(device->vm, eddy_mention_number(node->instruction.mentions[0]));
    eddy_store_relaxed(&storage->shared.is_kept, true);
    if (!waiter)
        return;
    const eddy_backend_class *class = device->backend->class;
    eddy_backend_fence *fence = NULL;
    arguments->waiter = NULL;
    waiter->data = storage->shared.data;
    waiter->status =
        arguments->wants_fence ? class->fence_record(node->queue->under, &fence) : EDDY_OK;
    waiter->device = device->name;
    waiter->fence = fence;
    if (!eddy_waiter_finish(&device->vm->waiters, waiter) && fence)
        class->fence_recycle(device->backend, fence);
}

bool eddy_share_end(eddy_vm *vm, const eddy_instruction *instruction, eddy_node *node) {
    if (!node)
        return false;
    eddy_waiter *waiter = ((const share_arguments *)instruction->view.arguments)->waiter;
    if (!waiter)
        return true;
    const eddy_storage *storage =
        eddy_vm_storage(vm, eddy_mention_number(instruction->mentions[0]));
    waiter->poison = storage->shared.poison;
    waiter->status = waiter->poison ? EDDY_OK : EDDY_DEVICE_LOST;
    waiter->device = vm->devices[storage->shared.device]->name;
    eddy_waiter_finish(&vm->waiters, waiter);
    return true;
}

static eddy_status refuse_device(eddy_origin origin) {
    return eddy_fail(EDDY_UNSUPPORTED, origin, "the device shares no memory");
}

/* The consumer's stream comes after the fence. */
static eddy_status let_consumer_wait(eddy_backend *backend, uintptr_t consumer,
                                     eddy_backend_fence *fence, eddy_origin origin) {
    eddy_status status = backend->class->foreign_wait(backend, consumer, fence);
    backend->class->fence_recycle(backend, fence);
    return status == EDDY_OK
               ? EDDY_OK
               : eddy_fail(status, origin, "the driver refuses the consumer's stream");
}

/* The VM cannot close. */
static eddy_status share(eddy_vm *vm, eddy_vm_stream *stream, eddy_mention mention,
                         uintptr_t consumer, const eddy_vm_wait *wait, void **data) {
    eddy_backend *backend = stream->device->backend;
    if (!backend->class->fence_record)
        return refuse_device(wait->origin);
    eddy_waiter *waiter;
    eddy_status status = eddy_vm_enter_with_waiter(vm, wait, &waiter);
    if (status != EDDY_OK)
        return status;
    eddy_vm_inside_end(vm);
    share_arguments arguments = {waiter, consumer != 0};
    eddy_submission submission = {
        .instruction = {.view = {.arguments = &arguments, .operand_count = 1},
                        .kind = EDDY_KIND_SHARE,
                        .mentions = &mention},
        .argument_bytes = sizeof(arguments),
        .stream = stream};
    status = eddy_vm_submit_and_wait(vm, &submission, waiter, wait);
    if (status != EDDY_OK)
        return status;
    eddy_poison poison = waiter->poison;
    eddy_backend_fence *fence = waiter->fence;
    *data = waiter->data;
    eddy_waiter_recycle(&vm->waiters, waiter);
    if (poison)
        return eddy_vm_fail_poison(vm, poison);
    return fence ? let_consumer_wait(backend, consumer, fence, wait->origin) : EDDY_OK;
}

eddy_status eddy_vm_share(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number storage,
                          bool is_read_only, uintptr_t consumer, const eddy_vm_wait *wait,
                          void **data) {
    int64_t deadline_ns = eddy_clock_deadline(wait->timeout_ns);
    eddy_status status = enter_for_long(vm, wait->origin);
    if (status != EDDY_OK)
        return status;
    eddy_mention access = is_read_only ? EDDY_MENTION_CONST : EDDY_MENTION_MUT;
    status = share(vm, stream, storage | access, consumer, wait, data);
    eddy_vm_inside_end(vm);
    if (status != EDDY_OK || consumer != 0)
        return status;
    eddy_vm_wait rest = {eddy_clock_left(deadline_ns), wait->origin};
    return eddy_vm_wait_storage(vm, storage, &rest);
}

/* ---- in: a call that comes after the producer ---- */

typedef struct import_arguments {
    eddy_backend *backend;
    eddy_backend_fence *fence;
} import_arguments;

static const char *name_import(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "import";
}

static void launch_import(eddy_vm_device *device, const eddy_vm_run *run,
                          const eddy_backend_launch *launch) {
    const import_arguments *arguments = run->instruction->arguments;
    (void)device->backend->class->fence_wait(launch->queue, arguments->fence);
}

static void end_import(const eddy_vm_instruction *instruction) {
    const import_arguments *arguments = instruction->arguments;
    arguments->backend->class->fence_recycle(arguments->backend, arguments->fence);
}

static const eddy_vm_descriptor import_op = {
    .name = name_import, .launch = launch_import, .end = end_import};

/* It heals the storage, as if it had written all of it. */
static eddy_status submit_import(eddy_vm *vm, const eddy_vm_device *device,
                                 eddy_backend_fence *fence, const void *address,
                                 eddy_storage_number storage) {
    import_arguments arguments = {device->backend, fence};
    eddy_vm_operand operand = {.storage = storage, .access = EDDY_ACCESS_MUT, .covers_all = true};
    eddy_vm_call call = {.instruction = {.descriptor = &import_op,
                                         .arguments = &arguments,
                                         .operand_count = 1,
                                         .address = address},
                         .argument_bytes = sizeof(arguments),
                         .operands = &operand,
                         .stream = device->compute,
                         .place = EDDY_PLACE_WORKER};
    return eddy_vm_submit(vm, &call);
}

/* Recorded: why the memory is not to be imported. The VM cannot close meanwhile. */
static eddy_status check_there(const eddy_vm_device *device, const void *data, int64_t bytes,
                               eddy_origin origin) {
    eddy_backend *backend = device->backend;
    if (!backend->class->has_memory)
        return refuse_device(origin);
    if (eddy_load_acquire(&backend->is_lost))
        return eddy_errors_fail(EDDY_DEVICE_LOST, device->name, origin);
    if (bytes > 0 && !backend->class->has_memory(backend, data, bytes))
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin,
                         "the %lld bytes at %p are not all memory of the device", (long long)bytes,
                         data);
    return EDDY_OK;
}

eddy_status eddy_vm_storage_borrow_there(eddy_vm *vm, uint8_t device, void *data, int64_t bytes,
                                         void (*release)(void *context), void *context,
                                         eddy_origin origin, eddy_storage_number *storage) {
    eddy_status status = enter_for_long(vm, origin);
    if (status != EDDY_OK)
        return status;
    status = check_there(vm->devices[device], data, bytes, origin);
    if (status == EDDY_OK)
        status = eddy_vm_storage_borrow(vm, data, bytes, release, context, storage);
    /* Nobody else knows the number yet. */
    if (status == EDDY_OK)
        eddy_vm_storage(vm, *storage)->shared.device = device;
    eddy_vm_inside_end(vm);
    return status;
}

static eddy_status follow(eddy_vm *vm, const eddy_vm_device *device, eddy_storage_number storage,
                          uintptr_t producer, eddy_origin origin) {
    eddy_backend *backend = device->backend;
    eddy_backend_fence *fence;
    eddy_status status = backend->class->foreign_record(backend, producer, &fence);
    if (status != EDDY_OK)
        return eddy_fail(status, origin, "the driver refuses the producer's stream");
    status = submit_import(vm, device, fence, origin.address, storage);
    if (status != EDDY_OK)
        backend->class->fence_recycle(backend, fence);
    return status;
}

eddy_status eddy_vm_storage_follow(eddy_vm *vm, eddy_storage_number storage, uintptr_t producer,
                                   eddy_origin origin) {
    eddy_status status = enter_for_long(vm, origin);
    if (status != EDDY_OK)
        return status;
    status = follow(vm, vm->devices[eddy_vm_storage(vm, storage)->shared.device], storage, producer,
                    origin);
    eddy_vm_inside_end(vm);
    return status;
}
