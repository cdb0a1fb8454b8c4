/* One pass of an optimiser over contiguous elements. */
#ifndef EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H
#define EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <kernels/optimise.h>

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
