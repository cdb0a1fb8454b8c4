/* Losses of rows and labels on CUDA devices: cross_entropy, nll_loss, and their gradients. What their kernels are given (loss.cu, loss.c). Plain C.
 *
 * Kernels, each but the first for EDDY_CUDA_LOSS_DTYPES: eddy_label_counts and eddy_label_weights_<dtype> find a divisor, of the labels that are not
 * ignored; eddy_cross_entropy_<dtype>, eddy_nll_loss_<dtype>, and the same with _backward behind. */
#ifndef EDDY_KERNELS_CUDA_LOSS_H
#define EDDY_KERNELS_CUDA_LOSS_H

#include <kernels/cuda/loss_total.h>

/* The lanes in which powers are added, and the elements after which their sum is added to others, as on the CPU (kernels/cpu/softmax/softmax_block.h). */
#define EDDY_CUDA_ROW_LANES 16
#define EDDY_CUDA_ROW_CHUNK 4096

/* Strides in elements, along rows and classes. A block of threads works on `abreast` rows at once: `places` threads add the lanes of a chunk, and `team` times as many
 * work on a row. All three are powers of two, whose product is the number of threads. */
typedef struct eddy_cuda_label_loss {
    eddy_cuda_gate gate;
    const void *input, *weight, *grad; /* NULL: not of this kernel, or absent */
    const int64_t *target;
    void *out;
    double *losses;   /* of the rows; NULL: they are the output */
    double *divisors; /* as many as the divisor has parts; of the kernels that find them */
    eddy_cuda_loss_divisor divisor;
    int64_t rows, classes;
    int64_t input_strides[2], out_strides[2], target_stride, weight_stride, grad_stride;
    int64_t ignore_index;
    bool has_ignore_index;
    bool is_across; /* neighbouring threads have neighbouring rows, not neighbouring classes */
    uint32_t places, team, abreast;
} eddy_cuda_label_loss;

#endif
