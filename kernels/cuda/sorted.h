/* A line of elements sorted as records (sort.h), for kernels that need more than the order. The host's side (sort.c). */
#ifndef EDDY_KERNELS_CUDA_SORTED_H
#define EDDY_KERNELS_CUDA_SORTED_H

#include <kernels/cuda/sort.h>
#include <kernels/kernel.h>

/* Which records a line has: a kernel that reads them is one of as many, in this order. */
enum { EDDY_CUDA_SORTED_NARROW, EDDY_CUDA_SORTED_WIDE, EDDY_CUDA_SORTED_WIDTHS };
int eddy_cuda_sorted_width(eddy_dtype dtype, int64_t count);
/* Bytes of a space that has a record of each element. */
size_t eddy_cuda_sorted_bytes(eddy_dtype dtype, int64_t count);
/* Launches for the call what sorts the elements of a view of rank 1, at least one, as records with their indices. These are in the first of two spaces in the end, and the second one is
 * free again. */
void eddy_cuda_sorted_launch(const eddy_kernel_call *call, const eddy_op_view *line, void *first,
                             void *second);

#endif
