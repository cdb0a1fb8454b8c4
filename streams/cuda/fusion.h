/* Kernels of fusions (kernels/fusion.h) on a device, from their images. */
#ifndef EDDY_STREAMS_CUDA_FUSION_H
#define EDDY_STREAMS_CUDA_FUSION_H

#include <base/assert.h>
#include <kernels/fusion.h>
#include <kernels/kernel.h>

/* Loads the image on the device, which was started; the kernel is acquired. OUT_OF_MEMORY, or DEVICE_LOST for all else that the driver refuses, with a sentence in `why`. Any thread. */
EDDY_MUST_USE eddy_status eddy_cuda_fusion_load(int32_t device, const eddy_fusion *fusion,
                                                const void *image, const eddy_kernel **kernel,
                                                char *why, size_t size);
/* Of a kernel no launch of which is under way, or will be. Any thread. */
void eddy_cuda_fusion_unload(int32_t device, const eddy_kernel *kernel);

#endif
