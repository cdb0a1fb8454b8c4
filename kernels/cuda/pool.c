/* Each pool is one launch, in which a thread computes an element of the output. The gradient of max_pool2d puts elements where indices say, or, from x, gathers them from the windows. */
#include <base/dtype.h>
#include <base/number.h>
#include <kernels/cost.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/pool.h>
#include <kernels/cuda/view.h>

/* Those of the CPU's averages (kernels/cpu/pool/pool.c), which decide in which order it adds. */
#define SEQUENCE_MOST 64
#define MEAN_LEAST 128
/* eddy_max_put: elements of grad for each part of a plane, at least. Each part reads them all. */
#define PUT_LEAST 256

static eddy_cuda_image image = {.data = eddy_cuda_image_pool};

typedef enum stem { MAX_POOL, AVG_POOL, MAX_ROUTE, AVG_SPREAD, MAX_PUT, STEMS } stem;

static _Atomic(void *) loaded[STEMS][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[STEMS][EDDY_DTYPE_COUNT] = {
#define FUNCTION(stem, text, dtype)                                                                \
    [stem][EDDY_##dtype] = {text, &image, loaded[stem][EDDY_##dtype]},
#define MAX(name, dtype) FUNCTION(MAX_POOL, "eddy_max_pool_" #name, dtype)
#define FLOATS(name, dtype)                                                                        \
    FUNCTION(AVG_POOL, "eddy_avg_pool_" #name, dtype)                                              \
    FUNCTION(MAX_ROUTE, "eddy_max_route_" #name, dtype)                                            \
    FUNCTION(AVG_SPREAD, "eddy_avg_spread_" #name, dtype)                                          \
    FUNCTION(MAX_PUT, "eddy_max_put_" #name, dtype)
    EDDY_CUDA_POOL_DTYPES(MAX) EDDY_CUDA_POOL_FLOATS(FLOATS)};

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static bool channels_are_closer(const eddy_cuda_planes *planes) {
    return distance(planes->strides[EDDY_CUDA_CHANNEL]) <
           distance(planes->strides[EDDY_CUDA_COLUMN]);
}

/* ---- windows ---- */

/* `image` and `small` are set. Without attributes windows are adaptive. */
static void set_windows(eddy_cuda_pool *p, const eddy_attributes_pool *attributes) {
    const int64_t *in = p->image.sizes, *out = p->small.sizes;
    p->height = eddy_pool_axis_height(attributes, in[EDDY_CUDA_ROW], out[EDDY_CUDA_ROW]);
    p->width = eddy_pool_axis_width(attributes, in[EDDY_CUDA_COLUMN], out[EDDY_CUDA_COLUMN]);
    p->counting = eddy_pool_counting_of(attributes);
}

static void launch(const eddy_kernel_call *call, stem of, eddy_dtype dtype, eddy_cuda_pool *p) {
    eddy_cuda_launch(call, &functions[of][dtype], p, sizeof(*p),
                     eddy_cuda_blocks(call, p->places.count, EDDY_CUDA_BLOCK));
}

static bool is_empty(const eddy_op_view *view) {
    return eddy_kernel_view_count(view) == 0;
}

/* ---- maxima ---- */

/* Of values and indices, those that are not wanted have no data. */
static void find_largest(const eddy_kernel_call *call, const eddy_op_view *x,
                         const eddy_cuda_planes *values, const eddy_cuda_planes *indices) {
    eddy_cuda_pool p = {.image = eddy_cuda_planes_of(x), .small = *values, .indices = *indices};
    set_windows(&p, call->attributes);
    p.places = eddy_cuda_plane_places_of(values->data ? values : indices);
    launch(call, MAX_POOL, x->dtype, &p);
}

/* views: x, values, and indices if those are wanted */
static void run_max(const eddy_kernel_call *call) {
    const eddy_cuda_planes values = eddy_cuda_planes_of(&call->views[1]);
    eddy_cuda_planes indices = {.data = NULL};
    if (call->view_count > 2)
        indices = eddy_cuda_planes_of(&call->views[2]);
    if (!is_empty(&call->views[1]))
        find_largest(call, &call->views[0], &values, &indices);
}

/* ---- averages ---- */

typedef struct average_plan {
    bool is_mean;
    int64_t words[]; /* the plan of mean */
} average_plan;

static eddy_cuda_pool average_of(const eddy_kernel_call *call,
                                 const eddy_attributes_pool *attributes) {
    eddy_cuda_pool p = {.image = eddy_cuda_planes_of(&call->views[0]),
                        .small = eddy_cuda_planes_of(&call->views[1])};
    set_windows(&p, attributes);
    p.in_sequence = call->views[0].dtype == EDDY_F32 && channels_are_closer(&p.image) &&
                    !p.height.is_adaptive && !p.width.is_adaptive &&
                    p.height.kernel <= SEQUENCE_MOST &&
                    p.height.kernel * p.width.kernel <= SEQUENCE_MOST;
    return p;
}

/* One window covers each whole image, row-major and not small: the mean over two axes, as on the CPU. */
static bool is_mean(const eddy_cuda_pool *p) {
    return p->height.out == 1 && p->width.out == 1 && p->height.in * p->width.in >= MEAN_LEAST &&
           !channels_are_closer(&p->image) &&
           eddy_pool_window_of(&p->height, 0).count == p->height.in &&
           eddy_pool_window_of(&p->width, 0).count == p->width.in &&
           eddy_pool_divisor_of(p->counting, &p->height, &p->width, 0, 0) ==
               (double)p->height.in * (double)p->width.in;
}

static eddy_kernel_call mean_call(const eddy_kernel_call *call, eddy_attributes_reduce *axes) {
    *axes = (eddy_attributes_reduce){.axes = 3U << (call->views[0].rank - 2), .keeps_dims = true};
    eddy_kernel_call mean = *call;
    mean.kernel = &eddy_cuda_mean;
    mean.attributes = axes;
    return mean;
}

static eddy_status prepare_average(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                   const eddy_attributes_pool *attributes) {
    average_plan *of = plan->memory;
    plan->cost_ps = eddy_cost_views_ps(call);
    plan->bytes = sizeof(*of);
    of->is_mean = false;
    if (is_empty(&call->views[1]))
        return EDDY_OK;
    eddy_cuda_pool p = average_of(call, attributes);
    of->is_mean = is_mean(&p);
    if (!of->is_mean)
        return EDDY_OK;
    eddy_attributes_reduce axes;
    eddy_kernel_call mean = mean_call(call, &axes);
    eddy_kernel_plan inner = {.memory = of->words};
    eddy_status status = mean.kernel->prepare(&mean, &inner);
    EDDY_ASSERT(sizeof(*of) + inner.bytes <= EDDY_KERNEL_PLAN_BYTES);
    plan->bytes += inner.bytes;
    plan->workspace_bytes = inner.workspace_bytes;
    return status;
}

static void run_average_of(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    const average_plan *of = call->plan;
    if (is_empty(&call->views[1]))
        return;
    if (of->is_mean) {
        eddy_attributes_reduce axes;
        eddy_kernel_call mean = mean_call(call, &axes);
        mean.plan = of->words;
        mean.kernel->run(&mean);
        return;
    }
    eddy_cuda_pool p = average_of(call, attributes);
    p.places = eddy_cuda_plane_places_of(&p.small);
    launch(call, AVG_POOL, call->views[0].dtype, &p);
}

static eddy_status avg_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_average(call, plan, call->attributes);
}

static eddy_status adaptive_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_average(call, plan, NULL);
}

static void run_average(const eddy_kernel_call *call) {
    run_average_of(call, call->attributes);
}

static void run_adaptive(const eddy_kernel_call *call) {
    run_average_of(call, NULL);
}

/* ---- gradients that gather ---- */

/* views: grad, out */
static void spread(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    if (is_empty(&call->views[1]))
        return;
    eddy_cuda_pool p = {.image = eddy_cuda_planes_of(&call->views[1]),
                        .small = eddy_cuda_planes_of(&call->views[0])};
    set_windows(&p, attributes);
    p.places = eddy_cuda_plane_places_of(&p.image);
    launch(call, AVG_SPREAD, call->views[1].dtype, &p);
}

static void run_spread(const eddy_kernel_call *call) {
    spread(call, call->attributes);
}

static void run_spread_adaptive(const eddy_kernel_call *call) {
    spread(call, NULL);
}

/* Then each element of x is read for one window only. Else each window is searched once, and its index kept. */
static bool are_apart(const eddy_attributes_pool *a) {
    return a->dilation.height == 1 && a->dilation.width == 1 &&
           a->stride.height >= a->kernel_size.height && a->stride.width >= a->kernel_size.width;
}

static eddy_status route_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = eddy_cost_views_ps(call);
    if (!are_apart(call->attributes))
        plan->workspace_bytes = (size_t)eddy_kernel_view_count(&call->views[0]) * sizeof(int64_t);
    return EDDY_OK;
}

/* The indices in the workspace lie as grad does: in the order in which they are read. */
static eddy_cuda_planes indices_of(const eddy_kernel_call *call) {
    eddy_cuda_planes indices = eddy_cuda_planes_of(&call->views[0]);
    const eddy_cuda_plane_places places = eddy_cuda_plane_places_of(&indices);
    int64_t step = sizeof(int64_t);
    for (int32_t d = EDDY_CUDA_AXES - 1; d >= 0; d--) {
        indices.strides[places.axes[d]] = step;
        step *= places.sizes[d];
    }
    indices.data = call->workspace;
    return indices;
}

/* views: grad, x, out as x */
static void run_route(const eddy_kernel_call *call) {
    const eddy_op_view *grad = &call->views[0], *x = &call->views[1], *out = &call->views[2];
    if (is_empty(out))
        return;
    eddy_cuda_pool p = {.image = eddy_cuda_planes_of(out), .small = eddy_cuda_planes_of(grad)};
    if (are_apart(call->attributes)) {
        p.x = eddy_cuda_planes_of(x);
    } else {
        eddy_cuda_planes no_values = p.small;
        no_values.data = NULL;
        p.indices = indices_of(call);
        find_largest(call, x, &no_values, &p.indices);
    }
    set_windows(&p, call->attributes);
    p.places = eddy_cuda_plane_places_of(&p.image);
    launch(call, MAX_ROUTE, x->dtype, &p);
}

/* ---- the gradient by indices ---- */

static bool is_aside(eddy_dtype dtype) {
    return dtype == EDDY_F16 || dtype == EDDY_BF16;
}

/* Sums of f16 and bf16 are f32 in the workspace, so that they are rounded once. */
static eddy_status put_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *out = &call->views[2];
    plan->cost_ps = eddy_cost_views_ps(call);
    if (is_aside(out->dtype))
        plan->workspace_bytes = (size_t)eddy_kernel_view_count(out) * sizeof(float);
    return EDDY_OK;
}

static eddy_op_view ground_of(const eddy_kernel_call *call, int64_t *strides) {
    eddy_op_view ground = call->views[2];
    if (!is_aside(ground.dtype))
        return ground;
    int64_t step = 1;
    for (int32_t d = ground.rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= ground.shape[d];
    }
    ground.data = call->workspace;
    ground.dtype = EDDY_F32;
    ground.strides = strides;
    return ground;
}

static eddy_cuda_divisor divisor_of(int64_t size) {
    return size > INT32_MAX ? (eddy_cuda_divisor){0} : eddy_cuda_divisor_of((uint32_t)size);
}

/* Planes are cut into parts until the device is occupied. */
static void cut_planes(const eddy_kernel_call *call, eddy_cuda_pool_put *p) {
    int64_t lanes = p->is_across ? 1 : 32,
            most = (int64_t)EDDY_CUDA_BLOCK * eddy_cuda_blocks(call, INT32_MAX, 1);
    int64_t parts = eddy_min_i64(most / (p->planes * lanes),
                                 eddy_kernel_view_count(&call->views[0]) / p->planes / PUT_LEAST);
    p->part = (p->bound + eddy_max_i64(1, parts) - 1) / eddy_max_i64(1, parts);
    p->parts = (p->bound + p->part - 1) / p->part;
    eddy_cuda_launch(call, &functions[MAX_PUT][call->views[0].dtype], p, sizeof(*p),
                     eddy_cuda_blocks(call, p->planes * p->parts * lanes, EDDY_CUDA_BLOCK));
}

/* views: grad, indices, out */
static void run_put(const eddy_kernel_call *call) {
    const eddy_op_view *indices = &call->views[1], *out = &call->views[2];
    int64_t strides[EDDY_RANK_MAX];
    if (is_empty(out))
        return;
    eddy_op_view ground = ground_of(call, strides);
    eddy_cuda_fill_view(call, &ground, 0);
    eddy_cuda_pool_put p = {.grad = eddy_cuda_planes_of(&call->views[0]),
                            .indices = eddy_cuda_planes_of(indices),
                            .ground = eddy_cuda_planes_of(&ground),
                            .is_wide = indices->dtype == EDDY_I64};
    const int64_t *sizes = p.ground.sizes;
    p.planes = sizes[EDDY_CUDA_IMAGE] * sizes[EDDY_CUDA_CHANNEL];
    p.bound = sizes[EDDY_CUDA_ROW] * sizes[EDDY_CUDA_COLUMN];
    p.is_across = sizes[EDDY_CUDA_CHANNEL] > 1 && channels_are_closer(&p.grad);
    p.by_row[0] = divisor_of(p.grad.sizes[EDDY_CUDA_COLUMN]);
    p.by_row[1] = divisor_of(sizes[EDDY_CUDA_COLUMN]);
    cut_planes(call, &p);
    if (is_aside(out->dtype))
        eddy_cuda_copy_view(call, &ground, out);
}

/* ---- kernels ---- */

const eddy_kernel eddy_cuda_max_pool2d = {.name = "max_pool2d", .run = run_max};
const eddy_kernel eddy_cuda_max_pool2d_with_indices = {.name = "max_pool2d_with_indices",
                                                       .run = run_max};
const eddy_kernel eddy_cuda_max_pool2d_backward = {
    .name = "max_pool2d_backward", .run = run_put, .prepare = put_prepare};
const eddy_kernel eddy_cuda_max_pool2d_backward_from_x = {
    .name = "max_pool2d_backward_from_x", .run = run_route, .prepare = route_prepare};
const eddy_kernel eddy_cuda_avg_pool2d = {
    .name = "avg_pool2d", .run = run_average, .prepare = avg_prepare};
const eddy_kernel eddy_cuda_avg_pool2d_backward = {.name = "avg_pool2d_backward",
                                                   .run = run_spread};
const eddy_kernel eddy_cuda_adaptive_avg_pool2d = {
    .name = "adaptive_avg_pool2d", .run = run_adaptive, .prepare = adaptive_prepare};
const eddy_kernel eddy_cuda_adaptive_avg_pool2d_backward = {.name = "adaptive_avg_pool2d_backward",
                                                            .run = run_spread_adaptive};
