/* Convolutions and transposed convolutions in tiles of places; each tile is a matrix product (conv_plan.h). */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/conv/conv_gather.h>
#include <kernels/cpu/conv/conv_library.h>
#include <kernels/cpu/conv/conv_scatter.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Tasks are divided among parts, each with its own buffers. The limit bounds the memory, and suffices for any team. */
#define PARTS_MAX 64
/* Multiply-adds that a part and a task should have at least. */
#define PART_WORK 5e5
#define TASK_WORK 4e6
/* Enough tasks for a team. With fewer tasks, the channels of the result are cut into blocks too, of at least
 * CHANNELS_LEAST. */
#define TASKS_GOOD 16
#define CHANNELS_LEAST 64

/* How our own products are cut, and the layout of the workspace. */
typedef struct tiling {
    int64_t phases, channels_block, blocks, places, tiles; /* for the first phase, the largest */
    int64_t tasks, parts;
    int64_t pack_grain; /* rows of weights; 0: they are not packed */
    size_t rows_at, columns_at, biases_at, weights_at, buffers_at;
    size_t columns_bytes, part_bytes;
} tiling;

#ifdef EDDY_HAVE_DNNL
typedef struct by_library {
    eddy_conv_library library;
    size_t turned_bytes; /* of reversed weights, at the start of the workspace; 0: none */
} by_library;
#else
typedef struct by_library {
    char nothing;
} by_library;
#endif

/* The plan of a call. */
typedef struct conv_plan {
    bool is_transposed;
    bool is_library;
    union {
        tiling tiles;
        by_library by;
    };
} conv_plan;

typedef struct convolution {
    const eddy_kernel_call *call;
    const tiling *cut;
    eddy_conv_plan plan;
    const eddy_op_view *bias;              /* NULL: none */
    int64_t *rows_before, *columns_before; /* taps of all phases before each phase; last: of all */
    char *biases, *weights, *buffers;
} convolution;

/* ---- the plan ---- */

static void see(eddy_conv_plan *plan, const eddy_kernel_call *call, bool is_transposed) {
    const eddy_op_view *views = call->views;
    (is_transposed ? eddy_conv_plan_transposed : eddy_conv_plan_forward)(
        plan, &views[0], &views[1], &views[3], call->attributes);
}

static const eddy_op_view *bias_of(const eddy_kernel_call *call) {
    return eddy_kernel_view_is_absent(&call->views[2]) ? NULL : &call->views[2];
}

static size_t take(size_t *bytes, size_t more) {
    size_t at = *bytes;
    *bytes += (more + 63) / 64 * 64;
    return at;
}

/* Whether the weights already have the layout of packed rows. */
static bool lies_as_rows(const eddy_conv_plan *plan) {
    const eddy_conv_weight *w = &plan->weight;
    int64_t channels = plan->from_channels, step = 1;
    bool is_last = eddy_conv_is_last(&plan->from);
    if (plan->is_transposed || w->dtype != plan->compute)
        return false;
    const int64_t dims[] = {channels, w->width, w->height, channels};
    const int64_t strides[] = {w->from_stride, w->column_stride, w->row_stride, w->from_stride};
    for (int i = is_last ? 0 : 1; i < (is_last ? 3 : 4); i++) {
        if (dims[i] > 1 && strides[i] != step)
            return false;
        step *= dims[i];
    }
    return plan->to_channels <= 1 || w->to_stride >= step;
}

static void choose_blocks(const eddy_conv_plan *plan, tiling *cut) {
    int64_t outer = plan->from.batch * plan->groups * cut->phases * cut->tiles;
    cut->channels_block = eddy_max_i64(1, plan->to_channels);
    cut->blocks = 1;
    double each = eddy_conv_plan_work(plan) / (double)eddy_max_i64(1, outer);
    while (outer * cut->blocks < TASKS_GOOD && each > 2 * TASK_WORK &&
           cut->channels_block >= 2 * CHANNELS_LEAST) {
        cut->channels_block = (cut->channels_block / 2 + 15) / 16 * 16;
        cut->blocks = (plan->to_channels + cut->channels_block - 1) / cut->channels_block;
        each /= 2;
    }
}

