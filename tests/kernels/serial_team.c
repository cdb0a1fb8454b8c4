#include "serial_team.h"
#include <base/atomic.h>
#include <pthread.h>
#include <stdlib.h>

typedef void slice_fn(void *context, int64_t begin, int64_t end);

static void run_slice(int64_t slice, int64_t count, int64_t grain, slice_fn *body, void *context) {
    int64_t begin = slice * grain, end = begin + grain < count ? begin + grain : count;
    body(context, begin, end);
}

static void serial_for(eddy_kernel_team *team, int64_t count, int64_t grain, slice_fn *body,
                       void *context) {
    (void)team;
    for (int64_t slice = 0; slice * grain < count; slice++)
        run_slice(slice, count, grain, body, context);
}

static void shuffled_for(eddy_kernel_team *team, int64_t count, int64_t grain, slice_fn *body,
                         void *context) {
    (void)team;
    int64_t slices = (count + grain - 1) / grain;
    int64_t *order = malloc((size_t)(slices + 1) * sizeof(int64_t));
    unsigned state = 12345;
    for (int64_t i = 0; i < slices; i++) {
        state = state * 1664525u + 1013904223u;
        int64_t j = state % (unsigned)(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int64_t i = 0; i < slices; i++)
        run_slice(order[i], count, grain, body, context);
    free(order);
}

#define THREADS 4

typedef struct job {
    int64_t count, grain;
    slice_fn *body;
    void *context;
    _Atomic int64_t next;
} job;

static void *work(void *argument) {
    job *j = argument;
    for (;;) {
        int64_t slice = eddy_add_relaxed(&j->next, 1);
        if (slice * j->grain >= j->count)
            return NULL;
        run_slice(slice, j->count, j->grain, j->body, j->context);
    }
}

static void threaded_for(eddy_kernel_team *team, int64_t count, int64_t grain, slice_fn *body,
                         void *context) {
    (void)team;
    job j = {.count = count, .grain = grain, .body = body, .context = context};
    pthread_t threads[THREADS];
    int started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, work, &j) == 0)
        started++;
    work(&j);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

eddy_kernel_team serial_team = {.parallel_for = serial_for, .thread_count = 1};
eddy_kernel_team shuffling_team = {.parallel_for = shuffled_for, .thread_count = 3};
eddy_kernel_team threaded_team = {.parallel_for = threaded_for, .thread_count = THREADS};
