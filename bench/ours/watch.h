/* Counts the calls that the library submits to its VM and runs. A program that uses this is linked with --wrap for the functions of the
 * VM that watch.c names, so that the library's calls of them reach watch.c first. One-thread mode only. */
#ifndef BENCH_OURS_WATCH_H
#define BENCH_OURS_WATCH_H

#include <stdint.h>

typedef struct watch_counts {
    int64_t estimated_ps; /* the sum of cost_ps of all submitted calls */
    int64_t executions;
    double
        executed_ns; /* time in eddy_vm_execute, for the outputs' memory, the workspace and the kernel */
} watch_counts;

void watch_reset(void);
/* Counts since the last reset. */
watch_counts watch_now(void);

#endif
