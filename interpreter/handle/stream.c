#include <interpreter/handle/stream.h>

#include <base/memory.h>
#include <base/option.h>
#include <base/status.h>

/* ---- streams ---- */

static eddy_stream *make_stream(eddy_runtime *runtime, uint8_t vm_device,
                                const eddy_stream_options *options, eddy_origin origin) {
    eddy_stream *stream = eddy_memory_acquire(sizeof(*stream), EDDY_MEMORY_RUNTIME);
    if (!stream) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for a stream");
        return NULL;
    }
    int32_t priority = options ? options->priority : 0;
    const char *name = EDDY_OPTION(options, name) && *options->name ? options->name : NULL;
    eddy_status status =
        vm_device
            ? eddy_vm_device_stream_create(runtime->vm, vm_device, priority, name, &stream->stream)
            : eddy_vm_stream_create(runtime->vm, options && options->is_ordered, priority, name,
                                    &stream->stream);
    if (status != EDDY_OK) {
        eddy_memory_release(stream, sizeof(*stream), EDDY_MEMORY_RUNTIME);
        return NULL;
    }
    stream->references = 1;
    stream->runtime = runtime;
    stream->vm_device = vm_device;
    eddy_runtime_bind(runtime);
    return stream;
}

eddy_stream *eddy_stream_create(eddy_device device, const eddy_stream_options *options) {
    eddy_origin origin = EDDY_ORIGIN("stream_create");
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    eddy_device resolved;
    if (eddy_runtime_of_caller(caller, origin, &runtime) != EDDY_OK ||
        eddy_runtime_device(caller, runtime, &device, origin, &resolved) != EDDY_OK)
        return NULL;
    return make_stream(runtime, eddy_runtime_vm_device(runtime, resolved), options, origin);
}

eddy_stream *eddy_stream_retain(eddy_stream *stream) {
    if (stream)
        eddy_add_relaxed(&stream->references, 1u);
    return stream;
}

void eddy_stream_release(eddy_stream **stream) {
    eddy_stream *released = stream ? *stream : NULL;
    if (!released)
        return;
    *stream = NULL;
    if (eddy_sub_acq_rel(&released->references, 1u) != 1)
        return;
    eddy_vm_stream_release(released->stream);
    eddy_runtime_unbind(released->runtime);
    eddy_memory_release(released, sizeof(*released), EDDY_MEMORY_RUNTIME);
}

/* ---- scopes ---- */

eddy_status eddy_stream_scope_begin(eddy_stream *stream) {
    eddy_origin origin = EDDY_ORIGIN("stream_scope_begin");
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    if (caller->stream_count == caller->stream_capacity) {
        int32_t capacity = caller->stream_capacity ? caller->stream_capacity * 2 : 8;
        size_t item = sizeof(*caller->streams);
        eddy_stream **grown =
            eddy_memory_grow(caller->streams, (size_t)caller->stream_capacity * item,
                             (size_t)capacity * item, EDDY_MEMORY_RUNTIME);
        if (!grown)
            return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory");
        caller->streams = grown;
        caller->stream_capacity = capacity;
    }
    caller->streams[caller->stream_count++] = eddy_stream_retain(stream);
    caller->stream = stream;
    return EDDY_OK;
}

static void end_scope(eddy_caller *caller) {
    eddy_stream *stream = caller->streams[--caller->stream_count];
    caller->stream = caller->stream_count > 0 ? caller->streams[caller->stream_count - 1] : NULL;
    eddy_stream_release(&stream);
}

void eddy_stream_scope_end(void) {
    eddy_caller *caller = eddy_caller_self;
    if (caller && caller->stream_count > 0)
        end_scope(caller);
}

void eddy_stream_scope_end_all(eddy_caller *caller) {
    while (caller->stream_count > 0)
        end_scope(caller);
}

/* ---- events ---- */

