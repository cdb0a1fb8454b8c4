/* softmax and log_softmax along one axis, and their gradients. Rows of up to EDDY_SOFTMAX_CHUNK elements are read and
 * written once. Longer rows are read three times (for the largest element, the sum, the result). */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/softmax/softmax_row.h>
#include <kernels/cpu/walk.h>
#include <kernels/grain.h>
#include <math.h>

#define SLICE_ELEMENTS 32768

#define OPERANDS 3

/* The plan of a call. It ends with the walk over the rows: the output, then the inputs, without the axis. */
typedef struct softmax_plan {
    const eddy_softmax_ops *ops;
    int64_t row_count; /* 0: there is nothing to do, and no walk */
    int64_t count;     /* elements of a row */
    int64_t grain;
    int64_t direct_rows;       /* not 0: rows may be used in place, so many at a time */
    int64_t strides[OPERANDS]; /* along the axis, of the views */
    int64_t steps[2]; /* from row to row, of output and operand; used if they are constant */
    bool is_even, is_log;
    int64_t rows[];
} softmax_plan;

_Static_assert(sizeof(softmax_plan) + EDDY_WALK_WORDS_MOST(OPERANDS) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "a plan fits");

typedef struct softmax {
    const eddy_op_view *views;
    const softmax_plan *plan;
    eddy_walk rows;
} softmax;

static void forward_row(const softmax *work, const int64_t *offsets, eddy_softmax_chunk *chunk) {
    const softmax_plan *plan = work->plan;
    const eddy_op_view *in = &work->views[0], *out = &work->views[1];
    const eddy_softmax_ops *ops = plan->ops;
    void *target = eddy_chunk_at(out->data, out->dtype, offsets[0]);
    const void *source = eddy_chunk_at(in->data, in->dtype, offsets[1]);
    eddy_softmax_row row = {
        .data = source, .stride = plan->strides[0], .count = plan->count, .dtype = in->dtype};
    eddy_softmax_total total = eddy_softmax_row_total(ops, &row, chunk);
    bool is_kept = plan->count <= EDDY_SOFTMAX_CHUNK; /* the chunk still holds exp(x - max) */
    for (int64_t begin = 0; begin < plan->count; begin += EDDY_SOFTMAX_CHUNK) {
        int64_t padded = EDDY_SOFTMAX_CHUNK;
        if (!is_kept || plan->is_log)
            padded = eddy_softmax_load(&row, begin, -INFINITY, chunk);
        else
            padded =
                (plan->count + EDDY_SOFTMAX_LANES - 1) / EDDY_SOFTMAX_LANES * EDDY_SOFTMAX_LANES;
        if (plan->is_log) {
            ops->shift(chunk, total.max, total.sum, padded);
        } else {
            if (!is_kept)
                ops->exp_sum(chunk, total.max, padded);
            ops->scale(chunk, 1.0 / total.sum, padded);
        }
        eddy_softmax_store(&row, begin, chunk, target, plan->strides[1], out->dtype);
    }
}

/* views: grad, output -> dinput */
static void backward_row(const softmax *work, const int64_t *offsets, eddy_softmax_chunk *grads,
                         eddy_softmax_chunk *outputs) {
    const softmax_plan *plan = work->plan;
    const eddy_op_view *views = work->views;
    const eddy_softmax_ops *ops = plan->ops;
    eddy_softmax_row rows[2];
    for (int o = 0; o < 2; o++)
        rows[o] =
            (eddy_softmax_row){.data = eddy_chunk_at(views[o].data, views[o].dtype, offsets[o + 1]),
                               .stride = plan->strides[o],
                               .count = plan->count,
                               .dtype = views[o].dtype};
    double total = 0;
    int64_t padded = 0;
    for (int64_t begin = 0; begin < plan->count; begin += EDDY_SOFTMAX_CHUNK) {
        padded = eddy_softmax_load(&rows[0], begin, 0, grads);
        if (plan->is_log) {
            total += ops->sum(grads, padded);
        } else {
            eddy_softmax_load(&rows[1], begin, 0, outputs);
            total += ops->dot(grads, outputs, padded);
        }
    }
    bool is_kept = plan->count <= EDDY_SOFTMAX_CHUNK;
    for (int64_t begin = 0; begin < plan->count; begin += EDDY_SOFTMAX_CHUNK) {
        if (!is_kept)
            padded = eddy_softmax_load(&rows[0], begin, 0, grads);
        if (!is_kept || plan->is_log)
            eddy_softmax_load(&rows[1], begin, 0, outputs);
        if (plan->is_log)
            ops->log_backward(grads, outputs, total, padded);
        else
            ops->backward(grads, outputs, total, padded);
        eddy_softmax_store(&rows[0], begin, grads,
                           eddy_chunk_at(views[2].data, views[2].dtype, offsets[0]),
                           plan->strides[2], views[2].dtype);
    }
}

