#include <kernels/cpu/gemm_block.h>
#include <string.h>

#define ROWS EDDY_GEMM_ROWS

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

/* Two vectors wide at a time: ROWS * 2 sums stay in registers. Multiplications and additions are rounded apart, as in the
 * portable form. */
#define TILE(name, real, WIDTH)                                                                                        \
    typedef real name##_vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real)), may_alias));           \
    static void tile_##name(int64_t k, const real *a, const real *b, real *tile) {                                     \
        enum { LANES = VECTOR_BYTES / (int)sizeof(real), STRIP = 2 * LANES };                                          \
        for (int strip = 0; strip < WIDTH; strip += STRIP) {                                                           \
            name##_vector sums[ROWS][2];                                                                               \
            memset(sums, 0, sizeof(sums));                                                                             \
            for (int64_t p = 0; p < k; p++) {                                                                          \
                const real *row = b + p * WIDTH + strip;                                                               \
                name##_vector left = *(const name##_vector *)row, right = *(const name##_vector *)(row + LANES);       \
                for (int i = 0; i < ROWS; i++) {                                                                       \
                    real factor = a[p * ROWS + i];                                                                     \
                    sums[i][0] += factor * left;                                                                       \
                    sums[i][1] += factor * right;                                                                      \
                }                                                                                                      \
            }                                                                                                          \
            for (int i = 0; i < ROWS; i++)                                                                             \
                memcpy(tile + i * WIDTH + strip, sums[i], sizeof(sums[i]));                                            \
        }                                                                                                              \
    }

TILE(f32, float, EDDY_GEMM_WIDTH_F32)
TILE(f64, double, EDDY_GEMM_WIDTH_F64)

const eddy_gemm_blocks EDDY_ISA_NAME(eddy_cpu_gemm_blocks) = {tile_f32, tile_f64};
