/* sdpa on CUDA devices: which kernels there are (attention.cu), what they are given, and the host's side (attention.c). Plain C. */
#ifndef EDDY_KERNELS_CUDA_ATTENTION_H
#define EDDY_KERNELS_CUDA_ATTENTION_H

#include <kernels/cuda/parameters.h>

/* Dtype, name and enumerator. eddy_attention_forward_<dtype>; of the gradient _rows_, _dq_ and _dkv_, in this order. */
#define EDDY_CUDA_ATTENTIONS(row) row(f32, F32) row(f64, F64) row(f16, F16) row(bf16, BF16)

enum {
    EDDY_CUDA_ATTENTION_Q,
    EDDY_CUDA_ATTENTION_K,
    EDDY_CUDA_ATTENTION_V,
    EDDY_CUDA_ATTENTION_MASK,
    EDDY_CUDA_ATTENTION_OUT,
    EDDY_CUDA_ATTENTION_GRAD,
    EDDY_CUDA_ATTENTION_DQ,
    EDDY_CUDA_ATTENTION_DK,
    EDDY_CUDA_ATTENTION_DV,
    EDDY_CUDA_ATTENTION_OPERANDS
};

enum { EDDY_CUDA_ATTENTION_NO_MASK, EDDY_CUDA_ATTENTION_HIDES, EDDY_CUDA_ATTENTION_ADDS };

/* Rows and columns of a tile, by the bytes of the compute type: shared memory holds a tile of weights. */
#define EDDY_CUDA_ATTENTION_TILE(bytes) ((bytes) == 8 ? 32 : 64)

/* A matrix of each batch. Strides in bytes, 0 where it is broadcast. */
typedef struct eddy_cuda_attention_operand {
    void *data;
    int64_t row, column, batch[EDDY_CUDA_RANK_MAX];
} eddy_cuda_attention_operand;

typedef struct eddy_cuda_attention {
    eddy_cuda_gate gate;
    eddy_cuda_attention_operand operands[EDDY_CUDA_ATTENTION_OPERANDS];
    int32_t rank; /* of the batches */
    int32_t mask;
    int64_t sizes[EDDY_CUDA_RANK_MAX];
    int64_t batches, rows, columns, width, value_width; /* L, S, D, E */
    void *
        statistics; /* of the gradient, in the compute type, for each row: the largest score, one over the sum, grad times output */
    double scale;
    uint64_t seed, counter;
    float least; /* a weight whose number is below it is dropped */
    double kept; /* what other weights are multiplied by */
    bool is_causal, drops;
} eddy_cuda_attention;

#endif
