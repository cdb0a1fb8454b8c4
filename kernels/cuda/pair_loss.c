/* mse_loss, l1_loss, smooth_l1_loss, bce_with_logits, kl_div, and their gradients: a walk over the joint shape of the operands. Where losses are summed, chunks of them are so first. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/pair_loss.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_pair_loss};

#define CHUNKS_OF_BLOCK (EDDY_CUDA_BLOCK / 32)
/* Elements of a block of the dense form, four a thread at once. */
#define DENSE_ELEMENTS_OF_BLOCK (EDDY_CUDA_BLOCK * 4)

/* ---- which kernels there are ---- */

typedef enum function {
#define FUNCTION(name, of, dtype) FUNCTION_##name,
    EDDY_CUDA_PAIR_LOSSES(FUNCTION, , ) EDDY_CUDA_PAIR_LOSS_GRADIENTS(FUNCTION, , ) FUNCTIONS
} function;

static _Atomic(void *) loaded[FUNCTIONS][EDDY_DTYPE_COUNT][3][EDDY_CUDA_DEVICES];

typedef struct forms {
    eddy_cuda_function dense, strided, sums; /* no sums of gradients */
} forms;

#define FORM(name, of, dtype, form, number)                                                        \
    { "eddy_loss_" #name "_" #of "_" form, &image, loaded[FUNCTION_##name][EDDY_##dtype][number] }
#define LOSS(name, of, dtype)                                                                      \
    [FUNCTION_##name][EDDY_##dtype] = {.dense = FORM(name, of, dtype, "dense", 0),                 \
                                       .strided = FORM(name, of, dtype, "strided", 1),             \
                                       .sums = FORM(name, of, dtype, "sums", 2)},
#define GRADIENT(name, of, dtype)                                                                  \
    [FUNCTION_##name][EDDY_##dtype] = {.dense = FORM(name, of, dtype, "dense", 0),                 \
                                       .strided = FORM(name, of, dtype, "strided", 1)},
#define ALL(of, dtype)                                                                             \
    EDDY_CUDA_PAIR_LOSSES(LOSS, of, dtype) EDDY_CUDA_PAIR_LOSS_GRADIENTS(GRADIENT, of, dtype)
static const forms kernels[FUNCTIONS][EDDY_DTYPE_COUNT] = {EDDY_CUDA_LOSS_DTYPES(ALL)};

/* ---- plans ---- */

typedef struct plan {
    const forms *of;
    bool is_dense;
    int8_t views[EDDY_CUDA_LOSS_OPERANDS]; /* of the call; ABSENT */
    eddy_cuda_pair_loss parameters;        /* without addresses */
} plan;

#define ABSENT (-1)

_Static_assert(sizeof(plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

/* What a kernel computes: the loss, or its derivative. */
typedef enum way { FORWARD, BACKWARD } way;

static bool is_none(const eddy_kernel_call *call) {
    return ((const eddy_attributes_pair_loss *)call->attributes)->reduction == EDDY_REDUCTION_NONE;
}

/* views: grad of a derivative; input, target; weight and positive of BCE; out */
static void find_views(const eddy_kernel_call *call, way which, int8_t *views) {
    int32_t inputs = call->view_count - 1, first = which == BACKWARD;
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        views[o] = ABSENT;
    for (int32_t v = first; v < inputs; v++)
        if (!eddy_kernel_view_is_absent(&call->views[v]))
            views[EDDY_CUDA_LOSS_INPUT + v - first] = (int8_t)v;
    if (which == BACKWARD && is_none(call))
        views[EDDY_CUDA_LOSS_GRAD] = 0;
    if (which == BACKWARD || is_none(call))
        views[EDDY_CUDA_LOSS_OUT] = (int8_t)inputs;
}

/* Joins the operands to one shape. Sums follow the order of elements; else that is the output's. */
static void join(const eddy_kernel_call *call, const int8_t *views, eddy_walk *walk) {
    static const int64_t still[EDDY_RANK_MAX];
    int32_t rank = 0;
    int64_t shape[EDDY_RANK_MAX];
    for (int o = EDDY_CUDA_LOSS_INPUT; o <= EDDY_CUDA_LOSS_POSITIVE; o++)
        if (views[o] != ABSENT)
            eddy_walk_widen(&rank, shape, &call->views[views[o]]);
    eddy_walk_init(walk, rank, shape);
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        if (views[o] == ABSENT)
            eddy_walk_add(walk, still, 0);
        else
            eddy_walk_add_broadcast(walk, &call->views[views[o]]);
    if (views[EDDY_CUDA_LOSS_OUT] != ABSENT)
        eddy_walk_sort(walk);
    eddy_walk_collapse(walk);
}

static bool is_one(const eddy_walk *walk, int32_t operand) {
    return walk->rank == 1 && walk->strides[operand][0] == 0;
}

/* Each operand is contiguous, or an input of one element for all. */
static bool is_dense(const eddy_walk *walk, const int8_t *views) {
    if (walk->rank > 1)
        return false;
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        if (views[o] != ABSENT && eddy_walk_inner_stride(walk, o) != 1 &&
            !(o != EDDY_CUDA_LOSS_OUT && is_one(walk, o)))
            return false;
    return true;
}

static void take_dims(eddy_cuda_pair_loss *to, const eddy_walk *walk, int64_t bytes) {
    to->count = eddy_walk_count(walk);
    to->rank = walk->rank;
    for (int32_t d = 0; d < walk->rank; d++) {
        to->sizes[d] = walk->dims[d];
        if (walk->dims[d] > 0 && walk->dims[d] <= INT32_MAX)
            to->by[d] = eddy_cuda_divisor_of((uint32_t)walk->dims[d]);
        for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
            to->strides[o][d] = walk->strides[o][d] * bytes;
    }
}

static int64_t chunks_of(const eddy_cuda_pair_loss *p) {
    return (p->count + EDDY_CUDA_LOSS_CHUNK - 1) / EDDY_CUDA_LOSS_CHUNK;
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *to, function number,
                           way which) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    eddy_dtype dtype = call->views[which == BACKWARD].dtype;
    plan *own = to->memory;
    memset(own, 0, sizeof(*own));
    to->bytes = sizeof(*own);
    own->of = &kernels[number][dtype];
    find_views(call, which, own->views);
    eddy_walk walk;
    join(call, own->views, &walk);
    eddy_cuda_pair_loss *p = &own->parameters;
    take_dims(p, &walk, eddy_dtype_size(dtype));
    p->beta = attributes->beta;
    bool is_mean = attributes->reduction == EDDY_REDUCTION_MEAN;
    p->divisor = which == BACKWARD && is_mean ? (double)p->count : 1;
    own->is_dense = is_dense(&walk, own->views);
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++)
        p->broadcast |= (uint32_t)is_one(&walk, o) << o;
    if (own->views[EDDY_CUDA_LOSS_OUT] == ABSENT)
        to->workspace_bytes = eddy_cuda_loss_bytes(chunks_of(p));
    return EDDY_OK;
}

/* ---- runs ---- */

static void take_addresses(const eddy_kernel_call *call, const plan *own, eddy_cuda_pair_loss *p) {
    p->is_aligned = true;
    for (int o = 0; o < EDDY_CUDA_LOSS_OPERANDS; o++) {
        if (own->views[o] == ABSENT)
            continue;
        p->data[o] = call->views[own->views[o]].data;
        p->is_aligned &= (p->broadcast >> o & 1) || (uintptr_t)p->data[o] % 16 == 0;
    }
}

static void run_elements(const eddy_kernel_call *call, const plan *own, eddy_cuda_pair_loss *p) {
    if (p->count == 0)
        return;
    take_addresses(call, own, p);
    eddy_cuda_launch(call, own->is_dense ? &own->of->dense : &own->of->strided, p, sizeof(*p),
                     eddy_cuda_blocks(call, p->count,
                                      own->is_dense ? DENSE_ELEMENTS_OF_BLOCK : EDDY_CUDA_BLOCK));
}

static void run_forward(const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    const plan *own = call->plan;
    eddy_cuda_pair_loss p = own->parameters;
    if (attributes->reduction == EDDY_REDUCTION_NONE) {
        run_elements(call, own, &p);
        return;
    }
    int64_t chunks = chunks_of(&p);
    if (p.count > 0) {
        take_addresses(call, own, &p);
        p.sums = call->workspace;
        eddy_cuda_launch(call, &own->of->sums, &p, sizeof(p),
                         eddy_cuda_blocks(call, chunks, CHUNKS_OF_BLOCK));
    }
    bool is_mean = attributes->reduction == EDDY_REDUCTION_MEAN;
    eddy_cuda_add_losses(call, chunks,
                         (eddy_cuda_loss_divisor){.whole = is_mean ? (double)p.count : 1});
}

static void run_backward(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    eddy_cuda_pair_loss p = own->parameters;
    if (!is_none(call))
        p.factor = call->views[0].data;
    run_elements(call, own, &p);
}

/* ---- kernels ---- */

static function of_kl(const eddy_kernel_call *call, function plain, function of_log) {
    return ((const eddy_attributes_pair_loss *)call->attributes)->target_is_log ? of_log : plain;
}

#define KERNEL(label, run_function, which, number)                                                 \
    static eddy_status label##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {       \
        return prepare(call, to, number, which);                                                   \
    }                                                                                              \
    const eddy_kernel eddy_cuda_##label = {                                                        \
        .name = #label, .prepare = label##_prepare, .run = run_function};

