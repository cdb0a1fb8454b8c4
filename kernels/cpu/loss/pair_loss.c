/* Losses of an input and a target, element by element: mse, l1, smooth_l1, binary cross-entropy of logits,
 * Kullback-Leibler divergence. One pass computes chunks of EDDY_LOSS_CHUNK elements, in row-major order of the joint
 * shape, and stores them or adds them up. The sums of chunks are stored in the workspace and added in one order. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/loss/loss_block.h>
#include <kernels/cpu/loss/loss_total.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/walk.h>

#define SLICE_CHUNKS 16
#define OPERANDS 6

enum { INPUT, TARGET, WEIGHT, POSITIVE, GRAD, OUT };

#define ABSENT (-1)

/* The plan of a call. It ends with the walk over the operands that are present, over the joint shape. */
typedef struct pair_loss_plan {
    eddy_loss_fn *function;
    const eddy_loss_ops *ops;
    int64_t count;
    eddy_dtype compute;
    bool is_summed;          /* into the workspace; otherwise chunks are stored in the output */
    int8_t places[OPERANDS]; /* in the walk, or ABSENT */
    int8_t views[OPERANDS];  /* of the call */
    int64_t words[];
} pair_loss_plan;

_Static_assert(sizeof(pair_loss_plan) + EDDY_WALK_WORDS_MOST(OPERANDS) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "a plan fits");

typedef union chunk {
    _Alignas(64) float f32[EDDY_LOSS_CHUNK];
    double f64[EDDY_LOSS_CHUNK];
} chunk;

typedef struct pair_loss {
    const eddy_kernel_call *call;
    const pair_loss_plan *plan;
    double beta;
    double factor; /* of a gradient */
    double *sums;  /* NULL: chunks are stored */
    eddy_walk walk;
} pair_loss;

/* ---- chunks ---- */

static bool has(const pair_loss *work, int operand) {
    return work->plan->places[operand] != ABSENT;
}

static const eddy_op_view *view_of(const pair_loss *work, int operand) {
    return &work->call->views[work->plan->views[operand]];
}

/* Elements of the compute type: in place if they are contiguous and have that type, else converted to *to. */
static const void *read(const pair_loss *work, int operand, int64_t first, int64_t count,
                        chunk *to) {
    const eddy_op_view *view = view_of(work, operand);
    eddy_dtype compute = work->plan->compute;
    int32_t place = work->plan->places[operand];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, first);
    if (view->dtype == compute && eddy_walk_inner_stride(&work->walk, place) == 1 &&
        eddy_walk_run(&work->walk, &cursor) >= count)
        return eddy_chunk_at(view->data, view->dtype, cursor.offsets[place]);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
        eddy_chunk_load(compute, eddy_chunk_at(to, compute, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, cursor.offsets[place]),
                        eddy_walk_inner_stride(&work->walk, place), run);
        eddy_walk_advance(&work->walk, &cursor, run);
    }
    return to;
}

static void store(const pair_loss *work, int64_t first, int64_t count, const chunk *from) {
    const eddy_op_view *view = view_of(work, OUT);
    eddy_dtype compute = work->plan->compute;
    int32_t place = work->plan->places[OUT];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, first);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
        eddy_chunk_store(view->dtype, eddy_chunk_at(view->data, view->dtype, cursor.offsets[place]),
                         eddy_walk_inner_stride(&work->walk, place), compute,
                         eddy_chunk_at(from, compute, done), run);
        eddy_walk_advance(&work->walk, &cursor, run);
    }
}

static void fill_ones(eddy_dtype compute, chunk *to) {
    const float one = 1;
    const double one64 = 1;
    bool is_f64 = compute == EDDY_F64;
    eddy_chunk_fill(to, 1, is_f64 ? 8 : 4, is_f64 ? (const void *)&one64 : (const void *)&one,
                    EDDY_LOSS_CHUNK);
}

static double sum_of(const pair_loss *work, const chunk *x, int64_t count) {
    chunk result;
    bool is_f64 = work->plan->compute == EDDY_F64;
    eddy_reduce_blocks_of(is_f64 ? EDDY_REDUCE_F64 : EDDY_REDUCE_F32)
        ->sum.block(x, count, 0, &result);
    return is_f64 ? result.f64[0] : (double)result.f32[0];
}

