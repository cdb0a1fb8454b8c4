#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/randperm.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_randperm};

enum {
#define NUMBER(bits) NUMBER_##bits,
    EDDY_CUDA_RANDPERM_FOLLOWS(NUMBER) NUMBER_LINK,
    COUNT
};
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function follows[] = {
#define FUNCTION(bits) {"eddy_randperm_follow_" #bits, &image, loaded[NUMBER_##bits]},
    EDDY_CUDA_RANDPERM_FOLLOWS(FUNCTION)};
static const eddy_cuda_function link = {"eddy_randperm_link", &image, loaded[NUMBER_LINK]};

static void run(const eddy_kernel_call *call) {
    const eddy_attributes_random *attributes = call->attributes;
    const eddy_op_view *out = &call->views[0];
    int64_t count = out->shape[0], *words = call->workspace;
    static const int64_t one = 1;
    if (count == 0)
        return;
    eddy_cuda_shuffle p = {.seed = attributes->seed,
                           .counter = attributes->counter,
                           .count = count,
                           .drawn = words,
                           .heads = words + count,
                           .links = words + 2 * count,
                           .out = out->data,
                           .stride = out->strides[0] * eddy_dtype_size(out->dtype)};
    const eddy_op_view heads = {
        .data = p.heads, .shape = &count, .strides = &one, .dtype = EDDY_I64, .rank = 1};
    uint32_t blocks = eddy_cuda_blocks(call, count, EDDY_CUDA_BLOCK);
    eddy_cuda_fill_view(call, &heads, UINT64_MAX);
    eddy_cuda_launch(call, &link, &p, sizeof(p), blocks);
    eddy_cuda_launch(call, &follows[out->dtype == EDDY_I64 ? NUMBER_64 : NUMBER_32], &p, sizeof(p),
                     blocks);
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes = (size_t)call->views[0].shape[0] * 3 * sizeof(int64_t);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

const eddy_kernel eddy_cuda_randperm = {.name = "randperm", .run = run, .prepare = prepare};
