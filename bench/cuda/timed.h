/* Rows of calls that a device runs one after another, timed until all have run: for both programs. */
#ifndef EDDY_BENCH_CUDA_TIMED_H
#define EDDY_BENCH_CUDA_TIMED_H

#include <bench/sample.h>

typedef struct timed_calls {
    void (*call)(void *work);
    void (*wait)(void); /* until all calls have run */
    void *work;
} timed_calls;

/* ns of a call. */
static inline double timed_calls_ns(const timed_calls *calls, int count) {
    double began = bench_now_ns();
    for (int call = 0; call < count; call++)
        calls->call(calls->work);
    calls->wait();
    return (bench_now_ns() - began) / count;
}

/* Calls of 30 ms: their end is waited for in some tens of microseconds. */
static inline int timed_calls_in_sample(double ns) {
    return bench_calls_for(ns / 10);
}

/* Samples of a call, in units of unit_ns. */
static inline void timed_calls_measure(const timed_calls *calls, double unit_ns, int sample_count,
                                       bench_samples *samples) {
    (void)timed_calls_ns(calls, 1);
    int count = timed_calls_in_sample(timed_calls_ns(calls, 1));
    count = timed_calls_in_sample(timed_calls_ns(calls, count));
    sample_count = bench_samples_for(timed_calls_ns(calls, count) * count, sample_count);
    samples->count = 0;
    for (int sample = 0; sample < sample_count; sample++)
        bench_samples_push(samples, timed_calls_ns(calls, count) / unit_ns);
}

/* Removes the next name from a list that commas part; false at its end. */
static inline bool timed_row_next(const char **list, char row[64]) {
    size_t length = strcspn(*list, ",");
    snprintf(row, 64, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return length > 0;
}

#endif
