/* How long streams are busy: sums by stream over kernels and what devices have done, for times.h. */
#ifndef EDDY_TRACE_BUSY_H
#define EDDY_TRACE_BUSY_H

#include <base/trace.h>

/* The others are counted together, in a place behind these. */
#define EDDY_BUSY_STREAMS_MOST 256

/* One more instruction of the stream, and its time. Any thread; within a listener. */
void eddy_busy_add(const eddy_trace_stream *stream, int64_t ns);
/* What is in the place: "stream 0", "loader", "far:0, compute", for good; false: nothing. Each number is exact; they are not read at one moment. */
bool eddy_busy_read(uint32_t place, const char **name, int64_t *count, int64_t *ns);
/* In a forked child: nobody is adding a stream. */
void eddy_busy_fork_child(void);

#endif
