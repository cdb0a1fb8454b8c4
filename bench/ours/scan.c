/* The row replay_scan_64: a step of a recurrence over 64 floats, forward and back, of a sequence of 1,000.
 *
 *     scan replay_scan_64     in a program, as one loop
 *     scan unrolled_scan_64   in a program, step by step
 *     scan calls_scan_64      by calls */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <string.h>

#define ELEMENTS 64
#define STEPS 1000

static eddy_tensor *weight, *state, *xs;
static eddy_program *program;

static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_tanh(eddy_add(eddy_mul(inputs.items[0], weight), inputs.items[1]));
    outputs[1] = eddy_square(outputs[0]);
    return outputs[1] ? EDDY_OK : EDDY_OUT_OF_MEMORY;
}

static eddy_tensor *train(bool is_rolled) {
    eddy_tensor *outputs[2];
    must(eddy_grads_zero(EDDY_LIST(weight)));
    must(eddy_scan(cell, NULL, EDDY_LIST(state), EDDY_LIST(xs), 2,
                   EDDY_OPTIONS(scan, .is_rolled = is_rolled), outputs));
    eddy_tensor *loss = eddy_sum(outputs[1], EDDY_ALL_AXES, NULL);
    must(eddy_backward(loss));
    return must_tensor(eddy_detach(loss));
}

static void call_once(void) {
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_wait(train(false), EDDY_FOREVER));
    must(eddy_wait(eddy_grad_of(weight), EDDY_FOREVER));
    eddy_scope_end(scope);
}

static void record(bool is_rolled) {
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_record_begin(EDDY_OPTIONS(record, .records_only = true)));
    eddy_tensor *loss = train(is_rolled);
    program = eddy_record_end(
        EDDY_BINDINGS({"xs", xs, EDDY_ROLE_INPUT}, {"loss", loss, EDDY_ROLE_OUTPUT}));
    if (!program)
        must_fail();
    eddy_scope_end(scope);
}

static void replay_once(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *loss;
    must(eddy_program_run(program, EDDY_LIST(xs), &loss));
    must(eddy_wait(loss, EDDY_FOREVER));
    eddy_scope_end(scope);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    bool is_rolled = strcmp(row, "replay_scan_64") == 0,
         is_unrolled = strcmp(row, "unrolled_scan_64") == 0;
    if (!is_rolled && !is_unrolled && strcmp(row, "calls_scan_64") != 0) {
        fprintf(stderr, "scan: no such row: %s\n", row);
        return 2;
    }
    weight = must_tensor(eddy_full(EDDY_SHAPE(ELEMENTS), EDDY_S(0.5), EDDY_F32, NULL));
    state = must_tensor(eddy_zeros(EDDY_SHAPE(ELEMENTS), EDDY_F32, NULL));
    xs = must_tensor(eddy_ones(EDDY_SHAPE(STEPS, ELEMENTS), EDDY_F32, NULL));
    must(eddy_requires_grad_set(weight, true));
    if (is_rolled || is_unrolled)
        record(is_rolled);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        if (program)
            replay_once();
        else
            call_once();
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / STEPS);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_program_release(&program);
    eddy_release(&weight);
    eddy_release(&state);
    eddy_release(&xs);
    bench_print_row(row, "ns", eddy_version_text(), path, &samples);
    return 0;
}
