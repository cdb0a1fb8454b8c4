/* max_pool2d, avg_pool2d and adaptive_avg_pool2d: windows over images. Windows of one shape are processed side by side:
 * neighbours of a row, or channels if these are closer in memory. */
#include <base/assert.h>
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
#include <string.h>

/* Calls of fewer elements use no library. */
#define SMALL_WORK 20000
#define SLICE_ELEMENTS 32768
#define CHUNK 256
/* Rows of fewer outputs are not worth a loop along the row if there are as many channels. */
#define ROW_MIN 8
#define ROW_WIDE 64
/* Channels-last windows of f32 of up to this many elements are summed in sequence, as oneDNN sums all windows. Larger sums
 * are more accurate if they are added up by rows. */
#define SEQUENCE_MOST 64
/* The average of a whole image of at least this many elements is computed as a reduction. */
#define MEAN_LEAST 128

/* The first member of all plans in this file. */
typedef struct pool_head {
    bool is_library;
} pool_head;

/* The plan of a call. */
typedef struct pool_plan {
    pool_head head;
    bool averages;
    bool in_sequence; /* averages: elements are added one after another */
    bool has_indices;
    bool by_channels;
    eddy_dtype compute;
    eddy_reduce_type type; /* of the compute type */
    eddy_pool_axis height, width;
    eddy_pool_fn *block; /* NULL: the elements have to be converted, or indices are required */
    eddy_pool_index_fn
        *index_block; /* NULL: the elements have to be converted, or no indices are required */
    void (*slice)(void *context, int64_t begin, int64_t end);
    int64_t lines, grain;
    eddy_pool_tiles tiles; /* if planes are cut into tiles; whole columns are set in any case */
#ifdef EDDY_HAVE_DNNL
    eddy_pool_library library; /* last; not set if the library does not serve */
#endif
} pool_plan;

typedef struct pool {
    const pool_plan *plan;
    eddy_image x, out, indices;             /* indices: data is NULL if none are required */
    const eddy_attributes_pool *attributes; /* NULL: adaptive */
    eddy_pool_tiling tiling;
} pool;

/* Windows of one shape, and the addresses of the first of them. */
typedef struct stretch {
    eddy_pool_run run;
    const char *x;
    char *out, *indices;
    int64_t index; /* index of its first element within its plane */
    int64_t index_step, index_place_step;
    int64_t indices_step, indices_place_step;
    double divisor;
} stretch;

/* ---- elements of any dtype: a chunk at a time ---- */

/* One element of each of `count` windows, as contiguous elements of the compute type: in place, or converted to *buffer. */
static const void *elements(const pool *p, const char *x, int64_t step, int64_t count,
                            void *buffer) {
    if (p->x.dtype == p->plan->compute && (step == 1 || count == 1))
        return x;
    eddy_chunk_load(p->plan->compute, buffer, p->x.dtype, x, step, count);
    return buffer;
}

typedef union chunk {
    _Alignas(64) float f32[CHUNK];
    double f64[CHUNK];
    int64_t i64[CHUNK];
} chunk;

/* Computes `count` windows of a place of the stretch, from its window number `first` on. */
static void max_chunk(const pool *p, const stretch *s, int64_t place, int64_t first,
                      int64_t count) {
    const eddy_pool_run *run = &s->run;
    const eddy_reduce_blocks *blocks = eddy_reduce_blocks_of(p->plan->type);
    chunk best, other;
    int64_t at[CHUNK] = {0};
    int64_t begin = place * run->place_step + first * run->step;
    eddy_chunk_load(p->plan->compute, &best, p->x.dtype, eddy_chunk_at(s->x, p->x.dtype, begin),
                    run->step, count);
    for (int64_t r = 0; r < run->rows; r++)
        for (int64_t c = r == 0; c < run->columns; c++) {
            int64_t offset = begin + r * run->row_step + c * run->column_step;
            const void *next =
                elements(p, eddy_chunk_at(s->x, p->x.dtype, offset), run->step, count, &other);
            if (p->plan->has_indices)
                blocks->argmax_row(
                    &best, at, next,
                    r * p->plan->height.dilation * p->x.width + c * p->plan->width.dilation, count);
            else
                blocks->max.combine(&best, next, count);
        }
    eddy_chunk_store(
        p->out.dtype,
        eddy_chunk_at(s->out, p->out.dtype, place * run->out_place_step + first * run->out_step),
        run->out_step, p->plan->compute, &best, count);
    if (!p->plan->has_indices)
        return;
    int64_t index = s->index + place * s->index_place_step + first * s->index_step;
    for (int64_t i = 0; i < count; i++)
        at[i] += index + i * s->index_step;
    eddy_chunk_store(EDDY_I64,
                     s->indices + (place * s->indices_place_step + first * s->indices_step) * 8,
                     s->indices_step, EDDY_I64, at, count);
}

