/* The gradients of normalisations with respect to x. */
#include <kernels/cuda/norm.cuh>

#define NORM(of, of_dtype, unused)                                                                 \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_back_whole_##of, eddy_cuda_normalisation) {                   \
        eddy_cuda_norm_run<eddy_cuda_##of, true, EDDY_CUDA_NORM_WHOLE>(parameters);                \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_back_parts_##of, eddy_cuda_normalisation) {                   \
        eddy_cuda_norm_run<eddy_cuda_##of, true, EDDY_CUDA_NORM_PARTS>(parameters);                \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_back_apply_##of, eddy_cuda_normalisation) {                   \
        eddy_cuda_norm_run<eddy_cuda_##of, true, EDDY_CUDA_NORM_APPLY>(parameters);                \
    }
EDDY_CUDA_NORM_DTYPES(NORM, )