/* Rows at a constant distance, the usual case: no walk is needed. */
static void softmax_even_slice(void *context, int64_t begin, int64_t end) {
    const softmax *work = context;
    const softmax_plan *plan = work->plan;
    const eddy_op_view *in = &work->views[0], *out = &work->views[1];
    int64_t size = eddy_dtype_size(in->dtype), to_step = plan->steps[0] * size,
            step = plan->steps[1] * size;
    char *to = (char *)out->data + begin * to_step;
    const char *from = (const char *)in->data + begin * step;
    while (begin < end) {
        void *targets[EDDY_SOFTMAX_ROWS];
        const void *sources[EDDY_SOFTMAX_ROWS];
        int64_t rows = eddy_min_i64(plan->direct_rows, end - begin);
        for (int64_t r = 0; r < rows; r++, to += to_step, from += step) {
            targets[r] = to;
            sources[r] = from;
        }
        plan->ops->rows(targets, sources, rows, plan->count, plan->is_log);
        begin += rows;
    }
}

static void softmax_direct_slice(void *context, int64_t begin, int64_t end) {
    const softmax *work = context;
    const softmax_plan *plan = work->plan;
    const eddy_op_view *in = &work->views[0], *out = &work->views[1];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    while (begin < end) {
        void *targets[EDDY_SOFTMAX_ROWS];
        const void *sources[EDDY_SOFTMAX_ROWS];
        int64_t rows = eddy_min_i64(plan->direct_rows, end - begin);
        for (int64_t r = 0; r < rows; r++) {
            targets[r] = eddy_chunk_at(out->data, out->dtype, cursor.offsets[0]);
            sources[r] = eddy_chunk_at(in->data, in->dtype, cursor.offsets[1]);
            eddy_walk_next(&work->rows, &cursor, work->rows.rank);
        }
        plan->ops->rows(targets, sources, rows, plan->count, plan->is_log);
        begin += rows;
    }
}

static void softmax_forward_slice(void *context, int64_t begin, int64_t end) {
    const softmax *work = context;
    eddy_softmax_chunk chunk;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (; begin < end; begin++) {
        forward_row(work, cursor.offsets, &chunk);
        eddy_walk_next(&work->rows, &cursor, work->rows.rank);
    }
}

static void softmax_backward_slice(void *context, int64_t begin, int64_t end) {
    const softmax *work = context;
    eddy_softmax_chunk grads, outputs;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (; begin < end; begin++) {
        backward_row(work, cursor.offsets, &grads, &outputs);
        eddy_walk_next(&work->rows, &cursor, work->rows.rank);
    }
}

static void softmax_run_slices(const eddy_kernel_call *call, softmax *work,
                               void (*slice)(void *, int64_t, int64_t)) {
    const softmax_plan *plan = work->plan = call->plan;
    work->views = call->views;
    if (plan->row_count <= plan->grain)
        slice(work, 0, plan->row_count);
    else
        call->team->parallel_for(call->team, plan->row_count,
                                 eddy_grain_even(call->team, plan->row_count, plan->grain, 1),
                                 slice, work);
}

/* If the target is the operand itself, rows have to go through a chunk. */
static void softmax_run(const eddy_kernel_call *call) {
    const softmax_plan *plan = call->plan;
    if (plan->row_count == 0)
        return;
    softmax work;
    bool is_direct = plan->direct_rows > 0 && call->views[0].data != call->views[1].data;
    if (is_direct && plan->is_even) {
        softmax_run_slices(call, &work, softmax_even_slice);
        return;
    }
    eddy_walk_read(&work.rows, plan->rows);
    softmax_run_slices(call, &work, is_direct ? softmax_direct_slice : softmax_forward_slice);
}

