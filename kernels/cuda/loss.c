/* cross_entropy and nll_loss, and their gradients: a divisor is found if the host does not know it, then come the rows, and last their sum. */
#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cpu/softmax/softmax_block.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/loss.h>
#include <stdlib.h>

_Static_assert(EDDY_CUDA_ROW_LANES == EDDY_SOFTMAX_LANES &&
                   EDDY_CUDA_ROW_CHUNK == EDDY_SOFTMAX_CHUNK,
               "powers are added as on the CPU");

static eddy_cuda_image image = {.data = eddy_cuda_image_loss};

/* ---- which kernels there are ---- */

#define OPS(row)                                                                                   \
    row(label_weights) row(cross_entropy) row(cross_entropy_backward) row(nll_loss)                \
        row(nll_loss_backward)

enum {
#define NUMBER(op) NUMBER_##op,
    OPS(NUMBER) COUNT
};
static _Atomic(void *) loaded[COUNT][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];
static _Atomic(void *) counts_loaded[EDDY_CUDA_DEVICES];

static const eddy_cuda_function label_counts = {"eddy_label_counts", &image, counts_loaded};
static const eddy_cuda_function functions[COUNT][EDDY_DTYPE_COUNT] = {
#define FUNCTION(op, of, dtype)                                                                    \
    [NUMBER_##op][EDDY_##dtype] = {"eddy_" #op "_" #of, &image, loaded[NUMBER_##op][EDDY_##dtype]},
#define OF_F32(op) FUNCTION(op, f32, F32)
#define OF_F64(op) FUNCTION(op, f64, F64)
#define OF_F16(op) FUNCTION(op, f16, F16)
#define OF_BF16(op) FUNCTION(op, bf16, BF16)
    OPS(OF_F32) OPS(OF_F64) OPS(OF_F16) OPS(OF_BF16)};

/* ---- parameters ---- */

typedef struct operands {
    const eddy_op_view *input, *target, *weight, *grad, *out; /* NULL: not of this op */
} operands;

/* The least power of two from `least` on, `most` at most, which is one. */
static uint32_t power_of_two(int64_t least, uint32_t most) {
    uint32_t power = 1;
    while (power < least && power < most)
        power *= 2;
    return power;
}

/* Spreads the threads of a block over the places of a row and over rows. */
static void spread(eddy_cuda_label_loss *p, uint32_t most_places, int64_t chunks) {
    p->places = power_of_two(p->classes, most_places);
    p->team = power_of_two(chunks, EDDY_CUDA_BLOCK / p->places);
    p->abreast = EDDY_CUDA_BLOCK / (p->places * p->team);
}

static void take_matrix(eddy_cuda_label_loss *p, const eddy_op_view *view, int64_t *strides) {
    p->classes = view->shape[1];
    strides[0] = view->strides[0];
    strides[1] = view->strides[1];
    p->is_across = llabs(strides[0]) < llabs(strides[1]);
}

static eddy_cuda_label_loss parameters_of(const eddy_kernel_call *call, const operands *of) {
    const eddy_attributes_cross_entropy *attributes = call->attributes;
    eddy_cuda_label_loss p = {.target = of->target->data,
                              .target_stride = of->target->strides[0],
                              .rows = of->target->shape[0],
                              .out = of->out->data,
                              .has_ignore_index = attributes->has_ignore_index,
                              .ignore_index = attributes->ignore_index};
    if (of->out->rank == 2)
        take_matrix(&p, of->out, p.out_strides);
    else if (of->out->rank == 1)
        p.out_strides[0] = of->out->strides[0];
    if (of->input) {
        take_matrix(&p, of->input, p.input_strides);
        p.input = of->input->data;
    }
    if (of->weight && !eddy_kernel_view_is_absent(of->weight)) {
        p.weight = of->weight->data;
        p.weight_stride = of->weight->strides[0];
    }
    if (of->grad) {
        p.grad = of->grad->data;
        p.grad_stride = of->grad->rank > 0 ? of->grad->strides[0] : 0;
    }
    return p;
}

static bool is_none(const eddy_kernel_call *call) {
    return ((const eddy_attributes_cross_entropy *)call->attributes)->reduction ==
           EDDY_REDUCTION_NONE;
}

static bool is_mean(const eddy_kernel_call *call) {
    return ((const eddy_attributes_cross_entropy *)call->attributes)->reduction ==
           EDDY_REDUCTION_MEAN;
}

/* Sets what a mean is divided by: the labels that are not ignored, or their weights. `divisors`: of the workspace. */
static void find_divisor(const eddy_kernel_call *call, eddy_cuda_label_loss *p, eddy_dtype dtype,
                         void *divisors) {
    p->divisor.whole = is_mean(call) ? (double)p->rows : 1;
    if (!is_mean(call) || !(p->has_ignore_index || p->weight))
        return;
    int64_t parts = (p->rows + 4 * EDDY_CUDA_BLOCK - 1) / (4 * EDDY_CUDA_BLOCK);
    p->divisors = divisors;
    p->divisor.parts = divisors;
    p->divisor.count = p->weight ? 1 : eddy_max_i64(1, eddy_min_i64(parts, EDDY_CUDA_DIVISORS));
    eddy_cuda_launch(call, p->weight ? &functions[NUMBER_label_weights][dtype] : &label_counts, p,
                     sizeof(*p), (uint32_t)p->divisor.count);
    p->divisors = NULL;
}

/* ---- losses: [rows] in the output, or in the workspace, where sums and divisors follow ---- */

static eddy_status prepare_loss(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    int64_t rows = call->views[1].shape[0];
    if (!is_none(call))
        plan->workspace_bytes = eddy_cuda_loss_bytes(rows) + EDDY_CUDA_DIVISORS * sizeof(double);
    return EDDY_OK;
}

/* `rows_of_block`: rows that a block of threads works on at once. */
static void run_loss(const eddy_kernel_call *call, eddy_cuda_label_loss *p,
                     const eddy_cuda_function *function, int64_t rows_of_block) {
    eddy_dtype dtype = call->views[0].dtype;
    if (!is_none(call)) {
        p->losses = call->workspace;
        find_divisor(call, p, dtype, (char *)call->workspace + eddy_cuda_loss_bytes(p->rows));
    }
    if (p->rows > 0)
        eddy_cuda_launch(call, function, p, sizeof(*p),
                         eddy_cuda_blocks(call, p->rows, rows_of_block));
    if (!is_none(call))
        eddy_cuda_add_losses(call, p->rows, p->divisor);
}

static void spread_over_chunks(eddy_cuda_label_loss *p) {
    spread(p, EDDY_CUDA_ROW_LANES, (p->classes + EDDY_CUDA_ROW_CHUNK - 1) / EDDY_CUDA_ROW_CHUNK);
}

static void run_cross_entropy(const eddy_kernel_call *call) {
    const operands of = {
        .input = &call->views[0], .target = &call->views[1], .out = &call->views[2]};
    eddy_cuda_label_loss p = parameters_of(call, &of);
    spread_over_chunks(&p);
    run_loss(call, &p, &functions[NUMBER_cross_entropy][of.input->dtype], p.abreast);
}

static void run_nll_loss(const eddy_kernel_call *call) {
    const operands of = {.input = &call->views[0],
                         .target = &call->views[1],
                         .weight = &call->views[2],
                         .out = &call->views[3]};
    eddy_cuda_label_loss p = parameters_of(call, &of);
    run_loss(call, &p, &functions[NUMBER_nll_loss][of.input->dtype], EDDY_CUDA_BLOCK);
}

/* ---- gradients ---- */

static eddy_status prepare_gradient(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    if (is_mean(call))
        plan->workspace_bytes = EDDY_CUDA_DIVISORS * sizeof(double);
    return EDDY_OK;
}

static void run_gradient(const eddy_kernel_call *call, eddy_cuda_label_loss *p,
                         const eddy_cuda_function *function) {
    if (p->rows == 0)
        return;
    find_divisor(call, p, call->views[0].dtype, call->workspace);
    eddy_cuda_launch(call, function, p, sizeof(*p), eddy_cuda_blocks(call, p->rows, p->abreast));
}

static void run_cross_entropy_backward(const eddy_kernel_call *call) {
    const operands of = {.grad = &call->views[0],
                         .input = &call->views[1],
                         .target = &call->views[2],
                         .out = &call->views[3]};
    eddy_cuda_label_loss p = parameters_of(call, &of);
    spread_over_chunks(&p);
    run_gradient(call, &p, &functions[NUMBER_cross_entropy_backward][of.out->dtype]);
}

static void run_nll_loss_backward(const eddy_kernel_call *call) {
    const operands of = {.grad = &call->views[0],
                         .target = &call->views[1],
                         .weight = &call->views[2],
                         .out = &call->views[3]};
    eddy_cuda_label_loss p = parameters_of(call, &of);
    spread(&p, EDDY_CUDA_BLOCK, 1);
    run_gradient(call, &p, &functions[NUMBER_nll_loss_backward][of.out->dtype]);
}

const eddy_kernel eddy_cuda_cross_entropy = {
    .name = "cross_entropy", .prepare = prepare_loss, .run = run_cross_entropy};
const eddy_kernel eddy_cuda_cross_entropy_backward = {.name = "cross_entropy_backward",
                                                      .prepare = prepare_gradient,
                                                      .run = run_cross_entropy_backward};
const eddy_kernel eddy_cuda_nll_loss = {
    .name = "nll_loss", .prepare = prepare_loss, .run = run_nll_loss};
const eddy_kernel eddy_cuda_nll_loss_backward = {
    .name = "nll_loss_backward", .prepare = prepare_gradient, .run = run_nll_loss_backward};
