/* Streams and events as instructions see them. */
#include <base/kept_text.h>
#include <base/nvtx.h>
#include <base/status.h>
#include <stdio.h>
#include <streams/cpu.h>
#include <string.h>
#include <vm/device.h>
#include <vm/event.h>
#include <vm/instruction_kinds.h>
#include <vm/stream.h>
#include <vm/submit.h>

/* The VM releases it: handles may live longer, and then refer to a stream that does not run. */
static void stream_free(eddy_vm_stream *stream) {
    if (stream->queue && !stream->device)
        stream->queue->class->destroy(stream->queue);
    stream->queue = NULL;
    eddy_vm_stream_release(stream);
}

/* Lock: submission. The number of a stream without references, whose instructions have retired, is used again; *old is that stream,
 * which the caller frees without the lock: its last drain may still hold the run token, and want the lock. */
static bool number_for(eddy_vm *vm, uint32_t *number, eddy_vm_stream **old) {
    if (vm->stream_count < EDDY_STREAM_MAX) {
        *number = vm->stream_count;
        return true;
    }
    for (uint32_t i = 1; i < EDDY_STREAM_MAX; i++) {
        eddy_vm_stream *stream = vm->streams[i];
        if (eddy_load_acquire(&stream->references) > 1 ||
            stream->submitted != eddy_load_acquire(&stream->retired))
            continue;
        *old = stream;
        *number = i;
        return true;
    }
    return false;
}

/* As in vm.h; NULL for NULL. The caller keeps the device there. */
static const char *full_name(const eddy_vm_device *device, const char *name) {
    char text[2 * EDDY_KEPT_TEXT_BYTES];
    if (!name)
        return NULL;
    snprintf(text, sizeof(text), "%s%s%s", device ? device->name : "", device ? ", " : "", name);
    return eddy_kept_text(text);
}

static eddy_status add(eddy_vm *vm, const eddy_vm_stream *as, eddy_vm_stream **stream) {
    eddy_vm_stream *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return EDDY_OUT_OF_MEMORY;
    *made = *as;
    made->vm = vm;
    made->name = full_name(as->device, as->name);
    made->is_ordered = made->queue->is_ordered;
    eddy_store_relaxed(&made->references, 2); /* the caller's and the VM's */
    eddy_vm_lock(vm);
    uint32_t number;
    eddy_vm_stream *old = NULL;
    bool is_open = eddy_load_relaxed(&vm->state) == EDDY_VM_RUNNING;
    bool has_number = is_open && number_for(vm, &number, &old);
    if (has_number) {
        made->number = (uint16_t)number;
        vm->streams[number] = made;
        if (number == vm->stream_count)
            vm->stream_count++;
    }
    eddy_vm_unlock(vm);
    if (old)
        stream_free(old);
    if (!has_number) {
        eddy_memory_release(made, sizeof(*made), EDDY_MEMORY_RUNTIME);
        return is_open ? EDDY_OUT_OF_MEMORY : EDDY_SHUT_DOWN;
    }
    *stream = made;
    return EDDY_OK;
}

eddy_status eddy_vm_stream_add(eddy_vm *vm, eddy_work_queue *under, bool is_foreign,
                               const char *name, eddy_vm_stream **stream) {
    eddy_vm_stream as = {.queue = under, .is_foreign = is_foreign, .name = name};
    return add(vm, &as, stream);
}

/* Tools know the driver's stream under it. */
static void name_native(const eddy_vm_stream *stream) {
    const eddy_vm_device *device = stream->device;
    if (stream->name && stream->has_own_queue && device->backend->class->native)
        eddy_nvtx_name_stream(
            device->backend->class->native(device->queues[stream->device_queue].under),
            stream->name);
}

eddy_status eddy_vm_stream_add_device(eddy_vm *vm, eddy_vm_device *device, uint32_t queue,
                                      bool is_own, const char *name, eddy_vm_stream **stream) {
    eddy_vm_stream as = {.queue = device->launcher,
                         .is_foreign = true,
                         .device = device,
                         .device_queue = queue,
                         .has_own_queue = is_own,
                         .name = name};
    eddy_status status = add(vm, &as, stream);
    if (status == EDDY_OK)
        name_native(*stream);
    return status;
}

eddy_status eddy_vm_stream_refuse(eddy_status status, eddy_origin origin) {
    if (status != EDDY_OUT_OF_MEMORY)
        return eddy_vm_refuse(status, origin);
    return eddy_fail(status, origin, "no memory, or more than %d streams", EDDY_STREAM_MAX);
}

