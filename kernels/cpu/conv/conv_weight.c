/* The gradient of a convolution's weight. For each group, it is the product of the output's gradient, [channels, places],
 * with the columns that the windows read. The sum over images and tiles is cut into chunks by shape alone, and the chunks
 * are added up in order. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/conv/conv_gather.h>
#include <kernels/cpu/conv/conv_library.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/gemm.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define PARTS_MAX 64
#define PART_WORK 5e5
/* Multiply-adds that a chunk should have at least, and bytes that the sums of all chunks may take. */
#define CHUNK_WORK 2e6
#define SUMS_BYTES (32 << 20)
#define LIBRARY_CHUNKS 16
/* Elements of a column, at most. */
#define DEPTH 512

/* How the places and the sums are cut. */
typedef struct tiling {
    int64_t places, tiles, units; /* a unit is a tile of an image */
    int64_t tasks, parts;
    size_t columns_bytes, part_bytes;
} tiling;

/* The plan of a call. */
typedef struct weight_plan {
    bool is_library;
    bool is_last; /* order of a row of weights in the sums (eddy_conv_row) */
    int64_t channels_block, blocks, chunks; /* channels of the input */
    size_t sums_bytes;       /* of a chunk; all chunks' sums are first in the workspace */
    int64_t rows, row_grain; /* of weights, one for each block */
    union {
        tiling tiles;
#ifdef EDDY_HAVE_DNNL
        eddy_conv_library library;
#endif
    };
} weight_plan;

typedef struct weighing {
    const eddy_kernel_call *call;
    const weight_plan *is;
    eddy_conv_plan plan; /* of the forward convolution; plan.to is the gradient */
    eddy_conv_axis rows, columns;
    int64_t taps;
    char *sums, *buffers;
} weighing;

/* views: grad, x, dweight */
static void see(eddy_conv_plan *plan, const eddy_kernel_call *call) {
    const eddy_op_view *views = call->views;
    eddy_conv_plan_forward(plan, &views[1], &views[2], &views[0], call->attributes);
}

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

static int64_t taps_of(const eddy_conv_plan *plan) {
    return plan->weight.height * plan->weight.width;
}

static size_t sums_bytes_of(const eddy_conv_plan *plan) {
    return rounded((size_t)(eddy_conv_plan_weight_count(plan) * plan->bytes));
}

/* The number of chunks of `units`, at most `most`. */
static int64_t chunks_of(const eddy_conv_plan *plan, int64_t units, int64_t most) {
    double products = eddy_conv_plan_work(plan);
    int64_t chunks = eddy_min_i64(units, most);
    chunks = eddy_min_i64(
        chunks, products < CHUNK_WORK * PARTS_MAX ? (int64_t)(products / CHUNK_WORK) : PARTS_MAX);
    return eddy_max_i64(1, eddy_min_i64(chunks, SUMS_BYTES / (int64_t)(sums_bytes_of(plan) + 1)));
}

static void cut_tiles(const eddy_conv_plan *plan, weight_plan *p) {
    tiling *cut = &p->tiles;
    int64_t taps = taps_of(plan), places = plan->to.height * plan->to.width;
    p->is_last = eddy_conv_is_last(&plan->from);
    p->channels_block = eddy_max_i64(1, eddy_min_i64(plan->from_channels, DEPTH / taps));
    p->blocks = (plan->from_channels + p->channels_block - 1) / p->channels_block;
    cut->places = eddy_conv_tile_places(plan, places, p->channels_block * taps);
    cut->tiles = (places + cut->places - 1) / cut->places;
    cut->units = plan->from.batch * cut->tiles;
    p->chunks = chunks_of(plan, cut->units, PARTS_MAX / eddy_max_i64(1, plan->groups * p->blocks));
    cut->tasks = p->chunks * plan->groups * p->blocks;
    double parts = eddy_conv_plan_work(plan) / PART_WORK;
    cut->parts = eddy_min_i64(eddy_min_i64(PARTS_MAX, cut->tasks),
                              parts < PARTS_MAX ? 1 + (int64_t)parts : PARTS_MAX);
    cut->columns_bytes = rounded((size_t)(cut->places * p->channels_block * taps * plan->bytes));
    cut->part_bytes =
        cut->columns_bytes + rounded((size_t)(cut->places * plan->to_channels * plan->bytes));
}

/* Offset in a chunk's sums of a group's block, in elements: one row of the block's channels times the taps for each
 * channel of the result. */
static int64_t sums_before(const weighing *work, int64_t group, int64_t block) {
    const eddy_conv_plan *plan = &work->plan;
    return (group * plan->from_channels + block * work->is->channels_block) * plan->to_channels *
           work->taps;
}

static int64_t channels_of(const weighing *work, int64_t block) {
    int64_t most = work->is->channels_block;
    return eddy_min_i64(most, work->plan.from_channels - block * most);
}

