/* Gradients of average pools. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool_plan.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 32768
#define CHUNK 256

typedef union chunk {
    _Alignas(64) float f32[CHUNK];
    double f64[CHUNK];
} chunk;

/* Each element of dx gathers from the windows that hold it, in row-major order of grad: no place is written twice. */
typedef struct spread {
    const eddy_kernel_call *call;
    eddy_image grad, dx;
    eddy_pool_axis height, width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    bool by_channels;
    eddy_dtype compute;
} spread;

static void load_grad(const spread *s, chunk *to, const char *from, int64_t stride, int64_t count) {
    eddy_chunk_load(s->compute, to, s->grad.dtype, from, stride, count);
}

static void divide(const spread *s, chunk *values, int64_t count, double divisor) {
    for (int64_t i = 0; i < count; i++)
        if (s->compute == EDDY_F64)
            values->f64[i] /= divisor;
        else
            values->f32[i] /= (float)divisor;
}

static void clear(chunk *values) {
    for (int i = 0; i < CHUNK; i++)
        values->f64[i] = 0;
}

/* Channels c .. c + count of element h, w. */
static void spread_channels(const spread *s, int64_t n, int64_t c, int64_t h, int64_t w, int64_t count) {
    chunk sum, term;
    int64_t top, bottom, left, right;
    clear(&sum);
    eddy_pool_covering(&s->height, h, &top, &bottom);
    eddy_pool_covering(&s->width, w, &left, &right);
    for (int64_t oh = top; oh < bottom; oh++)
        for (int64_t ow = left; ow < right; ow++) {
            load_grad(s, &term, eddy_image_at(&s->grad, n, c, oh, ow), s->grad.channel_stride, count);
            divide(s, &term, count, eddy_pool_divisor(s->attributes, &s->height, &s->width, oh, ow));
            for (int64_t i = 0; i < count; i++)
                if (s->compute == EDDY_F64)
                    sum.f64[i] += term.f64[i];
                else
                    sum.f32[i] += term.f32[i];
        }
    eddy_chunk_store(s->dx.dtype, eddy_image_at(&s->dx, n, c, h, w), s->dx.channel_stride, s->compute, &sum, count);
}

/* Adds the term of output ow to those of columns w .. w + count that its window holds. */
static void add_to_columns(const spread *s, chunk *sum, const chunk *terms, int64_t term, int64_t ow, int64_t w,
                           int64_t count) {
    eddy_pool_window window = eddy_pool_window_of(&s->width, ow);
    int64_t begin = eddy_max_i64(window.first - w, 0), end = eddy_min_i64(window.first + window.count - w, count);
    for (int64_t i = begin; i < end; i++)
        if (s->compute == EDDY_F64)
            sum->f64[i] += terms->f64[term];
        else
            sum->f32[i] += terms->f32[term];
}

/* Columns w .. w + count of row h. */
static void spread_columns(const spread *s, int64_t n, int64_t c, int64_t h, int64_t w, int64_t count) {
    chunk sum, terms;
    int64_t top, bottom, left, right, unused;
    clear(&sum);
    eddy_pool_covering(&s->height, h, &top, &bottom);
    eddy_pool_covering(&s->width, w, &left, &unused);
    eddy_pool_covering(&s->width, w + count - 1, &unused, &right);
    for (int64_t oh = top; oh < bottom; oh++)
        for (int64_t ow = left; ow < right; ow += CHUNK) {
            int64_t some = eddy_min_i64(CHUNK, right - ow);
            load_grad(s, &terms, eddy_image_at(&s->grad, n, c, oh, ow), s->grad.column_stride, some);
            for (int64_t i = 0; i < some; i++) {
                double divisor = eddy_pool_divisor(s->attributes, &s->height, &s->width, oh, ow + i);
                if (s->compute == EDDY_F64)
                    terms.f64[i] /= divisor;
                else
                    terms.f32[i] /= (float)divisor;
                add_to_columns(s, &sum, &terms, i, ow + i, w, count);
            }
        }
    eddy_chunk_store(s->dx.dtype, eddy_image_at(&s->dx, n, c, h, w), s->dx.column_stride, s->compute, &sum, count);
}

/* A line: a row of one channel, or of all. */
static void spread_slice(void *context, int64_t begin, int64_t end) {
    const spread *s = context;
    int64_t channels = s->by_channels ? 1 : s->dx.channels;
    for (int64_t line = begin; line < end; line++) {
        int64_t h = line % s->dx.height, plane = line / s->dx.height, n = plane / channels, c = plane % channels;
        if (!s->by_channels) {
            for (int64_t w = 0; w < s->dx.width; w += CHUNK)
                spread_columns(s, n, c, h, w, eddy_min_i64(CHUNK, s->dx.width - w));
            continue;
        }
        for (int64_t w = 0; w < s->dx.width; w++)
            for (c = 0; c < s->dx.channels; c += CHUNK)
                spread_channels(s, n, c, h, w, eddy_min_i64(CHUNK, s->dx.channels - c));
    }
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void spread_run(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    spread s = {.call = call,
                .grad = eddy_image_of(&call->views[0]),
                .dx = eddy_image_of(&call->views[1]),
                .attributes = attributes,
                .compute = eddy_chunk_compute_dtype(call->views[1].dtype)};
    if (eddy_view_count(&call->views[1]) == 0)
        return;
    s.height = eddy_pool_axis_height(attributes, s.dx.height, s.grad.height);
    s.width = eddy_pool_axis_width(attributes, s.dx.width, s.grad.width);
    s.by_channels = distance(s.dx.channel_stride) < distance(s.dx.column_stride);
    int64_t lines = s.dx.images * s.dx.height * (s.by_channels ? 1 : s.dx.channels);
    int64_t grain = eddy_max_i64(1, SLICE_ELEMENTS / (s.dx.width * (s.by_channels ? s.dx.channels : 1)));
    if (lines <= grain)
        spread_slice(&s, 0, lines);
    else
        call->team->parallel_for(call->team, lines, grain, spread_slice, &s);
}

static void avg_pool2d_backward_run(const eddy_kernel_call *call) {
    spread_run(call, call->attributes);
}

static void adaptive_avg_pool2d_backward_run(const eddy_kernel_call *call) {
    spread_run(call, NULL);
}

/* Each element of each window. */
static int64_t avg_pool2d_backward_cost(const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    int64_t window = attributes->kernel_size.height * attributes->kernel_size.width;
    return call->kernel->cost_base_ps +
           eddy_cost_ps(eddy_view_count(&call->views[0]), eddy_cost_ps(window, call->kernel->cost_element_ps));
}

const eddy_kernel eddy_cpu_avg_pool2d_backward = {.name = "avg_pool2d_backward",
                                                  .run = avg_pool2d_backward_run,
                                                  .cost_base_ps = 100000,
                                                  .cost_element_ps = 1000,
                                                  .cost = avg_pool2d_backward_cost};
const eddy_kernel eddy_cpu_adaptive_avg_pool2d_backward = {.name = "adaptive_avg_pool2d_backward",
                                                           .run = adaptive_avg_pool2d_backward_run,
                                                           .cost_base_ps = 100000,
                                                           .cost_element_ps = 2000};
