#include <kernels/cpu/lanes.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/math.h>
#include <math.h>

#define LANES EDDY_SOFTMAX_LANES
#define INLINE inline __attribute__((always_inline))

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

/* The sum of exp(x - shift). The powers go to y, and what does not fill the lanes to `ends`, unless they are NULL. */
#define POWERS(name, real)                                                                                             \
    static INLINE real powers_##name(real *restrict y, real *restrict ends, const real *restrict x,                    \
                                     int64_t count, const real *restrict tail, real shift) {                           \
        int64_t whole = count / LANES * LANES;                                                                         \
        real sums[LANES] = {0};                                                                                        \
        for (int64_t i = 0; i < whole; i += LANES)                                                                     \
            EDDY_LANES_INDEPENDENT EDDY_LANES (l, LANES) {                                                             \
                real power = eddy_exp_down_##name(x[i + l] - shift);                                                   \
                if (y != NULL)                                                                                         \
                    y[i + l] = power;                                                                                  \
                sums[l] += power;                                                                                      \
            }                                                                                                          \
        if (whole < count)                                                                                             \
            EDDY_LANES (l, LANES) {                                                                                    \
                real power = eddy_exp_down_##name(tail[l] - shift);                                                    \
                if (ends != NULL)                                                                                      \
                    ends[l] = power;                                                                                   \
                sums[l] += power;                                                                                      \
            }                                                                                                          \
        EDDY_LANES_HALVE(sums, ADD);                                                                                   \
        return sums[0];                                                                                                \
    }

/* Step by step for all rows: a row's largest number, its sum and what follows wait for each other, rows do not. */
#define ROWS(name, real)                                                                                               \
    static void softmax_rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count) {           \
        int64_t whole = count / LANES * LANES;                                                                         \
        real tails[EDDY_SOFTMAX_ROWS][LANES], shifts[EDDY_SOFTMAX_ROWS], factors[EDDY_SOFTMAX_ROWS];                   \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            shifts[r] = largest_##name(from[r], count, tails[r]);                                                      \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            real ends[LANES];                                                                                          \
            factors[r] = (real)(1.0 / (double)powers_##name(to[r], ends, from[r], count, tails[r], shifts[r]));        \
            real *restrict y = to[r];                                                                                  \
            for (int64_t i = whole; i < count; i++)                                                                    \
                y[i] = ends[i - whole];                                                                                \
        }                                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            real *restrict y = to[r];                                                                                  \
            for (int64_t i = 0; i < count; i++)                                                                        \
                y[i] *= factors[r];                                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
    static void log_rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count) {               \
        real tails[EDDY_SOFTMAX_ROWS][LANES], shifts[EDDY_SOFTMAX_ROWS];                                               \
        double sums[EDDY_SOFTMAX_ROWS] = {0};                                                                          \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            shifts[r] = largest_##name(from[r], count, tails[r]);                                                      \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            sums[r] = (double)powers_##name(NULL, NULL, from[r], count, tails[r], shifts[r]);                          \
        EDDY_LANES (r, EDDY_SOFTMAX_ROWS)                                                                              \
            sums[r] = eddy_log_f64(sums[r]);                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            real *restrict y = to[r], shift = shifts[r], log_sum = (real)sums[r];                                      \
            const real *restrict x = from[r];                                                                          \
            for (int64_t i = 0; i < count; i++)                                                                        \
                y[i] = (x[i] - shift) - log_sum;                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count, bool is_log) {      \
        (is_log ? log_rows_##name : softmax_rows_##name)(to, from, rows, count);                                       \
    }

#define TOTAL(name, real)                                                                                              \
    static double total_##name(const void *from, int64_t count, double *max) {                                         \
        real tail[LANES];                                                                                              \
        const real shift = largest_##name(from, count, tail);                                                          \
        *max = (double)shift;                                                                                          \
        return (double)powers_##name(NULL, NULL, from, count, tail, shift);                                            \
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
                real y = eddy_exp_down_##name(x[i + l] - by);                                                          \
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
    static void shift_##name(void *data, double shift, double sum, int64_t count) {                                    \
        real *restrict x = data, by = (real)shift, then = (real)eddy_log_f64(sum);                                     \
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
POWERS(f32, float)
POWERS(f64, double)
ROWS(f32, float)
ROWS(f64, double)
TOTAL(f32, float)
TOTAL(f64, double)
SOFTMAX(f32, float)
SOFTMAX(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        rows_##name, total_##name, max_##name, exp_sum_##name, scale_##name, shift_##name, sum_##name, dot_##name,     \
            backward_##name, log_backward_##name                                                                       \
    }
const eddy_softmax_blocks EDDY_ISA_NAME(eddy_cpu_softmax_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