/* For a result that is not empty. */
static void cut_tiles(const eddy_conv_plan *plan, tiling *cut) {
    eddy_conv_axis rows, columns;
    eddy_conv_plan_phase(plan, 0, &rows, &columns);
    int64_t places = rows.count * columns.count;
    int64_t depth = plan->from_channels * (plan->weight.height / rows.tap_step + 1) *
                    (plan->weight.width / columns.tap_step + 1);
    cut->phases = plan->row_phases * plan->column_phases;
    cut->places = eddy_conv_tile_places(plan, places, depth);
    cut->tiles = (places + cut->places - 1) / cut->places;
    choose_blocks(plan, cut);
    cut->tasks = plan->from.batch * plan->groups * cut->phases * cut->blocks * cut->tiles;
    double parts = eddy_conv_plan_work(plan) / PART_WORK;
    cut->parts = eddy_min_i64(eddy_min_i64(PARTS_MAX, cut->tasks),
                              parts < PARTS_MAX ? 1 + (int64_t)parts : PARTS_MAX);
    int64_t weight_rows = plan->groups * plan->to_channels,
            pack_parts = eddy_min_i64(cut->parts, weight_rows);
    cut->pack_grain = lies_as_rows(plan) ? 0 : (weight_rows + pack_parts - 1) / pack_parts;
}

/* Lays out the workspace and returns its bytes. */
static size_t lay(const eddy_conv_plan *plan, bool has_bias, tiling *cut) {
    size_t bytes = (size_t)plan->bytes, needed = 0,
           weights = (size_t)eddy_conv_plan_weight_count(plan);
    int64_t depth = plan->from_channels * plan->weight.height * plan->weight.width;
    cut->columns_bytes = ((size_t)cut->places * (size_t)depth * bytes + 63) / 64 * 64;
    cut->part_bytes =
        cut->columns_bytes + ((size_t)(cut->places * cut->channels_block) * bytes + 63) / 64 * 64;
    cut->rows_at = take(&needed, (size_t)(plan->row_phases + 1) * sizeof(int64_t));
    cut->columns_at = take(&needed, (size_t)(plan->column_phases + 1) * sizeof(int64_t));
    cut->biases_at = take(&needed, has_bias ? (size_t)plan->to.channels * bytes : 0);
    cut->weights_at = take(&needed, cut->pack_grain > 0 ? weights * bytes : 0);
    cut->buffers_at = take(&needed, (size_t)cut->parts * cut->part_bytes);
    return needed;
}

/* ---- weights ---- */

static void count_taps(const convolution *work) {
    const eddy_conv_plan *plan = &work->plan;
    eddy_conv_axis rows, columns;
    work->rows_before[0] = work->columns_before[0] = 0;
    for (int64_t i = 0; i < plan->row_phases; i++) {
        eddy_conv_plan_phase(plan, i * plan->column_phases, &rows, &columns);
        work->rows_before[i + 1] = work->rows_before[i] + rows.tap_count;
    }
    for (int64_t i = 0; i < plan->column_phases; i++) {
        eddy_conv_plan_phase(plan, i, &rows, &columns);
        work->columns_before[i + 1] = work->columns_before[i] + columns.tap_count;
    }
}

/* A group's weights for a phase: rows of from_channels * taps elements, `stride` apart. */
static char *weights_of(const convolution *work, int64_t phase, int64_t group, int64_t *stride) {
    const eddy_conv_plan *plan = &work->plan;
    if (work->cut->pack_grain == 0) {
        *stride = eddy_max_i64(plan->from_channels * plan->weight.height * plan->weight.width,
                               plan->weight.to_stride);
        *stride = eddy_max_i64(1, *stride);
        return work->weights + group * plan->weight.group_stride * plan->bytes;
    }
    int64_t i = phase / plan->column_phases, j = phase % plan->column_phases;
    int64_t rows = work->rows_before[i + 1] - work->rows_before[i];
    int64_t columns = work->columns_before[j + 1] - work->columns_before[j];
    int64_t before = work->rows_before[i] * work->columns_before[plan->column_phases] +
                     rows * work->columns_before[j];
    int64_t all = plan->groups * plan->to_channels * plan->from_channels;
    *stride = eddy_max_i64(1, plan->from_channels * rows * columns);
    return work->weights +
           (before * all + group * plan->to_channels * plan->from_channels * rows * columns) *
               plan->bytes;
}

/* `begin` and `end` number the channels of the result, of all groups. */
static void pack_weights(void *context, int64_t begin, int64_t end) {
    const convolution *work = context;
    const eddy_conv_plan *plan = &work->plan;
    for (int64_t phase = 0; phase < work->cut->phases; phase++) {
        eddy_conv_axis rows, columns;
        eddy_conv_plan_phase(plan, phase, &rows, &columns);
        eddy_conv_row row = {.rows = &rows,
                             .columns = &columns,
                             .count = plan->from_channels,
                             .is_last = eddy_conv_is_last(&plan->from)};
        if (rows.tap_count * columns.tap_count == 0)
            continue;
        for (int64_t i = begin; i < end; i++) {
            int64_t stride;
            row.group = i / plan->to_channels;
            row.to = i % plan->to_channels;
            char *to = weights_of(work, phase, row.group, &stride);
            eddy_conv_row_load(plan, &row, to + row.to * stride * plan->bytes);
        }
    }
}

