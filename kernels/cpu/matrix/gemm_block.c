#include <kernels/cpu/lanes.h>
#include <kernels/cpu/matrix/gemm_block.h>
#include <string.h>

#define ROWS EDDY_GEMM_ROWS

/* So many vectors wide: with two, ROWS * 2 sums stay in registers. Multiplications and additions are rounded apart, as in the
 * portable form. */
#define STRIP(name, real, WIDTH, many)                                                             \
    static inline void strip_of_##many##_##name(int64_t k, const real *a, const real *b,           \
                                                real *tile) {                                      \
        enum { WIDE = EDDY_VECTOR_BYTES / (int)sizeof(real) };                                     \
        name##_vector sums[ROWS][many];                                                            \
        EDDY_VECTORS (i, ROWS) {                                                                   \
            for (int v = 0; v < many; v++)                                                         \
                sums[i][v] = (name##_vector){0};                                                   \
        }                                                                                          \
        for (int64_t p = 0; p < k; p++)                                                            \
            EDDY_VECTORS (i, ROWS) {                                                               \
                for (int v = 0; v < many; v++)                                                     \
                    sums[i][v] +=                                                                  \
                        a[p * ROWS + i] * *(const name##_vector *)(b + p * WIDTH + v * WIDE);      \
            }                                                                                      \
        EDDY_VECTORS (i, ROWS) {                                                                   \
            for (int v = 0; v < many; v++)                                                         \
                *(name##_vector *)(tile + i * WIDTH + v * WIDE) = sums[i][v];                      \
        }                                                                                          \
    }

#define TILE(name, real, WIDTH)                                                                    \
    typedef real name##_vector                                                                     \
        __attribute__((vector_size(EDDY_VECTOR_BYTES), aligned(sizeof(real)), may_alias));         \
    STRIP(name, real, WIDTH, 1)                                                                    \
    STRIP(name, real, WIDTH, 2)                                                                    \
    static void tile_##name(int64_t k, const real *a, const real *b, int64_t columns,              \
                            real *tile) {                                                          \
        enum { WIDE = EDDY_VECTOR_BYTES / (int)sizeof(real) };                                     \
        int64_t at = 0;                                                                            \
        for (; at + WIDE < columns; at += 2 * WIDE)                                                \
            strip_of_2_##name(k, a, b + at, tile + at);                                            \
        if (at < columns)                                                                          \
            strip_of_1_##name(k, a, b + at, tile + at);                                            \
    }

TILE(f32, float, EDDY_GEMM_WIDTH_F32)
TILE(f64, double, EDDY_GEMM_WIDTH_F64)

#define LANES EDDY_GEMM_LANES
/* Rows of so many elements are read one after another: the processor fetches one stream ahead better than four. */
#define ROW_LONG 512
#define ADD(a, b) ((a) + (b))

/* `many` rows' sums side by side: so much of the vector serves all of them. */
#define DOTS(name, real, many)                                                                     \
    static inline void dots_of_##many##_##name(int64_t k, const real *rows, int64_t stride,        \
                                               const real *vector, real *sums) {                   \
        enum { WIDE = EDDY_VECTOR_BYTES / (int)sizeof(real), PARTS = LANES / WIDE };               \
        name##_vector lanes[many][PARTS];                                                          \
        memset(lanes, 0, sizeof(lanes));                                                           \
        int64_t p = 0;                                                                             \
        for (; p + LANES <= k; p += LANES)                                                         \
            for (int part = 0; part < PARTS; part++)                                               \
                for (int r = 0; r < many; r++)                                                     \
                    lanes[r][part] +=                                                              \
                        *(const name##_vector *)(rows + r * stride + p + part * WIDE) *            \
                        *(const name##_vector *)(vector + p + part * WIDE);                        \
        for (int r = 0; r < many; r++) {                                                           \
            real all[LANES], rest = 0;                                                             \
            memcpy(all, lanes[r], sizeof(all));                                                    \
            for (int64_t q = p; q < k; q++)                                                        \
                rest += rows[r * stride + q] * vector[q];                                          \
            EDDY_LANES_HALVE(all, ADD);                                                            \
            sums[r] = all[0] + rest;                                                               \
        }                                                                                          \
    }

/* Eight rows are added at a time, so that sums are read and written an eighth as often. */
#define VECTOR(name, real)                                                                         \
    DOTS(name, real, 4)                                                                            \
    DOTS(name, real, 1)                                                                            \
    static void dots_##name(int64_t count, int64_t k, const real *rows, int64_t stride,            \
                            const real *vector, real *sums) {                                      \
        int64_t i = 0;                                                                             \
        for (; i + 4 <= count && k < ROW_LONG; i += 4)                                             \
            dots_of_4_##name(k, rows + i * stride, stride, vector, sums + i);                      \
        for (; i < count; i++)                                                                     \
            dots_of_1_##name(k, rows + i * stride, stride, vector, sums + i);                      \
    }                                                                                              \
    static void sums_##name(int64_t count, int64_t k, const real *rows, int64_t stride,            \
                            const real *vector, real *restrict sums) {                             \
        memset(sums, 0, (size_t)count * sizeof(real));                                             \
        int64_t p = 0;                                                                             \
        for (; p + 8 <= k; p += 8)                                                                 \
            for (int64_t i = 0; i < count; i++) {                                                  \
                real sum = sums[i];                                                                \
                for (int r = 0; r < 8; r++)                                                        \
                    sum += vector[p + r] * rows[(p + r) * stride + i];                             \
                sums[i] = sum;                                                                     \
            }                                                                                      \
        for (; p < k; p++)                                                                         \
            for (int64_t i = 0; i < count; i++)                                                    \
                sums[i] += vector[p] * rows[p * stride + i];                                       \
    }

VECTOR(f32, float)
VECTOR(f64, double)

const eddy_gemm_blocks EDDY_ISA_NAME(eddy_cpu_gemm_blocks) = {tile_f32, tile_f64, dots_f32,
                                                              dots_f64, sums_f32, sums_f64};
