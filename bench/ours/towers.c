/* The row replay_towers_2: a program of two chains that do not depend on each other, of steps that are too small for helpers, on two threads.
 *
 *     towers replay_towers_2         two chains of 20 products of 48 by 48 with a tanh behind each, and their sum
 *     towers one_stream_towers_2     the same program with one stream
 *     towers calls_towers_2          the same by calls */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <string.h>

#define TOWERS 2
#define DEPTH 20
#define WIDTH 48
#define RUNS_PER_SAMPLE 50
/* Runs in which both ways are tried. */
#define FIRST_RUNS 200

static eddy_tensor *input, *weights[TOWERS];
static eddy_program *program;

static eddy_tensor *run_calls(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *sum = NULL;
    for (int t = 0; t < TOWERS; t++) {
        eddy_tensor *h = input;
        for (int i = 0; i < DEPTH; i++)
            h = must_tensor(eddy_tanh(eddy_matmul(h, weights[t])));
        sum = sum ? must_tensor(eddy_add(sum, h)) : h;
    }
    sum = eddy_scope_return(scope, sum);
    eddy_scope_end(scope);
    return sum;
}

static void record(void) {
    must(eddy_record_begin(NULL));
    eddy_tensor *result = run_calls();
    program = eddy_record_end(EDDY_BINDINGS({"result", result, EDDY_ROLE_OUTPUT}));
    if (!program)
        must_fail();
    eddy_release(&result);
}

static void run_once(void) {
    eddy_tensor *result;
    if (program)
        must(eddy_program_run(program, (eddy_list){0}, &result));
    else
        result = run_calls();
    must(eddy_wait(result, EDDY_FOREVER));
    eddy_release(&result);
}

static double sample(int runs) {
    double began = bench_now_ns();
    for (int i = 0; i < runs; i++)
        run_once();
    return (bench_now_ns() - began) / runs / 1e3;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    bool has_one_stream = strcmp(row, "one_stream_towers_2") == 0,
         is_replay = has_one_stream || strcmp(row, "replay_towers_2") == 0;
    if (!is_replay && strcmp(row, "calls_towers_2") != 0) {
        fprintf(stderr, "towers: no such row: %s\n", row);
        return 2;
    }
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .program_streams = has_one_stream));
    must(runtime ? eddy_runtime_use(runtime) : EDDY_OUT_OF_MEMORY);
    input = must_tensor(eddy_full(EDDY_SHAPE(WIDTH, WIDTH), EDDY_S(0.5), EDDY_F32, NULL));
    for (int t = 0; t < TOWERS; t++)
        weights[t] = must_tensor(
            eddy_full(EDDY_SHAPE(WIDTH, WIDTH), EDDY_S(0.01 * (t + 1)), EDDY_F32, NULL));
    if (is_replay)
        record();
    (void)sample(FIRST_RUNS);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(RUNS_PER_SAMPLE));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    bench_print_row(row, "us", eddy_version_text(), path, &samples);
    eddy_program_release(&program);
    eddy_release(&input);
    for (int t = 0; t < TOWERS; t++)
        eddy_release(&weights[t]);
    return 0;
}
