#include <kernels/cpu/loss/loss_block.h>
#include <kernels/math.h>

/* log(1 + e^-x): for large -x about -x, and log1p by Kahan's quotient, which undoes the rounding of 1 + e. */
#define SOFTPLUS(name, real)                                                                       \
    static inline real softplus_of_minus_##name(real x) {                                          \
        real magnitude = x < 0 ? -x : x, e = eddy_exp_##name(-magnitude), u = 1 + e, less = u - 1; \
        real log1p = eddy_log_##name(u) * (e / (less == 0 ? (real)1 : less));                      \
        return (less == 0 ? e : log1p) + (x < 0 ? -x : 0);                                         \
    }

/* -1, 0 or 1; NaN stays. */
#define SIGN(name, real)                                                                           \
    static inline real sign_##name(real d) {                                                       \
        real sign = (real)(d > 0) - (real)(d < 0);                                                 \
        return d != d ? d : sign;                                                                  \
    }

SOFTPLUS(f32, float)
SOFTPLUS(f64, double)
SIGN(f32, float)
SIGN(f64, double)

/* One function over elements: d is x - t. */
#define EACH(label, name, real, expression)                                                        \
    static void label##_##name(void *output, const void *input, const void *target,                \
                               const void *positive, double beta, int64_t count) {                 \
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

#define LOSSES(name, real)                                                                         \
    EACH(mse, name, real, d *d)                                                                    \
    EACH(mse_by_input, name, real, 2 * d)                                                          \
    EACH(l1, name, real, size)                                                                     \
    EACH(l1_by_input, name, real, sign_##name(d))                                                  \
    EACH(smooth_l1, name, real,                                                                    \
         size < limit ? (real)0.5 * size * size / limit : size - (real)0.5 * limit)                \
    EACH(smooth_l1_by_input, name, real, size < limit ? d / limit : sign_##name(d))                \
    EACH(bce, name, real,                                                                          \
         (1 - t[i]) * x[i] + (1 + (p[i] - 1) * t[i]) * softplus_of_minus_##name(x[i]))             \
    EACH(bce_by_input, name, real,                                                                 \
         (1 + (p[i] - 1) * t[i]) * eddy_sigmoid_##name(x[i]) - p[i] * t[i])                        \
    EACH(bce_by_target, name, real, (p[i] - 1) * softplus_of_minus_##name(x[i]) - x[i])            \
    EACH(kl, name, real, (t[i] == 0 ? 0 : t[i] * eddy_log_##name(t[i])) - t[i] * x[i])             \
    EACH(kl_by_input, name, real, -t[i])                                                           \
    EACH(kl_by_target, name, real, eddy_log_##name(t[i]) + 1 - x[i])                               \
    EACH(kl_log, name, real, -eddy_exp_##name(t[i]) * d)                                           \
    EACH(kl_log_by_input, name, real, -eddy_exp_##name(t[i]))                                      \
    EACH(kl_log_by_target, name, real, eddy_exp_##name(t[i]) * (1 - d))                            \
    static void scale_##name(void *input, const void *factors, double factor, int64_t count) {     \
        real *restrict x = input, by = (real)factor;                                               \
        const real *restrict f = factors;                                                          \
        for (int64_t i = 0; i < count; i++)                                                        \
            x[i] *= f[i] * by;                                                                     \
    }

LOSSES(f32, float)
LOSSES(f64, double)

#define OPS(name)                                                                                  \
    {                                                                                              \
        .forward =                                                                                 \
            {mse_##name, l1_##name, smooth_l1_##name, bce_##name, kl_##name, kl_log_##name},       \
        .by_input = {mse_by_input_##name, l1_by_input_##name, smooth_l1_by_input_##name,           \
                     bce_by_input_##name, kl_by_input_##name, kl_log_by_input_##name},             \
        .by_target = {NULL,                                                                        \
                      NULL,                                                                        \
                      NULL,                                                                        \
                      bce_by_target_##name,                                                        \
                      kl_by_target_##name,                                                         \
                      kl_log_by_target_##name},                                                    \
        .scale = scale_##name                                                                      \
    }
const eddy_loss_blocks EDDY_ISA_NAME(eddy_cpu_loss_blocks) = {.f32 = OPS(f32), .f64 = OPS(f64)};
