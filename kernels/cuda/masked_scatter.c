#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/held.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/masked_scatter.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_masked_scatter};

enum {
#define NUMBER(bits) NUMBER_##bits,
    EDDY_CUDA_MASKED_SCATTERS(NUMBER) COUNT
};
static _Atomic(void *) loaded[2 + COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function count_function = {"eddy_masked_scatter_count", &image,
                                                  loaded[COUNT]},
                                begin_function = {"eddy_masked_scatter_begin", &image,
                                                  loaded[COUNT + 1]};
/* By eddy_cuda_width. */
static const eddy_cuda_function functions[COUNT] = {
#define FUNCTION(bits) {"eddy_masked_scatter_" #bits, &image, loaded[NUMBER_##bits]},
    EDDY_CUDA_MASKED_SCATTERS(FUNCTION)};

/* Not sorted: elements are counted in row-major order. */
static void describe_places(eddy_cuda_masked_scatter_call *p, const eddy_op_view *in,
                            const eddy_op_view *mask, const eddy_op_view *out) {
    const int64_t bytes[] = {
        [EDDY_CUDA_MASKED_SCATTER_OUT] = eddy_dtype_size(out->dtype),
        [EDDY_CUDA_MASKED_SCATTER_IN] = eddy_dtype_size(out->dtype),
        [EDDY_CUDA_MASKED_SCATTER_MASK] = 1,
    };
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add_broadcast(&walk, in);
    eddy_walk_add_broadcast(&walk, mask);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    p->rank = walk.rank;
    for (int32_t d = 0; d < walk.rank; d++) {
        p->dims[d] = walk.dims[d];
        for (int o = 0; o < EDDY_CUDA_MASKED_SCATTER_OPERANDS; o++)
            p->strides[o][d] = walk.strides[o][d] * bytes[o];
    }
}

static void describe_source(eddy_cuda_masked_scatter_call *p, const eddy_op_view *source) {
    eddy_walk walk;
    eddy_walk_init(&walk, source->rank, source->shape);
    eddy_walk_add(&walk, source->strides, eddy_dtype_size(source->dtype));
    eddy_walk_collapse(&walk);
    p->source_count = eddy_walk_count(&walk);
    p->source_rank = walk.rank;
    for (int32_t d = 0; d < walk.rank; d++) {
        p->source_dims[d] = walk.dims[d];
        p->source_strides[d] = walk.strides[0][d];
    }
}

/* views: in, mask, source, out */
static eddy_status prepare_masked_scatter(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes =
        (size_t)eddy_cuda_held_chunks(eddy_kernel_view_count(&call->views[3])) * sizeof(int64_t);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void run_masked_scatter(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *mask = &call->views[1], *source = &call->views[2],
                       *out = &call->views[3];
    eddy_cuda_masked_scatter_call p = {.out = out->data,
                                       .in = in->data,
                                       .mask = mask->data,
                                       .source = source->data,
                                       .begins = call->workspace};
    describe_places(&p, in, mask, out);
    describe_source(&p, source);
    if (p.count == 0)
        return;
    uint32_t blocks = eddy_cuda_blocks(call, eddy_cuda_held_chunks(p.count), 1);
    eddy_cuda_launch(call, &count_function, &p, sizeof(p), blocks);
    eddy_cuda_launch(call, &begin_function, &p, sizeof(p), 1);
    eddy_cuda_launch(call, &functions[eddy_cuda_width(out->dtype)], &p, sizeof(p), blocks);
}

const eddy_kernel eddy_cuda_masked_scatter = {
    .name = "masked_scatter", .run = run_masked_scatter, .prepare = prepare_masked_scatter};
