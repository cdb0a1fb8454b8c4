/* Losses of pairs of elements, and their derivatives, on contiguous f32 or f64. */
#ifndef EDDY_KERNELS_CPU_LOSS_BLOCK_H
#define EDDY_KERNELS_CPU_LOSS_BLOCK_H

#include <kernels/cpu/isa.h>
#include <stdint.h>

/* Elements at a time; sums are taken over such chunks. */
#define EDDY_LOSS_CHUNK 1024

typedef enum eddy_loss_kind {
    EDDY_LOSS_MSE,
    EDDY_LOSS_L1,
    EDDY_LOSS_SMOOTH_L1,
    EDDY_LOSS_BCE,    /* of logits */
    EDDY_LOSS_KL,     /* the target is a probability */
    EDDY_LOSS_KL_LOG, /* the target is the logarithm of one */
    EDDY_LOSS_KINDS
} eddy_loss_kind;

/* y = f(x, target); y overlaps none of these. `positive` holds the weights of positive answers (BCE only); beta is used by
 * SMOOTH_L1. */
typedef void eddy_loss_fn(void *y, const void *x, const void *target, const void *positive,
                          double beta, int64_t count);

typedef struct eddy_loss_ops {
    eddy_loss_fn *forward[EDDY_LOSS_KINDS];
    eddy_loss_fn *by_input[EDDY_LOSS_KINDS]; /* the derivative with respect to x */
    eddy_loss_fn
        *by_target[EDDY_LOSS_KINDS]; /* with respect to the target; NULL: minus the other */
    /* x = x * factors * factor */
    void (*scale)(void *x, const void *factors, double factor, int64_t count);
    /* x = log(x) */
    void (*log)(double *x, int64_t count);
} eddy_loss_ops;

EDDY_ISA_DECLARE(eddy_loss_ops, eddy_cpu_loss_f32)
EDDY_ISA_DECLARE(eddy_loss_ops, eddy_cpu_loss_f64)

#endif
