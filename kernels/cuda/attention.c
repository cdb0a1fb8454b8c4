/* sdpa is one launch, of NVIDIA's library's on request (dnn_attention.h), else of our own; its gradient measures the rows, then makes dq by tiles of rows, and dk and dv by tiles of columns. */
#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/attention.h>
#include <kernels/cuda/dnn_attention.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/random.h>
#include <math.h>

#define OPERANDS EDDY_CUDA_ATTENTION_OPERANDS
/* Numbers that are known of each row for the gradient. */
#define STATISTICS 3

static eddy_cuda_image image = {.data = eddy_cuda_image_attention};

typedef enum step { FORWARD, ROWS, DQ, DKV, STEPS } step;

static _Atomic(void *) loaded[STEPS][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[STEPS][EDDY_DTYPE_COUNT] = {
#define FUNCTION(step, text, dtype)                                                                \
    [step][EDDY_##dtype] = {text, &image, loaded[step][EDDY_##dtype]},
#define ATTENTIONS(name, dtype)                                                                    \
    FUNCTION(FORWARD, "eddy_attention_forward_" #name, dtype)                                      \
    FUNCTION(ROWS, "eddy_attention_rows_" #name, dtype)                                            \
    FUNCTION(DQ, "eddy_attention_dq_" #name, dtype)                                                \
    FUNCTION(DKV, "eddy_attention_dkv_" #name, dtype)
    EDDY_CUDA_ATTENTIONS(ATTENTIONS)};

/* ---- operands ---- */

/* By EDDY_CUDA_ATTENTION_Q, ...; NULL: there is none. */
typedef struct attention {
    const eddy_op_view *views[OPERANDS];
    eddy_cuda_attention parameters;
} attention;

/* What a dim adds, in bytes; 0 where it is broadcast. */
static int64_t stride_of(const eddy_op_view *view, int32_t dim) {
    return view->shape[dim] == 1 ? 0 : view->strides[dim] * eddy_dtype_size(view->dtype);
}

/* `like` is an output: outputs have all batch dims. */
static void set_batches(attention *work, const eddy_op_view *like) {
    eddy_cuda_attention *p = &work->parameters;
    eddy_walk batches;
    eddy_walk_init(&batches, like->rank - 2, like->shape);
    for (int o = 0; o < OPERANDS; o++) {
        const eddy_op_view *view = work->views[o];
        int64_t strides[EDDY_RANK_MAX] = {0};
        for (int32_t d = 0; view && d < view->rank - 2; d++)
            strides[like->rank - view->rank + d] = stride_of(view, d);
        eddy_walk_add(&batches, strides, 1);
    }
    p->batches = eddy_walk_count(&batches);
    eddy_walk_collapse(&batches);
    p->rank = batches.rank;
    for (int32_t d = 0; d < batches.rank; d++) {
        p->sizes[d] = batches.dims[d];
        for (int o = 0; o < OPERANDS; o++)
            p->operands[o].batch[d] = batches.strides[o][d];
    }
}

static void set_matrices(attention *work) {
    for (int o = 0; o < OPERANDS; o++) {
        const eddy_op_view *view = work->views[o];
        if (!view)
            continue;
        work->parameters.operands[o].data = view->data;
        work->parameters.operands[o].row = stride_of(view, view->rank - 2);
        work->parameters.operands[o].column = stride_of(view, view->rank - 1);
    }
}

static void set_attributes(eddy_cuda_attention *p, const eddy_attributes_sdpa *a) {
    p->is_causal = a->is_causal;
    p->scale = a->scale != 0 ? a->scale : 1 / sqrt((double)eddy_max_i64(1, p->width));
    p->drops = a->dropout != 0;
    if (!p->drops)
        return;
    p->seed = a->seed;
    p->counter = a->counter;
    p->least = eddy_random_drop_least(a->dropout);
    p->kept = eddy_random_drop_scale(a->dropout);
}

/* The views are set. */
static void describe(attention *work, const eddy_op_view *like, const eddy_attributes_sdpa *a) {
    const eddy_op_view *q = work->views[EDDY_CUDA_ATTENTION_Q],
                       *v = work->views[EDDY_CUDA_ATTENTION_V],
                       *mask = work->views[EDDY_CUDA_ATTENTION_MASK];
    eddy_cuda_attention *p = &work->parameters;
    *p = (eddy_cuda_attention){.rows = q->shape[q->rank - 2],
                               .width = q->shape[q->rank - 1],
                               .columns = v->shape[v->rank - 2],
                               .value_width = v->shape[v->rank - 1]};
    if (mask)
        p->mask = mask->dtype == EDDY_BOOL ? EDDY_CUDA_ATTENTION_HIDES : EDDY_CUDA_ATTENTION_ADDS;
    set_batches(work, like);
    set_matrices(work);
    set_attributes(p, a);
}

static const eddy_op_view *present(const eddy_op_view *view) {
    return eddy_kernel_view_is_absent(view) ? NULL : view;
}

/* views: q, k, v, mask or absent, out */
static void describe_forward(attention *work, const eddy_kernel_call *call) {
    const eddy_op_view *views = call->views;
    *work = (attention){.views = {[EDDY_CUDA_ATTENTION_Q] = &views[0],
                                  [EDDY_CUDA_ATTENTION_K] = &views[1],
                                  [EDDY_CUDA_ATTENTION_V] = &views[2],
                                  [EDDY_CUDA_ATTENTION_MASK] = present(&views[3]),
                                  [EDDY_CUDA_ATTENTION_OUT] = &views[4]}};
    describe(work, &views[4], call->attributes);
}

/* views: grad, output, q, k, v, mask or absent, dq, dk, dv */
static void describe_backward(attention *work, const eddy_kernel_call *call) {
    const eddy_attributes_sdpa_backward *given = call->attributes;
    const eddy_attributes_sdpa attributes = {.seed = (uint64_t)given->seed,
                                             .counter = (uint64_t)given->counter,
                                             .dropout = given->dropout,
                                             .scale = given->scale,
                                             .is_causal = given->is_causal};
    const eddy_op_view *views = call->views;
    *work = (attention){.views = {[EDDY_CUDA_ATTENTION_GRAD] = &views[0],
                                  [EDDY_CUDA_ATTENTION_OUT] = &views[1],
                                  [EDDY_CUDA_ATTENTION_Q] = &views[2],
                                  [EDDY_CUDA_ATTENTION_K] = &views[3],
                                  [EDDY_CUDA_ATTENTION_V] = &views[4],
                                  [EDDY_CUDA_ATTENTION_MASK] = present(&views[5]),
                                  [EDDY_CUDA_ATTENTION_DQ] = &views[6],
                                  [EDDY_CUDA_ATTENTION_DK] = &views[7],
                                  [EDDY_CUDA_ATTENTION_DV] = &views[8]}};
    describe(work, &views[6], &attributes);
}

/* ---- running ---- */

static size_t compute_bytes(const attention *work) {
    return work->views[EDDY_CUDA_ATTENTION_Q]->dtype == EDDY_F64 ? sizeof(double) : sizeof(float);
}

static int64_t tiles_of(const attention *work, int64_t count) {
    int64_t tile = EDDY_CUDA_ATTENTION_TILE(compute_bytes(work));
    return (count + tile - 1) / tile;
}

/* For each batch, tile of rows or columns, and part of the result. */
static void launch(const eddy_kernel_call *call, attention *work, step of, int64_t tiles,
                   int64_t parts) {
    int64_t tasks = work->parameters.batches * tiles * parts;
    if (tasks > 0)
        eddy_cuda_launch(call, &functions[of][work->views[EDDY_CUDA_ATTENTION_Q]->dtype],
                         &work->parameters, sizeof(work->parameters),
                         eddy_cuda_blocks(call, tasks, 1));
}

/* False: nothing is launched. */
static bool run_library(const eddy_kernel_call *call, const attention *work) {
    const eddy_cuda_attention *p = &work->parameters;
    eddy_cuda_dnn_question question;
    if (!eddy_cuda_dnn_may_attend(call) ||
        !eddy_cuda_dnn_attention_of(p, work->views[EDDY_CUDA_ATTENTION_Q]->dtype, &question))
        return false;
    const eddy_cuda_dnn_operands operands = {
        .data = {[EDDY_CUDA_DNN_AT_Q] = p->operands[EDDY_CUDA_ATTENTION_Q].data,
                 [EDDY_CUDA_DNN_AT_K] = p->operands[EDDY_CUDA_ATTENTION_K].data,
                 [EDDY_CUDA_DNN_AT_V] = p->operands[EDDY_CUDA_ATTENTION_V].data,
                 [EDDY_CUDA_DNN_AT_OUT] = p->operands[EDDY_CUDA_ATTENTION_OUT].data},
        .scale = (float)p->scale};
    return eddy_cuda_dnn_launch(call, &question, &operands);
}

static void run_forward(const eddy_kernel_call *call) {
    attention work;
    describe_forward(&work, call);
    if (run_library(call, &work))
        return;
    launch(call, &work, FORWARD, tiles_of(&work, work.parameters.rows),
           tiles_of(&work, work.parameters.value_width));
}

static eddy_status prepare_backward(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    attention work;
    describe_backward(&work, call);
    plan->cost_ps = eddy_cost_views_ps(call);
    plan->workspace_bytes = (size_t)(work.parameters.batches * work.parameters.rows * STATISTICS) *
                            compute_bytes(&work);
    return EDDY_OK;
}

static void run_backward(const eddy_kernel_call *call) {
    attention work;
    describe_backward(&work, call);
    eddy_cuda_attention *p = &work.parameters;
    int64_t row_tiles = tiles_of(&work, p->rows), column_tiles = tiles_of(&work, p->columns);
    p->statistics = call->workspace;
    launch(call, &work, ROWS, row_tiles, 1);
    launch(call, &work, DQ, row_tiles, tiles_of(&work, p->width));
    launch(call, &work, DKV, column_tiles,
           tiles_of(&work, p->width) + tiles_of(&work, p->value_width));
}

const eddy_kernel eddy_cuda_sdpa = {.name = "sdpa", .run = run_forward};
const eddy_kernel eddy_cuda_sdpa_backward = {
    .name = "sdpa_backward", .run = run_backward, .prepare = prepare_backward};
