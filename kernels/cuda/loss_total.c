#include <kernels/cuda/images.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/loss_total.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_loss_total};

enum {
#define NUMBER(name, dtype) NUMBER_##name,
    EDDY_CUDA_LOSS_DTYPES(NUMBER) NUMBER_ROWS,
    COUNT
};
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function sum_rows = {"eddy_loss_rows", &image, loaded[NUMBER_ROWS]};
static const eddy_cuda_function totals[EDDY_DTYPE_COUNT] = {
#define TOTAL(name, dtype)                                                                         \
    [EDDY_##dtype] = {"eddy_loss_total_" #name, &image, loaded[NUMBER_##name]},
    EDDY_CUDA_LOSS_DTYPES(TOTAL)};

void eddy_cuda_add_losses(const eddy_kernel_call *call, int64_t count,
                          eddy_cuda_loss_divisor divisor) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    EDDY_ASSERT(count <= EDDY_CUDA_LOSSES_MOST);
    eddy_cuda_loss_total p = {
        .losses = call->workspace, .count = count, .divisor = divisor, .out = out->data};
    if (count > EDDY_CUDA_LOSSES_OF_BLOCK) {
        p.sums = (double *)call->workspace + count;
        eddy_cuda_launch(call, &sum_rows, &p, sizeof(p),
                         eddy_cuda_blocks(call, count, EDDY_CUDA_LOSSES_OF_BLOCK));
        p.losses = p.sums;
        p.sums = NULL;
        p.are_summed = true;
    }
    eddy_cuda_launch(call, &totals[out->dtype], &p, sizeof(p), 1);
}
