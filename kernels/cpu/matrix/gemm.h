/* Matrix products on one thread: C = alpha * op(A) * op(B) + beta * C. All are row-major; op transposes if the flag says
 * so. With beta 0, C is not read. False if a library lacks the memory to pack A and B: C is then undefined. Thread-safe;
 * no provider starts threads or changes a setting of the process.
 *
 * eddy_gemm_cut_for cuts whole problems into tiles, from their shape alone. The libraries choose their loops by the size
 * of a product, so a tile may have other bits than the same part of the whole product. Cuts that depended on the number of
 * threads would therefore change the results. */
#ifndef EDDY_KERNELS_CPU_GEMM_H
#define EDDY_KERNELS_CPU_GEMM_H

#include <base/cpu.h>
#include <eddy/dtype.h>
#include <stdbool.h>
#include <stdint.h>

/* enumerator, name: in the order of eddy_gemm_provider */
#define EDDY_GEMM_PROVIDER_LIST(row)                                                               \
    row(PORTABLE, portable) row(VECTOR, vector) row(BLIS, blis) row(DNNL, dnnl)

typedef enum eddy_gemm_provider {
#define EDDY_GEMM_PROVIDER_ROW(enumerator, name) EDDY_GEMM_##enumerator,
    EDDY_GEMM_PROVIDER_LIST(EDDY_GEMM_PROVIDER_ROW)
#undef EDDY_GEMM_PROVIDER_ROW
        EDDY_GEMM_PROVIDER_COUNT
} eddy_gemm_provider;

typedef bool eddy_gemm_f32_fn(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                              float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                              float beta, float *c, int64_t ldc);
typedef bool eddy_gemm_f64_fn(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                              double alpha, const double *a, int64_t lda, const double *b,
                              int64_t ldb, double beta, double *c, int64_t ldc);

/* gemm_portable_typed.h: our own loops. They give the same bits on every instruction set and for every cut. */
eddy_gemm_f32_fn eddy_gemm_portable_f32;
eddy_gemm_f64_fn eddy_gemm_portable_f64;
/* gemm_vector_typed.h: the same if m or n is 1; other products are passed to the provider that the table names. */
eddy_gemm_f32_fn eddy_gemm_vector_f32;
eddy_gemm_f64_fn eddy_gemm_vector_f64;
#ifdef EDDY_HAVE_BLIS
/* Of f64 alone: products of f32 read beyond the ends of operands and of C (BLIS 0.9.0, on AVX2). */
eddy_gemm_f64_fn eddy_gemm_blis_f64;
/* Whether BLIS has loops specialised for this CPU. */
bool eddy_gemm_blis_is_tuned(void);
#endif
#ifdef EDDY_HAVE_DNNL
eddy_gemm_f32_fn eddy_gemm_dnnl_f32;
bool eddy_gemm_dnnl_start(void);
/* Whether it could not be started: there is no address space, or the system forbids executable pages. For the life of the
 * process. */
bool eddy_gemm_dnnl_is_left_out(void);
#endif

/* A provider's function; NULL if this build lacks the provider, or the provider has no such function. */
eddy_gemm_f32_fn *eddy_gemm_provider_f32(eddy_gemm_provider provider);
eddy_gemm_f64_fn *eddy_gemm_provider_f64(eddy_gemm_provider provider);
const char *eddy_gemm_provider_name(eddy_gemm_provider provider);

/* The provider that the committed table (gemm_table.c) names for a whole problem on an instruction set; f32 or f64. */
eddy_gemm_provider eddy_gemm_choose(eddy_isa isa, eddy_dtype dtype, int64_t m, int64_t n,
                                    int64_t k);

/* For eddy_kernel.prepare: the same for the chosen instruction set, after the library is started, i.e. after it has
 * allocated what its first products allocate. *has_started is set to true by the calls that found it not started, and is
 * left alone by others. */
eddy_gemm_provider eddy_gemm_prepare(eddy_dtype dtype, int64_t m, int64_t n, int64_t k,
                                     bool *has_started);
/* Starts the library for products of at most so much work (m * n * k), whatever their sides. True for the calls that found
 * it not started. */
bool eddy_gemm_start_within(eddy_dtype dtype, double work);

/* The tiles of a problem's result: `rows` by `columns` each; the last ones may be smaller. */
typedef struct eddy_gemm_cut {
    int64_t rows, columns;
    int64_t row_tiles, column_tiles;
} eddy_gemm_cut;

eddy_gemm_cut eddy_gemm_cut_for(int64_t m, int64_t n, int64_t k);

#endif
