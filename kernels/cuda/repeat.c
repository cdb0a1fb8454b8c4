/* repeat, repeat_interleave, flip, roll. */
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/repeat.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_repeat};
static _Atomic(void *) loaded[4][EDDY_CUDA_DEVICES];

/* By eddy_cuda_width. */
static const eddy_cuda_function functions[] = {{"eddy_repeat_8", &image, loaded[0]},
                                               {"eddy_repeat_16", &image, loaded[1]},
                                               {"eddy_repeat_32", &image, loaded[2]},
                                               {"eddy_repeat_64", &image, loaded[3]}};

/* ---- repeat and roll ---- */

/* Dims that the input does not have are 1 there. The count is not 0. */
static eddy_cuda_repetition describe(const eddy_op_view *in, const eddy_op_view *out) {
    eddy_cuda_repetition p = {
        .out = out->data, .in = in->data, .count = eddy_kernel_view_count(out), .rank = out->rank};
    int64_t bytes = eddy_dtype_size(out->dtype);
    int32_t added = out->rank - in->rank;
    for (int32_t d = 0; d < out->rank; d++) {
        p.dims[d] = out->shape[d];
        p.in_dims[d] = d < added ? 1 : in->shape[d - added];
        p.strides[d] = out->strides[d] * bytes;
        p.in_strides[d] = d < added ? 0 : in->strides[d - added] * bytes;
    }
    return p;
}

static void launch(const eddy_kernel_call *call, eddy_cuda_repetition *p) {
    eddy_cuda_launch(call, &functions[eddy_cuda_width(call->views[1].dtype)], p, sizeof(*p),
                     eddy_cuda_blocks(call, p->count, EDDY_CUDA_BLOCK));
}

static void run_repeat(const eddy_kernel_call *call) {
    if (eddy_kernel_view_count(&call->views[1]) == 0)
        return;
    eddy_cuda_repetition p = describe(&call->views[0], &call->views[1]);
    launch(call, &p);
}

/* An element moves on by its shift, so it comes from as far back. */
static void run_roll(const eddy_kernel_call *call) {
    const eddy_attributes_roll *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    if (eddy_kernel_view_count(out) == 0)
        return;
    eddy_cuda_repetition p = describe(in, out);
    if (attributes->shifts.rank != in->rank)
        p.turn = (p.count - attributes->shifts.dims[0]) % p.count;
    else
        for (int32_t d = 0; d < in->rank; d++)
            p.shifts[d] = (in->shape[d] - attributes->shifts.dims[d]) % in->shape[d];
    launch(call, &p);
}

/* ---- copies of boxes ---- */

/* The axis is treated as two: its elements, and the copies of each. If the rank allows no further axis, the copies are made one by one. */
static void run_repeat_interleave(const eddy_kernel_call *call) {
    const eddy_attributes_repeat_interleave *attributes = call->attributes;
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]), *out = &call->views[1];
    if (eddy_kernel_view_count(out) == 0)
        return;
    int64_t stride = out->strides[attributes->axis], times = 1;
    eddy_cuda_box to, from;
    eddy_cuda_box_init(&to, out);
    eddy_cuda_box_init(&from, &in);
    to.shape[attributes->axis] = in.shape[attributes->axis];
    to.strides[attributes->axis] = stride * attributes->repeats;
    if (in.rank == EDDY_RANK_MAX) {
        times = attributes->repeats;
    } else {
        to.shape[in.rank] = from.shape[in.rank] = attributes->repeats;
        to.strides[in.rank] = stride;
        from.strides[in.rank] = 0;
        to.view.rank = from.view.rank = in.rank + 1;
    }
    for (int64_t i = 0; i < times; i++) {
        to.view.data = eddy_cuda_view_at(out, i * stride);
        eddy_cuda_copy_view(call, &from.view, &to.view);
    }
}

static void run_flip(const eddy_kernel_call *call) {
    const eddy_attributes_flip *attributes = call->attributes;
    if (eddy_kernel_view_count(&call->views[1]) == 0)
        return;
    eddy_cuda_box from;
    eddy_cuda_box_init(&from, &call->views[0]);
    int64_t first = 0;
    for (int32_t d = 0; d < from.view.rank; d++) {
        if (!(attributes->axes >> d & 1u))
            continue;
        first += (from.shape[d] - 1) * from.strides[d];
        from.strides[d] = -from.strides[d];
    }
    from.view.data = eddy_cuda_view_at(&call->views[0], first);
    eddy_cuda_copy_view(call, &from.view, &call->views[1]);
}

const eddy_kernel eddy_cuda_repeat = {.name = "repeat", .run = run_repeat};
const eddy_kernel eddy_cuda_repeat_interleave = {.name = "repeat_interleave",
                                                 .run = run_repeat_interleave};
const eddy_kernel eddy_cuda_flip = {.name = "flip", .run = run_flip};
const eddy_kernel eddy_cuda_roll = {.name = "roll", .run = run_roll};
