/* tril, triu, diag. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 65536

typedef struct triangle {
    const eddy_op_view *in, *out;
    eddy_walk rows; /* out, in: all dims but the last */
    int64_t height, width, diagonal;
    bool is_upper;
} triangle;

static void triangle_slice(void *context, int64_t begin, int64_t end) {
    const triangle *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t out_stride = work->out->strides[work->out->rank - 1], in_stride = work->in->strides[work->in->rank - 1];
    const _Alignas(8) char zero[8] = {0};
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (; begin < end; begin++) {
        char *to = eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]);
        const char *from = eddy_chunk_at(work->in->data, dtype, cursor.offsets[1]);
        /* Columns before `edge` are on or below the diagonal (tril), or below it (triu). */
        int64_t edge = begin % work->height + work->diagonal + (work->is_upper ? 0 : 1);
        edge = eddy_min_i64(work->width, eddy_max_i64(0, edge));
        int64_t kept = work->is_upper ? edge : 0, kept_end = work->is_upper ? work->width : edge;
        int64_t cleared = work->is_upper ? 0 : edge, cleared_end = work->is_upper ? edge : work->width;
        if (to != from && kept_end > kept)
            eddy_chunk_copy(dtype, eddy_chunk_at(to, dtype, kept * out_stride), out_stride, dtype,
                            eddy_chunk_at(from, dtype, kept * in_stride), in_stride, kept_end - kept);
        if (cleared_end > cleared)
            eddy_chunk_fill(eddy_chunk_at(to, dtype, cleared * out_stride), out_stride,
                            (int64_t)eddy_dtype_bytes(dtype), zero, cleared_end - cleared);
        eddy_walk_next(&work->rows, &cursor, work->rows.rank);
    }
}

/* views: in, out, of rank 2 or more; out may be in */
static void triangle_run(const eddy_kernel_call *call, bool is_upper) {
    const eddy_attributes_diagonal *attributes = call->attributes;
    /* Set one by one: a walk is too large to be cleared for nothing. */
    triangle work;
    work.in = &call->views[0];
    work.out = &call->views[1];
    work.is_upper = is_upper;
    if (eddy_view_count(work.out) == 0)
        return;
    int32_t rank = work.out->rank;
    work.height = work.out->shape[rank - 2];
    work.width = work.out->shape[rank - 1];
    /* Diagonals beyond the corners are all alike; far ones must not overflow. */
    work.diagonal = eddy_min_i64(work.width, eddy_max_i64(-work.height, attributes->diagonal));
    eddy_walk_init(&work.rows, rank - 1, work.out->shape);
    eddy_walk_add(&work.rows, work.out->strides, 1);
    eddy_walk_add(&work.rows, work.in->strides, 1);
    int64_t rows = eddy_walk_count(&work.rows), grain = eddy_max_i64(1, SLICE_ELEMENTS / work.width);
    if (rows <= grain)
        triangle_slice(&work, 0, rows);
    else
        call->team->parallel_for(call->team, rows, grain, triangle_slice, &work);
}

static void tril_run(const eddy_kernel_call *call) {
    triangle_run(call, false);
}

static void triu_run(const eddy_kernel_call *call) {
    triangle_run(call, true);
}

/* The diagonal of a matrix: its first element, its stride and its length. */
static int64_t diagonal_of(const eddy_op_view *matrix, int64_t diagonal, char **first, int64_t *stride) {
    int64_t row = eddy_max_i64(0, -diagonal), column = eddy_max_i64(0, diagonal);
    int64_t length = eddy_min_i64(matrix->shape[0] - row, matrix->shape[1] - column);
    *stride = matrix->strides[0] + matrix->strides[1];
    *first = length > 0
                 ? eddy_chunk_at(matrix->data, matrix->dtype, row * matrix->strides[0] + column * matrix->strides[1])
                 : NULL;
    return eddy_max_i64(0, length);
}

/* views: in, out: one is a vector, the other a matrix; the inference has brought the diagonal within its shape */
static void diag_run(const eddy_kernel_call *call) {
    const eddy_attributes_diagonal *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    eddy_dtype dtype = out->dtype;
    bool picks = in->rank == 2;
    const _Alignas(8) char zero[8] = {0};
    if (!picks)
        eddy_fill_view(call->team, out, zero);
    char *first;
    int64_t stride, length = diagonal_of(picks ? in : out, attributes->diagonal, &first, &stride);
    if (length == 0)
        return;
    if (picks)
        eddy_chunk_copy(dtype, out->data, out->strides[0], dtype, first, stride, length);
    else
        eddy_chunk_copy(dtype, first, stride, dtype, in->data, in->strides[0], length);
}

/* About half of the operand is read. */
static int64_t triangle_cost(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[1];
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(out), call->kernel->cost_element_ps) +
           eddy_cost_far_ps(eddy_cost_bytes(eddy_view_count(out), out->dtype) * 3 / 2);
}

const eddy_kernel eddy_cpu_tril = {
    .name = "tril", .run = tril_run, .cost_base_ps = 70000, .cost_element_ps = 150, .cost = triangle_cost};
const eddy_kernel eddy_cpu_triu = {
    .name = "triu", .run = triu_run, .cost_base_ps = 70000, .cost_element_ps = 150, .cost = triangle_cost};

/* What is written: a matrix that a diagonal is picked from is not read as a whole. */
static int64_t diag_cost(const eddy_kernel_call *call) {
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(&call->views[1]), call->kernel->cost_element_ps);
}

const eddy_kernel eddy_cpu_diag = {
    .name = "diag", .run = diag_run, .cost_base_ps = 50000, .cost_element_ps = 600, .cost = diag_cost};
