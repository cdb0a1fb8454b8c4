/* The kernels of CUDA devices that are not elementwise ops', under the names of the CPU's: where that runs eddy_cpu_copy, a CUDA device runs eddy_cuda_copy. Ops whose
 * kernel is not here have none there. */
#ifndef EDDY_KERNELS_CUDA_KERNELS_H
#define EDDY_KERNELS_CUDA_KERNELS_H

#include <kernels/kernel.h>

/* clang-format off */
#define EDDY_CUDA_KERNEL_NAMES(row) \
    row(adam_step) row(adamw_step) row(adaptive_avg_pool2d) row(adaptive_avg_pool2d_backward) row(addmm) row(all) row(allclose) row(any) row(arange) \
    row(argmax) row(argmin) row(avg_pool2d) row(avg_pool2d_backward) row(batch_norm) row(batch_norm_backward) row(batch_norm_backward_weight) \
    row(batch_norm_training) row(bce_with_logits) row(bce_with_logits_backward) row(bce_with_logits_backward_target) row(bernoulli) \
    row(bincount) row(cat) \
    row(clip_grad_norm) row(conv2d) row(conv2d_backward_weight) row(conv_transpose2d) row(copy) row(cross_entropy) row(cross_entropy_backward) \
    row(cumprod) row(cumprod_backward) row(cumsum) row(diag) row(draw_get) row(draw_set) row(dropout) row(dropout_backward) \
    row(embedding) row(embedding_backward) row(empty) \
    row(equal) row(eye) row(flip) row(full) row(gather) row(group_norm) row(group_norm_backward) row(group_norm_backward_weight) row(index) \
    row(index_add) row(index_put) row(index_select) row(interpolate) row(interpolate_backward) row(kl_div) row(kl_div_backward) \
    row(kl_div_backward_target) row(l1_loss) row(l1_loss_backward) row(layer_norm) row(layer_norm_backward) row(layer_norm_backward_weight) \
    row(linear) row(linspace) row(list_get) row(list_set) row(log_softmax) row(log_softmax_backward) row(logsumexp) row(masked_fill) row(masked_scatter) row(masked_select) row(matmul) row(max) row(max_dim) \
    row(max_pool2d) row(max_pool2d_backward) row(max_pool2d_backward_from_x) row(max_pool2d_with_indices) row(mean) row(min) row(min_dim) \
    row(mse_loss) row(mse_loss_backward) row(multinomial) row(nll_loss) row(nll_loss_backward) row(nonzero) \
    row(norm) row(one_hot) row(pad) row(prod) row(rand) \
    row(randint) row(randn) row(randperm) row(repeat) row(repeat_interleave) row(rms_norm) row(rms_norm_backward) row(rms_norm_backward_weight) \
    row(roll) row(rope) row(scatter) row(scatter_add) row(sdpa) row(sdpa_backward) row(sgd_momentum_step) row(sgd_step) row(smooth_l1_loss) \
    row(smooth_l1_loss_backward) row(softmax) row(softmax_backward) row(sort) row(stack) row(std) row(sum) row(topk) row(tril) row(triu) \
    row(unique) row(var)
/* clang-format on */

/* Of no op: kernels/cuda/finite.h. */
#define EDDY_CUDA_CHECK_NAMES(row) row(check_infinity) row(check_finite)

#define EDDY_CUDA_KERNEL_DECLARE(name) extern const eddy_kernel eddy_cuda_##name;
EDDY_CUDA_KERNEL_NAMES(EDDY_CUDA_KERNEL_DECLARE)
EDDY_CUDA_CHECK_NAMES(EDDY_CUDA_KERNEL_DECLARE)
#undef EDDY_CUDA_KERNEL_DECLARE

#endif