/* `first` and `last` number chunks. */
static void run_chunks(void *context, int64_t first, int64_t last) {
    const pair_loss *work = context;
    const pair_loss_plan *plan = work->plan;
    chunk y, x, target, weight, positive, grad, ones;
    fill_ones(plan->compute, &ones);
    for (int64_t c = first; c < last; c++) {
        int64_t at = c * EDDY_LOSS_CHUNK, count = eddy_min_i64(EDDY_LOSS_CHUNK, plan->count - at);
        plan->function(&y, read(work, INPUT, at, count, &x), read(work, TARGET, at, count, &target),
                       has(work, POSITIVE) ? read(work, POSITIVE, at, count, &positive) : &ones,
                       work->beta, count);
        if (has(work, WEIGHT) || work->factor != 1)
            plan->ops->scale(&y, has(work, WEIGHT) ? read(work, WEIGHT, at, count, &weight) : &ones,
                             work->factor, count);
        if (has(work, GRAD))
            plan->ops->scale(&y, read(work, GRAD, at, count, &grad), 1, count);
        if (work->sums)
            work->sums[c] = sum_of(work, &y, count);
        else
            store(work, at, count, &y);
    }
}

static int64_t chunk_count(const pair_loss_plan *plan) {
    return (plan->count + EDDY_LOSS_CHUNK - 1) / EDDY_LOSS_CHUNK;
}

static void pair_loss_run_slices(pair_loss *work) {
    int64_t chunks = chunk_count(work->plan);
    eddy_walk_read(&work->walk, work->plan->words);
    if (chunks <= SLICE_CHUNKS)
        run_chunks(work, 0, chunks);
    else
        work->call->team->parallel_for(work->call->team, chunks, SLICE_CHUNKS, run_chunks, work);
}

static void begin(pair_loss *work, const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    work->call = call;
    work->plan = call->plan;
    work->beta = attributes->beta;
    work->factor = 1;
    work->sums = work->plan->is_summed ? call->workspace : NULL;
}

static void pair_loss_run(const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    pair_loss work;
    begin(&work, call);
    if (work.plan->count > 0)
        pair_loss_run_slices(&work);
    if (!work.plan->is_summed)
        return;
    double sum = eddy_loss_total(work.sums, chunk_count(work.plan));
    if (attributes->reduction == EDDY_REDUCTION_MEAN)
        sum /= (double)work.plan->count; /* NaN if there are no elements, as in PyTorch */
    eddy_dtype_store_f64(out->dtype, out->data, sum);
}

static void pair_loss_backward_run(const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    const eddy_op_view *grad = &call->views[0];
    pair_loss work;
    begin(&work, call);
    if (work.plan->count == 0)
        return;
    if (attributes->reduction != EDDY_REDUCTION_NONE)
        work.factor = eddy_dtype_load_f64(grad->dtype, grad->data);
    if (attributes->reduction == EDDY_REDUCTION_MEAN)
        work.factor /= (double)work.plan->count;
    pair_loss_run_slices(&work);
}

/* ---- planning ---- */

/* Sets the view of an operand, unless the view is absent. */
static void add_view(const eddy_kernel_call *call, pair_loss_plan *to, int operand, int32_t view) {
    if (!eddy_kernel_view_is_absent(&call->views[view]))
        to->views[operand] = (int8_t)view;
}

/* Joins the operands of the loss to one shape, and builds the walk over it. The walk is not sorted: sums follow the order
 * of elements. */
static void join(const eddy_kernel_call *call, pair_loss_plan *to, eddy_walk *walk) {
    int32_t rank = 0;
    int64_t shape[EDDY_RANK_MAX];
    for (int o = INPUT; o <= POSITIVE; o++)
        if (to->views[o] != ABSENT)
            eddy_walk_widen(&rank, shape, &call->views[to->views[o]]);
    eddy_walk_init(walk, rank, shape);
    for (int o = 0; o < OPERANDS; o++) {
        to->places[o] = to->views[o] == ABSENT ? ABSENT : (int8_t)walk->operand_count;
        if (to->views[o] != ABSENT)
            eddy_walk_add_broadcast(walk, &call->views[to->views[o]]);
    }
    to->count = eddy_walk_count(walk);
    eddy_walk_collapse(walk);
}

