#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/norm/norm_plan.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/norm.h>
#include <kernels/cuda/view.h>
#include <string.h>

static eddy_cuda_image image_norm = {.data = eddy_cuda_image_norm},
                       image_norm_backward = {.data = eddy_cuda_image_norm_backward},
                       image_norm_weight = {.data = eddy_cuda_image_norm_weight};

/* ---- which kernels there are ---- */

typedef enum number {
#define NUMBER(name, file) NUMBER_##name,
    EDDY_CUDA_NORM_KERNELS(NUMBER) COUNT
} number;

static _Atomic(void *) loaded[COUNT][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[COUNT][EDDY_DTYPE_COUNT] = {
#define OF_DTYPE(of, dtype, name, file)                                                            \
    [EDDY_##                                                                                       \
        dtype] = {"eddy_norm_" #name "_" #of, &image_##file, loaded[NUMBER_##name][EDDY_##dtype]},
#define FUNCTION(name, file) [NUMBER_##name] = {EDDY_CUDA_NORM_DTYPES(OF_DTYPE, name, file)},
    EDDY_CUDA_NORM_KERNELS(FUNCTION)};

/* ---- plans ---- */

typedef enum family { LAYER, RMS, GROUP, BATCH } family;

/* How a kernel differs from others of its kind. */
typedef struct variant {
    family family;
    bool is_given; /* batch_norm's statistics */
} variant;

typedef struct plan {
    family family;
    /* Parts of the workspace: where they begin. */
    size_t weight_at, bias_at, parts_at, statistics_at, pieces_at, partials_at, out_at;
    bool gathers_weight, gathers_bias; /* into the workspace, since they have several strides */
    bool scatters_out;                 /* a weight's gradient, from there */
    bool has_parts;
    eddy_cuda_normalisation parameters; /* without addresses */
} plan;

_Static_assert(sizeof(plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");
_Static_assert(EDDY_CUDA_NORM_THREADS == EDDY_CUDA_BLOCK,
               "blocks have as many threads as are spread");

/* Blocks of threads that keep a device busy: with fewer, each works on fewer chunks at once, unless its threads had little to do. */
#define BLOCKS_WANTED 1024
#define ELEMENTS_OF_THREAD 4
/* Neighbouring places that are worth reading together. */
#define PLACES_ACROSS 16

static bool is_empty(const eddy_cuda_normalisation *p) {
    return p->place_count == 0 || p->element_count == 0;
}

static size_t reserve(eddy_kernel_plan *to, int64_t count, size_t bytes) {
    size_t at = to->workspace_bytes;
    to->workspace_bytes += ((size_t)count * bytes + 63) / 64 * 64;
    return at;
}

/* Whether one stride leads through all elements. */
static bool is_line(const eddy_op_view *view, int64_t *stride) {
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    eddy_walk_collapse(&walk);
    *stride = eddy_walk_inner_stride(&walk, 0);
    return walk.rank <= 1;
}

/* Whether the vector has to be brought into one line. */
static bool plan_vector(eddy_cuda_norm_vector *vector, const eddy_op_view *view, eddy_dtype dtype) {
    int64_t stride;
    if (eddy_kernel_view_is_absent(view))
        return false;
    bool lies_apart = !is_line(view, &stride);
    vector->step = (lies_apart ? 1 : stride) * eddy_dtype_size(view->dtype);
    vector->is_f32 = view->dtype == EDDY_F32 && dtype != EDDY_F32;
    return lies_apart;
}

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* By x. */
static bool lies_across(const eddy_norm_places *at) {
    return at->places.rank > 0 && at->elements.rank > 0 &&
           magnitude(eddy_walk_inner_stride(&at->places, 0)) <
               magnitude(eddy_walk_inner_stride(&at->elements, 0));
}

/* But for where the data begin. */
static uint32_t find_vectors(const eddy_cuda_normalisation *p, int32_t operands,
                             int64_t element_bytes) {
    uint32_t vectors = 0;
    for (int32_t o = 0; o < operands; o++) {
        bool is_vector = p->elements.rank == 1 && p->elements.strides[o][0] == element_bytes;
        for (int32_t d = 0; d < p->places.rank; d++)
            is_vector &= p->places.strides[o][d] % 16 == 0;
        vectors |= (uint32_t)is_vector << o;
    }
    return vectors;
}

/* Spreads the threads of a block over chunks. `arrays`: elements in its memory for each of a chunk. */
static void spread(eddy_cuda_normalisation *p, int64_t arrays, int64_t real_bytes) {
    int64_t length = eddy_min_i64(p->element_count, EDDY_NORM_CHUNK);
    p->lanes = 4;
    while (p->lanes < EDDY_NORM_LANES && (p->lanes < length || p->segment > 1))
        p->lanes *= 2;
    /* Of no two rows that a warp reads are lanes in one bank. */
    p->row = (uint32_t)(p->is_across ? length | 1
                                     : ((length + EDDY_NORM_LANES - 1) / EDDY_NORM_LANES | 1) *
                                           EDDY_NORM_LANES);
    int64_t most = eddy_min_i64(EDDY_CUDA_NORM_BYTES / (real_bytes * arrays * p->row),
                                EDDY_CUDA_NORM_THREADS / p->lanes);
    int64_t wanted = eddy_max_i64(p->place_count * p->chunk_count / BLOCKS_WANTED,
                                  EDDY_CUDA_NORM_THREADS * ELEMENTS_OF_THREAD / length);
    if (p->is_across)
        wanted = PLACES_ACROSS;
    p->abreast = 1;
    while (p->abreast * 2 <= eddy_min_i64(most, wanted))
        p->abreast *= 2;
}

static void plan_family(const eddy_kernel_call *call, const variant *of,
                        const eddy_op_view *const *views, int32_t count, eddy_norm_plan *shape,
                        eddy_norm_places *at, eddy_cuda_normalisation *p) {
    if (of->family == LAYER || of->family == RMS) {
        const eddy_attributes_layer_norm *attributes = call->attributes;
        p->eps = attributes->eps;
        eddy_norm_plan_last_axes(shape, at, views, count, attributes->axis_count);
    } else if (of->family == GROUP) {
        const eddy_attributes_group_norm *attributes = call->attributes;
        p->eps = attributes->eps;
        eddy_norm_plan_groups(shape, at, views, count, attributes->groups);
    } else {
        const eddy_attributes_batch_norm *attributes = call->attributes;
        p->eps = attributes->eps;
        p->momentum = attributes->momentum;
        eddy_norm_plan_channels(shape, at, views, count);
    }
}

/* views: x first, all of its dtype. */
static plan *plan_places(const eddy_kernel_call *call, const variant *of,
                         const eddy_op_view *const *views, int32_t count, eddy_kernel_plan *to) {
    plan *own = to->memory;
    memset(own, 0, sizeof(*own));
    to->bytes = sizeof(*own);
    own->family = of->family;
    to->cost_ps = eddy_cost_views_ps(call);
    eddy_cuda_normalisation *p = &own->parameters;
    eddy_norm_plan shape;
    eddy_norm_places at;
    plan_family(call, of, views, count, &shape, &at, p);
    p->is_centred = of->family != RMS;
    p->is_given = of->is_given;
    p->place_count = shape.place_count;
    p->element_count = shape.element_count;
    p->weight_count = shape.weight_count;
    p->block_count = eddy_norm_block_count(&shape);
    p->period = shape.period;
    p->segment = shape.segment;
    if (is_empty(p))
        return own;
    p->runs = p->element_count / p->segment;
    p->chunk_count = (p->element_count + EDDY_NORM_CHUNK - 1) / EDDY_NORM_CHUNK;
    if (p->segment <= INT32_MAX)
        p->by_segment = eddy_cuda_divisor_of((uint32_t)p->segment);
    const int64_t size = eddy_dtype_size(views[0]->dtype), sizes[] = {size, size, size};
    eddy_cuda_dims_take(&p->places, &at.places, sizes);
    eddy_cuda_dims_take(&p->elements, &at.elements, sizes);
    p->is_across = lies_across(&at);
    p->vectors = find_vectors(p, count, size);
    return own;
}

static int64_t real_bytes(const eddy_op_view *x) {
    return x->dtype == EDDY_F64 ? 8 : 4;
}

static void reserve_statistics(plan *own, eddy_kernel_plan *to, bool has_parts) {
    eddy_cuda_normalisation *p = &own->parameters;
    own->has_parts = has_parts;
    if (has_parts)
        own->parts_at = reserve(to, p->place_count * p->chunk_count, sizeof(eddy_norm_sums));
    if (has_parts || p->is_given)
        own->statistics_at = reserve(to, p->place_count, sizeof(eddy_cuda_norm_statistics));
}

/* ---- launches ---- */

static void launch(const eddy_kernel_call *call, number of, eddy_cuda_normalisation *p,
                   int64_t work, int64_t of_block) {
    eddy_cuda_launch(call, &functions[of][call->views[0].dtype], p, sizeof(*p),
                     eddy_cuda_blocks(call, work, of_block));
}

static void launch_chunks(const eddy_kernel_call *call, number of, eddy_cuda_normalisation *p) {
    launch(call, of, p, p->place_count * p->chunk_count, p->abreast);
}

static void launch_statistics(const eddy_kernel_call *call, number parts,
                              eddy_cuda_normalisation *p) {
    if (!p->is_given)
        launch_chunks(call, parts, p);
    launch(call, NUMBER_join, p, p->place_count, EDDY_CUDA_BLOCK);
}

static void *part_of(const eddy_kernel_call *call, size_t at) {
    return (char *)call->workspace + at;
}

/* Without vectors, where the data begin elsewhere. */
static void set_operand(eddy_cuda_normalisation *p, int32_t operand, const eddy_op_view *view) {
    p->data[operand] = view->data;
    if ((uintptr_t)view->data % 16 != 0)
        p->vectors &= ~(1u << operand);
}

/* The view's elements side by side. */
static void box_init_line(eddy_cuda_box *box, const eddy_op_view *view, void *data) {
    int64_t stride = 1;
    eddy_cuda_box_init(box, view);
    for (int32_t d = view->rank - 1; d >= 0; stride *= view->shape[d--])
        box->strides[d] = stride;
    box->view.data = data;
}

static void set_vector(const eddy_kernel_call *call, eddy_cuda_norm_vector *vector,
                       const eddy_op_view *view, bool gathers, size_t at) {
    if (eddy_kernel_view_is_absent(view))
        return;
    vector->data = view->data;
    if (!gathers)
        return;
    eddy_cuda_box line;
    box_init_line(&line, view, part_of(call, at));
    eddy_cuda_copy_view(call, view, &line.view);
    vector->data = line.view.data;
}

static eddy_cuda_normalisation begin(const eddy_kernel_call *call, const plan *own) {
    eddy_cuda_normalisation p = own->parameters;
    p.parts = part_of(call, own->parts_at);
    p.statistics = part_of(call, own->statistics_at);
    return p;
}

/* ---- forward ---- */

/* views: x, batch_norm's statistics, weight, bias but for rms_norm, y */
static eddy_status norm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                const variant *of) {
    const eddy_op_view *x = &call->views[0];
    const eddy_op_view *views[] = {x, &call->views[call->view_count - 1]};
    const eddy_op_view *weight = &call->views[of->family == BATCH ? 3 : 1];
    plan *own = plan_places(call, of, views, 2, to);
    eddy_cuda_normalisation *p = &own->parameters;
    if (is_empty(p))
        return EDDY_OK;
    spread(p, 1, real_bytes(x));
    reserve_statistics(own, to, !of->is_given && p->chunk_count > 1);
    own->gathers_weight = plan_vector(&p->weight, weight, x->dtype);
    if (own->gathers_weight)
        own->weight_at = reserve(to, p->weight_count, sizeof(double));
    if (of->family != RMS)
        own->gathers_bias = plan_vector(&p->bias, weight + 1, x->dtype);
    if (own->gathers_bias)
        own->bias_at = reserve(to, p->weight_count, sizeof(double));
    if (of->family == BATCH) {
        (void)plan_vector(&p->mean, &call->views[1], x->dtype);
        (void)plan_vector(&p->variance, &call->views[2], x->dtype);
    }
    return EDDY_OK;
}

static void norm_run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    const bool is_batch = own->family == BATCH;
    const eddy_op_view *weight = &call->views[is_batch ? 3 : 1];
    if (is_empty(&own->parameters))
        return;
    eddy_cuda_normalisation p = begin(call, own);
    set_operand(&p, 0, &call->views[0]);
    set_operand(&p, 1, &call->views[call->view_count - 1]);
    set_vector(call, &p.weight, weight, own->gathers_weight, own->weight_at);
    if (own->family != RMS)
        set_vector(call, &p.bias, weight + 1, own->gathers_bias, own->bias_at);
    if (is_batch) {
        set_vector(call, &p.mean, &call->views[1], false, 0);
        set_vector(call, &p.variance, &call->views[2], false, 0);
    }
    if (!own->has_parts && !p.is_given) {
        launch_chunks(call, NUMBER_whole, &p);
        return;
    }
    launch_statistics(call, NUMBER_parts, &p);
    launch_chunks(call, NUMBER_apply, &p);
}

/* ---- the gradient of x ---- */

/* views: grad, x, weight or absent, dx */
static eddy_status norm_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                         const variant *of) {
    const eddy_op_view *x = &call->views[1], *views[] = {x, &call->views[0], &call->views[3]};
    plan *own = plan_places(call, of, views, 3, to);
    eddy_cuda_normalisation *p = &own->parameters;
    if (is_empty(p))
        return EDDY_OK;
    p->has_grad = true;
    spread(p, 2, real_bytes(x));
    reserve_statistics(own, to, p->chunk_count > 1);
    own->gathers_weight = plan_vector(&p->weight, &call->views[2], x->dtype);
    if (own->gathers_weight)
        own->weight_at = reserve(to, p->weight_count, sizeof(double));
    return EDDY_OK;
}

static void norm_backward_run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    if (is_empty(&own->parameters))
        return;
    eddy_cuda_normalisation p = begin(call, own);
    set_operand(&p, 0, &call->views[1]);
    set_operand(&p, 1, &call->views[0]);
    set_operand(&p, 2, &call->views[3]);
    set_vector(call, &p.weight, &call->views[2], own->gathers_weight, own->weight_at);
    if (!own->has_parts) {
        launch_chunks(call, NUMBER_back_whole, &p);
        return;
    }
    launch_statistics(call, NUMBER_back_parts, &p);
    launch_chunks(call, NUMBER_back_apply, &p);
}

