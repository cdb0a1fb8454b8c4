/* The compiled kernels that are written by hand, one image a file of this folder (kernels/cuda/meson.build); those of elementwise ops stand in
 * functional/cuda_kernels.h. */
#ifndef EDDY_KERNELS_CUDA_IMAGES_H
#define EDDY_KERNELS_CUDA_IMAGES_H

extern const unsigned char eddy_cuda_image_advanced_index[], eddy_cuda_image_argmax[],
    eddy_cuda_image_attention[], eddy_cuda_image_bincount[], eddy_cuda_image_clip_gradient[],
    eddy_cuda_image_compare[], eddy_cuda_image_conv[], eddy_cuda_image_copy[],
    eddy_cuda_image_diagonal[], eddy_cuda_image_fill[], eddy_cuda_image_finite[],
    eddy_cuda_image_index[], eddy_cuda_image_interpolate[], eddy_cuda_image_logsumexp[],
    eddy_cuda_image_look[], eddy_cuda_image_loss[], eddy_cuda_image_loss_total[],
    eddy_cuda_image_mask[], eddy_cuda_image_masked_scatter[], eddy_cuda_image_multinomial[],
    eddy_cuda_image_norm[], eddy_cuda_image_norm_backward[], eddy_cuda_image_norm_weight[],
    eddy_cuda_image_optimise[], eddy_cuda_image_pair_loss[], eddy_cuda_image_pool[],
    eddy_cuda_image_product[], eddy_cuda_image_random[], eddy_cuda_image_randperm[],
    eddy_cuda_image_reduce[], eddy_cuda_image_repeat[], eddy_cuda_image_rope[],
    eddy_cuda_image_row[], eddy_cuda_image_scan[], eddy_cuda_image_scatter[],
    eddy_cuda_image_selection[], eddy_cuda_image_softmax[], eddy_cuda_image_sort[],
    eddy_cuda_image_unique[], eddy_cuda_image_variance[], eddy_cuda_image_vector_norm[];

#endif
