/* Copies between devices and the host: calls of the VM's own. */
#include <stdio.h>
#include <vm/device_copy.h>
#include <vm/release.h>
#include <vm/submit.h>

typedef struct copy_arguments {
    int64_t offset_bytes, bytes;
    int64_t direction; /* eddy_copy_direction */
} copy_arguments;

static void launch_copy(eddy_vm_device *device, const eddy_vm_run *run,
                        const eddy_backend_launch *launch) {
    const copy_arguments *arguments = run->instruction->arguments;
    if (launch->source_count > 0)
        (void)device->backend->class->look(launch);
    eddy_device_copy(device, launch->queue, launch->ticket, run->data[1],
                     (const char *)run->data[0] + arguments->offset_bytes, arguments->bytes,
                     (eddy_copy_direction)arguments->direction);
}

static const char *name_copy(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "copy";
}

static int describe_copy(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    static const char *const directions[] = {"to the device", "to the host", "on the device"};
    const copy_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "copy of %lld bytes %s", (long long)arguments->bytes,
                    directions[arguments->direction]);
}

static const eddy_vm_descriptor copy_op = {
    .name = name_copy, .describe = describe_copy, .launch = launch_copy};

/* Where the copy runs, and which way it goes. Devices are there as long as the VM is not closed, which the lock tells. */
static eddy_status find_way(eddy_vm *vm, eddy_storage_number source, uint8_t device,
                            const void *address, eddy_vm_stream **stream, int64_t *direction) {
    eddy_status status = eddy_vm_enter(vm, (eddy_origin){"copy", address});
    if (status != EDDY_OK)
        return status;
    uint8_t from = eddy_vm_storage(vm, source)->shared.device;
    EDDY_ASSERT(from != 0 || device != 0);
    const eddy_vm_device *on = vm->devices[from == 0 ? device : from];
    *direction = from == 0     ? EDDY_COPY_TO_DEVICE
                 : device == 0 ? EDDY_COPY_TO_HOST
                               : EDDY_COPY_ON_DEVICE;
    if (!*stream)
        *stream = from == 0 ? on->to_device : device == 0 ? on->to_host : on->compute;
    EDDY_ASSERT((*stream)->device == on && (from == 0 || device == 0 || from == device));
    eddy_vm_leave(vm);
    return EDDY_OK;
}

eddy_status eddy_vm_copy(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number source,
                         int64_t offset_bytes, int64_t bytes, uint8_t device, const void *address,
                         eddy_storage_number *copy) {
    copy_arguments arguments = {.offset_bytes = offset_bytes, .bytes = bytes};
    eddy_status status = find_way(vm, source, device, address, &stream, &arguments.direction);
    if (status != EDDY_OK)
        return status;
    eddy_vm_operand operands[] = {{.storage = source},
                                  {.storage = *copy,
                                   .access = EDDY_ACCESS_MUT,
                                   .is_new = *copy == 0,
                                   .covers_all = true,
                                   .device = device,
                                   .bytes = bytes}};
    eddy_vm_call call = {.instruction = {.descriptor = &copy_op,
                                         .arguments = &arguments,
                                         .operand_count = 2,
                                         .address = address},
                         .argument_bytes = sizeof(arguments),
                         .operands = operands,
                         .stream = stream,
                         .place = EDDY_PLACE_WORKER};
    status = eddy_vm_submit(vm, &call);
    *copy = operands[1].storage;
    return status;
}

eddy_status eddy_vm_upload(eddy_vm *vm, eddy_storage_number source, int64_t bytes, uint8_t device,
                           const void *address, eddy_storage_number *copy) {
    eddy_status status = eddy_vm_copy(vm, NULL, source, 0, bytes, device, address, copy);
    eddy_status entered = eddy_vm_enter(vm, (eddy_origin){"copy", address});
    if (entered != EDDY_OK) /* it was freed with the VM, and so is the copy */
        return entered;
    eddy_vm_release_locked(vm, source);
    eddy_vm_leave(vm);
    return status;
}