/* ---- tiles ---- */

/* Sets every place of the tile to its channel's bias. */
static void begin_tile(const convolution *work, const eddy_conv_tile *tile,
                       const eddy_conv_matrix *matrix) {
    const eddy_conv_plan *plan = &work->plan;
    char *bias = work->biases + tile->channel * plan->bytes, *to = matrix->data;
    int64_t lines = matrix->is_last ? tile->count : tile->channels,
            step = matrix->stride * plan->bytes;
    for (int64_t i = 0; i < lines; i++)
        if (matrix->is_last)
            memcpy(to + i * step, bias, (size_t)(tile->channels * plan->bytes));
        else
            eddy_chunk_fill(to + i * step, 1, plan->bytes, bias + i * plan->bytes, tile->count);
}

static void clear_tile(const convolution *work, const eddy_conv_tile *tile,
                       const eddy_conv_matrix *matrix) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t lines = matrix->is_last ? tile->count : tile->channels;
    int64_t width = matrix->is_last ? tile->channels : tile->count;
    for (int64_t i = 0; i < lines; i++)
        memset((char *)matrix->data + i * matrix->stride * plan->bytes, 0,
               (size_t)(width * plan->bytes));
}

/* `seen`: the input channels of the group, at the tile's places. `made`: the channels of the result that are computed. */
static void multiply_tile(const convolution *work, const eddy_conv_tile *seen,
                          const eddy_conv_tile *made, const char *weights, int64_t stride,
                          const eddy_conv_matrix *result, void *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t depth = seen->channels * seen->rows->tap_count * seen->columns->tap_count;
    if (work->bias)
        begin_tile(work, made, result);
    if (depth == 0) {
        if (!work->bias)
            clear_tile(work, made, result);
        return;
    }
    eddy_conv_matrix columns = eddy_conv_columns(seen, plan->compute, buffer);
    if (result->is_last)
        eddy_conv_multiply(work->call, plan, !columns.is_last, true, made->count, made->channels,
                           depth, columns.data, columns.stride, weights, stride, work->bias != NULL,
                           result->data, result->stride);
    else
        eddy_conv_multiply(work->call, plan, false, columns.is_last, made->channels, made->count,
                           depth, weights, stride, columns.data, columns.stride, work->bias != NULL,
                           result->data, result->stride);
}

static void run_task(const convolution *work, int64_t task, char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    const tiling *cut = work->cut;
    int64_t first = task % cut->tiles * cut->places, block = task / cut->tiles % cut->blocks;
    task /= cut->tiles * cut->blocks;
    int64_t phase = task % cut->phases, group = task / cut->phases % plan->groups;
    int64_t number = task / cut->phases / plan->groups;
    eddy_conv_axis rows, columns;
    eddy_conv_plan_phase(plan, phase, &rows, &columns);
    int64_t count = eddy_min_i64(cut->places, rows.count * columns.count - first);
    if (count <= 0)
        return;
    int64_t channel = block * cut->channels_block;
    eddy_conv_tile seen = {.image = &plan->from,
                           .rows = &rows,
                           .columns = &columns,
                           .number = number,
                           .first = first,
                           .count = count,
                           .channel = group * plan->from_channels,
                           .channels = plan->from_channels};
    eddy_conv_tile made = seen;
    made.image = &plan->to;
    made.channel = group * plan->to_channels + channel;
    made.channels = eddy_min_i64(cut->channels_block, plan->to_channels - channel);
    eddy_conv_matrix result;
    bool is_there = eddy_conv_places(&made, plan->compute, &result);
    if (!is_there)
        result = eddy_conv_buffer(&made, buffer + cut->columns_bytes);
    int64_t stride;
    const char *weights = weights_of(work, phase, group, &stride);
    multiply_tile(work, &seen, &made, weights + channel * stride * plan->bytes, stride, &result,
                  buffer);
    if (!is_there)
        eddy_conv_store(&made, plan->compute, &result);
}

static void conv_run_parts(void *context, int64_t begin, int64_t end) {
    const convolution *work = context;
    int64_t tasks = work->cut->tasks, parts = work->cut->parts;
    for (int64_t part = begin; part < end; part++)
        for (int64_t task = part * tasks / parts; task < (part + 1) * tasks / parts; task++)
            run_task(work, task, work->buffers + (size_t)part * work->cut->part_bytes);
}

