/* Row arithmetic of softmax and cross-entropy on contiguous f32 or f64. Except in rows and totals, every count is a
 * multiple of EDDY_SOFTMAX_LANES and at most EDDY_SOFTMAX_CHUNK: the caller adds padding. Sums are accumulated in lanes
 * that are then halved, in an order that depends on the count alone. */
#ifndef EDDY_KERNELS_CPU_SOFTMAX_BLOCK_H
#define EDDY_KERNELS_CPU_SOFTMAX_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

#define EDDY_SOFTMAX_LANES 16
#define EDDY_SOFTMAX_CHUNK 4096
#define EDDY_SOFTMAX_ROWS 16

/* The parts of a log-sum-exp: `sum` is the sum of exp(x - max). */
typedef struct eddy_softmax_total {
    double max, sum;
} eddy_softmax_total;

typedef struct eddy_softmax_ops {
    /* softmax, or its logarithm, of at most EDDY_SOFTMAX_ROWS whole rows; the y do not overlap the x. The bits are those
     * of max, exp_sum, and scale or shift. */
    void (*rows)(void *const *y, const void *const *x, int64_t rows, int64_t count, bool is_log);
    /* max and exp_sum of at most EDDY_SOFTMAX_ROWS whole rows, which are not changed. */
    void (*totals)(const void *const *x, int64_t rows, int64_t count, eddy_softmax_total *totals);
    double (*max)(const void *x, int64_t count);
    /* x = exp(x - shift), where shift is the largest x; returns the sum of the results */
    double (*exp_sum)(void *x, double shift, int64_t count);
    /* x = x * factor */
    void (*scale)(void *x, double factor, int64_t count);
    /* x = (x - shift) - log(sum) */
    void (*shift)(void *x, double shift, double sum, int64_t count);
    double (*sum)(const void *x, int64_t count);
    double (*dot)(const void *a, const void *b, int64_t count);
    /* grad = output * (grad - dot) */
    void (*backward)(void *grad, const void *output, double dot, int64_t count);
    /* grad = grad - exp(output) * sum */
    void (*log_backward)(void *grad, const void *output, double sum, int64_t count);
} eddy_softmax_ops;

EDDY_ISA_DECLARE(eddy_softmax_ops, eddy_cpu_softmax_f32)
EDDY_ISA_DECLARE(eddy_softmax_ops, eddy_cpu_softmax_f64)

#endif
