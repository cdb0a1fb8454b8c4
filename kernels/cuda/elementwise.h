/* Elementwise ops on CUDA devices: the host's side. The kernels' text is generated from the ops' expressions (functional/generate/cuda.py). */
#ifndef EDDY_KERNELS_CUDA_ELEMENTWISE_H
#define EDDY_KERNELS_CUDA_ELEMENTWISE_H

#include <kernels/cuda/map.h>

typedef struct eddy_cuda_elementwise {
    eddy_kernel base; /* `run` is eddy_cuda_elementwise_run */
    eddy_cuda_forms forms;
    uint32_t attribute_bytes;
} eddy_cuda_elementwise;

/* All views share one shape, whose dims are sorted and merged, as for eddy_kernel_run_elementwise. */
void eddy_cuda_elementwise_run(const eddy_kernel_call *call);

#endif