static void softmax_backward_run(const eddy_kernel_call *call) {
    const softmax_plan *plan = call->plan;
    if (plan->row_count == 0)
        return;
    softmax work;
    eddy_walk_read(&work.rows, plan->rows);
    softmax_run_slices(call, &work, softmax_backward_slice);
}

static void plan_rows(const eddy_op_view *views, int32_t inputs, int32_t axis, eddy_walk *rows) {
    const eddy_op_view *out = &views[inputs];
    rows->rank = 0;
    rows->operand_count = inputs + 1;
    for (int32_t d = 0; d < out->rank; d++) {
        if (d == axis)
            continue;
        rows->dims[rows->rank] = out->shape[d];
        rows->strides[0][rows->rank] = out->strides[d];
        for (int32_t o = 0; o < inputs; o++)
            rows->strides[o + 1][rows->rank] = views[o].strides[d];
        rows->rank++;
    }
    if (rows->rank < 2)
        return;
    eddy_walk_sort(rows);
    eddy_walk_collapse(rows);
}

/* A 0-dimensional tensor is a row of one element. */
static void plan_axis(const eddy_kernel_call *call, int32_t axis, softmax_plan *to) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[call->view_count - 1];
    to->count = out->rank == 0 ? 1 : out->shape[axis];
    for (int32_t o = 0; o < call->view_count; o++)
        to->strides[o] = out->rank == 0 ? 1 : call->views[o].strides[axis];
    to->direct_rows = 0;
    if (call->view_count == 2 && in->dtype == out->dtype && to->strides[1] == 1)
        to->direct_rows = eddy_softmax_direct_rows(in->dtype, to->strides[0], to->count);
}

static int64_t softmax_cost(const eddy_kernel_call *call, int64_t elements) {
    int64_t bytes = 0;
    bool is_near = eddy_cost_is_near(elements, call->view_count);
    for (int32_t o = 0; o < call->view_count && !is_near; o++)
        bytes += eddy_cost_bytes(elements, call->views[o].dtype);
    return eddy_cost_flat_ps(call->kernel, elements, bytes);
}

static eddy_status softmax_plan_of(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                   bool is_log) {
    const eddy_attributes_axis *attributes = call->attributes;
    softmax_plan *to = plan->memory;
    plan_axis(call, attributes->axis, to);
    eddy_walk rows;
    plan_rows(call->views, call->view_count - 1, attributes->axis, &rows);
    int64_t row_count = eddy_walk_count(&rows);
    plan->cost_ps = softmax_cost(call, row_count * to->count);
    to->row_count = to->count == 0 ? 0 : row_count;
    plan->bytes = sizeof(*to);
    if (to->row_count == 0)
        return EDDY_OK;
    to->ops = eddy_softmax_ops_for(call->views[0].dtype);
    to->grain = eddy_max_i64(1, SLICE_ELEMENTS / to->count);
    to->is_log = is_log;
    to->is_even = rows.rank <= 1;
    for (int32_t o = 0; o < 2; o++)
        to->steps[o] = eddy_walk_inner_stride(&rows, o);
    plan->bytes = (size_t)((char *)eddy_walk_write(&rows, to->rows) - (char *)to);
    return EDDY_OK;
}

static eddy_status softmax_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return softmax_plan_of(call, plan, false);
}

static eddy_status log_softmax_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return softmax_plan_of(call, plan, true);
}

#define KERNEL(label, variant, direction, element_ps)                                              \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                          \
                                          .run = direction##_run,                                  \
                                          .prepare = variant##_prepare,                            \
                                          .cost_base_ps = 100000,                                  \
                                          .cost_element_ps = element_ps};

KERNEL(softmax, softmax, softmax, 600)
KERNEL(log_softmax, log_softmax, softmax, 650)
KERNEL(softmax_backward, softmax, softmax_backward, 300)
KERNEL(log_softmax_backward, log_softmax, softmax_backward, 600)
