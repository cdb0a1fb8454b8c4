/* index_select, gather, one_hot. Indices are checked while they are used. An index out of range records its flat position,
 * and its part of the output stays unwritten; the output is then poisoned. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

#define SLICE_ELEMENTS 32768
/* Indices that are converted to i64 at a time. */
#define PIECE 256

static int64_t index_at(const eddy_op_view *index, int64_t offset) {
    const void *element = eddy_chunk_at(index->data, index->dtype, offset);
    return index->dtype == EDDY_I64 ? *(const int64_t *)element
                                    : eddy_dtype_load_i64(index->dtype, element);
}

static void copy_element(void *target, const void *source, size_t bytes) {
    switch (bytes) {
    case 1:
        memcpy(target, source, 1);
        break;
    case 2:
        memcpy(target, source, 2);
        break;
    case 4:
        memcpy(target, source, 4);
        break;
    default:
        memcpy(target, source, 8);
        break;
    }
}

static bool index_fits(const eddy_kernel_call *call, int64_t position, int64_t index,
                       int64_t bound) {
    if (index >= 0 && index < bound)
        return true;
    eddy_kernel_fail(call, EDDY_OUT_OF_RANGE, position, index, bound);
    return false;
}

/* `count` items, in slices of `grain` items. */
typedef struct slices {
    void (*slice)(void *context, int64_t begin, int64_t end);
    int64_t count, grain;
} slices;

static void index_run_slices(const eddy_kernel_call *call, const slices *cut, void *work) {
    if (cut->count == 0)
        return;
    if (cut->count <= cut->grain)
        cut->slice(work, 0, cut->count);
    else
        call->team->parallel_for(call->team, cut->count, cut->grain, cut->slice, work);
}

/* The estimate counts the elements that are picked, which are read and written, not the tensor that they are picked from. */
static int64_t pick_cost(const eddy_kernel_call *call, int64_t count, int64_t element_ps) {
    return call->kernel->cost_base_ps + eddy_cost_ps(count, element_ps) +
           eddy_cost_far_ps(2 * eddy_cost_bytes(count, call->views[2].dtype));
}

/* ---- index_select ---- */

typedef struct selection_plan {
    slices cut;
    int64_t around, count;     /* elements of the dims besides the axis; indices */
    int64_t bound, index_step; /* of the indices */
    int64_t out_step, in_step; /* along the axis */
    int64_t words[];           /* of the walk */
} selection_plan;

_Static_assert(sizeof(selection_plan) + EDDY_WALK_WORDS_MOST(2) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct selection {
    const eddy_kernel_call *call;
    const selection_plan *plan;
    const eddy_op_view *in, *index, *out;
    eddy_walk rest; /* out, in; without the axis */
} selection;

/* Slices are ranges of indices: for each index, the dims besides the axis are copied. */
static void select_slabs(void *context, int64_t begin, int64_t end) {
    const selection *work = context;
    const selection_plan *plan = work->plan;
    eddy_dtype dtype = work->out->dtype;
    for (int64_t i = begin; i < end; i++) {
        int64_t index = index_at(work->index, i * plan->index_step);
        if (!index_fits(work->call, i, index, plan->bound))
            continue;
        char *target = eddy_chunk_at(work->out->data, dtype, i * plan->out_step);
        const char *source = eddy_chunk_at(work->in->data, dtype, index * plan->in_step);
        eddy_copy_part(&work->rest, plan->around, dtype, target, source);
    }
}

/* Slices are ranges of places in the dims besides the axis: for each place, all indices. For an axis whose neighbours are
 * few or scattered. */
static void select_lines(void *context, int64_t begin, int64_t end) {
    const selection *work = context;
    const selection_plan *plan = work->plan;
    size_t bytes = eddy_dtype_bytes(work->out->dtype);
    int64_t out_step = plan->out_step * (int64_t)bytes, in_step = plan->in_step * (int64_t)bytes;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rest, &cursor, begin);
    for (int64_t place = begin; place < end; place++) {
        char *target = eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[0]);
        const char *source = eddy_chunk_at(work->in->data, work->out->dtype, cursor.offsets[1]);
        for (int64_t i = 0; i < plan->count; i++) {
            int64_t index = index_at(work->index, i * plan->index_step);
            if (index_fits(work->call, i, index, plan->bound))
                copy_element(target + i * out_step, source + index * in_step, bytes);
        }
        eddy_walk_next(&work->rest, &cursor, work->rest.rank);
    }
}

/* Indices are checked even if there is nothing to copy. */
static void check_indices(void *context, int64_t begin, int64_t end) {
    const selection *work = context;
    for (int64_t i = begin; i < end; i++)
        index_fits(work->call, i, index_at(work->index, i * work->plan->index_step),
                   work->plan->bound);
}

static slices cut_selection(const eddy_walk *rest, int64_t around, int64_t count) {
    int32_t inner = rest->rank - 1;
    bool in_slabs = inner >= 0 && rest->strides[0][inner] == 1 && rest->strides[1][inner] == 1 &&
                    rest->dims[inner] >= 8;
    if (around == 0)
        return (slices){check_indices, count, count};
    if (in_slabs || count < around / 8)
        return (slices){select_slabs, count, eddy_max_i64(1, SLICE_ELEMENTS / around)};
    return (slices){select_lines, around, eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, count))};
}