/* ---- run functions ---- */

static void conv_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

static void conv_run_scatter(const eddy_kernel_call *call) {
    eddy_conv_plan plan;
    see(&plan, call, true);
    eddy_conv_scatter(call, &plan, bias_of(call));
}

/* Runs our own products, tile by tile. */
static void conv_run(const eddy_kernel_call *call) {
    const conv_plan *p = call->plan;
    const tiling *cut = &p->tiles;
    char *workspace = call->workspace;
    convolution work;
    work.call = call;
    see(&work.plan, call, p->is_transposed);
    const eddy_conv_plan *plan = &work.plan;
    work.cut = cut;
    work.bias = bias_of(call);
    work.rows_before = (int64_t *)(void *)(workspace + cut->rows_at);
    work.columns_before = (int64_t *)(void *)(workspace + cut->columns_at);
    work.biases = workspace + cut->biases_at;
    work.weights = cut->pack_grain > 0 ? workspace + cut->weights_at : plan->weight.data;
    work.buffers = workspace + cut->buffers_at;
    if (work.bias)
        eddy_chunk_load(plan->compute, work.biases, work.bias->dtype, work.bias->data,
                        work.bias->strides[0], plan->to.channels);
    int64_t rows = plan->groups * plan->to_channels;
    if (cut->pack_grain > 0)
        count_taps(&work);
    if (cut->pack_grain >= rows)
        pack_weights(&work, 0, rows);
    else if (cut->pack_grain > 0)
        call->team->parallel_for(call->team, rows, cut->pack_grain, pack_weights, &work);
    if (cut->parts > 1)
        call->team->parallel_for(call->team, cut->parts, 1, conv_run_parts, &work);
    else
        conv_run_parts(&work, 0, 1);
}

static void prepare_tiles(const eddy_kernel_call *call, const eddy_conv_plan *geometry,
                          eddy_kernel_plan *plan) {
    conv_plan *p = plan->memory;
    cut_tiles(geometry, &p->tiles);
    EDDY_ASSERT(p->tiles.tasks > 0);
    plan->workspace_bytes = lay(geometry, bias_of(call) != NULL, &p->tiles);
    if (eddy_gemm_start_within(geometry->compute, eddy_conv_plan_work(geometry)))
        plan->has_started_library = true;
}

#ifdef EDDY_HAVE_DNNL
/* The library's backward convolutions are slow for few channels; its forward ones are not. For few channels it therefore
 * pays to reverse the windows and to convolve forward. Backward is as fast for rows that fit the library's registers. */
#define CHANNELS_FEW 16
#define WIDTH_SHORT 32

static bool is_faster_forth(const eddy_conv_plan *plan) {
    int64_t from = plan->from_channels, least = eddy_min_i64(from, plan->to_channels);
    return plan->groups == 1 && plan->to.height <= plan->from.height &&
           plan->to.width <= plan->from.width &&
           (from < CHANNELS_FEW || (least <= CHANNELS_FEW && plan->to.width > WIDTH_SHORT));
}

static size_t turned_bytes(const eddy_conv_plan *plan) {
    size_t bytes = (size_t)eddy_conv_plan_weight_count(plan) * eddy_dtype_bytes(plan->weight.dtype);
    return (bytes + 63) / 64 * 64;
}

static eddy_conv_request request_of(const eddy_kernel_call *call, const eddy_conv_plan *plan) {
    return (eddy_conv_request){.plan = plan,
                               .direction =
                                   plan->is_transposed ? EDDY_CONV_DATA : EDDY_CONV_FORWARD,
                               .bias = bias_of(call),
                               .slices_most = INT64_MAX};
}

static void conv_run_library(const eddy_kernel_call *call) {
    const conv_plan *p = call->plan;
    const by_library *way = &p->by;
    eddy_conv_plan plan, turned;
    see(&plan, call, p->is_transposed);
    eddy_conv_request request = request_of(call, &plan);
    if (way->turned_bytes > 0) {
        (void)eddy_conv_plan_turn(&plan, &turned);
        turned.weight.data = call->workspace;
        eddy_conv_plan_turn_weights(&plan, &turned);
        request = request_of(call, &turned);
    }
    eddy_conv_library_run(&way->library, &request, call,
                          (char *)call->workspace + way->turned_bytes, NULL, 0);
}

