/* Algorithms: SGD with L2 decay; momentum (B. Polyak, 1964) and its form after Nesterov (I. Sutskever and others, 2013); Adam (D.
 * Kingma, J. Ba, 2015) and AdamW (I. Loshchilov, F. Hutter, 2019), with the order of operations of PyTorch's. */
#include <kernels/cpu/optimise/optimise_block.h>

#define OPTIMISE(name, real, root)                                                                                     \
    static void sgd_##name(const eddy_sgd_numbers *numbers, real *restrict p, const real *restrict g, int64_t count) { \
        real lr = (real)numbers->lr, decay = (real)numbers->weight_decay;                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            p[i] = p[i] - lr * (g[i] + decay * p[i]);                                                                  \
    }                                                                                                                  \
    static void momentum_##name(const eddy_momentum_numbers *numbers, real *restrict p, const real *restrict g,        \
                                real *restrict v, int64_t count) {                                                     \
        real lr = (real)numbers->lr, momentum = (real)numbers->momentum, decay = (real)numbers->weight_decay;          \
        real gradient_part = numbers->is_nesterov ? 1 : 0, velocity_part = numbers->is_nesterov ? momentum : 1;        \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            real gradient = g[i] + decay * p[i];                                                                       \
            real velocity = momentum * v[i] + gradient;                                                                \
            v[i] = velocity;                                                                                           \
            p[i] = p[i] - lr * (gradient_part * gradient + velocity_part * velocity);                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void adam_##name(const eddy_adam_numbers *numbers, real *restrict p, const real *restrict g,                \
                            real *restrict m, real *restrict v, int64_t count) {                                       \
        real rest1 = (real)(1 - numbers->beta1), beta2 = (real)numbers->beta2, rest2 = (real)(1 - numbers->beta2);     \
        real eps = (real)numbers->eps, decay = (real)numbers->weight_decay, step = (real)numbers->step_size;           \
        real bias = (real)numbers->root_of_bias2, shrink = (real)numbers->shrink;                                      \
        for (int64_t i = 0; i < count; i++) {                                                                          \
            real gradient = g[i] + decay * p[i];                                                                       \
            real mean = m[i] + rest1 * (gradient - m[i]);                                                              \
            real square = v[i] * beta2 + rest2 * (gradient * gradient);                                                \
            m[i] = mean;                                                                                               \
            v[i] = square;                                                                                             \
            p[i] = p[i] * shrink - step * (mean / (root(square) / bias + eps));                                        \
        }                                                                                                              \
    }

OPTIMISE(f32, float, __builtin_sqrtf)
OPTIMISE(f64, double, __builtin_sqrt)

const eddy_optimise_blocks EDDY_ISA_NAME(eddy_cpu_optimise_blocks) = {sgd_f32,      sgd_f64,  momentum_f32,
                                                                      momentum_f64, adam_f32, adam_f64};
