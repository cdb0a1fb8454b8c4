/* softmax and log_softmax along one axis, and their gradients. Rows of up to EDDY_SOFTMAX_CHUNK elements are read and
 * written once; longer ones pass three times (largest, sum, result). */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/softmax/softmax_row.h>
#include <kernels/cpu/walk.h>
#include <kernels/grain.h>
#include <math.h>

#define SLICE_ELEMENTS 32768

typedef struct softmax {
    const eddy_kernel_call *call;
    eddy_walk rows; /* all operands, the output first; without the axis */
    int32_t axis;
    int64_t count; /* elements of a row */
    bool is_log;
    /* Not 0: rows are contiguous, short and of the compute type, and so many at a time are taken where they lie. */
    int64_t direct_rows;
} softmax;

static void forward_row(const softmax *work, const int64_t *offsets, eddy_softmax_chunk *chunk) {
    const eddy_op_view *in = &work->call->views[0], *out = &work->call->views[1];
    const eddy_softmax_ops *ops = eddy_softmax_ops_for(in->dtype);
    int64_t out_stride = out->strides[work->axis];
    void *target = eddy_chunk_at(out->data, out->dtype, offsets[0]);
    const void *source = eddy_chunk_at(in->data, in->dtype, offsets[1]);
    eddy_softmax_row row = {
        .data = source, .stride = in->strides[work->axis], .count = work->count, .dtype = in->dtype};
    eddy_softmax_total total = eddy_softmax_row_total(ops, &row, chunk);
    bool is_kept = work->count <= EDDY_SOFTMAX_CHUNK; /* the chunk still holds exp(x - max) */
    for (int64_t begin = 0; begin < work->count; begin += EDDY_SOFTMAX_CHUNK) {
        int64_t padded = EDDY_SOFTMAX_CHUNK;
        if (!is_kept || work->is_log)
            padded = eddy_softmax_load(&row, begin, -INFINITY, chunk);
        else
            padded = (work->count + EDDY_SOFTMAX_LANES - 1) / EDDY_SOFTMAX_LANES * EDDY_SOFTMAX_LANES;
        if (work->is_log) {
            ops->shift(chunk, total.max, total.sum, padded);
        } else {
            if (!is_kept)
                ops->exp_sum(chunk, total.max, padded);
            ops->scale(chunk, 1.0 / total.sum, padded);
        }
        eddy_softmax_store(&row, begin, chunk, target, out_stride, out->dtype);
    }
}

/* views: grad, output -> dinput */
static void backward_row(const softmax *work, const int64_t *offsets, eddy_softmax_chunk *grads,
                         eddy_softmax_chunk *outputs) {
    const eddy_op_view *views = work->call->views;
    const eddy_softmax_ops *ops = eddy_softmax_ops_for(views[0].dtype);
    eddy_softmax_row rows[2];
    for (int o = 0; o < 2; o++)
        rows[o] = (eddy_softmax_row){.data = eddy_chunk_at(views[o].data, views[o].dtype, offsets[o + 1]),
                                     .stride = views[o].strides[work->axis],
                                     .count = work->count,
                                     .dtype = views[o].dtype};
    double total = 0;
    int64_t padded = 0;
    for (int64_t begin = 0; begin < work->count; begin += EDDY_SOFTMAX_CHUNK) {
        padded = eddy_softmax_load(&rows[0], begin, 0, grads);
        if (work->is_log) {
            total += ops->sum(grads, padded);
        } else {
            eddy_softmax_load(&rows[1], begin, 0, outputs);
            total += ops->dot(grads, outputs, padded);
        }
    }
    bool is_kept = work->count <= EDDY_SOFTMAX_CHUNK;
    for (int64_t begin = 0; begin < work->count; begin += EDDY_SOFTMAX_CHUNK) {
        if (!is_kept)
            padded = eddy_softmax_load(&rows[0], begin, 0, grads);
        if (!is_kept || work->is_log)
            eddy_softmax_load(&rows[1], begin, 0, outputs);
        if (work->is_log)
            ops->log_backward(grads, outputs, total, padded);
        else
            ops->backward(grads, outputs, total, padded);
        eddy_softmax_store(&rows[0], begin, grads, eddy_chunk_at(views[2].data, views[2].dtype, offsets[0]),
                           views[2].strides[work->axis], views[2].dtype);
    }
}

static void direct_rows(const softmax *work, int64_t begin, int64_t end) {
    const eddy_op_view *in = &work->call->views[0], *out = &work->call->views[1];
    const eddy_softmax_ops *ops = eddy_softmax_ops_for(in->dtype);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    while (begin < end) {
        void *targets[EDDY_SOFTMAX_ROWS];
        const void *sources[EDDY_SOFTMAX_ROWS];
        int64_t rows = eddy_min_i64(work->direct_rows, end - begin);
        for (int64_t r = 0; r < rows; r++) {
            targets[r] = eddy_chunk_at(out->data, out->dtype, cursor.offsets[0]);
            sources[r] = eddy_chunk_at(in->data, in->dtype, cursor.offsets[1]);
            eddy_walk_next(&work->rows, &cursor, work->rows.rank);
        }
        ops->rows(targets, sources, rows, work->count, work->is_log);
        begin += rows;
    }
}

