/* What cuDNN, NVIDIA's library, is asked to compute, where it can be found: a convolution (dnn_conv.h) or attention (dnn_attention.h). A question follows from shapes, strides, dtypes and attributes;
 * streams/cuda/dnn_answers.c asks the library for a plan, once for each, and launches. */
#ifndef EDDY_KERNELS_CUDA_DNN_H
#define EDDY_KERNELS_CUDA_DNN_H

#include <kernels/cuda/planes.h>
#include <kernels/kernel.h>

/* In elements. */
typedef struct eddy_cuda_dnn_tensor {
    int64_t sizes[EDDY_CUDA_AXES], strides[EDDY_CUDA_AXES];
} eddy_cuda_dnn_tensor;

/* Of y = x * weight: what is computed, of the other two. */
typedef enum eddy_cuda_dnn_way {
    EDDY_CUDA_DNN_FORWARD, /* y */
    EDDY_CUDA_DNN_X,       /* the gradient of x, of that of y */
    EDDY_CUDA_DNN_WEIGHT,  /* the gradient of the weight, of that of y */
} eddy_cuda_dnn_way;

/* The tensors are [N, C, H, W], of the weight [O, C / groups, KH, KW]. */
enum {
    EDDY_CUDA_DNN_AT_X,
    EDDY_CUDA_DNN_AT_WEIGHT,
    EDDY_CUDA_DNN_AT_Y,
    EDDY_CUDA_DNN_CONV_TENSORS
};

typedef struct eddy_cuda_dnn_conv {
    int64_t stride[2], padding[2], dilation[2]; /* of rows, of columns */
    uint32_t way;                               /* eddy_cuda_dnn_way */
    uint32_t adds; /* to what lies in the result, which is overwritten by the sum */
} eddy_cuda_dnn_conv;

/* softmax(q k * scale) v. The tensors are [B, H, L, D], k turned [B, 1 or H, D, S], v [B, 1 or H, S, E], out [B, H, L, E]. */
enum {
    EDDY_CUDA_DNN_AT_Q,
    EDDY_CUDA_DNN_AT_K,
    EDDY_CUDA_DNN_AT_V,
    EDDY_CUDA_DNN_AT_OUT,
    EDDY_CUDA_DNN_ATTENTION_TENSORS
};

typedef struct eddy_cuda_dnn_attention {
    uint64_t is_causal;
} eddy_cuda_dnn_attention;

typedef enum eddy_cuda_dnn_kind {
    EDDY_CUDA_DNN_IS_CONV,
    EDDY_CUDA_DNN_IS_ATTENTION
} eddy_cuda_dnn_kind;

/* Of a question, at most. */
#define EDDY_CUDA_DNN_TENSORS 4

/* Without padding, and zeroed first: it is compared by its bytes. */
typedef struct eddy_cuda_dnn_question {
    eddy_cuda_dnn_tensor tensors[EDDY_CUDA_DNN_TENSORS];
    uint16_t kind, tensor_count;
    uint32_t dtype; /* eddy_dtype: of all of them. f16 and bf16 are summed in f32. */
    union {
        eddy_cuda_dnn_conv conv;
        eddy_cuda_dnn_attention attention;
    };
} eddy_cuda_dnn_question;

typedef struct eddy_cuda_dnn_operands {
    void *data[EDDY_CUDA_DNN_TENSORS]; /* the device's */
    float scale;                       /* of attention */
} eddy_cuda_dnn_operands;

/* Done by streams/cuda/dnn_answers.c. */

/* Whether the library is there; the first call looks for it. *has_started: set to true, if this call has loaded it. For eddy_kernel.prepare. */
bool eddy_cuda_dnn_open(bool *has_started);
/* Whether the device may ask about attention, and the library is there. Launching thread. */
bool eddy_cuda_dnn_may_attend(const eddy_kernel_call *call);
/* Whether the library has a plan for the question. It is asked once for each, and host code answers. Launching thread. */
bool eddy_cuda_dnn_can(const eddy_kernel_call *call, const eddy_cuda_dnn_question *question,
                       const eddy_cuda_dnn_operands *operands);
/* Launches what was asked about for the call on its queue; what fails is the call's failure, as of eddy_cuda_launch. False: nothing is launched, since the library has no plan. Launching thread. */
EDDY_MUST_USE bool eddy_cuda_dnn_launch(const eddy_kernel_call *call,
                                        const eddy_cuda_dnn_question *question,
                                        const eddy_cuda_dnn_operands *operands);

#endif
