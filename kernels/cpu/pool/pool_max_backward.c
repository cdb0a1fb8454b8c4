/* The gradient of max_pool2d: elements of grad go to the places of their planes that indices name. A task is a plane, or some
 * channels of an image where these lie closer: it clears its places and then adds to them while they are near, in row-major order
 * of grad. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
#define PIECE 256
/* Elements of dx that a task of several channels has at most, and channels at least: fewer than all share cache lines badly. */
#define TASK_ELEMENTS (1 << 20)
#define TASK_CHANNELS 16

typedef struct routing {
    const eddy_kernel_call *call;
    eddy_image grad, indices, dx;
    int64_t plane;         /* places of one; indices are below it */
    int64_t task_channels; /* 1: planes */
    int64_t tasks;         /* of an image */
    /* What is added to: dx, or its like of f32 or f64 in the workspace where sums are to be rounded once, or where places of a
     * plane are not even. */
    eddy_dtype dtype;
    bool is_aside;
    char *ground;
    int64_t image_stride, channel_stride, step;
} routing;

/* Elements from a place of a plane to the next in row-major order; false where there is no one number. */
static bool plane_step(const eddy_image *image, int64_t *step) {
    *step = image->width == 1 ? image->row_stride : image->column_stride;
    return image->height == 1 || image->width == 1 || image->row_stride == image->width * image->column_stride;
}

