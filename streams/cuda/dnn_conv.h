/* Convolutions of a device by cuDNN (kernels/cuda/dnn_conv.h): the library's context, and the plan of each geometry that it was asked about. Launching thread, but for the end. */
#ifndef EDDY_STREAMS_CUDA_DNN_CONV_H
#define EDDY_STREAMS_CUDA_DNN_CONV_H

typedef struct eddy_cuda_dnn_convs eddy_cuda_dnn_convs;

/* Nothing that it has launched runs. The calling thread's calls of the driver are for the device. NULL does nothing. */
void eddy_cuda_dnn_convs_destroy(eddy_cuda_dnn_convs *convs);

#endif
