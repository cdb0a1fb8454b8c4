#include "blas.h"

#include <dlfcn.h>

#define WORKSPACE_BYTES ((uint64_t)32 << 20)

static eddy_cuda_blas_entries blas;
static eddy_blas_context context; /* NULL until the library is open */

static void *address_of(eddy_cu_address memory) {
    return (void *)(uintptr_t)memory;
}

static void open_library(void) {
    static const struct {
        const char *symbol;
        size_t offset;
    } rows[] = {
#define ROW(symbol, name, result, parameters) {#symbol, offsetof(eddy_cuda_blas_entries, name)},
        EDDY_BLAS_LIST(ROW)};
    void *library = dlopen(EDDY_BLAS_LIBRARY, RTLD_NOW);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        void *entry = library ? dlsym(library, rows[i].symbol) : NULL;
        if (!entry) {
            fprintf(stderr, "bare: there is no %s with %s\n", EDDY_BLAS_LIBRARY, rows[i].symbol);
            exit(1);
        }
        memcpy((char *)&blas + rows[i].offset, &entry, sizeof(entry));
    }
    bare_must(blas.create(&context), "cublasLtCreate");
}

int blas_version(void) {
    return (int)blas.version();
}

/* The library's matrices lie column by column: its A is our B, and its rows are our columns. */
static void make_layouts(blas_gemm *gemm, const gemm_row *row, eddy_blas_type type) {
    long a_rows = row->is_b_transposed ? row->k : row->n,
         b_rows = row->is_a_transposed ? row->m : row->k;
    bare_must(blas.layout_create(&gemm->a, type, (uint64_t)a_rows,
                                 (uint64_t)(row->n * row->k / a_rows), a_rows),
              "a layout");
    bare_must(blas.layout_create(&gemm->b, type, (uint64_t)b_rows,
                                 (uint64_t)(row->m * row->k / b_rows), b_rows),
              "a layout");
    bare_must(blas.layout_create(&gemm->d, type, (uint64_t)row->n, (uint64_t)row->m, row->n),
              "a layout");
}

static void transpose(blas_gemm *gemm, eddy_blas_attribute_of_product which, bool is_transposed) {
    int32_t value = EDDY_BLAS_IS_TRANSPOSED;
    if (is_transposed)
        bare_must(blas.product_set(gemm->product, which, &value, sizeof(value)), "a transpose");
}

static void choose(blas_gemm *gemm) {
    eddy_blas_preference preference;
    uint64_t workspace_bytes = WORKSPACE_BYTES;
    int found = 0;
    bare_must(blas.preference_create(&preference), "a preference");
    bare_must(blas.preference_set(preference, EDDY_BLAS_PREFERENCE_WORKSPACE_BYTES,
                                  &workspace_bytes, sizeof(workspace_bytes)),
              "a limit of the workspace");
    bare_must(blas.choose(context, gemm->product, gemm->a, gemm->b, gemm->d, gemm->d, preference, 1,
                          &gemm->choice, &found),
              "cublasLtMatmulAlgoGetHeuristic");
    bare_must(found == 1 ? gemm->choice.status : EDDY_BLAS_NOT_SUPPORTED, "an algorithm");
    (void)blas.preference_destroy(preference);
}

static eddy_cu_address matrix(const gemm_row *row, long count, uint32_t *random) {
    void *numbers = gemm_row_numbers(row, count, random);
    eddy_cu_address memory = bare_memory_of(numbers, (size_t)count * gemm_row_element_bytes(row));
    free(numbers);
    return memory;
}

void blas_gemm_init(blas_gemm *gemm, const gemm_row *row) {
    uint32_t random = 1;
    eddy_blas_type type = row->dtype == EDDY_F32   ? EDDY_BLAS_F32
                          : row->dtype == EDDY_F16 ? EDDY_BLAS_F16
                                                   : EDDY_BLAS_BF16;
    *gemm = (blas_gemm){0};
    if (!context)
        open_library();
    bare_must(blas.product_create(&gemm->product, EDDY_BLAS_SUMS_F32, EDDY_BLAS_F32), "a product");
    transpose(gemm, EDDY_BLAS_PRODUCT_TRANSPOSE_A, row->is_b_transposed);
    transpose(gemm, EDDY_BLAS_PRODUCT_TRANSPOSE_B, row->is_a_transposed);
    make_layouts(gemm, row, type);
    choose(gemm);
    gemm->b_memory = matrix(row, row->m * row->k, &random);
    gemm->a_memory = matrix(row, row->k * row->n, &random);
    gemm->d_memory = bare_memory_acquire((size_t)(row->m * row->n) * gemm_row_element_bytes(row));
    gemm->workspace = bare_memory_acquire(WORKSPACE_BYTES);
}

void blas_gemm_fini(blas_gemm *gemm) {
    bare_memory_release(gemm->a_memory);
    bare_memory_release(gemm->b_memory);
    bare_memory_release(gemm->d_memory);
    bare_memory_release(gemm->workspace);
    (void)blas.layout_destroy(gemm->a);
    (void)blas.layout_destroy(gemm->b);
    (void)blas.layout_destroy(gemm->d);
    (void)blas.product_destroy(gemm->product);
}

void blas_gemm_multiply(const blas_gemm *gemm) {
    static const float one = 1, none = 0;
    void *d = address_of(gemm->d_memory);
    bare_must(blas.multiply(context, gemm->product, &one, address_of(gemm->a_memory), gemm->a,
                            address_of(gemm->b_memory), gemm->b, &none, d, gemm->d, d, gemm->d,
                            &gemm->choice.algorithm, address_of(gemm->workspace), WORKSPACE_BYTES,
                            bare_stream()),
              "cublasLtMatmul");
}