/* Along the last axis, elements are picked one by one; along others, rows are copied. */
static eddy_status index_select_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]),
                       index = eddy_kernel_view_with_axis(&call->views[1]),
                       out = eddy_kernel_view_with_axis(&call->views[2]);
    selection_plan *p = plan->memory;
    eddy_walk rest;
    eddy_walk_init(&rest, 0, NULL);
    rest.operand_count = 2;
    for (int32_t d = 0; d < out.rank; d++)
        if (d != axis)
            eddy_walk_append(&rest, out.shape[d], (int64_t[]){out.strides[d], in.strides[d]}, 2);
    eddy_walk_sort(&rest);
    eddy_walk_collapse(&rest);
    p->around = eddy_walk_count(&rest);
    p->count = index.shape[0];
    p->cut = cut_selection(&rest, p->around, p->count);
    p->bound = in.shape[axis];
    p->index_step = index.strides[0];
    p->out_step = out.strides[axis];
    p->in_step = in.strides[axis];
    plan->bytes = (size_t)((char *)eddy_walk_write(&rest, p->words) - (char *)p);
    plan->cost_ps =
        pick_cost(call, p->around * out.shape[axis], axis < call->views[0].rank - 1 ? 160 : 500);
    return EDDY_OK;
}

/* views: in, index [n], out */
static void index_select_run(const eddy_kernel_call *call) {
    selection work; /* set one by one: a walk is too large to be cleared for nothing */
    work.call = call;
    work.plan = call->plan;
    work.in = &call->views[0];
    work.index = &call->views[1];
    work.out = &call->views[2];
    (void)eddy_walk_read(&work.rest, work.plan->words);
    index_run_slices(call, &work.plan->cut, &work);
}

/* ---- gather ---- */

typedef struct gathering_plan {
    slices cut;
    int64_t step, bound;
    int64_t words[]; /* of the walk */
} gathering_plan;

_Static_assert(sizeof(gathering_plan) + EDDY_WALK_WORDS_MOST(3) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct gathering {
    const eddy_kernel_call *call;
    const eddy_op_view *in, *index, *out;
    eddy_walk walk; /* out, index, in; the input's stride along the axis is 0, the index adds it */
    int64_t step, bound;
} gathering;

/* Gathers a run's elements, of `bytes` bytes each. Returns how many were gathered before an index that is out of range. */
INLINE int64_t gather_strided(size_t bytes, char *to, int64_t out_stride, const int64_t *index,
                              int64_t index_stride, const char *from, int64_t in_stride,
                              int64_t step, int64_t bound, int64_t run) {
    int64_t size = (int64_t)bytes;
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < run; i++) {
        uint64_t at = (uint64_t)index[i * index_stride];
        if (EDDY_UNLIKELY(at >= (uint64_t)bound) && (at += (uint64_t)bound) >= (uint64_t)bound)
            return i;
        memcpy(to + i * out_stride * size, from + (i * in_stride + (int64_t)at * step) * size,
               bytes);
    }
    return run;
}

/* Along the last axis of contiguous operands the strides are constants, and no multiplication is left. */
INLINE int64_t gather_run_bytes(size_t bytes, const gathering *work, void *out,
                                const int64_t *index, int64_t index_stride, const void *in,
                                int64_t run) {
    int64_t out_stride = eddy_walk_inner_stride(&work->walk, 0);
    int64_t in_stride = work->walk.rank == 0 ? 0 : eddy_walk_inner_stride(&work->walk, 2);
    if (out_stride == 1 && index_stride == 1 && in_stride == 0 && work->step == 1)
        return gather_strided(bytes, out, 1, index, 1, in, 0, 1, work->bound, run);
    return gather_strided(bytes, out, out_stride, index, index_stride, in, in_stride, work->step,
                          work->bound, run);
}

static int64_t gather_run_of(const gathering *work, void *out, const int64_t *index,
                             int64_t index_stride, const void *in, int64_t run) {
    switch (eddy_dtype_bytes(work->out->dtype)) {
    case 1:
        return gather_run_bytes(1, work, out, index, index_stride, in, run);
    case 2:
        return gather_run_bytes(2, work, out, index, index_stride, in, run);
    case 4:
        return gather_run_bytes(4, work, out, index, index_stride, in, run);
    default:
        return gather_run_bytes(8, work, out, index, index_stride, in, run);
    }
}

