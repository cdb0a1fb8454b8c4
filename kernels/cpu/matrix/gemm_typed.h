/* The functions of gemm_block.h for one element type, included by gemm_<element>_block.c alone (kernels/cpu/typed.h), which also
 * defines WIDTH, the columns of a tile. */
#ifndef EDDY_KERNELS_CPU_GEMM_TYPED_H
#define EDDY_KERNELS_CPU_GEMM_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <kernels/cpu/typed.h>
#include <string.h>

#define ROWS EDDY_GEMM_ROWS
#define LANES EDDY_GEMM_LANES
#define INLINE static inline __attribute__((always_inline))

typedef real vector
    __attribute__((vector_size(EDDY_VECTOR_BYTES), aligned(sizeof(real)), may_alias));

enum { WIDE = EDDY_VECTOR_BYTES / (int)sizeof(real), PARTS = LANES / WIDE };

/* ---- tiles ---- */

/* `many` is the width in vectors, a constant in every call: with two, ROWS * 2 accumulators stay in registers.
 * Multiplications and additions are rounded separately, as in the portable form. */
INLINE void strip(int many, int64_t k, const real *a, const real *b, real *tile) {
    vector sums[ROWS][2];
    EDDY_VECTORS (i, ROWS)
        for (int v = 0; v < many; v++)
            sums[i][v] = (vector){0};
    for (int64_t p = 0; p < k; p++)
        EDDY_VECTORS (i, ROWS)
            for (int v = 0; v < many; v++)
                sums[i][v] += a[p * ROWS + i] * *(const vector *)(b + p * WIDTH + v * WIDE);
    EDDY_VECTORS (i, ROWS)
        for (int v = 0; v < many; v++)
            *(vector *)(tile + i * WIDTH + v * WIDE) = sums[i][v];
}

static void gemm_tile(int64_t k, const real *a, const real *b, int64_t columns, real *tile) {
    int64_t at = 0;
    for (; at + WIDE < columns; at += 2 * WIDE)
        strip(2, k, a, b + at, tile + at);
    if (at < columns)
        strip(1, k, a, b + at, tile + at);
}

/* ---- products with a vector ---- */

/* Rows of this many elements or more are read one after another: the hardware prefetches one stream better than four. */
#define ROW_LONG 512
#define ADD(a, b) ((a) + (b))

/* The sums of `many` rows (a constant in every call) are computed together: each part of the vector is read once for all
 * of them. */
INLINE void dots_of(int many, int64_t k, const real *rows, int64_t stride, const real *with,
                    real *sums) {
    vector lanes[4][PARTS];
    memset(lanes, 0, (size_t)many * sizeof(lanes[0]));
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES)
        for (int part = 0; part < PARTS; part++)
            for (int r = 0; r < many; r++)
                lanes[r][part] += *(const vector *)(rows + r * stride + p + part * WIDE) *
                                  *(const vector *)(with + p + part * WIDE);
    for (int r = 0; r < many; r++) {
        real all[LANES], rest = 0;
        memcpy(all, lanes[r], sizeof(all));
        for (int64_t q = p; q < k; q++)
            rest += rows[r * stride + q] * with[q];
        EDDY_LANES_HALVE(all, ADD);
        sums[r] = all[0] + rest;
    }
}

static void gemm_dots(int64_t count, int64_t k, const real *rows, int64_t stride, const real *with,
                      real *sums) {
    int64_t i = 0;
    for (; i + 4 <= count && k < ROW_LONG; i += 4)
        dots_of(4, k, rows + i * stride, stride, with, sums + i);
    for (; i < count; i++)
        dots_of(1, k, rows + i * stride, stride, with, sums + i);
}

/* Eight rows are added at a time, so that the sums are read and written an eighth as often. */
static void gemm_sums(int64_t count, int64_t k, const real *rows, int64_t stride, const real *with,
                      real *restrict sums) {
    memset(sums, 0, (size_t)count * sizeof(real));
    int64_t p = 0;
    for (; p + 8 <= k; p += 8)
        for (int64_t i = 0; i < count; i++) {
            real sum = sums[i];
            for (int r = 0; r < 8; r++)
                sum += with[p + r] * rows[(p + r) * stride + i];
            sums[i] = sum;
        }
    for (; p < k; p++)
        for (int64_t i = 0; i < count; i++)
            sums[i] += with[p] * rows[p * stride + i];
}

const EDDY_TYPED(eddy_gemm_block) EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_gemm_block)) = {
    .tile = gemm_tile, .dots = gemm_dots, .sums = gemm_sums};

#endif