/* Adds up the rows' sums, in the order of the block functions. */
static void average_chunk(const pool *p, const stretch *s, int64_t place, int64_t first,
                          int64_t count) {
    const eddy_pool_run *run = &s->run;
    const eddy_reduce_op *sum = &eddy_reduce_blocks_of(p->plan->type)->sum;
    chunk total, row, other;
    int64_t begin = place * run->place_step + first * run->step;
    for (int64_t r = 0; r < run->rows; r++) {
        chunk *into = r == 0 ? &total : &row;
        int64_t offset = begin + r * run->row_step;
        eddy_chunk_load(p->plan->compute, into, p->x.dtype, eddy_chunk_at(s->x, p->x.dtype, offset),
                        run->step, count);
        for (int64_t c = 1; c < run->columns; c++) {
            const char *x = eddy_chunk_at(s->x, p->x.dtype, offset + c * run->column_step);
            sum->combine(into, elements(p, x, run->step, count, &other), count);
        }
        if (r > 0)
            sum->combine(&total, &row, count);
    }
    for (int64_t i = 0; i < count; i++)
        if (p->plan->compute == EDDY_F64)
            total.f64[i] /= s->divisor;
        else
            total.f32[i] /= (float)s->divisor;
    eddy_chunk_store(
        p->out.dtype,
        eddy_chunk_at(s->out, p->out.dtype, place * run->out_place_step + first * run->out_step),
        run->out_step, p->plan->compute, &total, count);
}

static void run_stretch(const pool *p, const stretch *s) {
    if (p->plan->block) {
        p->plan->block(s->out, s->x, &s->run, s->divisor);
        return;
    }
    if (p->plan->index_block) {
        const eddy_pool_indices indices = {.to = (int64_t *)(void *)s->indices,
                                           .first = s->index,
                                           .row_step = p->plan->height.dilation * p->x.width,
                                           .column_step = p->plan->width.dilation,
                                           .step = s->index_step,
                                           .to_step = s->indices_step,
                                           .place_step = s->index_place_step,
                                           .to_place_step = s->indices_place_step};
        p->plan->index_block(s->out, s->x, &s->run, &indices);
        return;
    }
    for (int64_t place = 0; place < s->run.places; place++)
        for (int64_t first = 0; first < s->run.count; first += CHUNK)
            (p->plan->averages ? average_chunk : max_chunk)(
                p, s, place, first, eddy_min_i64(CHUNK, s->run.count - first));
}

/* ---- windows ---- */

/* Computes outputs ow .. ow + count - 1 of row oh, whose windows have one shape; of channel c, or of all channels. */
static void pool_outputs(const pool *p, int64_t n, int64_t c, int64_t oh, int64_t ow,
                         int64_t count) {
    eddy_pool_window rows = eddy_pool_window_of(&p->plan->height, oh),
                     columns = eddy_pool_window_of(&p->plan->width, ow);
    stretch s = {.run = {.rows = rows.count,
                         .columns = columns.count,
                         .row_step = p->plan->height.dilation * p->x.row_stride,
                         .column_step = p->plan->width.dilation * p->x.column_stride,
                         .count = count,
                         .step = p->plan->width.stride * p->x.column_stride,
                         .out_step = p->out.column_stride,
                         .places = 1,
                         .in_sequence = p->plan->in_sequence},
                 .x = eddy_image_at(&p->x, n, c, rows.first, columns.first),
                 .out = eddy_image_at(&p->out, n, c, oh, ow),
                 .index = rows.first * p->x.width + columns.first,
                 .index_step = p->plan->width.stride,
                 .divisor = p->plan->averages ? eddy_pool_divisor(p->attributes, &p->plan->height,
                                                                  &p->plan->width, oh, ow)
                                              : 1};
    if (p->plan->has_indices) {
        s.indices = eddy_image_at(&p->indices, n, c, oh, ow);
        s.indices_step = p->indices.column_stride;
    }
    if (p->plan->by_channels) {
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

/* A line is a row of outputs of one channel. */
static void tiled_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t line = begin, count; line < end; line += count) {
        int64_t oh = line % p->out.height, plane = line / p->out.height;
        count = eddy_min_i64(p->out.height - oh, end - line);
        eddy_pool_tiling_run(&p->tiling, plane / p->x.channels, plane % p->x.channels, oh, count);
    }
}

