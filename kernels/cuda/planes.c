#include <base/dtype.h>
#include <kernels/cuda/planes.h>

eddy_cuda_planes eddy_cuda_planes_of(const eddy_op_view *view) {
    eddy_cuda_planes planes = {.data = view->data, .sizes = {1}};
    int32_t missing = EDDY_CUDA_AXES - view->rank;
    for (int32_t d = 0; d < view->rank; d++) {
        planes.sizes[missing + d] = view->shape[d];
        planes.strides[missing + d] = view->strides[d] * eddy_dtype_size(view->dtype);
    }
    return planes;
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Whether axis `a` comes after axis `b`, of which it is behind if strides are the same. An axis of one place is outermost: its stride says nothing. */
static bool is_inner(const eddy_cuda_planes *planes, int32_t a, int32_t b) {
    if (planes->sizes[a] == 1 || planes->sizes[b] == 1)
        return planes->sizes[a] != 1;
    return distance(planes->strides[a]) <= distance(planes->strides[b]);
}

eddy_cuda_plane_places eddy_cuda_plane_places_of(const eddy_cuda_planes *planes) {
    eddy_cuda_plane_places places = {.count = 1};
    for (int32_t d = 0; d < EDDY_CUDA_AXES; d++) {
        int32_t at = d;
        for (; at > 0 && !is_inner(planes, d, places.axes[at - 1]); at--)
            places.axes[at] = places.axes[at - 1];
        places.axes[at] = d;
    }
    for (int32_t d = 0; d < EDDY_CUDA_AXES; d++) {
        int64_t size = planes->sizes[places.axes[d]];
        places.sizes[d] = size;
        places.count *= size;
        if (size > 0 && size <= INT32_MAX)
            places.by[d] = eddy_cuda_divisor_of((uint32_t)size);
    }
    return places;
}
