/* nonzero, masked_select: the numbers of each chunk stay in the workspace from `count` to `run`. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/held.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/selection.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_selection};

static _Atomic(void *) loaded[4][EDDY_CUDA_DEVICES];

static const eddy_cuda_function count_function = {"eddy_selection_count", &image, loaded[0]},
                                begin_function = {"eddy_selection_begin", &image, loaded[1]},
                                indices_function = {"eddy_selection_indices", &image, loaded[2]},
                                elements_function = {"eddy_selection_elements", &image, loaded[3]};

/* -0 is zero, and a NaN is not. */
static uint64_t bits_of(eddy_dtype dtype) {
    uint64_t all = UINT64_MAX >> (64 - 8 * eddy_dtype_bytes(dtype));
    return eddy_dtype_is_float(dtype) ? all >> 1 : all;
}

/* `in` is NULL for nonzero. In row-major order: not sorted. */
static void describe_places(eddy_cuda_selection_call *p, const eddy_op_view *tested,
                            const eddy_op_view *in) {
    const eddy_op_view both[] = {*tested, in ? *in : *tested};
    int64_t dims[EDDY_RANK_MAX],
        bytes[] = {eddy_dtype_size(both[0].dtype), eddy_dtype_size(both[1].dtype)};
    int32_t rank = eddy_walk_joint_dims(both, 2, dims);
    eddy_walk walk;
    eddy_walk_init(&walk, rank, dims);
    eddy_walk_add_broadcast(&walk, &both[EDDY_CUDA_SELECTION_TESTED]);
    eddy_walk_add_broadcast(&walk, &both[EDDY_CUDA_SELECTION_IN]);
    eddy_walk_collapse(&walk);
    p->tested = tested->data;
    p->bits = bits_of(tested->dtype);
    p->tested_bytes = (int32_t)bytes[0];
    p->element_bytes = (int32_t)bytes[1];
    p->in = both[1].data;
    p->count = eddy_walk_count(&walk);
    if (p->count > 0)
        eddy_cuda_dims_take(&p->places, &walk, bytes);
}

static void count_places(const eddy_kernel_call *call, eddy_cuda_selection_call *p) {
    if (p->count == 0)
        return;
    p->begins = call->workspace;
    eddy_cuda_launch(call, &count_function, p, sizeof(*p),
                     eddy_cuda_blocks(call, eddy_cuda_held_chunks(p->count), 1));
    eddy_cuda_launch(call, &begin_function, p, sizeof(*p), 1);
}

static void put_places(const eddy_kernel_call *call, eddy_cuda_selection_call *p,
                       const eddy_cuda_function *function) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    if (eddy_kernel_view_count(out) == 0)
        return;
    p->begins = call->workspace;
    p->out = out->data;
    p->found = out->shape[0];
    p->step = out->strides[0] * eddy_dtype_size(out->dtype);
    eddy_cuda_launch(call, function, p, sizeof(*p),
                     eddy_cuda_blocks(call, eddy_cuda_held_chunks(p->count), 1));
}

static eddy_status prepare(const eddy_kernel_call *call, const eddy_cuda_selection_call *p,
                           eddy_kernel_plan *plan) {
    plan->workspace_bytes = (size_t)eddy_cuda_held_chunks(p->count) * sizeof(int64_t);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* ---- nonzero: in, out [n, rank] ---- */

static eddy_status prepare_nonzero(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_cuda_selection_call p = {0};
    describe_places(&p, &call->views[0], NULL);
    return prepare(call, &p, plan);
}

static void count_nonzero(const eddy_kernel_call *call, eddy_shape *shapes) {
    (void)shapes;
    eddy_cuda_selection_call p = {0};
    describe_places(&p, &call->views[0], NULL);
    count_places(call, &p);
}

static void run_nonzero(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    eddy_cuda_selection_call p = {.axis_step = out->strides[1] * eddy_dtype_size(out->dtype)};
    eddy_walk axes;
    eddy_walk_init(&axes, in->rank, in->shape);
    describe_places(&p, in, NULL);
    if (p.count > 0)
        eddy_cuda_dims_take(&p.axes, &axes, NULL);
    put_places(call, &p, &indices_function);
}

/* ---- masked_select: in, mask, out [n] ---- */

static eddy_status prepare_masked_select(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_cuda_selection_call p = {0};
    describe_places(&p, &call->views[1], &call->views[0]);
    return prepare(call, &p, plan);
}

static void count_masked_select(const eddy_kernel_call *call, eddy_shape *shapes) {
    (void)shapes;
    eddy_cuda_selection_call p = {0};
    describe_places(&p, &call->views[1], &call->views[0]);
    count_places(call, &p);
}

static void run_masked_select(const eddy_kernel_call *call) {
    eddy_cuda_selection_call p = {0};
    describe_places(&p, &call->views[1], &call->views[0]);
    put_places(call, &p, &elements_function);
}

const eddy_kernel eddy_cuda_nonzero = {.name = "nonzero",
                                       .run = run_nonzero,
                                       .prepare = prepare_nonzero,
                                       .count = count_nonzero,
                                       .shape = eddy_counted_nonzero};
const eddy_kernel eddy_cuda_masked_select = {.name = "masked_select",
                                             .run = run_masked_select,
                                             .prepare = prepare_masked_select,
                                             .count = count_masked_select,
                                             .shape = eddy_counted_masked_select};
