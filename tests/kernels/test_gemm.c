/* Each provider of matrix products against a loop in double, and against itself: alignment of the operands does not show.
 * Bound: (k + 4) / 2 units of the last place of the sum of magnitudes of an element's products; any order of additions
 * stays within k. */
#include "faults.h"
#include "isa.h"
#include "tensor.h"
#include <criterion/criterion.h>
#include <kernels/attributes.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int64_t sides[] = {1,  2,  3,  5,  6,  7,  10,  15,  16,  17,  31,  32,
                                33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 257, 784};
#define SIDES ((int64_t)(sizeof(sides) / sizeof(sides[0])))

typedef struct problem {
    int64_t m, n, k, lda, ldb, ldc;
    bool ta, tb;
} problem;

static problem make_problem(void) {
    problem p;
    do {
        p.m = sides[test_below(SIDES)];
        p.n = sides[test_below(SIDES)];
        p.k = test_below(20) == 0 ? 0 : sides[test_below(SIDES)];
    } while (p.m * p.n * p.k > 8000000);
    p.ta = test_below(2);
    p.tb = test_below(2);
    p.lda = (p.ta ? p.m : p.k) + test_below(3);
    p.ldb = (p.tb ? p.k : p.n) + test_below(3);
    p.ldc = p.n + test_below(3);
    p.lda += p.lda == 0;
    p.ldb += p.ldb == 0;
    return p;
}

