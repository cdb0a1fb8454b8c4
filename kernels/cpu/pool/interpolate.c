/* interpolate: each element of the output is an element of the image, or a mix of four. The gradient of an element gathers
 * from the outputs that it contributed to. */
#include <base/dtype.h>
#include <eddy/choice.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/walk.h>
#include <kernels/interpolate.h>
#include <string.h>

#define SLICE_ELEMENTS 32768
#define CHUNK 256

typedef union chunk {
    _Alignas(64) float f32[CHUNK];
    double f64[CHUNK];
} chunk;

/* The plan of a call. */
typedef struct interpolate_plan {
    bool is_bilinear;
    bool is_doubled; /* each element of a row is written twice */
    bool by_channels;
    eddy_dtype compute;
    int64_t line_bytes; /* of the target, if its lines have no gaps, else 0 */
    int64_t lines, grain;
} interpolate_plan;

typedef struct interpolation {
    const interpolate_plan *plan;
    eddy_image small,
        large; /* image and output; in the gradient, what is written and what is read */
    eddy_tap *rows, *columns; /* for each output row and column, in the workspace */
} interpolation;

static void fill_taps(const eddy_attributes_interpolate *a, int64_t in, int64_t out,
                      eddy_tap *taps) {
    const eddy_tap_axis axis = {in, out, a->scale, a->mode == EDDY_MODE_BILINEAR,
                                a->aligns_corners};
    for (int64_t o = 0; o < out; o++)
        taps[o] = eddy_tap_of(&axis, o);
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static void see(interpolation *p, const eddy_op_view *small, const eddy_op_view *large) {
    p->small = eddy_image_of(small);
    p->large = eddy_image_of(large);
}

/* There are as many taps as rows and columns, so the plan does not hold them. */
static void begin(interpolation *p, const eddy_kernel_call *call) {
    const eddy_attributes_interpolate *attributes = call->attributes;
    p->plan = call->plan;
    p->rows = call->workspace;
    p->columns = p->rows + p->large.height;
    fill_taps(attributes, p->small.height, p->large.height, p->rows);
    fill_taps(attributes, p->small.width, p->large.width, p->columns);
}

static size_t taps_bytes(const eddy_image *large) {
    return ((size_t)(large->height + large->width) * sizeof(eddy_tap) + 63) / 64 * 64;
}

static int64_t bytes_of_line(const eddy_image *to, bool by_channels) {
    int64_t count = to->width * (by_channels ? to->channels : 1);
    bool is_dense = by_channels ? to->channel_stride == 1 &&
                                      (to->width == 1 || to->column_stride == to->channels)
                                : to->width == 1 || to->column_stride == 1;
    return is_dense ? count * (int64_t)eddy_dtype_bytes(to->dtype) : 0;
}

/* Lines are rows of the target, of one channel or of all channels. */
static void cut_lines(const eddy_image *to, interpolate_plan *plan) {
    plan->by_channels = distance(to->channel_stride) < distance(to->column_stride);
    plan->line_bytes = bytes_of_line(to, plan->by_channels);
    int64_t line = eddy_max_i64(1, to->width * (plan->by_channels ? to->channels : 1));
    plan->lines = to->images * to->height * (plan->by_channels ? 1 : to->channels);
    plan->grain = eddy_max_i64(1, SLICE_ELEMENTS / line);
}

static void run_lines(interpolation *p, eddy_kernel_team *team,
                      void (*slice)(void *, int64_t, int64_t)) {
    int64_t lines = p->plan->lines, grain = p->plan->grain;
    if (lines <= grain)
        slice(p, 0, lines);
    else
        team->parallel_for(team, lines, grain, slice, p);
}

static void interpolate_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- forward ---- */

#define DOUBLE(type)                                                                               \
    static void double_##type(type *restrict to, const type *restrict from, int64_t count) {       \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[2 * i] = to[2 * i + 1] = from[i];                                                   \
    }

DOUBLE(uint8_t)
DOUBLE(uint16_t)
DOUBLE(uint32_t)
DOUBLE(uint64_t)

