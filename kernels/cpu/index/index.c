/* index_select, gather, one_hot. Indices are checked while they are used: a bad one records its flat position and leaves its
 * part of the output unwritten, which nobody will see. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_ELEMENTS 32768
/* Indices that are widened at a time. */
#define PIECE 256

static int64_t index_at(const eddy_op_view *index, int64_t offset) {
    const void *element = eddy_chunk_at(index->data, index->dtype, offset);
    return index->dtype == EDDY_I64 ? *(const int64_t *)element : eddy_dtype_load_i64(index->dtype, element);
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

static bool index_fits(const eddy_kernel_call *call, int64_t position, int64_t index, int64_t bound) {
    if (index >= 0 && index < bound)
        return true;
    eddy_kernel_fail(call, EDDY_OUT_OF_RANGE, position, index, bound);
    return false;
}

static void index_run_slices(const eddy_kernel_call *call, int64_t count, int64_t grain,
                             void (*slice)(void *, int64_t, int64_t), void *work) {
    if (count <= grain)
        slice(work, 0, count);
    else
        call->team->parallel_for(call->team, count, grain, slice, work);
}

typedef struct selection {
    const eddy_kernel_call *call;
    const eddy_op_view *in, *index, *out; /* of rank 1 or more */
    int32_t axis;
    int64_t bound;
    eddy_walk rest; /* out, in; without the axis */
} selection;

/* Slices are indices: for each, the dims around the axis are copied. */
static void select_slabs(void *context, int64_t begin, int64_t end) {
    const selection *work = context;
    eddy_dtype dtype = work->out->dtype;
    for (int64_t i = begin; i < end; i++) {
        int64_t index = index_at(work->index, i * work->index->strides[0]);
        if (!index_fits(work->call, i, index, work->bound))
            continue;
        char *target = eddy_chunk_at(work->out->data, dtype, i * work->out->strides[work->axis]);
        const char *source = eddy_chunk_at(work->in->data, dtype, index * work->in->strides[work->axis]);
        eddy_copy_part(&work->rest, eddy_walk_count(&work->rest), dtype, target, source);
    }
}

/* Slices are places outside the axis: for each, all indices. For an axis whose neighbours are few or scattered. */
static void select_lines(void *context, int64_t begin, int64_t end) {
    const selection *work = context;
    size_t bytes = eddy_dtype_bytes(work->out->dtype);
    int64_t out_step = work->out->strides[work->axis] * (int64_t)bytes;
    int64_t in_step = work->in->strides[work->axis] * (int64_t)bytes;
    int64_t count = work->index->shape[0];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->rest, &cursor, begin);
    for (int64_t place = begin; place < end; place++) {
        char *target = eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[0]);
        const char *source = eddy_chunk_at(work->in->data, work->out->dtype, cursor.offsets[1]);
        for (int64_t i = 0; i < count; i++) {
            int64_t index = index_at(work->index, i * work->index->strides[0]);
            if (index_fits(work->call, i, index, work->bound))
                copy_element(target + i * out_step, source + index * in_step, bytes);
        }
        eddy_walk_next(&work->rest, &cursor, work->rest.rank);
    }
}

/* Indices are checked even where there is nothing to copy. */
static void check_indices(const selection *work) {
    for (int64_t i = 0; i < work->index->shape[0]; i++)
        index_fits(work->call, i, index_at(work->index, i * work->index->strides[0]), work->bound);
}

/* views: in, index [n], out */
static void index_select_run(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view in = eddy_view_with_axis(&call->views[0]), index = eddy_view_with_axis(&call->views[1]),
                       out = eddy_view_with_axis(&call->views[2]);
    selection work = {.call = call, .in = &in, .index = &index, .out = &out, .axis = attributes->axis};
    work.bound = work.in->shape[work.axis];
    eddy_walk_init(&work.rest, 0, NULL);
    work.rest.operand_count = 2;
    for (int32_t d = 0; d < work.out->rank; d++)
        if (d != work.axis)
            eddy_walk_append(&work.rest, work.out->shape[d], (int64_t[]){work.out->strides[d], work.in->strides[d]}, 2);
    eddy_walk_sort(&work.rest);
    eddy_walk_collapse(&work.rest);
    int64_t around = eddy_walk_count(&work.rest), count = work.index->shape[0];
    int32_t inner = work.rest.rank - 1;
    bool in_slabs = inner >= 0 && work.rest.strides[0][inner] == 1 && work.rest.strides[1][inner] == 1 &&
                    work.rest.dims[inner] >= 8;
    if (around == 0)
        check_indices(&work);
    else if (in_slabs || count < around / 8)
        index_run_slices(call, count, eddy_max_i64(1, SLICE_ELEMENTS / around), select_slabs, &work);
    else
        index_run_slices(call, around, eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, count)), select_lines, &work);
}

typedef struct gathering {
    const eddy_kernel_call *call;
    const eddy_op_view *in, *index, *out;
    eddy_walk walk; /* out, index, in; the input's stride along the axis is 0, the index adds it */
    int64_t step, bound;
} gathering;

