/* Functions of softmax_block.h for one element type. */
#ifndef EDDY_KERNELS_CPU_SOFTMAX_TYPED_H
#define EDDY_KERNELS_CPU_SOFTMAX_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/math.h>
#include <math.h>

#define LANES EDDY_SOFTMAX_LANES
#define INLINE inline __attribute__((always_inline))
/* Long functions are not inlined, so that there is one copy. */
#define APART __attribute__((noinline))

#define ADD(a, b) ((a) + (b))
/* Ignores NaN: if an element is NaN, the sum is NaN whatever was subtracted. */
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* ---- whole rows ---- */

/* The elements of a row before its tail. The tail has 1 .. LANES elements: a short row is a tail only. */
static INLINE int64_t whole_of(int64_t count) {
    return (count - 1) & ~(int64_t)(LANES - 1);
}

/* Each step is made for all rows before the next step: within a row, the largest number, the sum and the results wait for
 * each other; rows do not. Tails are filled up with padding that adds nothing to a sum. */
static INLINE void largest(const void *const *from, int64_t rows, int64_t count,
                           real (*tails)[LANES], eddy_softmax_total *totals) {
    int64_t whole = whole_of(count);
    int rest = (int)(count - whole);
    for (int64_t r = 0; r < rows; r++) {
        const real *x = from[r];
        real lanes[LANES], *tail = tails[r];
        EDDY_LANES_APART (l, LANES)
            tail[l] = lanes[l] = l < rest ? x[whole + l] : -(real)INFINITY;
        for (int64_t i = 0; i < whole; i += LANES)
            EDDY_LANES (l, LANES)
                lanes[l] = MAX(lanes[l], x[i + l]);
        EDDY_LANES_HALVE(lanes, MAX);
        totals[r].max = (double)lanes[0];
    }
}

/* The sums of exp(x - max). With `is_kept` the powers are stored in y, and those of tails in place. */
static INLINE void powers(bool is_kept, void *const *to, const void *const *from, int64_t rows,
                          int64_t count, real (*tails)[LANES], eddy_softmax_total *totals) {
    static const real nothing[LANES] = {0};
    int64_t whole = whole_of(count);
    real sums[EDDY_SOFTMAX_ROWS][LANES];
    for (int64_t r = 0; r < rows && whole > 0; r++) {
        const real *restrict x = from[r], shift = (real)totals[r].max;
        real *restrict y = is_kept ? to[r] : NULL;
        real lanes[LANES] = {0};
        for (int64_t i = 0; i < whole; i += LANES) {
            EDDY_LANES_APART (l, LANES) {
                real power = EDDY_TYPED(eddy_exp_down)(x[i + l] - shift);
                if (is_kept)
                    y[i + l] = power;
                lanes[l] += power;
            }
        }
        EDDY_LANES (l, LANES)
            sums[r][l] = lanes[l];
    }
    const real *sum = whole > 0 ? sums[0] : nothing;
    int64_t step = whole > 0 ? LANES : 0;
    for (int64_t r = 0; r < rows; r++, sum += step) {
        const real shift = (real)totals[r].max;
        real lanes[LANES], *tail = tails[r];
        EDDY_LANES_APART (l, LANES) {
            real power = EDDY_TYPED(eddy_exp_down)(tail[l] - shift);
            if (is_kept)
                tail[l] = power;
            lanes[l] = sum[l] + power;
        }
        EDDY_LANES_HALVE(lanes, ADD);
        totals[r].sum = (double)lanes[0];
    }
}

static APART void totals_of(const void *const *from, int64_t rows, int64_t count,
                            eddy_softmax_total *totals) {
    real tails[EDDY_SOFTMAX_ROWS][LANES];
    largest(from, rows, count, tails, totals);
    powers(false, NULL, from, rows, count, tails, totals);
}