/* The same in one sweep, for calls that is_paired. */
static void paired_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    for (int64_t line = begin, count; line < end; line += count) {
        int64_t oh = line % p->out.height, n = line / p->out.height / p->x.channels;
        int64_t c = line / p->out.height % p->x.channels, row = oh * p->plan->height.stride;
        count = eddy_min_i64(p->out.height - oh, end - line);
        const eddy_pool_run run = {.rows = p->plan->height.kernel,
                                   .columns = 2,
                                   .row_step = p->plan->height.dilation * p->x.row_stride,
                                   .column_step = 1,
                                   .count = p->out.width,
                                   .step = 2,
                                   .out_step = 1,
                                   .places = count,
                                   .place_step = p->plan->height.stride * p->x.row_stride,
                                   .out_place_step = p->out.row_stride};
        const eddy_pool_indices indices = {.to = eddy_image_at(&p->indices, n, c, oh, 0),
                                           .first = row * p->x.width,
                                           .row_step = p->plan->height.dilation * p->x.width,
                                           .column_step = 1,
                                           .step = 2,
                                           .to_step = 1,
                                           .place_step = p->plan->height.stride * p->x.width,
                                           .to_place_step = p->indices.row_stride};
        p->plan->index_block(eddy_image_at(&p->out, n, c, oh, 0),
                             eddy_image_at(&p->x, n, c, row, 0), &run, &indices);
    }
}

