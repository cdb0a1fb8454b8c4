/* What an issuing thread's program does after a dear call: whether it has work of its own, beside which the call can be run elsewhere, or waits
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

/* Of one thread. All 0 to begin with. */
typedef struct eddy_pace {
    eddy_pace_moment since; /* the last dear call was over for the program */
    bool is_open;           /* and neither another one nor a wait has come yet */
    bool has_waited;        /* the one before ended in a wait */
    int64_t own_ns;         /* smoothed: time that was the program's own */
} eddy_pace;

/* The program goes on after a dear call. */
void eddy_pace_begin(eddy_pace *pace, eddy_pace_moment now);
/* It is back with the next dear call, or to wait. What was run meanwhile was no time of its own: what has finished in the VM, and what
 * was issued, up to `light_ns` each, which may have run in passing. Without a beginning: nothing. */
void eddy_pace_end(eddy_pace *pace, eddy_pace_moment now, int64_t light_ns, bool waits);

#endif
