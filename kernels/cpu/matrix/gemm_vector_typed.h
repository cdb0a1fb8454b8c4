/* Products with a vector, for one element type. The matrix is read once: nothing is packed, and no library is called.
 * Every element adds its products in the same order (blocks of DEPTH), whatever else is in the result. The including file
 * defines DTYPE. */
#ifndef EDDY_KERNELS_CPU_GEMM_VECTOR_TYPED_H
#define EDDY_KERNELS_CPU_GEMM_VECTOR_TYPED_H

#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/cpu/walk.h>

/* Elements of the vector that are used at a time, and elements of the result that are computed with them. */
#define DEPTH 8192
#define PIECE 1024

typedef struct side {
    const real *matrix, *vector;
    int64_t across, deep,
        step; /* strides: the matrix's along the result and along the vector, the vector's */
} side;

/* `count` sums of `depth` products each. */
static void add_products(const side *s, int64_t first, int64_t count, int64_t p, int64_t depth,
                         real *sums) {
    real gathered[DEPTH];
    const real *vector = s->vector + p * s->step,
               *matrix = s->matrix + first * s->across + p * s->deep;
    if (s->step != 1) {
        for (int64_t i = 0; i < depth; i++)
            gathered[i] = vector[i * s->step];
        vector = gathered;
    }
    if (s->deep == 1)
        EDDY_TYPED(eddy_cpu_gemm_block)()->dots(count, depth, matrix, s->across, vector, sums);
    else
        EDDY_TYPED(eddy_cpu_gemm_block)()->sums(count, depth, matrix, s->deep, vector, sums);
}

bool EDDY_TYPED(eddy_gemm_vector)(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                  int64_t k, real alpha, const real *a, int64_t lda, const real *b,
                                  int64_t ldb, real beta, real *c, int64_t ldc) {
    if (m != 1 && n != 1)
        return EDDY_TYPED(eddy_gemm_provider)(eddy_gemm_choose(eddy_isa_chosen(), DTYPE, m, n, k))(
            transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    int64_t a_row = transpose_a ? 1 : lda, a_column = transpose_a ? lda : 1;
    int64_t b_row = transpose_b ? 1 : ldb, b_column = transpose_b ? ldb : 1;
    const side s =
        m == 1 ? (side){b, a, b_column, b_row, a_column} : (side){a, b, a_row, a_column, b_row};
    int64_t results = m == 1 ? n : m, step = m == 1 ? 1 : ldc;
    real sums[PIECE];
    int64_t p = 0;
    do { /* runs once even if k == 0, to scale C */
        int64_t depth = eddy_min_i64(DEPTH, k - p);
        real scale = p == 0 ? beta : 1;
        for (int64_t first = 0; first < results; first += PIECE) {
            int64_t count = eddy_min_i64(PIECE, results - first);
            add_products(&s, first, count, p, depth, sums);
            real *to = c + first * step;
            for (int64_t i = 0; i < count; i++)
                to[i * step] =
                    scale == 0 ? alpha * sums[i] : scale * to[i * step] + alpha * sums[i];
        }
        p += depth;
    } while (p < k);
    return true;
}

#endif
