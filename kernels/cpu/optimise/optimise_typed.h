/* Functions of optimise_block.h for one element type. What does not depend on the element is copied first: stores to elements of f64 could change it. */
#ifndef EDDY_KERNELS_CPU_OPTIMISE_TYPED_H
#define EDDY_KERNELS_CPU_OPTIMISE_TYPED_H

#include <kernels/cpu/lanes.h>
#include <kernels/cpu/optimise/optimise_block.h>
#include <kernels/cpu/typed.h>

static void sgd(const eddy_sgd_numbers *numbers, void *params, const void *grads, int64_t count) {
    const eddy_sgd_numbers by = *numbers;
    real *restrict p = params;
    const real *restrict g = grads;
    EDDY_EACH_APART (i, count)
        EDDY_TYPED(eddy_sgd)(&by, &p[i], g[i]);
}

static void momentum(const eddy_momentum_numbers *numbers, void *params, const void *grads,
                     void *velocities, int64_t count) {
    const eddy_momentum_numbers by = *numbers;
    real *restrict p = params, *restrict v = velocities;
    const real *restrict g = grads;
    EDDY_EACH_APART (i, count)
        EDDY_TYPED(eddy_momentum)(&by, &p[i], g[i], &v[i]);
}

static void adam(const eddy_adam_numbers *numbers, void *params, const void *grads, void *means,
                 void *squares, int64_t count) {
    const eddy_adam_numbers by = *numbers;
    real *restrict p = params, *restrict m = means, *restrict v = squares;
    const real *restrict g = grads;
    EDDY_EACH_APART (i, count)
        EDDY_TYPED(eddy_adam)(&by, &p[i], g[i], &m[i], &v[i]);
}

const eddy_optimise_ops EDDY_ISA_NAME(EDDY_TYPED(eddy_cpu_optimise)) = {sgd, momentum, adam};

#endif