/* That of the handle; NULL is the default one of the device that the thread's creation ops take. NULL on failure, recorded, and for the host's. */
static eddy_status find_stream(eddy_caller *caller, eddy_runtime *runtime, eddy_stream *stream,
                               eddy_origin origin, eddy_vm_stream **found) {
    eddy_device device;
    *found = stream ? stream->stream : NULL;
    if (stream)
        return EDDY_OK;
    eddy_status status = eddy_runtime_device(caller, runtime, NULL, origin, &device);
    if (status == EDDY_OK && device.kind != EDDY_DEVICE_CPU)
        *found = eddy_vm_device_stream(runtime->vm, eddy_runtime_vm_device(runtime, device));
    return status;
}

eddy_event *eddy_event_record(eddy_stream *stream) {
    eddy_origin origin = EDDY_ORIGIN("event_record");
    eddy_caller *caller = eddy_caller_get();
    eddy_runtime *runtime;
    if (eddy_runtime_of_caller(caller, origin, &runtime) != EDDY_OK)
        return NULL;
    if (stream)
        runtime = stream->runtime;
    eddy_vm_stream *under;
    if (find_stream(caller, runtime, stream, origin, &under) != EDDY_OK)
        return NULL;
    eddy_event *event = eddy_memory_acquire(sizeof(*event), EDDY_MEMORY_RUNTIME);
    if (!event) {
        eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for an event");
        return NULL;
    }
    if (eddy_vm_event_record(runtime->vm, under, origin, &event->event) != EDDY_OK) {
        eddy_memory_release(event, sizeof(*event), EDDY_MEMORY_RUNTIME);
        return NULL;
    }
    event->references = 1;
    event->runtime = runtime;
    eddy_runtime_bind(runtime);
    return event;
}

eddy_event *eddy_event_retain(eddy_event *event) {
    if (event)
        eddy_add_relaxed(&event->references, 1u);
    return event;
}

void eddy_event_release(eddy_event **event) {
    eddy_event *released = event ? *event : NULL;
    if (!released)
        return;
    *event = NULL;
    if (eddy_sub_acq_rel(&released->references, 1u) != 1)
        return;
    eddy_vm_event_release(released->event);
    eddy_runtime_unbind(released->runtime);
    eddy_memory_release(released, sizeof(*released), EDDY_MEMORY_RUNTIME);
}

/* Whether the calling thread may query or wait for an event; else the error is recorded. */
static eddy_status check_event(const eddy_event *event, eddy_origin origin) {
    eddy_caller *caller = eddy_caller_get();
    if (!eddy_caller_may_call(caller))
        return eddy_caller_refuse(caller, origin);
    if (!event)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the event is NULL");
    return EDDY_OK;
}

bool eddy_event_is_ready(eddy_event *event) {
    return check_event(event, EDDY_ORIGIN("event_is_ready")) == EDDY_OK &&
           eddy_vm_event_query(event->event);
}

eddy_status eddy_event_wait(eddy_event *event, int64_t timeout) {
    eddy_origin origin = EDDY_ORIGIN("event_wait");
    eddy_status status = check_event(event, origin);
    eddy_vm_wait wait = {timeout, origin};
    return status == EDDY_OK ? eddy_vm_event_wait(event->event, &wait) : status;
}

eddy_status eddy_stream_wait(eddy_stream *stream, eddy_event *event) {
    eddy_origin origin = EDDY_ORIGIN("stream_wait");
    eddy_status status = check_event(event, origin);
    if (status != EDDY_OK)
        return status;
    eddy_runtime *runtime = stream ? stream->runtime : NULL;
    if (!stream)
        status = eddy_runtime_of_caller(eddy_caller_get(), origin, &runtime);
    if (status != EDDY_OK)
        return status;
    if (runtime != event->runtime)
        return eddy_fail(EDDY_RUNTIME_MISMATCH, origin,
                         "the stream and the event belong to different runtimes");
    eddy_vm_stream *under;
    status = find_stream(eddy_caller_self, runtime, stream, origin, &under);
    return status == EDDY_OK ? eddy_vm_stream_wait(runtime->vm, under, event->event, origin)
                             : status;
}
