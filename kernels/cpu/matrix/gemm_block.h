/* The inner kernels of the library's own matrix products: on packed panels, and with a vector. */
#ifndef EDDY_KERNELS_CPU_GEMM_BLOCK_H
#define EDDY_KERNELS_CPU_GEMM_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* A tile of the result is EDDY_GEMM_ROWS high and 32 (f32) or 16 (f64) wide. */
#define EDDY_GEMM_ROWS 6
#define EDDY_GEMM_WIDTH_F32 32
#define EDDY_GEMM_WIDTH_F64 16
#define EDDY_GEMM_LANES 16

/* tile[EDDY_GEMM_ROWS][width] = sum over p < k of a[p][EDDY_GEMM_ROWS] * b[p][width], in order of p. The first `columns`
 * of each row are computed; those behind them may be written too.
 *
 * dots: sums[i] = sum over p < k of rows[i * stride + p] * vector[p]. Product p is added in lane p % EDDY_GEMM_LANES; then
 * the lanes are halved. The products that do not fill all lanes are summed apart and added at the end.
 *
 * sums: sums[i] = sum over p < k of vector[p] * rows[p * stride + i], in order of p. */
typedef struct eddy_gemm_block_f32 {
    void (*tile)(int64_t k, const float *a, const float *b, int64_t columns, float *tile);
    void (*dots)(int64_t count, int64_t k, const float *rows, int64_t stride, const float *vector,
                 float *sums);
    void (*sums)(int64_t count, int64_t k, const float *rows, int64_t stride, const float *vector,
                 float *sums);
} eddy_gemm_block_f32;

typedef struct eddy_gemm_block_f64 {
    void (*tile)(int64_t k, const double *a, const double *b, int64_t columns, double *tile);
    void (*dots)(int64_t count, int64_t k, const double *rows, int64_t stride, const double *vector,
                 double *sums);
    void (*sums)(int64_t count, int64_t k, const double *rows, int64_t stride, const double *vector,
                 double *sums);
} eddy_gemm_block_f64;

EDDY_ISA_DECLARE(eddy_gemm_block_f32, eddy_cpu_gemm_block_f32)
EDDY_ISA_DECLARE(eddy_gemm_block_f64, eddy_cpu_gemm_block_f64)

#endif
