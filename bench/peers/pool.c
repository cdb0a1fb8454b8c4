/* Peer of the pool_* rows: oneDNN's pooling, prepared once, into memory that is taken once. */
#include <bench/pools.h>
#include <bench/sample.h>

#include <oneapi/dnnl/dnnl.h>

static void check(dnnl_status_t status) {
    if (status != dnnl_success) {
        fprintf(stderr, "pool: oneDNN: status %d\n", (int)status);
        exit(1);
    }
}

typedef struct prepared {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t pooling;
    dnnl_memory_t from, to;
    float *values, *results;
} prepared;

static float *numbers(size_t count) {
    float *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (!memory)
        exit(1);
    uint32_t random = 1;
    for (size_t i = 0; i < count; i++)
        memory[i] = bench_random_float(&random, 1.0f);
    return memory;
}

static prepared prepare(const bench_pool *pool) {
    prepared p;
    int side = (pool->side + 2 * pool->padding - pool->kernel) / pool->stride + 1;
    const dnnl_dims_t from = {pool->images, pool->channels, pool->side, pool->side};
    const dnnl_dims_t to = {pool->images, pool->channels, side, side};
    const dnnl_dims_t strides = {pool->stride, pool->stride}, kernel = {pool->kernel, pool->kernel};
    const dnnl_dims_t padding = {pool->padding, pool->padding};
    dnnl_format_tag_t tag = pool->is_last ? dnnl_nhwc : dnnl_nchw;
    dnnl_memory_desc_t from_desc, to_desc;
    check(dnnl_memory_desc_init_by_tag(&from_desc, 4, from, dnnl_f32, tag));
    check(dnnl_memory_desc_init_by_tag(&to_desc, 4, to, dnnl_f32, tag));
    dnnl_pooling_desc_t desc;
    check(dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference,
                                         pool->is_max ? dnnl_pooling_max : dnnl_pooling_avg_include_padding, &from_desc,
                                         &to_desc, strides, kernel, padding, padding));
    dnnl_primitive_desc_t made;
    check(dnnl_engine_create(&p.engine, dnnl_cpu, 0));
    check(dnnl_stream_create(&p.stream, p.engine, dnnl_stream_default_flags));
    check(dnnl_primitive_desc_create(&made, &desc, NULL, p.engine, NULL));
    check(dnnl_primitive_create(&p.pooling, made));
    check(dnnl_primitive_desc_destroy(made));
    size_t planes = (size_t)pool->images * (size_t)pool->channels;
    p.values = numbers(planes * (size_t)pool->side * (size_t)pool->side);
    p.results = numbers(planes * (size_t)side * (size_t)side);
    check(dnnl_memory_create(&p.from, &from_desc, p.engine, p.values));
    check(dnnl_memory_create(&p.to, &to_desc, p.engine, p.results));
    return p;
}

static void measure(const bench_pool *pool, int count) {
    prepared p = prepare(pool);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, p.from}, {DNNL_ARG_DST, p.to}};
    bench_samples samples = {.count = 0};
    int calls = bench_pool_calls(pool);
    for (int i = -2; i < count; i++) {
        double began = bench_now_ns();
        for (int call = 0; call < calls; call++)
            check(dnnl_primitive_execute(p.pooling, p.stream, 2, arguments));
        check(dnnl_stream_wait(p.stream));
        if (i >= 0)
            bench_samples_push(&samples, (bench_now_ns() - began) / calls / 1e3);
    }
    const dnnl_version_t *version = dnnl_version();
    char text[64];
    snprintf(text, sizeof(text), "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
    bench_print_row(pool->row, "us", text, NULL, &samples);
    check(dnnl_memory_destroy(p.from));
    check(dnnl_memory_destroy(p.to));
    check(dnnl_primitive_destroy(p.pooling));
    check(dnnl_stream_destroy(p.stream));
    check(dnnl_engine_destroy(p.engine));
    free(p.values);
    free(p.results);
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (int i = 0; i < BENCH_POOL_COUNT; i++)
        if (!strcmp(row, bench_pools[i].row)) {
            measure(&bench_pools[i], count);
            return 0;
        }
    return 2;
}
