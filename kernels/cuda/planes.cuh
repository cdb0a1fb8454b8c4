/* Where elements of images lie. */
#ifndef EDDY_KERNELS_CUDA_PLANES_CUH
#define EDDY_KERNELS_CUDA_PLANES_CUH

#include <kernels/cuda/device.cuh>
#include <kernels/cuda/planes.h>

struct eddy_cuda_place {
    int64_t at[EDDY_CUDA_AXES];
};

EDDY_SCALAR int64_t eddy_cuda_long_quotient(int64_t n, int64_t size, eddy_cuda_divisor by) {
    return by.divisor == 0 || n > INT32_MAX ? n / size
                                            : (int64_t)eddy_cuda_quotient((uint32_t)n, by);
}

EDDY_SCALAR eddy_cuda_place eddy_cuda_place_of(const eddy_cuda_plane_places &places,
                                               int64_t number) {
    eddy_cuda_place place;
    for (int d = EDDY_CUDA_AXES - 1; d >= 0; d--) {
        const int64_t quotient = eddy_cuda_long_quotient(number, places.sizes[d], places.by[d]);
        const int64_t index = number - quotient * places.sizes[d];
        for (int axis = 0; axis < EDDY_CUDA_AXES; axis++) /* so that `at` stays in registers */
            if (places.axes[d] == axis)
                place.at[axis] = index;
        number = quotient;
    }
    return place;
}

/* The first element of a plane. */
EDDY_SCALAR char *eddy_cuda_plane_at(const eddy_cuda_planes &planes, const eddy_cuda_place &place) {
    return (char *)planes.data + place.at[EDDY_CUDA_IMAGE] * planes.strides[EDDY_CUDA_IMAGE] +
           place.at[EDDY_CUDA_CHANNEL] * planes.strides[EDDY_CUDA_CHANNEL];
}

EDDY_SCALAR char *eddy_cuda_row_at(const eddy_cuda_planes &planes, const eddy_cuda_place &place) {
    return eddy_cuda_plane_at(planes, place) +
           place.at[EDDY_CUDA_ROW] * planes.strides[EDDY_CUDA_ROW];
}

EDDY_SCALAR char *eddy_cuda_element_at(const eddy_cuda_planes &planes,
                                       const eddy_cuda_place &place) {
    return eddy_cuda_row_at(planes, place) +
           place.at[EDDY_CUDA_COLUMN] * planes.strides[EDDY_CUDA_COLUMN];
}

/* Calls function(place) for each place. */
template <class work>
EDDY_CUDA_MEMBER void eddy_cuda_each_of(const eddy_cuda_plane_places &places,
                                        const work &function) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    EDDY_CUDA_ROLLED
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < places.count; at += step)
        function(eddy_cuda_place_of(places, at));
}

#endif
