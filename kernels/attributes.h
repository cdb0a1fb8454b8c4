/* The attribute structs of kernels that are not elementwise. The interpreter has resolved every default and normalised
 * every axis (0 .. rank - 1) before a kernel sees one. Plain C, also for CUDA sources. */
#ifndef EDDY_KERNELS_ATTRIBUTES_H
#define EDDY_KERNELS_ATTRIBUTES_H

#include <eddy/choice.h>
#include <eddy/scalar.h>
#include <eddy/shape.h>
#include <stdbool.h>
#include <stdint.h>

/* fill */
typedef struct eddy_attributes_full {
    eddy_scalar value;
} eddy_attributes_full;

typedef struct eddy_attributes_arange {
    eddy_scalar start;
    eddy_scalar step;
} eddy_attributes_arange;

typedef struct eddy_attributes_linspace {
    double start;
    double end;
} eddy_attributes_linspace;

/* sum, mean, prod, max, min, argmax, argmin, logsumexp, any, all */
typedef struct eddy_attributes_reduce {
    uint32_t axes;   /* bit d: dim d of the input is reduced */
    bool keeps_dims; /* the output has the reduced dims with size 1 */
} eddy_attributes_reduce;

/* var, std */
typedef struct eddy_attributes_var {
    uint32_t axes;
    bool keeps_dims;
    double correction; /* the sum of squares is divided by count - correction */
} eddy_attributes_var;

typedef struct eddy_attributes_norm {
    uint32_t axes;
    bool keeps_dims;
    double p;
} eddy_attributes_norm;

/* max_dim, min_dim */
typedef struct eddy_attributes_axis_keepdim {
    int32_t axis;
    bool keeps_dims;
} eddy_attributes_axis_keepdim;

/* softmax, log_softmax, their gradients, cat, stack, index_select, gather,
 * scatter, scatter_add, index_add, cumsum, cumprod and its gradient */
typedef struct eddy_attributes_axis {
    int32_t axis;
} eddy_attributes_axis;

/* sort, argsort */
typedef struct eddy_attributes_sort {
    int32_t axis;
    bool is_descending;
} eddy_attributes_sort;

typedef struct eddy_attributes_topk {
    int32_t axis;
    bool is_smallest;
} eddy_attributes_topk;

typedef struct eddy_attributes_bincount {
    int64_t minlength;
} eddy_attributes_bincount;

typedef struct eddy_attributes_cross_entropy {
    int32_t reduction; /* eddy_reduction */
    bool has_ignore_index;
    int64_t ignore_index;
} eddy_attributes_cross_entropy;

typedef struct eddy_attributes_one_hot {
    int64_t classes;
} eddy_attributes_one_hot;

typedef struct eddy_attributes_index_put {
    bool accumulates;
} eddy_attributes_index_put;

typedef struct eddy_attributes_embedding {
    int64_t padding_index; /* negative: none */
} eddy_attributes_embedding;

/* tril, triu, diag, diag_backward */
typedef struct eddy_attributes_diagonal {
    int64_t diagonal; /* 0 is the main diagonal; positive ones are above it */
} eddy_attributes_diagonal;

typedef struct eddy_attributes_addmm {
    double alpha;
    double beta;
} eddy_attributes_addmm;

typedef struct eddy_attributes_pad {
    eddy_shape before; /* one number for each axis */
    eddy_scalar value;
} eddy_attributes_pad;

typedef struct eddy_attributes_repeat_interleave {
    int64_t repeats;
    int32_t axis;
} eddy_attributes_repeat_interleave;

typedef struct eddy_attributes_flip {
    uint32_t axes; /* bit d: dim d runs backwards */
} eddy_attributes_flip;

typedef struct eddy_attributes_roll {
    eddy_shape
        shifts; /* for each axis, 0 .. dim - 1; of another rank than the input: dims[0] places in row-major order */
} eddy_attributes_roll;

/* rand, randn, randperm */
typedef struct eddy_attributes_random {
    uint64_t seed;
    uint64_t counter; /* the op's number in its generator */
} eddy_attributes_random;

