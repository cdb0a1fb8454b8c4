#include <vm/pace.h>

/* The weight of a new measurement is one over this. */
#define WEIGHT 4
/* Estimates may be too low: so many times the finished estimates are subtracted. */
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
    /* A VM at the address of a former one starts anew. */
    if (since->vm == now.vm && since->sequence <= now.sequence)
        own = now.ns - since->ns - CAUTION * (now.finished_ns - since->finished_ns) -
              light_ns * (int64_t)(now.sequence - since->sequence);
    pace->own_ns += ((own > 0 ? own : 0) - pace->own_ns) / WEIGHT;
    pace->has_waited = waits;
    pace->is_open = false;
}
