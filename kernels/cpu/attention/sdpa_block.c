#include <kernels/cpu/lanes.h>
#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/math.h>

#define LANES 16

#define ADD(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define SDPA(name, real)                                                                                               \
    static void fill_##name(void *data, double value, int64_t count) {                                                 \
        real *restrict x = data, with = (real)value;                                                                   \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = with;                                                                                               \
    }                                                                                                                  \
    static void scale_##name(void *data, double factor, int64_t count) {                                               \
        real *restrict x = data, by = (real)factor;                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] *= by;                                                                                                \
    }                                                                                                                  \
    static void add_##name(void *data, const void *other, int64_t count) {                                             \
        real *restrict x = data;                                                                                       \
        const real *restrict y = other;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] += y[i];                                                                                              \
    }                                                                                                                  \
    static void hide_##name(void *data, const unsigned char *bytes, int64_t count) {                                   \
        real *restrict x = data;                                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = bytes[i] ? x[i] : (real)-__builtin_inf();                                                           \
    }                                                                                                                  \
    static double max_with_nan_##name(const void *data, int64_t count) {                                               \
        const real *restrict x = data;                                                                                 \
        real largest = (real)-__builtin_inf();                                                                         \
        for (int64_t i = 0; i < count; i++)                                                                            \
            largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;                                                 \
        return (double)largest;                                                                                        \
    }                                                                                                                  \
    static double max_##name(const void *data, int64_t count) {                                                        \
        const real *restrict x = data;                                                                                 \
        real lanes[LANES];                                                                                             \
        int64_t i = 0;                                                                                                 \
        EDDY_LANES (l, LANES)                                                                                          \
            lanes[l] = (real)-__builtin_inf();                                                                         \
        for (; i + LANES <= count; i += LANES)                                                                         \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] = MAX(x[i + l], lanes[l]);                                                                    \
        EDDY_LANES (l, LANES)                                                                                          \
            lanes[l] = i + l < count ? MAX(x[i + l], lanes[l]) : lanes[l];                                             \
        EDDY_LANES_HALVE(lanes, MAX);                                                                                  \
        return lanes[0] == (real)-__builtin_inf() ? max_with_nan_##name(data, count) : (double)lanes[0];               \
    }                                                                                                                  \
    static double exp_sum_##name(void *data, double shift, int64_t count) {                                            \
        real *restrict x = data, by = (real)shift;                                                                     \
        real lanes[LANES] = {0};                                                                                       \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            EDDY_LANES (l, LANES) {                                                                                    \
                real y = eddy_exp_##name(x[i + l] - by);                                                               \
                x[i + l] = y;                                                                                          \
                lanes[l] += y;                                                                                         \
            }                                                                                                          \
        for (int l = 0; i + l < count; l++) {                                                                          \
            real y = eddy_exp_##name(x[i + l] - by);                                                                   \
            x[i + l] = y;                                                                                              \
            lanes[l] += y;                                                                                             \
        }                                                                                                              \
        EDDY_LANES_HALVE(lanes, ADD);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static double dot_##name(const void *left, const void *right, int64_t count) {                                     \
        const real *restrict a = left, *restrict b = right;                                                            \
        real lanes[LANES] = {0};                                                                                       \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= count; i += LANES)                                                                         \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] += a[i + l] * b[i + l];                                                                       \
        EDDY_LANES (l, LANES)                                                                                          \
            lanes[l] += i + l < count ? a[i + l] * b[i + l] : 0;                                                       \
        EDDY_LANES_HALVE(lanes, ADD);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static void slope_##name(void *slopes, void *weights, double factor, double product, int64_t count) {              \
        real *restrict g = slopes, *restrict p = weights, by = (real)factor, less = (real)product;                     \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            p[i] *= by;                                                                                                \
            g[i] = p[i] * (g[i] - less);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void drop_##name(void *data, const float *restrict numbers, float least, double factor, int64_t count) {    \
        real *restrict x = data, by = (real)factor;                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = numbers[i] >= least ? x[i] * by : 0;                                                                \
    }

SDPA(f32, float)
SDPA(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        fill_##name, scale_##name, add_##name, hide_##name, max_##name, exp_sum_##name, dot_##name, slope_##name,      \
            drop_##name                                                                                                \
    }
const eddy_sdpa_blocks EDDY_ISA_NAME(eddy_cpu_sdpa_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
