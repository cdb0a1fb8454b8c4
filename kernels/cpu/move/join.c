/* cat, stack, pad: each input is copied to its part of the output. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/move/move_block.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_BYTES (256 * 1024)
/* Up to this many bytes the C library's copy spends more time on choosing a method than on copying. */
#define RUN_SHORT 1024

/* Contiguous operands of one dtype. For each index of the dims before the axis, the result is a run of each operand. */
typedef struct runs_plan {
    int64_t outer, grain; /* indices of the dims before the axis, and of a slice */
    int64_t inner;        /* bytes of the dims behind the axis */
    int64_t row;          /* bytes of the result for an index */
    int32_t axis;
} runs_plan;

typedef struct runs {
    const eddy_op_view *views;
    int32_t count; /* of the operands */
    const runs_plan *plan;
} runs;

static bool is_packed(const eddy_op_view *view, eddy_dtype dtype) {
    int64_t step = 1;
    for (int32_t d = view->rank - 1; d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != step)
            return false;
        step *= view->shape[d];
    }
    return view->dtype == dtype;
}

static bool are_packed(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    for (int32_t i = 0; i < call->view_count; i++)
        if (call->views[i].rank != out->rank || !is_packed(&call->views[i], out->dtype))
            return false;
    return true;
}

static void runs_slice(void *context, int64_t begin, int64_t end) {
    const runs *work = context;
    const runs_plan *plan = work->plan;
    const eddy_op_view *views = work->views;
    char *to = (char *)views[work->count].data + begin * plan->row;
    void (*copy_short)(void *, const void *, size_t) = eddy_cpu_move_blocks()->copy_short;
    for (int64_t r = begin; r < end; r++)
        for (int32_t i = 0; i < work->count; i++) {
            int64_t bytes = views[i].shape[plan->axis] * plan->inner;
            const char *from = (const char *)views[i].data + r * bytes;
            if (bytes > RUN_SHORT)
                memcpy(to, from, (size_t)bytes);
            else if (bytes > 0)
                copy_short(to, from, (size_t)bytes);
            to += bytes;
        }
}

static void cat_runs(const eddy_kernel_call *call) {
    const runs_plan *plan = call->plan;
    runs work = {.views = call->views, .count = call->view_count - 1, .plan = plan};
    if (plan->outer <= plan->grain)
        runs_slice(&work, 0, plan->outer);
    else
        call->team->parallel_for(call->team, plan->outer, plan->grain, runs_slice, &work);
}

/* Plans packed operands only. Others are copied one by one, and there may be any number of them: a plan could not hold
 * them. */
static eddy_status cat_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    runs_plan *p = plan->memory;
    plan->cost_ps = eddy_cost_views_ps(call);
    if (attributes->axis == 0 || eddy_kernel_view_count(out) == 0 || !are_packed(call))
        return EDDY_OK;
    *p = (runs_plan){.outer = 1, .inner = eddy_dtype_size(out->dtype), .axis = attributes->axis};
    for (int32_t d = 0; d < out->rank; d++) {
        p->outer *= d < p->axis ? out->shape[d] : 1;
        p->inner *= d > p->axis ? out->shape[d] : 1;
    }
    p->row = out->shape[p->axis] * p->inner;
    p->grain = eddy_max_i64(1, SLICE_BYTES / p->row);
    plan->run = cat_runs;
    plan->bytes = sizeof(*p);
    return EDDY_OK;
}

static void cat_run(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t at = 0;
    if (eddy_kernel_view_count(out) == 0)
        return;
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        const eddy_op_view *in = &call->views[i];
        if (in->rank != out->rank)
            continue; /* an empty tensor of shape [0] fits any list, as in PyTorch */
        eddy_op_view place = *out;
        place.shape = in->shape;
        place.data = eddy_chunk_at(out->data, out->dtype, at * out->strides[attributes->axis]);
        eddy_copy_view(call->team, in, &place);
        at += in->shape[attributes->axis];
    }
}

/* views: in ..., all of one shape; out, with one more axis */
static void stack_run(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t strides[EDDY_RANK_MAX];
    if (eddy_kernel_view_count(out) == 0)
        return;
    for (int32_t d = 0; d < out->rank - 1; d++)
        strides[d] = out->strides[d >= attributes->axis ? d + 1 : d];
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        eddy_op_view place = {
            .data = eddy_chunk_at(out->data, out->dtype, i * out->strides[attributes->axis]),
            .shape = call->views[i].shape,
            .strides = strides,
            .dtype = out->dtype,
            .rank = out->rank - 1};
        eddy_copy_view(call->team, &call->views[i], &place);
    }
}

/* The part of `view` from element `from` of dim d on, of `length` elements; its shape is the caller's array `shape`. */
static eddy_op_view part(const eddy_op_view *view, int64_t *shape, int32_t d, int64_t from,
                         int64_t length) {
    eddy_op_view result = *view;
    memcpy(shape, view->shape, (size_t)view->rank * sizeof(shape[0]));
    shape[d] = length;
    result.shape = shape;
    if (length > 0)
        result.data = eddy_chunk_at(view->data, view->dtype, from * view->strides[d]);
    return result;
}

/* For each axis in turn, the edges before and after the inside are filled, and the rest is the inside. Each element is
 * written once. */
static void pad_run(const eddy_kernel_call *call) {
    const eddy_attributes_pad *attributes = call->attributes;
    eddy_op_view in = call->views[0], out = call->views[1];
    int64_t in_shape[EDDY_RANK_MAX], out_shape[EDDY_RANK_MAX], edge_shape[EDDY_RANK_MAX];
    _Alignas(8) char element[8];
    eddy_dtype_store_scalar(out.dtype, element, attributes->value);
    if (eddy_kernel_view_count(&out) == 0)
        return;
    for (int32_t d = 0; d < out.rank; d++) {
        int64_t before = attributes->before.dims[d], from = eddy_max_i64(0, -before),
                to = eddy_max_i64(0, before);
        int64_t length = eddy_min_i64(in.shape[d] - from, out.shape[d] - to);
        eddy_op_view edge = part(&out, edge_shape, d, 0, to);
        eddy_fill_view(call->team, &edge, element);
        edge = part(&out, edge_shape, d, to + length, out.shape[d] - to - length);
        eddy_fill_view(call->team, &edge, element);
        in = part(&in, in_shape, d, from, length);
        out = part(&out, out_shape, d, to, length);
    }
    eddy_copy_view(call->team, &in, &out);
}

const eddy_kernel eddy_cpu_cat = {.name = "cat",
                                  .run = cat_run,
                                  .prepare = cat_prepare,
                                  .cost_base_ps = 80000,
                                  .cost_element_ps = 130};
const eddy_kernel eddy_cpu_stack = {
    .name = "stack", .run = stack_run, .cost_base_ps = 80000, .cost_element_ps = 130};
const eddy_kernel eddy_cpu_pad = {
    .name = "pad", .run = pad_run, .cost_base_ps = 200000, .cost_element_ps = 170};
