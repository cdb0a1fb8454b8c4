/* The gradient of max_pool2d from its operand. Each window is searched again, and its largest element gets the window's
 * gradient. If windows share elements, or elements have to be converted, their indices are computed in the workspace and
 * passed to max_pool2d_backward. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
/* An x of this many bytes or more has left the second-level cache since it was written. */
#define FAR_BYTES (1 << 20)

/* The plan of a call whose windows share no element. */
typedef struct route_plan {
    eddy_pool_axis height, width;
    eddy_pool_route_fn *block;
    bool by_channels;
    bool is_covered; /* every element is in a window */
    bool is_far;     /* lines of x are prefetched before they are used */
    int64_t rows_begin, rows_end, columns_begin, columns_end; /* outputs whose windows are whole */
    int64_t lines, grain;
} route_plan;

typedef struct routing {
    const route_plan *plan;
    eddy_image grad, x, dx;
} routing;

/* ---- windows that share no element ---- */

static bool is_apart(const eddy_pool_axis *axis) {
    return axis->dilation == 1 && axis->stride >= axis->kernel;
}

static bool is_covered(const eddy_pool_axis *axis) {
    return axis->stride == axis->kernel && axis->out * axis->stride - axis->padding >= axis->in;
}

/* The first row that no window before output row oh contains. */
static int64_t first_row(const eddy_pool_axis *axis, int64_t oh) {
    return oh == 0           ? 0
           : oh == axis->out ? axis->in
                             : eddy_min_i64(axis->in, oh * axis->stride - axis->padding);
}

/* Clears the rows of dx from the window of output row oh to the next window. */
static void clear_rows(const routing *r, int64_t n, int64_t c, int64_t oh) {
    static const _Alignas(8) char zero[8];
    const eddy_image *dx = &r->dx;
    int64_t bytes = eddy_dtype_size(dx->dtype);
    for (int64_t h = first_row(&r->plan->height, oh); h < first_row(&r->plan->height, oh + 1);
         h++) {
        if (!r->plan->by_channels) {
            eddy_chunk_fill(eddy_image_at(dx, n, c, h, 0), dx->column_stride, bytes, zero,
                            dx->width);
            continue;
        }
        for (int64_t w = 0; w < dx->width; w++)
            eddy_chunk_fill(eddy_image_at(dx, n, 0, h, w), dx->channel_stride, bytes, zero,
                            dx->channels);
    }
}

/* Windows of one shape: those of rows oh .. oh + rows - 1 and columns ow .. ow + columns - 1; of channel c, or of all
 * channels. */
typedef struct block {
    int64_t oh, rows, ow, columns;
} block;

static void route_block(const routing *r, int64_t n, int64_t c, const block *b) {
    const eddy_image *x = &r->x, *dx = &r->dx, *grad = &r->grad;
    eddy_pool_window down = eddy_pool_window_of(&r->plan->height, b->oh),
                     across = eddy_pool_window_of(&r->plan->width, b->ow);
    eddy_pool_run run = {.rows = down.count,
                         .columns = across.count,
                         .row_step = x->row_stride,
                         .column_step = x->column_stride,
                         .count = b->columns,
                         .step = r->plan->width.stride * x->column_stride,
                         .out_step = grad->column_stride,
                         .places = b->rows,
                         .place_step = r->plan->height.stride * x->row_stride,
                         .out_place_step = grad->row_stride};
    eddy_pool_steps to = {.row_step = dx->row_stride,
                          .column_step = dx->column_stride,
                          .step = r->plan->width.stride * dx->column_stride,
                          .place_step = r->plan->height.stride * dx->row_stride};
    if (r->plan->by_channels) {
        EDDY_ASSERT(b->rows == 1);
        run.places = b->columns;
        run.place_step = run.step;
        run.out_place_step = run.out_step;
        run.count = x->channels;
        run.step = x->channel_stride;
        run.out_step = grad->channel_stride;
        to.place_step = to.step;
        to.step = dx->channel_stride;
    }
    r->plan->block(eddy_image_at(dx, n, c, down.first, across.first),
                   eddy_image_at(grad, n, c, b->oh, b->ow),
                   eddy_image_at(x, n, c, down.first, across.first), &run, &to);
}