static eddy_status prepare_library(const eddy_kernel_call *call, const eddy_conv_plan *geometry,
                                   eddy_kernel_plan *plan, bool is_winograd) {
    conv_plan *p = plan->memory;
    by_library *way = &p->by;
    eddy_conv_plan turned;
    bool turns = is_faster_forth(geometry) && eddy_conv_plan_turn(geometry, &turned);
    eddy_conv_request request = request_of(call, turns ? &turned : geometry);
    request.is_winograd = is_winograd;
    eddy_status status =
        eddy_conv_library_prepare(&way->library, &request, &plan->has_started_library);
    if (status != EDDY_OK)
        return status;
    p->is_library = true;
    way->turned_bytes = turns ? turned_bytes(geometry) : 0;
    plan->workspace_bytes = way->turned_bytes + way->library.workspace_bytes;
    plan->run = conv_run_library;
    return EDDY_OK;
}

static void conv_end(const void *plan) {
    const conv_plan *p = plan;
    if (p->is_library)
        eddy_conv_library_end(&p->by.library);
}

static bool is_winograd(const conv_plan *p) {
    return p->is_library && p->by.library.is_winograd;
}
#else
static eddy_status prepare_library(const eddy_kernel_call *call, const eddy_conv_plan *geometry,
                                   eddy_kernel_plan *plan, bool is_winograd) {
    (void)call;
    (void)geometry;
    (void)plan;
    (void)is_winograd;
    return EDDY_UNSUPPORTED;
}

static void conv_end(const void *plan) {
    (void)plan;
}

static bool is_winograd(const conv_plan *p) {
    (void)p;
    return false;
}
#endif

static bool has_result(const eddy_conv_plan *plan) {
    return plan->to.batch * plan->to.channels * plan->to.height * plan->to.width > 0;
}

/* is_fast: Winograd's algorithm where it serves. */
static eddy_status conv_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                bool is_transposed, bool is_fast) {
    conv_plan *p = plan->memory;
    eddy_conv_plan geometry;
    see(&geometry, call, is_transposed);
    p->is_transposed = is_transposed;
    p->is_library = false;
    plan->bytes = sizeof(*p);
    plan->cost_ps = eddy_conv_plan_cost(&geometry);
    if (!has_result(&geometry)) {
        plan->run = conv_run_nothing;
        return EDDY_OK;
    }
    if (eddy_conv_scatter_serves(&geometry)) {
        plan->run = conv_run_scatter;
        plan->workspace_bytes = eddy_conv_scatter_workspace(&geometry);
        return EDDY_OK;
    }
    eddy_status status = is_fast ? prepare_library(call, &geometry, plan, true) : EDDY_UNSUPPORTED;
    if (status == EDDY_UNSUPPORTED)
        status = prepare_library(call, &geometry, plan, false);
    if (status == EDDY_UNSUPPORTED)
        prepare_tiles(call, &geometry, plan);
    return status == EDDY_OUT_OF_MEMORY ? status : EDDY_OK;
}

static eddy_status conv2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return conv_prepare(call, plan, false, false);
}

static eddy_status conv2d_fast_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return conv_prepare(call, plan, false, true);
}

static eddy_status conv_transpose2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return conv_prepare(call, plan, true, false);
}

static eddy_status conv_transpose2d_fast_prepare(const eddy_kernel_call *call,
                                                 eddy_kernel_plan *plan) {
    return conv_prepare(call, plan, true, true);
}

static const char *fast_way(const void *plan) {
    return is_winograd(plan) ? "winograd" : "direct";
}

_Static_assert(sizeof(conv_plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan has room");

static const eddy_kernel conv2d_fast = {.name = "conv2d_fast",
                                        .run = conv_run,
                                        .prepare = conv2d_fast_prepare,
                                        .end = conv_end,
                                        .way = fast_way,
                                        .cost_base_ps = 500000,
                                        .cost_element_ps = 10000};
static const eddy_kernel conv_transpose2d_fast = {.name = "conv_transpose2d_fast",
                                                  .run = conv_run,
                                                  .prepare = conv_transpose2d_fast_prepare,
                                                  .end = conv_end,
                                                  .way = fast_way,
                                                  .cost_base_ps = 500000,
                                                  .cost_element_ps = 10000};

const eddy_kernel eddy_cpu_conv2d = {.name = "conv2d",
                                     .run = conv_run,
                                     .prepare = conv2d_prepare,
                                     .end = conv_end,
                                     .fast = &conv2d_fast,
                                     .cost_base_ps = 500000,
                                     .cost_element_ps = 10000};
const eddy_kernel eddy_cpu_conv_transpose2d = {.name = "conv_transpose2d",
                                               .run = conv_run,
                                               .prepare = conv_transpose2d_prepare,
                                               .end = conv_end,
                                               .fast = &conv_transpose2d_fast,
                                               .cost_base_ps = 500000,
                                               .cost_element_ps = 10000};