static void copy_columns(const interpolation *p, int64_t n, int64_t c, int64_t oh) {
    const eddy_image *x = &p->small, *out = &p->large;
    const eddy_tap *columns = p->columns;
    const char *from = eddy_image_at(x, n, c, p->rows[oh].low, 0);
    char *to = eddy_image_at(out, n, c, oh, 0);
    int64_t step = x->column_stride, out_step = out->column_stride;
    bool is_doubled = p->plan->is_doubled && step == 1 && out_step == 1;
#define COPY(type)                                                                                 \
    if (is_doubled)                                                                                \
        double_##type((type *)(void *)to, (const type *)(const void *)from, x->width);             \
    else                                                                                           \
        for (int64_t w = 0; w < out->width; w++)                                                   \
            ((type *)(void *)to)[w * out_step] =                                                   \
                ((const type *)(const void *)from)[columns[w].low * step];
    switch (eddy_dtype_bytes(x->dtype)) {
    case 1:
        COPY(uint8_t) break;
    case 2:
        COPY(uint16_t) break;
    case 4:
        COPY(uint32_t) break;
    default:
        COPY(uint64_t)
    }
#undef COPY
}

static void copy_channels(const interpolation *p, int64_t n, int64_t oh) {
    const eddy_image *x = &p->small, *out = &p->large;
    for (int64_t w = 0; w < out->width; w++)
        eddy_chunk_copy(out->dtype, eddy_image_at(out, n, 0, oh, w), out->channel_stride, x->dtype,
                        eddy_image_at(x, n, 0, p->rows[oh].low, p->columns[w].low),
                        x->channel_stride, x->channels);
}

/* Mixes the four neighbours of `count` outputs, along the row first. */
#define MIX(real, field)                                                                           \
    for (int64_t i = 0; i < count; i++) {                                                          \
        real right = (real)shares[i], down = (real)row->share;                                     \
        real top = corners[0].field[i] * (1 - right) + corners[1].field[i] * right;                \
        real bottom = corners[2].field[i] * (1 - right) + corners[3].field[i] * right;             \
        corners[0].field[i] = top * (1 - down) + bottom * down;                                    \
    }

static void mix(const interpolation *p, chunk *corners, const eddy_tap *row, const double *shares,
                int64_t count) {
    if (p->plan->compute == EDDY_F64)
        MIX(double, f64)
    else
        MIX(float, f32)
}

static void load_element(const interpolation *p, chunk *to, int64_t i, const eddy_image *image,
                         const void *from) {
    if (p->plan->compute == EDDY_F64)
        to->f64[i] = *(const double *)from;
    else if (image->dtype == EDDY_F32)
        to->f32[i] = *(const float *)from;
    else
        to->f32[i] = (float)eddy_dtype_load_f64(image->dtype, from);
}

static void mix_columns(const interpolation *p, int64_t n, int64_t c, int64_t oh) {
    const eddy_image *x = &p->small, *out = &p->large;
    const eddy_tap *row = &p->rows[oh];
    const char *top = eddy_image_at(x, n, c, row->low, 0),
               *bottom = eddy_image_at(x, n, c, row->high, 0);
    chunk corners[4];
    double shares[CHUNK];
    for (int64_t w = 0; w < out->width; w += CHUNK) {
        int64_t count = eddy_min_i64(CHUNK, out->width - w);
        for (int64_t i = 0; i < count; i++) {
            const eddy_tap *column = &p->columns[w + i];
            int64_t left = column->low * x->column_stride, right = column->high * x->column_stride;
            load_element(p, &corners[0], i, x, eddy_chunk_at(top, x->dtype, left));
            load_element(p, &corners[1], i, x, eddy_chunk_at(top, x->dtype, right));
            load_element(p, &corners[2], i, x, eddy_chunk_at(bottom, x->dtype, left));
            load_element(p, &corners[3], i, x, eddy_chunk_at(bottom, x->dtype, right));
            shares[i] = column->share;
        }
        mix(p, corners, row, shares, count);
        eddy_chunk_store(out->dtype, eddy_image_at(out, n, c, oh, w), out->column_stride,
                         p->plan->compute, &corners[0], count);
    }
}

static void mix_channels(const interpolation *p, int64_t n, int64_t oh) {
    const eddy_image *x = &p->small, *out = &p->large;
    const eddy_tap *row = &p->rows[oh];
    chunk corners[4];
    double shares[CHUNK];
    for (int64_t w = 0; w < out->width; w++) {
        const eddy_tap *column = &p->columns[w];
        for (int i = 0; i < CHUNK; i++)
            shares[i] = column->share;
        for (int64_t c = 0; c < x->channels; c += CHUNK) {
            int64_t count = eddy_min_i64(CHUNK, x->channels - c);
            for (int k = 0; k < 4; k++)
                eddy_chunk_load(p->plan->compute, &corners[k], x->dtype,
                                eddy_image_at(x, n, c, k < 2 ? row->low : row->high,
                                              k % 2 ? column->high : column->low),
                                x->channel_stride, count);
            mix(p, corners, row, shares, count);
            eddy_chunk_store(out->dtype, eddy_image_at(out, n, c, oh, w), out->channel_stride,
                             p->plan->compute, &corners[0], count);
        }
    }
}

