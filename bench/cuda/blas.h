/* cuBLASLt called directly, without Eddy, with the algorithm that it proposes first. After bare_begin (bare.h); what it refuses ends the program with a sentence. */
#ifndef EDDY_BENCH_CUDA_BLAS_H
#define EDDY_BENCH_CUDA_BLAS_H

#include <bench/cuda/bare.h>
#include <bench/cuda/gemm_row.h>
#include <streams/cuda/blas.h>

typedef struct blas_gemm {
    eddy_blas_product product;
    eddy_blas_layout a, b, d;
    eddy_blas_choice choice;
    eddy_cu_address a_memory, b_memory, d_memory, workspace;
} blas_gemm;

/* Makes the operands and asks for the algorithm. */
void blas_gemm_init(blas_gemm *gemm, const gemm_row *row);
void blas_gemm_fini(blas_gemm *gemm);
/* Ends before it has run. */
void blas_gemm_multiply(const blas_gemm *gemm);

/* Of the library: major * 10000 + minor * 100 + patch. */
int blas_version(void);

#endif
