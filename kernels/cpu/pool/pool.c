/* max_pool2d, avg_pool2d and adaptive_avg_pool2d: windows over images. Runs of windows that are alike go side by side: neighbours of a row, or channels where
 * these lie closer. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/pool/pool_block.h>
#include <kernels/cpu/pool/pool_library.h>
#include <kernels/cpu/pool/pool_plan.h>
#include <kernels/cpu/pool/pool_tile.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/walk.h>

/* Elements that no library is asked for. */
#define SMALL_WORK 20000
#define SLICE_ELEMENTS 32768
#define CHUNK 256
/* Rows of fewer outputs are not worth going along where there are as many channels. */
#define ROW_MIN 8
#define ROW_WIDE 64
/* Elements of channels-last windows of f32 that are summed in sequence, as oneDNN sums all of them; the sums of larger ones are
 * nearer by rows. */
#define SEQUENCE_MOST 64
/* Elements of an image whose average is taken as a reduction. */
#define MEAN_LEAST 128

typedef struct pool {
    const eddy_kernel_call *call;
    eddy_image x, out, indices; /* indices: data NULL where none are wanted */
    eddy_pool_axis height, width;
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    bool averages;
    bool in_sequence; /* averages: elements are added one after another */
    bool has_indices;
    bool by_channels;
    bool is_tiled;
    eddy_pool_tiling tiling; /* where is_tiled */
    eddy_dtype compute;
    eddy_reduce_type type;           /* of the compute type */
    eddy_pool_fn *block;             /* NULL: the elements have to be converted, or indices are wanted */
    eddy_pool_index_fn *index_block; /* NULL: the elements have to be converted, or no indices are wanted */
} pool;

/* Windows alike, and where the first of them is. */
typedef struct stretch {
    eddy_pool_run run;
    const char *x;
    char *out, *indices;
    int64_t index; /* of its first element within its plane */
    int64_t index_step, index_place_step;
    int64_t indices_step, indices_place_step;
    double divisor;
} stretch;

/* ---- elements of any dtype: a chunk at a time ---- */

/* One element of each of `count` windows, as contiguous elements of the compute type: where they lie, or in *buffer. */
static const void *elements(const pool *p, const char *x, int64_t step, int64_t count, void *buffer) {
    if (p->x.dtype == p->compute && (step == 1 || count == 1))
        return x;
    eddy_chunk_load(p->compute, buffer, p->x.dtype, x, step, count);
    return buffer;
}

typedef union chunk {
    _Alignas(64) float f32[CHUNK];
    double f64[CHUNK];
    int64_t i64[CHUNK];
} chunk;

/* `count` windows from the stretch's number `first` of a place on. */
static void max_chunk(const pool *p, const stretch *s, int64_t place, int64_t first, int64_t count) {
    const eddy_pool_run *run = &s->run;
    const eddy_reduce_blocks *blocks = eddy_cpu_reduce_blocks();
    chunk best, other;
    int64_t at[CHUNK] = {0};
    int64_t begin = place * run->place_step + first * run->step;
    eddy_chunk_load(p->compute, &best, p->x.dtype, eddy_chunk_at(s->x, p->x.dtype, begin), run->step, count);
    for (int64_t r = 0; r < run->rows; r++)
        for (int64_t c = r == 0; c < run->columns; c++) {
            int64_t offset = begin + r * run->row_step + c * run->column_step;
            const void *next = elements(p, eddy_chunk_at(s->x, p->x.dtype, offset), run->step, count, &other);
            if (p->has_indices)
                blocks->argmax_row[p->type](&best, at, next,
                                            r * p->height.dilation * p->x.width + c * p->width.dilation, count);
            else
                blocks->max[p->type].combine(&best, next, count);
        }
    eddy_chunk_store(p->out.dtype,
                     eddy_chunk_at(s->out, p->out.dtype, place * run->out_place_step + first * run->out_step),
                     run->out_step, p->compute, &best, count);
    if (!p->has_indices)
        return;
    int64_t index = s->index + place * s->index_place_step + first * s->index_step;
    for (int64_t i = 0; i < count; i++)
        at[i] += index + i * s->index_step;
    eddy_chunk_store(EDDY_I64, s->indices + (place * s->indices_place_step + first * s->indices_step) * 8,
                     s->indices_step, EDDY_I64, at, count);
}

