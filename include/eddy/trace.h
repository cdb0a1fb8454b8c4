/* Names for what a program does: ranges and marks in profilers that know NVTX, such as Nsight Systems, and in the library's own trace, beside the library's own ranges; and in the errors of calls that are made inside a range. And that
 * trace: a file of what each thread does, for Perfetto and Chrome (docs/profiling.md).
 *
 * Each thread has ranges of its own, one inside the other. A name is not copied: it stays as it is until its range is closed. Any thread; nothing blocks. Where nobody listens, a few nanoseconds. */
#ifndef EDDY_TRACE_H
#define EDDY_TRACE_H

#include <eddy/export.h>
#include <eddy/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a range of the calling thread. INVALID_ARGUMENT without a name; OUT_OF_MEMORY on a thread that has none for its state. Of more than 16 open ones those within are counted, and not shown. */
EDDY_API eddy_status eddy_range_push(const char *name);
/* Closes the last that is open. INVALID_ARGUMENT if none is. */
EDDY_API eddy_status eddy_range_pop(void);
/* Marks a moment. */
EDDY_API void eddy_mark(const char *name);

/* ---- the library's own trace ---- */

typedef struct eddy_trace_options {
    size_t size;
    int64_t limit_bytes; /* of the file, from 1 MB on; tracing ends there. 0: 1 GB */
    const char *phases;  /* names with commas between them, as the file has them; NULL: all */
} eddy_trace_options;

/* Writes what all runtimes of the process do from now on to a file, which is made or emptied; compressed where its name ends in .gz. "%p" in `path` is the number of the process. A thread of
 * its own writes; others leave events in memory for it, 1 MB a thread, and never wait for the file: events that come faster than they are written are dropped and counted. At exit the trace is stopped. A forked
 * child writes none. INVALID_ARGUMENT (a trace is being written, the path is NULL or too long, an unknown phase), IO, OUT_OF_MEMORY, UNSUPPORTED (.gz in a library that was built without zlib). Any thread; blocks
 * as opening a file does. */
EDDY_API eddy_status eddy_trace_start(const char *path, const eddy_trace_options *options);
/* The trace is whole on return, ranges that are open end there; OK also where none is written. `timeout` in ns. TIMED_OUT: the file is still being written, and can be waited for
 * again. IO: it could not be written; what is there can be read. Any thread. */
EDDY_API eddy_status eddy_trace_stop(int64_t timeout);

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_range_push(...) EDDY_AT_CALL_SITE(eddy_range_push(__VA_ARGS__))
#define eddy_range_pop(...) EDDY_AT_CALL_SITE(eddy_range_pop(__VA_ARGS__))
#define eddy_trace_start(...) EDDY_AT_CALL_SITE(eddy_trace_start(__VA_ARGS__))
#define eddy_trace_stop(...) EDDY_AT_CALL_SITE(eddy_trace_stop(__VA_ARGS__))
#define eddy_mark(...) EDDY_AT_CALL_SITE_VOID(eddy_mark(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
