/* Rows of calls that a device runs one after another, timed until all have run: for both programs. */
#ifndef EDDY_BENCH_CUDA_TIMED_H
#define EDDY_BENCH_CUDA_TIMED_H

#include <bench/sample.h>

typedef struct timed_calls {
    void (*call)(void *work);
    void (*wait)(void); /* until all calls have run */
    void *work;
    double sample_ns; /* that a sample takes, if a call takes less */
} timed_calls;

/* For a sample in which the wait for its end, of some tens of microseconds, is next to nothing; and for one of hundreds of rows. */
#define TIMED_LONG_NS 3e7
#define TIMED_SHORT_NS 3e6

/* ns of a call. */
static inline double timed_calls_ns(const timed_calls *calls, int count) {
    double began = bench_now_ns();
    for (int call = 0; call < count; call++)
        calls->call(calls->work);
    calls->wait();
    return (bench_now_ns() - began) / count;
}

static inline int timed_calls_in_sample(const timed_calls *calls, double ns) {
    return ns >= calls->sample_ns ? 1 : (int)(calls->sample_ns / (ns > 1 ? ns : 1));
}

/* Samples of a call, in units of unit_ns. */
static inline void timed_calls_measure(const timed_calls *calls, double unit_ns, int sample_count,
                                       bench_samples *samples) {
    (void)timed_calls_ns(calls, 1);
    int count = timed_calls_in_sample(calls, timed_calls_ns(calls, 1));
    count = timed_calls_in_sample(calls, timed_calls_ns(calls, count));
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
