#include <streams/cuda/dnn_conv.h>

#define DIMS 2

static const struct {
    eddy_dnn_kind kind;
    eddy_dnn_attribute first;
} operations[] = {
    [EDDY_CUDA_DNN_FORWARD] = {EDDY_DNN_FORWARD, EDDY_DNN_FORWARD_FIRST},
    [EDDY_CUDA_DNN_X] = {EDDY_DNN_BACKWARD_X, EDDY_DNN_BACKWARD_X_FIRST},
    [EDDY_CUDA_DNN_WEIGHT] = {EDDY_DNN_BACKWARD_WEIGHT, EDDY_DNN_BACKWARD_WEIGHT_FIRST},
};

static eddy_dnn_descriptor add_window(eddy_cuda_dnn_build *build,
                                      const eddy_cuda_dnn_question *question) {
    static const int64_t dims = DIMS;
    static const int mode = EDDY_DNN_CROSS_CORRELATION;
    const eddy_cuda_dnn_conv *conv = &question->conv;
    const int sums = eddy_cuda_dnn_types[question->dtype].sums;
    return EDDY_CUDA_DNN_ADD(
        build, EDDY_DNN_CONVOLUTION, {EDDY_DNN_CONVOLUTION_SUMS, EDDY_DNN_TYPE_DATA_TYPE, 1, &sums},
        {EDDY_DNN_CONVOLUTION_MODE, EDDY_DNN_TYPE_MODE, 1, &mode},
        {EDDY_DNN_CONVOLUTION_DIMS, EDDY_DNN_TYPE_INT64, 1, &dims},
        {EDDY_DNN_CONVOLUTION_STRIDES, EDDY_DNN_TYPE_INT64, DIMS, conv->stride},
        {EDDY_DNN_CONVOLUTION_PADDINGS_AHEAD, EDDY_DNN_TYPE_INT64, DIMS, conv->padding},
        {EDDY_DNN_CONVOLUTION_PADDINGS_BEHIND, EDDY_DNN_TYPE_INT64, DIMS, conv->padding},
        {EDDY_DNN_CONVOLUTION_DILATIONS, EDDY_DNN_TYPE_INT64, DIMS, conv->dilation});
}

void eddy_cuda_dnn_conv_build(eddy_cuda_dnn_build *build, const eddy_cuda_dnn_geometry *of) {
    const eddy_cuda_dnn_conv *conv = &of->question.conv;
    const eddy_dnn_attribute first = operations[conv->way].first;
    /* Of alpha and beta. */
    const eddy_dnn_type type =
        of->question.dtype == EDDY_F64 ? EDDY_DNN_TYPE_DOUBLE : EDDY_DNN_TYPE_FLOAT;
    const double wide[] = {1, conv->adds};
    const float narrow[] = {1, (float)conv->adds};
    bool is_wide = type == EDDY_DNN_TYPE_DOUBLE;
    const void *alpha = is_wide ? (const void *)&wide[0] : &narrow[0],
               *beta = is_wide ? (const void *)&wide[1] : &narrow[1];
    eddy_dnn_descriptor tensors[EDDY_CUDA_DNN_CONV_TENSORS];
    for (int k = 0; k < EDDY_CUDA_DNN_CONV_TENSORS; k++)
        tensors[k] = eddy_cuda_dnn_add_operand(build, of, k);
    const eddy_dnn_descriptor window = add_window(build, &of->question);
    EDDY_CUDA_DNN_ADD_OPERATION(
        build, operations[conv->way].kind, {first + EDDY_DNN_OPERATION_ALPHA, type, 1, alpha},
        {first + EDDY_DNN_OPERATION_BETA, type, 1, beta},
        {first + EDDY_DNN_OPERATION_CONVOLUTION, EDDY_DNN_TYPE_DESCRIPTOR, 1, &window},
        {first + EDDY_DNN_OPERATION_WEIGHT, EDDY_DNN_TYPE_DESCRIPTOR, 1,
         &tensors[EDDY_CUDA_DNN_AT_WEIGHT]},
        {first + EDDY_DNN_OPERATION_X, EDDY_DNN_TYPE_DESCRIPTOR, 1, &tensors[EDDY_CUDA_DNN_AT_X]},
        {first + EDDY_DNN_OPERATION_Y, EDDY_DNN_TYPE_DESCRIPTOR, 1, &tensors[EDDY_CUDA_DNN_AT_Y]});
}
