/* Gradients of average pools: each element of grad, divided by its window's divisor, is added to the places of its window.
 * Windows are processed in row-major order, so that each place adds its terms in that order. Each place belongs to one
 * task. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_average_block.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
/* Columns of a row, or channels of a place, processed at a time. */
#define TILE 256
/* Elements that are accumulated in a buffer, if dx has another dtype or its rows are not contiguous. */
#define STAGE 4096
/* Windows that are wider, or farther apart, are not widened but added one by one. */
#define WINDOW_MAX 32

/* The plan of a call. */
typedef struct spread_plan {
    eddy_pool_axis height, width;
    bool by_channels;
    bool is_direct; /* sums are accumulated in dx itself */
    eddy_dtype compute;
    const eddy_pool_average_ops *ops;
    int64_t rows_begin, rows_end, columns_begin, columns_end; /* outputs whose windows are whole */
    /* Widened windows of a row: whole strides of a window, and columns beyond. Both 0: windows are not widened. */
    int64_t strides, rest;
    int64_t lines, grain;
} spread_plan;

typedef struct spread {
    const spread_plan *plan;
    eddy_image grad, dx;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
} spread;

/* Memory of f32 or f64 where sums are accumulated: rows h .., columns or places w .. */
typedef struct region {
    char *data;
    int64_t row_step, column_step;
    int64_t h, rows, w, columns;
} region;

static char *at(const spread *s, const region *to, int64_t h, int64_t w) {
    return eddy_chunk_at(to->data, s->plan->compute,
                         (h - to->h) * to->row_step + (w - to->w) * to->column_step);
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* The part *from .. *to - 1 of the axis' elements begin .. begin + count - 1 that lies in the window of output o. */
static void clip(const eddy_pool_axis *axis, int64_t o, int64_t begin, int64_t count, int64_t *from,
                 int64_t *to) {
    eddy_pool_window window = eddy_pool_window_of(axis, o);
    *from = eddy_max_i64(window.first, begin);
    *to = eddy_min_i64(window.first + window.count, begin + count);
}

/* The part of the windows of output row oh, from row a on, that lies in a region; with all of the region's columns. */
typedef struct band {
    int64_t n, c, oh;
    int64_t a, old_rows, new_rows;
} band;

/* ---- terms ---- */

/* Elements of a lane: as many windows as a tile may touch, each as wide as its stride. */
#define LANE (TILE + 3 * WINDOW_MAX)

typedef union lane {
    _Alignas(64) float f32[LANE];
    double f64[LANE];
} lane;

typedef struct scratch {
    lane terms, wide, part;
    lane divisors; /* of outputs first .. first + count - 1 of a row */
    int64_t first, count;
    bool is_whole; /* this row's windows are whole: other such rows have the same divisors */
} scratch;

static double divisor_of(const spread *s, int64_t oh, int64_t ow) {
    return eddy_pool_divisor(s->attributes, &s->plan->height, &s->plan->width, oh, ow);
}

static void set_divisors(const spread *s, scratch *t, int64_t oh, int64_t first, int64_t count) {
    bool is_whole = s->plan->rows_begin <= oh && oh < s->plan->rows_end;
    if (t->is_whole && is_whole && t->first == first && t->count == count)
        return;
    double alike = s->plan->columns_begin < s->plan->columns_end
                       ? divisor_of(s, oh, s->plan->columns_begin)
                       : 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_like = s->plan->columns_begin <= first + i && first + i < s->plan->columns_end;
        double divisor = is_like ? alike : divisor_of(s, oh, first + i);
        if (s->plan->compute == EDDY_F64)
            t->divisors.f64[i] = divisor;
        else
            t->divisors.f32[i] = (float)divisor;
    }
    t->first = first;
    t->count = count;
    t->is_whole = is_whole;
}

/* Elements of grad in the compute type: in place, or converted to the buffer. */
static const void *elements(const spread *s, const char *from, int64_t stride, int64_t count,
                            void *buffer) {
    if (s->grad.dtype == s->plan->compute && (stride == 1 || count == 1))
        return from;
    eddy_chunk_load(s->plan->compute, buffer, s->grad.dtype, from, stride, count);
    return buffer;
}

/* Loads outputs ow .. ow + count - 1 of the band, each divided by its divisor. */
static void load_terms(const spread *s, scratch *t, void *terms, const band *b, int64_t ow,
                       int64_t count) {
    set_divisors(s, t, b->oh, ow, count);
    const void *from = elements(s, eddy_image_at(&s->grad, b->n, b->c, b->oh, ow),
                                s->grad.column_stride, count, terms);
    s->plan->ops->divide(terms, from, &t->divisors, count);
}

