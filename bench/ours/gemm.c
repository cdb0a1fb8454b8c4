/* The gemm_* rows: matmul of two matrices, transposed ones being views, its output made and released each time. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/sample.h>
#include <bench/shapes.h>
#include <eddy/eddy.h>

static eddy_tensor *matrix(int rows, int columns, int is_transposed, uint32_t *random) {
    size_t count = (size_t)rows * (size_t)columns;
    float *values = malloc(count * sizeof(float));
    if (!values)
        exit(1);
    for (size_t i = 0; i < count; i++)
        values[i] = bench_random_float(random, 1);
    eddy_shape shape = is_transposed ? EDDY_SHAPE(columns, rows) : EDDY_SHAPE(rows, columns);
    eddy_tensor *made = must_tensor(eddy_from_data(values, shape, EDDY_F32, NULL));
    free(values);
    if (is_transposed) {
        eddy_tensor *stored = made;
        made = must_tensor(eddy_t(stored));
        eddy_release(&stored);
    }
    return made;
}

static void measure(const bench_gemm_shape *shape, int count) {
    uint32_t random = 1;
    eddy_tensor *a = matrix(shape->m, shape->k, shape->is_a_transposed, &random);
    eddy_tensor *b = matrix(shape->k, shape->n, shape->is_b_transposed, &random);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    int calls = bench_gemm_calls(shape);
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        for (int call = 0; call < calls; call++) {
            eddy_tensor *product = eddy_matmul(a, b);
            eddy_release(&product);
        }
        must(eddy_sync(EDDY_FOREVER));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / calls / 1e3);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&a);
    eddy_release(&b);
    bench_print_row(shape->row, "us", eddy_version_text(), path, &samples);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (int i = 0; i < BENCH_GEMM_SHAPE_COUNT; i++)
        if (!strcmp(row, bench_gemm_shapes[i].row)) {
            measure(&bench_gemm_shapes[i], count);
            return 0;
        }
    fprintf(stderr, "gemm: no such row: %s\n", row);
    return 2;
}
