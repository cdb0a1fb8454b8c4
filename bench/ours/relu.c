/* relu_1e7_fresh: relu on 10^7 floats. Each call creates and releases its output. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/eddy.h>

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    if (strcmp(row, "relu_1e7_fresh")) {
        fprintf(stderr, "relu: no such row: %s\n", row);
        return 2;
    }
    float *values = malloc((size_t)BENCH_RELU_COUNT * sizeof(float));
    if (!values)
        return 1;
    uint32_t random = 1;
    for (int i = 0; i < BENCH_RELU_COUNT; i++)
        values[i] = bench_random_float(&random, 1);
    eddy_tensor *input =
        must_tensor(eddy_from_data(values, EDDY_SHAPE(BENCH_RELU_COUNT), EDDY_F32, NULL));
    free(values);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        eddy_tensor *output = eddy_relu(input);
        must(eddy_wait(output, EDDY_FOREVER));
        eddy_release(&output);
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / 1e6);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&input);
    bench_print_row(row, "ms", eddy_version_text(), path, &samples);
    return 0;
}