/* Whether row oh of the output repeats the row before. */
static bool is_repeated(const interpolation *p, int64_t oh) {
    return !p->plan->is_bilinear && p->plan->line_bytes > 0 && oh > 0 &&
           p->rows[oh].low == p->rows[oh - 1].low;
}

static void interpolate_forward_slice(void *context, int64_t begin, int64_t end) {
    const interpolation *p = context;
    int64_t channels = p->plan->by_channels ? 1 : p->large.channels;
    for (int64_t line = begin; line < end; line++) {
        int64_t oh = line % p->large.height, n = line / p->large.height / channels;
        int64_t c = line / p->large.height % channels;
        if (line > begin && is_repeated(p, oh))
            memcpy(eddy_image_at(&p->large, n, c, oh, 0), eddy_image_at(&p->large, n, c, oh - 1, 0),
                   (size_t)p->plan->line_bytes);
        else if (p->plan->by_channels)
            (p->plan->is_bilinear ? mix_channels : copy_channels)(p, n, oh);
        else
            (p->plan->is_bilinear ? mix_columns : copy_columns)(p, n, c, oh);
    }
}

/* views: x, out */
static void interpolate_run(const eddy_kernel_call *call) {
    interpolation p;
    see(&p, &call->views[0], &call->views[1]);
    begin(&p, call);
    run_lines(&p, call->team, interpolate_forward_slice);
}

/* ---- backward ---- */

static void clear(chunk *values) {
    for (int i = 0; i < CHUNK; i++)
        values->f64[i] = 0;
}

/* Columns w .. w + count - 1 of row h. */
static void gather_columns(const interpolation *p, int64_t n, int64_t c, int64_t h, int64_t w,
                           int64_t count) {
    const eddy_image *dx = &p->small, *grad = &p->large;
    int64_t top, bottom, left, right, unused;
    chunk sum, terms;
    clear(&sum);
    eddy_tap_touching(p->rows, grad->height, h, &top, &bottom);
    eddy_tap_touching(p->columns, grad->width, w, &left, &unused);
    eddy_tap_touching(p->columns, grad->width, w + count - 1, &unused, &right);
    for (int64_t oh = top; oh < bottom; oh++)
        for (int64_t ow = left; ow < right; ow++) {
            const eddy_tap *column = &p->columns[ow];
            double down = eddy_tap_weight(&p->rows[oh], h);
            load_element(p, &terms, 0, grad, eddy_image_at(grad, n, c, oh, ow));
            for (int64_t i = eddy_max_i64(column->low, w); i <= column->high && i < w + count;
                 i++) {
                double share = down * eddy_tap_weight(column, i);
                if (p->plan->compute == EDDY_F64)
                    sum.f64[i - w] += share * terms.f64[0];
                else
                    sum.f32[i - w] += (float)share * terms.f32[0];
            }
        }
    eddy_chunk_store(dx->dtype, eddy_image_at(dx, n, c, h, w), dx->column_stride, p->plan->compute,
                     &sum, count);
}

/* Channels c .. c + count - 1 of element h, w. */
static void gather_channels(const interpolation *p, int64_t n, int64_t c, int64_t h, int64_t w,
                            int64_t count) {
    const eddy_image *dx = &p->small, *grad = &p->large;
    int64_t top, bottom, left, right;
    chunk sum, terms;
    clear(&sum);
    eddy_tap_touching(p->rows, grad->height, h, &top, &bottom);
    eddy_tap_touching(p->columns, grad->width, w, &left, &right);
    for (int64_t oh = top; oh < bottom; oh++)
        for (int64_t ow = left; ow < right; ow++) {
            double share = eddy_tap_weight(&p->rows[oh], h) * eddy_tap_weight(&p->columns[ow], w);
            eddy_chunk_load(p->plan->compute, &terms, grad->dtype,
                            eddy_image_at(grad, n, c, oh, ow), grad->channel_stride, count);
            for (int64_t i = 0; i < count; i++)
                if (p->plan->compute == EDDY_F64)
                    sum.f64[i] += share * terms.f64[i];
                else
                    sum.f32[i] += (float)share * terms.f32[i];
        }
    eddy_chunk_store(dx->dtype, eddy_image_at(dx, n, c, h, w), dx->channel_stride, p->plan->compute,
                     &sum, count);
}

