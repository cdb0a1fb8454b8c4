/* A convolution as the library's descriptors (dnn_build.h). */
#ifndef EDDY_STREAMS_CUDA_DNN_CONV_H
#define EDDY_STREAMS_CUDA_DNN_CONV_H

#include <streams/cuda/dnn_plan.h>

/* The one operation of its graph. */
void eddy_cuda_dnn_conv_build(eddy_cuda_dnn_build *build, const eddy_cuda_dnn_geometry *of);

#endif