static bool is_aside(const eddy_image *dx) {
    int64_t step;
    return dx->dtype != eddy_chunk_compute_dtype(dx->dtype) || !plane_step(dx, &step);
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* ---- adding ---- */

/* Adds values[i] to to[i * lane + indices[i] * step]; stops at an index that is not below the bound: how many were added. */
typedef int64_t put_fn(void *to, int64_t step, int64_t lane, const int64_t *indices, int64_t bound, const void *values,
                       int64_t count);

#define PUT_LOOP(type)                                                                                                 \
    for (; i < count; i++) {                                                                                           \
        if ((uint64_t)indices[i] >= (uint64_t)bound)                                                                   \
            break;                                                                                                     \
        ((type *)to)[i * lane + indices[i] * step] += ((const type *)values)[i];                                       \
    }

/* `lane` and `step` are known when this is compiled where they are 0 and 1. */
#define PUT(name, type)                                                                                                \
    static int64_t name(void *to, int64_t step, int64_t lane, const int64_t *indices, int64_t bound,                   \
                        const void *values, int64_t count) {                                                           \
        int64_t i = 0;                                                                                                 \
        if (lane == 0 && step == 1) {                                                                                  \
            lane = 0, step = 1;                                                                                        \
            PUT_LOOP(type)                                                                                             \
        } else {                                                                                                       \
            PUT_LOOP(type)                                                                                             \
        }                                                                                                              \
        return i;                                                                                                      \
    }

PUT(put_f32, float)
PUT(put_f64, double)

/* `count` elements of grad: `lane` apart in what is added to, `number` the first one's place in indices and `numbers` from one to
 * the next. */
static void put_run(const routing *r, char *to, int64_t lane, const char *grad, int64_t grad_stride,
                    const char *indices, int64_t indices_stride, int64_t count, int64_t number, int64_t numbers) {
    _Alignas(64) char values[PIECE * 8];
    int64_t loaded[PIECE];
    put_fn *put = r->dtype == EDDY_F64 ? put_f64 : put_f32;
    for (int64_t first = 0, some; first < count; first += some) {
        some = eddy_min_i64(PIECE, count - first);
        const void *from = eddy_chunk_at(grad, r->grad.dtype, first * grad_stride);
        const void *index = eddy_chunk_at(indices, r->indices.dtype, first * indices_stride);
        if (r->grad.dtype != r->dtype || grad_stride != 1) {
            eddy_chunk_load(r->dtype, values, r->grad.dtype, from, grad_stride, some);
            from = values;
        }
        if (r->indices.dtype != EDDY_I64 || indices_stride != 1) {
            eddy_chunk_load(EDDY_I64, loaded, r->indices.dtype, index, indices_stride, some);
            index = loaded;
        }
        const int64_t *at = index;
        char *place = eddy_chunk_at(to, r->dtype, first * lane);
        int64_t added = put(place, r->step, lane, at, r->plane, from, some);
        /* The first fault of the run; the lowest of all is kept. */
        if (added < some) {
            eddy_kernel_fail(r->call, EDDY_OUT_OF_RANGE, number + (first + added) * numbers, at[added], r->plane);
            return;
        }
    }
}

/* Places of grad in row-major order, each with its channels. */
static void put_channels(const routing *r, char *to, int64_t n, int64_t c, int64_t channels) {
    const eddy_image *indices = &r->indices;
    int64_t small = indices->height * indices->width, number = (n * indices->channels + c) * small;
    for (int64_t h = 0; h < indices->height; h++)
        for (int64_t w = 0; w < indices->width; w++)
            put_run(r, to, r->channel_stride, eddy_image_at(&r->grad, n, c, h, w), r->grad.channel_stride,
                    eddy_image_at(indices, n, c, h, w), indices->channel_stride, channels,
                    number + h * indices->width + w, small);
}

static void put_plane(const routing *r, char *to, int64_t n, int64_t c) {
    const eddy_image *indices = &r->indices;
    int64_t rows = indices->height, columns = indices->width, grad_step, indices_step;
    int64_t number = (n * indices->channels + c) * rows * columns;
    bool is_even = plane_step(&r->grad, &grad_step);
    if (plane_step(indices, &indices_step) && is_even) {
        columns *= rows;
        rows = 1;
    } else {
        grad_step = r->grad.column_stride;
        indices_step = indices->column_stride;
    }
    for (int64_t h = 0; h < rows; h++)
        put_run(r, to, 0, eddy_image_at(&r->grad, n, c, h, 0), grad_step, eddy_image_at(indices, n, c, h, 0),
                indices_step, columns, number + h * columns, 1);
}

/* ---- tasks ---- */

/* `planes` that lie one behind the other, or some channels of an image. */
static void clear(const routing *r, char *to, int64_t planes, int64_t channels) {
    static const _Alignas(8) char zero[8];
    int64_t bytes = eddy_dtype_size(r->dtype);
    if (r->task_channels == 1)
        eddy_chunk_fill(to, r->step, bytes, zero, planes * r->plane);
    else if (channels == r->step && r->channel_stride == 1)
        eddy_chunk_fill(to, 1, bytes, zero, channels * r->plane);
    else
        for (int64_t i = 0; i < r->plane; i++)
            eddy_chunk_fill(to + i * r->step * bytes, r->channel_stride, bytes, zero, channels);
}

/* Rounds what was added aside. */
static void store(const routing *r, const char *from, int64_t n, int64_t c, int64_t channels) {
    const eddy_image *dx = &r->dx;
    for (int64_t h = 0; h < dx->height; h++) {
        const char *row = eddy_chunk_at(from, r->dtype, h * dx->width * r->step);
        if (r->task_channels == 1) {
            eddy_chunk_copy(dx->dtype, eddy_image_at(dx, n, c, h, 0), dx->column_stride, r->dtype, row, r->step,
                            dx->width);
            continue;
        }
        for (int64_t w = 0; w < dx->width; w++)
            eddy_chunk_copy(dx->dtype, eddy_image_at(dx, n, c, h, w), dx->channel_stride, r->dtype,
                            eddy_chunk_at(row, r->dtype, w * r->step), r->channel_stride, channels);
    }
}

static void route_slice(void *context, int64_t begin, int64_t end) {
    const routing *r = context;
    bool is_one_run = r->task_channels == 1 && r->channel_stride == r->plane * r->step &&
                      r->image_stride == r->tasks * r->channel_stride;
    for (int64_t task = begin; task < end; task++) {
        int64_t n = task / r->tasks, c = task % r->tasks * r->task_channels;
        int64_t channels = eddy_min_i64(r->task_channels, r->dx.channels - c);
        char *to = eddy_chunk_at(r->ground, r->dtype, n * r->image_stride + c * r->channel_stride);
        if (!is_one_run)
            clear(r, to, 1, channels);
        else if (task == begin)
            clear(r, to, end - begin, channels);
        if (r->task_channels == 1)
            put_plane(r, to, n, c);
        else
            put_channels(r, to, n, c, channels);
        if (r->is_aside)
            store(r, to, n, c, channels);
    }
}

/* views: grad, indices [.., OH, OW], out [.., H, W] */
static void max_pool2d_backward_run(const eddy_kernel_call *call) {
    if (eddy_view_count(&call->views[2]) == 0)
        return;
    routing r = {.call = call,
                 .grad = eddy_image_of(&call->views[0]),
                 .indices = eddy_image_of(&call->views[1]),
                 .dx = eddy_image_of(&call->views[2])};
    const eddy_image *dx = &r.dx;
    bool by_channels = dx->channels > 1 && distance(dx->channel_stride) < distance(dx->column_stride);
    r.plane = dx->height * dx->width;
    r.dtype = eddy_chunk_compute_dtype(dx->dtype);
    r.is_aside = is_aside(dx);
    r.ground = r.is_aside ? call->workspace : dx->data;
    r.image_stride = r.is_aside ? dx->channels * r.plane : dx->image_stride;
    r.channel_stride = !r.is_aside ? dx->channel_stride : by_channels ? 1 : r.plane;
    r.step = by_channels ? dx->channels : 1;
    if (!r.is_aside)
        plane_step(dx, &r.step);
    r.task_channels = 1;
    if (by_channels)
        r.task_channels = eddy_min_i64(dx->channels, eddy_max_i64(TASK_CHANNELS, TASK_ELEMENTS / r.plane));
    r.tasks = (dx->channels + r.task_channels - 1) / r.task_channels;
    int64_t tasks = dx->images * r.tasks, grain = eddy_max_i64(1, SLICE_ELEMENTS / (r.plane * r.task_channels));
    if (tasks <= grain)
        route_slice(&r, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, grain, route_slice, &r);
}

static size_t max_pool2d_backward_workspace(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[2];
    eddy_image dx = eddy_image_of(out);
    return is_aside(&dx) ? (size_t)eddy_view_count(out) * eddy_dtype_bytes(eddy_chunk_compute_dtype(dx.dtype)) : 0;
}

static int64_t max_pool2d_backward_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(&call->views[2]), 100) +
           eddy_cost_ps(eddy_view_count(&call->views[0]), call->kernel->cost_element_ps);
}

const eddy_kernel eddy_cpu_max_pool2d_backward = {.name = "max_pool2d_backward",
                                                  .run = max_pool2d_backward_run,
                                                  .workspace = max_pool2d_backward_workspace,
                                                  .cost_base_ps = 120000,
                                                  .cost_element_ps = 800,
                                                  .cost = max_pool2d_backward_cost};
