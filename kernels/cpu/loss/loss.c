/* cross_entropy of logits and labels, nll_loss of log-probabilities and labels, and their gradients. The losses of rows
 * are stored in the workspace as f64 and added up in one order; the log-sum-exp of a row is never stored. */
#include <base/atomic.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/loss/loss_block.h>
#include <kernels/cpu/loss/loss_total.h>
#include <kernels/cpu/softmax/softmax_row.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define INLINE static inline __attribute__((always_inline))

#define SLICE_ELEMENTS 32768

/* The plan of cross_entropy and of its gradient. */
typedef struct loss_plan {
    const eddy_softmax_ops *ops;
    void (*log)(double *x, int64_t count); /* eddy_loss_ops' */
    int64_t grain;
    int64_t direct_rows; /* not 0: rows are read in place, so many at a time */
} loss_plan;

typedef struct loss {
    const eddy_kernel_call *call;
    const eddy_attributes_cross_entropy *attributes;
    const eddy_op_view *input, *target;
    const eddy_op_view *weight; /* of nll_loss, may be absent */
    int64_t counted;            /* of cross_entropy_backward: rows that are not ignored */
    _Atomic int64_t
        ignored; /* atomic: relaxed; slices of nll_loss add their rows, read when all are done */
} loss;

static int64_t label_of(const eddy_op_view *target, int64_t row) {
    return ((const int64_t *)target->data)[row * target->strides[0]];
}

static bool is_ignored(const eddy_attributes_cross_entropy *attributes, int64_t label) {
    return attributes->has_ignore_index && label == attributes->ignore_index;
}

static int64_t count_rows(const loss *work) {
    int64_t rows = work->target->shape[0], counted = rows;
    if (work->attributes->has_ignore_index)
        for (int64_t r = 0; r < rows; r++)
            counted -= is_ignored(work->attributes, label_of(work->target, r));
    return counted;
}

static eddy_softmax_row row_of(const eddy_op_view *input, int64_t row) {
    return (eddy_softmax_row){.data =
                                  eddy_chunk_at(input->data, input->dtype, row * input->strides[0]),
                              .stride = input->strides[1],
                              .count = input->shape[1],
                              .dtype = input->dtype};
}

static bool label_fits(const loss *work, int64_t classes, int64_t row, int64_t label) {
    if ((uint64_t)label < (uint64_t)classes)
        return true;
    eddy_kernel_fail(work->call, EDDY_OUT_OF_RANGE, row, label, classes);
    return false;
}

static void loss_forward_slice(void *context, int64_t begin, int64_t end) {
    const loss *work = context;
    const loss_plan *plan = work->call->plan;
    const eddy_op_view *input = work->input;
    double *losses = work->call->workspace;
    eddy_softmax_chunk chunk;
    for (int64_t r = begin; r < end; r++) {
        int64_t label = label_of(work->target, r);
        losses[r] = 0;
        if (is_ignored(work->attributes, label) || !label_fits(work, input->shape[1], r, label))
            continue;
        eddy_softmax_row row = row_of(input, r);
        eddy_softmax_total total = eddy_softmax_row_total(plan->ops, &row, &chunk);
        double at_label = eddy_dtype_load_f64(
            input->dtype, eddy_chunk_at(row.data, input->dtype, label * row.stride));
        plan->log(&total.sum, 1);
        losses[r] = total.sum + (total.max - at_label);
    }
}

/* Rows that are read in place. */
typedef struct taken_rows {
    const void *data[EDDY_SOFTMAX_ROWS];
    double at_label[EDDY_SOFTMAX_ROWS];
    double *losses[EDDY_SOFTMAX_ROWS]; /* addresses in the workspace */
    int64_t count;
} taken_rows;

