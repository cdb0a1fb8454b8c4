/* index, index_put, embedding: indices that stand for whole parts of a tensor. First the places that they name are found, as
 * offsets in the workspace, and checked: each is the first element of a part. Then parts are copied. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/index/scatter.h>
#include <string.h>

#define SLICE_ELEMENTS 32768

typedef struct places {
    const eddy_kernel_call *call;
    const eddy_op_view *target;  /* the tensor that the places are in */
    const eddy_op_view *indices; /* one for each of its first dims; they broadcast to `walk` */
    int32_t index_count;
    const int64_t *strides; /* the target's, or of what stands for it */
    bool wraps;             /* negative indices count from the end */
    int64_t *offsets;
    int64_t count;
    eddy_walk walk; /* indices */
} places;

/* One i64 index an element, evenly laid: what embedding mostly gets. */
static void find_plain(const places *work, int64_t begin, int64_t end) {
    const int64_t *index = work->indices[0].data;
    int64_t bound = work->target->shape[0], step = eddy_walk_inner_stride(&work->walk, 0);
    for (int64_t i = begin; i < end; i++) {
        int64_t given = index[i * step], at = work->wraps && given < 0 ? given + bound : given;
        if (at < 0 || at >= bound) {
            eddy_kernel_fail(work->call, EDDY_OUT_OF_RANGE, i, given, bound);
            at = 0;
        }
        work->offsets[i] = at * work->strides[0];
    }
}

static void find_slice(void *context, int64_t begin, int64_t end) {
    const places *work = context;
    if (work->index_count == 1 && work->indices[0].dtype == EDDY_I64 && work->walk.rank == 1) {
        find_plain(work, begin, end);
        return;
    }
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->walk, &cursor, begin);
    for (; begin < end; begin++) {
        int64_t offset = 0;
        for (int32_t i = 0; i < work->index_count; i++) {
            const eddy_op_view *index = &work->indices[i];
            const void *element = eddy_chunk_at(index->data, index->dtype, cursor.offsets[i]);
            int64_t given =
                index->dtype == EDDY_I64 ? *(const int64_t *)element : eddy_dtype_load_i64(index->dtype, element);
            int64_t bound = work->target->shape[i], at = work->wraps && given < 0 ? given + bound : given;
            if (at < 0 || at >= bound) {
                eddy_kernel_fail(work->call, EDDY_OUT_OF_RANGE, begin, given, bound);
                at = 0;
            }
            offset += at * work->strides[i];
        }
        work->offsets[begin] = offset;
        eddy_walk_next(&work->walk, &cursor, work->walk.rank);
    }
}

static void advanced_index_run_slices(const eddy_kernel_call *call, int64_t count, int64_t grain,
                                      void (*slice)(void *, int64_t, int64_t), void *work) {
    if (count <= grain)
        slice(work, 0, count);
    else
        call->team->parallel_for(call->team, count, grain, slice, work);
}

/* The dims that the indices broadcast to. */
static int32_t joint_dims(const eddy_op_view *indices, int32_t count, int64_t *dims) {
    int32_t rank = 0;
    for (int32_t i = 0; i < count; i++)
        rank = indices[i].rank > rank ? indices[i].rank : rank;
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = 1;
        for (int32_t i = 0; i < count; i++) {
            int32_t own = d - (rank - indices[i].rank);
            if (own >= 0 && indices[i].shape[own] != 1)
                dims[d] = indices[i].shape[own];
        }
    }
    return rank;
}

/* False where an index was out of range: then the result does not matter. */
static bool find(places *work, void *memory) {
    int64_t dims[EDDY_RANK_MAX];
    int32_t rank = joint_dims(work->indices, work->index_count, dims);
    eddy_walk_init(&work->walk, rank, dims);
    for (int32_t i = 0; i < work->index_count; i++)
        eddy_walk_add_broadcast(&work->walk, &work->indices[i]);
    work->count = eddy_walk_count(&work->walk);
    work->offsets = memory;
    eddy_walk_collapse(&work->walk); /* not sorted: places are row-major */
    if (work->count > 0)
        advanced_index_run_slices(work->call, work->count, SLICE_ELEMENTS, find_slice, work);
    return eddy_load_relaxed(&work->call->error->status) == EDDY_OK;
}