/* A line is a row of outputs of one channel, or of all channels. */
static void pool_slice(void *context, int64_t begin, int64_t end) {
    const pool *p = context;
    int64_t channels = p->plan->by_channels ? 1 : p->x.channels;
    int64_t whole_begin = p->plan->tiles.columns_begin, whole_end = p->plan->tiles.columns_end;
    int64_t oh = begin % p->out.height, plane = begin / p->out.height, n = plane / channels,
            c = plane % channels;
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

/* ---- running ---- */

static void see(pool *p, const eddy_kernel_call *call, const pool_plan *plan,
                const eddy_attributes_pool *attributes) {
    p->plan = plan;
    p->attributes = attributes;
    p->x = eddy_image_of(&call->views[0]);
    p->out = eddy_image_of(&call->views[1]);
    p->indices = plan->has_indices ? eddy_image_of(&call->views[2]) : (eddy_image){.data = NULL};
}

static eddy_pool_tiling tiling_of(const pool *p) {
    const pool_plan *plan = p->plan;
    return (eddy_pool_tiling){.kind = plan->averages      ? EDDY_POOL_AVERAGE
                                      : plan->has_indices ? EDDY_POOL_MAX_INDEX
                                                          : EDDY_POOL_MAX,
                              .x = &p->x,
                              .out = &p->out,
                              .indices = &p->indices,
                              .height = &plan->height,
                              .width = &plan->width,
                              .attributes = p->attributes,
                              .ops = plan->compute == EDDY_F64 ? eddy_cpu_pool_f64()
                                                               : eddy_cpu_pool_f32(),
                              .tiles = &plan->tiles};
}

static void run_slices(const eddy_kernel_call *call, const eddy_attributes_pool *attributes) {
    const pool_plan *plan = call->plan;
    pool p;
    see(&p, call, plan, attributes);
    if (plan->slice == tiled_slice)
        p.tiling = tiling_of(&p);
    if (plan->lines <= plan->grain)
        plan->slice(&p, 0, plan->lines);
    else
        call->team->parallel_for(call->team, plan->lines, plan->grain, plan->slice, &p);
}

static void pool_run(const eddy_kernel_call *call) {
    run_slices(call, call->attributes);
}

static void pool_run_adaptive(const eddy_kernel_call *call) {
    run_slices(call, NULL);
}

static void pool_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- planning ---- */

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static bool channels_are_closer(const eddy_image *x) {
    return distance(x->channel_stride) < distance(x->column_stride);
}

/* Whether windows of two columns cover contiguous rows without gaps or overlap. With indices, these take one sweep,
 * several rows of outputs at once. */
static bool is_paired(const pool *p) {
    const eddy_pool_axis *height = &p->plan->height, *width = &p->plan->width;
    int64_t row_begin, row_end, begin, end;
    eddy_pool_whole(height, &row_begin, &row_end);
    eddy_pool_whole(width, &begin, &end);
    return p->plan->index_block && width->kernel == 2 && width->stride == 2 &&
           width->dilation == 1 && height->kernel * height->dilation <= height->stride &&
           p->x.column_stride == 1 && p->out.column_stride == 1 && p->indices.column_stride == 1 &&
           row_begin == 0 && row_end == p->out.height && begin == 0 && end == p->out.width;
}

/* Without indices, wide rows of windows that share nothing are as fast in one sweep. */
static bool is_tiled(const pool *p, eddy_pool_tiles *tiles) {
    const eddy_pool_axis *height = &p->plan->height;
    eddy_pool_tiling tiling = tiling_of(p);
    return (height->kernel * height->dilation > height->stride || p->out.width < ROW_WIDE ||
            p->plan->has_indices) &&
           eddy_pool_tiles_init(tiles, &tiling);
}

static void cut_lines(const pool *p, pool_plan *plan) {
    bool is_narrow = p->out.width < ROW_MIN && p->x.channels >= ROW_MIN;
    plan->by_channels = channels_are_closer(&p->x) || is_narrow;
    if (!plan->by_channels && is_paired(p)) {
        plan->slice = paired_slice;
    } else if (!plan->by_channels && is_tiled(p, &plan->tiles)) {
        plan->slice = tiled_slice;
    } else {
        plan->slice = pool_slice;
        eddy_pool_whole(&plan->width, &plan->tiles.columns_begin, &plan->tiles.columns_end);
    }
    int64_t line = p->out.width * (plan->by_channels ? p->x.channels : 1);
    int64_t window = eddy_min_i64(plan->height.kernel * plan->width.kernel, SLICE_ELEMENTS);
    plan->lines = p->out.images * p->out.height * (plan->by_channels ? 1 : p->x.channels);
    plan->grain = eddy_max_i64(1, SLICE_ELEMENTS / line / window);
}

static void choose_block(const pool *p, pool_plan *plan) {
    const eddy_image *x = &p->x;
    const eddy_pool_ops *ops = x->dtype == EDDY_F32   ? eddy_cpu_pool_f32()
                               : x->dtype == EDDY_F64 ? eddy_cpu_pool_f64()
                                                      : NULL;
    plan->block = NULL;
    plan->index_block = NULL;
    if (!ops)
        return;
    if (!plan->has_indices)
        plan->block = plan->averages ? ops->average : ops->max;
    else if (x->dtype == EDDY_F64 ||
             x->height * x->width < INT32_MAX) /* f32: offsets within a window have 32 bits */
        plan->index_block = ops->max_index;
}

/* Sets all of the plan that needs no library; plan->averages and plan->has_indices are set already. */
static void plan_pool(pool *p, pool_plan *plan, const eddy_kernel_call *call,
                      const eddy_attributes_pool *attributes) {
    see(p, call, plan, attributes);
    plan->head.is_library = false;
    plan->height = eddy_pool_axis_height(attributes, p->x.height, p->out.height);
    plan->width = eddy_pool_axis_width(attributes, p->x.width, p->out.width);
    plan->compute = eddy_chunk_compute_dtype(p->x.dtype);
    plan->type = plan->compute == EDDY_F32   ? EDDY_REDUCE_F32
                 : plan->compute == EDDY_F64 ? EDDY_REDUCE_F64
                                             : EDDY_REDUCE_I64;
    plan->in_sequence = plan->averages && p->x.dtype == EDDY_F32 && channels_are_closer(&p->x) &&
                        !plan->height.is_adaptive && !plan->width.is_adaptive &&
                        plan->height.kernel <= SEQUENCE_MOST &&
                        plan->height.kernel * plan->width.kernel <= SEQUENCE_MOST;
    choose_block(p, plan);
}

#ifdef EDDY_HAVE_DNNL
static void pool_run_library(const eddy_kernel_call *call) {
    const pool_plan *plan = call->plan;
    if (!eddy_pool_library_run(&plan->library, call))
        pool_run(call);
}

/* Averages that are not summed in sequence use our own code. */
static eddy_status prepare_library(const pool *p, pool_plan *of, eddy_kernel_plan *plan) {
    const eddy_pool_request request = {.x = p->x,
                                       .out = p->out,
                                       .height = of->height,
                                       .width = of->width,
                                       .attributes = p->attributes,
                                       .averages = of->averages};
    if (of->has_indices || (of->averages && !of->in_sequence))
        return EDDY_UNSUPPORTED;
    eddy_status status =
        eddy_pool_library_prepare(&of->library, &request, &plan->has_started_library);
    if (status != EDDY_OK)
        return status;
    of->head.is_library = true;
    plan->run = pool_run_library;
    plan->workspace_bytes = eddy_pool_library_workspace(&of->library);
    return EDDY_OK;
}

static void pool_end(const void *plan) {
    const pool_head *head = plan;
    if (head->is_library)
        eddy_pool_library_end(&((const pool_plan *)plan)->library);
}

static size_t bytes_of(const pool_plan *plan) {
    return plan->head.is_library ? sizeof(*plan) : offsetof(pool_plan, library);
}
#else
static eddy_status prepare_library(const pool *p, pool_plan *of, eddy_kernel_plan *plan) {
    (void)p;
    (void)of;
    (void)plan;
    return EDDY_UNSUPPORTED;
}

static void pool_end(const void *plan) {
    (void)plan;
}

static size_t bytes_of(const pool_plan *plan) {
    return sizeof(*plan);
}
#endif

_Static_assert(sizeof(pool_plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan has room");

static eddy_status finish_plan(const pool *p, pool_plan *of, eddy_kernel_plan *plan) {
    eddy_status status = prepare_library(p, of, plan);
    if (status == EDDY_OUT_OF_MEMORY)
        return status;
    cut_lines(p, of);
    plan->bytes = bytes_of(of);
    memcpy(plan->memory, of, plan->bytes);
    return EDDY_OK;
}

static eddy_status plan_nothing(eddy_kernel_plan *plan) {
    pool_head *head = plan->memory;
    head->is_library = false;
    plan->bytes = sizeof(*head);
    plan->run = pool_run_nothing;
    return EDDY_OK;
}

static eddy_status prepare_max(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                               bool has_indices) {
    pool_plan of;
    pool p;
    if (eddy_kernel_view_count(&call->views[1]) == 0)
        return plan_nothing(plan);
    of.averages = false;
    of.has_indices = has_indices;
    plan_pool(&p, &of, call, call->attributes);
    return finish_plan(&p, &of, plan);
}

/* ---- means ---- */

/* The plan of an average that is computed as a mean. */
typedef struct mean_plan {
    pool_head head;
    void (*run)(const eddy_kernel_call *call);
    int64_t words[]; /* the plan of mean */
} mean_plan;

/* One window covers each whole image, row-major and not small, as is usual at the end of networks: the mean over two axes. */
static bool is_mean(const pool *p) {
    const eddy_image *x = &p->x, *out = &p->out;
    const eddy_pool_axis *height = &p->plan->height, *width = &p->plan->width;
    return out->height == 1 && out->width == 1 && x->height * x->width >= MEAN_LEAST &&
           !channels_are_closer(x) && eddy_pool_window_of(height, 0).count == x->height &&
           eddy_pool_window_of(width, 0).count == x->width &&
           eddy_pool_divisor(p->attributes, height, width, 0, 0) ==
               (double)x->height * (double)x->width;
}

static eddy_kernel_call mean_call(const eddy_kernel_call *call,
                                  eddy_attributes_reduce *attributes) {
    *attributes =
        (eddy_attributes_reduce){.axes = 3U << (call->views[0].rank - 2), .keeps_dims = true};
    eddy_kernel_call mean = *call;
    mean.kernel = &eddy_cpu_mean;
    mean.attributes = attributes;
    return mean;
}

static void pool_run_mean(const eddy_kernel_call *call) {
    const mean_plan *of = call->plan;
    eddy_attributes_reduce axes;
    eddy_kernel_call mean = mean_call(call, &axes);
    mean.plan = of->words;
    of->run(&mean);
}

static eddy_status prepare_mean(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    mean_plan *of = plan->memory;
    eddy_attributes_reduce axes;
    eddy_kernel_call mean = mean_call(call, &axes);
    eddy_kernel_plan inner;
    inner.memory = of->words;
    eddy_status status = eddy_kernel_prepare(&mean, &inner);
    if (status != EDDY_OK)
        return status;
    EDDY_ASSERT(sizeof(*of) + inner.bytes <= EDDY_KERNEL_PLAN_BYTES && !mean.kernel->end);
    of->head.is_library = false;
    of->run = inner.run;
    plan->run = pool_run_mean;
    plan->bytes = sizeof(*of) + inner.bytes;
    plan->workspace_bytes = inner.workspace_bytes;
    plan->has_started_library = inner.has_started_library;
    return EDDY_OK;
}

static eddy_status prepare_average(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                   const eddy_attributes_pool *attributes) {
    pool_plan of;
    pool p;
    if (eddy_kernel_view_count(&call->views[1]) == 0)
        return plan_nothing(plan);
    of.averages = true;
    of.has_indices = false;
    plan_pool(&p, &of, call, attributes);
    return is_mean(&p) ? prepare_mean(call, plan) : finish_plan(&p, &of, plan);
}

/* ---- kernels ---- */

/* Number of elements that windows read. */
static int64_t seen(const eddy_kernel_call *call) {
    const eddy_attributes_pool *attributes = call->attributes;
    return eddy_cost_ps(eddy_kernel_view_count(&call->views[1]),
                        attributes->kernel_size.height * attributes->kernel_size.width);
}

static int64_t pool_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps + eddy_cost_ps(seen(call), call->kernel->cost_element_ps);
}

/* Without the library it takes twice the time. */
static eddy_status max_pool2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = pool_cost(call);
    if (seen(call) < SMALL_WORK)
        plan->cost_ps += eddy_cost_ps(seen(call), call->kernel->cost_element_ps);
    return prepare_max(call, plan, false);
}

static eddy_status max_pool2d_with_indices_prepare(const eddy_kernel_call *call,
                                                   eddy_kernel_plan *plan) {
    plan->cost_ps = pool_cost(call);
    return prepare_max(call, plan, true);
}

static eddy_status avg_pool2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->cost_ps = pool_cost(call);
    return prepare_average(call, plan, call->attributes);
}

