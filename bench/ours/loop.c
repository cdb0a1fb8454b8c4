/* The row replay_loop_add16: a step of eddy_while that adds 16 floats and counts down.
 *
 *     loop replay_loop_add16     in a program
 *     loop calls_loop_add16      by calls: each step waits for its predicate */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <string.h>

#define ELEMENTS 16
#define STEPS 10000

static eddy_tensor *added, *start[2];
static eddy_program *program;

static eddy_status is_left(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_gt_s(carried.items[0], EDDY_S(0));
    return outputs[0] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_status add(void *context, eddy_list carried, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_sub_s(carried.items[0], EDDY_S(1));
    outputs[1] = eddy_add(carried.items[1], added);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static void call_once(void) {
    eddy_tensor *end[2];
    must(eddy_while(is_left, add, NULL, (eddy_list){start, 2}, NULL, end));
    must(eddy_wait(end[1], EDDY_FOREVER));
    eddy_release(&end[0]);
    eddy_release(&end[1]);
}

static void record(void) {
    eddy_tensor *end[2];
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    must(eddy_while(is_left, add, NULL, (eddy_list){start, 2}, NULL, end));
    program = eddy_record_end(EDDY_BINDINGS({"count", start[0], EDDY_ROLE_INPUT},
                                            {"x", start[1], EDDY_ROLE_INPUT},
                                            {"end", end[1], EDDY_ROLE_OUTPUT}));
    if (!program)
        must_fail();
    eddy_release(&end[0]);
    eddy_release(&end[1]);
}

static void replay_once(void) {
    eddy_tensor *end;
    must(eddy_program_run(program, (eddy_list){start, 2}, &end));
    must(eddy_wait(end, EDDY_FOREVER));
    eddy_release(&end);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    bool is_replay = strcmp(row, "replay_loop_add16") == 0;
    if (!is_replay && strcmp(row, "calls_loop_add16") != 0) {
        fprintf(stderr, "loop: no such row: %s\n", row);
        return 2;
    }
    start[0] = must_tensor(eddy_full((eddy_shape){0}, EDDY_S(STEPS), EDDY_F32, NULL));
    start[1] = must_tensor(eddy_zeros(EDDY_SHAPE(ELEMENTS), EDDY_F32, NULL));
    added = must_tensor(eddy_ones(EDDY_SHAPE(ELEMENTS), EDDY_F32, NULL));
    if (is_replay)
        record();
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        if (is_replay)
            replay_once();
        else
            call_once();
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / STEPS);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_program_release(&program);
    eddy_release(&start[0]);
    eddy_release(&start[1]);
    eddy_release(&added);
    bench_print_row(row, "ns", eddy_version_text(), path, &samples);
    return 0;
}
