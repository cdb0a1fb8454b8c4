/* Copies between devices and the host: calls of the VM's own. */
#include <stdio.h>
#include <vm/copy.h>
#include <vm/release.h>
#include <vm/submit.h>

typedef struct copy_arguments {
    int64_t offset_bytes, bytes;
    int64_t direction; /* eddy_copy_direction */
} copy_arguments;

void eddy_copy_launch(const eddy_vm_run *run, const eddy_device_launch *launch,
                      eddy_backend_queue *queue) {
    const copy_arguments *arguments = run->instruction->arguments;
    const eddy_backend_class *class = queue->backend->class;
    if (launch->source_count > 0)
        (void)class->look(queue, launch->sources, launch->source_count, run->error);
    (void)class->copy(queue, run->data[1], (const char *)run->data[0] + arguments->offset_bytes,
                      arguments->bytes, (eddy_copy_direction)arguments->direction);
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

const eddy_vm_descriptor eddy_copy_op = {.name = name_copy, .describe = describe_copy};

eddy_status eddy_vm_copy(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number source,
                         int64_t offset_bytes, int64_t bytes, uint8_t device, const void *address,
                         eddy_storage_number *copy) {
    uint8_t from = eddy_vm_storage_device(vm, source);
    copy_arguments arguments = {.offset_bytes = offset_bytes,
                                .bytes = bytes,
                                .direction = from == 0     ? EDDY_COPY_TO_DEVICE
                                             : device == 0 ? EDDY_COPY_TO_HOST
                                                           : EDDY_COPY_ON_DEVICE};
    if (!stream) {
        const eddy_vm_device *on = vm->devices[from == 0 ? device : from];
        stream = from == 0 ? on->to_device : device == 0 ? on->to_host : on->compute;
    }
    EDDY_ASSERT(from != 0 || device != 0);
    EDDY_ASSERT(from == 0 || from == stream->device->number);
    EDDY_ASSERT(device == 0 || device == stream->device->number);
    eddy_vm_operand operands[] = {{.storage = source},
                                  {.access = EDDY_ACCESS_MUT,
                                   .is_new = true,
                                   .covers_all = true,
                                   .device = device,
                                   .bytes = bytes}};
    eddy_vm_call call = {
        .instruction = {.descriptor = &eddy_copy_op,
                        .arguments = &arguments,
                        .operand_count = 2,
                        .address = address},
        .argument_bytes = sizeof(arguments),
        .operands = operands,
        .stream = stream,
        .place = EDDY_PLACE_WORKER,
    };
    eddy_status status = eddy_vm_submit(vm, &call);
    *copy = operands[1].storage;
    return status;
}

eddy_status eddy_vm_upload(eddy_vm *vm, eddy_storage_number *storage, uint8_t device,
                           const void *address) {
    eddy_storage_number source = *storage;
    eddy_status status = eddy_vm_copy(
        vm, NULL, source, 0, eddy_vm_storage(vm, source)->issuer.bytes, device, address, storage);
    if (eddy_vm_enter(vm, (eddy_origin){"copy", address}) == EDDY_OK) {
        eddy_vm_release_locked(vm, source);
        eddy_vm_leave(vm);
    } else if (status == EDDY_OK) {
        status = EDDY_SHUT_DOWN;
    }
    return status;
}
