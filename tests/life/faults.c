/* faults: fails each host allocation of a runtime's start and some work once. Each run ends in a clean error or in the right
 * numbers, leaks nothing, hangs nowhere, and the next step without a fault gives the same bits as if nothing had been.
 *
 *   faults threads|one_thread|streams train|programs|.. (`works`)
 *
 * streams: threads, and two streams for each program. */
#include "fault_programs.h"

#include <base/memory.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 8
#define INPUTS 12
#define HIDDEN 6
#define CLASSES 4

static int64_t at; /* the allocation that fails in this run, for messages */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: allocation %lld: %s\n", __FILE__, __LINE__, (long long)at,     \
                    #condition);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int64_t held_bytes(void) {
    int64_t bytes = 0;
    for (int p = 0; p < EDDY_MEMORY_PURPOSE_COUNT; p++)
        bytes += eddy_memory_counted((eddy_memory_purpose)p).bytes;
    return bytes;
}

/* One step of a small network with Adam, everything made here; the loss before and the sum of a weight after it. */
static eddy_status train_step(double *results) {
    float pixels[BATCH * INPUTS];
    int64_t labels[BATCH];
    for (int i = 0; i < BATCH * INPUTS; i++)
        pixels[i] = (float)(i % 17) / 17;
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % CLASSES;
    eddy_scope *scope = eddy_scope_begin();
    eddy_seed(3);
    eddy_tensor *x = eddy_from_data(pixels, EDDY_SHAPE(BATCH, INPUTS), EDDY_F32, NULL);
    eddy_tensor *y = eddy_from_data(labels, EDDY_SHAPE(BATCH), EDDY_I64, NULL);
    eddy_tensor *w1 = eddy_randn(EDDY_SHAPE(HIDDEN, INPUTS), EDDY_F32, NULL);
    eddy_tensor *w2 = eddy_randn(EDDY_SHAPE(CLASSES, HIDDEN), EDDY_F32, NULL);
    eddy_tensor *m1 = eddy_zeros_like(w1, NULL), *v1 = eddy_zeros_like(w1, NULL);
    eddy_tensor *m2 = eddy_zeros_like(w2, NULL), *v2 = eddy_zeros_like(w2, NULL);
    eddy_tensor *step = eddy_zeros(EDDY_SHAPE(), EDDY_I64, NULL);

    eddy_tensor *h = eddy_relu(eddy_linear(x, w1, EDDY_NONE));
    eddy_tensor *out = eddy_linear(h, w2, EDDY_NONE);
    eddy_tensor *loss = eddy_cross_entropy(out, y, NULL);
    eddy_tensor *one = eddy_ones(EDDY_SHAPE(), EDDY_F32, NULL);
    eddy_tensor *d_out = eddy_cross_entropy_backward(one, out, y, NULL);
    eddy_tensor *d_w2 = eddy_mm(eddy_t(d_out), h);
    eddy_tensor *d_h = eddy_relu_backward(eddy_mm(d_out, w2), h);
    eddy_tensor *d_w1 = eddy_mm(eddy_t(d_h), x);
    eddy_status status = eddy_adam_step(EDDY_LIST(w1, w2), EDDY_LIST(d_w1, d_w2), EDDY_LIST(m1, m2),
                                        EDDY_LIST(v1, v2), step, EDDY_S(0.01), NULL);
    if (status == EDDY_OK)
        status = eddy_read_f64(loss, &results[0], NULL);
    if (status == EDDY_OK)
        status = eddy_read_f64(eddy_sum(w1, EDDY_ALL_AXES, NULL), &results[1], NULL);
    eddy_status synced = eddy_sync(EDDY_FOREVER);
    if (status == EDDY_OK)
        status = synced;
    /* A scope that could not be begun leaves its tensors to the caller: here, to the end of the thread's handles. */
    eddy_scope_end(scope);
    if (!scope) {
        eddy_tensor *all[] = {x, y,   w1,   w2,  m1,    v1,   m2,  v2,  step,
                              h, out, loss, one, d_out, d_w2, d_h, d_w1};
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
            eddy_release(&all[i]);
    }
    return status;
}

