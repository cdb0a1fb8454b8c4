/* Peer of the gemm_* rows: one matrix product of a library, on one thread. Built once per library: over a CBLAS
 * (OpenBLAS, BLIS), or with -DPEER_DNNL over oneDNN's dnnl_sgemm. */
#include <bench/sample.h>
#include <bench/shapes.h>

#ifdef PEER_DNNL
#include <oneapi/dnnl/dnnl.h>

static void product(const bench_gemm_shape *s, const float *a, const float *b, float *c) {
    dnnl_sgemm(s->is_a_transposed ? 'T' : 'N', s->is_b_transposed ? 'T' : 'N', s->m, s->n, s->k, 1.0f, a,
               s->is_a_transposed ? s->m : s->k, b, s->is_b_transposed ? s->k : s->n, 0.0f, c, s->n);
}

static void describe(char *buffer, size_t size) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(buffer, size, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}
#else
#include <cblas.h>

static void product(const bench_gemm_shape *s, const float *a, const float *b, float *c) {
    cblas_sgemm(CblasRowMajor, s->is_a_transposed ? CblasTrans : CblasNoTrans,
                s->is_b_transposed ? CblasTrans : CblasNoTrans, s->m, s->n, s->k, 1.0f, a,
                s->is_a_transposed ? s->m : s->k, b, s->is_b_transposed ? s->k : s->n, 0.0f, c, s->n);
}

#ifdef OPENBLAS_VERSION
static void describe(char *buffer, size_t size) {
    snprintf(buffer, size, "%s", openblas_get_config());
}
#else
char *bli_info_get_version_str(void);

static void describe(char *buffer, size_t size) {
    snprintf(buffer, size, "BLIS %s", bli_info_get_version_str());
}
#endif
#endif

static float *matrix(int rows, int columns, uint32_t *random) {
    size_t count = (size_t)rows * (size_t)columns;
    float *memory = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
    if (!memory)
        exit(1);
    for (size_t i = 0; i < count; i++)
        memory[i] = bench_random_float(random, 1.0f);
    return memory;
}

int main(int argc, char **argv) {
    const char *row = argc > 1 ? argv[1] : "";
    int count = bench_sample_count(argc, argv, 2);
    for (int i = 0; i < BENCH_GEMM_SHAPE_COUNT; i++) {
        const bench_gemm_shape *shape = &bench_gemm_shapes[i];
        if (strcmp(row, shape->row))
            continue;
        uint32_t random = 1;
        float *a = matrix(shape->m, shape->k, &random), *b = matrix(shape->k, shape->n, &random);
        float *c = matrix(shape->m, shape->n, &random);
        int calls = bench_gemm_calls(shape);
        bench_samples samples = {.count = 0};
        for (int s = -2; s < count; s++) {
            double begin = bench_now_ns();
            for (int call = 0; call < calls; call++)
                product(shape, a, b, c);
            if (s >= 0)
                bench_samples_push(&samples, (bench_now_ns() - begin) / calls / 1e3);
        }
        char version[256];
        describe(version, sizeof(version));
        bench_print_row(row, "us", version, NULL, &samples);
        free(a);
        free(b);
        free(c);
        return 0;
    }
    fprintf(stderr, "gemm: no such row: %s\n", row);
    return 2;
}