/* The rows of first .. last - 1 that have a loss. */
static void find_rows(const loss *work, int64_t first, int64_t last, taken_rows *rows) {
    const eddy_op_view *input = work->input;
    const eddy_attributes_cross_entropy *attributes = work->attributes;
    const int64_t *labels = work->target->data;
    int64_t classes = input->shape[1], stride = input->strides[0],
            label_stride = work->target->strides[0], count = 0;
    bool is_f64 = input->dtype == EDDY_F64;
    double *losses = work->call->workspace;
    for (int64_t r = first; r < last; r++) {
        int64_t label = labels[r * label_stride];
        if (is_ignored(attributes, label) || !label_fits(work, classes, r, label)) {
            losses[r] = 0;
            continue;
        }
        const double *f64 = (const double *)input->data + r * stride;
        const float *f32 = (const float *)input->data + r * stride;
        rows->at_label[count] = is_f64 ? f64[label] : (double)f32[label];
        rows->losses[count] = &losses[r];
        rows->data[count++] = is_f64 ? (const void *)f64 : f32;
    }
    rows->count = count;
}

static void loss_direct_slice(void *context, int64_t begin, int64_t end) {
    const loss *work = context;
    const loss_plan *plan = work->call->plan;
    taken_rows rows;
    for (; begin < end; begin += plan->direct_rows) {
        find_rows(work, begin, eddy_min_i64(begin + plan->direct_rows, end), &rows);
        eddy_softmax_total totals[EDDY_SOFTMAX_ROWS];
        plan->ops->totals(rows.data, rows.count, work->input->shape[1], totals);
        double logs[EDDY_SOFTMAX_ROWS];
        for (int64_t i = 0; i < rows.count; i++)
            logs[i] = totals[i].sum;
        plan->log(logs, rows.count);
        for (int64_t i = 0; i < rows.count; i++)
            *rows.losses[i] = logs[i] + (totals[i].max - rows.at_label[i]);
    }
}

static void loss_run_slices(const loss *work, void (*slice)(void *, int64_t, int64_t)) {
    const loss_plan *plan = work->call->plan;
    int64_t rows = work->target->shape[0];
    if (rows <= plan->grain)
        slice((void *)work, 0, rows);
    else
        work->call->team->parallel_for(work->call->team, rows, plan->grain, slice, (void *)work);
}

static void store_number(const eddy_op_view *out, double value) {
    if (out->dtype == EDDY_F32)
        *(float *)out->data = (float)value;
    else
        eddy_dtype_store_f64(out->dtype, out->data, value);
}

static void cross_entropy_run(const eddy_kernel_call *call) {
    const loss_plan *plan = call->plan;
    loss work;
    work.call = call;
    work.attributes = call->attributes;
    work.input = &call->views[0];
    work.target = &call->views[1];
    const eddy_op_view *out = &call->views[2];
    int64_t rows = work.target->shape[0];
    loss_run_slices(&work, plan->direct_rows > 0 ? loss_direct_slice : loss_forward_slice);
    double *losses = call->workspace;
    if (work.attributes->reduction == EDDY_REDUCTION_NONE) {
        if (rows > 0)
            eddy_chunk_store(out->dtype, out->data, out->strides[0], EDDY_F64, losses, rows);
        return;
    }
    double sum = eddy_loss_total(losses, rows);
    if (work.attributes->reduction == EDDY_REDUCTION_MEAN)
        sum /= (double)count_rows(&work); /* NaN if all rows are ignored, as in PyTorch */
    store_number(out, sum);
}

/* The estimate for operands of `rows * classes`, `rows` and one element; their rank tells which. */
static int64_t loss_cost(const eddy_kernel_call *call, int64_t rows, int64_t classes) {
    int64_t largest = eddy_max_i64(rows * classes, rows), counts[] = {1, rows, rows * classes},
            bytes = 0;
    if (largest > 0 && eddy_cost_is_near(largest, call->view_count))
        return eddy_cost_flat_ps(call->kernel, largest, 0);
    for (int32_t i = 0; i < call->view_count; i++) {
        int64_t count = counts[call->views[i].rank];
        largest = eddy_max_i64(largest, count);
        bytes += eddy_cost_bytes(count, call->views[i].dtype);
    }
    return eddy_cost_flat_ps(call->kernel, largest, bytes);
}

/* Rows of a slice. */
static int64_t grain_of(int64_t classes) {
    return eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, classes));
}

