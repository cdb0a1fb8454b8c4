/* The slices of one loop, divided among the threads that run it: each thread has a lane, a range of its own, and takes slices of other
 * lanes when its own is empty. In successive loops over the same elements a thread finds its elements in its cache. */
#ifndef EDDY_STREAMS_LANES_H
#define EDDY_STREAMS_LANES_H

#include <base/atomic.h>
#include <stdbool.h>
#include <stdint.h>

/* If there are more threads, they share lanes. */
#define EDDY_LANES_MOST 16

typedef struct eddy_lane {
    _Atomic int64_t next; /* atomic: first index not taken; takers add (relaxed) */
    int64_t end;          /* const */
} __attribute__((aligned(EDDY_CACHE_LINE))) eddy_lane;

typedef struct eddy_lanes {
    int64_t grain;      /* const */
    int32_t lane_count; /* const */
    eddy_lane lanes[EDDY_LANES_MOST];
} eddy_lanes;

/* Cuts [0, count) into slices of `grain` (at least 1; the last may be shorter), and those into lanes for as many threads. */
void eddy_lanes_init(eddy_lanes *lanes, int64_t count, int64_t grain, int32_t thread_count);
/* Takes a slice for the thread of this lane; false if none is left. Any thread. */
bool eddy_lanes_take(eddy_lanes *lanes, int32_t lane, int64_t *begin, int64_t *end);
/* Whether a slice is left: a hint. */
bool eddy_lanes_has_more(const eddy_lanes *lanes);

#endif
