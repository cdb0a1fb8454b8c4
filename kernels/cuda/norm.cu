/* layer_norm, rms_norm, group_norm, batch_norm, and the statistics of all of them. */
#include <kernels/cuda/norm.cuh>

/* Statistics of each place, of its chunks or of the caller's. */
template <class element> EDDY_CUDA_MEMBER void join(const eddy_cuda_normalisation &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t place = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; place < p.place_count;
         place += step) {
        if (p.is_given) {
            const double mean = (double)eddy_cuda_norm_number<element>(p.mean, place),
                         variance = (double)eddy_cuda_norm_number<element>(p.variance, place);
            p.statistics[place] = {mean, eddy_cuda_norm_scale(p, variance), 0, 0};
            continue;
        }
        eddy_norm_total total = {};
        EDDY_CUDA_ROLLED
        for (int64_t chunk = 0; chunk < p.chunk_count; chunk++) {
            const int64_t begin = chunk * EDDY_NORM_CHUNK, left = p.element_count - begin;
            eddy_norm_join(&total, begin, &p.parts[chunk * p.place_count + place],
                           left < EDDY_NORM_CHUNK ? left : EDDY_NORM_CHUNK);
        }
        p.statistics[place] = eddy_cuda_norm_statistics_of(p, total);
        eddy_cuda_norm_update<element>(p, place, total.sums);
    }
}

#define NORM(of, of_dtype, unused)                                                                 \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_whole_##of, eddy_cuda_normalisation) {                        \
        eddy_cuda_norm_run<eddy_cuda_##of, false, EDDY_CUDA_NORM_WHOLE>(parameters);               \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_parts_##of, eddy_cuda_normalisation) {                        \
        eddy_cuda_norm_run<eddy_cuda_##of, false, EDDY_CUDA_NORM_PARTS>(parameters);               \
    }                                                                                              \
    EDDY_CUDA_BLOCK_KERNEL(eddy_norm_apply_##of, eddy_cuda_normalisation) {                        \
        eddy_cuda_norm_run<eddy_cuda_##of, false, EDDY_CUDA_NORM_APPLY>(parameters);               \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_norm_join_##of, eddy_cuda_normalisation) {                               \
        join<eddy_cuda_##of>(parameters);                                                          \
    }
EDDY_CUDA_NORM_DTYPES(NORM, )
