/* The rows mlp_*, and replay_mlp_*_<n>t for the step as a recorded function: a training step (mlp_step.h). Each step computes the loss, and
 * each sample waits for it once. */
#include <bench/ours/mlp_step.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <math.h>

static eddy_status run_step(void *context, eddy_recorded_call *call) {
    call->outputs[0] = mlp_step(*(bool *)context);
    return EDDY_OK;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "", *step_name = row;
    bool is_replayed = strncmp(row, "replay_", 7) == 0;
    if (is_replayed)
        step_name += 7;
    int count = bench_sample_count(argc, argv, 2), rows = 0;
    bool with_adam = !strncmp(step_name, "mlp_adam_", 9);
    if (sscanf(step_name, with_adam ? "mlp_adam_b%d_" : "mlp_b%d_", &rows) != 1 || rows < 1) {
        fprintf(stderr, "mlp: no such row: %s\n", row);
        return 2;
    }
    mlp_step_init(rows);
    eddy_recorded *recorded =
        is_replayed ? eddy_recorded_create(run_step, &with_adam, 1, NULL) : NULL;
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    int steps = 6400 / rows;
    for (int i = -2; i < count; i++) {
        eddy_tensor *loss = NULL;
        double began = bench_now_ns(), value = 0;
        for (int s = 0; s < steps; s++) {
            eddy_release(&loss);
            if (recorded)
                must(eddy_recorded_run(recorded, (eddy_list){0}, (eddy_scalars){0}, &loss));
            else
                loss = mlp_step(with_adam);
        }
        must(eddy_read_f64(loss, &value, NULL));
        must(eddy_sync(EDDY_FOREVER));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / steps / 1e6);
        eddy_release(&loss);
        if (!isfinite(value)) {
            fprintf(stderr, "mlp: the loss is not finite\n");
            return 1;
        }
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_recorded_release(&recorded);
    mlp_step_fini();
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
