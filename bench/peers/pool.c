/* Peer of the pool_* rows: oneDNN's pooling. The primitive and the memory of its result are created once. */
#include <bench/calls.h>
#include <bench/pools.h>

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

static prepared prepare(const bench_pool *pool) {
    prepared p;
    int side = (pool->side + 2 * pool->padding - pool->kernel) / pool->stride + 1;
    const dnnl_dims_t from = {pool->images, pool->channels, pool->side, pool->side};
    const dnnl_dims_t to = {pool->images, pool->channels, side, side};
    const dnnl_dims_t strides = {pool->stride, pool->stride}, kernel = {pool->kernel, pool->kernel};
    const dnnl_dims_t padding = {pool->padding, pool->padding};
    dnnl_format_tag_t tag = pool->is_last ? dnnl_nhwc : dnnl_nchw;
    dnnl_alg_kind_t algorithm = pool->is_max ? dnnl_pooling_max : dnnl_pooling_avg_include_padding;
    size_t planes = (size_t)pool->images * (size_t)pool->channels;
    uint32_t random = 1;
    p.values = bench_random_floats(&random, planes * (size_t)pool->side * (size_t)pool->side);
    p.results = bench_random_floats(&random, planes * (size_t)side * (size_t)side);
    dnnl_memory_desc_t from_desc, to_desc;
    dnnl_primitive_desc_t made;
    check(dnnl_engine_create(&p.engine, dnnl_cpu, 0));
    check(dnnl_stream_create(&p.stream, p.engine, dnnl_stream_default_flags));
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_dims_t no_gaps = {0};
    check(dnnl_memory_desc_create_with_tag(&from_desc, 4, from, dnnl_f32, tag));
    check(dnnl_memory_desc_create_with_tag(&to_desc, 4, to, dnnl_f32, tag));
    check(dnnl_pooling_forward_primitive_desc_create(&made, p.engine, dnnl_forward_inference,
                                                     algorithm, from_desc, to_desc, strides, kernel,
                                                     no_gaps, padding, padding, NULL));
    check(dnnl_memory_create(&p.from, from_desc, p.engine, p.values));
    check(dnnl_memory_create(&p.to, to_desc, p.engine, p.results));
    check(dnnl_memory_desc_destroy(from_desc));
    check(dnnl_memory_desc_destroy(to_desc));
#else
    dnnl_pooling_desc_t desc;
    check(dnnl_memory_desc_init_by_tag(&from_desc, 4, from, dnnl_f32, tag));
    check(dnnl_memory_desc_init_by_tag(&to_desc, 4, to, dnnl_f32, tag));
    check(dnnl_pooling_forward_desc_init(&desc, dnnl_forward_inference, algorithm, &from_desc,
                                         &to_desc, strides, kernel, padding, padding));
    check(dnnl_primitive_desc_create(&made, &desc, NULL, p.engine, NULL));
    check(dnnl_memory_create(&p.from, &from_desc, p.engine, p.values));
    check(dnnl_memory_create(&p.to, &to_desc, p.engine, p.results));
#endif
    check(dnnl_primitive_create(&p.pooling, made));
    check(dnnl_primitive_desc_destroy(made));
    return p;
}

static void pool_images(void *work) {
    const prepared *p = work;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, p->from}, {DNNL_ARG_DST, p->to}};
    check(dnnl_primitive_execute(p->pooling, p->stream, 2, arguments));
}

static void wait_for_stream(void *work) {
    const prepared *p = work;
    check(dnnl_stream_wait(p->stream));
}

static void release(prepared *p) {
    check(dnnl_memory_destroy(p->from));
    check(dnnl_memory_destroy(p->to));
    check(dnnl_primitive_destroy(p->pooling));
    check(dnnl_stream_destroy(p->stream));
    check(dnnl_engine_destroy(p->engine));
    free(p->values);
    free(p->results);
}

int main(int argc, char **argv) {
    const bench_pool *pool = bench_pool_of(argc > 1 ? argv[1] : "");
    prepared p = prepare(pool);
    const bench_calls calls = {
        .call = pool_images, .wait = wait_for_stream, .work = &p, .count = bench_pool_calls(pool)};
    bench_samples samples;
    bench_calls_measure(&calls, bench_sample_count(argc, argv, 2), &samples);
    const dnnl_version_t *version = dnnl_version();
    char text[64];
    snprintf(text, sizeof(text), "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
    bench_print_row(pool->row, "us", text, NULL, &samples);
    release(&p);
    return 0;
}