/* How many of a run's elements could be gathered before an index that does not fit. */
#define GATHER(type)                                                                                                   \
    static inline int64_t gather_strided_##type(type *to, int64_t out_stride, const int64_t *index,                    \
                                                int64_t index_stride, const type *from, int64_t in_stride,             \
                                                int64_t step, int64_t bound, int64_t run) {                            \
        _Pragma("GCC unroll 4") for (int64_t i = 0; i < run; i++) {                                                    \
            uint64_t at = (uint64_t)index[i * index_stride];                                                           \
            if (EDDY_UNLIKELY(at >= (uint64_t)bound) && (at += (uint64_t)bound) >= (uint64_t)bound)                    \
                return i;                                                                                              \
            to[i * out_stride] = from[i * in_stride + (int64_t)at * step];                                             \
        }                                                                                                              \
        return run;                                                                                                    \
    }                                                                                                                  \
    /* Along the last axis of contiguous operands nothing is left to multiply. */                                      \
    static int64_t gather_##type(const gathering *work, void *out, const int64_t *index, int64_t index_stride,         \
                                 const void *in, int64_t run) {                                                        \
        int64_t out_stride = eddy_walk_inner_stride(&work->walk, 0);                                                   \
        int64_t in_stride = work->walk.rank == 0 ? 0 : eddy_walk_inner_stride(&work->walk, 2);                         \
        if (out_stride == 1 && index_stride == 1 && in_stride == 0 && work->step == 1)                                 \
            return gather_strided_##type(out, 1, index, 1, in, 0, 1, work->bound, run);                                \
        return gather_strided_##type(out, out_stride, index, index_stride, in, in_stride, work->step, work->bound,     \
                                     run);                                                                             \
    }

GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

static int64_t gather_run_of(const gathering *work, void *out, const int64_t *index, int64_t index_stride,
                             const void *in, int64_t run) {
    switch (eddy_dtype_bytes(work->out->dtype)) {
    case 1:
        return gather_uint8_t(work, out, index, index_stride, in, run);
    case 2:
        return gather_uint16_t(work, out, index, index_stride, in, run);
    case 4:
        return gather_uint32_t(work, out, index, index_stride, in, run);
    default:
        return gather_uint64_t(work, out, index, index_stride, in, run);
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

/* views: in, index, out; index and out share a shape that nowhere exceeds the input's but along the axis. A number is a vector
 * here. */
static void gather_run(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view in = eddy_view_with_axis(&call->views[0]), index = eddy_view_with_axis(&call->views[1]),
                       out = eddy_view_with_axis(&call->views[2]);
    /* Set one by one: a walk is too large to be cleared for nothing. */
    gathering work;
    work.call = call;
    work.in = &in;
    work.index = &index;
    work.out = &out;
    int64_t count = eddy_view_count(work.out);
    if (count == 0)
        return;
    int64_t in_strides[EDDY_RANK_MAX];
    for (int32_t d = 0; d < work.out->rank; d++) {
        in_strides[d] = work.in->strides[d];
        if (d == attributes->axis) {
            work.step = in_strides[d];
            work.bound = work.in->shape[d];
            in_strides[d] = 0;
        }
    }
    eddy_walk_init(&work.walk, work.out->rank, work.out->shape);
    eddy_walk_add(&work.walk, work.out->strides, 1);
    eddy_walk_add(&work.walk, work.index->strides, 1);
    eddy_walk_add(&work.walk, in_strides, 1);
    eddy_walk_collapse(&work.walk); /* not sorted: positions in errors are row-major */
    index_run_slices(call, count, SLICE_ELEMENTS, gather_slice, &work);
}

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
static void one_hot_run(const eddy_kernel_call *call) {
    const eddy_attributes_one_hot *attributes = call->attributes;
    one_hot work = {.call = call, .index = &call->views[0], .out = &call->views[1], .classes = attributes->classes};
    int64_t count = eddy_view_count(work.index);
    if (count == 0)
        return;
    eddy_walk_init(&work.walk, work.index->rank, work.index->shape);
    eddy_walk_add(&work.walk, work.out->strides, 1);
    eddy_walk_add(&work.walk, work.index->strides, 1);
    eddy_walk_collapse(&work.walk);
    index_run_slices(call, count, eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, work.classes)), one_hot_slice,
                     &work);
}

/* What is picked counts, not what there is to pick from. It is read and written. */
static int64_t pick_cost(const eddy_kernel_call *call, int64_t element_ps) {
    const eddy_op_view *out = &call->views[2];
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(out), element_ps) +
           eddy_cost_far_ps(2 * eddy_cost_bytes(eddy_view_count(out), out->dtype));
}

static int64_t gather_cost(const eddy_kernel_call *call) {
    return pick_cost(call, call->kernel->cost_element_ps);
}

/* Along the last axis it picks elements, along others rows. */
static int64_t select_cost(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    bool picks_rows = attributes->axis < call->views[0].rank - 1;
    return pick_cost(call, picks_rows ? 160 : 500);
}

const eddy_kernel eddy_cpu_index_select = {
    .name = "index_select", .run = index_select_run, .cost_base_ps = 80000, .cost = select_cost};
const eddy_kernel eddy_cpu_gather = {
    .name = "gather", .run = gather_run, .cost_base_ps = 80000, .cost_element_ps = 1000, .cost = gather_cost};
const eddy_kernel eddy_cpu_one_hot = {
    .name = "one_hot", .run = one_hot_run, .cost_base_ps = 60000, .cost_element_ps = 180};
