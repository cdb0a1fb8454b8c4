/* The state of a thread that is set aside while a callback runs on it.
 *
 * In one-thread mode a callback runs inside a call of any thread. Its tensors do not belong to that thread's scope, in which the
 * call has reserved the last place; its ops do not use that thread's stream or its no-grad mode; its errors do not go to that
 * thread's slot; and a runtime that it chooses is current until it returns. Scopes that it leaves open, of tensors, streams and
 * devices, and a recording end with it, on any thread. */
#ifndef EDDY_INTERPRETER_HOST_CALLBACK_STATE_H
#define EDDY_INTERPRETER_HOST_CALLBACK_STATE_H

#include <base/status.h>
#include <interpreter/handle/caller.h>

typedef struct eddy_callback_state {
    eddy_callback_kind callback;
    eddy_scope *scope;
    struct eddy_stream *stream;
    eddy_runtime *runtime; /* a reference */
    eddy_error error;      /* in the slot; status OK: none */
    eddy_outcome *outcome;
    int32_t no_grad;
    struct eddy_recorder *recorder; /* its calls are no part of the thread's recording */
    struct eddy_stream **streams;   /* open scopes of streams and devices */
    eddy_device *devices;
    int32_t stream_count, stream_capacity, device_count, device_capacity;
} eddy_callback_state;

/* Around the callback, on its thread. */
void eddy_callback_state_leave(eddy_caller *caller, eddy_callback_state *kept);
void eddy_callback_state_return(eddy_caller *caller, const eddy_callback_state *kept);

#endif
