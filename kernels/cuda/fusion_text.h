/* The source of a fusion's kernel: the text of fusion.cuh, the ops, and the struct `fusion` that calls them. */
#ifndef EDDY_KERNELS_CUDA_FUSION_TEXT_H
#define EDDY_KERNELS_CUDA_FUSION_TEXT_H

#include <kernels/fusion.h>
#include <stddef.h>

/* As snprintf: writes what there is room for, and returns the bytes of all, without the 0 at its end. 0: there are no words for one of its steps. */
size_t eddy_cuda_fusion_write(const eddy_fusion *fusion, char *text, size_t size);

#endif
