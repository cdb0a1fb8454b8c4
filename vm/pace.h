/* What an issuing thread does after a dear call: whether it has work of its own, so that another thread should run the call, or waits
 * for the result at once. */
#ifndef EDDY_VM_PACE_H
#define EDDY_VM_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct eddy_pace_moment {
    const void *vm;
    int64_t ns;          /* by the clock */
    uint64_t sequence;   /* calls issued in the VM */
    int64_t finished_ns; /* estimates of those that have finished */
} eddy_pace_moment;

/* Of one thread. All 0 at first. */
typedef struct eddy_pace {
    eddy_pace_moment since; /* when the last dear call returned to the program */
    bool is_open;           /* no other dear call and no wait has come since */
    bool has_waited;        /* the previous period ended in a wait */
    int64_t own_ns;         /* smoothed: time of the program's own work */
} eddy_pace;

/* A dear call returns to the program. */
void eddy_pace_begin(eddy_pace *pace, eddy_pace_moment now);
/* The program makes its next dear call, or waits. Time in which the thread ran instructions does not count as its own: those that have
 * finished in the VM, and those issued, up to `light_ns` each, which it may have run on the way. Without a begin it does nothing. */
void eddy_pace_end(eddy_pace *pace, eddy_pace_moment now, int64_t light_ns, bool waits);

#endif
