/* Losses of an input and a target on CUDA devices: which kernels there are, and what they are given (pair_loss.cu, pair_loss.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_PAIR_LOSS_H
#define EDDY_KERNELS_CUDA_PAIR_LOSS_H

#include <kernels/cuda/loss_total.h>

/* Functions of kernels/pair_loss.h, for each of EDDY_CUDA_LOSS_DTYPES: eddy_loss_<function>_<dtype>_dense and ..._strided; of a loss also ..._sums. */
#define EDDY_CUDA_PAIR_LOSSES(row, dtype, of)                                                      \
    row(mse, dtype, of) row(l1, dtype, of) row(smooth_l1, dtype, of) row(bce, dtype, of)           \
        row(kl, dtype, of) row(kl_log, dtype, of)
#define EDDY_CUDA_PAIR_LOSS_GRADIENTS(row, dtype, of)                                              \
    row(mse_by_input, dtype, of) row(l1_by_input, dtype, of) row(smooth_l1_by_input, dtype, of)    \
        row(bce_by_input, dtype, of) row(kl_by_input, dtype, of) row(kl_log_by_input, dtype, of)   \
            row(bce_by_target, dtype, of) row(kl_by_target, dtype, of)                             \
                row(kl_log_by_target, dtype, of)

/* Elements of a sum in the dtype that is computed in, as on the CPU (kernels/cpu/loss/loss_block.h). */
#define EDDY_CUDA_LOSS_CHUNK 1024

/* The output is operand 0, so that dims can be sorted by it. An absent operand is 1. */
enum {
    EDDY_CUDA_LOSS_OUT,
    EDDY_CUDA_LOSS_INPUT,
    EDDY_CUDA_LOSS_TARGET,
    EDDY_CUDA_LOSS_WEIGHT,
    EDDY_CUDA_LOSS_POSITIVE,
    EDDY_CUDA_LOSS_GRAD,
    EDDY_CUDA_LOSS_OPERANDS
};

/* f(input, target, positive, beta) weight factor grad */
typedef struct eddy_cuda_pair_loss {
    eddy_cuda_gate gate;
    void *data[EDDY_CUDA_LOSS_OPERANDS]; /* NULL: absent */
    double *sums;                        /* of chunks; else the output has the elements */
    const void *factor;                  /* one element, divided by the divisor; NULL: 1 */
    double divisor, beta;
    int64_t count;
    uint32_t broadcast; /* dense: bit per operand that is one element for all */
    bool is_aligned;    /* dense: all others begin at multiples of 16 */
    int32_t rank;       /* dims outermost first, strides in bytes */
    eddy_cuda_divisor by[EDDY_CUDA_RANK_MAX]; /* of divisor 0, where a dim is 2^31 or more */
    int64_t sizes[EDDY_CUDA_RANK_MAX];
    int64_t strides[EDDY_CUDA_LOSS_OPERANDS][EDDY_CUDA_RANK_MAX];
} eddy_cuda_pair_loss;

#endif
