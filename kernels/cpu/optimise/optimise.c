/* Optimiser steps over lists of parameters: one pass over each tensor. All tensors together are cut into slices of
 * elements. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/optimise/adam.h>
#include <kernels/cpu/optimise/optimise_block.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 16384
/* Elements converted or gathered at a time if a tensor is not contiguous f32 or f64. */
#define PIECE 512
#define LISTS 4

/* The plan of a call. Its lists may have any length, so the plan does not hold their walks. */
typedef struct optimise_plan {
    const eddy_optimise_ops *f32, *f64;
    int64_t count; /* elements of a list */
} optimise_plan;

typedef struct step {
    const eddy_kernel_call *call;
    int32_t items; /* tensors in a list */
    int32_t lists; /* 2: params, grads; 3: and velocity; 4: params, grads, m, v */
    eddy_sgd_numbers sgd;
    eddy_momentum_numbers momentum;
    eddy_adam_numbers adam;
} step;

/* `data`: one pointer per list, contiguous in the compute type. */
static void update(const step *work, const eddy_optimise_ops *ops, void *const *data,
                   int64_t count) {
    if (work->lists == 2)
        ops->sgd(&work->sgd, data[0], data[1], count);
    else if (work->lists == 3)
        ops->momentum(&work->momentum, data[0], data[1], data[2], count);
    else
        ops->adam(&work->adam, data[0], data[1], data[2], data[3], count);
}

/* Updates elements begin .. end - 1 of the tensors with number `item`. */
static void update_item(const step *work, int32_t item, int64_t begin, int64_t end) {
    const eddy_op_view *views[LISTS];
    eddy_walk walk;
    for (int32_t l = 0; l < work->lists; l++) {
        views[l] = &work->call->views[l * work->items + item];
        if (l == 0)
            eddy_walk_init(&walk, views[0]->rank, views[0]->shape);
        eddy_walk_add(&walk, views[l]->strides, 1);
    }
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_dtype compute = eddy_chunk_compute_dtype(views[0]->dtype);
    const optimise_plan *plan = work->call->plan;
    const eddy_optimise_ops *ops = compute == EDDY_F64 ? plan->f64 : plan->f32;
    bool is_direct = true;
    for (int32_t l = 0; l < work->lists; l++)
        is_direct =
            is_direct && views[l]->dtype == compute && eddy_walk_inner_stride(&walk, l) == 1;
    union {
        float f32[PIECE];
        double f64[PIECE];
    } pieces[LISTS];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(&walk, &cursor), end - begin);
        if (!is_direct)
            run = eddy_min_i64(run, PIECE);
        void *data[LISTS], *pointers[LISTS];
        for (int32_t l = 0; l < work->lists; l++) {
            data[l] = eddy_chunk_at(views[l]->data, views[l]->dtype, cursor.offsets[l]);
            pointers[l] = is_direct ? data[l] : &pieces[l];
            if (!is_direct)
                eddy_chunk_load(compute, pointers[l], views[l]->dtype, data[l],
                                eddy_walk_inner_stride(&walk, l), run);
        }
        update(work, ops, pointers, run);
        for (int32_t l = 0; l < work->lists && !is_direct; l++)
            if (l != 1)
                eddy_chunk_store(views[l]->dtype, data[l], eddy_walk_inner_stride(&walk, l),
                                 compute, pointers[l], run);
        eddy_walk_advance(&walk, &cursor, run);
        begin += run;
    }
}

/* Slices number the elements of the whole list. */
static void step_slice(void *context, int64_t begin, int64_t end) {
    const step *work = context;
    int64_t first = 0;
    for (int32_t item = 0; item < work->items && first < end; item++) {
        int64_t count = eddy_kernel_view_count(&work->call->views[item]);
        int64_t from = eddy_max_i64(begin - first, 0), to = eddy_min_i64(end - first, count);
        if (from < to)
            update_item(work, item, from, to);
        first += count;
    }
}

