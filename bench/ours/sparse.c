/* Rows about an op that is issued once a millisecond, so that all threads sleep in between: the caller's time (sparse_add16),
 * and the time until the op has run, without a later call (sparse_add16_completion). sparse_wake and sparse_wake_completion
 * are the same through the scheduler thread, which has to be woken. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>

#define OPS 51 /* per round; a sample is their median */
#define PERIOD_NS 1000000
#define PATIENCE_NS 1e9

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, OPS, sizeof(double), ascending);
    return values[OPS / 2];
}

static void sleep_one_period(void) {
    nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
}

/* Medians of one round, in us. */
static void round_of_ops(eddy_tensor *left, eddy_tensor *right, double *caller_us,
                         double *completion_us) {
    double caller[OPS], completion[OPS];
    for (int i = 0; i < OPS; i++) {
        sleep_one_period();
        double began = bench_now_ns();
        eddy_tensor *sum = eddy_add(left, right);
        double returned = bench_now_ns(), now = returned;
        while (!eddy_is_ready(sum) && now - began < PATIENCE_NS)
            now = bench_now_ns();
        must_tensor(sum);
        eddy_release(&sum);
        caller[i] = (returned - began) / 1e3;
        completion[i] = (now - began) / 1e3;
    }
    *caller_us = median(caller);
    *completion_us = median(completion);
}

static const struct {
    const char *row;
    bool is_woken, is_completion;
} rows[] = {{"sparse_add16", false, false},
            {"sparse_add16_completion", false, true},
            {"sparse_wake", true, false},
            {"sparse_wake_completion", true, true}};

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    unsigned r = 0;
    while (r < sizeof(rows) / sizeof(rows[0]) && strcmp(row, rows[r].row))
        r++;
    if (r == sizeof(rows) / sizeof(rows[0])) {
        fprintf(stderr, "sparse: no such row: %s\n", row);
        return 2;
    }
    bool is_completion = rows[r].is_completion;
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_full_path = rows[r].is_woken));
    if (!runtime)
        must_fail();
    must(eddy_runtime_use(runtime));
    float values[16] = {1, 2, 3};
    eddy_tensor *left = must_tensor(eddy_from_data(values, EDDY_SHAPE(16), EDDY_F32, NULL));
    eddy_tensor *right = must_tensor(eddy_from_data(values, EDDY_SHAPE(16), EDDY_F32, NULL));
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -1; i < count; i++) {
        double caller_us, completion_us;
        round_of_ops(left, right, &caller_us, &completion_us);
        if (i >= 0)
            bench_samples_push(&samples, is_completion ? completion_us : caller_us);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&left);
    eddy_release(&right);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
    bench_print_row(row, "us", eddy_version_text(), path, &samples);
    return 0;
}
