/* Shape rules: what the outputs of an op are like, given its inputs and attributes. Each checks what the kernel
 * relies on, normalises axes in the attribute struct, and fails with one sentence (the interpreter adds op and
 * operands). Pure but for the error slot; the calling thread. One source per family of the op list. */
#ifndef EDDY_FUNCTIONAL_INFER_INFER_H
#define EDDY_FUNCTIONAL_INFER_INFER_H

#include <interpreter/op.h>

/* create.c */
eddy_status eddy_infer_create(eddy_infer *infer);
eddy_status eddy_infer_arange(eddy_infer *infer);
eddy_status eddy_infer_linspace(eddy_infer *infer);
eddy_status eddy_infer_eye(eddy_infer *infer);
eddy_status eddy_infer_like(eddy_infer *infer);
eddy_status eddy_infer_random(eddy_infer *infer);
eddy_status eddy_infer_randperm(eddy_infer *infer);
/* move.c */
eddy_status eddy_infer_same(eddy_infer *infer);
eddy_status eddy_infer_cast(eddy_infer *infer);
eddy_status eddy_infer_copy_into(eddy_infer *infer);
/* reduce.c */
eddy_status eddy_infer_sum(eddy_infer *infer);
eddy_status eddy_infer_mean(eddy_infer *infer);
eddy_status eddy_infer_max(eddy_infer *infer);
eddy_status eddy_infer_argmax(eddy_infer *infer);
eddy_status eddy_infer_var(eddy_infer *infer);
eddy_status eddy_infer_norm(eddy_infer *infer);
eddy_status eddy_infer_any(eddy_infer *infer);
eddy_status eddy_infer_max_dim(eddy_infer *infer);
/* scan.c */
eddy_status eddy_infer_scan(eddy_infer *infer);
eddy_status eddy_infer_scan_backward(eddy_infer *infer);
/* sort.c */
eddy_status eddy_infer_sort(eddy_infer *infer);
eddy_status eddy_infer_topk(eddy_infer *infer);
eddy_status eddy_infer_unique(eddy_infer *infer);
eddy_status eddy_infer_bincount(eddy_infer *infer);
/* matrix.c */
eddy_status eddy_infer_matmul(eddy_infer *infer);
eddy_status eddy_infer_mm(eddy_infer *infer);
eddy_status eddy_infer_bmm(eddy_infer *infer);
eddy_status eddy_infer_addmm(eddy_infer *infer);
eddy_status eddy_infer_linear(eddy_infer *infer);
/* softmax.c */
eddy_status eddy_infer_softmax(eddy_infer *infer);
eddy_status eddy_infer_softmax_backward(eddy_infer *infer);
eddy_status eddy_infer_cross_entropy(eddy_infer *infer);
eddy_status eddy_infer_cross_entropy_backward(eddy_infer *infer);
/* loss.c */
eddy_status eddy_infer_pair_loss(eddy_infer *infer);
eddy_status eddy_infer_pair_loss_backward(eddy_infer *infer);
eddy_status eddy_infer_nll_loss(eddy_infer *infer);
eddy_status eddy_infer_nll_loss_backward(eddy_infer *infer);
/* norm.c */
eddy_status eddy_infer_layer_norm(eddy_infer *infer);
eddy_status eddy_infer_layer_norm_backward(eddy_infer *infer);
eddy_status eddy_infer_layer_norm_backward_weight(eddy_infer *infer);
eddy_status eddy_infer_group_norm(eddy_infer *infer);
eddy_status eddy_infer_group_norm_backward(eddy_infer *infer);
eddy_status eddy_infer_group_norm_backward_weight(eddy_infer *infer);
eddy_status eddy_infer_batch_norm(eddy_infer *infer);
eddy_status eddy_infer_batch_norm_training(eddy_infer *infer);
eddy_status eddy_infer_batch_norm_backward(eddy_infer *infer);
eddy_status eddy_infer_batch_norm_backward_weight(eddy_infer *infer);
eddy_status eddy_infer_channel_sum(eddy_infer *infer);
/* attention.c */
eddy_status eddy_infer_sdpa(eddy_infer *infer);
eddy_status eddy_infer_sdpa_backward(eddy_infer *infer);
eddy_status eddy_infer_rope(eddy_infer *infer);
/* sample.c */
eddy_status eddy_infer_dropout(eddy_infer *infer);
eddy_status eddy_infer_dropout_backward(eddy_infer *infer);
eddy_status eddy_infer_bernoulli(eddy_infer *infer);
eddy_status eddy_infer_multinomial(eddy_infer *infer);
eddy_status eddy_infer_randint(eddy_infer *infer);
/* index.c */
eddy_status eddy_infer_index_select(eddy_infer *infer);
eddy_status eddy_infer_gather(eddy_infer *infer);
eddy_status eddy_infer_one_hot(eddy_infer *infer);
eddy_status eddy_infer_nonzero(eddy_infer *infer);
eddy_status eddy_infer_scatter(eddy_infer *infer);
eddy_status eddy_infer_index_add(eddy_infer *infer);
eddy_status eddy_infer_index(eddy_infer *infer);
eddy_status eddy_infer_index_put(eddy_infer *infer);
eddy_status eddy_infer_embedding(eddy_infer *infer);
eddy_status eddy_infer_embedding_backward(eddy_infer *infer);
eddy_status eddy_infer_masked(eddy_infer *infer);
eddy_status eddy_infer_masked_select(eddy_infer *infer);
eddy_status eddy_infer_masked_scatter(eddy_infer *infer);
eddy_status eddy_infer_triangle(eddy_infer *infer);
eddy_status eddy_infer_diag(eddy_infer *infer);
eddy_status eddy_infer_diag_backward(eddy_infer *infer);
/* join.c */
eddy_status eddy_infer_cat(eddy_infer *infer);
eddy_status eddy_infer_stack(eddy_infer *infer);
eddy_status eddy_infer_pad(eddy_infer *infer);
eddy_status eddy_infer_repeat(eddy_infer *infer);
eddy_status eddy_infer_repeat_interleave(eddy_infer *infer);
eddy_status eddy_infer_flip(eddy_infer *infer);
eddy_status eddy_infer_roll(eddy_infer *infer);
/* optimise.c */
eddy_status eddy_infer_sgd_step(eddy_infer *infer);
eddy_status eddy_infer_sgd_momentum_step(eddy_infer *infer);
eddy_status eddy_infer_adam_step(eddy_infer *infer);
eddy_status eddy_infer_clip_grad_norm(eddy_infer *infer);

#endif