static void add_unit(const weighing *work, int64_t unit, int64_t group, int64_t block, bool adds,
                     void *sums, char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    const tiling *cut = &work->is->tiles;
    int64_t first = unit % cut->tiles * cut->places;
    eddy_conv_tile seen = {
        .image = &plan->from,
        .rows = &work->rows,
        .columns = &work->columns,
        .number = unit / cut->tiles,
        .first = first,
        .count = eddy_min_i64(cut->places, plan->to.height * plan->to.width - first),
        .channel = group * plan->from_channels + block * work->is->channels_block,
        .channels = channels_of(work, block)};
    eddy_conv_tile made = seen;
    made.image = &plan->to;
    made.channel = group * plan->to_channels;
    made.channels = plan->to_channels;
    eddy_conv_matrix columns = eddy_conv_columns(&seen, plan->compute, buffer), grad;
    if (!eddy_conv_places(&made, plan->compute, &grad)) {
        grad = eddy_conv_buffer(&made, buffer + cut->columns_bytes);
        eddy_conv_load(&made, plan->compute, &grad);
    }
    int64_t depth = seen.channels * work->taps;
    eddy_conv_multiply(work->call, plan, grad.is_last, !columns.is_last, made.channels, depth,
                       seen.count, grad.data, grad.stride, columns.data, columns.stride, adds, sums,
                       depth);
}

static void run_task(const weighing *work, int64_t task, char *buffer) {
    const eddy_conv_plan *plan = &work->plan;
    int64_t blocks = work->is->blocks, units = work->is->tiles.units, chunks = work->is->chunks;
    int64_t block = task % blocks, group = task / blocks % plan->groups,
            chunk = task / blocks / plan->groups;
    int64_t begin = chunk * units / chunks, end = (chunk + 1) * units / chunks;
    char *sums = work->sums + (size_t)chunk * work->is->sums_bytes +
                 sums_before(work, group, block) * plan->bytes;
    if (begin == end)
        memset(sums, 0,
               (size_t)(channels_of(work, block) * plan->to_channels * work->taps * plan->bytes));
    for (int64_t unit = begin; unit < end; unit++)
        add_unit(work, unit, group, block, unit > begin, sums, buffer);
}

static void conv_weight_run_parts(void *context, int64_t begin, int64_t end) {
    const weighing *work = context;
    int64_t tasks = work->is->tiles.tasks, parts = work->is->tiles.parts;
    for (int64_t part = begin; part < end; part++)
        for (int64_t task = part * tasks / parts; task < (part + 1) * tasks / parts; task++)
            run_task(work, task, work->buffers + (size_t)part * work->is->tiles.part_bytes);
}

#define ADD(name, real)                                                                            \
    static void add_##name(real *restrict to, const real *restrict from, int64_t count) {          \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i] += from[i];                                                                      \
    }
ADD(f32, float)
ADD(f64, double)

/* Rows of weights, numbered by group, block and channel of the result. Adds all chunks to the first one and stores it. */
static void finish_rows(void *context, int64_t begin, int64_t end) {
    const weighing *work = context;
    const eddy_conv_plan *plan = &work->plan;
    const weight_plan *is = work->is;
    for (int64_t i = begin; i < end; i++) {
        int64_t to = i % plan->to_channels, block = i / plan->to_channels % is->blocks;
        eddy_conv_row row = {.rows = &work->rows,
                             .columns = &work->columns,
                             .group = i / plan->to_channels / is->blocks,
                             .to = to,
                             .from = block * is->channels_block,
                             .count = channels_of(work, block),
                             .is_last = is->is_last};
        int64_t width = row.count * work->taps;
        char *sums = work->sums + (sums_before(work, row.group, block) + to * width) * plan->bytes;
        for (int64_t chunk = 1; chunk < is->chunks; chunk++) {
            void *more = sums + (size_t)chunk * is->sums_bytes;
            if (plan->compute == EDDY_F64)
                add_f64((double *)(void *)sums, more, width);
            else
                add_f32((float *)(void *)sums, more, width);
        }
        eddy_conv_row_store(plan, &row, sums);
    }
}

static void begin(weighing *work, const eddy_kernel_call *call) {
    work->call = call;
    work->is = call->plan;
    see(&work->plan, call);
    eddy_conv_plan_phase(&work->plan, 0, &work->rows, &work->columns);
    work->taps = taps_of(&work->plan);
    work->sums = call->workspace;
    work->buffers = work->sums + (size_t)work->is->chunks * work->is->sums_bytes;
}

static void finish(weighing *work, eddy_kernel_team *team) {
    int64_t rows = work->is->rows, grain = work->is->row_grain;
    if (rows > grain)
        team->parallel_for(team, rows, grain, finish_rows, work);
    else
        finish_rows(work, 0, rows);
}

static void conv_weight_run(const eddy_kernel_call *call) {
    weighing work;
    begin(&work, call);
    int64_t parts = work.is->tiles.parts;
    if (parts > 1)
        call->team->parallel_for(call->team, parts, 1, conv_weight_run_parts, &work);
    else
        conv_weight_run_parts(&work, 0, 1);
    finish(&work, call->team);
}

