/* The rows cnn_* and transformer_*, and with replay_ before them for the step as a recorded function: a training step (network_step.h). Each
 * sample waits for the loss once. */
#include <bench/ours/must.h>
#include <bench/ours/network_step.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <math.h>

static double sample(network_step *t, int steps) {
    double began = bench_now_ns(), value = 0;
    eddy_tensor *loss = NULL;
    for (int s = 0; s < steps; s++) {
        eddy_release(&loss);
        loss = network_step_run(t);
    }
    must(eddy_read_f64(loss, &value, NULL));
    must(eddy_sync(EDDY_FOREVER));
    eddy_release(&loss);
    if (!isfinite(value)) {
        fprintf(stderr, "training: the loss is not finite\n");
        exit(1);
    }
    return (bench_now_ns() - began) / steps;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "", *step_name = row;
    bool is_replayed = strncmp(row, "replay_", 7) == 0;
    if (is_replayed)
        step_name += 7;
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    bool is_cnn = sscanf(step_name, "cnn_b%d_", &rows) == 1;
    if ((!is_cnn && sscanf(step_name, "transformer_b%d_", &rows) != 1) || rows < 1) {
        fprintf(stderr, "training: no such row: %s\n", row);
        return 2;
    }
    network_step t;
    network_step_init(&t, is_cnn, rows);
    if (is_replayed)
        network_step_replay(&t);
    sample(&t, 4); /* the third call of a recorded function may still be recorded */
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(&t, BENCH_TRAINING_STEPS) / 1e6);
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    network_step_fini(&t);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
