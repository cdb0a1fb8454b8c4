/* The gradient of a convolution's weight: for each group the product of its gradient, [channels, places], with the columns
 * that its windows saw. Sums over images and tiles are cut into chunks by shape alone, added up in their order. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/conv/conv_gather.h>
#include <kernels/cpu/conv/conv_library.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define PARTS_MAX 64
#define PART_WORK 5e5
/* Products that a chunk should have at least, and what all chunks' sums may take. */
#define CHUNK_WORK 2e6
#define SUMS_BYTES (32 << 20)
#define LIBRARY_CHUNKS 16
/* Numbers in a column. */
#define DEPTH 512

typedef struct weighing {
    eddy_conv_plan plan; /* of the convolution: to is the gradient */
    eddy_conv_axis rows, columns;
    bool is_last;
    int64_t taps, channels_block, blocks; /* of the input's channels */
    int64_t places, tiles, units, chunks; /* a unit is a tile of an image */
    int64_t tasks, parts;
    size_t sums_bytes; /* of a chunk */
    char *sums, *buffers;
    size_t columns_bytes, part_bytes, workspace_bytes;
} weighing;

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/* Chunks of `units`, where so many at most suffice. */
static int64_t chunks_of(const weighing *work, int64_t units, int64_t most) {
    double products = eddy_conv_plan_work(&work->plan);
    int64_t chunks = eddy_min_i64(units, most);
    chunks = eddy_min_i64(chunks, products < CHUNK_WORK * PARTS_MAX ? (int64_t)(products / CHUNK_WORK) : PARTS_MAX);
    return eddy_max_i64(1, eddy_min_i64(chunks, SUMS_BYTES / (int64_t)(work->sums_bytes + 1)));
}

/* views: grad, x, dweight */
static void conv_weight_prepare(weighing *work, const eddy_kernel_call *call) {
    const eddy_op_view *views = call->views;
    eddy_conv_plan *plan = &work->plan;
    *work = (weighing){0};
    eddy_conv_plan_forward(plan, &views[1], &views[2], &views[0], call->attributes);
    eddy_conv_plan_phase(plan, 0, &work->rows, &work->columns);
    work->is_last = eddy_conv_is_last(&plan->from);
    work->taps = plan->weight.height * plan->weight.width;
    work->channels_block = eddy_max_i64(1, eddy_min_i64(plan->from_channels, DEPTH / work->taps));
    work->blocks = (plan->from_channels + work->channels_block - 1) / work->channels_block;
    int64_t places = plan->to.height * plan->to.width;
    work->places = eddy_conv_tile_places(plan, places, work->channels_block * work->taps);
    work->tiles = (places + work->places - 1) / work->places;
    work->units = plan->from.batch * work->tiles;
    work->sums_bytes =
        rounded((size_t)(plan->groups * plan->to_channels * plan->from_channels * work->taps * plan->bytes));
    work->chunks = chunks_of(work, work->units, PARTS_MAX / eddy_max_i64(1, plan->groups * work->blocks));
    work->tasks = work->chunks * plan->groups * work->blocks;
    double parts = eddy_conv_plan_work(plan) / PART_WORK;
    work->parts =
        eddy_min_i64(eddy_min_i64(PARTS_MAX, work->tasks), parts < PARTS_MAX ? 1 + (int64_t)parts : PARTS_MAX);
    work->columns_bytes = rounded((size_t)(work->places * work->channels_block * work->taps * plan->bytes));
    work->part_bytes = work->columns_bytes + rounded((size_t)(work->places * plan->to_channels * plan->bytes));
    work->sums = call->workspace;
    work->workspace_bytes = (size_t)work->chunks * work->sums_bytes;
    if (call->workspace)
        work->buffers = (char *)call->workspace + work->workspace_bytes;
    work->workspace_bytes += (size_t)work->parts * work->part_bytes;
}

/* Numbers in a chunk's sums before those of a group and a block: rows of the block's channels times taps each. */
static int64_t sums_before(const weighing *work, int64_t group, int64_t block) {
    const eddy_conv_plan *plan = &work->plan;
    return (group * plan->from_channels + block * work->channels_block) * plan->to_channels * work->taps;
}

