#include <vm/pace.h>

/* Weight of a new measurement: one in so many. */
#define WEIGHT 4
/* Estimates may be off: what has finished is taken off so many times. */
#define CAUTION 2

void eddy_pace_begin(eddy_pace *pace, eddy_pace_moment now) {
    pace->since = now;
    pace->is_open = true;
}

void eddy_pace_end(eddy_pace *pace, eddy_pace_moment now, int64_t light_ns, bool waits) {
    if (!pace->is_open)
        return;
    const eddy_pace_moment *since = &pace->since;
    int64_t own = 0;
    /* A VM that was made at the place of another counts anew. */
    if (since->vm == now.vm && since->sequence <= now.sequence)
        own = now.ns - since->ns - CAUTION * (now.finished_ns - since->finished_ns) -
              light_ns * (int64_t)(now.sequence - since->sequence);
    pace->own_ns += ((own > 0 ? own : 0) - pace->own_ns) / WEIGHT;
    pace->has_waited = waits;
    pace->is_open = false;
}
