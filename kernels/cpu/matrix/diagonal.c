/* tril, triu, diag. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/walk.h>

#define SLICE_ELEMENTS 65536

typedef struct triangle_plan {
    int64_t height, width, diagonal;
    int64_t rows, grain;
    bool is_upper;
    int64_t words[]; /* of the walk */
} triangle_plan;

_Static_assert(sizeof(triangle_plan) + EDDY_WALK_WORDS_MOST(2) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct triangle {
    const triangle_plan *plan;
    const eddy_op_view *in, *out;
    eddy_walk rows; /* out, in: all dims but the last */
} triangle;

static void triangle_slice(void *context, int64_t begin, int64_t end) {
    const triangle *work = context;
    const triangle_plan *plan = work->plan;
    eddy_dtype dtype = work->out->dtype;
    int64_t out_stride = work->out->strides[work->out->rank - 1],
            in_stride = work->in->strides[work->in->rank - 1];
    const _Alignas(8) char zero[8] = {0};
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rows, &cursor, begin);
    for (; begin < end; begin++) {
        char *to = eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]);
        const char *from = eddy_chunk_at(work->in->data, dtype, cursor.offsets[1]);
        /* Columns before `edge` are on or below the diagonal (tril), or below it (triu). */
        int64_t edge = begin % plan->height + plan->diagonal + (plan->is_upper ? 0 : 1);
        edge = eddy_min_i64(plan->width, eddy_max_i64(0, edge));
        int64_t kept = plan->is_upper ? edge : 0, kept_end = plan->is_upper ? plan->width : edge;
        int64_t cleared = plan->is_upper ? 0 : edge,
                cleared_end = plan->is_upper ? edge : plan->width;
        if (to != from && kept_end > kept)
            eddy_chunk_copy(dtype, eddy_chunk_at(to, dtype, kept * out_stride), out_stride, dtype,
                            eddy_chunk_at(from, dtype, kept * in_stride), in_stride,
                            kept_end - kept);
        if (cleared_end > cleared)
            eddy_chunk_fill(eddy_chunk_at(to, dtype, cleared * out_stride), out_stride,
                            (int64_t)eddy_dtype_bytes(dtype), zero, cleared_end - cleared);
        eddy_walk_next(&work->rows, &cursor, work->rows.rank);
    }
}

/* About half of the operand is read. */
static int64_t triangle_cost(const eddy_kernel_call *call, int64_t count) {
    return call->kernel->cost_base_ps + eddy_cost_ps(count, call->kernel->cost_element_ps) +
           eddy_cost_far_ps(eddy_cost_bytes(count, call->views[1].dtype) * 3 / 2);
}

/* views: in, out, of rank 2 or more; out may be in */
static eddy_status triangle_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                    bool is_upper) {
    const eddy_attributes_diagonal *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    triangle_plan *p = plan->memory;
    p->is_upper = is_upper;
    p->height = out->shape[out->rank - 2];
    p->width = out->shape[out->rank - 1];
    /* All diagonals beyond the corners give the same result; they are limited so that sums do not overflow. */
    p->diagonal = eddy_min_i64(p->width, eddy_max_i64(-p->height, attributes->diagonal));
    eddy_walk rows;
    eddy_walk_init(&rows, out->rank - 1, out->shape);
    eddy_walk_add(&rows, out->strides, 1);
    eddy_walk_add(&rows, in->strides, 1);
    p->rows = p->width > 0 ? eddy_walk_count(&rows) : 0;
    p->grain = eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, p->width));
    plan->bytes = (size_t)((char *)eddy_walk_write(&rows, p->words) - (char *)p);
    plan->cost_ps = triangle_cost(call, p->rows * p->width);
    return EDDY_OK;
}

static eddy_status tril_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return triangle_prepare(call, plan, false);
}

static eddy_status triu_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return triangle_prepare(call, plan, true);
}

static void triangle_run(const eddy_kernel_call *call) {
    const triangle_plan *plan = call->plan;
    triangle work; /* set one by one: a walk is too large to be cleared for nothing */
    work.plan = plan;
    work.in = &call->views[0];
    work.out = &call->views[1];
    (void)eddy_walk_read(&work.rows, plan->words);
    if (plan->rows > plan->grain)
        call->team->parallel_for(call->team, plan->rows, plan->grain, triangle_slice, &work);
    else if (plan->rows > 0)
        triangle_slice(&work, 0, plan->rows);
}

/* The diagonal of a matrix, in elements. */
typedef struct diagonal_plan {
    int64_t first, stride, length;
    int64_t words[]; /* words of filling the matrix first, if the output is the matrix */
} diagonal_plan;

_Static_assert(sizeof(diagonal_plan) + EDDY_FILL_WORDS_MOST * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

static diagonal_plan diagonal_of(const eddy_op_view *matrix, int64_t diagonal) {
    int64_t row = eddy_max_i64(0, -diagonal), column = eddy_max_i64(0, diagonal);
    int64_t length = eddy_min_i64(matrix->shape[0] - row, matrix->shape[1] - column);
    return (diagonal_plan){.first = row * matrix->strides[0] + column * matrix->strides[1],
                           .stride = matrix->strides[0] + matrix->strides[1],
                           .length = eddy_max_i64(0, length)};
}

/* views: in, out: one is a vector, the other a matrix; the inference has limited the diagonal to the shape. The estimate
 * counts what is written: a matrix whose diagonal is read is not read as a whole. */
static eddy_status diag_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_diagonal *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    diagonal_plan *p = plan->memory;
    bool picks = in->rank == 2;
    *p = diagonal_of(picks ? in : out, attributes->diagonal);
    int64_t *end = picks ? p->words : eddy_fill_prepare(out, p->words);
    plan->bytes = (size_t)((char *)end - (char *)p);
    plan->cost_ps = call->kernel->cost_base_ps +
                    eddy_cost_ps(eddy_kernel_view_count(out), call->kernel->cost_element_ps);
    return EDDY_OK;
}

static void diag_run(const eddy_kernel_call *call) {
    const diagonal_plan *plan = call->plan;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    eddy_dtype dtype = out->dtype;
    bool picks = in->rank == 2;
    const _Alignas(8) char zero[8] = {0};
    if (!picks)
        eddy_fill_run(plan->words, call->team, out, zero);
    if (plan->length == 0)
        return;
    if (picks)
        eddy_chunk_copy(dtype, out->data, out->strides[0], dtype,
                        eddy_chunk_at(in->data, dtype, plan->first), plan->stride, plan->length);
    else
        eddy_chunk_copy(dtype, eddy_chunk_at(out->data, dtype, plan->first), plan->stride, dtype,
                        in->data, in->strides[0], plan->length);
}

const eddy_kernel eddy_cpu_tril = {.name = "tril",
                                   .run = triangle_run,
                                   .prepare = tril_prepare,
                                   .cost_base_ps = 70000,
                                   .cost_element_ps = 150};
const eddy_kernel eddy_cpu_triu = {.name = "triu",
                                   .run = triangle_run,
                                   .prepare = triu_prepare,
                                   .cost_base_ps = 70000,
                                   .cost_element_ps = 150};
const eddy_kernel eddy_cpu_diag = {.name = "diag",
                                   .run = diag_run,
                                   .prepare = diag_prepare,
                                   .cost_base_ps = 50000,
                                   .cost_element_ps = 600};