static int64_t channels_of(const weighing *work, int64_t block) {
    return eddy_min_i64(work->channels_block, work->plan.from_channels - block * work->channels_block);
}

static void add_unit(const weighing *work, int64_t unit, int64_t group, int64_t block, bool adds, void *sums,
                     char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t first = unit % work->tiles * work->places;
    eddy_conv_tile seen = {.image = &plan->from,
                           .rows = &work->rows,
                           .columns = &work->columns,
                           .number = unit / work->tiles,
                           .first = first,
                           .count = eddy_min_i64(work->places, plan->to.height * plan->to.width - first),
                           .channel = group * plan->from_channels + block * work->channels_block,
                           .channels = channels_of(work, block)};
    eddy_conv_tile made = seen;
    made.image = &plan->to;
    made.channel = group * plan->to_channels;
    made.channels = plan->to_channels;
    eddy_conv_matrix columns = eddy_conv_columns(&seen, plan->compute, buffer), grad;
    if (!eddy_conv_places(&made, plan->compute, &grad)) {
        grad = eddy_conv_buffer(&made, buffer + work->columns_bytes);
        eddy_conv_load(&made, plan->compute, &grad);
    }
    int64_t depth = seen.channels * work->taps;
    eddy_conv_multiply(plan, grad.is_last, !columns.is_last, made.channels, depth, seen.count, grad.data, grad.stride,
                       columns.data, columns.stride, adds, sums, depth);
}

static void run_task(const weighing *work, int64_t task, char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t block = task % work->blocks, group = task / work->blocks % plan->groups;
    int64_t chunk = task / work->blocks / plan->groups;
    int64_t begin = chunk * work->units / work->chunks, end = (chunk + 1) * work->units / work->chunks;
    char *sums = work->sums + (size_t)chunk * work->sums_bytes + sums_before(work, group, block) * plan->bytes;
    if (begin == end)
        memset(sums, 0, (size_t)(channels_of(work, block) * plan->to_channels * work->taps * plan->bytes));
    for (int64_t unit = begin; unit < end; unit++)
        add_unit(work, unit, group, block, unit > begin, sums, buffer);
}

static void conv_weight_run_parts(void *context, int64_t begin, int64_t end) {
    const weighing *work = context;
    for (int64_t part = begin; part < end; part++)
        for (int64_t task = part * work->tasks / work->parts; task < (part + 1) * work->tasks / work->parts; task++)
            run_task(work, task, work->buffers + (size_t)part * work->part_bytes);
}

#define ADD(name, real)                                                                                                \
    static void add_##name(real *restrict to, const real *restrict from, int64_t count) {                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] += from[i];                                                                                          \
    }
ADD(f32, float)
ADD(f64, double)

/* Rows of weights, numbered by group, block and channel of the result: adds the chunks up in the first and stores it. */
static void finish_rows(void *context, int64_t begin, int64_t end) {
    const weighing *work = context;
    const eddy_conv_plan *plan = &work->plan;
    for (int64_t i = begin; i < end; i++) {
        int64_t to = i % plan->to_channels, block = i / plan->to_channels % work->blocks;
        eddy_conv_row row = {.rows = &work->rows,
                             .columns = &work->columns,
                             .group = i / plan->to_channels / work->blocks,
                             .to = to,
                             .from = block * work->channels_block,
                             .count = channels_of(work, block),
                             .is_last = work->is_last};
        int64_t width = row.count * work->taps;
        char *sums = work->sums + (sums_before(work, row.group, block) + to * width) * plan->bytes;
        for (int64_t chunk = 1; chunk < work->chunks; chunk++) {
            void *more = sums + (size_t)chunk * work->sums_bytes;
            if (plan->compute == EDDY_F64)
                add_f64((double *)(void *)sums, more, width);
            else
                add_f32((float *)(void *)sums, more, width);
        }
        eddy_conv_row_store(plan, &row, sums);
    }
}

