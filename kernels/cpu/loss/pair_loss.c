/* Losses of an input and a target, element by element: mse, l1, smooth_l1, binary cross-entropy of logits, Kullback-Leibler
 * divergence. One pass: chunks of EDDY_LOSS_CHUNK elements in row-major order of the joint shape are computed, and stored or
 * added up; the sums of chunks lie in the workspace and are added in one order. */
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

/* Operands of the walk; absent ones have view NULL. */
enum { INPUT, TARGET, WEIGHT, POSITIVE, GRAD, OUT };

typedef union chunk {
    _Alignas(64) float f32[EDDY_LOSS_CHUNK];
    double f64[EDDY_LOSS_CHUNK];
} chunk;

typedef struct pair_loss {
    const eddy_kernel_call *call;
    const eddy_attributes_pair_loss *attributes;
    const eddy_op_view *views[OPERANDS];
    eddy_loss_fn *function;
    const eddy_loss_ops *ops;
    eddy_dtype compute;
    eddy_walk walk; /* one operand per view, over the joint shape; strides 0 for what is absent */
    int64_t count;
    double factor; /* of a gradient */
    double *sums;  /* NULL: chunks are stored */
} pair_loss;

/* ---- the joint shape ---- */

static void widen(int32_t *rank, int64_t *shape, const eddy_op_view *view) {
    int32_t more = view->rank - *rank;
    for (int32_t d = *rank - 1; d >= 0 && more > 0; d--)
        shape[d + more] = shape[d];
    for (int32_t d = 0; d < more; d++)
        shape[d] = 1;
    *rank = more > 0 ? view->rank : *rank;
    for (int32_t d = 0; d < view->rank; d++)
        if (view->shape[d] != 1)
            shape[*rank - view->rank + d] = view->shape[d];
}

static void add_operand(pair_loss *work, const eddy_op_view *view) {
    int64_t strides[EDDY_RANK_MAX] = {0};
    for (int32_t d = 0; view && d < view->rank; d++)
        if (view->shape[d] != 1)
            strides[work->walk.rank - view->rank + d] = view->strides[d];
    eddy_walk_add(&work->walk, strides, 1);
}

static const eddy_op_view *present(const eddy_op_view *view) {
    return eddy_view_is_absent(view) ? NULL : view;
}

static bool has_weights(eddy_loss_kind kind) {
    return kind == EDDY_LOSS_BCE;
}

/* Views from `first` on: input, target, weights if the loss has them. */
static void begin(pair_loss *work, const eddy_kernel_call *call, eddy_loss_kind kind, int32_t first) {
    *work = (pair_loss){.call = call, .attributes = call->attributes, .factor = 1};
    work->views[INPUT] = &call->views[first];
    work->views[TARGET] = &call->views[first + 1];
    if (has_weights(kind)) {
        work->views[WEIGHT] = present(&call->views[first + 2]);
        work->views[POSITIVE] = present(&call->views[first + 3]);
    }
    work->compute = eddy_chunk_compute_dtype(work->views[INPUT]->dtype);
    work->ops = work->compute == EDDY_F64 ? &eddy_cpu_loss_blocks()->f64 : &eddy_cpu_loss_blocks()->f32;
    int32_t rank = 0;
    int64_t shape[EDDY_RANK_MAX];
    for (int o = INPUT; o <= POSITIVE; o++)
        if (work->views[o])
            widen(&rank, shape, work->views[o]);
    eddy_walk_init(&work->walk, rank, shape);
    work->count = eddy_walk_count(&work->walk);
}

static void end(pair_loss *work) {
    for (int o = 0; o < OPERANDS; o++)
        add_operand(work, work->views[o]);
    eddy_walk_collapse(&work->walk); /* not sorted: sums follow the order of elements */
}

/* ---- chunks ---- */

/* Elements of the compute type: where they lie if they are that, else in *to. */
static const void *read(const pair_loss *work, int operand, int64_t first, int64_t count, chunk *to) {
    const eddy_op_view *view = work->views[operand];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, first);
    if (view->dtype == work->compute && eddy_walk_inner_stride(&work->walk, operand) == 1 &&
        eddy_walk_run(&work->walk, &cursor) >= count)
        return eddy_chunk_at(view->data, view->dtype, cursor.offsets[operand]);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
        eddy_chunk_load(work->compute, eddy_chunk_at(to, work->compute, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, cursor.offsets[operand]),
                        eddy_walk_inner_stride(&work->walk, operand), run);
        eddy_walk_advance(&work->walk, &cursor, run);
    }
    return to;
}

