/* The cost_* rows (bench/ops.h): `costs ROW[,ROW...] [samples]`, all of one size. The estimated time of a call's kernels over their
 * measured time, in one-thread mode. */
#include <bench/ours/must.h>
#include <bench/ours/op_calls.h>
#include <bench/ours/watch.h>
#include <eddy/eddy.h>

static watch_counts watch_calls(const op_call *op, int calls) {
    watch_reset();
    for (int call = 0; call < calls; call++)
        op_call_once(op);
    must(eddy_sync(EDDY_FOREVER));
    return watch_now();
}

/* Time of a call's kernels, in ns. */
static double time_calls(const op_call *op, int calls) {
    return watch_calls(op, calls).executed_ns / calls;
}

static void print(const char *row, double estimated_ns, double measured_ns) {
    bench_samples samples = {.count = 0};
    bench_samples_push(&samples, estimated_ns / measured_ns);
    printf("{\"row\": \"%s\", \"unit\": \"x\", \"version\": \"%s\", \"estimated_ns\": %.0f", row,
           eddy_version_text(), estimated_ns);
    bench_print_samples(&samples);
}

/* One sample: the least time, since other load on the machine only adds to it. */
static void measure(const char *row, const op_call *op, int count) {
    time_calls(op, 1);
    watch_counts one = watch_calls(op, 1);
    if (one.executions == 0) {
        fprintf(stderr, "costs: %s runs no kernel\n", row);
        return;
    }
    int calls = bench_calls_for(time_calls(op, bench_calls_for(one.executed_ns)));
    double least_ns = time_calls(op, calls);
    count = bench_samples_for(least_ns * calls, count);
    for (int sample = 1; sample < count; sample++) {
        double took_ns = time_calls(op, calls);
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    print(row, (double)one.estimated_ps / 1e3, least_ns);
}

int main(int argc, char **argv) {
    int count = bench_sample_count(argc, argv, 2);
    bool has_operands = false;
    bench_op_row asked;
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .uses_one_thread = true));
    if (!runtime)
        must_fail();
    must(eddy_runtime_use(runtime));
    for (const char *rows = argc > 1 ? argv[1] : ""; bench_op_row_next(&rows, &asked);) {
        const op_call *op = op_call_find(asked.op);
        if (!op || asked.n <= 0) {
            fprintf(stderr, "costs: no such row: %s\n", asked.row);
            return 2;
        }
        if (!has_operands)
            op_calls_make_operands(asked.n);
        has_operands = true;
        measure(asked.row, op, count);
    }
    return 0;
}