/* ---- rows of one channel ---- */

static void add_windows(const spread *s, scratch *t, const region *to, const band *b) {
    int64_t stride = s->plan->width.stride, from = to->w + s->plan->width.padding;
    int64_t first = from / stride - s->plan->strides - (s->plan->rest > 0) + 1;
    int64_t count = (from + to->columns - 1) / stride - first + 1, origin = from - first * stride;
    /* Windows beyond the edges add 0, which changes no sum that began with 0. */
    int64_t begin = eddy_max_i64(first, 0),
            end = eddy_max_i64(eddy_min_i64(first + count, s->plan->width.out), begin);
    char *terms = (char *)&t->terms;
    if (t->count == 0)
        memset(terms, 0, sizeof(t->terms));
    load_terms(s, t, eddy_chunk_at(terms, s->plan->compute, begin - first), b, begin, end - begin);
    void *wide = stride == 1 ? &t->terms : &t->wide;
    if (stride > 1)
        s->plan->ops->widen(wide, &t->part, terms, count, stride, s->plan->strides, s->plan->rest);
    const eddy_pool_shadow shadow = {at(s, to, b->a, to->w), to->row_step, b->old_rows,
                                     b->new_rows};
    s->plan->ops->windows(&shadow, eddy_chunk_at(wide, s->plan->compute, origin),
                          s->plan->rest > 0 ? eddy_chunk_at(&t->part, s->plan->compute, origin)
                                            : NULL,
                          s->plan->strides, stride, to->columns);
}

static void clear_row(const spread *s, const region *to, int64_t h, int64_t elements) {
    memset(at(s, to, h, to->w), 0, (size_t)(elements * eddy_dtype_size(s->plan->compute)));
}

/* Adds one window after the other. */
static void add_spans(const spread *s, scratch *t, const region *to, const band *b) {
    int64_t left, right, unused, rows = b->old_rows + b->new_rows;
    eddy_pool_covering(&s->plan->width, to->w, &left, &unused);
    eddy_pool_covering(&s->plan->width, to->w + to->columns - 1, &unused, &right);
    for (int64_t h = b->a + b->old_rows; h < b->a + rows; h++)
        clear_row(s, to, h, to->columns);
    for (int64_t ow = left, some; ow < right; ow += some) {
        some = eddy_min_i64(TILE, right - ow);
        load_terms(s, t, &t->terms, b, ow, some);
        for (int64_t i = 0; i < some; i++) {
            int64_t begin, end;
            clip(&s->plan->width, ow + i, to->w, to->columns, &begin, &end);
            const eddy_pool_shadow shadow = {at(s, to, b->a, begin), to->row_step, rows, 0};
            if (begin < end)
                s->plan->ops->span(&shadow, eddy_chunk_at(&t->terms, s->plan->compute, i),
                                   end - begin);
        }
    }
}

/* ---- places with their channels ---- */

static void clear_places(const spread *s, const region *to, const band *b, int64_t begin,
                         int64_t end, int64_t count) {
    for (int64_t w = begin; w < end; w++) {
        region place = *to;
        place.data = at(s, to, to->h, w);
        for (int64_t h = b->a + b->old_rows; h < b->a + b->old_rows + b->new_rows; h++)
            clear_row(s, &place, h, count);
    }
}

/* Adds `count` channels, from the band's channel on. */
static void add_channels(const spread *s, scratch *t, const region *to, const band *b,
                         int64_t count) {
    int64_t left, right, unused, next = to->w;
    eddy_pool_covering(&s->plan->width, to->w, &left, &unused);
    eddy_pool_covering(&s->plan->width, to->w + to->columns - 1, &unused, &right);
    double alike = s->plan->columns_begin < s->plan->columns_end
                       ? divisor_of(s, b->oh, s->plan->columns_begin)
                       : 0;
    for (int64_t ow = left; ow < right; ow++) {
        int64_t begin, end;
        clip(&s->plan->width, ow, to->w, to->columns, &begin, &end);
        if (begin >= end)
            continue;
        clear_places(s, to, b, next, begin, count);
        bool is_like = s->plan->columns_begin <= ow && ow < s->plan->columns_end;
        const void *from = elements(s, eddy_image_at(&s->grad, b->n, b->c, b->oh, ow),
                                    s->grad.channel_stride, count, &t->terms);
        const eddy_pool_shadow shadow = {at(s, to, b->a, begin), to->row_step, b->old_rows,
                                         b->new_rows};
        s->plan->ops->channels(&shadow, to->column_step, end - begin,
                               end - eddy_min_i64(eddy_max_i64(begin, next), end), from,
                               is_like ? alike : divisor_of(s, b->oh, ow), count);
        next = eddy_max_i64(next, end);
    }
    clear_places(s, to, b, next, to->w + to->columns, count);
}

