/* The op rows (bench/ops.h): `ops ROW[,ROW...] [samples]`, all of one size, measured one after another. */
#include <bench/ours/must.h>
#include <bench/ours/op_calls.h>
#include <bench/ours/path.h>
#include <eddy/eddy.h>

static double time_calls(const op_call *op, int calls) {
    double began = bench_now_ns();
    for (int call = 0; call < calls; call++)
        op_call_once(op);
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / calls;
}

static void measure(const char *name, const op_call *op, double bytes, int count) {
    time_calls(op, 1);
    int calls = bench_calls_for(time_calls(op, 1));
    calls = bench_calls_for(time_calls(op, calls));
    count = bench_samples_for(time_calls(op, calls) * calls, count);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int sample = 0; sample < count; sample++)
        bench_samples_push(&samples, time_calls(op, calls) / 1e3);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    bench_print_op(name, eddy_version_text(), path, bytes, &samples);
}

int main(int argc, char **argv) {
    int count = bench_sample_count(argc, argv, 2);
    bool has_operands = false;
    bench_op_row asked;
    for (const char *rows = argc > 1 ? argv[1] : ""; bench_op_row_next(&rows, &asked);) {
        const op_call *op = op_call_find(asked.op);
        if (!op || asked.n <= 0) {
            fprintf(stderr, "ops: no such row: %s\n", asked.row);
            return 2;
        }
        if (!has_operands)
            op_calls_make_operands(asked.n);
        has_operands = true;
        measure(asked.row, op, (double)op->bytes * (double)asked.n, count);
    }
    return 0;
}