/* ---- the gradient of the weight ---- */

/* A run is cut where chunks end. */
static void plan_pieces(plan *own, eddy_kernel_plan *to) {
    eddy_cuda_normalisation *p = &own->parameters;
    int64_t segment = p->segment;
    bool begins_anywhere = EDDY_NORM_CHUNK % segment != 0 && segment % EDDY_NORM_CHUNK != 0;
    p->pieces_most = (segment + EDDY_NORM_CHUNK - 1) / EDDY_NORM_CHUNK;
    if (begins_anywhere && p->runs > 1)
        p->pieces_most = (segment - 2 + EDDY_NORM_CHUNK) / EDDY_NORM_CHUNK + 1;
    p->runs_most = (uint32_t)eddy_min_i64(p->runs, EDDY_NORM_CHUNK / segment + 2);
    own->pieces_at = reserve(to, p->place_count * p->runs * p->pieces_most, sizeof(double));
}

/* views: grad, x, dweight */
static eddy_status norm_weight_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                       const variant *of) {
    const eddy_op_view *x = &call->views[1], *views[] = {x, &call->views[0]};
    plan *own = plan_places(call, of, views, 2, to);
    eddy_cuda_normalisation *p = &own->parameters;
    if (is_empty(p))
        return EDDY_OK;
    spread(p, p->segment > 1 ? 2 : 1, real_bytes(x));
    reserve_statistics(own, to, true);
    if (p->segment > 1)
        plan_pieces(own, to);
    if (p->block_count > 1)
        own->partials_at = reserve(to, p->weight_count * p->block_count, sizeof(double));
    own->scatters_out = plan_vector(&p->out, &call->views[2], x->dtype);
    if (own->scatters_out)
        own->out_at = reserve(to, p->weight_count, sizeof(double));
    return EDDY_OK;
}