static void interpolate_backward_slice(void *context, int64_t begin, int64_t end) {
    const interpolation *p = context;
    const eddy_image *dx = &p->small;
    int64_t channels = p->plan->by_channels ? 1 : dx->channels;
    for (int64_t line = begin; line < end; line++) {
        int64_t h = line % dx->height, n = line / dx->height / channels,
                c = line / dx->height % channels;
        if (!p->plan->by_channels) {
            for (int64_t w = 0; w < dx->width; w += CHUNK)
                gather_columns(p, n, c, h, w, eddy_min_i64(CHUNK, dx->width - w));
            continue;
        }
        for (int64_t w = 0; w < dx->width; w++)
            for (c = 0; c < dx->channels; c += CHUNK)
                gather_channels(p, n, c, h, w, eddy_min_i64(CHUNK, dx->channels - c));
    }
}

/* views: grad, dx */
static void interpolate_backward_run(const eddy_kernel_call *call) {
    interpolation p;
    see(&p, &call->views[1], &call->views[0]);
    begin(&p, call);
    run_lines(&p, call->team, interpolate_backward_slice);
}

/* ---- planning ---- */

/* `to` is the image that is written. */
static eddy_status prepare(const eddy_kernel_call *call, const interpolation *p,
                           const eddy_image *to, eddy_kernel_plan *plan) {
    const eddy_attributes_interpolate *attributes = call->attributes;
    interpolate_plan *of = plan->memory;
    if (eddy_kernel_view_count(&call->views[1]) == 0) {
        plan->run = interpolate_run_nothing;
        return EDDY_OK;
    }
    of->is_bilinear = attributes->mode == EDDY_MODE_BILINEAR;
    of->compute = eddy_chunk_compute_dtype(to->dtype);
    /* Other scales may double the size too, without repeating each element twice. */
    of->is_doubled = !of->is_bilinear && p->large.width == 2 * p->small.width &&
                     (attributes->scale <= 0 || attributes->scale == 2);
    cut_lines(to, of);
    plan->bytes = sizeof(*of);
    plan->workspace_bytes = taps_bytes(&p->large);
    return EDDY_OK;
}

/* Images are processed row by row; a mix of four reads and computes more than a copy. */
static int64_t interpolate_cost(const eddy_kernel_call *call) {
    const eddy_attributes_interpolate *attributes = call->attributes;
    const eddy_op_view *out = &call->views[1];
    int64_t element_ps =
        attributes->mode == EDDY_MODE_BILINEAR ? call->kernel->cost_element_ps : 180;
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_kernel_view_count(out), element_ps) +
           eddy_cost_ps(out->shape[0] * out->shape[1] * out->shape[2], 8000) +
           eddy_cost_far_views_ps(call);
}

static eddy_status interpolate_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    interpolation p;
    see(&p, &call->views[0], &call->views[1]);
    plan->cost_ps = interpolate_cost(call);
    return prepare(call, &p, &p.large, plan);
}

static eddy_status interpolate_backward_prepare(const eddy_kernel_call *call,
                                                eddy_kernel_plan *plan) {
    interpolation p;
    int64_t grad = eddy_kernel_view_count(&call->views[0]),
            dx = eddy_kernel_view_count(&call->views[1]);
    int64_t bytes =
        eddy_cost_bytes(grad, call->views[0].dtype) + eddy_cost_bytes(dx, call->views[1].dtype);
    see(&p, &call->views[1], &call->views[0]);
    plan->cost_ps = eddy_cost_flat_ps(call->kernel, eddy_max_i64(grad, dx), bytes);
    return prepare(call, &p, &p.small, plan);
}

const eddy_kernel eddy_cpu_interpolate = {.name = "interpolate",
                                          .run = interpolate_run,
                                          .prepare = interpolate_prepare,
                                          .cost_base_ps = 120000,
                                          .cost_element_ps = 1500};
const eddy_kernel eddy_cpu_interpolate_backward = {.name = "interpolate_backward",
                                                   .run = interpolate_backward_run,
                                                   .prepare = interpolate_backward_prepare,
                                                   .cost_base_ps = 120000,
                                                   .cost_element_ps = 6000};
