/* The kernels of CUDA devices that are not elementwise ops', under the names of the CPU's: where that runs eddy_cpu_copy, a CUDA device runs eddy_cuda_copy. Ops whose
 * kernel is not here have none there. */
#ifndef EDDY_KERNELS_CUDA_KERNELS_H
#define EDDY_KERNELS_CUDA_KERNELS_H

#include <kernels/kernel.h>

#define EDDY_CUDA_KERNEL_NAMES(row)                                                                \
    row(adam_step) row(adamw_step) row(adaptive_avg_pool2d) row(adaptive_avg_pool2d_backward)      \
        row(avg_pool2d) row(avg_pool2d_backward) row(batch_norm) row(batch_norm_backward) row(cat) \
            row(conv2d) row(conv_transpose2d) row(cumprod) row(cumsum) row(diag) row(dropout) row( \
                embedding) row(empty) row(equal) row(flip) row(group_norm_backward) row(index)     \
                row(index_put) row(interpolate) row(kl_div) row(kl_div_backward) row(layer_norm)   \
                    row(layer_norm_backward) row(linear) row(linspace) row(log_softmax) row(       \
                        masked_scatter) row(matmul) row(max) row(max_dim) row(max_pool2d_backward) \
                        row(mean) row(min) row(mse_loss) row(mse_loss_backward) row(nll_loss)      \
                            row(nll_loss_backward) row(norm) row(one_hot) row(pad) row(prod)       \
                                row(rand) row(randint) row(randn) row(randperm) row(repeat)        \
                                    row(repeat_interleave) row(rms_norm) row(roll) row(scatter)    \
                                        row(scatter_add) row(sdpa) row(sdpa_backward)              \
                                            row(sgd_momentum_step) row(sgd_step)                   \
                                                row(smooth_l1_loss) row(smooth_l1_loss_backward)   \
                                                    row(softmax) row(softmax_backward) row(sort)   \
                                                        row(stack) row(std) row(sum) row(topk)     \
                                                            row(tril) row(triu) row(var)

#define EDDY_CUDA_KERNEL_DECLARE(name) extern const eddy_kernel eddy_cuda_##name;
EDDY_CUDA_KERNEL_NAMES(EDDY_CUDA_KERNEL_DECLARE)
#undef EDDY_CUDA_KERNEL_DECLARE

#endif