static void launch_weights(const eddy_kernel_call *call, eddy_cuda_normalisation *p) {
    launch_statistics(call, NUMBER_parts, p);
    if (p->pieces)
        launch_chunks(call, NUMBER_products, p);
    launch(call, NUMBER_weights, p, p->weight_count * p->block_count, EDDY_CUDA_BLOCK);
    if (p->block_count > 1)
        launch(call, NUMBER_add, p, p->weight_count, EDDY_CUDA_BLOCK);
}

static void norm_weight_run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    const eddy_op_view *out = &call->views[2];
    if (own->parameters.weight_count == 0)
        return;
    if (is_empty(&own->parameters)) {
        eddy_cuda_fill_view(call, out, 0);
        return;
    }
    eddy_cuda_normalisation p = begin(call, own);
    set_operand(&p, 0, &call->views[1]);
    set_operand(&p, 1, &call->views[0]);
    p.pieces = p.segment > 1 ? part_of(call, own->pieces_at) : NULL;
    p.partials = part_of(call, own->partials_at);
    p.out.data = own->scatters_out ? part_of(call, own->out_at) : out->data;
    launch_weights(call, &p);
    if (!own->scatters_out)
        return;
    eddy_cuda_box line;
    box_init_line(&line, out, p.out.data);
    eddy_cuda_copy_view(call, &line.view, out);
}