static size_t offsets_bytes(const eddy_op_view *indices, int32_t count) {
    int64_t dims[EDDY_RANK_MAX], total = 1;
    int32_t rank = joint_dims(indices, count, dims);
    for (int32_t d = 0; d < rank; d++)
        total *= dims[d];
    return ((size_t)total * sizeof(int64_t) + 63) / 64 * 64;
}

/* ---- picking ---- */

typedef struct picking {
    const eddy_op_view *in, *out;
    const int64_t *offsets;
    eddy_walk along; /* out: the dims of the indices */
    eddy_walk rest;  /* out, in: the dims of a part */
} picking;

static void pick_slice(void *context, int64_t begin, int64_t end) {
    const picking *work = context;
    eddy_dtype dtype = work->out->dtype;
    eddy_walk_cursor place;
    eddy_walk_seek(&work->along, &place, begin);
    for (; begin < end; begin++) {
        char *to = eddy_chunk_at(work->out->data, dtype, place.offsets[0]);
        const char *from = eddy_chunk_at(work->in->data, dtype, work->offsets[begin]);
        eddy_copy_part(&work->rest, eddy_walk_count(&work->rest), dtype, to, from);
        eddy_walk_next(&work->along, &place, work->along.rank);
    }
}

static void pick(const eddy_kernel_call *call, const eddy_op_view *in, const eddy_op_view *indices, int32_t index_count,
                 bool wraps) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    places found = {.call = call,
                    .target = in,
                    .indices = indices,
                    .index_count = index_count,
                    .strides = in->strides,
                    .wraps = wraps};
    if (!find(&found, call->workspace))
        return;
    picking work = {.in = in, .out = out, .offsets = found.offsets};
    int32_t joint = out->rank - (in->rank - index_count);
    eddy_walk_init(&work.along, joint, out->shape);
    eddy_walk_add(&work.along, out->strides, 1);
    eddy_walk_collapse(&work.along);
    eddy_walk_init(&work.rest, in->rank - index_count, in->shape + index_count);
    eddy_walk_add(&work.rest, out->strides + joint, 1);
    eddy_walk_add(&work.rest, in->strides + index_count, 1);
    eddy_walk_sort(&work.rest);
    eddy_walk_collapse(&work.rest);
    int64_t part = eddy_walk_count(&work.rest);
    if (part > 0 && found.count > 0)
        advanced_index_run_slices(call, found.count, eddy_max_i64(1, SLICE_ELEMENTS / part), pick_slice, &work);
}

/* views: in, indices ..., out */
static void index_run(const eddy_kernel_call *call) {
    pick(call, &call->views[0], &call->views[1], call->view_count - 2, true);
}

static size_t index_workspace(const eddy_kernel_call *call) {
    return offsets_bytes(&call->views[1], call->view_count - 2);
}

/* views: index, weight [V, D], out */
static void embedding_run(const eddy_kernel_call *call) {
    pick(call, &call->views[1], &call->views[0], 1, false);
}

static size_t embedding_workspace(const eddy_kernel_call *call) {
    return offsets_bytes(&call->views[0], 1);
}

/* What is picked counts, not what there is to pick from. It is read and written. */
static int64_t pick_cost(const eddy_kernel_call *call, int64_t element_ps) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(out), element_ps) +
           eddy_cost_far_ps(2 * eddy_cost_bytes(eddy_view_count(out), out->dtype));
}

/* Rows are copied, elements picked one by one. */
static int64_t index_cost(const eddy_kernel_call *call) {
    bool picks_rows = call->view_count - 2 < call->views[0].rank;
    return pick_cost(call, picks_rows ? 150 : call->kernel->cost_element_ps);
}

static int64_t embedding_cost(const eddy_kernel_call *call) {
    return pick_cost(call, call->kernel->cost_element_ps);
}

/* ---- putting ---- */

static size_t put_offsets_bytes(const eddy_kernel_call *call) {
    return offsets_bytes(&call->views[1], call->view_count - 3);
}

/* Elements of a part. */
static int64_t put_part(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t part = 1;
    for (int32_t d = call->view_count - 3; d < out->rank; d++)
        part *= out->shape[d];
    return part;
}

