/* cat, stack, pad: each input is copied to its part of the output, by a launch of its own. */
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/view.h>

/* views: in ..., out */
static void run_cat(const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t at = 0;
    if (eddy_kernel_view_count(out) == 0)
        return;
    for (const eddy_op_view *in = call->views; in < out; in++) {
        if (in->rank != out->rank)
            continue; /* an empty tensor of shape [0] fits any list, as in PyTorch */
        eddy_op_view place = *out;
        place.shape = in->shape;
        place.data = eddy_cuda_view_at(out, at * out->strides[axis]);
        eddy_cuda_copy_view(call, in, &place);
        at += in->shape[axis];
    }
}

/* views: in ..., all of one shape; out, with one more axis */
static void run_stack(const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t strides[EDDY_RANK_MAX];
    if (eddy_kernel_view_count(out) == 0)
        return;
    for (int32_t d = 0; d < out->rank - 1; d++)
        strides[d] = out->strides[d >= axis ? d + 1 : d];
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        eddy_op_view place = call->views[i];
        place.data = eddy_cuda_view_at(out, i * out->strides[axis]);
        place.strides = strides;
        eddy_cuda_copy_view(call, &call->views[i], &place);
    }
}

/* The whole output is filled, if it has edges, and then its inside is copied: two launches, whatever the rank. */
static void run_pad(const eddy_kernel_call *call) {
    const eddy_attributes_pad *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    eddy_cuda_box from, to;
    eddy_cuda_box_init(&from, in);
    eddy_cuda_box_init(&to, out);
    int64_t skipped = 0, put = 0; /* elements of either side in front of the inside */
    bool has_edges = false;
    for (int32_t d = 0; d < out->rank; d++) {
        int64_t before = attributes->before.dims[d], first = eddy_max_i64(0, -before),
                place = eddy_max_i64(0, before);
        int64_t length = eddy_min_i64(in->shape[d] - first, out->shape[d] - place);
        has_edges |= length != out->shape[d];
        from.shape[d] = to.shape[d] = eddy_max_i64(0, length);
        skipped += first * from.strides[d];
        put += place * to.strides[d];
    }
    if (has_edges) {
        uint64_t element = 0;
        eddy_dtype_store_scalar(out->dtype, &element, attributes->value);
        eddy_cuda_fill_view(call, out, element);
    }
    if (eddy_kernel_view_count(&to.view) == 0)
        return;
    from.view.data = eddy_cuda_view_at(in, skipped);
    to.view.data = eddy_cuda_view_at(out, put);
    eddy_cuda_copy_view(call, &from.view, &to.view);
}

const eddy_kernel eddy_cuda_cat = {.name = "cat", .run = run_cat};
const eddy_kernel eddy_cuda_stack = {.name = "stack", .run = run_stack};
const eddy_kernel eddy_cuda_pad = {.name = "pad", .run = run_pad};
