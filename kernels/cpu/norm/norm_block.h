/* Arithmetic of normalisations on contiguous f32 or f64, at most EDDY_NORM_CHUNK elements at a time. Sums are accumulated
 * in lanes that are then halved, in an order that depends on the count alone. `w` and `b`, the weight and the bias, have
 * one number per element or, with `step` 0, one number for all. */
#ifndef EDDY_KERNELS_CPU_NORM_BLOCK_H
#define EDDY_KERNELS_CPU_NORM_BLOCK_H

#include <kernels/cpu/isa.h>
#include <kernels/norm.h>
#include <stdbool.h>
#include <stdint.h>

/* Places that follow one another in memory; strides in elements. `to` may be `from`, or `grad`. Only the gradient uses
 * `grad`. */
typedef struct eddy_norm_rows {
    void *to;
    const void *from, *grad;
    int64_t to_stride, from_stride, grad_stride, count;
} eddy_norm_rows;

typedef struct eddy_norm_ops {
    /* The mean, and the sum of squares of the distances from it; count at least 1. */
    void (*moments)(const void *x, int64_t count, double *mean, double *squares);
    double (*square_sum)(const void *x, int64_t count);
    /* y = (x - mean) * scale * w + b; y may be x */
    void (*apply)(void *y, const void *x, const void *w, const void *b, int64_t step, double mean,
                  double scale, int64_t count);
    /* For each row: moments (square_sum unless centred), then apply with 1 / sqrt(squares / count + eps). */
    void (*places)(const eddy_norm_rows *rows, const void *w, const void *b, double eps,
                   bool is_centred, int64_t count);
    /* The same as apply, with a mean and a scale for each element. */
    void (*apply_each)(void *x, const void *w, const void *b, const void *means, const void *scales,
                       int64_t count);
    /* sums: of g * w, and of g * w * (x - shift) */
    void (*products)(const void *g, const void *x, const void *w, double shift, int64_t count,
                     double sums[2]);
    /* The sum of g * (x - shift) */
    double (*product)(const void *g, const void *x, double shift, int64_t count);
    /* y = scale * (g * w - level - (x - mean) * slope); y may be g */
    void (*backward)(void *y, const void *g, const void *x, const void *w, int64_t step,
                     double mean, double scale, double level, double slope, int64_t count);
    /* For each row: moments (square_sum unless centred), products, then backward. */
    void (*places_back)(const eddy_norm_rows *rows, const void *w, double eps, bool is_centred,
                        int64_t count);
    /* into = into + g * (x - mean) * scale */
    void (*accumulate)(double *into, const void *g, const void *x, double mean, double scale,
                       int64_t count);
} eddy_norm_ops;

EDDY_ISA_DECLARE(eddy_norm_ops, eddy_cpu_norm_f32)
EDDY_ISA_DECLARE(eddy_norm_ops, eddy_cpu_norm_f64)

#endif
