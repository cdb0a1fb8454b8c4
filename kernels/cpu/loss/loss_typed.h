/* The functions of loss_block.h for one element type, included by loss_<element>_block.c alone (kernels/cpu/typed.h). */
#ifndef EDDY_KERNELS_CPU_LOSS_TYPED_H
#define EDDY_KERNELS_CPU_LOSS_TYPED_H

#include <kernels/cpu/loss/loss_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/pair_loss.h>

#define EACH(name)                                                                                 \
    static void name(void *output, const void *input, const void *target, const void *positive,    \
                     double beta, int64_t count) {                                                 \
        real *restrict y = output;                                                                 \
        const real *restrict x = input, *restrict t = target, *restrict p = positive;              \
        real limit = (real)beta;                                                                   \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i] = EDDY_TYPED(eddy_loss_##name)(x[i], t[i], p[i], limit);                          \
    }

EACH(mse)
EACH(mse_by_input)
EACH(l1)
EACH(l1_by_input)
EACH(smooth_l1)
EACH(smooth_l1_by_input)
EACH(bce)
EACH(bce_by_input)
EACH(bce_by_target)
EACH(kl)
EACH(kl_by_input)
EACH(kl_by_target)
EACH(kl_log)
EACH(kl_log_by_input)
EACH(kl_log_by_target)

static void scale(void *input, const void *factors, double factor, int64_t count) {
    real *restrict x = input, by = (real)factor;
    const real *restrict f = factors;
    for (int64_t i = 0; i < count; i++)
        x[i] *= f[i] * by;
}

static void log_of(double *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        x[i] = eddy_log_f64(x[i]);
}

const eddy_loss_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_loss)) = {
    .forward = {mse, l1, smooth_l1, bce, kl, kl_log},
    .by_input = {mse_by_input, l1_by_input, smooth_l1_by_input, bce_by_input, kl_by_input,
                 kl_log_by_input},
    .by_target = {NULL, NULL, NULL, bce_by_target, kl_by_target, kl_log_by_target},
    .scale = scale,
    .log = log_of,
};

#endif
