/* One pass of an optimiser over contiguous elements. */
#ifndef EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H
#define EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* All values that do not depend on the element, in double; f32 loops round each of them once. */
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

/* Parameters, gradients and the optimiser's states, of f32 or f64; all but the gradients are updated in place. */
typedef struct eddy_optimise_ops {
    void (*sgd)(const eddy_sgd_numbers *numbers, void *params, const void *grads, int64_t count);
    void (*momentum)(const eddy_momentum_numbers *numbers, void *params, const void *grads,
                     void *velocity, int64_t count);
    void (*adam)(const eddy_adam_numbers *numbers, void *params, const void *grads, void *means,
                 void *squares, int64_t count);
} eddy_optimise_ops;

EDDY_ISA_DECLARE(eddy_optimise_ops, eddy_cpu_optimise_f32)
EDDY_ISA_DECLARE(eddy_optimise_ops, eddy_cpu_optimise_f64)

#endif
