/* unique: `count` sorts, and leaves the records and the numbers of their chunks for `run`. */
#include <base/dtype.h>
#include <base/shape.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/held.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/sorted.h>
#include <kernels/cuda/unique.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_unique};

enum { COUNT, BEGIN, PUT, STEPS };
static _Atomic(void *) loaded[STEPS][EDDY_CUDA_SORTED_WIDTHS][EDDY_CUDA_DEVICES],
    lengths_loaded[EDDY_CUDA_DEVICES];

#define FUNCTIONS(name, step)                                                                      \
    {                                                                                              \
        [EDDY_CUDA_SORTED_NARROW] = {"eddy_unique_" name "_narrow", &image,                        \
                                     loaded[step][EDDY_CUDA_SORTED_NARROW]},                       \
        [EDDY_CUDA_SORTED_WIDE] = {"eddy_unique_" name "_wide", &image,                            \
                                   loaded[step][EDDY_CUDA_SORTED_WIDE]},                           \
    }
static const eddy_cuda_function functions[STEPS][EDDY_CUDA_SORTED_WIDTHS] = {
    [COUNT] = FUNCTIONS("count", COUNT),
    [BEGIN] = FUNCTIONS("begin", BEGIN),
    [PUT] = FUNCTIONS("put", PUT)};
static const eddy_cuda_function lengths_function = {"eddy_unique_lengths", &image, lengths_loaded};

/* All elements as one line, and where things lie in the workspace. */
typedef struct distinct {
    const eddy_kernel_call *call;
    eddy_op_view line;
    int64_t length, stride; /* of the line */
    bool is_copied;         /* the elements are no line: it is a copy of them */
    int width;
    size_t begins_at, line_at, records_at, spare_at, end_at;
} distinct;

static size_t round_up(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static void distinct_init(distinct *d, const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0];
    eddy_walk walk;
    eddy_walk_init(&walk, in->rank, in->shape);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_collapse(&walk);
    *d = (distinct){.call = call, .length = eddy_walk_count(&walk), .is_copied = walk.rank > 1};
    d->stride = d->is_copied ? 1 : eddy_walk_inner_stride(&walk, 0);
    d->width = eddy_cuda_sorted_width(in->dtype, d->length);
    size_t records = round_up(eddy_cuda_sorted_bytes(in->dtype, d->length));
    d->line_at = round_up((size_t)eddy_cuda_held_chunks(d->length) * sizeof(int64_t));
    d->records_at =
        d->line_at + (d->is_copied ? round_up((size_t)d->length * eddy_dtype_bytes(in->dtype)) : 0);
    d->spare_at = d->records_at + records;
    d->end_at = d->spare_at + records;
    char *workspace = call->workspace;
    d->line = (eddy_op_view){.data = d->is_copied ? workspace + d->line_at : in->data,
                             .shape = &d->length,
                             .strides = &d->stride,
                             .dtype = in->dtype,
                             .rank = 1};
}

/* The elements in row-major order. */
static void copy_line(const distinct *d) {
    const eddy_op_view *in = &d->call->views[0];
    int64_t strides[EDDY_RANK_MAX];
    eddy_op_view to = *in;
    to.data = d->line.data;
    to.strides = strides;
    eddy_shape_strides_contiguous(in->rank, in->shape, strides);
    eddy_cuda_copy_view(d->call, in, &to);
}

static void parameters_of(const distinct *d, eddy_cuda_unique_call *p) {
    char *workspace = d->call->workspace;
    *p = (eddy_cuda_unique_call){.records = workspace + d->records_at,
                                 .in = d->line.data,
                                 .begins = d->call->workspace,
                                 .firsts = (int64_t *)(void *)(workspace + d->spare_at),
                                 .count = d->length,
                                 .step = d->stride * eddy_dtype_size(d->line.dtype),
                                 .element_bytes = (int32_t)eddy_dtype_size(d->line.dtype),
                                 .has_nan = eddy_dtype_is_float(d->line.dtype)};
}

static uint32_t chunk_blocks(const distinct *d) {
    return eddy_cuda_blocks(d->call, eddy_cuda_held_chunks(d->length), 1);
}

static eddy_status prepare_unique(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    distinct d;
    distinct_init(&d, call);
    plan->workspace_bytes = d.end_at;
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void count_unique(const eddy_kernel_call *call, eddy_shape *shapes) {
    (void)shapes;
    distinct d;
    eddy_cuda_unique_call p;
    distinct_init(&d, call);
    if (d.length == 0)
        return;
    if (d.is_copied)
        copy_line(&d);
    char *workspace = call->workspace;
    eddy_cuda_sorted_launch(call, &d.line, workspace + d.records_at, workspace + d.spare_at);
    parameters_of(&d, &p);
    eddy_cuda_launch(call, &functions[COUNT][d.width], &p, sizeof(p), chunk_blocks(&d));
    eddy_cuda_launch(call, &functions[BEGIN][d.width], &p, sizeof(p), 1);
}

/* views: in, values, and optionally inverse and counts */
static void describe_all(const eddy_kernel_call *call, eddy_cuda_unique_call *p) {
    const eddy_op_view *inverse = &call->views[2], *counts = &call->views[3];
    eddy_walk walk;
    eddy_walk_init(&walk, inverse->rank, inverse->shape);
    eddy_walk_add(&walk, inverse->strides, 1);
    eddy_walk_collapse(&walk);
    eddy_cuda_dims_take(&p->places, &walk, (int64_t[]){sizeof(int64_t)});
    p->inverse = inverse->data;
    p->counts = counts->data;
    p->count_step = counts->strides[0] * (int64_t)sizeof(int64_t);
}

static void run_unique(const eddy_kernel_call *call) {
    const eddy_op_view *values = &call->views[1];
    distinct d;
    eddy_cuda_unique_call p;
    distinct_init(&d, call);
    if (d.length == 0)
        return;
    parameters_of(&d, &p);
    p.values = values->data;
    p.found = values->shape[0];
    p.value_step = values->strides[0] * eddy_dtype_size(values->dtype);
    if (call->view_count == 4)
        describe_all(call, &p);
    eddy_cuda_launch(call, &functions[PUT][d.width], &p, sizeof(p), chunk_blocks(&d));
    if (p.counts)
        eddy_cuda_launch(call, &lengths_function, &p, sizeof(p),
                         eddy_cuda_blocks(call, p.found, EDDY_CUDA_BLOCK));
}

const eddy_kernel eddy_cuda_unique = {.name = "unique",
                                      .run = run_unique,
                                      .prepare = prepare_unique,
                                      .count = count_unique,
                                      .shape = eddy_counted_unique};