static void conv_weight_run_nothing(const eddy_kernel_call *call) {
    (void)call;
}

static void prepare_tiles(const eddy_conv_plan *geometry, eddy_kernel_plan *plan) {
    weight_plan *p = plan->memory;
    cut_tiles(geometry, p);
    if (eddy_gemm_start_within(geometry->compute, eddy_conv_plan_work(geometry)))
        plan->has_started_library = true;
    plan->workspace_bytes = (size_t)p->tiles.parts * p->tiles.part_bytes;
}

#ifdef EDDY_HAVE_DNNL
static eddy_conv_request request_of(const eddy_conv_plan *plan) {
    return (eddy_conv_request){
        .plan = plan,
        .direction = EDDY_CONV_WEIGHT,
        .slices_most = chunks_of(plan, plan->from.batch * plan->to.height, LIBRARY_CHUNKS)};
}

static void conv_weight_run_library(const eddy_kernel_call *call) {
    weighing work;
    begin(&work, call);
    const eddy_conv_request request = {.plan = &work.plan, .direction = EDDY_CONV_WEIGHT};
    eddy_conv_library_run(&work.is->library, &request, call, work.buffers, work.sums,
                          work.is->sums_bytes);
    finish(&work, call->team);
}

/* The library's sums hold the whole weight, row-major: one block. */
static eddy_status prepare_library(const eddy_conv_plan *geometry, eddy_kernel_plan *plan,
                                   bool is_winograd) {
    weight_plan *p = plan->memory;
    eddy_conv_request request = request_of(geometry);
    request.is_winograd = is_winograd;
    eddy_status status =
        eddy_conv_library_prepare(&p->library, &request, &plan->has_started_library);
    if (status != EDDY_OK)
        return status;
    p->is_library = true;
    p->is_last = false;
    p->channels_block = geometry->from_channels;
    p->blocks = 1;
    p->chunks = p->library.cut.slices;
    plan->workspace_bytes = p->library.workspace_bytes;
    plan->run = conv_weight_run_library;
    return EDDY_OK;
}

static void conv_weight_end(const void *plan) {
    const weight_plan *p = plan;
    if (p->is_library)
        eddy_conv_library_end(&p->library);
}

static bool is_winograd(const weight_plan *p) {
    return p->is_library && p->library.is_winograd;
}
#else
static eddy_status prepare_library(const eddy_conv_plan *geometry, eddy_kernel_plan *plan,
                                   bool is_winograd) {
    (void)geometry;
    (void)plan;
    (void)is_winograd;
    return EDDY_UNSUPPORTED;
}

static void conv_weight_end(const void *plan) {
    (void)plan;
}

static bool is_winograd(const weight_plan *p) {
    (void)p;
    return false;
}
#endif

/* is_fast: Winograd's algorithm where it serves. */
static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan, bool is_fast) {
    weight_plan *p = plan->memory;
    eddy_conv_plan geometry;
    see(&geometry, call);
    p->is_library = false;
    plan->bytes = sizeof(*p);
    plan->cost_ps = eddy_conv_plan_cost(&geometry);
    if (geometry.from_channels == 0 || geometry.to_channels == 0) {
        plan->run = conv_weight_run_nothing;
        return EDDY_OK;
    }
    eddy_status status = is_fast ? prepare_library(&geometry, plan, true) : EDDY_UNSUPPORTED;
    if (status == EDDY_UNSUPPORTED)
        status = prepare_library(&geometry, plan, false);
    if (status == EDDY_OUT_OF_MEMORY)
        return status;
    if (status == EDDY_UNSUPPORTED)
        prepare_tiles(&geometry, plan);
    p->sums_bytes = sums_bytes_of(&geometry);
    p->rows = geometry.groups * p->blocks * geometry.to_channels;
    p->row_grain = eddy_max_i64(1, 65536 / (p->channels_block * taps_of(&geometry) * p->chunks));
    plan->workspace_bytes += (size_t)p->chunks * p->sums_bytes;
    return EDDY_OK;
}

static eddy_status conv_weight_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare(call, plan, false);
}

static eddy_status conv_weight_fast_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare(call, plan, true);
}

static const char *fast_way(const void *plan) {
    return is_winograd(plan) ? "winograd" : "direct";
}

_Static_assert(sizeof(weight_plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan has room");

static const eddy_kernel conv_weight_fast = {.name = "conv2d_backward_weight_fast",
                                             .run = conv_weight_run,
                                             .prepare = conv_weight_fast_prepare,
                                             .end = conv_weight_end,
                                             .way = fast_way,
                                             .cost_base_ps = 500000,
                                             .cost_element_ps = 10000};

const eddy_kernel eddy_cpu_conv2d_backward_weight = {.name = "conv2d_backward_weight",
                                                     .run = conv_weight_run,
                                                     .prepare = conv_weight_prepare,
                                                     .end = conv_weight_end,
                                                     .fast = &conv_weight_fast,
                                                     .cost_base_ps = 500000,
                                                     .cost_element_ps = 10000};