/* ---- tasks ---- */

/* Computes channel c, or channels c .. c + count - 1, of a region. */
static void add_region(const spread *s, const region *to, int64_t n, int64_t c, int64_t count) {
    scratch t;
    int64_t top, bottom, unused, next = to->h;
    t.count = 0;
    t.is_whole = false;
    eddy_pool_covering(&s->plan->height, to->h, &top, &unused);
    eddy_pool_covering(&s->plan->height, to->h + to->rows - 1, &unused, &bottom);
    for (int64_t oh = top; oh <= bottom; oh++) {
        int64_t begin = to->h + to->rows, end = begin;
        if (oh < bottom)
            clip(&s->plan->height, oh, to->h, to->rows, &begin, &end);
        /* Rows before this window that no window covers. */
        const band gap = {.a = next, .new_rows = begin - next};
        if (gap.new_rows > 0 && s->plan->by_channels)
            clear_places(s, to, &gap, to->w, to->w + to->columns, count);
        for (int64_t h = next; h < begin && !s->plan->by_channels; h++)
            clear_row(s, to, h, to->columns);
        if (begin >= end)
            continue;
        next = eddy_max_i64(next, begin);
        const band b = {
            n, c, oh, begin, eddy_min_i64(next, end) - begin, end - eddy_min_i64(next, end)};
        if (s->plan->by_channels)
            add_channels(s, &t, to, &b, count);
        else
            (s->plan->strides + s->plan->rest > 0 ? add_windows : add_spans)(s, &t, to, &b);
        next = eddy_max_i64(next, end);
    }
}

/* Computes rows h .. h + rows - 1, a tile of columns or of channels at a time. */
static void spread_rows(const spread *s, int64_t n, int64_t c, int64_t h, int64_t rows) {
    const eddy_image *dx = &s->dx;
    _Alignas(64) double stage[STAGE];
    int64_t length = s->plan->by_channels ? dx->channels : dx->width;
    for (int64_t first = 0, count; first < length; first += count) {
        count = eddy_min_i64(TILE, length - first);
        int64_t from = s->plan->by_channels ? first : c, w = s->plan->by_channels ? 0 : first;
        int64_t columns = s->plan->by_channels ? dx->width : count;
        region to = {eddy_image_at(dx, n, from, h, w),
                     dx->row_stride,
                     dx->column_stride,
                     h,
                     rows,
                     w,
                     columns};
        if (s->plan->is_direct) {
            add_region(s, &to, n, from, count);
            continue;
        }
        to.data = (char *)stage;
        to.column_step = s->plan->by_channels ? count : 1;
        to.columns = s->plan->by_channels ? eddy_min_i64(columns, STAGE / count) : count;
        to.row_step = to.columns * to.column_step;
        for (; to.h < h + rows; to.h += to.rows) {
            to.rows = eddy_min_i64(STAGE / to.row_step, h + rows - to.h);
            for (to.w = w; to.w < w + columns; to.w += to.columns) {
                to.columns = eddy_min_i64(to.row_step / to.column_step, w + columns - to.w);
                add_region(s, &to, n, from, count);
                for (int64_t y = to.h; y < to.h + to.rows; y++)
                    for (int64_t x = to.w; x < to.w + (s->plan->by_channels ? to.columns : 1); x++)
                        eddy_chunk_store(dx->dtype, eddy_image_at(dx, n, from, y, x),
                                         s->plan->by_channels ? dx->channel_stride
                                                              : dx->column_stride,
                                         s->plan->compute, at(s, &to, y, x), count);
            }
        }
    }
}

/* A line is a row of one channel, or of all channels. */
static void spread_slice(void *context, int64_t begin, int64_t end) {
    const spread *s = context;
    int64_t channels = s->plan->by_channels ? 1 : s->dx.channels;
    for (int64_t line = begin, rows; line < end; line += rows) {
        int64_t h = line % s->dx.height, plane = line / s->dx.height;
        rows = eddy_min_i64(s->dx.height - h, end - line);
        spread_rows(s, plane / channels, plane % channels, h, rows);
    }
}