static void softmax_rows(void *const *to, const void *const *from, int64_t rows, int64_t count) {
    int64_t whole = whole_of(count);
    real tails[EDDY_SOFTMAX_ROWS][LANES];
    eddy_softmax_total totals[EDDY_SOFTMAX_ROWS];
    largest(from, rows, count, tails, totals);
    powers(true, to, from, rows, count, tails, totals);
    for (int64_t r = 0; r < rows; r++) {
        real *restrict y = to[r], factor = (real)(1.0 / totals[r].sum), *tail = tails[r];
        for (int64_t i = 0; i < whole; i++)
            y[i] *= factor;
        for (int64_t i = whole; i < count; i++)
            y[i] = tail[i - whole] * factor;
    }
}

static void log_rows(void *const *to, const void *const *from, int64_t rows, int64_t count) {
    eddy_softmax_total totals[EDDY_SOFTMAX_ROWS];
    double logs[EDDY_SOFTMAX_ROWS] = {0};
    totals_of(from, rows, count, totals);
    for (int64_t r = 0; r < rows; r++)
        logs[r] = totals[r].sum;
    EDDY_LANES (r, EDDY_SOFTMAX_ROWS)
        logs[r] = eddy_log_f64(logs[r]);
    for (int64_t r = 0; r < rows; r++) {
        real *restrict y = to[r], shift = (real)totals[r].max, log_sum = (real)logs[r];
        const real *restrict x = from[r];
        for (int64_t i = 0; i < count; i++)
            y[i] = (x[i] - shift) - log_sum;
    }
}

static void rows_of(void *const *to, const void *const *from, int64_t rows, int64_t count,
                    bool is_log) {
    (is_log ? log_rows : softmax_rows)(to, from, rows, count);
}

/* ---- padded chunks ---- */

static double max_of(const void *data, int64_t count) {
    const real *restrict x = data;
    real lanes[LANES];
    EDDY_LANES (l, LANES)
        lanes[l] = x[l];
    for (int64_t i = LANES; i < count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] = MAX(lanes[l], x[i + l]);
    EDDY_LANES_HALVE(lanes, MAX);
    return (double)lanes[0];
}

static double exp_sum(void *data, double shift, int64_t count) {
    real *restrict x = data, by = (real)shift;
    real lanes[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES)
        EDDY_LANES (l, LANES) {
            real y = EDDY_TYPED(eddy_exp_down)(x[i + l] - by);
            x[i + l] = y;
            lanes[l] += y;
        }
    EDDY_LANES_HALVE(lanes, ADD);
    return (double)lanes[0];
}

static void scale_by(void *data, double factor, int64_t count) {
    real *restrict x = data, by = (real)factor;
    for (int64_t i = 0; i < count; i++)
        x[i] *= by;
}

static void shift_by(void *data, double shift, double sum, int64_t count) {
    real *restrict x = data, by = (real)shift, then = (real)eddy_log_f64(sum);
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - by) - then;
}

static double sum_of(const void *data, int64_t count) {
    const real *restrict x = data;
    real lanes[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] += x[i + l];
    EDDY_LANES_HALVE(lanes, ADD);
    return (double)lanes[0];
}

static double dot(const void *left, const void *right, int64_t count) {
    const real *restrict a = left, *restrict b = right;
    real lanes[LANES] = {0};
    for (int64_t i = 0; i < count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] += a[i + l] * b[i + l];
    EDDY_LANES_HALVE(lanes, ADD);
    return (double)lanes[0];
}

static void backward(void *grad, const void *output, double product, int64_t count) {
    real *restrict g = grad, by = (real)product;
    const real *restrict y = output;
    for (int64_t i = 0; i < count; i++)
        g[i] = y[i] * (g[i] - by);
}

static void log_backward(void *grad, const void *output, double sum, int64_t count) {
    real *restrict g = grad, by = (real)sum;
    const real *restrict y = output;
    for (int64_t i = 0; i < count; i++)
        g[i] = g[i] - EDDY_TYPED(eddy_exp)(y[i]) * by;
}

const eddy_softmax_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_softmax)) = {
    rows_of, totals_of, max_of, exp_sum, scale_by, shift_by, sum_of, dot, backward, log_backward,
};

#endif
