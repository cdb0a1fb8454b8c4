/* Row arithmetic of attention on contiguous f32 or f64, for any count, 0 included. Sums are accumulated in lanes; the
 * order depends on the count alone. */
#ifndef EDDY_KERNELS_CPU_SDPA_BLOCK_H
#define EDDY_KERNELS_CPU_SDPA_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

typedef struct eddy_sdpa_ops {
    void (*fill)(void *x, double value, int64_t count);
    void (*scale)(void *x, double factor, int64_t count);
    /* x = x + y */
    void (*add)(void *x, const void *y, int64_t count);
    /* x = -infinity where a byte is 0 */
    void (*hide)(void *x, const unsigned char *bytes, int64_t count);
    /* The maximum; -infinity if the count is 0. NaN is ignored, unless all other numbers are -infinity: the sum of a row
     * with NaN is NaN whatever was subtracted. */
    double (*max)(const void *x, int64_t count);
    /* x = exp(x - shift); returns the sum of the results */
    double (*exp_sum)(void *x, double shift, int64_t count);
    double (*dot)(const void *a, const void *b, int64_t count);
    /* weight = weight * factor, slope = weight * (slope - product) */
    void (*slope)(void *slope, void *weight, double factor, double product, int64_t count);
    /* x = x * factor where numbers >= least, 0 elsewhere */
    void (*drop)(void *x, const float *numbers, float least, double factor, int64_t count);
} eddy_sdpa_ops;

EDDY_ISA_DECLARE(eddy_sdpa_ops, eddy_cpu_sdpa_f32)
EDDY_ISA_DECLARE(eddy_sdpa_ops, eddy_cpu_sdpa_f64)

#endif
