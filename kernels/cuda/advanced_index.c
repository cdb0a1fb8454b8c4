#include <base/dtype.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/advanced_index.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/places.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_advanced_index};
static _Atomic(void *) loaded[EDDY_CUDA_DEVICES];
static const eddy_cuda_function function = {"eddy_places", &image, loaded};

/* Offsets are in units of so many elements at most: as many as are moved as one (index.c). */
#define UNIT_MOST 16

/* `joined` has memory for the dims; its data are not set. */
static int64_t join(eddy_op_view *joined, int64_t *shape, int64_t *strides,
                    const eddy_op_view *indices, int32_t count) {
    int64_t places = 1;
    *joined = (eddy_op_view){.dtype = EDDY_I64,
                             .rank = eddy_walk_joint_dims(indices, count, shape),
                             .shape = shape,
                             .strides = strides};
    for (int32_t d = joined->rank - 1; d >= 0; d--) {
        strides[d] = places;
        places *= shape[d];
    }
    return places;
}

size_t eddy_cuda_places_bytes(const eddy_op_view *indices, int32_t count) {
    eddy_op_view joined;
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
    return count > 1 ? (size_t)join(&joined, shape, strides, indices, count) * sizeof(int64_t) : 0;
}

/* Whether the tensor's dims run forward or backward, offsets are counted from the place of the lowest address. Without elements along them there is no place. */
static void measure(eddy_cuda_places *places, const eddy_op_view *tensor, int32_t count) {
    uint64_t all = UNIT_MOST;
    int64_t span = 0;
    bool has_places = true;
    places->first = 0;
    for (int32_t d = 0; d < count; d++) {
        int64_t reach = eddy_max_i64(0, tensor->shape[d] - 1) * tensor->strides[d];
        has_places &= tensor->shape[d] > 0;
        all |= (uint64_t)tensor->strides[d];
        span += reach < 0 ? -reach : reach;
        places->first += reach < 0 ? reach : 0;
    }
    places->step = (int64_t)(all & -all);
    places->bound = has_places ? span / places->step + 1 : 0;
}

static void launch(const eddy_cuda_places *places, const eddy_kernel_call *call,
                   const eddy_op_view *tensor, const eddy_op_view *indices, int32_t count) {
    eddy_walk walk;
    eddy_walk_init(&walk, places->index.rank, places->shape);
    for (int32_t i = 0; i < count; i++)
        eddy_walk_add_broadcast(&walk, &indices[i]);
    eddy_walk_collapse(&walk); /* not sorted: places are numbered in row-major order */
    eddy_cuda_places_call p = {.offsets = places->index.data,
                               .count = eddy_walk_count(&walk),
                               .first = -places->first / places->step,
                               .rank = walk.rank,
                               .index_count = count};
    for (int32_t d = 0; d < walk.rank; d++)
        p.dims[d] = walk.dims[d];
    for (int32_t i = 0; i < count; i++) {
        p.is_wide |= (uint32_t)(indices[i].dtype == EDDY_I64) << i;
        p.indices[i] = (eddy_cuda_place_index){.data = indices[i].data,
                                               .bound = tensor->shape[i],
                                               .step = tensor->strides[i] / places->step};
        for (int32_t d = 0; d < walk.rank; d++)
            p.indices[i].strides[d] = walk.strides[i][d] * eddy_dtype_size(indices[i].dtype);
    }
    if (p.count > 0)
        eddy_cuda_launch(call, &function, &p, sizeof(p),
                         eddy_cuda_blocks(call, p.count, EDDY_CUDA_BLOCK));
}

void eddy_cuda_places_find(eddy_cuda_places *places, const eddy_kernel_call *call,
                           const eddy_op_view *tensor, const eddy_op_view *indices, int32_t count,
                           void *workspace) {
    places->is_from_end = count == 1;
    if (count == 1) {
        places->index = indices[0];
        places->bound = tensor->shape[0];
        places->step = tensor->strides[0];
        places->first = 0;
        return;
    }
    (void)join(&places->index, places->shape, places->strides, indices, count);
    places->index.data = workspace;
    measure(places, tensor, count);
    launch(places, call, tensor, indices, count);
}
