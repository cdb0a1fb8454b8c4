/* The gradient of max_pool2d from its operand: each window is walked once more, and what it was given goes to its largest element.
 * Where windows share elements, or elements have to be converted, their indices are made in the workspace, and go the way of
 * max_pool2d_backward. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
/* Bytes of x from which on it has left the second-level cache since it was made. */
#define FAR_BYTES (1 << 20)

typedef struct routing {
    eddy_image grad, x, dx;
    eddy_pool_axis height, width;
    eddy_pool_route_fn *block;
    bool by_channels;
    bool is_covered; /* every element is in a window */
    bool is_far;     /* lines of x are asked for before it is their turn */
} routing;

/* ---- windows that share nothing ---- */

static bool is_apart(const eddy_pool_axis *axis) {
    return axis->dilation == 1 && axis->stride >= axis->kernel;
}

static bool is_covered(const eddy_pool_axis *axis) {
    return axis->stride == axis->kernel && axis->out * axis->stride - axis->padding >= axis->in;
}

/* The first row that no window before that of output row oh has. */
static int64_t first_row(const eddy_pool_axis *axis, int64_t oh) {
    return oh == 0 ? 0 : oh == axis->out ? axis->in : eddy_min_i64(axis->in, oh * axis->stride - axis->padding);
}

/* Rows of dx from the window of output row oh to the next. */
static void clear_rows(const routing *r, int64_t n, int64_t c, int64_t oh) {
    static const _Alignas(8) char zero[8];
    const eddy_image *dx = &r->dx;
    int64_t bytes = eddy_dtype_size(dx->dtype);
    for (int64_t h = first_row(&r->height, oh); h < first_row(&r->height, oh + 1); h++) {
        if (!r->by_channels) {
            eddy_chunk_fill(eddy_image_at(dx, n, c, h, 0), dx->column_stride, bytes, zero, dx->width);
            continue;
        }
        for (int64_t w = 0; w < dx->width; w++)
            eddy_chunk_fill(eddy_image_at(dx, n, 0, h, w), dx->channel_stride, bytes, zero, dx->channels);
    }
}

/* Windows that are alike: those of rows oh .. oh + rows, columns ow .. ow + columns; of channel c, or of all. */
typedef struct block {
    int64_t oh, rows, ow, columns;
} block;