/* The sum of the sums of rows, as the block has it. */
static void average_chunk(const pool *p, const stretch *s, int64_t place, int64_t first, int64_t count) {
    const eddy_pool_run *run = &s->run;
    const eddy_reduce_op *sum = &eddy_cpu_reduce_blocks()->sum[p->type];
    chunk total, row, other;
    int64_t begin = place * run->place_step + first * run->step;
    for (int64_t r = 0; r < run->rows; r++) {
        chunk *into = r == 0 ? &total : &row;
        int64_t offset = begin + r * run->row_step;
        eddy_chunk_load(p->compute, into, p->x.dtype, eddy_chunk_at(s->x, p->x.dtype, offset), run->step, count);
        for (int64_t c = 1; c < run->columns; c++) {
            const char *x = eddy_chunk_at(s->x, p->x.dtype, offset + c * run->column_step);
            sum->combine(into, elements(p, x, run->step, count, &other), count);
        }
        if (r > 0)
            sum->combine(&total, &row, count);
    }
    for (int64_t i = 0; i < count; i++)
        if (p->compute == EDDY_F64)
            total.f64[i] /= s->divisor;
        else
            total.f32[i] /= (float)s->divisor;
    eddy_chunk_store(p->out.dtype,
                     eddy_chunk_at(s->out, p->out.dtype, place * run->out_place_step + first * run->out_step),
                     run->out_step, p->compute, &total, count);
}

static void run_stretch(const pool *p, const stretch *s) {
    if (p->block) {
        p->block(s->out, s->x, &s->run, s->divisor);
        return;
    }
    if (p->index_block) {
        const eddy_pool_indices indices = {.to = (int64_t *)(void *)s->indices,
                                           .first = s->index,
                                           .row_step = p->height.dilation * p->x.width,
                                           .column_step = p->width.dilation,
                                           .step = s->index_step,
                                           .to_step = s->indices_step,
                                           .place_step = s->index_place_step,
                                           .to_place_step = s->indices_place_step};
        p->index_block(s->out, s->x, &s->run, &indices);
        return;
    }
    for (int64_t place = 0; place < s->run.places; place++)
        for (int64_t first = 0; first < s->run.count; first += CHUNK)
            (p->averages ? average_chunk : max_chunk)(p, s, place, first, eddy_min_i64(CHUNK, s->run.count - first));
}

/* ---- windows ---- */

/* Outputs ow .. ow + count of row oh, whose windows are alike; of channel c, or of all. */
static void pool_outputs(const pool *p, int64_t n, int64_t c, int64_t oh, int64_t ow, int64_t count) {
    eddy_pool_window rows = eddy_pool_window_of(&p->height, oh), columns = eddy_pool_window_of(&p->width, ow);
    stretch s = {.run = {.rows = rows.count,
                         .columns = columns.count,
                         .row_step = p->height.dilation * p->x.row_stride,
                         .column_step = p->width.dilation * p->x.column_stride,
                         .count = count,
                         .step = p->width.stride * p->x.column_stride,
                         .out_step = p->out.column_stride,
                         .places = 1,
                         .in_sequence = p->in_sequence},
                 .x = eddy_image_at(&p->x, n, c, rows.first, columns.first),
                 .out = eddy_image_at(&p->out, n, c, oh, ow),
                 .index = rows.first * p->x.width + columns.first,
                 .index_step = p->width.stride,
                 .divisor = p->averages ? eddy_pool_divisor(p->attributes, &p->height, &p->width, oh, ow) : 1};
    if (p->has_indices) {
        s.indices = eddy_image_at(&p->indices, n, c, oh, ow);
        s.indices_step = p->indices.column_stride;
    }
    if (p->by_channels) {
        s.run.places = count;
        s.run.place_step = s.run.step;
        s.run.out_place_step = s.run.out_step;
        s.index_place_step = s.index_step;
        s.indices_place_step = s.indices_step;
        s.run.count = p->x.channels;
        s.run.step = p->x.channel_stride;
        s.run.out_step = p->out.channel_stride;
        s.index_step = 0;
        s.indices_step = p->indices.channel_stride;
    }
    run_stretch(p, &s);
}

/* A line: a row of outputs of one channel. */
static void tiled_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t line = begin, count; line < end; line += count) {
        int64_t oh = line % p->out.height, plane = line / p->out.height;
        count = eddy_min_i64(p->out.height - oh, end - line);
        eddy_pool_tiling_run(&p->tiling, plane / p->x.channels, plane % p->x.channels, oh, count);
    }
}

