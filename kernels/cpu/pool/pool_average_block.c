#include <kernels/cpu/lanes.h>
#include <kernels/cpu/pool/pool_average_block.h>
#include <stddef.h>

/* Columns or channels under way: what they have stays in registers. */
#define LANES 16

#define INLINE static inline __attribute__((always_inline))

/* take(i, lanes) for all of 0 .. count; `lanes` is known when this is compiled, but for the last few. */
#define EACH_LANES(take, count)                                                                    \
    do {                                                                                           \
        int64_t i_ = 0;                                                                            \
        for (; i_ + LANES <= (count); i_ += LANES)                                                 \
            take(i_, LANES);                                                                       \
        for (; i_ + LANES / 4 <= (count); i_ += LANES / 4)                                         \
            take(i_, LANES / 4);                                                                   \
        for (; i_ < (count); i_++)                                                                 \
            take(i_, 1);                                                                           \
    } while (0)

/* Columns of all rows; the new rows are alike. */
#define WINDOWS(name, real)                                                                        \
    INLINE void name##_terms(real *restrict sum, const real *wide, const real *part,               \
                             int64_t whole, int64_t stride, int64_t lanes) {                       \
        if (part)                                                                                  \
            EDDY_LANES_LONG (l, lanes)                                                             \
                sum[l] += part[l - whole * stride];                                                \
        for (int64_t j = whole - 1; j >= 0; j--)                                                   \
            EDDY_LANES_LONG (l, lanes)                                                             \
                sum[l] += wide[l - j * stride];                                                    \
    }                                                                                              \
    INLINE void name##_lanes(real *to, const eddy_pool_shadow *shadow, const real *wide,           \
                             const real *part, int64_t whole, int64_t stride, int64_t lanes) {     \
        real sum[LANES];                                                                           \
        for (int64_t r = 0; r < shadow->old_rows; r++, to += shadow->row_step) {                   \
            EDDY_LANES_LONG (l, lanes)                                                             \
                sum[l] = to[l];                                                                    \
            name##_terms(sum, wide, part, whole, stride, lanes);                                   \
            EDDY_LANES_LONG (l, lanes)                                                             \
                to[l] = sum[l];                                                                    \
        }                                                                                          \
        if (shadow->new_rows <= 0)                                                                 \
            return;                                                                                \
        EDDY_LANES_LONG (l, lanes)                                                                 \
            sum[l] = 0;                                                                            \
        name##_terms(sum, wide, part, whole, stride, lanes);                                       \
        for (int64_t r = 0; r < shadow->new_rows; r++, to += shadow->row_step)                     \
            EDDY_LANES_LONG (l, lanes)                                                             \
                to[l] = sum[l];                                                                    \
    }                                                                                              \
    INLINE void name##_whole(const eddy_pool_shadow *shadow, const real *wide, const real *part,   \
                             int64_t whole, int64_t stride, int64_t count) {                       \
        real *to = shadow->to;                                                                     \
        EACH_LANES(name##_TAKE, count);                                                            \
    }                                                                                              \
    static void name(const eddy_pool_shadow *shadow, const void *wide, const void *part,           \
                     int64_t whole, int64_t stride, int64_t count) {                               \
        if (!part && whole == 1)                                                                   \
            name##_whole(shadow, wide, NULL, 1, stride, count);                                    \
        else if (!part && stride == 1)                                                             \
            name##_whole(shadow, wide, NULL, whole, 1, count);                                     \
        else                                                                                       \
            name##_whole(shadow, wide, part, whole, stride, count);                                \
    }
#define windows_f32_TAKE(i, lanes)                                                                 \
    windows_f32_lanes(to + (i), shadow, wide + (i), part ? part + (i) : NULL, whole, stride, lanes)
#define windows_f64_TAKE(i, lanes)                                                                 \
    windows_f64_lanes(to + (i), shadow, wide + (i), part ? part + (i) : NULL, whole, stride, lanes)

#define CHANNELS(name, real)                                                                       \
    INLINE void name##_lanes(real *to, const eddy_pool_shadow *shadow, int64_t column_step,        \
                             int64_t columns, int64_t new_columns, const real *from, real divisor, \
                             int64_t lanes) {                                                      \
        real term[LANES], sum[LANES];                                                              \
        EDDY_LANES_LONG (l, lanes)                                                                 \
            term[l] = from[l] / divisor;                                                           \
        for (int64_t r = 0; r < shadow->old_rows + shadow->new_rows;                               \
             r++, to += shadow->row_step) {                                                        \
            int64_t old = r < shadow->old_rows ? columns : columns - new_columns;                  \
            real *place = to;                                                                      \
            for (int64_t c = 0; c < old; c++, place += column_step) {                              \
                EDDY_LANES_LONG (l, lanes)                                                         \
                    sum[l] = place[l] + term[l];                                                   \
                EDDY_LANES_LONG (l, lanes)                                                         \
                    place[l] = sum[l];                                                             \
            }                                                                                      \
            for (int64_t c = old; c < columns; c++, place += column_step)                          \
                EDDY_LANES_LONG (l, lanes)                                                         \
                    place[l] = 0 + term[l];                                                        \
        }                                                                                          \
    }                                                                                              \
    static void name(const eddy_pool_shadow *shadow, int64_t column_step, int64_t columns,         \
                     int64_t new_columns, const void *from, double divisor, int64_t count) {       \
        real *to = shadow->to, by = (real)divisor;                                                 \
        const real *terms = from;                                                                  \
        EACH_LANES(name##_TAKE, count);                                                            \
    }
#define channels_f32_TAKE(i, lanes)                                                                \
    channels_f32_lanes(to + (i), shadow, column_step, columns, new_columns, terms + (i), by, lanes)
#define channels_f64_TAKE(i, lanes)                                                                \
    channels_f64_lanes(to + (i), shadow, column_step, columns, new_columns, terms + (i), by, lanes)

#define AVERAGES(name, real)                                                                       \
    static void divide_##name(void *terms, const void *from, const void *divisors,                 \
                              int64_t count) {                                                     \
        real *t = terms;                                                                           \
        const real *x = from, *by = divisors;                                                      \
        EDDY_EACH_APART (i, count)                                                                 \
            t[i] = x[i] / by[i];                                                                   \
    }                                                                                              \
    static void widen_##name(void *wide, void *part, const void *terms, int64_t count,             \
                             int64_t stride, int64_t whole, int64_t rest) {                        \
        real *restrict w = wide, *restrict p = part;                                               \
        const real *restrict t = terms;                                                            \
        if (stride == 2) {                                                                         \
            for (int64_t q = 0; whole > 0 && q < count; q++)                                       \
                w[2 * q] = w[2 * q + 1] = t[q];                                                    \
            for (int64_t q = 0; rest > 0 && q < count; q++) {                                      \
                p[2 * q] = t[q];                                                                   \
                p[2 * q + 1] = 0;                                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t q = 0; whole > 0 && q < count; q++)                                           \
            for (int64_t f = 0; f < stride; f++)                                                   \
                w[q * stride + f] = t[q];                                                          \
        for (int64_t q = 0; rest > 0 && q < count; q++)                                            \
            for (int64_t f = 0; f < stride; f++)                                                   \
                p[q * stride + f] = f < rest ? t[q] : 0;                                           \
    }                                                                                              \
    WINDOWS(windows_##name, real)                                                                  \
    static void span_##name(const eddy_pool_shadow *shadow, const void *term, int64_t count) {     \
        real t = *(const real *)term, *row = shadow->to;                                           \
        for (int64_t r = 0; r < shadow->old_rows + shadow->new_rows; r++, row += shadow->row_step) \
            for (int64_t i = 0; i < count; i++)                                                    \
                row[i] += t;                                                                       \
    }                                                                                              \
    CHANNELS(channels_##name, real)

AVERAGES(f32, float)
AVERAGES(f64, double)

const eddy_pool_average_blocks EDDY_ISA_NAME(eddy_cpu_pool_average_blocks) = {
    .f32 = {divide_f32, widen_f32, windows_f32, span_f32, channels_f32},
    .f64 = {divide_f64, widen_f64, windows_f64, span_f64, channels_f64},
};