/* ---- kernels ---- */

#define KERNEL(label, way, ...)                                                                    \
    static eddy_status label##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {       \
        static const variant of = {__VA_ARGS__};                                                   \
        return way##_prepare(call, to, &of);                                                       \
    }                                                                                              \
    const eddy_kernel eddy_cuda_##label = {                                                        \
        .name = #label, .prepare = label##_prepare, .run = way##_run};

KERNEL(layer_norm, norm, .family = LAYER)
KERNEL(layer_norm_backward, norm_backward, .family = LAYER)
KERNEL(layer_norm_backward_weight, norm_weight, .family = LAYER)
KERNEL(rms_norm, norm, .family = RMS)
KERNEL(rms_norm_backward, norm_backward, .family = RMS)
KERNEL(rms_norm_backward_weight, norm_weight, .family = RMS)
KERNEL(group_norm, norm, .family = GROUP)
KERNEL(group_norm_backward, norm_backward, .family = GROUP)
KERNEL(group_norm_backward_weight, norm_weight, .family = GROUP)
KERNEL(batch_norm, norm, .family = BATCH, .is_given = true)
KERNEL(batch_norm_training, norm, .family = BATCH)
KERNEL(batch_norm_backward, norm_backward, .family = BATCH)
KERNEL(batch_norm_backward_weight, norm_weight, .family = BATCH)
