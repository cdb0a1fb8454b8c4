/* Attention as a question to NVIDIA's library (dnn.h).
 *
 * The library takes f16 and bf16 without a mask of the caller's and without dropout, whose numbers would be its own. It multiplies v by weights of the softmax that are rounded to the dtype, and not by
 * f32, so that it is asked on request alone. */
#ifndef EDDY_KERNELS_CUDA_DNN_ATTENTION_H
#define EDDY_KERNELS_CUDA_DNN_ATTENTION_H

#include <kernels/cuda/attention.h>
#include <kernels/cuda/dnn.h>

/* False: the library does not take such operands. Its matrices have rows without gaps between elements; addresses and strides are multiples of ALIGNMENT bytes. */
#define EDDY_CUDA_DNN_ATTENTION_ALIGNMENT 16
EDDY_MUST_USE bool eddy_cuda_dnn_attention_of(const eddy_cuda_attention *attention,
                                              eddy_dtype dtype, eddy_cuda_dnn_question *question);

#endif
