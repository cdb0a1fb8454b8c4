/* The step of an optimiser for one element. For CUDA sources too.
 *
 * Algorithms: SGD with L2 decay; momentum (B. Polyak, 1964) and its form after Nesterov (I. Sutskever and others, 2013); Adam (D.
 * Kingma, J. Ba, 2015) and AdamW (I. Loshchilov, F. Hutter, 2019), with the order of operations of PyTorch's. */
#ifndef EDDY_KERNELS_OPTIMISE_H
#define EDDY_KERNELS_OPTIMISE_H

#include <base/builtin.h>

/* All values that do not depend on the element, in double; f32 rounds each of them once. */
typedef struct eddy_sgd_numbers {
    double lr, weight_decay;
} eddy_sgd_numbers;

typedef struct eddy_momentum_numbers {
    double lr, momentum, weight_decay;
    bool is_nesterov;
} eddy_momentum_numbers;

typedef struct eddy_adam_numbers {
    double beta1, beta2, eps, weight_decay;
    double shrink;        /* factor of the parameter, before the step */
    double step_size;     /* lr / (1 - beta1^step) */
    double root_of_bias2; /* sqrt(1 - beta2^step) */
} eddy_adam_numbers;

/* Each takes the parameter p, the gradient g and the states of an element, and updates all but g. */
#define EDDY_OPTIMISE_STEPS(tag, real)                                                             \
    EDDY_SCALAR void eddy_sgd_##tag(const eddy_sgd_numbers *numbers, real *p, real g) {            \
        real lr = (real)numbers->lr, decay = (real)numbers->weight_decay;                          \
        *p = *p - lr * (g + decay * *p);                                                           \
    }                                                                                              \
    EDDY_SCALAR void eddy_momentum_##tag(const eddy_momentum_numbers *numbers, real *p, real g,    \
                                         real *v) {                                                \
        real lr = (real)numbers->lr, kept = (real)numbers->momentum,                               \
             decay = (real)numbers->weight_decay;                                                  \
        real gradient_part = numbers->is_nesterov ? 1 : 0,                                         \
             velocity_part = numbers->is_nesterov ? kept : 1;                                      \
        real gradient = g + decay * *p, velocity = kept * *v + gradient;                           \
        *v = velocity;                                                                             \
        *p = *p - lr * (gradient_part * gradient + velocity_part * velocity);                      \
    }                                                                                              \
    EDDY_SCALAR void eddy_adam_##tag(const eddy_adam_numbers *numbers, real *p, real g, real *m,   \
                                     real *v) {                                                    \
        real rest1 = (real)(1 - numbers->beta1), beta2 = (real)numbers->beta2,                     \
             rest2 = (real)(1 - numbers->beta2);                                                   \
        real eps = (real)numbers->eps, decay = (real)numbers->weight_decay,                        \
             step = (real)numbers->step_size;                                                      \
        real bias = (real)numbers->root_of_bias2, shrink = (real)numbers->shrink;                  \
        real gradient = g + decay * *p;                                                            \
        real mean = *m + rest1 * (gradient - *m);                                                  \
        real square = *v * beta2 + rest2 * (gradient * gradient);                                  \
        *m = mean;                                                                                 \
        *v = square;                                                                               \
        *p = *p * shrink - step * (mean / (eddy_sqrt_##tag(square) / bias + eps));                 \
    }

EDDY_OPTIMISE_STEPS(f32, float)
EDDY_OPTIMISE_STEPS(f64, double)
#undef EDDY_OPTIMISE_STEPS

#endif