#ifdef EDDY_HAVE_DNNL
static bool begin_library(eddy_conv_library *library, const weighing *work) {
    return eddy_conv_library_begin(library, &work->plan, EDDY_CONV_WEIGHT, NULL,
                                   chunks_of(work, work->plan.from.batch * work->plan.to.height, LIBRARY_CHUNKS));
}

/* Sums of whole weights, row-major: one block. */
static bool conv_weight_run_library(const eddy_kernel_call *call, weighing *work) {
    eddy_conv_library library;
    if (!begin_library(&library, work))
        return false;
    size_t sums_bytes = (size_t)library.cut.slices * work->sums_bytes;
    /* What could not be prepared where the op was issued may be now. */
    bool is_done = sums_bytes + library.workspace_bytes <= call->workspace_bytes &&
                   eddy_conv_library_run(&library, call->team, work->sums + sums_bytes, work->sums, work->sums_bytes);
    if (is_done) {
        work->chunks = library.cut.slices;
        work->blocks = 1;
        work->channels_block = work->plan.from_channels;
        work->is_last = false;
    }
    eddy_conv_library_end(&library);
    return is_done;
}

/* Enough for either way. */
static size_t conv_weight_workspace_of(const weighing *work) {
    eddy_conv_library library;
    size_t bytes = work->workspace_bytes, more;
    if (begin_library(&library, work)) {
        more = (size_t)library.cut.slices * work->sums_bytes + library.workspace_bytes;
        bytes = more > bytes ? more : bytes;
        eddy_conv_library_end(&library);
    }
    return bytes;
}

static bool conv_weight_start_library(const eddy_conv_plan *plan) {
    return eddy_conv_library_start(plan, EDDY_CONV_WEIGHT);
}
#else
static bool conv_weight_run_library(const eddy_kernel_call *call, weighing *work) {
    (void)call;
    (void)work;
    return false;
}

static size_t conv_weight_workspace_of(const weighing *work) {
    return work->workspace_bytes;
}

static bool conv_weight_start_library(const eddy_conv_plan *plan) {
    (void)plan;
    return false;
}
#endif

static void conv_weight_run(const eddy_kernel_call *call) {
    weighing work;
    conv_weight_prepare(&work, call);
    if (work.tasks == 0 || work.plan.to_channels == 0)
        return;
    if (!conv_weight_run_library(call, &work)) {
        if (work.parts > 1)
            call->team->parallel_for(call->team, work.parts, 1, conv_weight_run_parts, &work);
        else
            conv_weight_run_parts(&work, 0, 1);
    }
    int64_t rows = work.plan.groups * work.blocks * work.plan.to_channels;
    int64_t width = work.channels_block * work.taps * work.chunks, grain = eddy_max_i64(1, 65536 / width);
    if (rows > grain)
        call->team->parallel_for(call->team, rows, grain, finish_rows, &work);
    else
        finish_rows(&work, 0, rows);
}

static size_t conv_weight_workspace(const eddy_kernel_call *call) {
    weighing work;
    conv_weight_prepare(&work, call);
    return conv_weight_workspace_of(&work);
}

static int64_t conv_weight_cost(const eddy_kernel_call *call) {
    const eddy_op_view *views = call->views;
    eddy_conv_plan plan;
    eddy_conv_plan_forward(&plan, &views[1], &views[2], &views[0], call->attributes);
    return eddy_conv_plan_cost(&plan);
}

static bool conv_weight_start(const eddy_kernel_call *call) {
    const eddy_op_view *views = call->views;
    eddy_conv_plan plan;
    eddy_conv_plan_forward(&plan, &views[1], &views[2], &views[0], call->attributes);
    return conv_weight_start_library(&plan);
}

const eddy_kernel eddy_cpu_conv2d_backward_weight = {.name = "conv2d_backward_weight",
                                                     .run = conv_weight_run,
                                                     .workspace = conv_weight_workspace,
                                                     .cost_base_ps = 500000,
                                                     .cost_element_ps = 10000,
                                                     .cost = conv_weight_cost,
                                                     .start = conv_weight_start};