eddy_status eddy_vm_stream_create(eddy_vm *vm, bool is_ordered, int32_t priority, const char *name,
                                  eddy_vm_stream **stream) {
    eddy_origin origin = {"stream_create", NULL};
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    eddy_vm_leave(vm);
    eddy_work_queue *under = eddy_cpu_queue_create(is_ordered, priority);
    status = under ? eddy_vm_stream_add(vm, under, false, name, stream) : EDDY_OUT_OF_MEMORY;
    if (status == EDDY_OK)
        return EDDY_OK;
    if (under)
        under->class->destroy(under);
    return eddy_vm_stream_refuse(status, origin);
}

void eddy_vm_stream_retain(eddy_vm_stream *stream) {
    eddy_add_relaxed(&stream->references, 1);
}

void eddy_vm_stream_release(eddy_vm_stream *stream) {
    if (stream && eddy_sub_acq_rel(&stream->references, 1) == 1)
        eddy_memory_release(stream, sizeof(*stream), EDDY_MEMORY_RUNTIME);
}

void eddy_vm_streams_fini(eddy_vm *vm) {
    for (uint32_t i = 0; i < vm->stream_count; i++)
        stream_free(vm->streams[i]);
    vm->stream_count = 0;
}

/* ---- events ---- */

#define EVENT_PENDING 0u
#define EVENT_PASSED 1u

void eddy_vm_event_pass(eddy_vm_event *event) {
    event->node = NULL;
    eddy_store_release(&event->is_passed, EVENT_PASSED);
    eddy_vm_event_release(event);
}

void eddy_vm_event_release(eddy_vm_event *event) {
    if (event && eddy_sub_acq_rel(&event->references, 1) == 1)
        eddy_memory_release(event, sizeof(*event), EDDY_MEMORY_RUNTIME);
}

bool eddy_vm_event_query(eddy_vm_event *event) {
    return eddy_vm_event_is_passed(event);
}

/* Writes an EVENT or GATE, which holds a reference of its own. */
static eddy_status write_event(eddy_vm *vm, eddy_instruction_kind kind, eddy_vm_stream *stream,
                               eddy_vm_event *event, eddy_origin origin) {
    eddy_event_arguments arguments = {event};
    eddy_submission submission = {
        .instruction = {.view = {.arguments = &arguments, .address = origin.address},
                        .kind = (uint8_t)kind},
        .argument_bytes = sizeof(arguments),
        .stream = stream,
        .op = origin.op};
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    eddy_add_relaxed(&event->references, 1);
    status = eddy_vm_write(vm, &submission);
    eddy_vm_leave(vm);
    if (status != EDDY_OK)
        eddy_vm_event_release(event);
    return status;
}

eddy_status eddy_vm_event_record(eddy_vm *vm, eddy_vm_stream *stream, eddy_origin origin,
                                 eddy_vm_event **event) {
    eddy_vm_event *made = eddy_memory_acquire_zeroed(sizeof(*made), EDDY_MEMORY_RUNTIME);
    if (!made)
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
    made->vm = vm;
    eddy_store_relaxed(&made->references, 1);
    eddy_status status = write_event(vm, EDDY_KIND_EVENT, stream, made, origin);
    if (status != EDDY_OK) {
        eddy_vm_event_release(made);
        return status;
    }
    *event = made;
    return EDDY_OK;
}

eddy_status eddy_vm_stream_wait(eddy_vm *vm, eddy_vm_stream *stream, eddy_vm_event *event,
                                eddy_origin origin) {
    if (event->vm != vm)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, origin, "event of another runtime");
    return write_event(vm, EDDY_KIND_GATE, stream, event, origin);
}

eddy_status eddy_vm_touch(eddy_vm *vm, eddy_vm_stream *stream, const eddy_storage_number *storages,
                          int64_t count, eddy_origin origin) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    status = eddy_vm_write_list(vm, EDDY_KIND_TOUCH, EDDY_MENTION_CONST, stream, storages, count,
                                origin);
    eddy_vm_leave(vm);
    return status;
}

eddy_status eddy_vm_recover(eddy_vm *vm, const eddy_storage_number *storages, int64_t count,
                            eddy_origin origin) {
    eddy_status status = eddy_vm_enter(vm, origin);
    if (status != EDDY_OK)
        return status;
    status =
        eddy_vm_write_list(vm, EDDY_KIND_RECOVER, EDDY_MENTION_MUT, NULL, storages, count, origin);
    eddy_vm_leave(vm);
    return status;
}
