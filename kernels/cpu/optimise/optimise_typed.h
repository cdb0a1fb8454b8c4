/* Functions of optimise_block.h for one element type.
 *
 * Algorithms: SGD with L2 decay; momentum (B. Polyak, 1964) and its form after Nesterov (I. Sutskever and others, 2013); Adam (D.
 * Kingma, J. Ba, 2015) and AdamW (I. Loshchilov, F. Hutter, 2019), with the order of operations of PyTorch's. */
#ifndef EDDY_KERNELS_CPU_OPTIMISE_TYPED_H
#define EDDY_KERNELS_CPU_OPTIMISE_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/optimise/optimise_block.h>
#include <kernels/cpu/typed.h>
#include <kernels/scalar_functions.h>

static void sgd(const eddy_sgd_numbers *numbers, void *params, const void *grads, int64_t count) {
    real *restrict p = params;
    const real *restrict g = grads;
    real lr = (real)numbers->lr, decay = (real)numbers->weight_decay;
    EDDY_EACH_APART (i, count)
        p[i] = p[i] - lr * (g[i] + decay * p[i]);
}

static void momentum(const eddy_momentum_numbers *numbers, void *params, const void *grads,
                     void *velocities, int64_t count) {
    real *restrict p = params, *restrict v = velocities;
    const real *restrict g = grads;
    real lr = (real)numbers->lr, kept = (real)numbers->momentum,
         decay = (real)numbers->weight_decay;
    real gradient_part = numbers->is_nesterov ? 1 : 0,
         velocity_part = numbers->is_nesterov ? kept : 1;
    EDDY_EACH_APART (i, count) {
        real gradient = g[i] + decay * p[i];
        real velocity = kept * v[i] + gradient;
        v[i] = velocity;
        p[i] = p[i] - lr * (gradient_part * gradient + velocity_part * velocity);
    }
}

static void adam(const eddy_adam_numbers *numbers, void *params, const void *grads, void *means,
                 void *squares, int64_t count) {
    real *restrict p = params, *restrict m = means, *restrict v = squares;
    const real *restrict g = grads;
    real rest1 = (real)(1 - numbers->beta1), beta2 = (real)numbers->beta2,
         rest2 = (real)(1 - numbers->beta2);
    real eps = (real)numbers->eps, decay = (real)numbers->weight_decay,
         step = (real)numbers->step_size;
    real bias = (real)numbers->root_of_bias2, shrink = (real)numbers->shrink;
    EDDY_EACH_APART (i, count) {
        real gradient = g[i] + decay * p[i];
        real mean = m[i] + rest1 * (gradient - m[i]);
        real square = v[i] * beta2 + rest2 * (gradient * gradient);
        m[i] = mean;
        v[i] = square;
        p[i] = p[i] * shrink - step * (mean / (EDDY_TYPED(eddy_sqrt)(square) / bias + eps));
    }
}

const eddy_optimise_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_optimise)) = {sgd, momentum, adam};

#endif
