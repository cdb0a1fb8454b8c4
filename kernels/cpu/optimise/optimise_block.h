/* One pass of an optimiser over contiguous elements. */
#ifndef EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H
#define EDDY_KERNELS_CPU_OPTIMISE_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdbool.h>
#include <stdint.h>

/* Everything that does not depend on the element, in double; f32 loops round each number once. */
typedef struct eddy_sgd_numbers {
    double lr, weight_decay;
} eddy_sgd_numbers;

typedef struct eddy_momentum_numbers {
    double lr, momentum, weight_decay;
    bool is_nesterov;
} eddy_momentum_numbers;

typedef struct eddy_adam_numbers {
    double beta1, beta2, eps, weight_decay;
    double shrink;        /* times the parameter, first */
    double step_size;     /* lr / (1 - beta1^step) */
    double root_of_bias2; /* sqrt(1 - beta2^step) */
} eddy_adam_numbers;

typedef struct eddy_optimise_blocks {
    void (*sgd_f32)(const eddy_sgd_numbers *numbers, float *p, const float *g, int64_t count);
    void (*sgd_f64)(const eddy_sgd_numbers *numbers, double *p, const double *g, int64_t count);
    void (*momentum_f32)(const eddy_momentum_numbers *numbers, float *p, const float *g, float *v, int64_t count);
    void (*momentum_f64)(const eddy_momentum_numbers *numbers, double *p, const double *g, double *v, int64_t count);
    void (*adam_f32)(const eddy_adam_numbers *numbers, float *p, const float *g, float *m, float *v, int64_t count);
    void (*adam_f64)(const eddy_adam_numbers *numbers, double *p, const double *g, double *m, double *v, int64_t count);
} eddy_optimise_blocks;

EDDY_ISA_DECLARE(eddy_optimise_blocks, eddy_cpu_optimise_blocks)

#endif
