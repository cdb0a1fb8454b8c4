/* The contract of a stream: where instructions go when they may run.
 *
 * The VM hands a stream work in submission order of that stream; an ordered stream runs it one after another in that
 * order, an unordered one as it likes. The stream calls `run` once for each, on a thread of its own choosing (not inside
 * `dispatch`, unless the VM is in one-thread mode), and `run` reports completion to the VM itself. */
#ifndef EDDY_STREAMS_STREAM_H
#define EDDY_STREAMS_STREAM_H

#include <eddy/status.h>
#include <stdbool.h>
#include <stdint.h>

struct eddy_stream;

typedef struct eddy_stream_work {
    struct eddy_stream_work *next; /* the stream's while it holds the work */
    /* Runs the work, or fails it with `failure` (a stream's own error: a lost device, an injected fault). */
    void (*run)(struct eddy_stream_work *work, eddy_status failure);
} eddy_stream_work;

/* The entries every kind of stream provides. */
typedef struct eddy_stream_class {
    const char *name;
    /* Takes the work; never blocks, never fails (work carries its own link). Called with the engine's role only. */
    void (*dispatch)(struct eddy_stream *stream, eddy_stream_work *work);
    /* Frees the stream; all work has completed. */
    void (*destroy)(struct eddy_stream *stream);
} eddy_stream_class;

typedef struct eddy_stream {
    const eddy_stream_class *class; /* const after init */
    bool is_ordered;                /* const after init */
    int32_t priority;               /* const after init; a hint: higher first */
} eddy_stream;

static inline void eddy_stream_dispatch(eddy_stream *stream, eddy_stream_work *work) {
    stream->class->dispatch(stream, work);
}

#endif
