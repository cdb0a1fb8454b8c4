/* Times one call that is made many times: the loop of the gemm_* and pool_* rows, in Eddy's programs and the peers'. */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <bench/sample.h>

typedef struct bench_calls {
    void (*call)(void *work);
    void (*wait)(void *work); /* until all calls have run; NULL: a call has run when it returns */
    void *work;
    int count; /* in a sample */
} bench_calls;

/* Samples, in us per call. Two samples before them warm up and are not recorded. */
static inline void bench_calls_measure(const bench_calls *calls, int sample_count,
                                       bench_samples *samples) {
    samples->count = 0;
    for (int i = -2; i < sample_count; i++) {
        double began = bench_now_ns();
        for (int n = 0; n < calls->count; n++)
            calls->call(calls->work);
        if (calls->wait)
            calls->wait(calls->work);
        if (i >= 0)
            bench_samples_push(samples, (bench_now_ns() - began) / calls->count / 1e3);
    }
}

#endif
