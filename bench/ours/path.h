/* Where instructions ran, in words: what a row of the table names beside its figures. */
#ifndef BENCH_OURS_PATH_H
#define BENCH_OURS_PATH_H

#include <stdint.h>

#define PATH_BYTES 96

/* Counts of instructions run in each of the three places. */
typedef struct path_counts {
    int64_t caller, scheduler, worker;
} path_counts;

/* Of the calling thread's current runtime, since it began. Ends the program where there is none. */
path_counts path_now(void);
/* What ran between two readings: "caller", or "scheduler 97 %, worker 3 %" into text. */
void path_format(path_counts before, path_counts after, char text[PATH_BYTES]);

#endif
