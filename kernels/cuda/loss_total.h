/* The sum of losses on CUDA devices: what its kernels are given (loss_total.cu), and the host's side (loss_total.c). */
#ifndef EDDY_KERNELS_CUDA_LOSS_TOTAL_H
#define EDDY_KERNELS_CUDA_LOSS_TOTAL_H

#include <kernels/cuda/parameters.h>
#include <kernels/loss_tree.h>

/* Losses that one block of threads adds by itself: a row a thread (kernels/loss_tree.h). Of more, another launch adds the rows before. */
#define EDDY_CUDA_LOSSES_OF_BLOCK 16384

/* More than any device's memory holds. */
#define EDDY_CUDA_LOSSES_MOST (INT64_C(1) << 36)

/* The divisors that a kernel leaves in the device's memory; their sum divides. */
#define EDDY_CUDA_DIVISORS 32

/* The dtypes of losses, name and enumerator: eddy_loss_total_<name>. */
#define EDDY_CUDA_LOSS_DTYPES(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)

/* A number by which is divided: the one that the host knows, or the sum of those that an earlier launch has left. */
typedef struct eddy_cuda_loss_divisor {
    const double *parts; /* NULL: `whole` */
    int64_t count;       /* of parts */
    double whole;
} eddy_cuda_loss_divisor;

typedef struct eddy_cuda_loss_total {
    eddy_cuda_gate gate;
    const double *losses; /* or the sums of their rows */
    double *sums;         /* eddy_loss_rows writes them */
    bool are_summed;      /* rows are */
    int64_t count;        /* of losses */
    eddy_cuda_loss_divisor divisor;
    void *out; /* one element */
} eddy_cuda_loss_total;

#ifndef __cplusplus
#include <kernels/kernel.h>

/* Bytes of a workspace that begins with so many losses and has place for sums behind. */
static inline size_t eddy_cuda_loss_bytes(int64_t count) {
    int64_t sums = count > EDDY_CUDA_LOSSES_OF_BLOCK ? count / EDDY_LOSS_ROW + 1 : 0;
    return (size_t)(count + sums) * sizeof(double);
}
/* Writes the sum of the losses at the beginning of the call's workspace, divided, to the last view. */
void eddy_cuda_add_losses(const eddy_kernel_call *call, int64_t count,
                          eddy_cuda_loss_divisor divisor);
#endif

#endif
