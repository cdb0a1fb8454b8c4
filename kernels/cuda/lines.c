#include <base/dtype.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/lines.h>

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Views have the output last. */
static const eddy_op_view *view_of(const eddy_kernel_call *call, int32_t operand) {
    return &call->views[operand == 0 ? call->view_count - 1 : operand - 1];
}

void eddy_cuda_lines_take(eddy_cuda_lines *to, const eddy_kernel_call *call, int32_t axis) {
    EDDY_ASSERT(call->view_count <= EDDY_CUDA_DIMS_OPERANDS);
    const eddy_op_view *out = view_of(call, 0);
    int64_t bytes[EDDY_CUDA_DIMS_OPERANDS], strides[EDDY_CUDA_DIMS_OPERANDS];
    eddy_walk walk;
    eddy_walk_init(&walk, 0, NULL);
    walk.operand_count = call->view_count;
    to->count = 1;
    for (int32_t o = 0; o < call->view_count; o++)
        bytes[o] = eddy_dtype_size(view_of(call, o)->dtype);
    for (int32_t d = 0; d < out->rank; d++) {
        for (int32_t o = 0; o < call->view_count; o++)
            strides[o] = view_of(call, o)->strides[d];
        if (d != axis) {
            eddy_walk_append(&walk, out->shape[d], strides, call->view_count);
            continue;
        }
        to->count = out->shape[d];
        for (int32_t o = 0; o < call->view_count; o++)
            to->strides[o] = strides[o] * bytes[o];
    }
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    to->lines = eddy_walk_count(&walk);
    to->is_across =
        walk.rank > 0 && to->count > 1 &&
        magnitude(eddy_walk_inner_stride(&walk, 0) * bytes[0]) < magnitude(to->strides[0]);
    if (to->lines > 0)
        eddy_cuda_dims_take(&to->dims, &walk, bytes);
}
