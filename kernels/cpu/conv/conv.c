/* Convolutions and transposed ones: tiles of places, each a matrix product (conv_plan.h). */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/conv/conv_gather.h>
#include <kernels/cpu/conv/conv_library.h>
#include <kernels/cpu/conv/conv_scatter.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Parts that the tasks are dealt to, each with buffers of its own: bounds the memory, and suffices for any team. */
#define PARTS_MAX 64
/* Products that a part and a task should have at least. */
#define PART_WORK 5e5
#define TASK_WORK 4e6
/* Tasks that suffice for a team; with fewer, the channels of the result are cut too, but not below so many. */
#define TASKS_GOOD 16
#define CHANNELS_LEAST 64

typedef struct convolution {
    eddy_conv_plan plan;
    const eddy_op_view *bias;                              /* NULL: none */
    int64_t phases, channels_block, blocks, places, tiles; /* of the largest phase, the first */
    int64_t tasks, parts;
    bool packs_weight;
    char *workspace;
    int64_t *rows_before, *columns_before; /* taps of the phases before each, and of all */
    char *biases, *weights, *buffers;
    size_t columns_bytes, part_bytes, workspace_bytes;
} convolution;

/* ---- the plan ---- */

static size_t take(convolution *work, size_t bytes) {
    size_t at = work->workspace_bytes;
    work->workspace_bytes += (bytes + 63) / 64 * 64;
    return at;
}

/* Whether the weights lie as rows of columns already. */
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

static void choose_blocks(convolution *work) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t outer = plan->from.batch * plan->groups * work->phases * work->tiles;
    work->channels_block = eddy_max_i64(1, plan->to_channels);
    work->blocks = 1;
    double each = eddy_conv_plan_work(plan) / (double)eddy_max_i64(1, outer);
    while (outer * work->blocks < TASKS_GOOD && each > 2 * TASK_WORK && work->channels_block >= 2 * CHANNELS_LEAST) {
        work->channels_block = (work->channels_block / 2 + 15) / 16 * 16;
        work->blocks = (plan->to_channels + work->channels_block - 1) / work->channels_block;
        each /= 2;
    }
}

static void lay(convolution *work, const eddy_kernel_call *call) {
    const eddy_conv_plan *plan = &work->plan;
    size_t bytes = (size_t)plan->bytes, weights = (size_t)plan->groups * (size_t)plan->to_channels;
    weights *= (size_t)plan->from_channels * (size_t)plan->weight.height * (size_t)plan->weight.width;
    int64_t depth = plan->from_channels * plan->weight.height * plan->weight.width;
    work->columns_bytes = ((size_t)work->places * (size_t)depth * bytes + 63) / 64 * 64;
    work->part_bytes = work->columns_bytes + ((size_t)(work->places * work->channels_block) * bytes + 63) / 64 * 64;
    work->workspace = call->workspace;
    size_t rows = take(work, (size_t)(plan->row_phases + 1) * sizeof(int64_t));
    size_t columns = take(work, (size_t)(plan->column_phases + 1) * sizeof(int64_t));
    size_t biases = take(work, work->bias ? (size_t)plan->to.channels * bytes : 0);
    size_t packed = take(work, work->packs_weight ? weights * bytes : 0);
    size_t buffers = take(work, (size_t)work->parts * work->part_bytes);
    if (!call->workspace)
        return;
    work->rows_before = (int64_t *)(void *)(work->workspace + rows);
    work->columns_before = (int64_t *)(void *)(work->workspace + columns);
    work->biases = work->workspace + biases;
    work->weights = work->packs_weight ? work->workspace + packed : plan->weight.data;
    work->buffers = work->workspace + buffers;
}

