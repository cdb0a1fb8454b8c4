/* Convolutions and their gradients by NVIDIA's library, where it can be found. What is asked for follows from shapes, strides, dtypes and attributes; streams/cuda/dnn_conv.c asks the library for a
 * plan, and launches.
 *
 * The library takes floats, in tensors without gaps: row by row, or with channels last, each as it lies. */
#ifndef EDDY_KERNELS_CUDA_DNN_CONV_H
#define EDDY_KERNELS_CUDA_DNN_CONV_H

#include <base/assert.h>
#include <kernels/attributes.h>
#include <kernels/cuda/planes.h>
#include <kernels/kernel.h>

/* Of y = x * weight: what is computed, of the other two. */
typedef enum eddy_cuda_dnn_way {
    EDDY_CUDA_DNN_FORWARD, /* y */
    EDDY_CUDA_DNN_X,       /* the gradient of x, of that of y */
    EDDY_CUDA_DNN_WEIGHT,  /* the gradient of the weight, of that of y */
} eddy_cuda_dnn_way;

enum { EDDY_CUDA_DNN_AT_X, EDDY_CUDA_DNN_AT_WEIGHT, EDDY_CUDA_DNN_AT_Y, EDDY_CUDA_DNN_TENSORS };

/* [N, C, H, W], of the weight [O, C / groups, KH, KW]. In elements. */
typedef struct eddy_cuda_dnn_tensor {
    int64_t sizes[EDDY_CUDA_AXES], strides[EDDY_CUDA_AXES];
} eddy_cuda_dnn_tensor;

/* Without padding: it is compared by its bytes. */
typedef struct eddy_cuda_dnn_conv {
    eddy_cuda_dnn_tensor tensors[EDDY_CUDA_DNN_TENSORS];
    int64_t stride[2], padding[2], dilation[2]; /* of rows, of columns */
    uint16_t way;                               /* eddy_cuda_dnn_way */
    uint16_t adds;  /* to what lies in the result, which is overwritten by the sum */
    uint32_t dtype; /* eddy_dtype: of all of them. f16 and bf16 are summed in f32. */
} eddy_cuda_dnn_conv;

/* The device's; what `way` says is written. */
typedef struct eddy_cuda_dnn_operands {
    void *data[EDDY_CUDA_DNN_TENSORS];
} eddy_cuda_dnn_operands;

/* Images may lack the dim N. False: the library does not take such operands. */
EDDY_MUST_USE bool eddy_cuda_dnn_conv_of(eddy_cuda_dnn_way way, const eddy_op_view *x,
                                         const eddy_op_view *weight, const eddy_op_view *y,
                                         const eddy_attributes_conv *attributes,
                                         eddy_cuda_dnn_conv *conv);

/* Done by streams/cuda/dnn_conv.c. */

/* Whether the library is there; the first call looks for it. *has_started: set to true, if this call has loaded it. For eddy_kernel.prepare. */
bool eddy_cuda_dnn_conv_open(bool *has_started);
/* Whether the library has a plan for the convolution. It is asked once for each geometry, and host code answers. Launching thread. */
bool eddy_cuda_dnn_conv_can(const eddy_kernel_call *call, const eddy_cuda_dnn_conv *conv,
                            const eddy_cuda_dnn_operands *operands);
/* Launches the convolution for the call on its queue; what fails is the call's failure, as of eddy_cuda_launch. False: nothing is launched, since the library has no plan. Launching thread. */
EDDY_MUST_USE bool eddy_cuda_dnn_conv_launch(const eddy_kernel_call *call,
                                             const eddy_cuda_dnn_conv *conv,
                                             const eddy_cuda_dnn_operands *operands);

#endif