/* views: in, indices ..., values, out */
static void index_put_run(const eddy_kernel_call *call) {
    const eddy_attributes_index_put *attributes = call->attributes;
    int32_t index_count = call->view_count - 3;
    const eddy_op_view *values = &call->views[call->view_count - 2], *out = &call->views[call->view_count - 1];
    eddy_walk along, rest;
    eddy_scatter s = {.call = call,
                      .along = &along,
                      .rest = &rest,
                      .step = 1,
                      .bound = -1,
                      .row = put_part(call),
                      .left_out = -1,
                      .adds = attributes->accumulate};
    char *summed = (char *)call->workspace + put_offsets_bytes(call);
    eddy_scatter_begin(&s, &call->views[0], out, summed);
    places found = {.call = call,
                    .target = out,
                    .indices = &call->views[1],
                    .index_count = index_count,
                    .strides = s.strides,
                    .wraps = true};
    if (!find(&found, call->workspace))
        return;
    int64_t dims[EDDY_RANK_MAX], counted[EDDY_RANK_MAX], zeros[EDDY_RANK_MAX] = {0}, step = 1;
    int32_t joint = joint_dims(found.indices, index_count, dims), inner = out->rank - index_count;
    for (int32_t d = joint - 1; d >= 0; d--) {
        counted[d] = step;
        step *= dims[d];
    }
    /* Values as they broadcast to the indices' dims and the rest. */
    int64_t strides[EDDY_RANK_MAX];
    for (int32_t d = 0; d < joint + inner; d++) {
        int32_t own = d - (joint + inner - values->rank);
        strides[d] = own < 0 || values->shape[own] == 1 ? 0 : values->strides[own];
    }
    eddy_walk_init(&along, joint, dims);
    eddy_walk_add(&along, zeros, 1);
    eddy_walk_add(&along, strides, 1);
    eddy_walk_add(&along, counted, 1);
    eddy_walk_add(&along, counted, 1);
    eddy_walk_init(&rest, inner, out->shape + index_count);
    eddy_walk_add(&rest, s.strides + index_count, 1);
    eddy_walk_add(&rest, strides + joint, 1);
    eddy_walk_add(&rest, zeros, 1);
    eddy_walk_add(&rest, zeros, 1);
    s.source = values->data;
    s.source_dtype = values->dtype;
    s.index = found.offsets;
    s.index_dtype = EDDY_I64;
    eddy_scatter_end(&s, out);
}

static size_t index_put_workspace(const eddy_kernel_call *call) {
    const eddy_attributes_index_put *attributes = call->attributes;
    int64_t named = (int64_t)(put_offsets_bytes(call) / sizeof(int64_t));
    return put_offsets_bytes(call) +
           eddy_scatter_workspace(&call->views[call->view_count - 1], attributes->accumulate, put_part(call), named);
}

/* The ground is copied; then elements are put one by one, or rows are copied. */
static int64_t index_put_cost(const eddy_kernel_call *call) {
    int64_t named = (int64_t)(put_offsets_bytes(call) / sizeof(int64_t)), part = put_part(call);
    const eddy_op_view *out = &call->views[call->view_count - 1];
    return call->kernel->cost_base_ps + eddy_cost_ps(named, part > 1 ? 25000 : 4500) +
           eddy_cost_ps(named, eddy_cost_ps(eddy_max_i64(1, part), 40)) + eddy_cost_ps(eddy_view_count(out), 100) +
           eddy_cost_far_views_ps(call);
}

const eddy_kernel eddy_cpu_index = {.name = "index",
                                    .run = index_run,
                                    .workspace = index_workspace,
                                    .cost = index_cost,
                                    .cost_base_ps = 120000,
                                    .cost_element_ps = 1500};
const eddy_kernel eddy_cpu_embedding = {.name = "embedding",
                                        .run = embedding_run,
                                        .workspace = embedding_workspace,
                                        .cost = embedding_cost,
                                        .cost_base_ps = 100000,
                                        .cost_element_ps = 160};
const eddy_kernel eddy_cpu_index_put = {.name = "index_put",
                                        .run = index_put_run,
                                        .workspace = index_put_workspace,
                                        .cost = index_put_cost,
                                        .cost_base_ps = 150000,
                                        .cost_element_ps = 2000};
