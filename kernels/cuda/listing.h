/* Launching for the items of lists of tensors: they are collected, and launched where a kernel's parameters are full. The host's side. */
#ifndef EDDY_KERNELS_CUDA_LISTING_H
#define EDDY_KERNELS_CUDA_LISTING_H

#include <kernels/cuda/launch.h>
#include <kernels/cuda/list.h>

typedef struct eddy_cuda_listing {
    const eddy_kernel_call *call;
    const eddy_cuda_function *function;
    eddy_cuda_list list;
} eddy_cuda_listing;

/* `chunk`: elements of one. `attributes`: what the kernel reads of them, EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES at most. */
void eddy_cuda_listing_begin(eddy_cuda_listing *listing, const eddy_kernel_call *call,
                             const eddy_cuda_function *function, int64_t chunk,
                             const void *attributes, size_t attribute_bytes);
/* An item's operands, EDDY_CUDA_LIST_OPERANDS at most, of `count` elements each; of none there is nothing to do. */
void eddy_cuda_listing_add(eddy_cuda_listing *listing, void *const *data, int32_t operands,
                           int64_t count);
void eddy_cuda_listing_end(eddy_cuda_listing *listing);

#endif
