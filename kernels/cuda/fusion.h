/* Fusions on CUDA devices (kernels/fusion.h): the host's side of a kernel that was made for one. */
#ifndef EDDY_KERNELS_CUDA_FUSION_H
#define EDDY_KERNELS_CUDA_FUSION_H

#include <kernels/cuda/map.h>

typedef struct eddy_cuda_fusion {
    eddy_kernel base; /* `run` is eddy_cuda_fusion_run */
    eddy_cuda_forms forms;
    int32_t input_count;
    uint32_t attribute_bytes;
} eddy_cuda_fusion;

/* The views are the fusion's inputs, then its outputs, under one shape whose dims are merged. */
void eddy_cuda_fusion_run(const eddy_kernel_call *call);

#endif
