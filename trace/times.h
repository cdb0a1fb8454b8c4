/* How often and how long (EDDY_TIMES): sums over events (base/trace.h) of the process, by phase, by op and by stream. Nothing is counted, and no clock is read, before eddy_times_begin. */
#ifndef EDDY_TRACE_TIMES_H
#define EDDY_TRACE_TIMES_H

#include <base/assert.h>
#include <base/call_site.h>
#include <base/trace.h>
#include <eddy/status.h>
#include <stdint.h>

typedef struct eddy_times_sum {
    int64_t count, ns;
} eddy_times_sum;

typedef struct eddy_times {
    eddy_times_sum
        phases[EDDY_TRACE_PHASE_COUNT]; /* ranges; moments, as edges are, count for none */
    eddy_times_sum throttled;           /* waits of callers that were held back */
    int64_t memory_taken, memory_refused, memory_given_back;
    int64_t failed, skipped; /* instructions, by their own failure, or by that of another */
} eddy_times;

/* An op's kernels, or what was on a stream (then without the most and bytes). */
typedef struct eddy_times_row {
    const char *name; /* for good */
    int64_t count, ns, most_ns, bytes;
} eddy_times_row;
typedef void eddy_times_visitor(void *context, int64_t place, const eddy_times_row *row);

/* From now on, until the process ends. Any thread. */
EDDY_MUST_USE eddy_status eddy_times_begin(eddy_origin origin);
/* Each number is exact; they are not read at one moment. */
void eddy_times_read(eddy_times *times);
/* Calls `visit` for each op whose kernels have run, those that took longest first, with its place among them; returns how many there are. 0 where there is no memory to sort them. */
int64_t eddy_times_ops(eddy_times_visitor *visit, void *context);
/* The same for the streams that they were on, and those of devices. */
int64_t eddy_times_streams(eddy_times_visitor *visit, void *context);

#endif