/* Windows overlap little: each element of the larger tensor is read about twice. Averages of whole images are means. */
static eddy_status adaptive_avg_pool2d_prepare(const eddy_kernel_call *call,
                                               eddy_kernel_plan *plan) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    bool is_whole = out->shape[out->rank - 2] * out->shape[out->rank - 1] == 1;
    int64_t largest = eddy_max_i64(eddy_kernel_view_count(in), eddy_kernel_view_count(out));
    plan->cost_ps = call->kernel->cost_base_ps +
                    eddy_cost_ps(largest, is_whole ? 95 : call->kernel->cost_element_ps) +
                    eddy_cost_far_views_ps(call);
    return prepare_average(call, plan, NULL);
}

const eddy_kernel eddy_cpu_max_pool2d = {.name = "max_pool2d",
                                         .run = pool_run,
                                         .prepare = max_pool2d_prepare,
                                         .end = pool_end,
                                         .cost_base_ps = 150000,
                                         .cost_element_ps = 500};
const eddy_kernel eddy_cpu_max_pool2d_with_indices = {.name = "max_pool2d_with_indices",
                                                      .run = pool_run,
                                                      .prepare = max_pool2d_with_indices_prepare,
                                                      .cost_base_ps = 250000,
                                                      .cost_element_ps = 400};
const eddy_kernel eddy_cpu_avg_pool2d = {.name = "avg_pool2d",
                                         .run = pool_run,
                                         .prepare = avg_pool2d_prepare,
                                         .end = pool_end,
                                         .cost_base_ps = 250000,
                                         .cost_element_ps = 550};
const eddy_kernel eddy_cpu_adaptive_avg_pool2d = {.name = "adaptive_avg_pool2d",
                                                  .run = pool_run_adaptive,
                                                  .prepare = adaptive_avg_pool2d_prepare,
                                                  .end = pool_end,
                                                  .cost_base_ps = 250000,
                                                  .cost_element_ps = 500};