static void route_block(const routing *r, int64_t n, int64_t c, const block *b) {
    const eddy_image *x = &r->x, *dx = &r->dx, *grad = &r->grad;
    eddy_pool_window down = eddy_pool_window_of(&r->height, b->oh), across = eddy_pool_window_of(&r->width, b->ow);
    eddy_pool_run run = {.rows = down.count,
                         .columns = across.count,
                         .row_step = x->row_stride,
                         .column_step = x->column_stride,
                         .count = b->columns,
                         .step = r->width.stride * x->column_stride,
                         .out_step = grad->column_stride,
                         .places = b->rows,
                         .place_step = r->height.stride * x->row_stride,
                         .out_place_step = grad->row_stride};
    eddy_pool_steps to = {.row_step = dx->row_stride,
                          .column_step = dx->column_stride,
                          .step = r->width.stride * dx->column_stride,
                          .place_step = r->height.stride * dx->row_stride};
    if (r->by_channels) {
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
    r->block(eddy_image_at(dx, n, c, down.first, across.first), eddy_image_at(grad, n, c, b->oh, b->ow),
             eddy_image_at(x, n, c, down.first, across.first), &run, &to);
}

/* Output rows oh .. oh + rows, whose windows are alike but for those at the ends of rows. */
static void route_rows(const routing *r, int64_t n, int64_t c, int64_t oh, int64_t rows) {
    int64_t begin, end;
    eddy_pool_whole(&r->width, &begin, &end);
    for (int64_t ow = 0; ow < begin; ow++)
        route_block(r, n, c, &(block){oh, rows, ow, 1});
    if (begin < end)
        route_block(r, n, c, &(block){oh, rows, begin, end - begin});
    for (int64_t ow = end; ow < r->grad.width; ow++)
        route_block(r, n, c, &(block){oh, rows, ow, 1});
}

/* A line: a row of outputs of one channel, or of all. */
static void route_slice(void *context, int64_t begin, int64_t end) {
    const routing *r = context;
    int64_t channels = r->by_channels ? 1 : r->x.channels, rows = r->grad.height, whole, whole_end;
    eddy_pool_whole(&r->height, &whole, &whole_end);
    for (int64_t line = begin, some; line < end; line += some) {
        int64_t plane = line / rows, n = plane / channels, c = plane % channels, oh = line % rows;
        bool is_alike = !r->by_channels && whole <= oh && oh < whole_end;
        some = is_alike ? eddy_min_i64(whole_end - oh, end - line) : 1;
        if (r->is_far && line + 1 < end)
            eddy_image_prefetch_rows(&r->x, (line + 1) / rows, first_row(&r->height, (line + 1) % rows),
                                     r->height.kernel);
        for (int64_t i = 0; i < some && !r->is_covered; i++)
            clear_rows(r, n, c, oh + i);
        route_rows(r, n, c, oh, some);
    }
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void route(routing *r, eddy_kernel_team *team) {
    r->is_covered = is_covered(&r->height) && is_covered(&r->width);
    r->by_channels = distance(r->x.channel_stride) < distance(r->x.column_stride);
    const eddy_image *x = &r->x;
    r->is_far =
        r->by_channels && x->images * x->channels * x->height * x->width * eddy_dtype_size(x->dtype) >= FAR_BYTES;
    int64_t lines = r->grad.images * r->grad.height * (r->by_channels ? 1 : r->grad.channels);
    int64_t line = r->width.in * r->height.stride * (r->by_channels ? r->x.channels : 1);
    int64_t grain = eddy_max_i64(1, SLICE_ELEMENTS / line);
    if (lines <= grain)
        route_slice(r, 0, lines);
    else
        team->parallel_for(team, lines, grain, route_slice, r);
}

/* ---- others, by their indices ---- */

/* Where the workspace has what: values and indices of the windows, then what max_pool2d_backward needs. */
typedef struct detour {
    eddy_op_view values, indices;
    int64_t strides[EDDY_RANK_MAX];
    size_t indices_at, rest_at;
} detour;

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Row-major, in the shape of grad. */
static void lay_detour(detour *d, const eddy_kernel_call *call) {
    const eddy_op_view *grad = &call->views[0];
    size_t count = (size_t)eddy_view_count(grad);
    d->indices_at = rounded(count * (size_t)eddy_dtype_size(grad->dtype));
    d->rest_at = d->indices_at + rounded(count * sizeof(int64_t));
    for (int64_t i = grad->rank - 1, stride = 1; i >= 0; stride *= grad->shape[i--])
        d->strides[i] = stride;
    char *workspace = call->workspace;
    d->values = d->indices = *grad;
    d->values.strides = d->indices.strides = d->strides;
    d->values.data = workspace;
    d->indices.data = workspace ? workspace + d->indices_at : NULL;
    d->indices.dtype = EDDY_I64;
}

static void run_detour(const eddy_kernel_call *call) {
    detour d;
    lay_detour(&d, call);
    const eddy_op_view find[] = {call->views[1], d.values, d.indices},
                       put[] = {call->views[0], d.indices, call->views[2]};
    eddy_kernel_call part = *call;
    part.kernel = &eddy_cpu_max_pool2d_with_indices;
    part.views = find;
    part.kernel->run(&part);
    part.kernel = &eddy_cpu_max_pool2d_backward;
    part.views = put;
    part.workspace = (char *)call->workspace + d.rest_at;
    part.workspace_bytes = call->workspace_bytes - d.rest_at;
    part.kernel->run(&part);
}

/* Whether the windows go the straight way. */
static bool make_routing(routing *r, const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    *r = (routing){.grad = eddy_image_of(&call->views[0]),
                   .x = eddy_image_of(&call->views[1]),
                   .dx = eddy_image_of(&call->views[2])};
    r->height = eddy_pool_axis_height(attributes, r->x.height, r->grad.height);
    r->width = eddy_pool_axis_width(attributes, r->x.width, r->grad.width);
    const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks();
    if (r->x.dtype == EDDY_F64)
        r->block = blocks->f64.max_route;
    else if (r->x.dtype == EDDY_F32 && r->x.height * r->x.width < INT32_MAX)
        r->block = blocks->f32.max_route;
    return r->block && is_apart(&r->height) && is_apart(&r->width);
}

/* views: grad, x, out as x */
static void max_pool2d_backward_from_x_run(const eddy_kernel_call *call) {
    routing r;
    if (eddy_view_count(&call->views[2]) == 0)
        return;
    if (make_routing(&r, call))
        route(&r, call->team);
    else
        run_detour(call);
}

static size_t max_pool2d_backward_from_x_workspace(const eddy_kernel_call *call) {
    routing r;
    if (make_routing(&r, call))
        return 0;
    detour d;
    lay_detour(&d, call);
    const eddy_op_view put[] = {call->views[0], d.indices, call->views[2]};
    eddy_kernel_call part = *call;
    part.views = put;
    return d.rest_at + eddy_cpu_max_pool2d_backward.workspace(&part);
}

/* Each element of each window, and each of dx. */
static int64_t pool_route_cost(const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    int64_t window = attributes->kernel_size.height * attributes->kernel_size.width;
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(&call->views[2]), 100) +
           eddy_cost_ps(eddy_view_count(&call->views[0]), eddy_cost_ps(window, call->kernel->cost_element_ps));
}

const eddy_kernel eddy_cpu_max_pool2d_backward_from_x = {.name = "max_pool2d_backward_from_x",
                                                         .run = max_pool2d_backward_from_x_run,
                                                         .workspace = max_pool2d_backward_from_x_workspace,
                                                         .cost_base_ps = 100000,
                                                         .cost_element_ps = 200,
                                                         .cost = pool_route_cost};
