/* Gradients of pooling. */
#include <base/dtype.h>
#include <base/shape.h>
#include <kernels/cpu/copy.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool_plan.h>
#include <kernels/cpu/scatter.h>
#include <kernels/cpu/walk.h>

/* ---- through indices ---- */

/* Elements from a place of a plane to the next in row-major order; false where there is no one number. */
static bool plane_step(const eddy_kernel_view *view, int64_t *step) {
    int64_t height = view->shape[view->rank - 2], width = view->shape[view->rank - 1];
    int64_t row = view->strides[view->rank - 2], column = view->strides[view->rank - 1];
    *step = width == 1 ? row : column;
    return height == 1 || width == 1 || row == width * column;
}

/* The output, or where its planes are not even a row-major one of its own in the workspace. */
static eddy_kernel_view even_planes(const eddy_kernel_call *call, const eddy_kernel_view *out, int64_t *strides) {
    int64_t step;
    if (plane_step(out, &step))
        return *out;
    eddy_strides_contiguous(out->rank, out->shape, strides);
    return (eddy_kernel_view){
        .data = call->workspace, .shape = out->shape, .strides = strides, .dtype = out->dtype, .rank = out->rank};
}

static size_t even_planes_bytes(const eddy_kernel_view *out) {
    int64_t step;
    if (plane_step(out, &step))
        return 0;
    return ((size_t)eddy_view_count(out) * eddy_dtype_bytes(out->dtype) + 63) / 64 * 64;
}

/* views: grad, indices [.., OH, OW], out [.., H, W] */
static void max_pool2d_backward_run(const eddy_kernel_call *call) {
    const eddy_kernel_view *grad = &call->views[0], *indices = &call->views[1], *out = &call->views[2];
    int64_t strides[EDDY_RANK_MAX];
    if (eddy_view_count(out) == 0)
        return;
    eddy_kernel_view even = even_planes(call, out, strides);
    eddy_scatter s = {.call = call,
                      .source = grad->data,
                      .index = indices->data,
                      .source_dtype = grad->dtype,
                      .index_dtype = indices->dtype,
                      .left_out = -1,
                      .bound = out->shape[out->rank - 2] * out->shape[out->rank - 1],
                      .adds = true};
    eddy_scatter_begin(&s, NULL, &even, (char *)call->workspace + even_planes_bytes(out));
    eddy_kernel_view ground = s.ground;
    ground.shape = out->shape;
    plane_step(&ground, &s.step);
    eddy_walk_init(&s.along, 0, NULL);
    eddy_walk_init(&s.rest, 0, NULL);
    s.along.operand_count = s.rest.operand_count = 4;
    int64_t number = eddy_view_count(indices);
    for (int32_t d = 0; d < out->rank; d++) {
        number /= eddy_max_i64(1, indices->shape[d]);
        bool is_plane = d < out->rank - 2;
        eddy_walk_append(is_plane ? &s.rest : &s.along, indices->shape[d],
                         (int64_t[]){is_plane ? s.strides[d] : 0, grad->strides[d], indices->strides[d], number}, 4);
    }
    eddy_scatter_end(&s, &even);
    if (even.data != out->data)
        eddy_copy_view(call->team, &even, out);
}

static size_t max_pool2d_backward_workspace(const eddy_kernel_call *call) {
    const eddy_kernel_view *out = &call->views[2];
    return even_planes_bytes(out) + eddy_scatter_workspace(out, true);
}

static int64_t max_pool2d_backward_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(&call->views[2]), 100) +
           eddy_cost_ps(eddy_view_count(&call->views[0]), call->kernel->cost_element_ps);
}

const eddy_kernel eddy_cpu_max_pool2d_backward = {.name = "max_pool2d_backward",
                                                  .run = max_pool2d_backward_run,
                                                  .workspace = max_pool2d_backward_workspace,
                                                  .cost_base_ps = 120000,
                                                  .cost_element_ps = 1500,
                                                  .cost = max_pool2d_backward_cost};
