/* The library's own matrix product, for one element type. Panels of B and A are packed on the stack; gemm_typed.h computes
 * tiles. Every element adds its products in the same order (blocks of DEPTH), whatever the cut. The including file defines
 * WIDTH, the columns of a tile. */
#ifndef EDDY_KERNELS_CPU_GEMM_PORTABLE_TYPED_H
#define EDDY_KERNELS_CPU_GEMM_PORTABLE_TYPED_H

#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define DEPTH 128
/* Tile widths packed at a time: 64 KB of B. */
#define STRIPS 4

/* Groups of four are compiled to vectors; a plain loop would become a byte copy, which moves its last bytes one by one. */
static void copy_rows(real *restrict to, int64_t across, int64_t count, const real *restrict from,
                      int64_t depth, int64_t stride) {
    for (int64_t p = 0; p < depth; p++, to += across, from += stride) {
        int64_t i = 0;
        for (; i + 4 <= count; i += 4)
            for (int64_t c = i; c < i + 4; c++)
                to[c] = from[c];
        for (; i < count; i++)
            to[i] = from[i];
    }
}

static void copy_columns(real *restrict to, int64_t across, int64_t count,
                         const real *restrict from, int64_t across_stride, int64_t depth,
                         int64_t depth_stride) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int64_t p = 0; p < depth; p++)
            for (int64_t c = i; c < i + 4; c++)
                to[p * across + c] = from[p * depth_stride + c * across_stride];
    for (; i < count; i++)
        for (int64_t p = 0; p < depth; p++)
            to[p * across + i] = from[p * depth_stride + i * across_stride];
}

/* packed[p][i] = source[p * depth_stride + i * across_stride], padded with zeros */
static void pack(real *packed, int64_t across, int64_t count, const real *source,
                 int64_t across_stride, int64_t depth, int64_t depth_stride) {
    if (count < across)
        memset(packed, 0, (size_t)(depth * across) * sizeof(real));
    if (across_stride == 1)
        copy_rows(packed, across, count, source, depth, depth_stride);
    else
        copy_columns(packed, across, count, source, across_stride, depth, depth_stride);
}

static void add_tile(const real *restrict tile, int64_t rows, int64_t columns, real alpha,
                     real beta, real *restrict c, int64_t ldc) {
    for (int64_t i = 0; i < rows; i++) {
        const real *restrict from = tile + i * WIDTH;
        real *restrict to = c + i * ldc;
        if (beta == 0)
            for (int64_t j = 0; j < columns; j++)
                to[j] = alpha * from[j];
        else
            for (int64_t j = 0; j < columns; j++)
                to[j] = beta * to[j] + alpha * from[j];
    }
}

bool EDDY_TYPED(eddy_gemm_portable)(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                    int64_t k, real alpha, const real *a, int64_t lda,
                                    const real *b, int64_t ldb, real beta, real *c, int64_t ldc) {
    int64_t a_row = transpose_a ? 1 : lda, a_column = transpose_a ? lda : 1;
    int64_t b_row = transpose_b ? 1 : ldb, b_column = transpose_b ? ldb : 1;
    const EDDY_TYPED(eddy_gemm_block) *block = EDDY_TYPED(eddy_cpu_gemm_block)();
    _Alignas(64) real b_packed[STRIPS][DEPTH * WIDTH];
    _Alignas(64) real a_packed[DEPTH * EDDY_GEMM_ROWS];
    _Alignas(64) real tile[EDDY_GEMM_ROWS * WIDTH];
    int64_t p = 0;
    do { /* runs once even if k == 0, to scale C */
        int64_t depth = eddy_min_i64(DEPTH, k - p);
        real scale = p == 0 ? beta : 1;
        for (int64_t j = 0; j < n; j += STRIPS * WIDTH) {
            int64_t columns = eddy_min_i64(STRIPS * WIDTH, n - j);
            for (int64_t s = 0; s * WIDTH < columns; s++)
                pack(b_packed[s], WIDTH, eddy_min_i64(WIDTH, columns - s * WIDTH),
                     b + p * b_row + (j + s * WIDTH) * b_column, b_column, depth, b_row);
            for (int64_t i = 0; i < m; i += EDDY_GEMM_ROWS) {
                int64_t rows = eddy_min_i64(EDDY_GEMM_ROWS, m - i);
                pack(a_packed, EDDY_GEMM_ROWS, rows, a + i * a_row + p * a_column, a_row, depth,
                     a_column);
                for (int64_t s = 0; s * WIDTH < columns; s++) {
                    int64_t width = eddy_min_i64(WIDTH, columns - s * WIDTH);
                    block->tile(depth, a_packed, b_packed[s], width, tile);
                    add_tile(tile, rows, width, alpha, scale, c + i * ldc + j + s * WIDTH, ldc);
                }
            }
        }
        p += DEPTH;
    } while (p < k);
    return true;
}

#endif