static void store(const pair_loss *work, int64_t first, int64_t count, const chunk *from) {
    const eddy_op_view *view = work->views[OUT];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, first);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&work->walk, &cursor), count - done);
        eddy_chunk_store(view->dtype, eddy_chunk_at(view->data, view->dtype, cursor.offsets[OUT]),
                         eddy_walk_inner_stride(&work->walk, OUT), work->compute,
                         eddy_chunk_at(from, work->compute, done), run);
        eddy_walk_advance(&work->walk, &cursor, run);
    }
}

static void fill_ones(const pair_loss *work, chunk *to) {
    const float one = 1;
    const double one64 = 1;
    bool is_f64 = work->compute == EDDY_F64;
    eddy_chunk_fill(to, 1, is_f64 ? 8 : 4, is_f64 ? (const void *)&one64 : (const void *)&one, EDDY_LOSS_CHUNK);
}

static double sum_of(const pair_loss *work, const chunk *x, int64_t count) {
    chunk result;
    bool is_f64 = work->compute == EDDY_F64;
    eddy_cpu_reduce_blocks()->sum[is_f64 ? EDDY_REDUCE_F64 : EDDY_REDUCE_F32].block(x, count, &result);
    return is_f64 ? result.f64[0] : (double)result.f32[0];
}

/* Slices count chunks. */
static void run_chunks(void *context, int64_t first, int64_t last) {
    const pair_loss *work = context;
    chunk y, x, target, weight, positive, grad, ones;
    fill_ones(work, &ones);
    for (int64_t c = first; c < last; c++) {
        int64_t at = c * EDDY_LOSS_CHUNK, count = eddy_min_i64(EDDY_LOSS_CHUNK, work->count - at);
        work->function(&y, read(work, INPUT, at, count, &x), read(work, TARGET, at, count, &target),
                       work->views[POSITIVE] ? read(work, POSITIVE, at, count, &positive) : &ones,
                       work->attributes->beta, count);
        if (work->views[WEIGHT] || work->factor != 1)
            work->ops->scale(&y, work->views[WEIGHT] ? read(work, WEIGHT, at, count, &weight) : &ones, work->factor,
                             count);
        if (work->views[GRAD])
            work->ops->scale(&y, read(work, GRAD, at, count, &grad), 1, count);
        if (work->sums)
            work->sums[c] = sum_of(work, &y, count);
        else
            store(work, at, count, &y);
    }
}

static int64_t chunk_count(const pair_loss *work) {
    return (work->count + EDDY_LOSS_CHUNK - 1) / EDDY_LOSS_CHUNK;
}

static void pair_loss_run_slices(pair_loss *work) {
    int64_t chunks = chunk_count(work);
    if (chunks <= SLICE_CHUNKS)
        run_chunks(work, 0, chunks);
    else
        work->call->team->parallel_for(work->call->team, chunks, SLICE_CHUNKS, run_chunks, work);
}

/* ---- kernels ---- */

static void forward(const eddy_kernel_call *call, eddy_loss_kind kind) {
    pair_loss work;
    begin(&work, call, kind, 0);
    const eddy_op_view *out = &call->views[call->view_count - 1];
    work.function = work.ops->forward[kind];
    bool is_whole = work.attributes->reduction == EDDY_REDUCTION_NONE;
    work.views[OUT] = is_whole ? out : NULL;
    work.sums = is_whole ? NULL : call->workspace;
    end(&work);
    if (work.count > 0)
        pair_loss_run_slices(&work);
    if (is_whole)
        return;
    double sum = eddy_loss_total(work.sums, chunk_count(&work));
    if (work.attributes->reduction == EDDY_REDUCTION_MEAN)
        sum /= (double)work.count; /* NaN where there is nothing, as PyTorch has it */
    eddy_dtype_store_f64(out->dtype, out->data, sum);
}