/* f64 takes twice the time. */
static int64_t pair_loss_cost(const eddy_kernel_call *call, const pair_loss_plan *plan) {
    int64_t element_ps = call->kernel->cost_element_ps * (plan->compute == EDDY_F64 ? 2 : 1);
    /* Operands of an empty call may have any number of elements. */
    bool is_near = plan->count > 0 && eddy_cost_is_near(plan->count, call->view_count);
    return call->kernel->cost_base_ps + element_ps * plan->count +
           (is_near ? 0 : eddy_cost_far_views_ps(call));
}

/* What a kernel computes: the loss, or its derivative. */
typedef enum way { FORWARD, BY_INPUT, BY_TARGET } way;

static eddy_loss_fn *function_of(const eddy_loss_ops *ops, eddy_loss_kind kind, way which) {
    return which == FORWARD    ? ops->forward[kind]
           : which == BY_INPUT ? ops->by_input[kind]
                               : ops->by_target[kind];
}

/* views: grad of a derivative; input, target; weight and positive of BCE; out */
static eddy_status pair_loss_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                     eddy_loss_kind kind, way which) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    bool is_whole = attributes->reduction == EDDY_REDUCTION_NONE;
    int32_t first = which != FORWARD;
    pair_loss_plan *to = plan->memory;
    to->compute = eddy_chunk_compute_dtype(call->views[first].dtype);
    to->ops = to->compute == EDDY_F64 ? eddy_cpu_loss_f64() : eddy_cpu_loss_f32();
    to->function = function_of(to->ops, kind, which);
    to->is_summed = which == FORWARD && !is_whole;
    for (int o = 0; o < OPERANDS; o++)
        to->views[o] = ABSENT;
    for (int o = INPUT; o <= (kind == EDDY_LOSS_BCE ? POSITIVE : TARGET); o++)
        add_view(call, to, o, first + o);
    if (which != FORWARD && is_whole)
        add_view(call, to, GRAD, 0);
    if (!to->is_summed)
        add_view(call, to, OUT, call->view_count - 1);
    eddy_walk walk;
    join(call, to, &walk);
    plan->cost_ps = pair_loss_cost(call, to);
    plan->workspace_bytes = to->is_summed ? (size_t)chunk_count(to) * sizeof(double) : 0;
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, to->words) - (char *)to);
    return EDDY_OK;
}

static eddy_loss_kind kl_kind(const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    return attributes->target_is_log ? EDDY_LOSS_KL_LOG : EDDY_LOSS_KL;
}

#define KERNEL(label, direction, kind, which, element_ps)                                          \
    static eddy_status label##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {     \
        return pair_loss_prepare(call, plan, kind, which);                                         \
    }                                                                                              \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                          \
                                          .run = direction##_run,                                  \
                                          .prepare = label##_prepare,                              \
                                          .cost_base_ps = 150000,                                  \
                                          .cost_element_ps = element_ps};

#define LOSS(label, kind, element_ps)                                                              \
    KERNEL(label, pair_loss, kind, FORWARD, element_ps)                                            \
    KERNEL(label##_backward, pair_loss_backward, kind, BY_INPUT, element_ps)

LOSS(mse_loss, EDDY_LOSS_MSE, 140)
LOSS(l1_loss, EDDY_LOSS_L1, 140)
LOSS(smooth_l1_loss, EDDY_LOSS_SMOOTH_L1, 160)
LOSS(bce_with_logits, EDDY_LOSS_BCE, 1300)
LOSS(kl_div, kl_kind(call), 600)
KERNEL(bce_with_logits_backward_target, pair_loss_backward, EDDY_LOSS_BCE, BY_TARGET, 1300)
KERNEL(kl_div_backward_target, pair_loss_backward, kl_kind(call), BY_TARGET, 800)
