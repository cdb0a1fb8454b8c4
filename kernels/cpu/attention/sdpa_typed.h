/* Functions of sdpa_block.h for one element type. */
#ifndef EDDY_KERNELS_CPU_SDPA_TYPED_H
#define EDDY_KERNELS_CPU_SDPA_TYPED_H

#include <kernels/cpu/attention/sdpa_block.h>
#include <kernels/cpu/lanes.h>
#include <kernels/cpu/typed.h>
#include <kernels/math.h>

#define LANES 16

#define ADD(a, b) ((a) + (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static void fill(void *data, double value, int64_t count) {
    real *restrict x = data, with = (real)value;
    for (int64_t i = 0; i < count; i++)
        x[i] = with;
}

static void scale(void *data, double factor, int64_t count) {
    real *restrict x = data, by = (real)factor;
    for (int64_t i = 0; i < count; i++)
        x[i] *= by;
}

static void add(void *data, const void *other, int64_t count) {
    real *restrict x = data;
    const real *restrict y = other;
    for (int64_t i = 0; i < count; i++)
        x[i] += y[i];
}

static void hide(void *data, const unsigned char *bytes, int64_t count) {
    real *restrict x = data;
    for (int64_t i = 0; i < count; i++)
        x[i] = bytes[i] ? x[i] : (real)-__builtin_inf();
}

static double max_with_nan(const void *data, int64_t count) {
    const real *restrict x = data;
    real largest = (real)-__builtin_inf();
    for (int64_t i = 0; i < count; i++)
        largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
    return (double)largest;
}

static double max(const void *data, int64_t count) {
    const real *restrict x = data;
    real lanes[LANES];
    int64_t i = 0;
    EDDY_LANES (l, LANES)
        lanes[l] = (real)-__builtin_inf();
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] = MAX(x[i + l], lanes[l]);
    EDDY_LANES (l, LANES)
        lanes[l] = i + l < count ? MAX(x[i + l], lanes[l]) : lanes[l];
    EDDY_LANES_HALVE(lanes, MAX);
    return lanes[0] == (real)-__builtin_inf() ? max_with_nan(data, count) : (double)lanes[0];
}

static double exp_sum(void *data, double shift, int64_t count) {
    real *restrict x = data, by = (real)shift;
    real lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES) {
            real y = EDDY_TYPED(eddy_exp)(x[i + l] - by);
            x[i + l] = y;
            lanes[l] += y;
        }
    for (int l = 0; i + l < count; l++) {
        real y = EDDY_TYPED(eddy_exp)(x[i + l] - by);
        x[i + l] = y;
        lanes[l] += y;
    }
    EDDY_LANES_HALVE(lanes, ADD);
    return (double)lanes[0];
}

static double dot(const void *left, const void *right, int64_t count) {
    const real *restrict a = left, *restrict b = right;
    real lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] += a[i + l] * b[i + l];
    EDDY_LANES (l, LANES)
        lanes[l] += i + l < count ? a[i + l] * b[i + l] : 0;
    EDDY_LANES_HALVE(lanes, ADD);
    return (double)lanes[0];
}

static void slope(void *slopes, void *weights, double factor, double product, int64_t count) {
    real *restrict g = slopes, *restrict p = weights, by = (real)factor, less = (real)product;
    for (int64_t i = 0; i < count; i++) {
        p[i] *= by;
        g[i] = p[i] * (g[i] - less);
    }
}

static void drop(void *data, const float *restrict numbers, float least, double factor,
                 int64_t count) {
    real *restrict x = data, by = (real)factor;
    for (int64_t i = 0; i < count; i++)
        x[i] = numbers[i] >= least ? x[i] * by : 0;
}

const eddy_sdpa_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_sdpa)) = {
    fill, scale, add, hide, max, exp_sum, dot, slope, drop,
};

#endif
