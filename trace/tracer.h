/* Tracing of the process: from eddy_tracer_start to eddy_tracer_stop, events go to a file. README.md describes how, and the states. */
#ifndef EDDY_TRACE_TRACER_H
#define EDDY_TRACE_TRACER_H

#include <base/assert.h>
#include <base/call_site.h>
#include <eddy/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls `tell` for each curve: its name, what it counts, its value now. On the writer's thread, every EDDY_TRACER_SAMPLE_NS or so. */
typedef void eddy_tracer_tell(void *context, const char *name, const char *series, int64_t value);
typedef void eddy_tracer_sample(eddy_tracer_tell *tell, void *context);

typedef struct eddy_tracer_settings {
    const char *path;           /* "%p": the number of the process */
    int64_t limit_bytes;        /* of the file */
    uint32_t phases;            /* a bit each (base/trace.h) */
    eddy_tracer_sample *sample; /* NULL: none */
} eddy_tracer_settings;

/* Any thread. INVALID_ARGUMENT (a trace is being written, or the path is too long), IO, OUT_OF_MEMORY, UNSUPPORTED. */
EDDY_MUST_USE eddy_status eddy_tracer_start(const eddy_tracer_settings *settings,
                                            eddy_origin origin);
/* Nothing that begins after the call is in the file, which is whole on return; OK where there is no trace. TIMED_OUT: the writer goes on, and may be waited for again. IO: the file could not be written; what is there can be read. */
EDDY_MUST_USE eddy_status eddy_tracer_stop(int64_t deadline_ns, eddy_origin origin);
/* Until the log has been told how the last trace ended, which a program's sink may hold up. */
void eddy_tracer_await_log(int64_t deadline_ns);
/* Whether one is being written. */
bool eddy_tracer_is_on(void);

#endif
