/* Every CPU kernel that is not elementwise. Operands in brackets: inputs -> outputs; attribute structs are in
 * kernels/attributes.h. Unless said otherwise a kernel takes every dtype and every layout. */
#ifndef EDDY_KERNELS_CPU_KERNELS_H
#define EDDY_KERNELS_CPU_KERNELS_H

#include <kernels/kernel.h>

/* fill.c [-> out] */
extern const eddy_kernel eddy_cpu_empty;
extern const eddy_kernel eddy_cpu_full;
extern const eddy_kernel eddy_cpu_arange;
extern const eddy_kernel eddy_cpu_linspace;
extern const eddy_kernel eddy_cpu_eye;

/* copy.c [in -> out]: any pair of dtypes. Float to integer truncates; out of range saturates and NaN becomes 0. Integer to
 * integer wraps around. Anything to bool is != 0. i64 to f16 and bf16 passes through f32. */
extern const eddy_kernel eddy_cpu_copy;

/* reduce.c [in -> out]. sum, prod: integers and bool into i64, floats into their own dtype. */
extern const eddy_kernel eddy_cpu_sum;
extern const eddy_kernel eddy_cpu_prod;
/* Floats. */
extern const eddy_kernel eddy_cpu_mean;
extern const eddy_kernel eddy_cpu_var;
extern const eddy_kernel eddy_cpu_std;
extern const eddy_kernel eddy_cpu_norm;
extern const eddy_kernel eddy_cpu_logsumexp;
/* At least one element is reduced; NaN wins. */
extern const eddy_kernel eddy_cpu_max;
extern const eddy_kernel eddy_cpu_min;
/* Any dtype into bool. */
extern const eddy_kernel eddy_cpu_any;
extern const eddy_kernel eddy_cpu_all;
/* argmax.c [in -> out i64]: the first of equals, NaN wins; a row-major number within the reduced dims. */
extern const eddy_kernel eddy_cpu_argmax;
extern const eddy_kernel eddy_cpu_argmin;
/* [in -> values, indices i64]: the same along one axis. */
extern const eddy_kernel eddy_cpu_max_dim;
extern const eddy_kernel eddy_cpu_min_dim;

/* scan.c [in -> out]: floats into their own dtype, integers and bool into i64. */
extern const eddy_kernel eddy_cpu_cumsum;
extern const eddy_kernel eddy_cpu_cumprod;
/* [grad, in -> din]: floats */
extern const eddy_kernel eddy_cpu_cumprod_backward;

/* sort.c [in -> indices i64] or [in -> values, indices i64]; along an axis, stable */
extern const eddy_kernel eddy_cpu_sort;
/* [in -> values, indices i64], the length of whose axis is k */
extern const eddy_kernel eddy_cpu_topk;
/* unique.c [in -> values [n]] or [in -> values [n], inverse i64 (in's shape), counts i64 [n]], late shapes */
extern const eddy_kernel eddy_cpu_unique;
/* bincount.c [in [n] integers, weights [n] or absent -> out i64, or f32 or f64 with weights], late shape; a negative number fails
 * with its position */
extern const eddy_kernel eddy_cpu_bincount;

/* softmax.c: floats. [in -> out], backward [grad, output -> dinput] */
extern const eddy_kernel eddy_cpu_softmax;
extern const eddy_kernel eddy_cpu_log_softmax;
extern const eddy_kernel eddy_cpu_softmax_backward;
extern const eddy_kernel eddy_cpu_log_softmax_backward;
/* loss.c: [input [N, C] float, target [N] i64 -> scalar or [N]]; a label outside [0, C) fails with its row. */
extern const eddy_kernel eddy_cpu_cross_entropy;
/* [grad (scalar or [N]), input, target -> dinput] */
extern const eddy_kernel eddy_cpu_cross_entropy_backward;

/* [input [N, C] float, target [N] i64, weight [C] or absent -> scalar or [N]] */
extern const eddy_kernel eddy_cpu_nll_loss;
/* [grad (scalar or [N]), target, weight or absent -> dinput] */
extern const eddy_kernel eddy_cpu_nll_loss_backward;
/* pair_loss.c: floats. [input, target -> scalar or the joint shape], backward [grad (scalar or the joint shape), input,
 * target -> dinput of the joint shape]; bce_with_logits has two operands more behind target, weight and the weight of
 * positive answers, each may be absent. The targets' gradients of mse, l1 and smooth_l1 are minus those of the input. */