static void backward(const eddy_kernel_call *call, eddy_loss_kind kind, bool by_target) {
    pair_loss work;
    begin(&work, call, kind, 1);
    if (work.count == 0)
        return;
    const eddy_op_view *grad = &call->views[0];
    work.function = by_target ? work.ops->by_target[kind] : work.ops->by_input[kind];
    work.views[OUT] = &call->views[call->view_count - 1];
    if (work.attributes->reduction == EDDY_REDUCTION_NONE)
        work.views[GRAD] = grad;
    else
        work.factor = eddy_dtype_load_f64(grad->dtype, grad->data);
    if (work.attributes->reduction == EDDY_REDUCTION_MEAN)
        work.factor /= (double)work.count;
    end(&work);
    pair_loss_run_slices(&work);
}

static eddy_loss_kind kl_kind(const eddy_kernel_call *call) {
    const eddy_attributes_pair_loss *attributes = call->attributes;
    return attributes->log_target ? EDDY_LOSS_KL_LOG : EDDY_LOSS_KL;
}

static size_t pair_workspace(const eddy_kernel_call *call, eddy_loss_kind kind) {
    pair_loss work;
    begin(&work, call, kind, 0);
    return work.attributes->reduction == EDDY_REDUCTION_NONE ? 0 : (size_t)chunk_count(&work) * sizeof(double);
}

/* Twice as much in f64. */
static int64_t pair_loss_cost(const eddy_kernel_call *call, eddy_loss_kind kind, int32_t first) {
    pair_loss work;
    begin(&work, call, kind, first);
    int64_t element_ps = call->kernel->cost_element_ps * (work.compute == EDDY_F64 ? 2 : 1);
    return call->kernel->cost_base_ps + element_ps * work.count + eddy_cost_far_views_ps(call);
}

static int64_t forward_cost(const eddy_kernel_call *call) {
    return pair_loss_cost(call, EDDY_LOSS_MSE, 0);
}

static int64_t backward_cost(const eddy_kernel_call *call) {
    return pair_loss_cost(call, EDDY_LOSS_MSE, 1);
}

#define LOSS(label, kind, element_ps)                                                                                  \
    static void label##_run(const eddy_kernel_call *call) {                                                            \
        forward(call, kind);                                                                                           \
    }                                                                                                                  \
    static void label##_backward_run(const eddy_kernel_call *call) {                                                   \
        backward(call, kind, false);                                                                                   \
    }                                                                                                                  \
    static size_t label##_workspace(const eddy_kernel_call *call) {                                                    \
        return pair_workspace(call, kind);                                                                             \
    }                                                                                                                  \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                                              \
                                          .run = label##_run,                                                          \
                                          .workspace = label##_workspace,                                              \
                                          .cost_base_ps = 150000,                                                      \
                                          .cost_element_ps = element_ps,                                               \
                                          .cost = forward_cost};                                                       \
    const eddy_kernel eddy_cpu_##label##_backward = {.name = #label "_backward",                                       \
                                                     .run = label##_backward_run,                                      \
                                                     .cost_base_ps = 150000,                                           \
                                                     .cost_element_ps = element_ps,                                    \
                                                     .cost = backward_cost};

#define BY_TARGET(label, kind, element_ps)                                                                             \
    static void label##_backward_target_run(const eddy_kernel_call *call) {                                            \
        backward(call, kind, true);                                                                                    \
    }                                                                                                                  \
    const eddy_kernel eddy_cpu_##label##_backward_target = {.name = #label "_backward_target",                         \
                                                            .run = label##_backward_target_run,                        \
                                                            .cost_base_ps = 150000,                                    \
                                                            .cost_element_ps = element_ps,                             \
                                                            .cost = backward_cost};

LOSS(mse_loss, EDDY_LOSS_MSE, 140)
LOSS(l1_loss, EDDY_LOSS_L1, 140)
LOSS(smooth_l1_loss, EDDY_LOSS_SMOOTH_L1, 160)
LOSS(bce_with_logits, EDDY_LOSS_BCE, 1300)
LOSS(kl_div, kl_kind(call), 600)
BY_TARGET(bce_with_logits, EDDY_LOSS_BCE, 1300)
BY_TARGET(kl_div, kl_kind(call), 800)