#define CHECK(name, real, unit)                                                                    \
    static real *make_##name(int64_t count) {                                                      \
        real *x = aligned_alloc(64, (size_t)(count + 96) * sizeof(real) / 64 * 64 + 64);           \
        for (int64_t i = 0; i < count + 80; i++)                                                   \
            x[i] = (real)(2 * test_unit() - 1);                                                    \
        return x;                                                                                  \
    }                                                                                              \
    static void check_##name(eddy_gemm_##name##_fn *gemm, const char *provider, problem p,         \
                             real alpha, real beta) {                                              \
        int64_t a_count = (p.ta ? p.k : p.m) * p.lda, b_count = (p.tb ? p.n : p.k) * p.ldb,        \
                c_count = p.m * p.ldc;                                                             \
        real *a = make_##name(a_count), *b = make_##name(b_count), *c = make_##name(c_count);      \
        real *before = make_##name(c_count), *moved = make_##name(c_count),                        \
             *moved_a = make_##name(a_count);                                                      \
        if (beta == 0)                                                                             \
            for (int64_t i = 0; i < p.m; i++)                                                      \
                for (int64_t j = 0; j < p.n; j++)                                                  \
                    c[i * p.ldc + j] = (real)NAN;                                                  \
        memcpy(before, c, (size_t)(c_count + 64) * sizeof(real));                                  \
        memcpy(moved + 3, c, (size_t)c_count * sizeof(real));                                      \
        memcpy(moved_a + 5, a, (size_t)a_count * sizeof(real));                                    \
        gemm(p.ta, p.tb, p.m, p.n, p.k, alpha, a, p.lda, b, p.ldb, beta, c, p.ldc);                \
        for (int64_t i = 0; i < p.m; i++)                                                          \
            for (int64_t j = 0; j < p.n; j++) {                                                    \
                double want = beta == 0 ? 0 : (double)beta * (double)before[i * p.ldc + j],        \
                       sum = fabs(want);                                                           \
                for (int64_t q = 0; q < p.k; q++) {                                                \
                    double left = (double)a[p.ta ? q * p.lda + i : i * p.lda + q];                 \
                    double product =                                                               \
                        (double)alpha * left * (double)b[p.tb ? j * p.ldb + q : q * p.ldb + j];    \
                    want += product;                                                               \
                    sum += fabs(product);                                                          \
                }                                                                                  \
                double got = (double)c[i * p.ldc + j];                                             \
                cr_assert(                                                                         \
                    fabs(got - want) <= (double)(p.k + 4) / 2 * unit * sum,                        \
                    "%s " #name                                                                    \
                    " %lldx%lldx%lld %c%c alpha %g beta %g seed %llu [%lld, %lld]: %a, not %a",    \
                    provider, (long long)p.m, (long long)p.n, (long long)p.k, p.ta ? 'T' : 'N',    \
                    p.tb ? 'T' : 'N', (double)alpha, (double)beta, (unsigned long long)test_seed,  \
                    (long long)i, (long long)j, got, want);                                        \
            }                                                                                      \
        for (int64_t i = 0; i < c_count; i++)                                                      \
            cr_assert(i % p.ldc < p.n || c[i] == before[i], "%s wrote between rows", provider);    \
        gemm(p.ta, p.tb, p.m, p.n, p.k, alpha, moved_a + 5, p.lda, b, p.ldb, beta, moved + 3,      \
             p.ldc);                                                                               \
        for (int64_t i = 0; i < p.m; i++)                                                          \
            cr_assert(memcmp(c + i * p.ldc, moved + 3 + i * p.ldc, (size_t)p.n * sizeof(real)) ==  \
                          0,                                                                       \
                      "%s " #name ": alignment shows", provider);                                  \
        free(a), free(b), free(c), free(before), free(moved), free(moved_a);                       \
    }

CHECK(f32, float, 0x1p-23)
CHECK(f64, double, 0x1p-52)

Test(gemm, every_provider_multiplies_right) {
    const double factors[][2] = {{1, 0}, {1, 1}, {-0.5, 0}, {2, -1}};
    for (int provider = 0; provider < EDDY_GEMM_PROVIDER_COUNT; provider++) {
        eddy_gemm_f32_fn *f32 = eddy_gemm_provider_f32((eddy_gemm_provider)provider);
        eddy_gemm_f64_fn *f64 = eddy_gemm_provider_f64((eddy_gemm_provider)provider);
        const char *name = eddy_gemm_provider_name((eddy_gemm_provider)provider);
        for (int round = 0; round < 250; round++) {
            const double *factor = factors[round % 4];
            if (f32 != NULL)
                check_f32(f32, name, make_problem(), (float)factor[0], (float)factor[1]);
            if (f64 != NULL)
                check_f64(f64, name, make_problem(), factor[0], factor[1]);
        }
    }
}

/* With sides beyond the pieces in which it goes along the vector and along the result. */
Test(gemm, products_with_a_vector) {
    const int64_t long_sides[] = {1, 4, 15, 16, 100, 1023, 1025, 8192, 8195};
    const int64_t count = sizeof(long_sides) / sizeof(long_sides[0]);
    for (int64_t round = 0; round < 4 * count * count; round++) {
        int64_t side = long_sides[round / 4 % count];
        problem p = {.m = round % 2 ? side : 1,
                     .n = round % 2 ? 1 : side,
                     .k = long_sides[round / 4 / count]};
        if (side * p.k > 1000000)
            continue;
        p.ta = test_below(2), p.tb = test_below(2);
        p.lda = (p.ta ? p.m : p.k) + test_below(3);
        p.ldb = (p.tb ? p.k : p.n) + test_below(3);
        p.ldc = p.n + test_below(3);
        double alpha = test_below(2) ? 1 : -0.5, beta = test_below(2) ? 0 : 2;
        check_f32(eddy_gemm_vector_f32, "vector", p, (float)alpha, (float)beta);
        check_f64(eddy_gemm_vector_f64, "vector", p, alpha, beta);
    }
}

/* Only the portable provider promises this; the others' tiles are therefore fixed by the shape. */
Test(gemm, cuts_do_not_show_in_portable_products) {
    for (int round = 0; round < 60; round++) {
        problem p = make_problem();
        float *a = make_f32((p.ta ? p.k : p.m) * p.lda), *b = make_f32((p.tb ? p.n : p.k) * p.ldb);
        float *whole = make_f32(p.m * p.ldc), *cut = make_f32(p.m * p.ldc);
        eddy_gemm_portable_f32(p.ta, p.tb, p.m, p.n, p.k, 1, a, p.lda, b, p.ldb, 0, whole, p.ldc);
        for (int64_t panels = 1; panels <= 4; panels++) {
            int64_t columns = (p.n + panels - 1) / panels, rows = (p.m + panels - 1) / panels;
            for (int64_t j = 0; j < p.n; j += columns)
                for (int64_t i = 0; i < p.m; i += rows)
                    eddy_gemm_portable_f32(
                        p.ta, p.tb, p.m - i < rows ? p.m - i : rows,
                        p.n - j < columns ? p.n - j : columns, p.k, 1, a + (p.ta ? i : i * p.lda),
                        p.lda, b + (p.tb ? j * p.ldb : j), p.ldb, 0, cut + i * p.ldc + j, p.ldc);
            for (int64_t i = 0; i < p.m; i++)
                cr_assert(memcmp(whole + i * p.ldc, cut + i * p.ldc, (size_t)p.n * 4) == 0,
                          "%lld panels", (long long)panels);
        }
        free(a), free(b), free(whole), free(cut);
    }
}

#define CHECK_COLUMNS(name, real, WIDTH)                                                           \
    static void check_columns_##name(eddy_isa isa, int64_t k, const real *a, const real *b) {      \
        real whole[EDDY_GEMM_ROWS * WIDTH], part[EDDY_GEMM_ROWS * WIDTH];                          \
        eddy_cpu_gemm_block_##name##_for(isa)->tile(k, a, b, WIDTH, whole);                        \
        for (int64_t columns = 1; columns < WIDTH; columns++) {                                    \
            eddy_cpu_gemm_block_##name##_for(isa)->tile(k, a, b, columns, part);                   \
            for (int64_t i = 0; i < EDDY_GEMM_ROWS; i++)                                           \
                ASSERT_SAME(whole + i * WIDTH, part + i * WIDTH, sizeof(real) * (size_t)columns,   \
                            isa, "tile_" #name, (long long)columns);                               \
        }                                                                                          \
    }

CHECK_COLUMNS(f32, float, EDDY_GEMM_WIDTH_F32)
CHECK_COLUMNS(f64, double, EDDY_GEMM_WIDTH_F64)

Test(gemm, columns_of_a_narrow_tile_are_those_of_a_whole_one) {
    enum { DEPTH = 9 };
    float a[DEPTH * EDDY_GEMM_ROWS], b[DEPTH * EDDY_GEMM_WIDTH_F32];
    double a64[DEPTH * EDDY_GEMM_ROWS], b64[DEPTH * EDDY_GEMM_WIDTH_F64];
    fill_f32(a, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f32(b, DEPTH * EDDY_GEMM_WIDTH_F32, -1, 1);
    fill_f64(a64, DEPTH * EDDY_GEMM_ROWS, -1, 1), fill_f64(b64, DEPTH * EDDY_GEMM_WIDTH_F64, -1, 1);
    for (int64_t k = 0; k <= DEPTH; k++)
        EACH_ISA(isa) {
            check_columns_f32(isa, k, a, b);
            check_columns_f64(isa, k, a64, b64);
        }
}

Test(gemm, tiles_cover_the_problem_and_follow_from_its_shape) {
    for (int round = 0; round < 100000; round++) {
        int64_t m = 1 + test_below(4000), n = 1 + test_below(4000), k = test_below(4000);
        if (round % 4 == 0)
            *(test_below(2) ? &m : &n) = 1;
        eddy_gemm_cut cut = eddy_gemm_cut_for(m, n, k);
        cr_assert(cut.row_tiles >= 1 && (cut.row_tiles - 1) * cut.rows < m &&
                  cut.row_tiles * cut.rows >= m);
        cr_assert(cut.column_tiles >= 1 && (cut.column_tiles - 1) * cut.columns < n &&
                  cut.column_tiles * cut.columns >= n);
        cr_assert(cut.row_tiles == 1 || cut.rows >= 128);
        cr_assert(cut.column_tiles == 1 || cut.columns >= 64);
        cr_assert(cut.row_tiles * cut.column_tiles <= 64);
    }
}

static bool is_own(eddy_gemm_provider provider) {
    return provider == EDDY_GEMM_PORTABLE || provider == EDDY_GEMM_VECTOR;
}

Test(gemm, the_table_names_a_provider_for_every_shape) {
    for (int isa = 0; isa < EDDY_ISA_COUNT; isa++)
        for (int64_t side = 1; side <= 4096; side *= 4) {
            eddy_gemm_provider f32 = eddy_gemm_choose((eddy_isa)isa, EDDY_F32, side, 10, 128);
            eddy_gemm_provider f64 = eddy_gemm_choose((eddy_isa)isa, EDDY_F64, side, 10, 128);
            cr_assert_not_null((void *)eddy_gemm_provider_f32(f32));
            cr_assert_not_null((void *)eddy_gemm_provider_f64(f64));
#ifdef EDDY_HAVE_BLIS
            cr_assert((f32 != EDDY_GEMM_BLIS && f64 != EDDY_GEMM_BLIS) ||
                      eddy_gemm_blis_is_tuned());
#endif
            cr_assert(isa != EDDY_ISA_PORTABLE || (is_own(f32) && is_own(f64)));
        }
}

/* ---- operands at the end of memory ---- */

/* `bytes` of floats, all 1, between two pages that nobody may touch: at the end of what lies between, or at its begin. */
typedef struct fenced {
    char *pages;
    size_t bytes; /* of the pages between */
    void *data;
} fenced;

static fenced fenced_make(size_t elements, size_t element, bool is_at_end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = elements * element;
    fenced f = {.bytes = (bytes + page - 1) / page * page};
    f.pages = mmap(NULL, f.bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)f.pages, MAP_FAILED);
    cr_assert_eq(mprotect(f.pages + page, f.bytes, PROT_READ | PROT_WRITE), 0);
    f.data = f.pages + page + (is_at_end ? f.bytes - bytes : 0);
    for (size_t i = 0; i < elements; i++)
        if (element == sizeof(float))
            ((float *)f.data)[i] = 1;
        else
            ((double *)f.data)[i] = 1;
    return f;
}

static void fenced_free(fenced *f) {
    munmap(f->pages, f->bytes + 2 * (size_t)sysconf(_SC_PAGESIZE));
}

/* A product of ones; what an access beyond its operands touches ends the test. */
static void check_fenced(eddy_gemm_provider provider, int64_t m, int64_t n, int64_t k, int way) {
    bool ta = way & 1, tb = way & 2, is_at_end = way & 4, adds = way & 8;
    eddy_gemm_f32_fn *f32 = eddy_gemm_provider_f32(provider);
    eddy_gemm_f64_fn *f64 = eddy_gemm_provider_f64(provider);
    for (size_t element = 4; element <= 8; element += 4) {
        if (element == 4 ? !f32 : !f64)
            continue;
        fenced a = fenced_make((size_t)(m * k), element, is_at_end),
               b = fenced_make((size_t)(k * n), element, is_at_end),
               c = fenced_make((size_t)(m * n), element, is_at_end);
        int64_t lda = ta ? m : k, ldb = tb ? k : n;
        if (element == 4)
            cr_assert(f32(ta, tb, m, n, k, 1, a.data, lda, b.data, ldb, adds, c.data, n));
        else
            cr_assert(f64(ta, tb, m, n, k, 1, a.data, lda, b.data, ldb, adds, c.data, n));
        for (int64_t i = 0; i < m * n; i++)
            cr_assert_eq(element == 4 ? ((float *)c.data)[i] : ((double *)c.data)[i],
                         (double)(k + adds), "%s %lld x %lld x %lld",
                         eddy_gemm_provider_name(provider), (long long)m, (long long)n,
                         (long long)k);
        fenced_free(&a), fenced_free(&b), fenced_free(&c);
    }
}

Test(gemm, nothing_beyond_the_operands_is_read) {
    static const int64_t rows[] = {1, 2, 4, 7, 9, 16, 64},
                         columns[] = {1, 2, 3, 6, 7, 10, 14, 17, 38}, depths[] = {1, 5, 47, 160};
#ifdef EDDY_HAVE_DNNL
    (void)eddy_gemm_dnnl_start();
#endif
    for (int provider = 0; provider < EDDY_GEMM_PROVIDER_COUNT; provider++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
            for (size_t j = 0; j < sizeof(columns) / sizeof(*columns); j++)
                for (size_t l = 0; l < sizeof(depths) / sizeof(*depths); l++)
                    for (int way = 0; way < 16; way++)
                        check_fenced((eddy_gemm_provider)provider, rows[i], columns[j], depths[l],
                                     way);
}

/* ---- memory that lacks ---- */

static tensor noise(eddy_dtype dtype, int32_t rank, const int64_t *shape) {
    tensor t = tensor_make(dtype, rank, shape, CONTIGUOUS);
    tensor_fill(&t, 1);
    return t;
}

static void check_refused(const eddy_kernel *kernel, tensor **tensors, int32_t count,
                          const void *attributes) {
    faulted f = {.kernel = kernel, .count = count, .attributes = attributes};
    memcpy(f.tensors, tensors, (size_t)count * sizeof(*tensors));
    faults_check_products(&f);
}

Test(gemm, products_that_lack_memory_fail_matmul_linear_and_addmm) {
    const eddy_dtype dtypes[] = {EDDY_F32, EDDY_BF16};
    const eddy_attributes_addmm attributes = {.alpha = 0.5, .beta = 2};
    for (int d = 0; d < 2; d++) {
        tensor a = noise(dtypes[d], 3, (int64_t[]){2, 48, 48}),
               b = noise(dtypes[d], 3, (int64_t[]){2, 48, 48});
        tensor m = noise(dtypes[d], 2, (int64_t[]){48, 48}),
               n = noise(dtypes[d], 2, (int64_t[]){48, 48});
        tensor bias = noise(dtypes[d], 1, (int64_t[]){48}),
               batches = noise(dtypes[d], 3, (int64_t[]){2, 48, 48});
        tensor out = noise(dtypes[d], 2, (int64_t[]){48, 48});
        check_refused(&eddy_cpu_matmul, (tensor *[]){&a, &b, &batches}, 3, NULL);
        check_refused(&eddy_cpu_linear, (tensor *[]){&m, &n, &bias, &out}, 4, NULL);
        check_refused(&eddy_cpu_addmm, (tensor *[]){&bias, &m, &n, &out}, 4, &attributes);
        tensor_free(&a), tensor_free(&b), tensor_free(&m), tensor_free(&n), tensor_free(&bias),
            tensor_free(&out);
        tensor_free(&batches);
    }
}

Test(gemm, products_that_lack_memory_fail_attention) {
    const int64_t shape[] = {2, 70, 64};
    tensor t[8];
    for (int i = 0; i < 8; i++)
        t[i] = noise(EDDY_F32, 3, shape);
    const eddy_attributes_sdpa forward = {.scale = 0.125};
    const eddy_attributes_sdpa_backward backward = {.scale = 0.125};
    check_refused(&eddy_cpu_sdpa, (tensor *[]){&t[0], &t[1], &t[2], NULL, &t[3]}, 5, &forward);
    tensor *operands[] = {&t[4], &t[3], &t[0], &t[1], &t[2], NULL, &t[5], &t[6], &t[7]};
    check_refused(&eddy_cpu_sdpa_backward, operands, 9, &backward);
    for (int i = 0; i < 8; i++)
        tensor_free(&t[i]);
}

/* Windows of one element, which are left to products. */
Test(gemm, products_that_lack_memory_fail_convolutions) {
    tensor x = noise(EDDY_F32, 4, (int64_t[]){2, 32, 20, 20}),
           weight = noise(EDDY_F32, 4, (int64_t[]){48, 32, 1, 1});
    tensor bias = noise(EDDY_F32, 1, (int64_t[]){48}),
           out = noise(EDDY_F32, 4, (int64_t[]){2, 48, 20, 20});
    const eddy_attributes_conv attributes = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    check_refused(&eddy_cpu_conv2d, (tensor *[]){&x, &weight, &bias, &out}, 4, &attributes);
    check_refused(&eddy_cpu_conv_transpose2d, (tensor *[]){&out, &weight, NULL, &x}, 4,
                  &attributes);
    check_refused(&eddy_cpu_conv2d_backward_weight, (tensor *[]){&out, &x, &weight}, 3,
                  &attributes);
    tensor_free(&x), tensor_free(&weight), tensor_free(&bias), tensor_free(&out);
}