typedef struct eddy_attributes_sgd_step {
    double lr;
    double weight_decay;
} eddy_attributes_sgd_step;

typedef struct eddy_attributes_sgd_momentum_step {
    double lr;
    double momentum;
    double weight_decay;
    bool is_nesterov;
} eddy_attributes_sgd_momentum_step;

typedef struct eddy_attributes_clip_grad_norm {
    double max_norm;
} eddy_attributes_clip_grad_norm;

/* adam_step, adamw_step */
typedef struct eddy_attributes_adam_step {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double
        weight_decay; /* adam: its product with the parameter is added to the gradient; adamw: the parameter shrinks by its product with lr */
} eddy_attributes_adam_step;

/* layer_norm, rms_norm and their gradients */
typedef struct eddy_attributes_layer_norm {
    int64_t axis_count; /* the number of last axes that share statistics */
    double eps;
} eddy_attributes_layer_norm;

typedef struct eddy_attributes_group_norm {
    int64_t groups;
    double eps;
} eddy_attributes_group_norm;

/* batch_norm (without momentum), batch_norm_training and its gradients */
typedef struct eddy_attributes_batch_norm {
    double momentum;
    double eps;
} eddy_attributes_batch_norm;

/* mse_loss, l1_loss, smooth_l1_loss, bce_with_logits, kl_div, and their gradients */
typedef struct eddy_attributes_pair_loss {
    double beta;        /* smooth_l1_loss */
    int32_t reduction;  /* eddy_reduction */
    bool target_is_log; /* kl_div */
} eddy_attributes_pair_loss;

typedef struct eddy_attributes_randint {
    uint64_t seed;
    uint64_t counter;
    int64_t low;
    int64_t high; /* exclusive */
} eddy_attributes_randint;

typedef struct eddy_attributes_dropout {
    uint64_t seed;
    uint64_t counter;
    double p; /* probability that an element is dropped */
} eddy_attributes_dropout;

/* Seed and counter are signed, as in the public function. They have the same bits as those of dropout. */
typedef struct eddy_attributes_dropout_backward {
    int64_t seed;
    int64_t counter;
    double p;
} eddy_attributes_dropout_backward;

typedef struct eddy_attributes_multinomial {
    uint64_t seed;
    uint64_t counter;
    int64_t count; /* samples per row */
    bool has_replacement;
} eddy_attributes_multinomial;

/* conv2d, conv2d_backward_weight, conv_transpose2d */
typedef struct eddy_attributes_conv {
    eddy_pair stride, padding, dilation;
    int64_t groups;
} eddy_attributes_conv;

/* max_pool2d, avg_pool2d and their gradients; the rule has filled in the defaults */
typedef struct eddy_attributes_pool {
    eddy_pair kernel_size, stride, padding, dilation;
    int64_t divisor_override; /* avg; 0: none */
    bool excludes_padding;    /* avg */
} eddy_attributes_pool;

/* interpolate and its gradient */
typedef struct eddy_attributes_interpolate {
    double scale; /* 0: the ratio of the sizes */
    int32_t mode; /* eddy_mode */
    bool aligns_corners;
} eddy_attributes_interpolate;

typedef struct eddy_attributes_allclose {
    double rtol;
    double atol;
    bool nan_is_equal;
} eddy_attributes_allclose;

typedef struct eddy_attributes_rope {
    double base;
    bool is_interleaved;
} eddy_attributes_rope;

typedef struct eddy_attributes_sdpa {
    uint64_t seed;    /* 0 without dropout */
    uint64_t counter; /* 0 without dropout */
    double dropout;   /* probability that a weight is dropped */
    double scale;     /* 0: one over the root of the width */
    bool is_causal;
} eddy_attributes_sdpa;

/* Seed and counter are signed, as in the public function. They have the same bits as those of sdpa. */
typedef struct eddy_attributes_sdpa_backward {
    int64_t seed;
    int64_t counter;
    double dropout;
    double scale;
    bool is_causal;
} eddy_attributes_sdpa_backward;

#endif