static void gather_slice(void *context, int64_t begin, int64_t end) {
    const gathering *work = context;
    const eddy_walk *walk = &work->walk;
    int64_t index_stride = eddy_walk_inner_stride(walk, 1);
    bool is_wide = work->index->dtype == EDDY_I64;
    int64_t widened[PIECE];
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    for (int64_t run; begin < end; begin += run) {
        run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        run = is_wide ? run : eddy_min_i64(PIECE, run);
        const void *index = eddy_chunk_at(work->index->data, work->index->dtype, cursor.offsets[1]);
        if (!is_wide) {
            eddy_chunk_load(EDDY_I64, widened, work->index->dtype, index, index_stride, run);
            index = widened;
        }
        void *out = eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[0]);
        const void *in = eddy_chunk_at(work->in->data, work->in->dtype, cursor.offsets[2]);
        int64_t fit = gather_run_of(work, out, index, is_wide ? index_stride : 1, in, run);
        if (fit < run) {
            int64_t given = ((const int64_t *)index)[fit * (is_wide ? index_stride : 1)];
            eddy_kernel_fail(work->call, EDDY_OUT_OF_RANGE, begin + fit, given, work->bound);
            return;
        }
        eddy_walk_advance(walk, &cursor, run);
    }
}

/* views: in, index, out. index and out have one shape, which exceeds the input's along the axis only. A 0-dimensional
 * tensor counts as a vector. */
static eddy_status gather_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]),
                       index = eddy_kernel_view_with_axis(&call->views[1]),
                       out = eddy_kernel_view_with_axis(&call->views[2]);
    gathering_plan *p = plan->memory;
    int64_t in_strides[EDDY_RANK_MAX];
    for (int32_t d = 0; d < out.rank; d++)
        in_strides[d] = d == axis ? 0 : in.strides[d];
    eddy_walk walk;
    eddy_walk_init(&walk, out.rank, out.shape);
    eddy_walk_add(&walk, out.strides, 1);
    eddy_walk_add(&walk, index.strides, 1);
    eddy_walk_add(&walk, in_strides, 1);
    eddy_walk_collapse(&walk); /* not sorted: positions in errors are row-major */
    p->cut = (slices){gather_slice, eddy_walk_count(&walk), SLICE_ELEMENTS};
    p->step = in.strides[axis];
    p->bound = in.shape[axis];
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps = pick_cost(call, p->cut.count, call->kernel->cost_element_ps);
    return EDDY_OK;
}

static void gather_run(const eddy_kernel_call *call) {
    const gathering_plan *plan = call->plan;
    gathering work;
    work.call = call;
    work.in = &call->views[0];
    work.index = &call->views[1];
    work.out = &call->views[2];
    work.step = plan->step;
    work.bound = plan->bound;
    (void)eddy_walk_read(&work.walk, plan->words);
    index_run_slices(call, &plan->cut, &work);
}

/* ---- one_hot ---- */

typedef struct one_hot_plan {
    slices cut;
    int64_t words[]; /* of the walk */
} one_hot_plan;

_Static_assert(sizeof(one_hot_plan) + EDDY_WALK_WORDS_MOST(2) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct one_hot {
    const eddy_kernel_call *call;
    const eddy_op_view *index, *out;
    eddy_walk walk; /* out (without its last dim), index */
    int64_t classes;
} one_hot;

static void one_hot_slice(void *context, int64_t begin, int64_t end) {
    const one_hot *work = context;
    int64_t stride = work->out->strides[work->out->rank - 1], zero = 0;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    for (; begin < end; begin++) {
        int64_t *row = (int64_t *)work->out->data + cursor.offsets[0];
        int64_t index = index_at(work->index, cursor.offsets[1]);
        if (work->classes > 0)
            eddy_chunk_fill(row, stride, sizeof(zero), &zero, work->classes);
        if (index_fits(work->call, begin, index, work->classes))
            row[index * stride] = 1;
        eddy_walk_next(&work->walk, &cursor, work->walk.rank);
    }
}

/* views: index, out i64 */
static eddy_status one_hot_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_one_hot *attributes = call->attributes;
    const eddy_op_view *index = &call->views[0], *out = &call->views[1];
    one_hot_plan *p = plan->memory;
    eddy_walk walk;
    eddy_walk_init(&walk, index->rank, index->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add(&walk, index->strides, 1);
    eddy_walk_collapse(&walk);
    p->cut = (slices){one_hot_slice, eddy_walk_count(&walk),
                      eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, attributes->classes))};
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void one_hot_run(const eddy_kernel_call *call) {
    const eddy_attributes_one_hot *attributes = call->attributes;
    const one_hot_plan *plan = call->plan;
    one_hot work;
    work.call = call;
    work.index = &call->views[0];
    work.out = &call->views[1];
    work.classes = attributes->classes;
    (void)eddy_walk_read(&work.walk, plan->words);
    index_run_slices(call, &plan->cut, &work);
}

const eddy_kernel eddy_cpu_index_select = {.name = "index_select",
                                           .run = index_select_run,
                                           .prepare = index_select_prepare,
                                           .cost_base_ps = 80000};
const eddy_kernel eddy_cpu_gather = {.name = "gather",
                                     .run = gather_run,
                                     .prepare = gather_prepare,
                                     .cost_base_ps = 80000,
                                     .cost_element_ps = 1000};
const eddy_kernel eddy_cpu_one_hot = {.name = "one_hot",
                                      .run = one_hot_run,
                                      .prepare = one_hot_prepare,
                                      .cost_base_ps = 60000,
                                      .cost_element_ps = 180};
