/* Streams and events.
 *
 * Ops go to the calling thread's innermost stream scope, or to the device's default stream, which is unordered: ops
 * that do not touch the same tensors may overtake each other. Streams of other devices than the CPU are ordered. On an ordered stream ops run one after the other.
 * Ops on several streams may use one tensor: ops on one storage keep the order of the calls. Streams
 * and events are reference-counted and no scope owns them. Any thread. */
#ifndef EDDY_STREAM_H
#define EDDY_STREAM_H

#include <eddy/device.h>
#include <eddy/export.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct eddy_stream eddy_stream;
typedef struct eddy_event eddy_event;

typedef struct eddy_stream_options {
    size_t size;
    bool is_ordered;
    int32_t priority; /* a hint: greater ones first */
    /* Copied; traces and profilers show it, behind the device's name, cut to what 64 bytes hold; of at most 256 names in a process. NULL: none. */
    const char *name;
} eddy_stream_options;

/* A new stream of the calling thread's runtime on `device` (all zero: the thread's), one reference, the caller's.
 * NULL with UNSUPPORTED, OUT_OF_MEMORY, SHUT_DOWN or FORKED in the slot. */
EDDY_API eddy_stream *eddy_stream_create(eddy_device device, const eddy_stream_options *options);
EDDY_API eddy_stream *eddy_stream_retain(eddy_stream *stream);
/* Clears the pointer. What was issued on the stream still runs. */
EDDY_API void eddy_stream_release(eddy_stream **stream);

/* Ops of the calling thread go to `stream` until the matching end; scopes nest; NULL is the default stream. The
 * scope holds a reference. */
EDDY_API eddy_status eddy_stream_scope_begin(eddy_stream *stream);
/* Ends the innermost stream scope of the calling thread; does nothing if none is open. */
EDDY_API void eddy_stream_scope_end(void);

/* A new event, the caller's, that passes when everything issued before to `stream` (NULL: the default one of the device that the thread's creation ops
 * take) has run. */
EDDY_API eddy_event *eddy_event_record(eddy_stream *stream);
EDDY_API eddy_event *eddy_event_retain(eddy_event *event);
EDDY_API void eddy_event_release(eddy_event **event);
/* True when it has passed; never waits. False with the error in the slot for NULL. */
EDDY_API bool eddy_event_is_ready(eddy_event *event);
/* Blocks until it has passed, `timeout` ns at most. TIMED_OUT, WOULD_DEADLOCK, SHUT_DOWN, FORKED. */
EDDY_API eddy_status eddy_event_wait(eddy_event *event, int64_t timeout);
/* Ops issued to `stream` (NULL: as above) from now on run after the event. Returns at once. */
EDDY_API eddy_status eddy_stream_wait(eddy_stream *stream, eddy_event *event);

#ifdef __cplusplus
}
#endif

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_stream_create(...) EDDY_AT_CALL_SITE(eddy_stream_create(__VA_ARGS__))
#define eddy_stream_scope_begin(...) EDDY_AT_CALL_SITE(eddy_stream_scope_begin(__VA_ARGS__))
#define eddy_stream_scope_end(...) EDDY_AT_CALL_SITE_VOID(eddy_stream_scope_end(__VA_ARGS__))
#define eddy_event_record(...) EDDY_AT_CALL_SITE(eddy_event_record(__VA_ARGS__))
#define eddy_event_is_ready(...) EDDY_AT_CALL_SITE(eddy_event_is_ready(__VA_ARGS__))
#define eddy_event_wait(...) EDDY_AT_CALL_SITE(eddy_event_wait(__VA_ARGS__))
#define eddy_stream_wait(...) EDDY_AT_CALL_SITE(eddy_stream_wait(__VA_ARGS__))
#endif
#endif
