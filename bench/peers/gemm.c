/* Peer of the gemm_* rows: one matrix product of a library, on one thread. Built once per library: for a CBLAS
 * (OpenBLAS, BLIS), or with -DPEER_DNNL for oneDNN's dnnl_sgemm. */
#include <bench/calls.h>
#include <bench/shapes.h>

#ifdef PEER_DNNL
#include <oneapi/dnnl/dnnl.h>

static void product(const bench_gemm_shape *s, const float *a, const float *b, float *c) {
    dnnl_sgemm(s->is_a_transposed ? 'T' : 'N', s->is_b_transposed ? 'T' : 'N', s->m, s->n, s->k,
               1.0f, a, s->is_a_transposed ? s->m : s->k, b, s->is_b_transposed ? s->k : s->n, 0.0f,
               c, s->n);
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
                s->is_a_transposed ? s->m : s->k, b, s->is_b_transposed ? s->k : s->n, 0.0f, c,
                s->n);
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

typedef struct matrices {
    const bench_gemm_shape *shape;
    float *a, *b, *c;
} matrices;

static float *matrix(int rows, int columns, uint32_t *random) {
    return bench_random_floats(random, (size_t)rows * (size_t)columns);
}

static void multiply(void *work) {
    const matrices *operands = work;
    product(operands->shape, operands->a, operands->b, operands->c);
}

int main(int argc, char **argv) {
    const bench_gemm_shape *shape = bench_gemm_shape_of(argc > 1 ? argv[1] : "");
    uint32_t random = 1;
    matrices operands = {.shape = shape};
    operands.a = matrix(shape->m, shape->k, &random);
    operands.b = matrix(shape->k, shape->n, &random);
    operands.c = matrix(shape->m, shape->n, &random);
    const bench_calls calls = {
        .call = multiply, .work = &operands, .count = bench_gemm_calls(shape)};
    bench_samples samples;
    bench_calls_measure(&calls, bench_sample_count(argc, argv, 2), &samples);
    char version[256];
    describe(version, sizeof(version));
    bench_print_row(shape->row, "us", version, NULL, &samples);
    free(operands.a);
    free(operands.b);
    free(operands.c);
    return 0;
}