/* Windows of two columns, side by side, in plain rows: with indices they go in one sweep, rows of outputs at once. */
static bool is_paired(const pool *p) {
    int64_t row_begin, row_end, begin, end;
    eddy_pool_whole(&p->height, &row_begin, &row_end);
    eddy_pool_whole(&p->width, &begin, &end);
    return p->index_block && p->width.kernel == 2 && p->width.stride == 2 && p->width.dilation == 1 &&
           p->height.kernel * p->height.dilation <= p->height.stride && p->x.column_stride == 1 &&
           p->out.column_stride == 1 && p->indices.column_stride == 1 && row_begin == 0 && row_end == p->out.height &&
           begin == 0 && end == p->out.width;
}

/* A line: a row of outputs of one channel. */
static void paired_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t line = begin, count; line < end; line += count) {
        int64_t oh = line % p->out.height, n = line / p->out.height / p->x.channels;
        int64_t c = line / p->out.height % p->x.channels, row = oh * p->height.stride;
        count = eddy_min_i64(p->out.height - oh, end - line);
        const eddy_pool_run run = {.rows = p->height.kernel,
                                   .columns = 2,
                                   .row_step = p->height.dilation * p->x.row_stride,
                                   .column_step = 1,
                                   .count = p->out.width,
                                   .step = 2,
                                   .out_step = 1,
                                   .places = count,
                                   .place_step = p->height.stride * p->x.row_stride,
                                   .out_place_step = p->out.row_stride};
        const eddy_pool_indices indices = {.to = eddy_image_at(&p->indices, n, c, oh, 0),
                                           .first = row * p->x.width,
                                           .row_step = p->height.dilation * p->x.width,
                                           .column_step = 1,
                                           .step = 2,
                                           .to_step = 1,
                                           .place_step = p->height.stride * p->x.width,
                                           .to_place_step = p->indices.row_stride};
        p->index_block(eddy_image_at(&p->out, n, c, oh, 0), eddy_image_at(&p->x, n, c, row, 0), &run, &indices);
    }
}

/* A line: a row of outputs of one channel, or of all. */
static void pool_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    int64_t channels = p->by_channels ? 1 : p->x.channels, whole_begin, whole_end;
    eddy_pool_whole(&p->width, &whole_begin, &whole_end);
    int64_t oh = begin % p->out.height, plane = begin / p->out.height, n = plane / channels, c = plane % channels;
    for (int64_t line = begin; line < end; line++) {
        for (int64_t ow = 0; ow < whole_begin; ow++)
            pool_outputs(p, n, c, oh, ow, 1);
        if (whole_begin < whole_end)
            pool_outputs(p, n, c, oh, whole_begin, whole_end - whole_begin);
        for (int64_t ow = whole_end; ow < p->out.width; ow++)
            pool_outputs(p, n, c, oh, ow, 1);
        if (++oh < p->out.height)
            continue;
        oh = 0;
        if (++c == channels) {
            c = 0;
            n++;
        }
    }
}

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static bool channels_are_closer(const pool *p) {
    return distance(p->x.channel_stride) < distance(p->x.column_stride);
}

static void run_pool(pool *p) {
    if (eddy_view_count(&p->call->views[1]) == 0)
        return;
    const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks();
    bool is_closer = channels_are_closer(p);
    p->tiling = (eddy_pool_tiling){.kind = p->averages      ? EDDY_POOL_AVERAGE
                                           : p->has_indices ? EDDY_POOL_MAX_INDEX
                                                            : EDDY_POOL_MAX,
                                   .x = p->x,
                                   .out = p->out,
                                   .indices = p->indices,
                                   .height = p->height,
                                   .width = p->width,
                                   .attributes = p->attributes,
                                   .ops = p->compute == EDDY_F64 ? &blocks->f64 : &blocks->f32};
    bool is_narrow = p->out.width < ROW_MIN && p->x.channels >= ROW_MIN;
    /* Wide rows of windows that share nothing are as well taken in one sweep; not so where indices go along. */
    bool is_worthwhile =
        p->height.kernel * p->height.dilation > p->height.stride || p->out.width < ROW_WIDE || p->has_indices;
    bool goes_paired = !is_closer && !is_narrow && is_paired(p);
    p->is_tiled = !is_closer && !is_narrow && !goes_paired && is_worthwhile && eddy_pool_tiling_init(&p->tiling);
    p->by_channels = is_closer || is_narrow;
    int64_t lines = p->out.images * p->out.height * (p->by_channels ? 1 : p->x.channels);
    int64_t line = p->out.width * (p->by_channels ? p->x.channels : 1);
    int64_t window = eddy_min_i64(p->height.kernel * p->width.kernel, SLICE_ELEMENTS);
    int64_t grain = eddy_max_i64(1, SLICE_ELEMENTS / line / window);
    void (*slice)(void *, int64_t, int64_t) = goes_paired ? paired_slice : p->is_tiled ? tiled_slice : pool_slice;
    if (lines <= grain)
        slice(p, 0, lines);
    else
        p->call->team->parallel_for(p->call->team, lines, grain, slice, p);
}

