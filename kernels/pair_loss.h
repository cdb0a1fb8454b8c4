/* Losses of an input x and a target t, and their derivatives, in f32 and f64: eddy_loss_<function>_<type>. For CUDA sources too.
 *
 * p is the weight of a positive answer (bce), beta the limit of smooth_l1. Each function takes all of them, so that callers have
 * one loop. */
#ifndef EDDY_KERNELS_PAIR_LOSS_H
#define EDDY_KERNELS_PAIR_LOSS_H

#include <kernels/math.h>

/* log(1 + e^-x). For large -x this is about -x. log1p uses Kahan's quotient, which compensates the rounding of 1 + e. */
#define EDDY_LOSS_SOFTPLUS(tag, real)                                                              \
    EDDY_SCALAR real eddy_softplus_of_minus_##tag(real x) {                                        \
        real magnitude = x < 0 ? -x : x, e = eddy_exp_##tag(-magnitude), u = 1 + e, less = u - 1;  \
        real log1p = eddy_log_##tag(u) * (e / (less == 0 ? (real)1 : less));                       \
        return (less == 0 ? e : log1p) + (x < 0 ? -x : 0);                                         \
    }

/* -1, 0 or 1; NaN gives NaN. */
#define EDDY_LOSS_SIGN(tag, real)                                                                  \
    EDDY_SCALAR real eddy_loss_sign_##tag(real d) {                                                \
        real sign_of = (real)(d > 0) - (real)(d < 0);                                              \
        return d != d ? d : sign_of;                                                               \
    }

/* |d|, with the sign of a zero. */
#define EDDY_LOSS_SIZE(tag, real)                                                                  \
    EDDY_SCALAR real eddy_loss_size_##tag(real d) {                                                \
        return d < 0 ? -d : d;                                                                     \
    }

/* d is x - t. */
#define EDDY_LOSS_SMOOTH(tag, real)                                                                \
    EDDY_SCALAR real eddy_loss_smooth_##tag(real d, real beta) {                                   \
        real size = eddy_loss_size_##tag(d);                                                       \
        return size < beta ? (real)0.5 * size * size / beta : size - (real)0.5 * beta;             \
    }                                                                                              \
    EDDY_SCALAR real eddy_loss_smooth_slope_##tag(real d, real beta) {                             \
        return eddy_loss_size_##tag(d) < beta ? d / beta : eddy_loss_sign_##tag(d);                \
    }

#define EDDY_LOSS_FUNCTION(tag, real, name, expression)                                            \
    EDDY_SCALAR real eddy_loss_##name##_##tag(real x, real t, real p, real beta) {                 \
        (void)x, (void)t, (void)p, (void)beta;                                                     \
        return expression;                                                                         \
    }

#define EDDY_LOSS_FUNCTIONS(tag, real)                                                             \
    EDDY_LOSS_SOFTPLUS(tag, real)                                                                  \
    EDDY_LOSS_SIGN(tag, real)                                                                      \
    EDDY_LOSS_SIZE(tag, real)                                                                      \
    EDDY_LOSS_SMOOTH(tag, real)                                                                    \
    EDDY_LOSS_FUNCTION(tag, real, mse, (x - t) * (x - t))                                          \
    EDDY_LOSS_FUNCTION(tag, real, mse_by_input, 2 * (x - t))                                       \
    EDDY_LOSS_FUNCTION(tag, real, l1, eddy_loss_size_##tag(x - t))                                 \
    EDDY_LOSS_FUNCTION(tag, real, l1_by_input, eddy_loss_sign_##tag(x - t))                        \
    EDDY_LOSS_FUNCTION(tag, real, smooth_l1, eddy_loss_smooth_##tag(x - t, beta))                  \
    EDDY_LOSS_FUNCTION(tag, real, smooth_l1_by_input, eddy_loss_smooth_slope_##tag(x - t, beta))   \
    EDDY_LOSS_FUNCTION(tag, real, bce,                                                             \
                       (1 - t) * x + (1 + (p - 1) * t) * eddy_softplus_of_minus_##tag(x))          \
    EDDY_LOSS_FUNCTION(tag, real, bce_by_input, (1 + (p - 1) * t) * eddy_sigmoid_##tag(x) - p * t) \
    EDDY_LOSS_FUNCTION(tag, real, bce_by_target, (p - 1) * eddy_softplus_of_minus_##tag(x) - x)    \
    EDDY_LOSS_FUNCTION(tag, real, kl, (t == 0 ? 0 : t * eddy_log_##tag(t)) - t * x)                \
    EDDY_LOSS_FUNCTION(tag, real, kl_by_input, -t)                                                 \
    EDDY_LOSS_FUNCTION(tag, real, kl_by_target, eddy_log_##tag(t) + 1 - x)                         \
    EDDY_LOSS_FUNCTION(tag, real, kl_log, -eddy_exp_##tag(t) * (x - t))                            \
    EDDY_LOSS_FUNCTION(tag, real, kl_log_by_input, -eddy_exp_##tag(t))                             \
    EDDY_LOSS_FUNCTION(tag, real, kl_log_by_target, eddy_exp_##tag(t) * (1 - (x - t)))

EDDY_LOSS_FUNCTIONS(f32, float)
EDDY_LOSS_FUNCTIONS(f64, double)
#undef EDDY_LOSS_SOFTPLUS
#undef EDDY_LOSS_SIGN
#undef EDDY_LOSS_SIZE
#undef EDDY_LOSS_SMOOTH
#undef EDDY_LOSS_FUNCTION
#undef EDDY_LOSS_FUNCTIONS

#endif
