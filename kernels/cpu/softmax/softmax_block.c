#include <kernels/cpu/lanes.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/math.h>
#include <math.h>

#define LANES EDDY_SOFTMAX_LANES
#define INLINE inline __attribute__((always_inline))
/* One copy of what is long. */
#define APART __attribute__((noinline))

#define ADD(a, b) ((a) + (b))
/* Not for NaN: where there is one, the sum is NaN whatever was subtracted. */
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Of a row's elements those before its tail, which has 1 .. LANES of them: short rows are nothing else. */
static INLINE int64_t whole_of(int64_t count) {
    return (count - 1) & ~(int64_t)(LANES - 1);
}

/* Each step is made for all rows before the next: a row's largest number, its sum and what follows wait for each other, rows do
 * not. Tails are filled up with padding that adds nothing to a sum. */
#define LARGEST(name, real)                                                                                            \
    static INLINE void largest_##name(const void *const *from, int64_t rows, int64_t count, real(*tails)[LANES],       \
                                      eddy_softmax_total *totals) {                                                    \
        int64_t whole = whole_of(count);                                                                               \
        int rest = (int)(count - whole);                                                                               \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            const real *x = from[r];                                                                                   \
            real lanes[LANES], *tail = tails[r];                                                                       \
            EDDY_LANES_INDEPENDENT EDDY_LANES (l, LANES) tail[l] = lanes[l] =                                          \
                l < rest ? x[whole + l] : -(real)INFINITY;                                                             \
            for (int64_t i = 0; i < whole; i += LANES)                                                                 \
                EDDY_LANES (l, LANES)                                                                                  \
                    lanes[l] = MAX(lanes[l], x[i + l]);                                                                \
            EDDY_LANES_HALVE(lanes, MAX);                                                                              \
            totals[r].max = (double)lanes[0];                                                                          \
        }                                                                                                              \
    }

/* The sums of exp(x - max). With `is_kept` the powers go to y, and those of tails take their places. */
#define POWERS(name, real)                                                                                             \
    static INLINE void powers_##name(bool is_kept, void *const *to, const void *const *from, int64_t rows,             \
                                     int64_t count, real(*tails)[LANES], eddy_softmax_total *totals) {                 \
        static const real nothing[LANES] = {0};                                                                        \
        int64_t whole = whole_of(count);                                                                               \
        real sums[EDDY_SOFTMAX_ROWS][LANES];                                                                           \
        for (int64_t r = 0; r < rows && whole > 0; r++) {                                                              \
            const real *restrict x = from[r], shift = (real)totals[r].max;                                             \
            real *restrict y = is_kept ? to[r] : NULL;                                                                 \
            real lanes[LANES] = {0};                                                                                   \
            for (int64_t i = 0; i < whole; i += LANES)                                                                 \
                EDDY_LANES_INDEPENDENT EDDY_LANES (l, LANES) {                                                         \
                    real power = eddy_exp_down_##name(x[i + l] - shift);                                               \
                    if (is_kept)                                                                                       \
                        y[i + l] = power;                                                                              \
                    lanes[l] += power;                                                                                 \
                }                                                                                                      \
            EDDY_LANES (l, LANES)                                                                                      \
                sums[r][l] = lanes[l];                                                                                 \
        }                                                                                                              \
        const real *sum = whole > 0 ? sums[0] : nothing;                                                               \
        int64_t step = whole > 0 ? LANES : 0;                                                                          \
        for (int64_t r = 0; r < rows; r++, sum += step) {                                                              \
            const real shift = (real)totals[r].max;                                                                    \
            real lanes[LANES], *tail = tails[r];                                                                       \
            EDDY_LANES_INDEPENDENT EDDY_LANES (l, LANES) {                                                             \
                real power = eddy_exp_down_##name(tail[l] - shift);                                                    \
                if (is_kept)                                                                                           \
                    tail[l] = power;                                                                                   \
                lanes[l] = sum[l] + power;                                                                             \
            }                                                                                                          \
            EDDY_LANES_HALVE(lanes, ADD);                                                                              \
            totals[r].sum = (double)lanes[0];                                                                          \
        }                                                                                                              \
    }

#define ROWS(name, real)                                                                                               \
    static APART void totals_##name(const void *const *from, int64_t rows, int64_t count,                              \
                                    eddy_softmax_total *totals) {                                                      \
        real tails[EDDY_SOFTMAX_ROWS][LANES];                                                                          \
        largest_##name(from, rows, count, tails, totals);                                                              \
        powers_##name(false, NULL, from, rows, count, tails, totals);                                                  \
    }                                                                                                                  \
    static void softmax_rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count) {           \
        int64_t whole = whole_of(count);                                                                               \
        real tails[EDDY_SOFTMAX_ROWS][LANES];                                                                          \
        eddy_softmax_total totals[EDDY_SOFTMAX_ROWS];                                                                  \
        largest_##name(from, rows, count, tails, totals);                                                              \
        powers_##name(true, to, from, rows, count, tails, totals);                                                     \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            real *restrict y = to[r], factor = (real)(1.0 / totals[r].sum), *tail = tails[r];                          \
            for (int64_t i = 0; i < whole; i++)                                                                        \
                y[i] *= factor;                                                                                        \
            for (int64_t i = whole; i < count; i++)                                                                    \
                y[i] = tail[i - whole] * factor;                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void log_rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count) {               \
        eddy_softmax_total totals[EDDY_SOFTMAX_ROWS];                                                                  \
        double logs[EDDY_SOFTMAX_ROWS] = {0};                                                                          \
        totals_##name(from, rows, count, totals);                                                                      \
        for (int64_t r = 0; r < rows; r++)                                                                             \
            logs[r] = totals[r].sum;                                                                                   \
        EDDY_LANES (r, EDDY_SOFTMAX_ROWS)                                                                              \
            logs[r] = eddy_log_f64(logs[r]);                                                                           \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            real *restrict y = to[r], shift = (real)totals[r].max, log_sum = (real)logs[r];                            \
            const real *restrict x = from[r];                                                                          \
            for (int64_t i = 0; i < count; i++)                                                                        \
                y[i] = (x[i] - shift) - log_sum;                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void rows_##name(void *const *to, const void *const *from, int64_t rows, int64_t count, bool is_log) {      \
        (is_log ? log_rows_##name : softmax_rows_##name)(to, from, rows, count);                                       \
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
SOFTMAX(f32, float)
SOFTMAX(f64, double)

#define OPS(name)                                                                                                      \
    {                                                                                                                  \
        rows_##name, totals_##name, max_##name, exp_sum_##name, scale_##name, shift_##name, sum_##name, dot_##name,    \
            backward_##name, log_backward_##name                                                                       \
    }
const eddy_softmax_blocks EDDY_ISA_NAME(eddy_cpu_softmax_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
