/* The pool_* rows: pooling as an op. Each call creates and releases its output. */
#include <bench/ours/calls.h>
#include <bench/pools.h>

typedef struct pooling {
    const bench_pool *pool;
    eddy_tensor *images;
} pooling;

static eddy_tensor *images_of(const bench_pool *pool) {
    size_t count =
        (size_t)pool->images * (size_t)pool->channels * (size_t)pool->side * (size_t)pool->side;
    uint32_t random = 1;
    float *values = bench_random_floats(&random, count);
    eddy_shape rows = EDDY_SHAPE(pool->images, pool->channels, pool->side, pool->side);
    eddy_shape last = EDDY_SHAPE(pool->images, pool->side, pool->side, pool->channels);
    eddy_tensor *made =
        must_tensor(eddy_from_data(values, pool->is_last ? last : rows, EDDY_F32, NULL));
    free(values);
    if (pool->is_last) {
        eddy_tensor *stored = made;
        made = must_tensor(eddy_permute(stored, EDDY_AXES(0, 3, 1, 2)));
        eddy_release(&stored);
    }
    return made;
}

static eddy_tensor *pooled(const bench_pool *pool, eddy_tensor *images) {
    eddy_pair kernel = EDDY_PAIR(pool->kernel, pool->kernel);
    eddy_pair stride = EDDY_PAIR(pool->stride, pool->stride),
              padding = EDDY_PAIR(pool->padding, pool->padding);
    return pool->is_max
               ? eddy_max_pool2d(images, kernel,
                                 EDDY_OPTIONS(max_pool2d, .stride = stride, .padding = padding))
               : eddy_avg_pool2d(images, kernel,
                                 EDDY_OPTIONS(avg_pool2d, .stride = stride, .padding = padding));
}

static void pool_images(void *work) {
    const pooling *operands = work;
    eddy_tensor *made = must_tensor(pooled(operands->pool, operands->images));
    eddy_release(&made);
}

int main(int argc, char **argv) {
    const bench_pool *pool = bench_pool_of(argc > 1 ? argv[1] : "");
    pooling work = {.pool = pool, .images = images_of(pool)};
    measure_calls(pool->row, pool_images, &work, bench_pool_calls(pool),
                  bench_sample_count(argc, argv, 2));
    eddy_release(&work.images);
    return 0;
}
