/* Lists of tensors on CUDA devices: one launch for as many items as the parameters of a kernel hold, 4 KB. What kernels get (list.cuh), and the host's side (list.c). Plain C.
 *
 * All elements are numbered in chunks; a block of threads works on one at a time, and the chunks of an item are its own, so that small items and large ones
 * occupy the device alike. */
#ifndef EDDY_KERNELS_CUDA_LIST_H
#define EDDY_KERNELS_CUDA_LIST_H

#include <kernels/cuda/parameters.h>

#define EDDY_CUDA_LIST_ITEMS 80
/* Operands of an item: of one count, all contiguous. */
#define EDDY_CUDA_LIST_OPERANDS 4

typedef struct eddy_cuda_list_item {
    void *data[EDDY_CUDA_LIST_OPERANDS];
    int64_t count; /* 1 or more */
    int64_t first; /* its first chunk, in the launch */
} eddy_cuda_list_item;

typedef struct eddy_cuda_list {
    eddy_cuda_gate gate;
    int64_t chunks;
    int64_t chunk; /* elements of one; those of the last of an item may be fewer */
    int32_t items;
    uint64_t attributes[EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES / sizeof(uint64_t)];
    eddy_cuda_list_item item[EDDY_CUDA_LIST_ITEMS];
} eddy_cuda_list;

#endif
