/* The functions of loss_block.h for one element type, included by loss_<element>_block.c alone (kernels/cpu/typed.h). */
#ifndef EDDY_KERNELS_CPU_LOSS_TYPED_H
#define EDDY_KERNELS_CPU_LOSS_TYPED_H

#include <kernels/cpu/loss/loss_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/math.h>

/* log(1 + e^-x). For large -x this is about -x. log1p uses Kahan's quotient, which compensates the rounding of 1 + e. */
static inline real softplus_of_minus(real x) {
    real magnitude = x < 0 ? -x : x, e = EDDY_TYPED(eddy_exp)(-magnitude), u = 1 + e, less = u - 1;
    real log1p = EDDY_TYPED(eddy_log)(u) * (e / (less == 0 ? (real)1 : less));
    return (less == 0 ? e : log1p) + (x < 0 ? -x : 0);
}

/* -1, 0 or 1; NaN gives NaN. */
static inline real sign(real d) {
    real sign_of = (real)(d > 0) - (real)(d < 0);
    return d != d ? d : sign_of;
}

/* One function of elements; d is x - t. */
#define EACH(name, expression)                                                                     \
    static void name(void *output, const void *input, const void *target, const void *positive,    \
                     double beta, int64_t count) {                                                 \
        real *restrict y = output;                                                                 \
        const real *restrict x = input, *restrict t = target, *restrict p = positive;              \
        real limit = (real)beta;                                                                   \
        (void)p, (void)limit;                                                                      \
        for (int64_t i = 0; i < count; i++) {                                                      \
            real d = x[i] - t[i], size = d < 0 ? -d : d;                                           \
            (void)size;                                                                            \
            y[i] = expression;                                                                     \
        }                                                                                          \
    }

EACH(mse, d *d)
EACH(mse_by_input, 2 * d)
EACH(l1, size)
EACH(l1_by_input, sign(d))
EACH(smooth_l1, size < limit ? (real)0.5 * size * size / limit : size - (real)0.5 * limit)
EACH(smooth_l1_by_input, size < limit ? d / limit : sign(d))
EACH(bce, (1 - t[i]) * x[i] + (1 + (p[i] - 1) * t[i]) * softplus_of_minus(x[i]))
EACH(bce_by_input, (1 + (p[i] - 1) * t[i]) * EDDY_TYPED(eddy_sigmoid)(x[i]) - p[i] * t[i])
EACH(bce_by_target, (p[i] - 1) * softplus_of_minus(x[i]) - x[i])
EACH(kl, (t[i] == 0 ? 0 : t[i] * EDDY_TYPED(eddy_log)(t[i])) - t[i] * x[i])
EACH(kl_by_input, -t[i])
EACH(kl_by_target, EDDY_TYPED(eddy_log)(t[i]) + 1 - x[i])
EACH(kl_log, -EDDY_TYPED(eddy_exp)(t[i]) * d)
EACH(kl_log_by_input, -EDDY_TYPED(eddy_exp)(t[i]))
EACH(kl_log_by_target, EDDY_TYPED(eddy_exp)(t[i]) * (1 - d))

static void scale(void *input, const void *factors, double factor, int64_t count) {
    real *restrict x = input, by = (real)factor;
    const real *restrict f = factors;
    for (int64_t i = 0; i < count; i++)
        x[i] *= f[i] * by;
}

const eddy_loss_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_loss)) = {
    .forward = {mse, l1, smooth_l1, bce, kl, kl_log},
    .by_input = {mse_by_input, l1_by_input, smooth_l1_by_input, bce_by_input, kl_by_input,
                 kl_log_by_input},
    .by_target = {NULL, NULL, NULL, bce_by_target, kl_by_target, kl_log_by_target},
    .scale = scale,
};

#endif