static void make_pool(pool *p, const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    p->call = call;
    p->attributes = attributes;
    p->x = eddy_image_of(&call->views[0]);
    p->out = eddy_image_of(&call->views[1]);
    p->height = eddy_pool_axis_height(attributes, p->x.height, p->out.height);
    p->width = eddy_pool_axis_width(attributes, p->x.width, p->out.width);
    p->compute = eddy_chunk_compute_dtype(p->x.dtype);
    p->type = p->compute == EDDY_F32 ? EDDY_REDUCE_F32 : p->compute == EDDY_F64 ? EDDY_REDUCE_F64 : EDDY_REDUCE_I64;
}

static void choose_block(pool *p) {
    const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks();
    const eddy_pool_ops *ops = p->x.dtype == EDDY_F32 ? &blocks->f32 : p->x.dtype == EDDY_F64 ? &blocks->f64 : NULL;
    if (ops)
        p->block = p->averages ? ops->average : ops->max;
}

#ifdef EDDY_HAVE_DNNL
static eddy_pool_request request_of(const pool *p) {
    return (eddy_pool_request){.x = p->x,
                               .out = p->out,
                               .height = p->height,
                               .width = p->width,
                               .attributes = p->attributes,
                               .averages = p->averages};
}

static bool is_for_library(const pool *p) {
    return !p->averages || p->in_sequence;
}

static bool pool_run_library(const pool *p) {
    eddy_pool_request request = request_of(p);
    return is_for_library(p) && eddy_pool_library_run(&request, p->call);
}

static size_t pool_workspace_of(const pool *p) {
    eddy_pool_request request = request_of(p);
    return is_for_library(p) ? eddy_pool_library_workspace(&request) : 0;
}

static bool pool_start_library(const pool *p) {
    eddy_pool_request request = request_of(p);
    return is_for_library(p) && eddy_pool_library_start(&request);
}
#else
static bool pool_run_library(const pool *p) {
    (void)p;
    return false;
}

static size_t pool_workspace_of(const pool *p) {
    (void)p;
    return 0;
}

static bool pool_start_library(const pool *p) {
    (void)p;
    return false;
}
#endif

static void max_pool2d_run(const eddy_kernel_call *call) {
    pool p = {0};
    make_pool(&p, call, call->attributes);
    choose_block(&p);
    if (!pool_run_library(&p))
        run_pool(&p);
}

static size_t max_pool2d_workspace(const eddy_kernel_call *call) {
    pool p = {0};
    make_pool(&p, call, call->attributes);
    return pool_workspace_of(&p);
}

static bool max_pool2d_start(const eddy_kernel_call *call) {
    pool p = {0};
    make_pool(&p, call, call->attributes);
    return pool_start_library(&p);
}

static void max_pool2d_with_indices_run(const eddy_kernel_call *call) {
    pool p = {.indices = eddy_image_of(&call->views[2]), .has_indices = true};
    make_pool(&p, call, call->attributes);
    const eddy_pool_blocks *blocks = eddy_cpu_pool_blocks();
    /* Offsets within a window of f32 are counted in 32 bits. */
    if (p.x.dtype == EDDY_F64)
        p.index_block = blocks->f64.max_index;
    else if (p.x.dtype == EDDY_F32 && p.x.height * p.x.width < INT32_MAX)
        p.index_block = blocks->f32.max_index;
    run_pool(&p);
}

static void make_average(pool *p, const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    *p = (pool){.averages = true};
    make_pool(p, call, attributes);
    p->in_sequence = p->x.dtype == EDDY_F32 && channels_are_closer(p) && !p->height.is_adaptive &&
                     !p->width.is_adaptive && p->height.kernel <= SEQUENCE_MOST &&
                     p->height.kernel * p->width.kernel <= SEQUENCE_MOST;
}

/* One window over each whole image, row-major and not small, as networks end: the mean over two axes. */
static bool is_mean(const pool *p) {
    const eddy_image *x = &p->x, *out = &p->out;
    return out->height == 1 && out->width == 1 && x->height * x->width >= MEAN_LEAST && !channels_are_closer(p) &&
           eddy_pool_window_of(&p->height, 0).count == x->height &&
           eddy_pool_window_of(&p->width, 0).count == x->width &&
           eddy_pool_divisor(p->attributes, &p->height, &p->width, 0, 0) == (double)x->height * (double)x->width;
}