static void conv_prepare(convolution *work, const eddy_kernel_call *call, bool is_transposed) {
    const eddy_op_view *views = call->views;
    eddy_conv_plan *plan = &work->plan;
    *work = (convolution){.bias = eddy_view_is_absent(&views[2]) ? NULL : &views[2]};
    if (is_transposed)
        eddy_conv_plan_transposed(plan, &views[0], &views[1], &views[3], call->attributes);
    else
        eddy_conv_plan_forward(plan, &views[0], &views[1], &views[3], call->attributes);
    work->phases = plan->row_phases * plan->column_phases;
    work->packs_weight = !lies_as_rows(plan);
    eddy_conv_axis rows, columns;
    eddy_conv_plan_phase(plan, 0, &rows, &columns);
    int64_t places = rows.count * columns.count;
    int64_t depth =
        plan->from_channels * (plan->weight.height / rows.tap_step + 1) * (plan->weight.width / columns.tap_step + 1);
    work->places = eddy_conv_tile_places(plan, places, depth);
    work->tiles = (places + work->places - 1) / work->places;
    choose_blocks(work);
    work->tasks = plan->from.batch * plan->groups * work->phases * work->blocks * work->tiles;
    if (plan->to_channels == 0)
        work->tasks = 0;
    double parts = eddy_conv_plan_work(plan) / PART_WORK;
    work->parts =
        eddy_min_i64(eddy_min_i64(PARTS_MAX, work->tasks), parts < PARTS_MAX ? 1 + (int64_t)parts : PARTS_MAX);
    lay(work, call);
}

/* ---- weights ---- */

