#include <kernels/cpu/lanes.h>
#include <kernels/cpu/softmax_block.h>
#include <kernels/math.h>
#include <math.h>

#define LANES EDDY_SOFTMAX_LANES

#define ADD(a, b) ((a) + (b))
/* Not for NaN: where there is one, the sum is NaN whatever was subtracted. */
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The largest number of a row. What does not fill the lanes is left in `tail`, with padding that adds nothing to the sum. */
#define LARGEST(name, real)                                                                                            \
    static inline real largest_##name(const real *restrict x, int64_t count, real *restrict tail) {                    \
        int64_t whole = count / LANES * LANES;                                                                         \
        real lanes[LANES];                                                                                             \
        EDDY_LANES (l, LANES)                                                                                          \
            tail[l] = whole + l < count ? x[whole + l] : -(real)INFINITY;                                              \
        EDDY_LANES (l, LANES)                                                                                          \
            lanes[l] = tail[l];                                                                                        \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] = MAX(lanes[l], x[i + l]);                                                                    \
        EDDY_LANES_HALVE(lanes, MAX);                                                                                  \
        return lanes[0];                                                                                               \
    }

#define ROW(name, real)                                                                                                \
    static void row_##name(void *to, const void *from, int64_t count, bool is_log) {                                   \
        real *restrict y = to;                                                                                         \
        const real *restrict x = from;                                                                                 \
        int64_t whole = count / LANES * LANES;                                                                         \
        real tail[LANES], lanes[LANES], sums[LANES] = {0};                                                             \
        const real shift = largest_##name(x, count, tail);                                                             \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            EDDY_LANES (l, LANES) {                                                                                    \
                real power = eddy_exp_##name(x[i + l] - shift);                                                        \
                y[i + l] = power;                                                                                      \
                sums[l] += power;                                                                                      \
            }                                                                                                          \
        EDDY_LANES (l, LANES) {                                                                                        \
            lanes[l] = eddy_exp_##name(tail[l] - shift);                                                               \
            sums[l] += whole < count ? lanes[l] : 0;                                                                   \
        }                                                                                                              \
        EDDY_LANES_HALVE(sums, ADD);                                                                                   \
        const real log_sum = is_log ? (real)log((double)sums[0]) : 0, factor = (real)(1.0 / (double)sums[0]);          \
        if (is_log) {                                                                                                  \
            for (int64_t i = 0; i < count; i++)                                                                        \
                y[i] = (x[i] - shift) - log_sum;                                                                       \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < whole; i++)                                                                            \
            y[i] *= factor;                                                                                            \
        for (int64_t i = whole; i < count; i++)                                                                        \
            y[i] = lanes[i - whole] * factor;                                                                          \
    }

#define TOTAL(name, real)                                                                                              \
    static double total_##name(const void *from, int64_t count, double *max) {                                         \
        const real *restrict x = from;                                                                                 \
        int64_t whole = count / LANES * LANES;                                                                         \
        real tail[LANES], sums[LANES] = {0};                                                                           \
        const real shift = largest_##name(x, count, tail);                                                             \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            EDDY_LANES (l, LANES)                                                                                      \
                sums[l] += eddy_exp_##name(x[i + l] - shift);                                                          \
        EDDY_LANES (l, LANES)                                                                                          \
            sums[l] += whole < count ? eddy_exp_##name(tail[l] - shift) : 0;                                           \
        EDDY_LANES_HALVE(sums, ADD);                                                                                   \
        *max = (double)shift;                                                                                          \
        return (double)sums[0];                                                                                        \
    }

#define SOFTMAX(name, real)                                                                                            \
    static double max_##name(const void *data, int64_t count) {                                                        \
        const real *restrict x = data;                                                                                 \
        real lanes[LANES];                                                                                             \
        EDDY_LANES (l, LANES)                                                                                          \
            lanes[l] = x[l];                                                                                           \
        for (int64_t i = LANES; i < count; i += LANES)                                                                 \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] = MAX(lanes[l], x[i + l]);                                                                    \
        EDDY_LANES_HALVE(lanes, MAX);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static double exp_sum_##name(void *data, double shift, int64_t count) {                                            \
        real *restrict x = data, by = (real)shift;                                                                     \
        real lanes[LANES] = {0};                                                                                       \
        for (int64_t i = 0; i < count; i += LANES)                                                                     \
            EDDY_LANES (l, LANES) {                                                                                    \
                real y = eddy_exp_##name(x[i + l] - by);                                                               \
                x[i + l] = y;                                                                                          \
                lanes[l] += y;                                                                                         \
            }                                                                                                          \
        EDDY_LANES_HALVE(lanes, ADD);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static void scale_##name(void *data, double factor, int64_t count) {                                               \
        real *restrict x = data, by = (real)factor;                                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] *= by;                                                                                                \
    }                                                                                                                  \
    static void shift_##name(void *data, double shift, double log_sum, int64_t count) {                                \
        real *restrict x = data, by = (real)shift, then = (real)log_sum;                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            x[i] = (x[i] - by) - then;                                                                                 \
    }                                                                                                                  \
    static double sum_##name(const void *data, int64_t count) {                                                        \
        const real *restrict x = data;                                                                                 \
        real lanes[LANES] = {0};                                                                                       \
        for (int64_t i = 0; i < count; i += LANES)                                                                     \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] += x[i + l];                                                                                  \
        EDDY_LANES_HALVE(lanes, ADD);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static double dot_##name(const void *left, const void *right, int64_t count) {                                     \
        const real *restrict a = left, *restrict b = right;                                                            \
        real lanes[LANES] = {0};                                                                                       \
        for (int64_t i = 0; i < count; i += LANES)                                                                     \
            EDDY_LANES (l, LANES)                                                                                      \
                lanes[l] += a[i + l] * b[i + l];                                                                       \
        EDDY_LANES_HALVE(lanes, ADD);                                                                                  \
        return (double)lanes[0];                                                                                       \
    }                                                                                                                  \
    static void backward_##name(void *grad, const void *output, double dot, int64_t count) {                           \
        real *restrict g = grad, by = (real)dot;                                                                       \
        const real *restrict y = output;                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            g[i] = y[i] * (g[i] - by);                                                                                 \
    }                                                                                                                  \
    static void log_backward_##name(void *grad, const void *output, double sum, int64_t count) {                       \
        real *restrict g = grad, by = (real)sum;                                                                       \
        const real *restrict y = output;                                                                               \
        for (int64_t i = 0; i < count; i++)                                                                            \
            g[i] = g[i] - eddy_exp_##name(y[i]) * by;                                                                  \
    }

LARGEST(f32, float)
LARGEST(f64, double)
ROW(f32, float)
ROW(f64, double)
TOTAL(f32, float)
TOTAL(f64, double)
SOFTMAX(f32, float)
SOFTMAX(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        row_##name, total_##name, max_##name, exp_sum_##name, scale_##name, shift_##name, sum_##name, dot_##name,      \
            backward_##name, log_backward_##name                                                                       \
    }
const eddy_softmax_blocks EDDY_ISA_NAME(eddy_cpu_softmax_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
