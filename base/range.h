/* Ranges of the user's (eddy/trace.h), as a thread has them open: events, and a part of errors. */
#ifndef EDDY_BASE_RANGE_H
#define EDDY_BASE_RANGE_H

#include <base/trace.h>
#include <stddef.h>

#define EDDY_RANGES_SHOWN 16

typedef struct eddy_range {
    const char *name;
    eddy_trace_span span;
} eddy_range;

typedef struct eddy_ranges {
    uint64_t depth;
    eddy_range shown[EDDY_RANGES_SHOWN]; /* the outermost; further ones are counted */
} eddy_ranges;

/* <calling thread> only: its own, once it has opened one; errors name what is open there. */
extern __thread const eddy_ranges *eddy_ranges_own __attribute__((tls_model("initial-exec")));

void eddy_ranges_push(eddy_ranges *ranges, const char *name);
/* One is open. */
void eddy_ranges_pop(eddy_ranges *ranges);
/* " (in train, step 3)", from the outermost on; "" where none is open or there is not enough room. */
void eddy_ranges_describe(const eddy_ranges *ranges, char *buffer, size_t size);

#endif
