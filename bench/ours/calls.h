/* Calls of one op of Eddy: timed until all have run, and printed with the threads that ran them. */
#ifndef BENCH_OURS_CALLS_H
#define BENCH_OURS_CALLS_H

#include <bench/calls.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <eddy/eddy.h>

static inline void wait_for_calls(void *work) {
    (void)work;
    must(eddy_sync(EDDY_FOREVER));
}

/* call: creates the op's output and releases it; count: calls per sample. */
static inline void measure_calls(const char *row, void (*call)(void *), void *work, int count,
                                 int sample_count) {
    const bench_calls calls = {.call = call, .wait = wait_for_calls, .work = work, .count = count};
    bench_samples samples;
    path_counts before = path_now();
    bench_calls_measure(&calls, sample_count, &samples);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    bench_print_row(row, "us", eddy_version_text(), path, &samples);
}

#endif