static bool uses_one_thread, has_streams;
static eddy_status (*work)(double *results);

/* One runtime's life with the allocation `at` failing; whether it got that far. */
static bool run_with_fault(const double *expected) {
    eddy_runtime_options options = {.size = sizeof(options),
                                    .threads = 2,
                                    .uses_one_thread = uses_one_thread,
                                    .exits_silently = true,
                                    .program_streams = has_streams ? 2 : 0};
    double results[2];
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, at, 1);
    eddy_runtime *runtime = eddy_runtime_create(&options);
    eddy_status status = EDDY_OUT_OF_MEMORY;
    if (runtime && (status = eddy_runtime_use(runtime)) == EDDY_OK)
        status = work(results);
    bool has_failed = eddy_memory_failures_injected() > 0;
    eddy_memory_fail_at(EDDY_MEMORY_PURPOSE_COUNT, 0, 0);
    eddy_error error;
    eddy_status recorded = eddy_error_take(&error);
    if (status == EDDY_OK) {
        CHECK(results[0] == expected[0] && results[1] == expected[1]);
    } else {
        CHECK(has_failed);
        CHECK(recorded == EDDY_OUT_OF_MEMORY);
        CHECK(error.message[0]);
    }
    if (!runtime) {
        runtime = eddy_runtime_create(&options);
        CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    } else {
        CHECK(eddy_runtime_use(runtime) == EDDY_OK);
    }
    /* What is unseen was caused above. */
    if (eddy_sync(EDDY_FOREVER) != EDDY_OK)
        eddy_error_take(NULL);
    CHECK(work(results) == EDDY_OK);
    CHECK(results[0] == expected[0] && results[1] == expected[1]);
    /* Handles kept for later hold the runtime that they were last used in, and how many a run takes depends on when others release theirs. */
    eddy_trim();
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK);
    CHECK(eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
    return has_failed;
}

/* False: a word is none of those that there are. */
static bool choose(const char *threads_of, const char *name) {
    static const struct {
        const char *name;
        eddy_status (*work)(double *results);
    } works[] = {{"train", train_step},
                 {"programs", run_programs},
                 {"buckets", run_program_buckets},
                 {"guards", run_program_guards},
                 {"callbacks", run_program_callbacks},
                 {"branches", run_program_branches},
                 {"loops", run_program_loops},
                 {"scans", run_program_scans},
                 {"gradients", run_program_gradients},
                 {"gradient_sizes", run_program_gradient_sizes},
                 {"gradient_buckets", run_program_gradient_buckets},
                 {"gradient_many", run_program_gradient_many},
                 {"paths", run_program_paths},
                 {"sizes", run_program_sizes},
                 {"devices", run_program_devices}};
    uses_one_thread = strcmp(threads_of, "one_thread") == 0;
    has_streams = strcmp(threads_of, "streams") == 0;
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
        if (strcmp(name, works[i].name) == 0)
            work = works[i].work;
    return work && (uses_one_thread || has_streams || strcmp(threads_of, "threads") == 0);
}

int main(int argc, char **argv) {
    alarm(590);
    if (argc != 3 || !choose(argv[1], argv[2]))
        return 2;
    eddy_runtime_options options = {.size = sizeof(options), .uses_one_thread = true};
    double expected[2];
    eddy_runtime *runtime = eddy_runtime_create(&options);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK && work(expected) == EDDY_OK);
    CHECK(eddy_runtime_shutdown(runtime, EDDY_FOREVER) == EDDY_OK &&
          eddy_runtime_use(NULL) == EDDY_OK);
    eddy_runtime_release(&runtime);
    int64_t before = 0;
    for (at = 0; run_with_fault(expected); at++) {
        CHECK(eddy_live_count() == 0);
        CHECK(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes == 0);
        CHECK(eddy_memory_counted(EDDY_MEMORY_TAPE).bytes == 0);
        /* Caches of the thread grow to their final size in the first runs. */
        if (at == 3)
            before = held_bytes();
    }
    CHECK(held_bytes() <= before + 65536);
    CHECK(at > 20);
    printf("each of %lld allocations failed once\n", (long long)at);
    return 0;
}