/* Output rows oh .. oh + rows - 1, whose windows have one shape except at the ends of the rows. */
static void route_rows(const routing *r, int64_t n, int64_t c, int64_t oh, int64_t rows) {
    int64_t begin = r->plan->columns_begin, end = r->plan->columns_end;
    for (int64_t ow = 0; ow < begin; ow++)
        route_block(r, n, c, &(block){oh, rows, ow, 1});
    if (begin < end)
        route_block(r, n, c, &(block){oh, rows, begin, end - begin});
    for (int64_t ow = end; ow < r->grad.width; ow++)
        route_block(r, n, c, &(block){oh, rows, ow, 1});
}

/* A line is a row of outputs of one channel, or of all channels. */
static void route_slice(void *context, int64_t begin, int64_t end) {
    const routing *r = context;
    int64_t channels = r->plan->by_channels ? 1 : r->x.channels, rows = r->grad.height;
    int64_t whole = r->plan->rows_begin, whole_end = r->plan->rows_end;
    for (int64_t line = begin, some; line < end; line += some) {
        int64_t plane = line / rows, n = plane / channels, c = plane % channels, oh = line % rows;
        bool is_alike = !r->plan->by_channels && whole <= oh && oh < whole_end;
        some = is_alike ? eddy_min_i64(whole_end - oh, end - line) : 1;
        if (r->plan->is_far && line + 1 < end)
            eddy_image_prefetch_rows(&r->x, (line + 1) / rows,
                                     first_row(&r->plan->height, (line + 1) % rows),
                                     r->plan->height.kernel);
        for (int64_t i = 0; i < some && !r->plan->is_covered; i++)
            clear_rows(r, n, c, oh + i);
        route_rows(r, n, c, oh, some);
    }
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void see(routing *r, const eddy_kernel_call *call, const route_plan *plan) {
    r->plan = plan;
    r->grad = eddy_image_of(&call->views[0]);
    r->x = eddy_image_of(&call->views[1]);
    r->dx = eddy_image_of(&call->views[2]);
}

static void pool_route_run(const eddy_kernel_call *call) {
    const route_plan *plan = call->plan;
    routing r;
    see(&r, call, plan);
    if (plan->lines <= plan->grain)
        route_slice(&r, 0, plan->lines);
    else
        call->team->parallel_for(call->team, plan->lines, plan->grain, route_slice, &r);
}

static void cut_lines(const routing *r, route_plan *plan) {
    const eddy_image *x = &r->x;
    plan->is_covered = is_covered(&plan->height) && is_covered(&plan->width);
    plan->by_channels = distance(x->channel_stride) < distance(x->column_stride);
    plan->is_far =
        plan->by_channels &&
        x->images * x->channels * x->height * x->width * eddy_dtype_size(x->dtype) >= FAR_BYTES;
    eddy_pool_whole(&plan->height, &plan->rows_begin, &plan->rows_end);
    eddy_pool_whole(&plan->width, &plan->columns_begin, &plan->columns_end);
    int64_t line = plan->width.in * plan->height.stride * (plan->by_channels ? x->channels : 1);
    plan->lines = r->grad.images * r->grad.height * (plan->by_channels ? 1 : r->grad.channels);
    plan->grain = eddy_max_i64(1, SLICE_ELEMENTS / line);
}

/* Whether the direct code serves the call; if so, plans it. */
static bool plan_route(route_plan *plan, const eddy_kernel_call *call) {
    routing r;
    see(&r, call, plan);
    plan->height = eddy_pool_axis_height(call->attributes, r.x.height, r.grad.height);
    plan->width = eddy_pool_axis_width(call->attributes, r.x.width, r.grad.width);
    plan->block = NULL;
    if (r.x.dtype == EDDY_F64)
        plan->block = eddy_cpu_pool_f64()->max_route;
    else if (r.x.dtype == EDDY_F32 && r.x.height * r.x.width < INT32_MAX)
        plan->block = eddy_cpu_pool_f32()->max_route;
    if (!plan->block || !is_apart(&plan->height) || !is_apart(&plan->width))
        return false;
    cut_lines(&r, plan);
    return true;
}

/* ---- other windows, by their indices ---- */

/* The plan of a call whose indices are computed. In the workspace, the values come first, then the indices, then the
 * workspace of max_pool2d_backward. In `words`: the plans of the two inner calls. */
typedef struct detour_plan {
    size_t indices_at, rest_at;
    void (*find)(const eddy_kernel_call *call), (*put)(const eddy_kernel_call *call);
    size_t put_at; /* offset of the second plan in this one */
    int64_t words[];
} detour_plan;

/* The views of the inner calls. Values and indices are row-major, in the shape of grad. */
typedef struct detour {
    eddy_op_view find[3], put[3];
    int64_t strides[EDDY_RANK_MAX];
} detour;

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static void lay_detour(detour *d, const detour_plan *plan, const eddy_kernel_call *call) {
    const eddy_op_view *grad = &call->views[0];
    for (int64_t i = grad->rank - 1, stride = 1; i >= 0; stride *= grad->shape[i--])
        d->strides[i] = stride;
    char *workspace = call->workspace;
    eddy_op_view values = *grad, indices = *grad;
    values.strides = indices.strides = d->strides;
    values.data = workspace;
    indices.data = workspace ? workspace + plan->indices_at : NULL;
    indices.dtype = EDDY_I64;
    d->find[0] = call->views[1];
    d->find[1] = values;
    d->find[2] = d->put[1] = indices;
    d->put[0] = *grad;
    d->put[2] = call->views[2];
}

static eddy_kernel_call part_of(const eddy_kernel_call *call, const eddy_kernel *kernel,
                                const eddy_op_view *views) {
    eddy_kernel_call part = *call;
    part.kernel = kernel;
    part.views = views;
    return part;
}

static void run_detour(const eddy_kernel_call *call) {
    const detour_plan *plan = call->plan;
    detour d;
    lay_detour(&d, plan, call);
    eddy_kernel_call find = part_of(call, &eddy_cpu_max_pool2d_with_indices, d.find);
    eddy_kernel_call put = part_of(call, &eddy_cpu_max_pool2d_backward, d.put);
    find.plan = plan->words;
    plan->find(&find);
    put.plan = (const char *)plan + plan->put_at;
    put.workspace = (char *)call->workspace + plan->rest_at;
    put.workspace_bytes = call->workspace_bytes - plan->rest_at;
    plan->put(&put);
}

static eddy_status plan_detour(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *grad = &call->views[0];
    detour_plan *of = plan->memory;
    size_t count = (size_t)eddy_kernel_view_count(grad);
    of->indices_at = rounded(count * (size_t)eddy_dtype_size(grad->dtype));
    of->rest_at = of->indices_at + rounded(count * sizeof(int64_t));
    detour d;
    lay_detour(&d, of, call);
    eddy_kernel_call find = part_of(call, &eddy_cpu_max_pool2d_with_indices, d.find);
    eddy_kernel_call put = part_of(call, &eddy_cpu_max_pool2d_backward, d.put);
    EDDY_ASSERT(!find.kernel->end && !put.kernel->end);
    eddy_kernel_plan finds, puts;
    finds.memory = of->words;
    eddy_status status = eddy_kernel_prepare(&find, &finds);
    if (status != EDDY_OK)
        return status;
    EDDY_ASSERT(finds.workspace_bytes == 0);
    of->put_at = sizeof(*of) + (finds.bytes + 7) / 8 * 8;
    puts.memory = (char *)of + of->put_at;
    status = eddy_kernel_prepare(&put, &puts);
    EDDY_ASSERT(of->put_at + puts.bytes <= EDDY_KERNEL_PLAN_BYTES);
    of->find = finds.run;
    of->put = puts.run;
    plan->run = run_detour;
    plan->bytes = of->put_at + puts.bytes;
    plan->workspace_bytes = of->rest_at + puts.workspace_bytes;
    return status;
}

static void pool_route_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* Counts each element of each window, and each element of dx. */
static int64_t pool_route_cost(const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    int64_t window = attributes->kernel_size.height * attributes->kernel_size.width;
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_kernel_view_count(&call->views[2]), 100) +
           eddy_cost_ps(eddy_kernel_view_count(&call->views[0]),
                        eddy_cost_ps(window, call->kernel->cost_element_ps));
}

/* views: grad, x, out as x */
static eddy_status pool_route_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = pool_route_cost(call);
    if (eddy_kernel_view_count(&call->views[2]) == 0) {
        plan->run = pool_route_run_nothing;
        return EDDY_OK;
    }
    plan->bytes = sizeof(route_plan);
    return plan_route(plan->memory, call) ? EDDY_OK : plan_detour(call, plan);
}

const eddy_kernel eddy_cpu_max_pool2d_backward_from_x = {.name = "max_pool2d_backward_from_x",
                                                         .run = pool_route_run,
                                                         .prepare = pool_route_prepare,
                                                         .cost_base_ps = 100000,
                                                         .cost_element_ps = 200};
