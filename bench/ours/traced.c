/* Rows of the library's own trace (eddy_trace_start), which goes to a file in TMPDIR, else /tmp:
 *
 *     observe_trace_1t, _2t          what an add of 16 floats takes more, over its events, while one or two threads issue so few at once that no event is dropped
 *     observe_trace_rate             nanoseconds an event, of one thread, below which some are dropped
 *     observe_trace_bytes, _gzip_bytes  megabytes of a million events of a training step (mlp_step.h)
 *     observe_trace_mlp_b64_1t       such a step over one that is not traced */
#include "must.h"
#include <base/trace.h>
#include <bench/ours/mlp_step.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <trace/ring.h>
#include <unistd.h>

static char path[256];

static void begin_trace(const char *ending) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%.200s/eddy_traced_%d%s", folder && *folder ? folder : "/tmp",
             (int)getpid(), ending);
    must(eddy_trace_start(path, EDDY_OPTIONS(trace, .limit_bytes = INT64_C(1) << 36)));
}

/* The bytes of the file, which is removed. */
static double end_trace(void) {
    struct stat about = {0};
    must(eddy_trace_stop(EDDY_FOREVER));
    (void)stat(path, &about);
    unlink(path);
    return (double)about.st_size;
}

/* ---- events ---- */

static _Atomic long heard;

static void count_event(void *context, const eddy_trace_event *event) {
    (void)context;
    (void)event;
    eddy_add_relaxed(&heard, 1);
}

static uint32_t begin_counting(void) {
    uint32_t place;
    eddy_trace_listener listener = {count_event, NULL, EDDY_TRACE_ALL_PHASES};
    must(eddy_trace_add(&listener, &place));
    eddy_store_relaxed(&heard, 0);
    return place;
}

static double end_counting(uint32_t place) {
    eddy_trace_remove(place);
    return (double)eddy_load_relaxed(&heard);
}

/* ---- an add ---- */

/* Whose records fill less than half a ring. */
#define ADDS 1000

typedef struct issuer {
    eddy_runtime *runtime;
    eddy_tensor *x;
    double ns; /* of an add */
} issuer;

static void init_issuer(issuer *i) {
    i->runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    must(i->runtime ? eddy_runtime_use(i->runtime) : EDDY_INVALID_ARGUMENT);
    i->x = must_tensor(eddy_ones(EDDY_SHAPE(16), EDDY_F32, NULL));
}

static void *run_adds(void *context) {
    issuer *i = context;
    must(eddy_runtime_use(i->runtime));
    double began = bench_now_ns();
    for (int n = 0; n < ADDS; n++) {
        eddy_tensor *y = eddy_add(i->x, i->x);
        eddy_release(&y);
    }
    i->ns = (bench_now_ns() - began) / ADDS;
    return NULL;
}

/* On so many threads at once; the mean. */
static double add_ns(issuer *issuers, int count) {
    pthread_t threads[2];
    double sum = 0;
    /* The writer takes what is there. */
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    for (int t = 1; t < count; t++)
        if (pthread_create(&threads[t], NULL, run_adds, &issuers[t]) != 0)
            exit(1);
    (void)run_adds(&issuers[0]);
    for (int t = 1; t < count; t++)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < count; t++)
        sum += issuers[t].ns / count;
    return sum;
}

static double least_add_ns(issuer *issuers, int count) {
    double least = add_ns(issuers, count);
    for (int i = 0; i < 30; i++) {
        double ns = add_ns(issuers, count);
        least = ns < least ? ns : least;
    }
    return least;
}

static void measure_adds(int threads, int count, bench_samples *samples) {
    issuer issuers[2];
    for (int t = 0; t < threads; t++)
        init_issuer(&issuers[t]);
    double untraced = least_add_ns(issuers, threads);
    uint32_t place = begin_counting();
    (void)add_ns(issuers, 1);
    double events = end_counting(place) / ADDS;
    for (int i = 0; i < count; i++) {
        begin_trace(".json");
        bench_samples_push(samples, (least_add_ns(issuers, threads) - untraced) / events);
        if (eddy_rings_dropped() > 0)
            exit(1);
        (void)end_trace();
    }
}

