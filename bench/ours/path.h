/* The column "path" of the table: which threads ran the instructions. */
#ifndef BENCH_OURS_PATH_H
#define BENCH_OURS_PATH_H

#include <stdint.h>

#define PATH_BYTES 96

/* Instructions run by callers, by scheduler threads and by workers. */
typedef struct path_counts {
    int64_t caller, scheduler, worker;
} path_counts;

/* Counts of the calling thread's current runtime, since its start. Ends the program if there is none. */
path_counts path_now(void);
/* Writes the shares between two readings into text: "caller", or "scheduler 97 %, worker 3 %". */
void path_format(path_counts before, path_counts after, char text[PATH_BYTES]);

#endif
