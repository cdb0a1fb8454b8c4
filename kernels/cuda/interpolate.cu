/* interpolate and its gradient. */
#include <kernels/cuda/elementwise.cuh>
#include <kernels/cuda/interpolate.h>
#include <kernels/cuda/planes.cuh>

EDDY_CUDA_KERNEL(eddy_taps, eddy_cuda_taps) {
    const eddy_cuda_taps &p = parameters;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         at < p.rows.out + p.columns.out; at += step)
        p.taps[at] =
            at < p.rows.out ? eddy_tap_of(&p.rows, at) : eddy_tap_of(&p.columns, at - p.rows.out);
}

namespace {

/* An element of a plane. */
template <class type>
EDDY_CUDA_MEMBER type element_of(const eddy_cuda_planes &planes, const char *plane, int64_t row,
                                 int64_t column) {
    return *(const type *)(plane + row * planes.strides[EDDY_CUDA_ROW] +
                           column * planes.strides[EDDY_CUDA_COLUMN]);
}

template <class type> EDDY_CUDA_MEMBER void nearest(const eddy_cuda_resizing &p) {
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        *(type *)eddy_cuda_element_at(p.large, place) = element_of<type>(
            p.small, eddy_cuda_plane_at(p.small, place), p.rows[place.at[EDDY_CUDA_ROW]].low,
            p.columns[place.at[EDDY_CUDA_COLUMN]].low);
    });
}

/* Mixes along the row first. */
template <class element> EDDY_CUDA_MEMBER void bilinear(const eddy_cuda_resizing &p) {
    typedef typename element::stored stored;
    typedef typename element::computed computed;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        const eddy_tap row = p.rows[place.at[EDDY_CUDA_ROW]],
                       column = p.columns[place.at[EDDY_CUDA_COLUMN]];
        const char *plane = eddy_cuda_plane_at(p.small, place);
        const computed right = (computed)column.share, down = (computed)row.share;
        computed mixed[2];
        for (int k = 0; k < 2; k++) {
            const int64_t h = k == 0 ? row.low : row.high;
            mixed[k] =
                element::load(element_of<stored>(p.small, plane, h, column.low)) * (1 - right) +
                element::load(element_of<stored>(p.small, plane, h, column.high)) * right;
        }
        *(stored *)eddy_cuda_element_at(p.large, place) =
            element::store(mixed[0] * (1 - down) + mixed[1] * down);
    });
}

template <class element> EDDY_CUDA_MEMBER void back(const eddy_cuda_resizing &p) {
    typedef typename element::stored stored;
    typedef typename element::computed computed;
    if (eddy_cuda_is_skipped(p.gate))
        return;
    eddy_cuda_each_of(p.places, [&](const eddy_cuda_place &place) {
        const int64_t h = place.at[EDDY_CUDA_ROW], w = place.at[EDDY_CUDA_COLUMN];
        int64_t top, bottom, left, right;
        eddy_tap_touching(p.rows, p.large.sizes[EDDY_CUDA_ROW], h, &top, &bottom);
        eddy_tap_touching(p.columns, p.large.sizes[EDDY_CUDA_COLUMN], w, &left, &right);
        const char *plane = eddy_cuda_plane_at(p.large, place);
        computed sum = 0;
        EDDY_CUDA_ROLLED
        for (int64_t oh = top; oh < bottom; oh++) {
            const double down = eddy_tap_weight(&p.rows[oh], h);
            EDDY_CUDA_ROLLED
            for (int64_t ow = left; ow < right; ow++)
                sum += (computed)(down * eddy_tap_weight(&p.columns[ow], w)) *
                       element::load(element_of<stored>(p.large, plane, oh, ow));
        }
        *(stored *)eddy_cuda_element_at(p.small, place) = element::store(sum);
    });
}

} // namespace

#define NEAREST(bits)                                                                              \
    EDDY_CUDA_KERNEL(eddy_nearest_##bits, eddy_cuda_resizing) {                                    \
        nearest<uint##bits##_t>(parameters);                                                       \
    }
EDDY_CUDA_NEAREST(NEAREST)

#define FLOATS(name, dtype)                                                                        \
    EDDY_CUDA_KERNEL(eddy_bilinear_##name, eddy_cuda_resizing) {                                   \
        bilinear<eddy_cuda_##name>(parameters);                                                    \
    }                                                                                              \
    EDDY_CUDA_KERNEL(eddy_interpolate_back_##name, eddy_cuda_resizing) {                           \
        back<eddy_cuda_##name>(parameters);                                                        \
    }
EDDY_CUDA_INTERPOLATE_FLOATS(FLOATS)
