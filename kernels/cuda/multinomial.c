#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/multinomial.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_multinomial};

enum { SUM, SEARCH, KEYS, CHOOSE, COUNT };
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[COUNT] = {
    [SUM] = {"eddy_multinomial_sum", &image, loaded[SUM]},
    [SEARCH] = {"eddy_multinomial_search", &image, loaded[SEARCH]},
    [KEYS] = {"eddy_multinomial_keys", &image, loaded[KEYS]},
    [CHOOSE] = {"eddy_multinomial_choose", &image, loaded[CHOOSE]}};

/* Shapes, strides, and the workspace: the weights, and what is kept of each row aside. */
static eddy_cuda_multinomial_call describe(const eddy_kernel_call *call) {
    const eddy_attributes_multinomial *attributes = call->attributes;
    const eddy_op_view *weights = &call->views[0], *out = &call->views[1];
    eddy_cuda_multinomial_call p = {.seed = attributes->seed,
                                    .counter = attributes->counter,
                                    .rows = weights->rank == 2 ? weights->shape[0] : 1,
                                    .classes = weights->shape[weights->rank - 1],
                                    .draws = attributes->count,
                                    .weights = call->workspace,
                                    .out = out->data};
    p.row_stride = out->rank == 2 ? out->strides[0] * (int64_t)sizeof(int64_t) : 0;
    p.draw_stride = out->strides[out->rank - 1] * (int64_t)sizeof(int64_t);
    return p;
}

/* As f64, row by row. */
static void copy_weights(const eddy_kernel_call *call, const eddy_cuda_multinomial_call *p) {
    const int64_t strides[] = {p->classes, 1};
    eddy_op_view to = call->views[0];
    to.data = p->weights;
    to.dtype = EDDY_F64;
    to.strides = strides + 2 - to.rank;
    eddy_cuda_copy_view(call, &call->views[0], &to);
}

static void launch(const eddy_kernel_call *call, int number, eddy_cuda_multinomial_call *p,
                   int64_t work, int64_t of_block) {
    eddy_cuda_launch(call, &functions[number], p, sizeof(*p),
                     eddy_cuda_blocks(call, work, of_block));
}

static void run_again(const eddy_kernel_call *call, eddy_cuda_multinomial_call *p) {
    int64_t piece = EDDY_CUDA_MULTINOMIAL_PIECE / EDDY_CUDA_MULTINOMIAL_ABREAST;
    while (piece < p->classes && piece < EDDY_CUDA_MULTINOMIAL_PIECE)
        piece *= 2;
    p->abreast = (uint32_t)(EDDY_CUDA_MULTINOMIAL_PIECE / piece);
    p->totals = (eddy_cuda_total *)(void *)(p->weights + p->rows * p->classes);
    launch(call, SUM, p, p->rows, p->abreast);
    launch(call, SEARCH, p, p->rows * p->draws, EDDY_CUDA_BLOCK);
}

static void run_once(const eddy_kernel_call *call, eddy_cuda_multinomial_call *p) {
    p->chosen = (eddy_cuda_candidate *)(void *)(p->weights + p->rows * p->classes);
    launch(call, KEYS, p, p->rows * p->classes, EDDY_CUDA_BLOCK);
    launch(call, CHOOSE, p, p->rows, 1);
}

static void run(const eddy_kernel_call *call) {
    eddy_cuda_multinomial_call p = describe(call);
    if (p.rows == 0)
        return;
    copy_weights(call, &p);
    if (((const eddy_attributes_multinomial *)call->attributes)->has_replacement)
        run_again(call, &p);
    else
        run_once(call, &p);
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_multinomial *attributes = call->attributes;
    const eddy_cuda_multinomial_call p = describe(call);
    plan->workspace_bytes =
        (size_t)(p.rows * p.classes) * sizeof(double) +
        (attributes->has_replacement ? (size_t)p.rows * sizeof(eddy_cuda_total)
                                     : (size_t)(p.rows * p.draws) * sizeof(eddy_cuda_candidate));
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

const eddy_kernel eddy_cuda_multinomial = {.name = "multinomial", .run = run, .prepare = prepare};