/* ---- rate ---- */

#define RATE_NS 2e8
#define RATE_SPANS 64

/* Millions of events a second, at most so many; 0 where some are not in the file. */
static double rate_kept(double most) {
    begin_trace(".json");
    double began = bench_now_ns(), now = began;
    long n = 0;
    for (; now - began < RATE_NS; n += 2 * RATE_SPANS) {
        for (int i = 0; i < RATE_SPANS; i++) {
            eddy_trace_span span = EDDY_TRACE_BEGIN(KERNEL, .op = "add", .sequence = (uint64_t)n);
            EDDY_TRACE_END(span, .op = "add", .sequence = (uint64_t)n);
        }
        while ((now = bench_now_ns()) < began + (double)n * 1e3 / most) {
        }
    }
    bool is_kept = eddy_rings_dropped() == 0;
    (void)end_trace();
    return is_kept ? (double)n * 1e3 / (now - began) : 0;
}

/* A thread cannot raise more than it takes time for. */
static double greatest_rate(void) {
    double low = 0.25, high = 64, greatest = 0;
    for (int i = 0; i < 9; i++) {
        double middle = (low + high) / 2, rate = rate_kept(middle);
        if (rate > 0)
            low = middle;
        else
            high = middle;
        greatest = rate > greatest ? rate : greatest;
    }
    return greatest;
}

/* ---- training steps ---- */

#define STEPS 100

static double step_ns(void) {
    double began = bench_now_ns(), value;
    for (int s = 0; s < STEPS; s++) {
        eddy_tensor *loss = mlp_step(false);
        must(eddy_read_f64(loss, &value, NULL));
        eddy_release(&loss);
    }
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / STEPS;
}

static double bytes_of_million(const char *ending) {
    uint32_t place = begin_counting();
    (void)step_ns();
    double events = end_counting(place);
    begin_trace(ending);
    for (int i = 0; i < 10; i++)
        (void)step_ns();
    if (eddy_rings_dropped() > 0)
        exit(1);
    return end_trace() / (10 * events);
}

static double step_ratio(void) {
    double untraced = step_ns();
    begin_trace(".json");
    double traced = step_ns();
    (void)end_trace();
    return traced / untraced;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "", *unit = "ns";
    int count = bench_sample_count(argc, argv, 2);
    bench_samples samples = {.count = 0};
    bool is_step = strstr(row, "bytes") || strstr(row, "mlp");
    if (is_step) {
        mlp_step_init(64);
        (void)step_ns();
    }
    if (strcmp(row, "observe_trace_1t") == 0 || strcmp(row, "observe_trace_2t") == 0) {
        measure_adds(row[strlen(row) - 2] - '0', count, &samples);
    } else if (strcmp(row, "observe_trace_rate") == 0) {
        for (int i = 0; i < count; i++)
            bench_samples_push(&samples, 1e3 / greatest_rate());
    } else if (strcmp(row, "observe_trace_bytes") == 0 ||
               strcmp(row, "observe_trace_gzip_bytes") == 0) {
        unit = "MB";
        bench_samples_push(&samples, bytes_of_million(strstr(row, "gzip") ? ".json.gz" : ".json"));
    } else if (strcmp(row, "observe_trace_mlp_b64_1t") == 0) {
        unit = "x";
        for (int i = 0; i < count; i++)
            bench_samples_push(&samples, step_ratio());
    } else {
        fprintf(stderr, "traced: no such row\n");
        return 2;
    }
    if (is_step)
        mlp_step_fini();
    bench_print_row(row, unit, eddy_version_text(), "caller", &samples);
    return eddy_error_take(NULL) != EDDY_OK;
}
