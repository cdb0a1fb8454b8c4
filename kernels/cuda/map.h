/* Launching what computes one element of the output from one of each input: elementwise ops, copies, fills. */
#ifndef EDDY_KERNELS_CUDA_MAP_H
#define EDDY_KERNELS_CUDA_MAP_H

#include <kernels/cpu/walk.h>
#include <kernels/cuda/launch.h>

/* The two kernels of such an op, of eddy_cuda_dense and of eddy_cuda_strided. One that has no dense form has no symbol there. */
typedef struct eddy_cuda_forms {
    eddy_cuda_function dense, strided;
} eddy_cuda_forms;

/* Of a name, an image and two arrays of EDDY_CUDA_DEVICES pointers. */
#define EDDY_CUDA_FORMS(stem, image, loaded)                                                       \
    {                                                                                              \
        .dense = {stem "_dense", &(image), (loaded)[0]}, .strided = {                              \
            stem "_strided",                                                                       \
            &(image),                                                                              \
            (loaded)[1]                                                                            \
        }                                                                                          \
    }

/* Without data it is a number that begins at 0, and its strides are what the dims add to it (kernels/cuda/strided.cuh). */
typedef struct eddy_cuda_operand {
    void *data;
    eddy_dtype dtype;
} eddy_cuda_operand;

/* The walk's operands, as many as `operands` has, are the output and then the inputs, in elements; it is collapsed. `attributes`: what the kernel reads of them, EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES at
 * most. */
void eddy_cuda_map(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                   const eddy_walk *walk, const eddy_cuda_operand *operands, const void *attributes,
                   size_t attribute_bytes);
/* The same of a fusion: the walk's operands are its inputs, so many of them, and then its outputs. EDDY_CUDA_FUSION_WORDS at most. */
void eddy_cuda_map_fusion(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                          const eddy_walk *walk, const eddy_cuda_operand *operands,
                          int32_t input_count, const void *attributes, size_t attribute_bytes);

#endif
