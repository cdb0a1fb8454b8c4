/* Rows about one cheap op: an add of 16 floats whose output is created and released; observe_off and observe_nvtx_unwatched are
 * caller_run_add16, beside other builds. `add16 count_add16 N` issues N adds in
 * one-thread mode and prints nothing: for callgrind. */
#include <bench/heap_count.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/eddy.h>

static eddy_tensor *left, *right;

/* Starts a runtime for this thread and makes the operands. */
static eddy_runtime *begin(const eddy_runtime_options *options, int64_t elements) {
    float values[16] = {1, 2, 3};
    eddy_runtime *runtime = eddy_runtime_create(options);
    if (!runtime)
        must_fail();
    must(eddy_runtime_use(runtime));
    left = must_tensor(eddy_from_data(values, EDDY_SHAPE(elements), EDDY_F32, NULL));
    right = must_tensor(eddy_from_data(values, EDDY_SHAPE(elements), EDDY_F32, NULL));
    return runtime;
}

static void end(eddy_runtime *runtime) {
    eddy_release(&left);
    eddy_release(&right);
    must(eddy_sync(EDDY_FOREVER));
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

static void adds(int count) {
    for (int i = 0; i < count; i++) {
        eddy_tensor *sum = eddy_add(left, right);
        eddy_release(&sum);
    }
}

/* The caller's time only, in bursts too short for back-pressure. The wait after each burst is not timed. */
static double issue_sample(void) {
    double spent = 0;
    for (int burst = 0; burst < BENCH_ADD_OPS / BENCH_ISSUE_OPS; burst++) {
        double began = bench_now_ns();
        adds(BENCH_ISSUE_OPS);
        spent += bench_now_ns() - began;
        must(eddy_sync(EDDY_FOREVER));
    }
    return spent / BENCH_ADD_OPS;
}

/* Time until the last add has run. */
static double whole_sample(void) {
    double began = bench_now_ns();
    adds(BENCH_ADD_OPS);
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / BENCH_ADD_OPS;
}

/* The host reads each sum directly after its call. */
static double read_sample(void) {
    double began = bench_now_ns();
    for (int i = 0; i < BENCH_ADD_OPS; i++) {
        eddy_tensor *sum = eddy_add(left, right);
        float value;
        must(eddy_read(sum, &value, sizeof(value), NULL));
        eddy_release(&sum);
    }
    return (bench_now_ns() - began) / BENCH_ADD_OPS;
}

static double heap_sample(void) {
    uint64_t before = bench_heap_count();
    adds(BENCH_ADD_OPS);
    must(eddy_sync(EDDY_FOREVER));
    return (double)(bench_heap_count() - before) / BENCH_ADD_OPS;
}

static void run_row(const char *row, const char *unit, const eddy_runtime_options *options,
                    int64_t elements, double (*sample)(void), int count) {
    bench_samples samples = {.count = 0};
    char path[PATH_BYTES];
    eddy_runtime *runtime = begin(options, elements);
    for (int i = 0; i < 2; i++)
        sample();
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample());
    path_format(before, path_now(), path);
    end(runtime);
    bench_print_row(row, unit, eddy_version_text(), path, &samples);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    const eddy_runtime_options *usual = NULL,
                               *full_path = EDDY_OPTIONS(runtime, .uses_full_path = true);
    if (!strcmp(row, "count_add16")) {
        eddy_runtime *runtime = begin(EDDY_OPTIONS(runtime, .uses_one_thread = true), 16);
        adds(argc > 2 ? atoi(argv[2]) : 1);
        end(runtime);
    } else if (!strcmp(row, "issue_add16")) {
        run_row(row, "ns", full_path, 16, issue_sample, count);
    } else if (!strcmp(row, "end_to_end_add16")) {
        run_row(row, "ns", full_path, 16, whole_sample, count);
    } else if (!strcmp(row, "caller_run_add16") || !strcmp(row, "observe_off") ||
               !strcmp(row, "observe_nvtx_unwatched")) {
        run_row(row, "ns", usual, 16, whole_sample, count);
    } else if (!strcmp(row, "issue_read")) {
        run_row(row, "ns", usual, 1, read_sample, count);
    } else if (!strcmp(row, "heap_per_op")) {
        if (!bench_heap_count) {
            fprintf(stderr, "add16: heap_per_op needs the heap_count library preloaded\n");
            return 2;
        }
        run_row(row, "blocks", full_path, 16, heap_sample, count);
    } else {
        fprintf(stderr, "add16: no such row: %s\n", row);
        return 2;
    }
    return 0;
}
