/* Convolutions whose window is one element: products of matrices, with images as [N, places, channels]. They are planned and run as linear and matmul, so that the library of products
 * does them; without it conv.c does. */
#ifndef EDDY_KERNELS_CUDA_POINTWISE_H
#define EDDY_KERNELS_CUDA_POINTWISE_H

#include <base/assert.h>
#include <kernels/kernel.h>

/* Plans a call of conv2d, of conv_transpose2d, of conv2d_backward_weight, whose `run` is then set. False: it is no such product, or there is no library; else *status. */
EDDY_MUST_USE bool eddy_cuda_pointwise_prepare(const eddy_kernel_call *call, bool is_transposed,
                                               eddy_kernel_plan *plan, eddy_status *status);
EDDY_MUST_USE bool eddy_cuda_pointwise_prepare_weight(const eddy_kernel_call *call,
                                                      eddy_kernel_plan *plan, eddy_status *status);

#endif