KERNEL(mse_loss, run_forward, FORWARD, FUNCTION_mse)
KERNEL(mse_loss_backward, run_backward, BACKWARD, FUNCTION_mse_by_input)
KERNEL(l1_loss, run_forward, FORWARD, FUNCTION_l1)
KERNEL(l1_loss_backward, run_backward, BACKWARD, FUNCTION_l1_by_input)
KERNEL(smooth_l1_loss, run_forward, FORWARD, FUNCTION_smooth_l1)
KERNEL(smooth_l1_loss_backward, run_backward, BACKWARD, FUNCTION_smooth_l1_by_input)
KERNEL(bce_with_logits, run_forward, FORWARD, FUNCTION_bce)
KERNEL(bce_with_logits_backward, run_backward, BACKWARD, FUNCTION_bce_by_input)
KERNEL(bce_with_logits_backward_target, run_backward, BACKWARD, FUNCTION_bce_by_target)
KERNEL(kl_div, run_forward, FORWARD, of_kl(call, FUNCTION_kl, FUNCTION_kl_log))
KERNEL(kl_div_backward, run_backward, BACKWARD,
       of_kl(call, FUNCTION_kl_by_input, FUNCTION_kl_log_by_input))
KERNEL(kl_div_backward_target, run_backward, BACKWARD,
       of_kl(call, FUNCTION_kl_by_target, FUNCTION_kl_log_by_target))