static void plan_loss(const eddy_kernel_call *call, const eddy_op_view *input,
                      eddy_kernel_plan *plan) {
    loss_plan *to = plan->memory;
    to->ops = eddy_softmax_ops_for(input->dtype);
    to->log = eddy_cpu_loss_f64()->log;
    to->grain = grain_of(input->shape[1]);
    to->direct_rows = eddy_softmax_direct_rows(input->dtype, input->strides[1], input->shape[1]);
    plan->bytes = sizeof(*to);
    plan->cost_ps = loss_cost(call, input->shape[0], input->shape[1]);
}

static eddy_status cross_entropy_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan_loss(call, &call->views[0], plan);
    plan->workspace_bytes = (size_t)call->views[1].shape[0] * sizeof(double);
    return EDDY_OK;
}

/* dinput[r, c] = (softmax(input[r])[c] - (c == label)) * grad of the row */
static void loss_backward_slice(void *context, int64_t begin, int64_t end) {
    const loss *work = context;
    const eddy_op_view *input = work->input, *grad = &work->call->views[0],
                       *out = &work->call->views[3];
    const eddy_softmax_ops *ops = ((const loss_plan *)work->call->plan)->ops;
    bool is_f64 = eddy_softmax_compute_dtype(input->dtype) == EDDY_F64;
    eddy_softmax_chunk chunk;
    for (int64_t r = begin; r < end; r++) {
        int64_t label = label_of(work->target, r);
        bool ignored = is_ignored(work->attributes, label);
        if (!ignored && !label_fits(work, work->input->shape[1], r, label))
            continue;
        int64_t grad_offset = grad->rank == 0 ? 0 : r * grad->strides[0];
        double factor =
            eddy_dtype_load_f64(grad->dtype, eddy_chunk_at(grad->data, grad->dtype, grad_offset));
        if (work->attributes->reduction == EDDY_REDUCTION_MEAN)
            factor /= (double)work->counted;
        eddy_softmax_row row = row_of(input, r);
        eddy_softmax_total total = {0};
        if (!ignored)
            total = eddy_softmax_row_total(ops, &row, &chunk);
        for (int64_t first = 0; first < row.count; first += EDDY_SOFTMAX_CHUNK) {
            int64_t padded =
                (eddy_min_i64(row.count - first, EDDY_SOFTMAX_CHUNK) + EDDY_SOFTMAX_LANES - 1) /
                EDDY_SOFTMAX_LANES * EDDY_SOFTMAX_LANES;
            if (ignored) {
                for (int64_t i = 0; i < padded; i++)
                    if (is_f64)
                        chunk.f64[i] = 0;
                    else
                        chunk.f32[i] = 0;
            } else {
                if (row.count > EDDY_SOFTMAX_CHUNK) {
                    eddy_softmax_load(&row, first, -INFINITY, &chunk);
                    ops->exp_sum(&chunk, total.max, padded);
                }
                ops->scale(&chunk, 1.0 / total.sum, padded);
                int64_t at = label - first;
                if (at >= 0 && at < padded && is_f64)
                    chunk.f64[at] -= 1;
                else if (at >= 0 && at < padded)
                    chunk.f32[at] -= 1;
                ops->scale(&chunk, factor, padded);
            }
            eddy_softmax_store(&row, first, &chunk,
                               eddy_chunk_at(out->data, out->dtype, r * out->strides[0]),
                               out->strides[1], out->dtype);
        }
    }
}

static void cross_entropy_backward_run(const eddy_kernel_call *call) {
    loss work = {.call = call,
                 .attributes = call->attributes,
                 .input = &call->views[1],
                 .target = &call->views[2]};
    work.counted = count_rows(&work);
    loss_run_slices(&work, loss_backward_slice);
}

