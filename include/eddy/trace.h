/* Names for what a program does: ranges and marks in profilers that know NVTX, such as Nsight Systems, beside the library's own ranges; and in the errors of calls that are made inside a range.
 *
 * Each thread has ranges of its own, one inside the other. A name is not copied: it stays as it is until its range is closed. Any thread; nothing blocks. Where nobody listens, a few nanoseconds. */
#ifndef EDDY_TRACE_H
#define EDDY_TRACE_H

#include <eddy/export.h>
#include <eddy/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a range of the calling thread. INVALID_ARGUMENT without a name; OUT_OF_MEMORY on a thread that has none for its state. Of more than 16 open ones those within are counted, and not shown. */
EDDY_API eddy_status eddy_range_push(const char *name);
/* Closes the last that is open. INVALID_ARGUMENT if none is. */
EDDY_API eddy_status eddy_range_pop(void);
/* Marks a moment. */
EDDY_API void eddy_mark(const char *name);

#ifdef EDDY_CALL_SITES
#include <eddy/call_sites.h>
#define eddy_range_push(...) EDDY_AT_CALL_SITE(eddy_range_push(__VA_ARGS__))
#define eddy_range_pop(...) EDDY_AT_CALL_SITE(eddy_range_pop(__VA_ARGS__))
#define eddy_mark(...) EDDY_AT_CALL_SITE_VOID(eddy_mark(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
