/* The pool_* rows: pooling as an op, its output made and released each time. */
#include <bench/ours/must.h>
#include <bench/ours/path.h>
#include <bench/pools.h>
#include <bench/sample.h>
#include <eddy/eddy.h>

static eddy_tensor *images_of(const bench_pool *pool) {
    size_t count = (size_t)pool->images * (size_t)pool->channels * (size_t)pool->side * (size_t)pool->side;
    float *values = malloc(count * sizeof(float));
    if (!values)
        exit(1);
    uint32_t random = 1;
    for (size_t i = 0; i < count; i++)
        values[i] = bench_random_float(&random, 1);
    eddy_shape rows = EDDY_SHAPE(pool->images, pool->channels, pool->side, pool->side);
    eddy_shape last = EDDY_SHAPE(pool->images, pool->side, pool->side, pool->channels);
    eddy_tensor *made = must_tensor(eddy_from_data(values, pool->is_last ? last : rows, EDDY_F32, NULL));
    free(values);
    return pool->is_last ? must_tensor(eddy_permute(made, EDDY_AXES(0, 3, 1, 2))) : made;
}

static eddy_tensor *pooled(const bench_pool *pool, eddy_tensor *images) {
    eddy_pair kernel = EDDY_PAIR(pool->kernel, pool->kernel);
    eddy_pair stride = EDDY_PAIR(pool->stride, pool->stride), padding = EDDY_PAIR(pool->padding, pool->padding);
    return pool->is_max
               ? eddy_max_pool2d(images, kernel, EDDY_OPTIONS(max_pool2d, .stride = stride, .padding = padding))
               : eddy_avg_pool2d(images, kernel, EDDY_OPTIONS(avg_pool2d, .stride = stride, .padding = padding));
}

static void measure(const bench_pool *pool, int count) {
    eddy_tensor *images = images_of(pool);
    bench_samples samples = {.count = 0};
    path_counts before = path_now();
    int calls = bench_pool_calls(pool);
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        for (int call = 0; call < calls; call++) {
            eddy_tensor *made = must_tensor(pooled(pool, images));
            eddy_release(&made);
        }
        must(eddy_sync(EDDY_FOREVER));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / calls / 1e3);
    }
    char path[PATH_BYTES];
    path_format(before, path_now(), path);
    eddy_release(&images);
    bench_print_row(pool->row, "us", eddy_version_text(), path, &samples);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (int i = 0; i < BENCH_POOL_COUNT; i++)
        if (!strcmp(row, bench_pools[i].row)) {
            measure(&bench_pools[i], count);
            return 0;
        }
    fprintf(stderr, "pool: no such row: %s\n", row);
    return 2;
}
