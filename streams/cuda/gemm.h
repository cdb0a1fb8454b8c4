/* Matrix products of a device by cuBLASLt (kernels/cuda/gemm.h): the library's context, and the algorithm of each geometry that it was asked about. Launching thread, but for the end. */
#ifndef EDDY_STREAMS_CUDA_GEMM_H
#define EDDY_STREAMS_CUDA_GEMM_H

#include <streams/cuda/device.h>

typedef struct eddy_cuda_gemms eddy_cuda_gemms;

/* Nothing that it has launched runs. The calling thread's calls of the driver are for the device. NULL does nothing. */
void eddy_cuda_gemms_destroy(eddy_cuda_gemms *gemms);

#endif
