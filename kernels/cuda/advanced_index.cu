/* The places that several indices name together. All indices are checked, also where there is nothing to pick or to put. */
#include <kernels/cuda/advanced_index.h>
#include <kernels/cuda/fail.cuh>

namespace {

struct place {
    int64_t at[EDDY_CUDA_RANK_MAX]; /* of a dim; all are used if no dims were merged */
};

EDDY_SCALAR place place_of(const eddy_cuda_places_call &p, int64_t number) {
    place found;
    EDDY_CUDA_ROLLED
    for (int d = p.rank - 1; d > 0; d--) {
        found.at[d] = number % p.dims[d];
        number /= p.dims[d];
    }
    found.at[0] = number;
    return found;
}

EDDY_SCALAR int64_t index_at(const eddy_cuda_places_call &p, int which, const place &of) {
    const eddy_cuda_place_index &index = p.indices[which];
    const char *element = (const char *)index.data;
    EDDY_CUDA_ROLLED
    for (int d = 0; d < p.rank; d++)
        element += of.at[d] * index.strides[d];
    return p.is_wide >> which & 1 ? *(const int64_t *)element : *(const int32_t *)element;
}

/* The offset of a place, or EDDY_CUDA_NO_PLACE. */
EDDY_SCALAR int64_t offset_of(const eddy_cuda_places_call &p, int64_t number) {
    const place of = place_of(p, number);
    int64_t offset = p.first;
    EDDY_CUDA_ROLLED
    for (int i = 0; i < p.index_count; i++) {
        const int64_t given = index_at(p, i, of), bound = p.indices[i].bound,
                      at = given < 0 ? given + bound : given;
        if (at < 0 || at >= bound) {
            eddy_cuda_fail(p.gate, EDDY_OUT_OF_RANGE, number, given, bound);
            return EDDY_CUDA_NO_PLACE;
        }
        offset += at * p.indices[i].step;
    }
    return offset;
}

} // namespace

EDDY_CUDA_KERNEL(eddy_places, eddy_cuda_places_call) {
    const eddy_cuda_places_call &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step)
        p.offsets[i] = offset_of(p, i);
}
