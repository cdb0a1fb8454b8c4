/* Public streams and events: reference-counted wrappers of the VM's, bound to their runtime. */
#ifndef EDDY_INTERPRETER_HANDLE_STREAM_H
#define EDDY_INTERPRETER_HANDLE_STREAM_H

#include <base/atomic.h>
#include <eddy/stream.h>
#include <interpreter/handle/caller.h>
#include <interpreter/handle/runtime.h>
#include <stdint.h>
#include <vm/vm.h>

struct eddy_stream {
    _Atomic uint32_t references; /* atomic: users and stream scopes */
    eddy_runtime *runtime;       /* const after init; bound */
    eddy_vm_stream *stream;      /* const after init */
    uint8_t vm_device;           /* const after init */
};

struct eddy_event {
    _Atomic uint32_t references; /* atomic: users */
    eddy_runtime *runtime;       /* const after init; bound */
    eddy_vm_event *event;        /* const after init */
};

/* The VM's stream for the thread's ops on a device of `runtime`: that of its innermost stream scope if that is of this runtime and device, else
 * the default one of the device. */
static inline eddy_vm_stream *
eddy_stream_of_caller(const eddy_caller *caller, const eddy_runtime *runtime, uint8_t vm_device) {
    if (caller->stream && caller->stream->runtime == runtime &&
        caller->stream->vm_device == vm_device)
        return caller->stream->stream;
    return EDDY_LIKELY(vm_device == 0) ? NULL : eddy_vm_device_stream(runtime->vm, vm_device);
}

/* Ends the thread's open stream scopes, at its end. */
void eddy_stream_scope_end_all(eddy_caller *caller);

#endif
