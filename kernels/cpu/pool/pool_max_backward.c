/* The gradient of max_pool2d: elements of grad are added to the places of their planes that indices name. A task is a
 * plane, or some channels of an image if these are closer in memory. It clears its places and adds to them while they are
 * in the cache, in row-major order of grad. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
#define PIECE 256
/* Elements of dx of a task of several channels, at most, and channels, at least: tasks of fewer channels would share cache
 * lines. */
#define TASK_ELEMENTS (1 << 20)
#define TASK_CHANNELS 16

/* The plan of a call. */
typedef struct backward_plan {
    int64_t plane;         /* places of a plane; indices are below it */
    int64_t task_channels; /* 1: planes */
    int64_t image_tasks;
    int64_t tasks, grain; /* of all images */
    bool is_aside;        /* sums are accumulated in the workspace */
    bool is_one_run;      /* the memory of consecutive tasks is contiguous */
    eddy_dtype dtype;
    int64_t image_stride, channel_stride, step; /* of the accumulators; step: from place to place */
    /* For a plane of indices: runs of elements with constant strides, in grad too. */
    int64_t runs, run_length, grad_step, indices_step;
} backward_plan;

typedef struct routing {
    const backward_plan *plan;
    const eddy_kernel_call *call;
    eddy_image grad, indices, dx;
    /* The accumulators: dx itself, or a copy of f32 or f64 in the workspace, if sums are to be rounded once or the places
     * of a plane have no constant stride. */
    char *ground;
} routing;

/* The stride from place to place of a plane in row-major order, in elements; false if it is not constant. */
static bool plane_step(const eddy_image *image, int64_t *step) {
    *step = image->width == 1 ? image->row_stride : image->column_stride;
    return image->height == 1 || image->width == 1 ||
           image->row_stride == image->width * image->column_stride;
}

