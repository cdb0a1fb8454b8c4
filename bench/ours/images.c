/* The rows replay_images_b<batch>_<n>t, and with _subbatch behind them: a training step of three convolutions and two pools on row-major images, replayed with the pass `layout` (layout/images), or `subbatch` (subbatch/images).
 *
 *     images replay_images_b64_1t [samples]        ms a step as a recorded function; passes as EDDY_PASSES says
 *     images replay_last_images_b64_1t [samples]   the same with images that the first convolution makes channels-last
 *     images images_b64_1t [samples]               the first one by calls */
#include <bench/ours/images_step.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <eddy/eddy.h>
#include <stdbool.h>
#include <string.h>

#define STEPS 2 /* a sample */

/* recorded: NULL where the step is called. */
static double sample(images_step *t, eddy_recorded *recorded, int steps) {
    eddy_list inputs = {t->inputs, 2};
    double began = bench_now_ns(), value = 0;
    for (int s = 0; s < steps; s++) {
        eddy_scope *scope = eddy_scope_begin();
        eddy_tensor *loss;
        eddy_recorded_call call = {.inputs = inputs, .outputs = &loss};
        must(recorded ? eddy_recorded_run(recorded, inputs, (eddy_scalars){0}, &loss)
                      : images_step_run(t, &call));
        must(eddy_read_f64(loss, &value, NULL));
        eddy_scope_end(scope);
    }
    must(eddy_sync(EDDY_FOREVER));
    return (bench_now_ns() - began) / steps / 1e6;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2), batch = 0;
    bool is_last = sscanf(row, "replay_last_images_b%d_", &batch) == 1,
         is_called = sscanf(row, "images_b%d_", &batch) == 1;
    if ((!is_last && !is_called && sscanf(row, "replay_images_b%d_", &batch) != 1) || batch < 1) {
        fprintf(stderr, "images: no such row: %s\n", row);
        return 2;
    }
    eddy_scope *scope = eddy_scope_begin();
    must(eddy_seed(1));
    images_step t = images_step_make(batch, is_last);
    eddy_recorded *recorded = is_called ? NULL : eddy_recorded_create(images_step_run, &t, 1, NULL);
    if (!is_called && !recorded)
        must_fail();
    sample(&t, recorded, 4); /* the third call of a recorded function may still be recorded */
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = 0; i < count; i++)
        bench_samples_push(&samples, sample(&t, recorded, STEPS));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
