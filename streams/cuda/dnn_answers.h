/* What cuDNN does on a device (kernels/cuda/dnn.h): the library's context, and the plan of each geometry that it was asked about. Launching thread, but for the end. */
#ifndef EDDY_STREAMS_CUDA_DNN_ANSWERS_H
#define EDDY_STREAMS_CUDA_DNN_ANSWERS_H

typedef struct eddy_cuda_dnn_answers eddy_cuda_dnn_answers;

/* Nothing that it has launched runs. The calling thread's calls of the driver are for the device. NULL does nothing. */
void eddy_cuda_dnn_answers_destroy(eddy_cuda_dnn_answers *answers);

#endif
