/* Measures every provider of matrix products on the shapes that the table in kernels/cpu/matrix/gemm_table.c distinguishes:
 * one thread, best of many. The table is updated from these figures. Usage: gemm_table [seconds per cell] */
#include <kernels/cpu/matrix/gemm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct shape {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
} shape;

static const shape shapes[] = {
    {4, 4, 4, false, false},          {8, 8, 8, false, false},       {16, 16, 16, false, false},
    {1, 100, 100, false, false},      {100, 1, 100, false, false},   {1, 1, 100, false, false},
    {1, 1000, 1000, false, false},    {1, 1000, 1000, false, true},  {1, 4096, 4096, false, true},
    {1, 4096, 4096, false, false},    {4096, 1, 1024, true, false},  {32, 32, 32, false, false},
    {64, 64, 64, false, false},       {1, 256, 784, false, true},    {8, 256, 784, false, true},
    {64, 10, 128, false, true},       {64, 10, 128, false, false},   {10, 128, 64, true, false},
    {64, 128, 10, false, false},      {128, 10, 64, true, false},    {64, 16, 256, false, true},
    {64, 32, 256, false, true},       {64, 256, 784, false, true},   {256, 256, 784, false, true},
    {256, 784, 64, true, false},      {64, 784, 256, false, false},  {64, 128, 256, false, true},
    {128, 256, 64, true, false},      {64, 256, 128, false, false},  {128, 128, 128, false, false},
    {512, 512, 512, false, false},    {2048, 384, 128, false, true}, {2048, 128, 344, false, true},
    {1024, 1024, 1024, false, false},
};

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *numbers(int64_t count, size_t bytes) {
    void *memory = aligned_alloc(64, ((size_t)count * bytes + 63) / 64 * 64);
    if (memory == NULL)
        exit(1);
    for (int64_t i = 0; i < count; i++) {
        if (bytes == sizeof(float))
            ((float *)memory)[i] = (float)(i % 17) - 8;
        else
            ((double *)memory)[i] = (double)(i % 17) - 8;
    }
    return memory;
}

typedef struct operands {
    void *a, *b, *c;
} operands;

static void multiply(eddy_gemm_provider provider, eddy_dtype dtype, const shape *s,
                     const operands *o) {
    int64_t lda = s->transpose_a ? s->m : s->k, ldb = s->transpose_b ? s->k : s->n;
    if (dtype == EDDY_F32)
        eddy_gemm_provider_f32(provider)(s->transpose_a, s->transpose_b, s->m, s->n, s->k, 1, o->a,
                                         lda, o->b, ldb, 0, o->c, s->n);
    else
        eddy_gemm_provider_f64(provider)(s->transpose_a, s->transpose_b, s->m, s->n, s->k, 1, o->a,
                                         lda, o->b, ldb, 0, o->c, s->n);
}

/* Best GFLOP/s of batches that fill `budget` seconds. */
static double measure(eddy_gemm_provider provider, eddy_dtype dtype, const shape *s,
                      double budget) {
    size_t bytes = eddy_dtype_bytes(dtype);
    operands o = {numbers(s->m * s->k, bytes), numbers(s->k * s->n, bytes),
                  numbers(s->m * s->n, bytes)};
    double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k, best = 0,
           start = seconds_now();
    int64_t batch = (int64_t)(2e6 / flops) + 1;
    multiply(provider, dtype, s, &o);
    do {
        double before = seconds_now();
        for (int64_t i = 0; i < batch; i++)
            multiply(provider, dtype, s, &o);
        double rate = flops * (double)batch / (seconds_now() - before) * 1e-9;
        best = rate > best ? rate : best;
    } while (seconds_now() - start < budget);
    free(o.a), free(o.b), free(o.c);
    return best;
}

int main(int argc, char **argv) {
    double budget = argc > 1 ? atof(argv[1]) : 0.3;
    for (int d = 0; d < 2; d++) {
        eddy_dtype dtype = d == 0 ? EDDY_F32 : EDDY_F64;
        printf("%-24s", eddy_dtype_name(dtype));
        for (int p = 0; p < EDDY_GEMM_PROVIDER_COUNT; p++)
            printf("%10s", eddy_gemm_provider_name((eddy_gemm_provider)p));
        printf("  table (GFLOP/s, instruction set %s)\n", eddy_isa_name(eddy_isa_chosen()));
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            const shape *s = &shapes[i];
            char name[64];
            snprintf(name, sizeof(name), "%lldx%lldx%lld %c%c", (long long)s->m, (long long)s->n,
                     (long long)s->k, s->transpose_a ? 'T' : 'N', s->transpose_b ? 'T' : 'N');
            printf("%-24s", name);
            for (int p = 0; p < EDDY_GEMM_PROVIDER_COUNT; p++) {
                bool exists = dtype == EDDY_F32
                                  ? eddy_gemm_provider_f32((eddy_gemm_provider)p) != NULL
                                  : eddy_gemm_provider_f64((eddy_gemm_provider)p) != NULL;
                if (exists)
                    printf("%10.1f", measure((eddy_gemm_provider)p, dtype, s, budget));
                else
                    printf("%10s", "-");
                fflush(stdout);
            }
            printf("  %s\n", eddy_gemm_provider_name(
                                 eddy_gemm_choose(eddy_isa_chosen(), dtype, s->m, s->n, s->k)));
        }
    }
    return 0;
}
