/* What the library's VM is asked for and runs, seen from outside: for programs that are linked with --wrap for the functions of the VM
 * that watch.c names, so that every call to them inside the library comes here first. One-thread mode only. */
#ifndef BENCH_OURS_WATCH_H
#define BENCH_OURS_WATCH_H

#include <stdint.h>

typedef struct watch_counts {
    int64_t estimated_ps; /* the sum of cost_ps over what was submitted */
    int64_t executions;
    double
        executed_ns; /* what eddy_vm_execute took: the outputs' memory, the workspace, the kernel */
} watch_counts;

void watch_reset(void);
/* Since the last reset. */
watch_counts watch_now(void);

#endif