extern const eddy_kernel eddy_cpu_mse_loss;
extern const eddy_kernel eddy_cpu_mse_loss_backward;
extern const eddy_kernel eddy_cpu_l1_loss;
extern const eddy_kernel eddy_cpu_l1_loss_backward;
extern const eddy_kernel eddy_cpu_smooth_l1_loss;
extern const eddy_kernel eddy_cpu_smooth_l1_loss_backward;
extern const eddy_kernel eddy_cpu_bce_with_logits;
extern const eddy_kernel eddy_cpu_bce_with_logits_backward;
extern const eddy_kernel eddy_cpu_bce_with_logits_backward_target;
extern const eddy_kernel eddy_cpu_kl_div;
extern const eddy_kernel eddy_cpu_kl_div_backward;
extern const eddy_kernel eddy_cpu_kl_div_backward_target;

/* conv.c: floats. [x [N, C, H, W], weight, bias or absent -> out]; images may lack N. */
extern const eddy_kernel eddy_cpu_conv2d;
extern const eddy_kernel eddy_cpu_conv_transpose2d;
/* conv_weight.c: [grad, x -> dweight] */
extern const eddy_kernel eddy_cpu_conv2d_backward_weight;

/* norm.c: floats. Absent weights are 1, absent biases 0. */
extern const eddy_kernel eddy_cpu_layer_norm; /* [x, weight or absent, bias or absent -> out] */
extern const eddy_kernel eddy_cpu_rms_norm;   /* [x, weight or absent -> out] */
extern const eddy_kernel eddy_cpu_group_norm; /* [x [N, C, ..], weight [C] or absent, bias [C] or absent -> out] */
/* [x [N, C, ..], mean [C], variance [C], weight [C] or absent, bias [C] or absent -> out]; training takes the statistics of
 * x and blends them into mean and variance, which may be absent. */
extern const eddy_kernel eddy_cpu_batch_norm;
extern const eddy_kernel eddy_cpu_batch_norm_training;
/* [grad, x, weight or absent -> dx] */
extern const eddy_kernel eddy_cpu_layer_norm_backward;
extern const eddy_kernel eddy_cpu_rms_norm_backward;
extern const eddy_kernel eddy_cpu_group_norm_backward;
extern const eddy_kernel eddy_cpu_batch_norm_backward;
/* [grad, x -> dweight] */
extern const eddy_kernel eddy_cpu_layer_norm_backward_weight;
extern const eddy_kernel eddy_cpu_rms_norm_backward_weight;
extern const eddy_kernel eddy_cpu_group_norm_backward_weight;
extern const eddy_kernel eddy_cpu_batch_norm_backward_weight;

/* join.c [in ... -> out] */
extern const eddy_kernel eddy_cpu_cat;
extern const eddy_kernel eddy_cpu_stack;
extern const eddy_kernel eddy_cpu_pad;
/* repeat.c [in -> out] */
extern const eddy_kernel eddy_cpu_repeat;
extern const eddy_kernel eddy_cpu_repeat_interleave;
extern const eddy_kernel eddy_cpu_flip;
extern const eddy_kernel eddy_cpu_roll;
/* index.c: indices are i64 or i32; one outside [0, bound) fails with its flat position among the indices. */
extern const eddy_kernel eddy_cpu_index_select; /* [in, index [n] -> out] */
extern const eddy_kernel eddy_cpu_gather;       /* [in, index -> out]; index and out have one shape */
extern const eddy_kernel eddy_cpu_one_hot;      /* [index -> out i64 [..., classes]] */
/* advanced_index.c: indices broadcast together, one for each of the first dims, and may be negative (embedding's may not) */
extern const eddy_kernel eddy_cpu_index;     /* [in, indices ... -> out] */
extern const eddy_kernel eddy_cpu_index_put; /* [in, indices ..., values -> out]; out may be in */
extern const eddy_kernel eddy_cpu_embedding; /* [index, weight [V, D] -> out] */
/* scatter.c: out may be in. Sums are the same for any team; f16 and bf16 are rounded once; bool is or. */
extern const eddy_kernel eddy_cpu_scatter;     /* [in, index, source -> out] */
extern const eddy_kernel eddy_cpu_scatter_add; /* the same */
extern const eddy_kernel eddy_cpu_index_add;   /* [in, index [n] or a number, source -> out] */
extern const eddy_kernel eddy_cpu_embedding_backward; /* [grad [.., D], index -> out [V, D]] */
/* mask.c: in and mask (bool) broadcast together */
extern const eddy_kernel eddy_cpu_masked_fill;    /* [in, mask -> out]; out may be in */
extern const eddy_kernel eddy_cpu_masked_select;  /* [in, mask -> out [n]], late shape */
extern const eddy_kernel eddy_cpu_masked_scatter; /* [in, mask, source -> out]; out may be in */
/* diagonal.c */
extern const eddy_kernel eddy_cpu_tril; /* [in -> out]; out may be in */
extern const eddy_kernel eddy_cpu_triu;
extern const eddy_kernel eddy_cpu_diag; /* [in of rank 1 or 2 -> out of the other] */
/* nonzero.c [in -> out i64 [n, rank]], late shape */
extern const eddy_kernel eddy_cpu_nonzero;

