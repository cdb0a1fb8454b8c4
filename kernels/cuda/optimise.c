/* Steps of optimisers over lists of parameters: those that lie alike in their lists go together, in one launch for a dtype or few; others are walks of their own. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/listing.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/optimise.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_optimise};

enum {
#define NUMBER(op, name, dtype) NUMBER_##op##_##name,
    EDDY_CUDA_OPTIMISERS(NUMBER) COUNT
};
static _Atomic(void *) loaded[COUNT][2][EDDY_CUDA_DEVICES];
static _Atomic(void *) advance_loaded[EDDY_CUDA_DEVICES];

typedef enum op { OP_sgd, OP_momentum, OP_adam, OPS } op;

typedef struct optimiser {
    eddy_cuda_function list;
    eddy_cuda_forms forms; /* strided alone */
} optimiser;

static const optimiser optimisers[OPS][EDDY_DTYPE_COUNT] = {
#define OPTIMISER(op, name, dtype)                                                                 \
    [OP_##op][EDDY_##dtype] = {                                                                    \
        .list = {"eddy_" #op "_" #name "_list", &image, loaded[NUMBER_##op##_##name][0]},          \
        .forms = {.strided = {"eddy_" #op "_" #name "_strided", &image,                            \
                              loaded[NUMBER_##op##_##name][1]}}},
    EDDY_CUDA_OPTIMISERS(OPTIMISER)};
static const eddy_cuda_function advance = {"eddy_adam_advance", &image, advance_loaded};

typedef struct step {
    const eddy_kernel_call *call;
    int32_t items; /* tensors in a list */
    int32_t lists; /* 2: params, grads; 3: and velocity; 4: params, grads, m, v */
    op number;
    const void *attributes;
    size_t attribute_bytes;
} step;

/* `listing` is for the item's dtype. */
static void update_item(const step *work, int32_t item, eddy_cuda_listing *listing) {
    eddy_cuda_operand operands[EDDY_CUDA_LIST_OPERANDS];
    void *data[EDDY_CUDA_LIST_OPERANDS];
    eddy_walk walk;
    for (int32_t l = 0; l < work->lists; l++) {
        const eddy_op_view *view = &work->call->views[l * work->items + item];
        operands[l] = (eddy_cuda_operand){view->data, view->dtype};
        data[l] = view->data;
        if (l == 0)
            eddy_walk_init(&walk, view->rank, view->shape);
        eddy_walk_add(&walk, view->strides, 1);
    }
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    if (eddy_walk_is_plain(&walk))
        eddy_cuda_listing_add(listing, data, work->lists, eddy_walk_count(&walk));
    else
        eddy_cuda_map(work->call, &optimisers[work->number][operands[0].dtype].forms, &walk,
                      operands, work->attributes, work->attribute_bytes);
}

static void update(const step *work) {
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++) {
        eddy_cuda_listing listing;
        if (!eddy_dtype_is_float((eddy_dtype)dtype))
            continue;
        eddy_cuda_listing_begin(&listing, work->call, &optimisers[work->number][dtype].list,
                                EDDY_CUDA_OPTIMISE_CHUNK, work->attributes, work->attribute_bytes);
        for (int32_t item = 0; item < work->items; item++)
            if ((int)work->call->views[item].dtype == dtype)
                update_item(work, item, &listing);
        eddy_cuda_listing_end(&listing);
    }
}

static void run_sgd(const eddy_kernel_call *call) {
    const eddy_attributes_sgd_step *attributes = call->attributes;
    const eddy_sgd_numbers numbers = {.lr = attributes->lr,
                                      .weight_decay = attributes->weight_decay};
    update(&(step){.call = call,
                   .items = call->view_count / 2,
                   .lists = 2,
                   .number = OP_sgd,
                   .attributes = &numbers,
                   .attribute_bytes = sizeof(numbers)});
}

static void run_momentum(const eddy_kernel_call *call) {
    const eddy_attributes_sgd_momentum_step *attributes = call->attributes;
    const eddy_momentum_numbers numbers = {.lr = attributes->lr,
                                           .momentum = attributes->momentum,
                                           .weight_decay = attributes->weight_decay,
                                           .is_nesterov = attributes->is_nesterov};
    update(&(step){.call = call,
                   .items = call->view_count / 3,
                   .lists = 3,
                   .number = OP_momentum,
                   .attributes = &numbers,
                   .attribute_bytes = sizeof(numbers)});
}

/* The number of the step is the device's, so that what follows from it is computed there, ahead of the updates. */
static void run_adam_of(const eddy_kernel_call *call, bool is_decoupled) {
    const eddy_attributes_adam_step *attributes = call->attributes;
    eddy_cuda_adam_advance p = {.step = call->views[call->view_count - 1].data,
                                .numbers = call->workspace,
                                .attributes = *attributes,
                                .is_decoupled = is_decoupled};
    eddy_cuda_launch(call, &advance, &p, sizeof(p), 1);
    update(&(step){.call = call,
                   .items = call->view_count / 4,
                   .lists = 4,
                   .number = OP_adam,
                   .attributes = &call->workspace,
                   .attribute_bytes = sizeof(call->workspace)});
}

static void run_adam(const eddy_kernel_call *call) {
    run_adam_of(call, false);
}

static void run_adamw(const eddy_kernel_call *call) {
    run_adam_of(call, true);
}

static eddy_status prepare_adam(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes = sizeof(eddy_adam_numbers);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

const eddy_kernel eddy_cuda_sgd_step = {.name = "sgd_step", .run = run_sgd};
const eddy_kernel eddy_cuda_sgd_momentum_step = {.name = "sgd_momentum_step", .run = run_momentum};
const eddy_kernel eddy_cuda_adam_step = {
    .name = "adam_step", .run = run_adam, .prepare = prepare_adam};
const eddy_kernel eddy_cuda_adamw_step = {
    .name = "adamw_step", .run = run_adamw, .prepare = prepare_adam};