static void see(spread *s, const eddy_kernel_call *call, const spread_plan *plan,
                const eddy_attributes_pool *attributes) {
    s->plan = plan;
    s->attributes = attributes;
    s->grad = eddy_image_of(&call->views[0]);
    s->dx = eddy_image_of(&call->views[1]);
}

static void run_slices(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    const spread_plan *plan = call->plan;
    spread s;
    see(&s, call, plan, attributes);
    if (plan->lines <= plan->grain)
        spread_slice(&s, 0, plan->lines);
    else
        call->team->parallel_for(call->team, plan->lines, plan->grain, spread_slice, &s);
}

static void average_backward_run(const eddy_kernel_call *call) {
    run_slices(call, call->attributes);
}

static void average_backward_run_adaptive(const eddy_kernel_call *call) {
    run_slices(call, NULL);
}

static void average_backward_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- planning ---- */

static void plan_windows(spread_plan *plan) {
    const eddy_pool_axis *width = &plan->width;
    eddy_pool_whole(&plan->height, &plan->rows_begin, &plan->rows_end);
    eddy_pool_whole(width, &plan->columns_begin, &plan->columns_end);
    bool is_widened =
        !width->is_adaptive && width->kernel <= WINDOW_MAX && width->stride <= WINDOW_MAX;
    plan->strides = is_widened ? width->kernel / width->stride : 0;
    plan->rest = is_widened ? width->kernel % width->stride : 0;
}

static void cut_lines(const eddy_image *dx, spread_plan *plan) {
    plan->by_channels = distance(dx->channel_stride) < distance(dx->column_stride);
    plan->is_direct = dx->dtype == plan->compute &&
                      (plan->by_channels ? dx->channel_stride : dx->column_stride) == 1;
    plan->lines = dx->images * dx->height * (plan->by_channels ? 1 : dx->channels);
    plan->grain =
        eddy_max_i64(1, SLICE_ELEMENTS / (dx->width * (plan->by_channels ? dx->channels : 1)));
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                           const eddy_attributes_pool *attributes) {
    spread_plan *of = plan->memory;
    spread s;
    if (eddy_kernel_view_count(&call->views[1]) == 0) {
        plan->run = average_backward_run_nothing;
        return EDDY_OK;
    }
    see(&s, call, of, attributes);
    of->compute = eddy_chunk_compute_dtype(s.dx.dtype);
    of->ops = of->compute == EDDY_F64 ? eddy_cpu_pool_average_f64() : eddy_cpu_pool_average_f32();
    of->height = eddy_pool_axis_height(attributes, s.dx.height, s.grad.height);
    of->width = eddy_pool_axis_width(attributes, s.dx.width, s.grad.width);
    plan_windows(of);
    cut_lines(&s.dx, of);
    plan->bytes = sizeof(*of);
    return EDDY_OK;
}

/* Counts each element of each window. */
static eddy_status average_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_pool *attributes = call->attributes;
    int64_t window = attributes->kernel_size.height * attributes->kernel_size.width;
    plan->cost_ps = call->kernel->cost_base_ps +
                    eddy_cost_ps(eddy_kernel_view_count(&call->views[0]),
                                 eddy_cost_ps(window, call->kernel->cost_element_ps));
    return prepare(call, plan, attributes);
}

static eddy_status average_backward_prepare_adaptive(const eddy_kernel_call *call,
                                                     eddy_kernel_plan *plan) {
    int64_t grad = eddy_kernel_view_count(&call->views[0]),
            dx = eddy_kernel_view_count(&call->views[1]);
    int64_t bytes =
        eddy_cost_bytes(grad, call->views[0].dtype) + eddy_cost_bytes(dx, call->views[1].dtype);
    plan->cost_ps = eddy_cost_flat_ps(call->kernel, eddy_max_i64(grad, dx), bytes);
    return prepare(call, plan, NULL);
}

const eddy_kernel eddy_cpu_avg_pool2d_backward = {.name = "avg_pool2d_backward",
                                                  .run = average_backward_run,
                                                  .prepare = average_backward_prepare,
                                                  .cost_base_ps = 100000,
                                                  .cost_element_ps = 300};
const eddy_kernel eddy_cpu_adaptive_avg_pool2d_backward = {.name = "adaptive_avg_pool2d_backward",
                                                           .run = average_backward_run_adaptive,
                                                           .prepare =
                                                               average_backward_prepare_adaptive,
                                                           .cost_base_ps = 100000,
                                                           .cost_element_ps = 500};
