/* Functions of norm_block.h for one element type. */
#ifndef EDDY_KERNELS_CPU_NORM_TYPED_H
#define EDDY_KERNELS_CPU_NORM_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/norm/norm_block.h>
#include <kernels/cpu/typed.h>
#include <math.h>
#include <stddef.h>

#define LANES EDDY_NORM_LANES

#define INLINE static inline __attribute__((always_inline))

#define ADD(a, b) ((a) + (b))

/* ---- sums ---- */

/* The term of a sum for element i. */
typedef real norm_term(const real *g, const real *x, real shift, int64_t i);

INLINE real element(const real *g, const real *x, real shift, int64_t i) {
    (void)g, (void)shift;
    return x[i];
}

INLINE real square(const real *g, const real *x, real shift, int64_t i) {
    (void)g, (void)shift;
    return x[i] * x[i];
}

INLINE real distance_product(const real *g, const real *x, real shift, int64_t i) {
    return g[i] * (x[i] - shift);
}

/* Sums in lanes that are then halved. A remainder that does not fill the lanes takes one more step. */
INLINE real sum_of(norm_term *term, const real *g, const real *x, real shift, int64_t count) {
    real lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES)
            lanes[l] += term(g, x, shift, i + l);
    int left = (int)(count - i);
    if (left > 0)
        EDDY_LANES (l, LANES)
            lanes[l] += l < left ? term(g, x, shift, i + l) : 0;
    EDDY_LANES_HALVE(lanes, ADD);
    return lanes[0];
}

static void moments(const void *data, int64_t count, double *mean, double *squares) {
    const real *restrict x = data;
    real shift = sum_of(element, NULL, x, 0, count) / (real)count;
    real distances[LANES] = {0}, squared[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES) {
            real distance = x[i + l] - shift;
            distances[l] += distance;
            squared[l] += distance * distance;
        }
    int left = (int)(count - i);
    if (left > 0)
        EDDY_LANES (l, LANES) {
            real distance = l < left ? x[i + l] - shift : 0;
            distances[l] += distance;
            squared[l] += distance * distance;
        }
    EDDY_LANES_HALVE(distances, ADD);
    EDDY_LANES_HALVE(squared, ADD);
    double all = (double)distances[0];
    double rest = all / (double)count; /* mean - shift, the rounding error of shift */
    *mean = (double)shift + rest;
    *squares = (double)squared[0] - rest * all;
}

static double square_sum(const void *data, int64_t count) {
    return (double)sum_of(square, NULL, data, 0, count);
}

static void products(const void *grad, const void *data, const void *weight, double from,
                     int64_t count, double sums[2]) {
    const real *restrict g = grad, *restrict x = data, *restrict w = weight;
    real shift = (real)from, weighted[LANES] = {0}, distant[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        EDDY_LANES (l, LANES) {
            real slope = g[i + l] * w[i + l];
            weighted[l] += slope;
            distant[l] += slope * (x[i + l] - shift);
        }
    int left = (int)(count - i);
    if (left > 0)
        EDDY_LANES (l, LANES) {
            real slope = l < left ? g[i + l] * w[i + l] : 0;
            weighted[l] += slope;
            distant[l] += l < left ? slope * (x[i + l] - shift) : 0;
        }
    EDDY_LANES_HALVE(weighted, ADD);
    EDDY_LANES_HALVE(distant, ADD);
    sums[0] = (double)weighted[0];
    sums[1] = (double)distant[0];
}

static double product(const void *grad, const void *data, double from, int64_t count) {
    return (double)sum_of(distance_product, grad, data, (real)from, count);
}

static void accumulate(double *restrict into, const void *grad, const void *data, double mean,
                       double scale, int64_t count) {
    const real *restrict g = grad, *restrict x = data;
    real shift = (real)mean, by = (real)scale;
    for (int64_t i = 0; i < count; i++)
        into[i] += (double)(g[i] * ((x[i] - shift) * by));
}

/* ---- results ---- */

INLINE void apply_step(real *y, const real *x, const real *w, const real *b, int64_t step,
                       real shift, real by, int64_t count) {
    EDDY_EACH_APART (i, count)
        y[i] = (x[i] - shift) * by * w[i * step] + b[i * step];
}

static void apply(void *to, const void *data, const void *weight, const void *bias, int64_t step,
                  double mean, double scale, int64_t count) {
    if (step)
        apply_step(to, data, weight, bias, 1, (real)mean, (real)scale, count);
    else
        apply_step(to, data, weight, bias, 0, (real)mean, (real)scale, count);
}

static void apply_each(void *data, const void *weight, const void *bias, const void *means,
                       const void *scales, int64_t count) {
    real *restrict x = data;
    const real *restrict w = weight, *restrict b = bias, *restrict mean = means,
                         *restrict scale = scales;
    for (int64_t i = 0; i < count; i++)
        x[i] = (x[i] - mean[i]) * scale[i] * w[i] + b[i];
}

INLINE void backward_step(real *y, const real *g, const real *x, const real *w, int64_t step,
                          real shift, real by, real less, real times, int64_t count) {
    EDDY_EACH_APART (i, count)
        y[i] = by * (g[i] * w[i * step] - less - (x[i] - shift) * times);
}

static void backward(void *to, const void *grad, const void *data, const void *weight, int64_t step,
                     double mean, double scale, double level, double slope, int64_t count) {
    if (step)
        backward_step(to, grad, data, weight, 1, (real)mean, (real)scale, (real)level, (real)slope,
                      count);
    else
        backward_step(to, grad, data, weight, 0, (real)mean, (real)scale, (real)level, (real)slope,
                      count);
}

/* ---- places ---- */

/* Computes statistics and results of each place in one loop, so that the processor can begin the next place while the sums
 * of one are halved. */
static void places(const eddy_norm_rows *rows, const void *weight, const void *bias, double eps,
                   bool is_centred, int64_t count) {
    for (int64_t row = 0; row < rows->count; row++) {
        const real *x = (const real *)rows->from + row * rows->from_stride;
        real *y = (real *)rows->to + row * rows->to_stride;
        double mean = 0, squares;
        if (is_centred)
            moments(x, count, &mean, &squares);
        else
            squares = square_sum(x, count);
        apply(y, x, weight, bias, 1, mean, 1 / sqrt(squares / (double)count + eps), count);
    }
}

/* The same for the gradient. */
static void places_back(const eddy_norm_rows *rows, const void *weight, double eps, bool is_centred,
                        int64_t count) {
    for (int64_t row = 0; row < rows->count; row++) {
        const real *x = (const real *)rows->from + row * rows->from_stride;
        const real *g = (const real *)rows->grad + row * rows->grad_stride;
        real *y = (real *)rows->to + row * rows->to_stride;
        double mean = 0, squares, sums[2];
        if (is_centred)
            moments(x, count, &mean, &squares);
        else
            squares = square_sum(x, count);
        products(g, x, weight, mean, count, sums);
        double scale = 1 / sqrt(squares / (double)count + eps),
               level = is_centred ? sums[0] / (double)count : 0;
        double slope = scale * scale * sums[1] / (double)count;
        backward(y, g, x, weight, 1, mean, scale, level, slope, count);
    }
}

const eddy_norm_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_norm)) = {
    moments,  square_sum, apply,    places,      apply_each,
    products, product,    backward, places_back, accumulate,
};

#endif