/* random.c [-> out] */
extern const eddy_kernel eddy_cpu_rand;     /* floats, [0, 1) */
extern const eddy_kernel eddy_cpu_randn;    /* floats */
extern const eddy_kernel eddy_cpu_randperm; /* i64, i32: a permutation of 0 .. n - 1 */
extern const eddy_kernel eddy_cpu_randint;  /* integers, [low, high) */
/* dropout.c: floats. [x -> out], [grad -> dx]; the mask is a function of seed, counter and the element's number. */
extern const eddy_kernel eddy_cpu_dropout;
extern const eddy_kernel eddy_cpu_dropout_backward;
/* [p -> out]: 1 with probability p; a p outside [0, 1] fails with its position. */
extern const eddy_kernel eddy_cpu_bernoulli;
/* multinomial.c: [weights [K] or [N, K] -> out i64 [count] or [N, count]]; weights that are no distribution fail with their
 * row. */
extern const eddy_kernel eddy_cpu_multinomial;

/* rope.c: floats. [x [.., S, D], positions [S] i64 -> out] */
extern const eddy_kernel eddy_cpu_rope;
/* sdpa.c: floats. [q [.., L, D], k [.., S, D], v [.., S, E], mask [.., L, S] bool or float or absent -> out [.., L, E]];
 * backward [grad, output, q, k, v, mask or absent -> dq, dk, dv]; batch dims broadcast, gradients have them all. */
extern const eddy_kernel eddy_cpu_sdpa;
extern const eddy_kernel eddy_cpu_sdpa_backward;

/* pool.c [x -> out], [x -> values, indices i64]: images [N, C, H, W] or [C, H, W]; each window has an element */
extern const eddy_kernel eddy_cpu_max_pool2d;
extern const eddy_kernel eddy_cpu_max_pool2d_with_indices;
extern const eddy_kernel eddy_cpu_avg_pool2d;          /* floats */
extern const eddy_kernel eddy_cpu_adaptive_avg_pool2d; /* floats */
/* pool_backward.c [grad, indices -> dx]: sums as scatter.c's */
extern const eddy_kernel eddy_cpu_max_pool2d_backward;
/* pool_route.c [grad, x -> dx]: floats */
extern const eddy_kernel eddy_cpu_max_pool2d_backward_from_x;
/* [grad -> dx], floats */
extern const eddy_kernel eddy_cpu_avg_pool2d_backward;
extern const eddy_kernel eddy_cpu_adaptive_avg_pool2d_backward;
/* interpolate.c [x -> out]: images, none empty; bilinear: floats. [grad -> dx]: floats */
extern const eddy_kernel eddy_cpu_interpolate;
extern const eddy_kernel eddy_cpu_interpolate_backward;
/* compare.c [a, b -> bool]: equal takes any shapes of one dtype, allclose what broadcasts */
extern const eddy_kernel eddy_cpu_equal;
extern const eddy_kernel eddy_cpu_allclose;

/* optimise.c: floats, in place. sgd [params[n], grads[n]], with momentum [params[n], grads[n], velocity[n]], adam and adamw [params[n], grads[n], m[n], v[n], step]: `step` is a 0-dim
 * i64 that the kernel advances by 1 first. Items of a list may differ in shape. */
extern const eddy_kernel eddy_cpu_sgd_step;
extern const eddy_kernel eddy_cpu_sgd_momentum_step;
extern const eddy_kernel eddy_cpu_adam_step;
extern const eddy_kernel eddy_cpu_adamw_step;
/* clip_gradient.c: [grads[n], norm (rank 0, may be absent)], floats, in place */
extern const eddy_kernel eddy_cpu_clip_grad_norm;

/* matrix.c: floats and integers (wrap-around). [a [.., M, K], b [.., K, N] -> out [.., M, N]], batch dims broadcast */
extern const eddy_kernel eddy_cpu_matmul;
/* addmm.c [in, a [M, K], b [K, N] -> out [M, N]]; in broadcasts to out */
extern const eddy_kernel eddy_cpu_addmm;
/* [x [.., K], w [N, K], bias [N] or absent -> out [.., N]] */
extern const eddy_kernel eddy_cpu_linear;

#endif