static eddy_kernel_call mean_call(const eddy_kernel_call *call, eddy_attributes_reduce *attributes) {
    *attributes = (eddy_attributes_reduce){.axes = 3U << (call->views[0].rank - 2), .keepdim = true};
    eddy_kernel_call mean = *call;
    mean.kernel = &eddy_cpu_mean;
    mean.attributes = attributes;
    return mean;
}

static void average(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    pool p;
    make_average(&p, call, attributes);
    if (is_mean(&p)) {
        eddy_attributes_reduce axes;
        eddy_kernel_call mean = mean_call(call, &axes);
        eddy_cpu_mean.run(&mean);
        return;
    }
    choose_block(&p);
    if (!pool_run_library(&p))
        run_pool(&p);
}

static size_t average_workspace(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    pool p;
    make_average(&p, call, attributes);
    if (!is_mean(&p))
        return pool_workspace_of(&p);
    eddy_attributes_reduce axes;
    eddy_kernel_call mean = mean_call(call, &axes);
    return eddy_cpu_mean.workspace(&mean);
}

static bool average_start(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    pool p;
    make_average(&p, call, attributes);
    return !is_mean(&p) && pool_start_library(&p);
}

static void avg_pool2d_run(const eddy_kernel_call *call) {
    average(call, call->attributes);
}

static size_t avg_pool2d_workspace(const eddy_kernel_call *call) {
    return average_workspace(call, call->attributes);
}

static void adaptive_avg_pool2d_run(const eddy_kernel_call *call) {
    average(call, NULL);
}

static size_t adaptive_avg_pool2d_workspace(const eddy_kernel_call *call) {
    return average_workspace(call, NULL);
}

static bool avg_pool2d_start(const eddy_kernel_call *call) {
    return average_start(call, call->attributes);
}

static bool adaptive_avg_pool2d_start(const eddy_kernel_call *call) {
    return average_start(call, NULL);
}

/* Elements that windows see. */
static int64_t seen(const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    return eddy_cost_ps(eddy_view_count(&call->views[1]),
                        attributes->kernel_size.height * attributes->kernel_size.width);
}

static int64_t pool_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps + eddy_cost_ps(seen(call), call->kernel->cost_element_ps);
}

/* Twice as much where the library is not asked. */
static int64_t max_pool2d_cost(const eddy_kernel_call *call) {
    return pool_cost(call) + (seen(call) < SMALL_WORK ? eddy_cost_ps(seen(call), call->kernel->cost_element_ps) : 0);
}

const eddy_kernel eddy_cpu_max_pool2d = {.name = "max_pool2d",
                                         .run = max_pool2d_run,
                                         .workspace = max_pool2d_workspace,
                                         .start = max_pool2d_start,
                                         .cost_base_ps = 150000,
                                         .cost_element_ps = 500,
                                         .cost = max_pool2d_cost};
const eddy_kernel eddy_cpu_max_pool2d_with_indices = {.name = "max_pool2d_with_indices",
                                                      .run = max_pool2d_with_indices_run,
                                                      .cost_base_ps = 250000,
                                                      .cost_element_ps = 400,
                                                      .cost = pool_cost};
const eddy_kernel eddy_cpu_avg_pool2d = {.name = "avg_pool2d",
                                         .run = avg_pool2d_run,
                                         .workspace = avg_pool2d_workspace,
                                         .start = avg_pool2d_start,
                                         .cost_base_ps = 250000,
                                         .cost_element_ps = 550,
                                         .cost = pool_cost};
/* Windows overlap little: some two visits of each element of the larger of the two. Whole images are means. */
static int64_t adaptive_cost(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    bool is_whole = out->shape[2] * out->shape[3] == 1;
    int64_t largest = eddy_max_i64(eddy_view_count(in), eddy_view_count(out));
    return call->kernel->cost_base_ps + eddy_cost_ps(largest, is_whole ? 95 : call->kernel->cost_element_ps) +
           eddy_cost_far_views_ps(call);
}

const eddy_kernel eddy_cpu_adaptive_avg_pool2d = {.name = "adaptive_avg_pool2d",
                                                  .run = adaptive_avg_pool2d_run,
                                                  .workspace = adaptive_avg_pool2d_workspace,
                                                  .start = adaptive_avg_pool2d_start,
                                                  .cost_base_ps = 250000,
                                                  .cost_element_ps = 500,
                                                  .cost = adaptive_cost};