static void count_taps(convolution *work) {
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

/* A group's weights of a phase: rows of from_channels * taps numbers, `stride` apart. */
static char *weights_of(const convolution *work, int64_t phase, int64_t group, int64_t *stride) {
    const eddy_conv_plan *plan = &work->plan;
    if (!work->packs_weight) {
        *stride = eddy_max_i64(plan->from_channels * plan->weight.height * plan->weight.width, plan->weight.to_stride);
        *stride = eddy_max_i64(1, *stride);
        return work->weights + group * plan->weight.group_stride * plan->bytes;
    }
    int64_t i = phase / plan->column_phases, j = phase % plan->column_phases;
    int64_t rows = work->rows_before[i + 1] - work->rows_before[i];
    int64_t columns = work->columns_before[j + 1] - work->columns_before[j];
    int64_t before = work->rows_before[i] * work->columns_before[plan->column_phases] + rows * work->columns_before[j];
    int64_t all = plan->groups * plan->to_channels * plan->from_channels;
    *stride = eddy_max_i64(1, plan->from_channels * rows * columns);
    return work->weights +
           (before * all + group * plan->to_channels * plan->from_channels * rows * columns) * plan->bytes;
}

/* Rows are channels of the result, of all groups. */
static void pack_weights(void *context, int64_t begin, int64_t end) {
    const convolution *work = context;
    const eddy_conv_plan *plan = &work->plan;
    for (int64_t phase = 0; phase < work->phases; phase++) {
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

/* Every place of the tile gets its channel's bias. */
static void begin_tile(const convolution *work, const eddy_conv_tile *tile, const eddy_conv_matrix *matrix) {
    const eddy_conv_plan *plan = &work->plan;
    char *bias = work->biases + tile->channel * plan->bytes, *to = matrix->data;
    int64_t lines = matrix->is_last ? tile->count : tile->channels, step = matrix->stride * plan->bytes;
    for (int64_t i = 0; i < lines; i++)
        if (matrix->is_last)
            memcpy(to + i * step, bias, (size_t)(tile->channels * plan->bytes));
        else
            eddy_chunk_fill(to + i * step, 1, plan->bytes, bias + i * plan->bytes, tile->count);
}

static void clear_tile(const convolution *work, const eddy_conv_tile *tile, const eddy_conv_matrix *matrix) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t lines = matrix->is_last ? tile->count : tile->channels;
    int64_t width = matrix->is_last ? tile->channels : tile->count;
    for (int64_t i = 0; i < lines; i++)
        memset((char *)matrix->data + i * matrix->stride * plan->bytes, 0, (size_t)(width * plan->bytes));
}

/* `seen` are the input's channels of the group at the tile's places, `made` is what becomes of them. */
static void multiply_tile(const convolution *work, const eddy_conv_tile *seen, const eddy_conv_tile *made,
                          const char *weights, int64_t stride, const eddy_conv_matrix *result, void *buffer) {
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
        eddy_conv_multiply(plan, !columns.is_last, true, made->count, made->channels, depth, columns.data,
                           columns.stride, weights, stride, work->bias != NULL, result->data, result->stride);
    else
        eddy_conv_multiply(plan, false, columns.is_last, made->channels, made->count, depth, weights, stride,
                           columns.data, columns.stride, work->bias != NULL, result->data, result->stride);
}

static void run_task(const convolution *work, int64_t task, char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t first = task % work->tiles * work->places, block = task / work->tiles % work->blocks;
    task /= work->tiles * work->blocks;
    int64_t phase = task % work->phases, group = task / work->phases % plan->groups;
    int64_t number = task / work->phases / plan->groups;
    eddy_conv_axis rows, columns;
    eddy_conv_plan_phase(plan, phase, &rows, &columns);
    int64_t count = eddy_min_i64(work->places, rows.count * columns.count - first);
    if (count <= 0)
        return;
    int64_t channel = block * work->channels_block;
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
    made.channels = eddy_min_i64(work->channels_block, plan->to_channels - channel);
    eddy_conv_matrix result;
    bool is_there = eddy_conv_places(&made, plan->compute, &result);
    if (!is_there)
        result = eddy_conv_buffer(&made, buffer + work->columns_bytes);
    int64_t stride;
    const char *weights = weights_of(work, phase, group, &stride);
    multiply_tile(work, &seen, &made, weights + channel * stride * plan->bytes, stride, &result, buffer);
    if (!is_there)
        eddy_conv_store(&made, plan->compute, &result);
}

static void conv_run_parts(void *context, int64_t begin, int64_t end) {
    const convolution *work = context;
    for (int64_t part = begin; part < end; part++)
        for (int64_t task = part * work->tasks / work->parts; task < (part + 1) * work->tasks / work->parts; task++)
            run_task(work, task, work->buffers + (size_t)part * work->part_bytes);
}

static size_t own_workspace(const convolution *work) {
    return eddy_conv_scatter_serves(&work->plan) ? eddy_conv_scatter_workspace(&work->plan) : work->workspace_bytes;
}

#ifdef EDDY_HAVE_DNNL
/* The library's ways back are slow for few channels, its ways forth are not: turning the windows round is worth it for those. Rows
 * that fit its registers it does as well back. */
#define CHANNELS_FEW 16
#define WIDTH_SHORT 32

static bool is_faster_forth(const eddy_conv_plan *plan) {
    int64_t from = plan->from_channels, least = eddy_min_i64(from, plan->to_channels);
    return plan->groups == 1 && plan->to.height <= plan->from.height && plan->to.width <= plan->from.width &&
           (from < CHANNELS_FEW || (least <= CHANNELS_FEW && plan->to.width > WIDTH_SHORT));
}

typedef struct asked {
    eddy_conv_plan plan;
    size_t weight_bytes; /* of what is turned, the first of the workspace; 0: nothing is */
} asked;

static eddy_conv_direction ask(const eddy_conv_plan *plan, asked *what) {
    *what = (asked){.weight_bytes = 0};
    if (is_faster_forth(plan) && eddy_conv_plan_turn(plan, &what->plan))
        what->weight_bytes =
            ((size_t)eddy_conv_plan_weight_count(plan) * eddy_dtype_bytes(plan->weight.dtype) + 63) / 64 * 64;
    else
        what->plan = *plan;
    return what->plan.is_transposed ? EDDY_CONV_DATA : EDDY_CONV_FORWARD;
}

static bool begin_library(eddy_conv_library *library, const convolution *work, asked *what) {
    eddy_conv_direction direction = ask(&work->plan, what);
    return eddy_conv_library_begin(library, &what->plan, direction, work->bias, INT64_MAX);
}

static bool conv_run_library(const eddy_kernel_call *call, const convolution *work) {
    eddy_conv_library library;
    asked what;
    if (!begin_library(&library, work, &what))
        return false;
    /* What could not be prepared where the op was issued may be now. */
    bool is_done = what.weight_bytes + library.workspace_bytes <= call->workspace_bytes;
    char *workspace = call->workspace;
    if (is_done && what.weight_bytes > 0) {
        what.plan.weight.data = workspace;
        eddy_conv_plan_turn_weights(&work->plan, &what.plan);
    }
    is_done = is_done && eddy_conv_library_run(&library, call->team, workspace + what.weight_bytes, NULL, 0);
    eddy_conv_library_end(&library);
    return is_done;
}

/* Enough for either way. */
static size_t conv_workspace_of(const convolution *work) {
    eddy_conv_library library;
    asked what;
    size_t bytes = own_workspace(work);
    if (!eddy_conv_scatter_serves(&work->plan) && begin_library(&library, work, &what)) {
        if (what.weight_bytes + library.workspace_bytes > bytes)
            bytes = what.weight_bytes + library.workspace_bytes;
        eddy_conv_library_end(&library);
    }
    return bytes;
}

static bool conv_start_library(const eddy_conv_plan *plan) {
    asked what;
    eddy_conv_direction direction = ask(plan, &what);
    return eddy_conv_library_start(&what.plan, direction);
}
#else
static bool conv_run_library(const eddy_kernel_call *call, const convolution *work) {
    (void)call;
    (void)work;
    return false;
}

static size_t conv_workspace_of(const convolution *work) {
    return own_workspace(work);
}

static bool conv_start_library(const eddy_conv_plan *plan) {
    (void)plan;
    return false;
}
#endif

static void conv_run(const eddy_kernel_call *call, bool is_transposed) {
    convolution work;
    conv_prepare(&work, call, is_transposed);
    const eddy_conv_plan *plan = &work.plan;
    if (work.tasks == 0)
        return;
    if (eddy_conv_scatter_serves(plan)) {
        eddy_conv_scatter(plan, work.bias, call->workspace);
        return;
    }
    if (conv_run_library(call, &work))
        return;
    if (work.bias)
        eddy_chunk_load(plan->compute, work.biases, work.bias->dtype, work.bias->data, work.bias->strides[0],
                        plan->to.channels);
    if (work.packs_weight) {
        int64_t count = plan->groups * plan->to_channels, parts = eddy_min_i64(work.parts, count);
        count_taps(&work);
        if (parts > 1)
            call->team->parallel_for(call->team, count, (count + parts - 1) / parts, pack_weights, &work);
        else
            pack_weights(&work, 0, count);
    }
    if (work.parts > 1)
        call->team->parallel_for(call->team, work.parts, 1, conv_run_parts, &work);
    else
        conv_run_parts(&work, 0, 1);
}

static void conv2d_run(const eddy_kernel_call *call) {
    conv_run(call, false);
}

static void conv_transpose2d_run(const eddy_kernel_call *call) {
    conv_run(call, true);
}

static size_t conv2d_workspace(const eddy_kernel_call *call) {
    convolution work;
    conv_prepare(&work, call, false);
    return conv_workspace_of(&work);
}

static size_t conv_transpose2d_workspace(const eddy_kernel_call *call) {
    convolution work;
    conv_prepare(&work, call, true);
    return conv_workspace_of(&work);
}

static int64_t conv2d_cost(const eddy_kernel_call *call) {
    eddy_conv_plan plan;
    eddy_conv_plan_forward(&plan, &call->views[0], &call->views[1], &call->views[3], call->attributes);
    return eddy_conv_plan_cost(&plan);
}

static int64_t conv_transpose2d_cost(const eddy_kernel_call *call) {
    eddy_conv_plan plan;
    eddy_conv_plan_transposed(&plan, &call->views[0], &call->views[1], &call->views[3], call->attributes);
    return eddy_conv_plan_cost(&plan);
}

static bool conv2d_start(const eddy_kernel_call *call) {
    eddy_conv_plan plan;
    eddy_conv_plan_forward(&plan, &call->views[0], &call->views[1], &call->views[3], call->attributes);
    return conv_start_library(&plan);
}

static bool conv_transpose2d_start(const eddy_kernel_call *call) {
    eddy_conv_plan plan;
    eddy_conv_plan_transposed(&plan, &call->views[0], &call->views[1], &call->views[3], call->attributes);
    return !eddy_conv_scatter_serves(&plan) && conv_start_library(&plan);
}

const eddy_kernel eddy_cpu_conv2d = {.name = "conv2d",
                                     .run = conv2d_run,
                                     .workspace = conv2d_workspace,
                                     .cost_base_ps = 500000,
                                     .cost_element_ps = 10000,
                                     .cost = conv2d_cost,
                                     .start = conv2d_start};
const eddy_kernel eddy_cpu_conv_transpose2d = {.name = "conv_transpose2d",
                                               .run = conv_transpose2d_run,
                                               .workspace = conv_transpose2d_workspace,
                                               .cost_base_ps = 500000,
                                               .cost_element_ps = 10000,
                                               .cost = conv_transpose2d_cost,
                                               .start = conv_transpose2d_start};
