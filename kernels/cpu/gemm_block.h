/* The inner kernel of the library's own matrix product, on packed panels. */
#ifndef EDDY_KERNELS_CPU_GEMM_BLOCK_H
#define EDDY_KERNELS_CPU_GEMM_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* A tile of the result is EDDY_GEMM_ROWS high and 32 (f32) or 16 (f64) wide. */
#define EDDY_GEMM_ROWS 6
#define EDDY_GEMM_WIDTH_F32 32
#define EDDY_GEMM_WIDTH_F64 16

typedef struct eddy_gemm_blocks {
    /* tile[EDDY_GEMM_ROWS][width] = sum over p < k of a[p][EDDY_GEMM_ROWS] * b[p][width], in order of p */
    void (*tile_f32)(int64_t k, const float *a, const float *b, float *tile);
    void (*tile_f64)(int64_t k, const double *a, const double *b, double *tile);
} eddy_gemm_blocks;

EDDY_ISA_DECLARE(eddy_gemm_blocks, eddy_cpu_gemm_blocks)

#endif