static void optimise_run_slices(step *work) {
    const optimise_plan *plan = work->call->plan;
    if (plan->count <= SLICE_ELEMENTS)
        step_slice(work, 0, plan->count);
    else
        work->call->team->parallel_for(work->call->team, plan->count, SLICE_ELEMENTS, step_slice,
                                       work);
}

static void sgd_run(const eddy_kernel_call *call) {
    const eddy_attributes_sgd_step *attributes = call->attributes;
    step work = {.call = call, .items = call->view_count / 2, .lists = 2};
    work.sgd = (eddy_sgd_numbers){.lr = attributes->lr, .weight_decay = attributes->weight_decay};
    optimise_run_slices(&work);
}

static void momentum_run(const eddy_kernel_call *call) {
    const eddy_attributes_sgd_momentum_step *attributes = call->attributes;
    step work = {.call = call, .items = call->view_count / 3, .lists = 3};
    work.momentum = (eddy_momentum_numbers){.lr = attributes->lr,
                                            .momentum = attributes->momentum,
                                            .weight_decay = attributes->weight_decay,
                                            .is_nesterov = attributes->is_nesterov};
    optimise_run_slices(&work);
}

static void adam(const eddy_kernel_call *call, bool is_decoupled) {
    const eddy_attributes_adam_step *attributes = call->attributes;
    EDDY_ASSERT(call->view_count % 4 == 1);
    int64_t *steps = call->views[call->view_count - 1].data;
    step work = {.call = call, .items = call->view_count / 4, .lists = 4};
    work.adam = eddy_adam_step_numbers(attributes, is_decoupled, *steps + 1);
    optimise_run_slices(&work);
    *steps += 1;
}

static void adam_run(const eddy_kernel_call *call) {
    adam(call, false);
}

static void adamw_run(const eddy_kernel_call *call) {
    adam(call, true);
}

/* The estimate counts all elements of the lists: parameters, gradients and states. */
static eddy_status optimise_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                    int32_t lists) {
    optimise_plan *to = plan->memory;
    *to = (optimise_plan){.f32 = eddy_cpu_optimise_f32(), .f64 = eddy_cpu_optimise_f64()};
    int64_t elements = 0, bytes = 0;
    for (int32_t o = 0; o < call->view_count; o++) {
        int64_t count = eddy_kernel_view_count(&call->views[o]);
        to->count += o < call->view_count / lists ? count : 0;
        elements += count;
        bytes += eddy_cost_bytes(count, call->views[o].dtype);
    }
    plan->bytes = sizeof(*to);
    plan->cost_ps = call->kernel->cost_base_ps + 20000 * (int64_t)call->view_count +
                    call->kernel->cost_element_ps * elements + eddy_cost_far_ps(bytes);
    return EDDY_OK;
}

static eddy_status sgd_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return optimise_prepare(call, plan, 2);
}

static eddy_status momentum_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return optimise_prepare(call, plan, 3);
}

static eddy_status adam_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return optimise_prepare(call, plan, 4);
}

const eddy_kernel eddy_cpu_sgd_step = {.name = "sgd_step",
                                       .run = sgd_run,
                                       .prepare = sgd_prepare,
                                       .cost_base_ps = 80000,
                                       .cost_element_ps = 50};
const eddy_kernel eddy_cpu_sgd_momentum_step = {.name = "sgd_momentum_step",
                                                .run = momentum_run,
                                                .prepare = momentum_prepare,
                                                .cost_base_ps = 80000,
                                                .cost_element_ps = 65};
const eddy_kernel eddy_cpu_adam_step = {.name = "adam_step",
                                        .run = adam_run,
                                        .prepare = adam_prepare,
                                        .cost_base_ps = 80000,
                                        .cost_element_ps = 120};
const eddy_kernel eddy_cpu_adamw_step = {.name = "adamw_step",
                                         .run = adamw_run,
                                         .prepare = adam_prepare,
                                         .cost_base_ps = 80000,
                                         .cost_element_ps = 120};