static void softmax_forward_slice(void *context, int64_t begin, int64_t end) {
    const softmax *work = context;
    if (work->direct_rows > 0) {
        direct_rows(work, begin, end);
        return;
    }
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

/* A view's strides as a walk over rows needs them: without the axis. */
static void drop_axis(const int64_t *from, int32_t rank, int32_t axis, int64_t *to) {
    for (int32_t d = 0, kept = 0; d < rank; d++)
        if (d != axis)
            to[kept++] = from[d];
}

/* The target may be the operand itself, which has to go through a chunk. What is taken at a time fits the nearest cache. */
static int64_t direct_rows_of(const eddy_kernel_call *call, int32_t axis) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[call->view_count - 1];
    bool is_direct = in->strides[axis] == 1 && out->strides[axis] == 1 && in->dtype == out->dtype &&
                     in->dtype == eddy_softmax_compute_dtype(in->dtype) && out->shape[axis] <= EDDY_SOFTMAX_CHUNK &&
                     in->data != out->data;
    return is_direct ? eddy_max_i64(1, eddy_min_i64(EDDY_SOFTMAX_ROWS, EDDY_SOFTMAX_CHUNK / out->shape[axis])) : 0;
}

static void softmax_run_of(const eddy_kernel_call *call, bool is_log, void (*slice)(void *, int64_t, int64_t)) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    if (eddy_view_count(out) == 0)
        return;
    /* Rank 0 is a row of one element. */
    static const int64_t one_dim = 1, no_stride = 1;
    eddy_op_view scalars[3];
    eddy_kernel_call scalar_call = *call;
    if (out->rank == 0) {
        for (int32_t o = 0; o < call->view_count; o++) {
            scalars[o] = call->views[o];
            scalars[o].rank = 1;
            scalars[o].shape = &one_dim;
            scalars[o].strides = &no_stride;
        }
        scalar_call.views = scalars;
        call = &scalar_call;
        out = &scalars[call->view_count - 1];
    }
    /* Set one by one: a walk is too large to be cleared for nothing. */
    softmax work;
    work.call = call;
    work.axis = attributes->axis;
    work.count = out->shape[attributes->axis];
    work.is_log = is_log;
    work.direct_rows = direct_rows_of(call, work.axis);
    int64_t dropped[EDDY_RANK_MAX];
    drop_axis(out->shape, out->rank, work.axis, dropped);
    eddy_walk_init(&work.rows, out->rank - 1, dropped);
    drop_axis(out->strides, out->rank, work.axis, dropped);
    eddy_walk_add(&work.rows, dropped, 1);
    for (int32_t o = 0; o < call->view_count - 1; o++) {
        drop_axis(call->views[o].strides, out->rank, work.axis, dropped);
        eddy_walk_add(&work.rows, dropped, 1);
    }
    eddy_walk_sort(&work.rows);
    eddy_walk_collapse(&work.rows);
    int64_t rows = eddy_walk_count(&work.rows), grain = eddy_max_i64(1, SLICE_ELEMENTS / work.count);
    if (rows <= grain)
        slice(&work, 0, rows);
    else
        call->team->parallel_for(call->team, rows, eddy_even_grain(call->team, rows, grain, 1), slice, &work);
}

static void softmax_run(const eddy_kernel_call *call) {
    softmax_run_of(call, false, softmax_forward_slice);
}

static void log_softmax_run(const eddy_kernel_call *call) {
    softmax_run_of(call, true, softmax_forward_slice);
}

static void softmax_backward_run(const eddy_kernel_call *call) {
    softmax_run_of(call, false, softmax_backward_slice);
}

static void log_softmax_backward_run(const eddy_kernel_call *call) {
    softmax_run_of(call, true, softmax_backward_slice);
}

const eddy_kernel eddy_cpu_softmax = {
    .name = "softmax", .run = softmax_run, .cost_base_ps = 100000, .cost_element_ps = 600};
const eddy_kernel eddy_cpu_log_softmax = {
    .name = "log_softmax", .run = log_softmax_run, .cost_base_ps = 100000, .cost_element_ps = 650};
const eddy_kernel eddy_cpu_softmax_backward = {
    .name = "softmax_backward", .run = softmax_backward_run, .cost_base_ps = 100000, .cost_element_ps = 300};
const eddy_kernel eddy_cpu_log_softmax_backward = {
    .name = "log_softmax_backward", .run = log_softmax_backward_run, .cost_base_ps = 100000, .cost_element_ps = 600};
