/* The rows inference_memory_*: the peak of resident memory in passes of the transformer's inference, less what was resident before.
 * A pass over a few numbers comes first, so that code, threads and libraries' tables are not counted. */
#include <bench/ours/decoder.h>
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/resident.h>
#include <bench/sample.h>
#include <bench/shapes.h>

/* Waits for the last logit, as a program that samples text does. */
static void pass(const transformer *net, eddy_tensor *numbers) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_no_grad_begin();
    eddy_tensor *logits = must_tensor(transformer_logits(net, numbers));
    double value;
    must(eddy_read_f64(eddy_select(eddy_reshape(logits, EDDY_SHAPE(-1)), 0, -1), &value, NULL));
    eddy_no_grad_end();
    eddy_scope_end(scope);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int rows = 0;
    if (sscanf(row, "inference_memory_b%d_", &rows) != 1 || rows < 1) {
        fprintf(stderr, "inference: no such row: %s\n", row);
        return 2;
    }
    transformer net;
    decoder_init(&net);
    eddy_tensor *few = decoder_numbers(1, BENCH_INFERENCE_FEW),
                *numbers = decoder_numbers(rows, BENCH_TRANSFORMER_SEQUENCE);
    pass(&net, few);
    path_counts before = path_now();
    double resident = bench_resident_begin();
    for (int i = 0; i < BENCH_INFERENCE_PASSES; i++)
        pass(&net, numbers);
    bench_samples samples = {.count = 0};
    bench_samples_push(&samples, bench_resident_peak(resident));
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&few);
    eddy_release(&numbers);
    transformer_fini(&net);
    bench_print_row(row, "MiB", eddy_version_text(), path, &samples);
    return 0;
}
