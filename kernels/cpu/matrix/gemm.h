/* Matrix products on one thread: C = alpha * op(A) * op(B) + beta * C, all row-major, op the transpose where asked. With
 * beta 0, C is not read. False where a library lacks the memory to pack A and B: C means nothing then. Thread-safe; none of the providers starts threads or changes a setting of the process.
 *
 * Whole problems are cut into tiles by eddy_gemm_cut, from their shape alone: the libraries choose their loops by the size
 * of what they get, so that a tile's bits are not those of the whole, and any cut that followed the number of threads would
 * show in the results. */
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

/* gemm_portable_typed.h: own loops, the same bits on every instruction set and for every cut. */
eddy_gemm_f32_fn eddy_gemm_portable_f32;
eddy_gemm_f64_fn eddy_gemm_portable_f64;
/* gemm_vector_typed.h: the same where m or n is 1; others go to whom the table names. */
eddy_gemm_f32_fn eddy_gemm_vector_f32;
eddy_gemm_f64_fn eddy_gemm_vector_f64;
#ifdef EDDY_HAVE_BLIS
eddy_gemm_f32_fn eddy_gemm_blis_f32;
eddy_gemm_f64_fn eddy_gemm_blis_f64;
/* Whether it has loops of its own for this CPU. */
bool eddy_gemm_blis_is_tuned(void);
#endif
#ifdef EDDY_HAVE_DNNL
eddy_gemm_f32_fn eddy_gemm_dnnl_f32;
bool eddy_gemm_dnnl_start(void);
/* Whether it could not be started: no address space, or a system that lets nobody make code. For the life of the process. */
bool eddy_gemm_dnnl_is_left_out(void);
#endif

/* A provider's function; NULL where this build lacks it (or the provider has no such function). */
eddy_gemm_f32_fn *eddy_gemm_provider_f32(eddy_gemm_provider provider);
eddy_gemm_f64_fn *eddy_gemm_provider_f64(eddy_gemm_provider provider);
const char *eddy_gemm_provider_name(eddy_gemm_provider provider);

/* What the committed table (gemm_table.c) says for a whole problem on an instruction set; f32 or f64. */
eddy_gemm_provider eddy_gemm_choose(eddy_isa isa, eddy_dtype dtype, int64_t m, int64_t n,
                                    int64_t k);

/* For eddy_kernel.prepare: the same on the chosen instruction set, once all is made that the library makes on its first products.
 * *has_started becomes true for the calls that found that not made, and is left alone by others. */
eddy_gemm_provider eddy_gemm_prepare(eddy_dtype dtype, int64_t m, int64_t n, int64_t k,
                                     bool *has_started);
/* Makes it for products of at most so much work (m * n * k), whatever their sides. True for the calls that found it not made. */
bool eddy_gemm_start_within(eddy_dtype dtype, double work);

/* Tiles of a problem's result: `rows` by `columns` each, the last ones may have fewer. */
typedef struct eddy_gemm_cut {
    int64_t rows, columns;
    int64_t row_tiles, column_tiles;
} eddy_gemm_cut;

eddy_gemm_cut eddy_gemm_cut_for(int64_t m, int64_t n, int64_t k);

#endif
