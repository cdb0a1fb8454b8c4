/* The functions of pool_average_block.h for one element type, included by pool_average_<element>_block.c alone
 * (kernels/cpu/typed.h).
 *
 * The functions called ..._lanes process `lanes` columns or channels side by side. `lanes` and, where it matters, the
 * steps are constants in every call: the accumulators are then an array of constant size, which stays in registers. */
#ifndef EDDY_KERNELS_CPU_POOL_AVERAGE_TYPED_H
#define EDDY_KERNELS_CPU_POOL_AVERAGE_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/pool/pool_average_block.h>
#include <kernels/cpu/typed.h>
#include <stddef.h>

/* Columns or channels side by side, at most: two vectors of f32 if vectors have 32 bytes. */
#define LANES 16

#define INLINE static inline __attribute__((always_inline))

static void divide(void *terms, const void *from, const void *divisors, int64_t count) {
    real *t = terms;
    const real *x = from, *by = divisors;
    EDDY_EACH_APART (i, count)
        t[i] = x[i] / by[i];
}

/* ---- windows along a row ---- */

static void widen(void *wide, void *part, const void *terms, int64_t count, int64_t stride,
                  int64_t whole, int64_t rest) {
    real *restrict w = wide, *restrict p = part;
    const real *restrict t = terms;
    if (stride == 2) {
        for (int64_t q = 0; whole > 0 && q < count; q++)
            w[2 * q] = w[2 * q + 1] = t[q];
        for (int64_t q = 0; rest > 0 && q < count; q++) {
            p[2 * q] = t[q];
            p[2 * q + 1] = 0;
        }
        return;
    }
    for (int64_t q = 0; whole > 0 && q < count; q++)
        for (int64_t f = 0; f < stride; f++)
            w[q * stride + f] = t[q];
    for (int64_t q = 0; rest > 0 && q < count; q++)
        for (int64_t f = 0; f < stride; f++)
            p[q * stride + f] = f < rest ? t[q] : 0;
}

/* The terms that are added to the columns of each row. */
typedef struct terms {
    const real *wide, *part; /* part may be NULL */
    int64_t whole, stride;
} terms;

INLINE void add_terms(real *restrict sum, const terms *of, int64_t at, int64_t lanes) {
    if (of->part)
        EDDY_LANES_LONG (l, lanes)
            sum[l] += of->part[at + l - of->whole * of->stride];
    for (int64_t j = of->whole - 1; j >= 0; j--)
        EDDY_LANES_LONG (l, lanes)
            sum[l] += of->wide[at + l - j * of->stride];
}

INLINE void windows_lanes(const eddy_pool_shadow *shadow, const terms *of, int64_t at,
                          int64_t lanes) {
    real sum[LANES], *to = (real *)shadow->to + at;
    for (int64_t r = 0; r < shadow->old_rows; r++, to += shadow->row_step) {
        EDDY_LANES_LONG (l, lanes)
            sum[l] = to[l];
        add_terms(sum, of, at, lanes);
        EDDY_LANES_LONG (l, lanes)
            to[l] = sum[l];
    }
    if (shadow->new_rows <= 0)
        return;
    /* All new rows are equal. */
    EDDY_LANES_LONG (l, lanes)
        sum[l] = 0;
    add_terms(sum, of, at, lanes);
    for (int64_t r = 0; r < shadow->new_rows; r++, to += shadow->row_step)
        EDDY_LANES_LONG (l, lanes)
            to[l] = sum[l];
}

INLINE void windows_columns(const eddy_pool_shadow *shadow, terms of, int64_t count) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        windows_lanes(shadow, &of, i, LANES);
    for (; i + LANES / 4 <= count; i += LANES / 4)
        windows_lanes(shadow, &of, i, LANES / 4);
    for (; i < count; i++)
        windows_lanes(shadow, &of, i, 1);
}

static void windows(const eddy_pool_shadow *shadow, const void *wide, const void *part,
                    int64_t whole, int64_t stride, int64_t count) {
    if (!part && whole == 1)
        windows_columns(shadow, (terms){wide, NULL, 1, stride}, count);
    else if (!part && stride == 1)
        windows_columns(shadow, (terms){wide, NULL, whole, 1}, count);
    else
        windows_columns(shadow, (terms){wide, part, whole, stride}, count);
}

static void span(const eddy_pool_shadow *shadow, const void *term, int64_t count) {
    real t = *(const real *)term, *row = shadow->to;
    for (int64_t r = 0; r < shadow->old_rows + shadow->new_rows; r++, row += shadow->row_step)
        for (int64_t i = 0; i < count; i++)
            row[i] += t;
}

/* ---- channels side by side ---- */

/* The places of a row; in new rows, the last `new_count` places are uninitialised. */
typedef struct places {
    int64_t step, count, new_count;
} places;

INLINE void channels_lanes(const eddy_pool_shadow *shadow, const places *row, const real *from,
                           real divisor, int64_t at, int64_t lanes) {
    real term[LANES], sum[LANES], *to = (real *)shadow->to + at;
    EDDY_LANES_LONG (l, lanes)
        term[l] = from[at + l] / divisor;
    for (int64_t r = 0; r < shadow->old_rows + shadow->new_rows; r++, to += shadow->row_step) {
        int64_t old = r < shadow->old_rows ? row->count : row->count - row->new_count;
        real *place = to;
        for (int64_t c = 0; c < old; c++, place += row->step) {
            EDDY_LANES_LONG (l, lanes)
                sum[l] = place[l] + term[l];
            EDDY_LANES_LONG (l, lanes)
                place[l] = sum[l];
        }
        for (int64_t c = old; c < row->count; c++, place += row->step)
            EDDY_LANES_LONG (l, lanes)
                place[l] = 0 + term[l];
    }
}

static void channels(const eddy_pool_shadow *shadow, int64_t column_step, int64_t columns,
                     int64_t new_columns, const void *from, double divisor, int64_t count) {
    const places row = {column_step, columns, new_columns};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        channels_lanes(shadow, &row, from, (real)divisor, i, LANES);
    for (; i + LANES / 4 <= count; i += LANES / 4)
        channels_lanes(shadow, &row, from, (real)divisor, i, LANES / 4);
    for (; i < count; i++)
        channels_lanes(shadow, &row, from, (real)divisor, i, 1);
}

const eddy_pool_average_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_pool_average)) = {
    .divide = divide, .widen = widen, .windows = windows, .span = span, .channels = channels};

#endif
