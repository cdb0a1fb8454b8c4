/* Copies between devices and the host: calls of the VM's own. */
#include <stdio.h>
#include <vm/device_copy.h>
#include <vm/release.h>
#include <vm/submit.h>

typedef struct copy_arguments {
    int64_t offset_bytes, bytes;
    uint32_t direction;          /* eddy_copy_direction */
    uint32_t from;               /* ACROSS: the device that has the source */
    const char *source, *target; /* names of devices, which live for good */
} copy_arguments;

/* The source is complete: its writers have ended. */
static void launch_across(eddy_vm_device *device, eddy_vm_device *other,
                          const eddy_backend_launch *launch, void *to, const void *from,
                          int64_t bytes) {
    const eddy_backend_class *class = device->backend->class;
    if (class->copy_across(launch->queue, to, other->backend, from, bytes) == EDDY_SKIPPED)
        eddy_backend_fail(launch, EDDY_DEVICE_LOST);
}

static void launch_copy(eddy_vm_device *device, const eddy_vm_run *run,
                        const eddy_backend_launch *launch) {
    const copy_arguments *arguments = run->instruction->arguments;
    const char *from = (const char *)run->data[0] + arguments->offset_bytes;
    if (launch->source_count > 0)
        (void)device->backend->class->look(launch);
    if (arguments->direction == EDDY_COPY_ACROSS)
        launch_across(device, run->vm->devices[arguments->from], launch, run->data[1], from,
                      arguments->bytes);
    else
        eddy_device_copy(device, launch->queue, launch->ticket, run->data[1], from,
                         arguments->bytes, (eddy_copy_direction)arguments->direction);
}

static const char *name_copy(const eddy_vm_instruction *instruction) {
    (void)instruction;
    return "copy";
}

static int describe_copy(const eddy_vm_instruction *instruction, char *buffer, size_t size) {
    const copy_arguments *arguments = instruction->arguments;
    return snprintf(buffer, size, "copy of %lld bytes from %s to %s", (long long)arguments->bytes,
                    arguments->source, arguments->target);
}

/* The source, on a device that is lost: the only failure that its launch says. */
static int explain_copy(const eddy_vm_instruction *instruction, const eddy_kernel_error *error,
                        char *buffer, size_t size) {
    const copy_arguments *arguments = instruction->arguments;
    char copy[96], what[96];
    (void)describe_copy(instruction, copy, sizeof(copy));
    eddy_errors_format((eddy_status)eddy_load_relaxed(&error->status), arguments->source, what,
                       sizeof(what));
    return snprintf(buffer, size, "%s: %s", copy, what);
}

static const eddy_vm_descriptor copy_op = {
    .name = name_copy, .describe = describe_copy, .explain = explain_copy, .launch = launch_copy};

static const char *name_of(const eddy_vm *vm, uint8_t device) {
    return device == 0 ? "cpu" : vm->devices[device]->name;
}

static eddy_copy_direction direction_of(uint8_t from, uint8_t to) {
    return from == 0    ? EDDY_COPY_TO_DEVICE
           : to == 0    ? EDDY_COPY_TO_HOST
           : from == to ? EDDY_COPY_ON_DEVICE
                        : EDDY_COPY_ACROSS;
}

static bool may_copy_across(const eddy_vm_device *from, const eddy_vm_device *to) {
    return from->backend->class == to->backend->class && to->backend->class->copy_across;
}

/* Between two devices on the one that is written. */
static eddy_vm_stream *stream_for(eddy_vm *vm, const copy_arguments *way, uint8_t device) {
    const eddy_vm_device *on = vm->devices[device == 0 ? way->from : device];
    return way->direction == EDDY_COPY_TO_HOST     ? on->to_host
           : way->direction == EDDY_COPY_ON_DEVICE ? on->compute
                                                   : on->to_device;
}

/* Which way a copy goes, and the device's own stream for it; NULL where the devices know no such way. Devices are there as long as the VM is not closed, which the
 * lock tells. Of a VM that closes later no call takes the stream. */
static eddy_status find_way(eddy_vm *vm, eddy_storage_number source, uint8_t device,
                            const void *address, copy_arguments *way, eddy_vm_stream **stream) {
    eddy_status status = eddy_vm_enter(vm, (eddy_origin){"copy", address});
    if (status != EDDY_OK)
        return status;
    uint8_t from = eddy_vm_storage(vm, source)->shared.device;
    EDDY_ASSERT(from != 0 || device != 0);
    way->from = from;
    way->direction = direction_of(from, device);
    way->source = name_of(vm, from);
    way->target = name_of(vm, device);
    bool is_known = way->direction != EDDY_COPY_ACROSS ||
                    may_copy_across(vm->devices[from], vm->devices[device]);
    *stream = is_known ? stream_for(vm, way, device) : NULL;
    eddy_vm_leave(vm);
    return EDDY_OK;
}

static eddy_status submit_copy(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number source,
                               const copy_arguments *way, uint8_t device, const void *address,
                               eddy_storage_number *copy) {
    eddy_vm_operand operands[] = {{.storage = source},
                                  {.storage = *copy,
                                   .access = EDDY_ACCESS_MUT,
                                   .is_new = *copy == 0,
                                   .covers_all = true,
                                   .device = device,
                                   .bytes = way->bytes}};
    eddy_vm_call call = {.instruction = {.descriptor = &copy_op,
                                         .arguments = way,
                                         .operand_count = 2,
                                         .address = address},
                         .argument_bytes = sizeof(*way),
                         .operands = operands,
                         .stream = stream,
                         .place = EDDY_PLACE_WORKER};
    eddy_status status = eddy_vm_submit(vm, &call);
    *copy = operands[1].storage;
    return status;
}

eddy_status eddy_vm_copy(eddy_vm *vm, eddy_vm_stream *stream, eddy_storage_number source,
                         int64_t offset_bytes, int64_t bytes, uint8_t device, const void *address,
                         eddy_storage_number *copy) {
    copy_arguments way = {.offset_bytes = offset_bytes, .bytes = bytes};
    eddy_vm_stream *own;
    eddy_status status = find_way(vm, source, device, address, &way, &own);
    if (status != EDDY_OK)
        return status;
    EDDY_ASSERT(!stream || way.direction != EDDY_COPY_ACROSS);
    if (own)
        return submit_copy(vm, stream ? stream : own, source, &way, device, address, copy);
    eddy_storage_number here = 0;
    status = eddy_vm_copy(vm, NULL, source, offset_bytes, bytes, 0, address, &here);
    return status == EDDY_OK ? eddy_vm_upload(vm, here, bytes, device, address, copy) : status;
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
