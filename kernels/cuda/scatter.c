/* scatter, scatter_add, index_add, index_put, embedding_backward: the output is filled with the ground, a copy of the input or zeros, and elements are put into it. Sums of f16 and bf16
 * have an f32 ground in the workspace, so that they are rounded once. */
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/places.h>
#include <kernels/cuda/scatter.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_scatter};

enum {
#define NUMBER(how, place, element) NUMBER_##how##_##place##_##element,
    EDDY_CUDA_SCATTERS(NUMBER) COUNT
};
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[COUNT] = {
#define FUNCTION(how, place, element)                                                              \
    {"eddy_scatter_" #how "_" #place "_" #element, &image,                                         \
     loaded[NUMBER_##how##_##place##_##element]},
    EDDY_CUDA_SCATTERS(FUNCTION)};

#define OPERANDS EDDY_CUDA_SCATTER_OPERANDS

typedef struct scattering {
    const eddy_kernel_call *call;
    eddy_op_view in; /* the ground; absent: zeros */
    eddy_op_view index, source, out;
    bool adds, is_from_end;
    int64_t left_out;
    int64_t step, bound; /* elements of the ground from index to index */
    int64_t first;       /* elements from its first one to the one of index 0 */
    eddy_op_view ground; /* what is put into */
    int64_t strides[EDDY_RANK_MAX];
    eddy_walk along, rest; /* in elements, by EDDY_CUDA_SCATTER_OUT, ... */
} scattering;

/* ---- the ground ---- */

static bool is_aside(eddy_dtype dtype) {
    return dtype == EDDY_F16 || dtype == EDDY_BF16;
}

/* The views are set. */
static void scattering_init(scattering *s, const eddy_kernel_call *call, bool adds) {
    const eddy_op_view *out = &s->out;
    s->call = call;
    s->adds = adds;
    s->is_from_end = false;
    s->left_out = -1;
    s->first = 0;
    s->ground = *out;
    s->ground.strides = s->strides;
    bool has_own = adds && is_aside(out->dtype);
    int64_t span = 1;
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        s->strides[d] = has_own ? span : out->strides[d];
        span *= out->shape[d];
    }
    if (has_own) {
        s->ground.data = call->workspace;
        s->ground.dtype = EDDY_F32;
    }
    eddy_walk_init(&s->along, 0, NULL);
    eddy_walk_init(&s->rest, 0, NULL);
    s->along.operand_count = s->rest.operand_count = OPERANDS;
}

static void set_axis(scattering *s, int32_t axis) {
    s->step = s->strides[axis];
    s->bound = s->out.shape[axis];
}

static void lay_ground(const scattering *s) {
    if (eddy_kernel_view_is_absent(&s->in))
        eddy_cuda_fill_view(s->call, &s->ground, 0);
    else if (s->in.data != s->ground.data)
        eddy_cuda_copy_view(s->call, &s->in, &s->ground);
}

/* ---- putting ---- */

static const eddy_cuda_function *function_of(const scattering *s) {
    if (!s->adds)
        return &functions[NUMBER_set_i8_i8 + eddy_cuda_width(s->out.dtype)];
    switch (s->out.dtype) {
    case EDDY_F32:
        return &functions[NUMBER_add_f32_f32];
    case EDDY_F64:
        return &functions[NUMBER_add_f64_f64];
    case EDDY_F16:
        return &functions[NUMBER_add_f32_f16];
    case EDDY_BF16:
        return &functions[NUMBER_add_f32_bf16];
    case EDDY_BOOL:
        return &functions[NUMBER_add_truth_truth];
    default:
        return &functions[NUMBER_add_i8_i8 + eddy_cuda_width(s->out.dtype)];
    }
}

static void describe_dims(const scattering *s, const eddy_walk *walk,
                          eddy_cuda_scatter_dims *dims) {
    const int64_t bytes[OPERANDS] = {[EDDY_CUDA_SCATTER_OUT] = eddy_dtype_size(s->ground.dtype),
                                     [EDDY_CUDA_SCATTER_SOURCE] = eddy_dtype_size(s->source.dtype),
                                     [EDDY_CUDA_SCATTER_INDEX] = eddy_dtype_size(s->index.dtype),
                                     [EDDY_CUDA_SCATTER_NUMBER] = 1};
    dims->rank = walk->rank;
    for (int32_t d = 0; d < walk->rank; d++) {
        dims->dims[d] = walk->dims[d];
        for (int o = 0; o < OPERANDS; o++)
            dims->strides[o][d] = walk->strides[o][d] * bytes[o];
    }
}

/* The range of the indices is cut into as many parts as it takes to occupy the device. But each of them goes through all indices, so that there is no more than one
 * for an index. */
static void cut_range(const scattering *s, eddy_cuda_scatter_call *p) {
    int64_t most = (int64_t)EDDY_CUDA_BLOCK * eddy_cuda_blocks(s->call, INT32_MAX, 1);
    int64_t parts = eddy_min_i64(most / p->places, eddy_min_i64(p->bound, p->length));
    p->part = (p->bound + eddy_max_i64(1, parts) - 1) / eddy_max_i64(1, parts);
    p->parts = p->part > 0 ? (p->bound + p->part - 1) / p->part : 1;
}

/* What is empty takes nothing, and each index is looked at once. */
static void leave_out_repeated(scattering *s) {
    for (int32_t d = 0; d < s->rest.rank; d++)
        if (s->rest.strides[EDDY_CUDA_SCATTER_INDEX][d] == 0)
            s->rest.dims[d] = eddy_min_i64(1, s->rest.dims[d]);
}

static void put_all(scattering *s) {
    if (eddy_kernel_view_count(&s->out) == 0)
        leave_out_repeated(s);
    eddy_walk_collapse(&s->along); /* not sorted: in the order of the index */
    eddy_walk_sort(&s->rest);
    eddy_walk_collapse(&s->rest);
    eddy_cuda_scatter_call p = {.out = eddy_cuda_view_at(&s->ground, s->first),
                                .source = s->source.data,
                                .index = s->index.data,
                                .step = s->step * eddy_dtype_size(s->ground.dtype),
                                .bound = s->bound,
                                .left_out = s->left_out,
                                .length = eddy_walk_count(&s->along),
                                .places = eddy_walk_count(&s->rest),
                                .parts = 1};
    p.flags = (s->index.dtype == EDDY_I64 ? EDDY_CUDA_SCATTER_IS_WIDE : 0) |
              (s->is_from_end ? EDDY_CUDA_SCATTER_FROM_END : 0);
    if (p.length == 0)
        return;
    describe_dims(s, &s->along, &p.along);
    if (p.places > 0) {
        describe_dims(s, &s->rest, &p.rest);
        cut_range(s, &p);
    } else {
        p.places = 1; /* indices are checked even if there is nothing to put */
    }
    eddy_cuda_launch(s->call, function_of(s), &p, sizeof(p),
                     eddy_cuda_blocks(s->call, p.places * p.parts, EDDY_CUDA_BLOCK));
}

static void scatter(scattering *s) {
    lay_ground(s);
    put_all(s);
    if (s->ground.dtype != s->out.dtype)
        eddy_cuda_copy_view(s->call, &s->ground, &s->out);
}

/* Of the workspace. */
static size_t ground_bytes(const eddy_op_view *out, bool adds) {
    return adds && is_aside(out->dtype) ? (size_t)eddy_kernel_view_count(out) * sizeof(float) : 0;
}

static eddy_status prepare_sums(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes = ground_bytes(&call->views[call->view_count - 1], true);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* ---- kernels ---- */

/* views: in, index, source, out. A 0-dimensional tensor counts as a vector. */
static void scattering_init_along(scattering *s, const eddy_kernel_call *call, bool adds) {
    s->in = eddy_kernel_view_with_axis(&call->views[0]);
    s->index = eddy_kernel_view_with_axis(&call->views[1]);
    s->source = eddy_kernel_view_with_axis(&call->views[2]);
    s->out = eddy_kernel_view_with_axis(&call->views[3]);
    scattering_init(s, call, adds);
    set_axis(s, ((const eddy_attributes_axis *)call->attributes)->axis);
}

/* source is used as far as index extends */
static void run_scatter_of(const eddy_kernel_call *call, bool adds) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    scattering s;
    scattering_init_along(&s, call, adds);
    s.is_from_end = true;
    int64_t count = eddy_kernel_view_count(&s.index), number = count;
    for (int32_t d = 0; d < s.index.rank; d++) {
        number /= eddy_max_i64(1, s.index.shape[d]);
        eddy_walk_append(d == axis ? &s.along : &s.rest, s.index.shape[d],
                         (int64_t[]){d == axis ? 0 : s.strides[d], s.source.strides[d],
                                     s.index.strides[d], number},
                         OPERANDS);
    }
    if (count == 0)
        s.along.dims[0] = 0; /* without indices there are none along the axis */
    scatter(&s);
}

static void run_scatter(const eddy_kernel_call *call) {
    run_scatter_of(call, false);
}

static void run_scatter_add(const eddy_kernel_call *call) {
    run_scatter_of(call, true);
}

/* index is [n] */
static void run_index_add(const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    scattering s;
    scattering_init_along(&s, call, true);
    for (int32_t d = 0; d < s.source.rank; d++)
        if (d == axis)
            eddy_walk_append(&s.along, s.source.shape[d],
                             (int64_t[]){0, s.source.strides[d], s.index.strides[0], 1}, OPERANDS);
        else
            eddy_walk_append(&s.rest, s.source.shape[d],
                             (int64_t[]){s.strides[d], s.source.strides[d], 0, 0}, OPERANDS);
    scatter(&s);
}

/* The workspace has the ground, and then what several indices become. */
static size_t places_at(const eddy_kernel_call *call) {
    const eddy_attributes_index_put *attributes = call->attributes;
    return (ground_bytes(&call->views[call->view_count - 1], attributes->accumulates) + 7) / 8 * 8;
}

static eddy_status prepare_index_put(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes =
        places_at(call) + eddy_cuda_places_bytes(&call->views[1], call->view_count - 3);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* An index names a part: the values broadcast to the dims of the index, and then those of the output from `first` on. */
static void append_parts(scattering *s, int32_t first) {
    const eddy_op_view *index = &s->index, *out = &s->out;
    eddy_walk values;
    eddy_walk_init(&values, index->rank, index->shape);
    for (int32_t d = first; d < out->rank; d++)
        eddy_walk_append(&values, out->shape[d], NULL, 0);
    eddy_walk_add_broadcast(&values, &s->source);
    int64_t number = eddy_kernel_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        eddy_walk_append(&s->along, index->shape[d],
                         (int64_t[]){0, values.strides[0][d], index->strides[d], number}, OPERANDS);
    }
    for (int32_t d = first; d < out->rank; d++)
        eddy_walk_append(
            &s->rest, out->shape[d],
            (int64_t[]){s->strides[d], values.strides[0][index->rank + d - first], 0, 0}, OPERANDS);
}

/* views: in, indices ..., values, out */
static void run_index_put(const eddy_kernel_call *call) {
    int32_t count = call->view_count - 3;
    scattering s;
    s.in = call->views[0];
    s.source = call->views[count + 1];
    s.out = call->views[count + 2];
    scattering_init(&s, call, ((const eddy_attributes_index_put *)call->attributes)->accumulates);
    eddy_cuda_places places;
    eddy_cuda_places_find(&places, call, &s.ground, &call->views[1], count,
                          (char *)call->workspace + places_at(call));
    s.index = places.index;
    s.is_from_end = places.is_from_end;
    s.step = places.step;
    s.bound = places.bound;
    s.first = places.first;
    append_parts(&s, count);
    scatter(&s);
}

/* views: grad [.., D], index [..], out [V, D] */
static void run_embedding_backward(const eddy_kernel_call *call) {
    const eddy_op_view *grad = &call->views[0], *index = &call->views[1], *out = &call->views[2];
    scattering s;
    s.in = (eddy_op_view){.rank = -1};
    s.index = *index;
    s.source = *grad;
    s.out = *out;
    scattering_init(&s, call, true);
    set_axis(&s, 0);
    s.left_out = ((const eddy_attributes_embedding *)call->attributes)->padding_index;
    int64_t number = eddy_kernel_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        eddy_walk_append(&s.along, index->shape[d],
                         (int64_t[]){0, grad->strides[d], index->strides[d], number}, OPERANDS);
    }
    eddy_walk_append(&s.rest, out->shape[1],
                     (int64_t[]){s.strides[1], grad->strides[grad->rank - 1], 0, 0}, OPERANDS);
    scatter(&s);
}

const eddy_kernel eddy_cuda_scatter = {.name = "scatter", .run = run_scatter};
const eddy_kernel eddy_cuda_scatter_add = {
    .name = "scatter_add", .run = run_scatter_add, .prepare = prepare_sums};
const eddy_kernel eddy_cuda_index_add = {
    .name = "index_add", .run = run_index_add, .prepare = prepare_sums};
const eddy_kernel eddy_cuda_index_put = {
    .name = "index_put", .run = run_index_put, .prepare = prepare_index_put};
const eddy_kernel eddy_cuda_embedding_backward = {
    .name = "embedding_backward", .run = run_embedding_backward, .prepare = prepare_sums};
