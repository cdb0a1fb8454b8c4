/* The rows replay_add16_*, replay_build: a chain of adds of 16 floats, each of the one before, as a program.
 *
 *     replay replay_add16_1e3     an add of a program of 1,000, replayed
 *     replay calls_add16_1e3      the same chain by calls
 *     replay loop_add16_1e3       the same chain by its innermost loop, called with pointers: what replays cost beyond it is overhead
 *     replay replay_build_1e4     us that a call of a recording of 10,000 takes until it is in a program: record_end alone
 *     replay replay_build_again_1e4     the same where a program of the same content was built before */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <functional/op_table.h>
#include <interpreter/call/op.h>
#include <kernels/kernel.h>

#define ELEMENTS 16
#define OPS_PER_SAMPLE 200000

static eddy_tensor *first, *added;
static eddy_program *program;
static int ops;

static eddy_tensor *chain(eddy_tensor *x) {
    for (int i = 0; i < ops; i++) {
        eddy_tensor *sum = must_tensor(eddy_add(x, added));
        if (i > 0)
            eddy_release(&x);
        x = sum;
    }
    return x;
}

/* ns that eddy_record_end took. */
static double record(void) {
    must(eddy_record_begin(NULL));
    eddy_tensor *last = chain(first);
    must(eddy_sync(EDDY_FOREVER));
    double began = bench_now_ns();
    program = eddy_record_end(
        EDDY_BINDINGS({"first", first, EDDY_ROLE_INPUT}, {"last", last, EDDY_ROLE_OUTPUT}));
    double spent = bench_now_ns() - began;
    if (!program)
        must_fail();
    eddy_release(&last);
    return spent;
}

static void replay_once(void) {
    eddy_tensor *last;
    must(eddy_program_run(program, EDDY_LIST(first), &last));
    must(eddy_wait(last, EDDY_FOREVER));
    eddy_release(&last);
}

static void call_once(void) {
    eddy_tensor *last = chain(first);
    must(eddy_wait(last, EDDY_FOREVER));
    eddy_release(&last);
}

static void loop_once(void) {
    static float sums[2][ELEMENTS], values[ELEMENTS];
    static const int64_t strides[] = {sizeof(float), sizeof(float), sizeof(float)};
    static const int64_t attributes[8];
    eddy_loop_fn *loop = eddy_kernel_loop(eddy_op_add.kernels[EDDY_F32]);
    for (int i = 0; i < ops; i++) {
        char *data[] = {(char *)sums[(i + 1) % 2], (char *)sums[i % 2], (char *)values};
        loop(data, strides, ELEMENTS, attributes);
    }
}

static double sample_of(void (*once)(void)) {
    int times = OPS_PER_SAMPLE / ops;
    double began = bench_now_ns();
    for (int i = 0; i < times; i++)
        once();
    return (bench_now_ns() - began) / times / ops;
}

static double build_sample(bool is_again) {
    double spent = record();
    eddy_program_release(&program);
    if (!is_again)
        (void)eddy_trim(); /* what is kept for programs to come */
    return spent / ops / 1e3;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    double size = 0;
    bool is_again = sscanf(row, "replay_build_again_%lf", &size) == 1,
         is_build = is_again || sscanf(row, "replay_build_%lf", &size) == 1,
         is_replay = !is_build && sscanf(row, "replay_add16_%lf", &size) == 1,
         is_calls = sscanf(row, "calls_add16_%lf", &size) == 1;
    if (!is_build && !is_replay && !is_calls && sscanf(row, "loop_add16_%lf", &size) != 1) {
        fprintf(stderr, "replay: no such row: %s\n", row);
        return 2;
    }
    ops = (int)size;
    first = must_tensor(eddy_zeros(EDDY_SHAPE(ELEMENTS), EDDY_F32, NULL));
    added = must_tensor(eddy_ones(EDDY_SHAPE(ELEMENTS), EDDY_F32, NULL));
    if (is_replay)
        record();
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -2; i < count; i++) {
        double value = is_build ? build_sample(is_again)
                                : sample_of(is_replay  ? replay_once
                                            : is_calls ? call_once
                                                       : loop_once);
        if (i >= 0)
            bench_samples_push(&samples, value);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_program_release(&program);
    eddy_release(&first);
    eddy_release(&added);
    bench_print_row(row, is_build ? "us" : "ns", eddy_version_text(), path, &samples);
    return 0;
}