static bool is_aside(const eddy_image *dx) {
    int64_t step;
    return dx->dtype != eddy_chunk_compute_dtype(dx->dtype) || !plane_step(dx, &step);
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* ---- adding ---- */

/* Adds values[i] to to[i * lane + indices[i] * step]. Stops at an index that is not below the bound; returns how many were
 * added. */
typedef int64_t put_fn(void *to, int64_t step, int64_t lane, const int64_t *indices, int64_t bound,
                       const void *values, int64_t count);

#define PUT_LOOP(type)                                                                             \
    for (; i < count; i++) {                                                                       \
        if ((uint64_t)indices[i] >= (uint64_t)bound)                                               \
            break;                                                                                 \
        ((type *)to)[i * lane + indices[i] * step] += ((const type *)values)[i];                   \
    }

/* In the first branch `lane` and `step` are constants, 0 and 1. */
#define PUT(name, type)                                                                            \
    static int64_t name(void *to, int64_t step, int64_t lane, const int64_t *indices,              \
                        int64_t bound, const void *values, int64_t count) {                        \
        int64_t i = 0;                                                                             \
        if (lane == 0 && step == 1) {                                                              \
            lane = 0, step = 1;                                                                    \
            PUT_LOOP(type)                                                                         \
        } else {                                                                                   \
            PUT_LOOP(type)                                                                         \
        }                                                                                          \
        return i;                                                                                  \
    }

PUT(put_f32, float)
PUT(put_f64, double)

/* Adds `count` elements of grad. `lane`: distance of their accumulators. `number`: the row-major number of the first one's
 * index; `numbers`: from one to the next. */
static void put_run(const routing *r, char *to, int64_t lane, const char *grad, int64_t grad_stride,
                    const char *indices, int64_t indices_stride, int64_t count, int64_t number,
                    int64_t numbers) {
    _Alignas(64) char values[PIECE * 8];
    int64_t loaded[PIECE];
    put_fn *put = r->plan->dtype == EDDY_F64 ? put_f64 : put_f32;
    for (int64_t first = 0, some; first < count; first += some) {
        some = eddy_min_i64(PIECE, count - first);
        const void *from = eddy_chunk_at(grad, r->grad.dtype, first * grad_stride);
        const void *index = eddy_chunk_at(indices, r->indices.dtype, first * indices_stride);
        if (r->grad.dtype != r->plan->dtype || grad_stride != 1) {
            eddy_chunk_load(r->plan->dtype, values, r->grad.dtype, from, grad_stride, some);
            from = values;
        }
        if (r->indices.dtype != EDDY_I64 || indices_stride != 1) {
            eddy_chunk_load(EDDY_I64, loaded, r->indices.dtype, index, indices_stride, some);
            index = loaded;
        }
        const int64_t *at = index;
        char *place = eddy_chunk_at(to, r->plan->dtype, first * lane);
        int64_t added = put(place, r->plan->step, lane, at, r->plan->plane, from, some);
        /* The first error of the run; of all errors the lowest is kept. */
        if (added < some) {
            eddy_kernel_fail(r->call, EDDY_OUT_OF_RANGE, number + (first + added) * numbers,
                             at[added], r->plan->plane);
            return;
        }
    }
}

/* Adds the places of grad in row-major order, each with its channels. */
static void put_channels(const routing *r, char *to, int64_t n, int64_t c, int64_t channels) {
    const eddy_image *indices = &r->indices;
    int64_t small = indices->height * indices->width, number = (n * indices->channels + c) * small;
    for (int64_t h = 0; h < indices->height; h++)
        for (int64_t w = 0; w < indices->width; w++)
            put_run(r, to, r->plan->channel_stride, eddy_image_at(&r->grad, n, c, h, w),
                    r->grad.channel_stride, eddy_image_at(indices, n, c, h, w),
                    indices->channel_stride, channels, number + h * indices->width + w, small);
}

static void put_plane(const routing *r, char *to, int64_t n, int64_t c) {
    const backward_plan *plan = r->plan;
    int64_t length = plan->run_length, number = (n * r->indices.channels + c) * plan->runs * length;
    for (int64_t h = 0; h < plan->runs; h++)
        put_run(r, to, 0, eddy_image_at(&r->grad, n, c, h, 0), plan->grad_step,
                eddy_image_at(&r->indices, n, c, h, 0), plan->indices_step, length,
                number + h * length, 1);
}

/* ---- tasks ---- */

/* Clears `planes` contiguous planes, or some channels of an image. */
static void clear(const routing *r, char *to, int64_t planes, int64_t channels) {
    static const _Alignas(8) char zero[8];
    int64_t bytes = eddy_dtype_size(r->plan->dtype);
    if (r->plan->task_channels == 1)
        eddy_chunk_fill(to, r->plan->step, bytes, zero, planes * r->plan->plane);
    else if (channels == r->plan->step && r->plan->channel_stride == 1)
        eddy_chunk_fill(to, 1, bytes, zero, channels * r->plan->plane);
    else
        for (int64_t i = 0; i < r->plan->plane; i++)
            eddy_chunk_fill(to + i * r->plan->step * bytes, r->plan->channel_stride, bytes, zero,
                            channels);
}

/* Rounds the sums in the workspace to dx. */
static void store(const routing *r, const char *from, int64_t n, int64_t c, int64_t channels) {
    const eddy_image *dx = &r->dx;
    for (int64_t h = 0; h < dx->height; h++) {
        const char *row = eddy_chunk_at(from, r->plan->dtype, h * dx->width * r->plan->step);
        if (r->plan->task_channels == 1) {
            eddy_chunk_copy(dx->dtype, eddy_image_at(dx, n, c, h, 0), dx->column_stride,
                            r->plan->dtype, row, r->plan->step, dx->width);
            continue;
        }
        for (int64_t w = 0; w < dx->width; w++)
            eddy_chunk_copy(dx->dtype, eddy_image_at(dx, n, c, h, w), dx->channel_stride,
                            r->plan->dtype, eddy_chunk_at(row, r->plan->dtype, w * r->plan->step),
                            r->plan->channel_stride, channels);
    }
}

static void route_slice(void *context, int64_t begin, int64_t end) {
    const routing *r = context;
    for (int64_t task = begin; task < end; task++) {
        int64_t n = task / r->plan->image_tasks,
                c = task % r->plan->image_tasks * r->plan->task_channels;
        int64_t channels = eddy_min_i64(r->plan->task_channels, r->dx.channels - c);
        char *to = eddy_chunk_at(r->ground, r->plan->dtype,
                                 n * r->plan->image_stride + c * r->plan->channel_stride);
        if (!r->plan->is_one_run)
            clear(r, to, 1, channels);
        else if (task == begin)
            clear(r, to, end - begin, channels);
        if (r->plan->task_channels == 1)
            put_plane(r, to, n, c);
        else
            put_channels(r, to, n, c, channels);
        if (r->plan->is_aside)
            store(r, to, n, c, channels);
    }
}

static void see(routing *r, const eddy_kernel_call *call, const backward_plan *plan) {
    r->plan = plan;
    r->call = call;
    r->grad = eddy_image_of(&call->views[0]);
    r->indices = eddy_image_of(&call->views[1]);
    r->dx = eddy_image_of(&call->views[2]);
}

/* views: grad, indices [.., OH, OW], out [.., H, W] */
static void max_backward_run(const eddy_kernel_call *call) {
    const backward_plan *plan = call->plan;
    routing r;
    see(&r, call, plan);
    r.ground = plan->is_aside ? call->workspace : r.dx.data;
    if (plan->tasks <= plan->grain)
        route_slice(&r, 0, plan->tasks);
    else
        call->team->parallel_for(call->team, plan->tasks, plan->grain, route_slice, &r);
}

static void max_backward_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- planning ---- */

static void lay_ground(const eddy_image *dx, bool by_channels, backward_plan *plan) {
    plan->plane = dx->height * dx->width;
    plan->dtype = eddy_chunk_compute_dtype(dx->dtype);
    plan->is_aside = is_aside(dx);
    plan->image_stride = plan->is_aside ? dx->channels * plan->plane : dx->image_stride;
    plan->channel_stride = !plan->is_aside ? dx->channel_stride : by_channels ? 1 : plan->plane;
    plan->step = by_channels ? dx->channels : 1;
    if (!plan->is_aside)
        plane_step(dx, &plan->step);
}

static void cut_tasks(const eddy_image *dx, bool by_channels, backward_plan *plan) {
    plan->task_channels = 1;
    if (by_channels)
        plan->task_channels =
            eddy_min_i64(dx->channels, eddy_max_i64(TASK_CHANNELS, TASK_ELEMENTS / plan->plane));
    plan->image_tasks = (dx->channels + plan->task_channels - 1) / plan->task_channels;
    plan->tasks = dx->images * plan->image_tasks;
    plan->grain = eddy_max_i64(1, SLICE_ELEMENTS / (plan->plane * plan->task_channels));
    plan->is_one_run = plan->task_channels == 1 &&
                       plan->channel_stride == plan->plane * plan->step &&
                       plan->image_stride == plan->image_tasks * plan->channel_stride;
}

static void find_runs(const eddy_image *grad, const eddy_image *indices, backward_plan *plan) {
    bool is_even = plane_step(grad, &plan->grad_step);
    plan->runs = 1;
    plan->run_length = indices->height * indices->width;
    if (plane_step(indices, &plan->indices_step) && is_even)
        return;
    plan->runs = indices->height;
    plan->run_length = indices->width;
    plan->grad_step = grad->column_stride;
    plan->indices_step = indices->column_stride;
}

static eddy_status max_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    backward_plan *of = plan->memory;
    routing r;
    int64_t count = eddy_kernel_view_count(&call->views[2]);
    plan->cost_ps =
        call->kernel->cost_base_ps + eddy_cost_ps(count, 100) +
        eddy_cost_ps(eddy_kernel_view_count(&call->views[0]), call->kernel->cost_element_ps);
    if (count == 0) {
        plan->run = max_backward_run_nothing;
        return EDDY_OK;
    }
    see(&r, call, of);
    bool by_channels =
        r.dx.channels > 1 && distance(r.dx.channel_stride) < distance(r.dx.column_stride);
    lay_ground(&r.dx, by_channels, of);
    cut_tasks(&r.dx, by_channels, of);
    find_runs(&r.grad, &r.indices, of);
    plan->bytes = sizeof(*of);
    plan->workspace_bytes = of->is_aside ? (size_t)count * eddy_dtype_bytes(of->dtype) : 0;
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_max_pool2d_backward = {.name = "max_pool2d_backward",
                                                  .run = max_backward_run,
                                                  .prepare = max_backward_prepare,
                                                  .cost_base_ps = 120000,
                                                  .cost_element_ps = 800};