static eddy_status cross_entropy_backward_prepare(const eddy_kernel_call *call,
                                                  eddy_kernel_plan *plan) {
    plan_loss(call, &call->views[1], plan);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_cross_entropy = {.name = "cross_entropy",
                                            .run = cross_entropy_run,
                                            .prepare = cross_entropy_prepare,
                                            .cost_base_ps = 100000,
                                            .cost_element_ps = 480};
const eddy_kernel eddy_cpu_cross_entropy_backward = {.name = "cross_entropy_backward",
                                                     .run = cross_entropy_backward_run,
                                                     .prepare = cross_entropy_backward_prepare,
                                                     .cost_base_ps = 100000,
                                                     .cost_element_ps = 1200};

/* ---- nll_loss ---- */

/* An element as a double. The dtype is a constant in every call: a label takes little work besides reading the element. */
INLINE double element_at(eddy_dtype dtype, const void *x, int64_t i) {
    switch (dtype) {
    case EDDY_F64:
        return ((const double *)x)[i];
    case EDDY_F16:
        return eddy_f16_to_f32(((const uint16_t *)x)[i]);
    case EDDY_BF16:
        return eddy_bf16_to_f32(((const uint16_t *)x)[i]);
    default:
        return ((const float *)x)[i];
    }
}

INLINE double weight_of(eddy_dtype dtype, const eddy_op_view *weight, int64_t label) {
    return element_at(dtype, weight->data, label * weight->strides[0]);
}

/* Stores the losses of rows begin .. end - 1 in the workspace. */
INLINE void nll_slice(eddy_dtype dtype, loss *work, int64_t begin, int64_t end) {
    /* Local copies, which the compiler need not load again for each row. */
    const eddy_attributes_cross_entropy attributes = *work->attributes;
    const eddy_op_view target = *work->target, weight = *work->weight;
    const void *input = work->input->data;
    int64_t row_stride = work->input->strides[0], class_stride = work->input->strides[1];
    double *losses = work->call->workspace;
    int64_t ignored = 0;
    for (int64_t r = begin; r < end; r++) {
        int64_t label = label_of(&target, r);
        if (is_ignored(&attributes, label) || !label_fits(work, work->input->shape[1], r, label)) {
            losses[r] = 0;
            ignored++;
            continue;
        }
        double at_label = element_at(dtype, input, r * row_stride + label * class_stride);
        losses[r] = eddy_kernel_view_is_absent(&weight)
                        ? -at_label
                        : -at_label * weight_of(dtype, &weight, label);
    }
    eddy_add_relaxed(&work->ignored, ignored);
}

/* The sum of the weights of all rows except the ignored ones, in one order. */
INLINE double sum_weights(eddy_dtype dtype, const loss *work) {
    double sum = 0;
    for (int64_t r = 0; r < work->target->shape[0]; r++) {
        int64_t label = label_of(work->target, r);
        if (!is_ignored(work->attributes, label) &&
            label_fits(work, work->input->shape[1], r, label))
            sum += weight_of(dtype, work->weight, label);
    }
    return sum;
}

#define NLL(name, dtype)                                                                           \
    static double weight_##name(const eddy_op_view *weight, int64_t label) {                       \
        return weight_of(dtype, weight, label);                                                    \
    }                                                                                              \
    static void nll_slice_##name(void *context, int64_t begin, int64_t end) {                      \
        nll_slice(dtype, context, begin, end);                                                     \
    }                                                                                              \
    static double sum_weights_##name(const loss *work) {                                           \
        return sum_weights(dtype, work);                                                           \
    }

NLL(f32, EDDY_F32)
NLL(f64, EDDY_F64)
NLL(f16, EDDY_F16)
NLL(bf16, EDDY_BF16)

