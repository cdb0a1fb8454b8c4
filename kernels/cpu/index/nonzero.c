/* nonzero: the indices of elements that are not zero (NaN is not zero), in row-major order. The number of rows is known
 * only after counting, so the kernel has two entries. The first counts slice by slice, so that the second knows where the
 * rows of each slice begin. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/index/mask_block.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>

#define PIECE 512
/* Elements of a slice at least; slices at most, each with a count in the workspace. */
#define SLICE_ELEMENTS 32768
#define SLICES 64

typedef struct nonzero_plan {
    int64_t count, grain;
    int64_t words[]; /* of the walk */
} nonzero_plan;

_Static_assert(sizeof(nonzero_plan) + EDDY_WALK_WORDS_MOST(1) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct nonzero {
    const eddy_op_view *in, *out;
    eddy_walk walk;
    int64_t count, grain;
    int64_t *held; /* [slice] elements that are not zero; later, those before the slice */
} nonzero;

static eddy_status nonzero_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *in = &call->views[0];
    nonzero_plan *p = plan->memory;
    eddy_walk walk;
    eddy_walk_init(&walk, in->rank, in->shape);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    p->grain = eddy_max_i64(SLICE_ELEMENTS, (p->count + SLICES - 1) / SLICES);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->workspace_bytes = (size_t)((p->count + p->grain - 1) / p->grain) * sizeof(int64_t);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* For both entries, `count` and `run`. */
static void nonzero_init(nonzero *work, const eddy_kernel_call *call) {
    const nonzero_plan *plan = call->plan;
    work->in = &call->views[0];
    work->count = plan->count;
    work->grain = plan->grain;
    work->held = call->workspace;
    (void)eddy_walk_read(&work->walk, plan->words);
}

/* The next `count` elements as bytes that are 0 if and only if the element is. Contiguous elements of one byte are used in
 * place, in runs of any length; others are converted to `buffer`. */
static const uint8_t *next_piece(const nonzero *work, eddy_walk_cursor *cursor, uint8_t *buffer,
                                 int64_t most, int64_t *count) {
    int64_t run = eddy_min_i64(most, eddy_walk_run(&work->walk, cursor));
    int64_t stride = eddy_walk_inner_stride(&work->walk, 0);
    eddy_dtype dtype = work->in->dtype;
    const uint8_t *piece = eddy_chunk_at(work->in->data, dtype, cursor->offsets[0]);
    if (stride != 1 || eddy_dtype_size(dtype) != 1) {
        run = eddy_min_i64(run, PIECE);
        eddy_chunk_load(EDDY_BOOL, buffer, dtype, piece, stride, run);
        piece = buffer;
    }
    eddy_walk_advance(&work->walk, cursor, run);
    *count = run;
    return piece;
}

static void count_slice(void *context, int64_t begin, int64_t end) {
    const nonzero *work = context;
    const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks();
    int64_t *held = &work->held[begin / work->grain];
    uint8_t buffer[PIECE];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    *held = 0;
    for (int64_t count; begin < end; begin += count) {
        const uint8_t *piece = next_piece(work, &cursor, buffer, end - begin, &count);
        *held += blocks->count(piece, count);
    }
}

static void nonzero_run_slices(const eddy_kernel_call *call, nonzero *work,
                               void (*slice)(void *, int64_t, int64_t)) {
    if (work->count <= work->grain)
        slice(work, 0, work->count);
    else
        call->team->parallel_for(call->team, work->count, work->grain, slice, work);
}

static void nonzero_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    nonzero work;
    int64_t total = 0;
    nonzero_init(&work, call);
    if (work.count > 0)
        nonzero_run_slices(call, &work, count_slice);
    for (int64_t begin = 0, *held = work.held; begin < work.count; begin += work.grain, held++) {
        int64_t here = *held;
        *held = total;
        total += here;
    }
    eddy_counted_nonzero(call, total, shapes);
}

/* Rows of the result for elements of a vector. */
static void put_numbers(int64_t *row, int64_t stride, int64_t first, const int32_t *held,
                        int64_t count) {
    if (stride == 1)
        for (int64_t i = 0; i < count; i++)
            row[i] = first + held[i];
    else
        for (int64_t i = 0; i < count; i++)
            row[i * stride] = first + held[i];
}

/* A position in the input: the row along the innermost dim that contains the latest element. */
typedef struct place {
    int64_t index[EDDY_RANK_MAX]; /* of the dims but the innermost */
    int64_t row_begin, row_end;   /* flat numbers */
} place;

static void place_init(place *p, const eddy_op_view *in, int64_t flat) {
    int64_t row = in->shape[in->rank - 1];
    p->row_begin = flat / row * row;
    p->row_end = p->row_begin + row;
    flat /= row;
    for (int32_t d = in->rank - 2; d >= 0; d--) {
        p->index[d] = flat % in->shape[d];
        flat /= in->shape[d];
    }
}

static void place_next_row(place *p, const eddy_op_view *in) {
    p->row_begin = p->row_end;
    p->row_end += in->shape[in->rank - 1];
    for (int32_t d = in->rank - 2; d >= 0 && ++p->index[d] == in->shape[d]; d--)
        p->index[d] = 0;
}

/* Writes the rows for elements `first` + held[i]. */
static void put_indices(const nonzero *work, place *p, int64_t *row, int64_t first,
                        const int32_t *held, int64_t count) {
    int32_t inner = work->in->rank - 1;
    int64_t step = work->out->strides[0], stride = work->out->strides[1];
    for (int64_t i = 0; i < count; i++, row += step) {
        int64_t flat = first + held[i];
        while (flat >= p->row_end)
            place_next_row(p, work->in);
        for (int32_t d = 0; d < inner; d++)
            row[d * stride] = p->index[d];
        row[inner * stride] = flat - p->row_begin;
    }
}

static void put_slice(void *context, int64_t begin, int64_t end) {
    const nonzero *work = context;
    const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks();
    int64_t *row =
        (int64_t *)work->out->data + work->held[begin / work->grain] * work->out->strides[0];
    int32_t held[PIECE];
    uint8_t buffer[PIECE];
    eddy_walk_cursor cursor;
    place p;
    eddy_walk_seek(&work->walk, &cursor, begin);
    place_init(&p, work->in, begin);
    for (int64_t count; begin < end; begin += count) {
        const uint8_t *piece =
            next_piece(work, &cursor, buffer, eddy_min_i64(PIECE, end - begin), &count);
        int64_t found = blocks->find(held, piece, 1, count);
        if (work->in->rank == 1)
            put_numbers(row, work->out->strides[0], begin, held, found);
        else
            put_indices(work, &p, row, begin, held, found);
        row += found * work->out->strides[0];
    }
}

static void nonzero_run(const eddy_kernel_call *call) {
    nonzero work;
    nonzero_init(&work, call);
    work.out = &call->views[1];
    if (work.in->rank > 0 && eddy_kernel_view_count(work.out) > 0)
        nonzero_run_slices(call, &work, put_slice);
}

const eddy_kernel eddy_cpu_nonzero = {.name = "nonzero",
                                      .run = nonzero_run,
                                      .prepare = nonzero_prepare,
                                      .count = nonzero_count,
                                      .cost_base_ps = 60000,
                                      .cost_element_ps = 950};
