/* Convolutions and their gradients as questions to NVIDIA's library (dnn.h).
 *
 * The library takes floats, in tensors without gaps: row by row, or with channels last, each as it lies. */
#ifndef EDDY_KERNELS_CUDA_DNN_CONV_H
#define EDDY_KERNELS_CUDA_DNN_CONV_H

#include <base/assert.h>
#include <kernels/attributes.h>
#include <kernels/cuda/dnn.h>

/* Images may lack the dim N. False: the library does not take such operands. */
EDDY_MUST_USE bool eddy_cuda_dnn_conv_of(eddy_cuda_dnn_way way, const eddy_op_view *x,
                                         const eddy_op_view *weight, const eddy_op_view *y,
                                         const eddy_attributes_conv *attributes,
                                         eddy_cuda_dnn_question *question);

#endif
