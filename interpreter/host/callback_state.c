#include <interpreter/host/callback_state.h>

#include <base/memory.h>
#include <base/status.h>
#include <interpreter/call/recorder.h>
#include <interpreter/handle/runtime.h>
#include <interpreter/handle/scope.h>
#include <interpreter/handle/stream.h>

void eddy_callback_state_leave(eddy_caller *caller, eddy_callback_state *kept) {
    *kept = (eddy_callback_state){.callback = caller->callback,
                                  .scope = caller->scope,
                                  .stream = caller->stream,
                                  .runtime = eddy_runtime_retain(caller->runtime),
                                  .no_grad = caller->no_grad,
                                  .recorder = caller->recorder,
                                  .streams = caller->streams,
                                  .stream_count = caller->stream_count,
                                  .stream_capacity = caller->stream_capacity,
                                  .devices = caller->devices,
                                  .device_count = caller->device_count,
                                  .device_capacity = caller->device_capacity,
                                  .outcome = eddy_outcome_set_aside()};
    if (eddy_error_peek(&kept->error))
        eddy_error_take(NULL);
    caller->callback = EDDY_CALLBACK_ACCESS;
    caller->scope = NULL;
    caller->recorder = NULL;
    caller->stream = NULL;
    caller->streams = NULL;
    caller->devices = NULL;
    caller->stream_count = caller->stream_capacity = caller->device_count =
        caller->device_capacity = 0;
    caller->no_grad = 0;
}

static void end_scopes(eddy_caller *caller) {
    size_t streams = (size_t)caller->stream_capacity * sizeof(*caller->streams);
    size_t devices = (size_t)caller->device_capacity * sizeof(*caller->devices);
    eddy_scope_end_all(caller);
    eddy_stream_scope_end_all(caller);
    eddy_memory_release(caller->streams, streams, EDDY_MEMORY_RUNTIME);
    eddy_memory_release(caller->devices, devices, EDDY_MEMORY_RUNTIME);
}

void eddy_callback_state_return(eddy_caller *caller, const eddy_callback_state *kept) {
    eddy_runtime *chosen = caller->runtime;
    if (caller->recorder)
        caller->recorder->abandon(caller->recorder);
    end_scopes(caller);
    eddy_error_leave();
    if (kept->error.status != EDDY_OK)
        eddy_error_restore(&kept->error);
    eddy_outcome_go_on(kept->outcome);
    caller->callback = kept->callback;
    caller->scope = kept->scope;
    caller->recorder = kept->recorder;
    caller->stream = kept->stream;
    caller->streams = kept->streams;
    caller->stream_count = kept->stream_count;
    caller->stream_capacity = kept->stream_capacity;
    caller->devices = kept->devices;
    caller->device_count = kept->device_count;
    caller->device_capacity = kept->device_capacity;
    caller->runtime = kept->runtime;
    caller->no_grad = kept->no_grad;
    eddy_runtime_release(&chosen);
}