static const struct nll_ops {
    void (*slice)(void *context, int64_t begin, int64_t end);
    double (*sum_weights)(const loss *work);
    double (*weight)(const eddy_op_view *weight, int64_t label);
} nll_ops[] = {
#define NLL_OPS(name)                                                                              \
    { nll_slice_##name, sum_weights_##name, weight_##name }
    [EDDY_F32] = NLL_OPS(f32),
    [EDDY_F64] = NLL_OPS(f64),
    [EDDY_F16] = NLL_OPS(f16),
    [EDDY_BF16] = NLL_OPS(bf16),
};

/* Rows of a slice: one element of each row is read, and usually it is not in a cache. */
#define NLL_SLICE_ROWS 4096

/* views: input, target, weight or absent, out */
static void nll_loss_run(const eddy_kernel_call *call) {
    loss work = {.call = call,
                 .attributes = call->attributes,
                 .input = &call->views[0],
                 .target = &call->views[1],
                 .weight = &call->views[2]};
    const eddy_op_view *out = &call->views[3];
    int64_t rows = work.target->shape[0];
    double *losses = call->workspace;
    if (rows <= NLL_SLICE_ROWS)
        nll_ops[work.input->dtype].slice(&work, 0, rows);
    else
        call->team->parallel_for(call->team, rows, NLL_SLICE_ROWS, nll_ops[work.input->dtype].slice,
                                 &work);
    if (work.attributes->reduction == EDDY_REDUCTION_NONE) {
        if (rows > 0)
            eddy_chunk_store(out->dtype, out->data, out->strides[0], EDDY_F64, losses, rows);
        return;
    }
    double sum = eddy_loss_total(losses, rows);
    if (work.attributes->reduction == EDDY_REDUCTION_MEAN)
        sum /= eddy_kernel_view_is_absent(work.weight)
                   ? (double)(rows - eddy_load_relaxed(&work.ignored))
                   : nll_ops[work.input->dtype].sum_weights(&work);
    eddy_dtype_store_f64(out->dtype, out->data, sum);
}

/* One element of each row is read. */
static eddy_status nll_loss_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    int64_t rows = call->views[1].shape[0];
    plan->workspace_bytes = (size_t)rows * sizeof(double);
    plan->cost_ps = call->kernel->cost_base_ps + 3200 * rows;
    return EDDY_OK;
}

typedef struct nll_gradient {
    loss loss; /* its input is the gradient to be written */
    const eddy_op_view *grad;
    double total;
} nll_gradient;

static void nll_backward_slice(void *context, int64_t begin, int64_t end) {
    const nll_gradient *work = context;
    const eddy_op_view *out = work->loss.input, *grad = work->grad, *weight = work->loss.weight;
    int64_t bytes = (int64_t)eddy_dtype_bytes(out->dtype), zero = 0;
    for (int64_t r = begin; r < end; r++) {
        char *row = eddy_chunk_at(out->data, out->dtype, r * out->strides[0]);
        if (out->shape[1] > 0)
            eddy_chunk_fill(row, out->strides[1], bytes, &zero, out->shape[1]);
        int64_t label = label_of(work->loss.target, r);
        if (is_ignored(work->loss.attributes, label) ||
            !label_fits(&work->loss, out->shape[1], r, label))
            continue;
        int64_t grad_offset = grad->rank == 0 ? 0 : r * grad->strides[0];
        double g =
            eddy_dtype_load_f64(grad->dtype, eddy_chunk_at(grad->data, grad->dtype, grad_offset));
        double factor =
            eddy_kernel_view_is_absent(weight) ? 1 : nll_ops[out->dtype].weight(weight, label);
        eddy_dtype_store_f64(out->dtype, eddy_chunk_at(row, out->dtype, label * out->strides[1]),
                             -g * factor / work->total);
    }
}

/* views: grad, target, weight or absent, dinput */
static void nll_loss_backward_run(const eddy_kernel_call *call) {
    nll_gradient work = {.grad = &call->views[0], .total = 1};
    work.loss = (loss){.call = call,
                       .attributes = call->attributes,
                       .target = &call->views[1],
                       .weight = &call->views[2],
                       .input = &call->views[3]};
    if (work.loss.attributes->reduction == EDDY_REDUCTION_MEAN)
        work.total = eddy_kernel_view_is_absent(work.loss.weight)
                         ? (double)count_rows(&work.loss)
                         : nll_ops[work.loss.input->dtype].sum_weights(&work.loss);
    int64_t rows = work.loss.target->shape[0], grain = grain_of(work.loss.input->shape[1]);
    if (rows <= grain)
        nll_backward_slice(&work, 0, rows);
    else
        call->team->parallel_for(call->team, rows, grain, nll_backward_slice, &work);
}

const eddy_kernel eddy_cpu_nll_loss = {.name = "nll_loss",
                                       .run = nll_loss_run,
                                       .prepare = nll_loss_prepare,
                                       .cost_base_ps = 50000,
                                       .cost_element_ps = 100};
const eddy_kernel eddy_cpu_nll_loss_backward = {.name = "nll_loss_backward",
                                                .run = nll_loss_backward_run,
                                                .cost_base_ps = 50000,
                                                .cost_element_ps = 150};
