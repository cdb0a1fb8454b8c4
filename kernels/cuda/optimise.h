/* Steps of optimisers and the clipping of gradients on CUDA devices: which kernels there are (optimise.cu, clip_gradient.cu), and what they get. Plain C. */
#ifndef EDDY_KERNELS_CUDA_OPTIMISE_H
#define EDDY_KERNELS_CUDA_OPTIMISE_H

#include <kernels/attributes.h>
#include <kernels/cuda/list.h>
#include <kernels/optimise.h>

#define EDDY_CUDA_OPTIMISED_FLOATS(row, op)                                                        \
    row(op, f32, F32) row(op, f64, F64) row(op, f16, F16) row(op, bf16, BF16)

/* eddy_<op>_<dtype>_list and ..._strided, which read eddy_cuda_list and eddy_cuda_strided. Operands are params, grads, and the states; attributes are the numbers of
 * sgd and momentum, and the address of adam's. */
#define EDDY_CUDA_OPTIMISERS(row)                                                                  \
    EDDY_CUDA_OPTIMISED_FLOATS(row, sgd)                                                           \
    EDDY_CUDA_OPTIMISED_FLOATS(row, momentum)                                                      \
    EDDY_CUDA_OPTIMISED_FLOATS(row, adam)

/* Elements of a chunk: some for each thread of a block. */
#define EDDY_CUDA_OPTIMISE_CHUNK 4096

/* eddy_adam_advance: counts the step, and computes what it has for all elements. */
typedef struct eddy_cuda_adam_advance {
    eddy_cuda_gate gate;
    int64_t *step;
    eddy_adam_numbers *numbers;
    eddy_attributes_adam_step attributes;
    bool is_decoupled;
} eddy_cuda_adam_advance;

/* ---- clip_grad_norm ----
 * As on the host: squares are summed in f64 in slices of elements of an item, a slice in blocks (kernels/cuda/reduce.h) that are added in order, and so are the
 * slices. */

/* eddy_clip_sum_<dtype>, which reads eddy_cuda_list: operands are the gradients and their slices' sums, a chunk is a slice. eddy_clip_norm_<dtype> of the norm's dtype.
 * eddy_clip_scale_<dtype>_list and ..._strided: the attribute is the address of the factor. */
#define EDDY_CUDA_CLIP_SUMS(row) EDDY_CUDA_OPTIMISED_FLOATS(row, clip_sum)
#define EDDY_CUDA_CLIP_NORMS(row) EDDY_CUDA_OPTIMISED_FLOATS(row, clip_norm)
#define EDDY_CUDA_CLIP_SCALES(row) EDDY_CUDA_OPTIMISED_FLOATS(row, clip_scale)

#define EDDY_CUDA_CLIP_SLICE 16384

typedef struct eddy_cuda_clip_norm {
    eddy_cuda_gate gate;
    const double *sums;
    int64_t slices;
    void *norm;    /* NULL: nobody asks for it */
    double *scale; /* what elements are to be multiplied with; not if it is 1 or more */
    double max_norm;
} eddy_cuda_clip_norm;

#endif
