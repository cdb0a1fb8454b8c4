/* index, index_put, embedding: an index names a whole part of a tensor. First the indices are checked, and converted to
 * offsets in the workspace: an offset is the first element of a part. Then parts are copied. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/index/scatter.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <string.h>

#define SLICE_ELEMENTS 32768

/* The plan of finding the offsets. A place is the position that one tuple of indices names. */
typedef struct places_plan {
    int64_t count;
    int32_t index_count;
    bool
        has_walk; /* else there are too many indices for a plan, and the walk is built when the call runs */
    int64_t words[]; /* of the walk */
} places_plan;

typedef struct places {
    const eddy_kernel_call *call;
    const eddy_op_view *target;  /* the tensor that the places are in */
    const eddy_op_view *indices; /* one for each of its first dims; they broadcast to `walk` */
    int32_t index_count;
    bool wraps;             /* negative indices count from the end */
    const int64_t *strides; /* the target's, or those of the ground (scatter.h) */
    int64_t *offsets;
    eddy_walk walk; /* indices */
} places;

/* One i64 index per element, with a constant stride: the usual case of embedding. */
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
            int64_t given = index->dtype == EDDY_I64 ? *(const int64_t *)element
                                                     : eddy_dtype_load_i64(index->dtype, element);
            int64_t bound = work->target->shape[i],
                    at = work->wraps && given < 0 ? given + bound : given;
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

static void index_walk(eddy_walk *walk, const eddy_op_view *indices, int32_t count) {
    walk->rank = eddy_walk_joint_dims(indices, count, walk->dims);
    walk->operand_count = 0;
    for (int32_t i = 0; i < count; i++)
        eddy_walk_add_broadcast(walk, &indices[i]);
    eddy_walk_collapse(walk); /* not sorted: places are numbered in row-major order */
}

/* Writes a places_plan at `p`, inside the plan; returns the address behind it. */
static int64_t *places_prepare(const eddy_kernel_plan *plan, places_plan *p,
                               const eddy_op_view *indices, int32_t count) {
    eddy_walk walk;
    index_walk(&walk, indices, count);
    p->count = eddy_walk_count(&walk);
    p->index_count = count;
    int64_t room = (const char *)plan->memory + EDDY_KERNEL_PLAN_BYTES - (const char *)p->words;
    p->has_walk = eddy_walk_word_count(&walk) * (int64_t)sizeof(int64_t) <= room;
    return p->has_walk ? eddy_walk_write(&walk, p->words) : p->words;
}

/* Bytes of the workspace. */
static size_t offsets_bytes(const places_plan *plan) {
    return ((size_t)plan->count * sizeof(int64_t) + 63) / 64 * 64;
}

/* Computes the offsets, at the start of the workspace. The caller has set the target, its strides and `wraps` in `work`.
 * False if an index is out of range: the result is then not used. */
static bool find(places *work, const places_plan *plan, const eddy_kernel_call *call,
                 const eddy_op_view *indices) {
    work->call = call;
    work->indices = indices;
    work->index_count = plan->index_count;
    work->offsets = call->workspace;
    if (plan->has_walk)
        (void)eddy_walk_read(&work->walk, plan->words);
    else
        index_walk(&work->walk, indices, plan->index_count);
    if (plan->count > 0)
        advanced_index_run_slices(call, plan->count, SLICE_ELEMENTS, find_slice, work);
    return eddy_load_relaxed(&call->error->status) == EDDY_OK;
}

/* ---- picking ---- */

/* A places_plan follows the words. */
typedef struct picking_plan {
    int64_t part, grain; /* elements of a part; parts of a slice */
    int64_t words[];     /* of `along` and of `rest` */
} picking_plan;

/* Everything except the walk over the indices, which may be left out. The ranks of `along` and `rest` together are at most
 * EDDY_RANK_MAX. */
_Static_assert(sizeof(picking_plan) + (1 + EDDY_WALK_WORDS_MOST(2)) * sizeof(int64_t) +
                       sizeof(places_plan) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct picking {
    const eddy_op_view *in, *out;
    const int64_t *offsets;
    int64_t part;
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
        eddy_copy_part(&work->rest, work->part, dtype, to, from);
        eddy_walk_next(&work->along, &place, work->along.rank);
    }
}

static void part_walks(eddy_walk *along, eddy_walk *rest, const eddy_op_view *in,
                       const eddy_op_view *out, int32_t index_count) {
    int32_t inner = in->rank - index_count, joint = out->rank - inner;
    eddy_walk_init(along, joint, out->shape);
    eddy_walk_add(along, out->strides, 1);
    eddy_walk_collapse(along);
    eddy_walk_init(rest, inner, in->shape + index_count);
    eddy_walk_add(rest, out->strides + joint, 1);
    eddy_walk_add(rest, in->strides + index_count, 1);
    eddy_walk_sort(rest);
    eddy_walk_collapse(rest);
}

/* The estimate counts the elements that are picked, which are read and written, not the tensor that they are picked from. */
static int64_t pick_cost(const eddy_kernel_call *call, int64_t count, int64_t element_ps) {
    eddy_dtype dtype = call->views[call->view_count - 1].dtype;
    return call->kernel->cost_base_ps + eddy_cost_ps(count, element_ps) +
           eddy_cost_far_ps(2 * eddy_cost_bytes(count, dtype));
}

static eddy_status pick_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                const eddy_op_view *in, const eddy_op_view *indices,
                                int32_t index_count, int64_t element_ps) {
    picking_plan *p = plan->memory;
    eddy_walk along, rest;
    part_walks(&along, &rest, in, &call->views[call->view_count - 1], index_count);
    p->part = eddy_walk_count(&rest);
    p->grain = eddy_max_i64(1, SLICE_ELEMENTS / eddy_max_i64(1, p->part));
    places_plan *found = (void *)eddy_walk_write(&rest, eddy_walk_write(&along, p->words));
    int64_t *end = places_prepare(plan, found, indices, index_count);
    plan->bytes = (size_t)((char *)end - (char *)p);
    plan->workspace_bytes = offsets_bytes(found);
    plan->cost_ps = pick_cost(call, found->count * p->part, element_ps);
    return EDDY_OK;
}

static void pick(const eddy_kernel_call *call, const eddy_op_view *in, const eddy_op_view *indices,
                 bool wraps) {
    const picking_plan *plan = call->plan;
    picking work; /* set one by one: walks are too large to be cleared for nothing */
    work.in = in;
    work.out = &call->views[call->view_count - 1];
    work.part = plan->part;
    const places_plan *named =
        (const void *)eddy_walk_read(&work.rest, eddy_walk_read(&work.along, plan->words));
    places found;
    found.target = in;
    found.strides = in->strides;
    found.wraps = wraps;
    if (!find(&found, named, call, indices))
        return;
    work.offsets = found.offsets;
    if (plan->part > 0 && named->count > 0)
        advanced_index_run_slices(call, named->count, plan->grain, pick_slice, &work);
}

/* views: in, indices ..., out. Rows are copied, elements picked one by one. */
static eddy_status index_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *in = &call->views[0];
    int32_t index_count = call->view_count - 2;
    return pick_prepare(call, plan, in, &call->views[1], index_count,
                        index_count < in->rank ? 150 : call->kernel->cost_element_ps);
}

static void index_run(const eddy_kernel_call *call) {
    pick(call, &call->views[0], &call->views[1], true);
}

/* views: index, weight [V, D], out */
static eddy_status embedding_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return pick_prepare(call, plan, &call->views[1], &call->views[0], 1,
                        call->kernel->cost_element_ps);
}

static void embedding_run(const eddy_kernel_call *call) {
    pick(call, &call->views[1], &call->views[0], false);
}

/* ---- putting ---- */

/* A plan consists of the scatter's plan, the strides of the tensor that is written to, and a places_plan. */
_Static_assert(EDDY_SCATTER_PLAN_MOST + EDDY_RANK_MAX * sizeof(int64_t) + sizeof(places_plan) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan but for the walk that may be left out");

/* Offsets and error positions are numbered in row-major order of the indices. The values broadcast to the joint dims of
 * the indices followed by the remaining dims. */
static void lay_out_put(eddy_scatter_layout *layout, const eddy_op_view *indices,
                        int32_t index_count, const eddy_op_view *values) {
    int64_t dims[EDDY_RANK_MAX], counted[EDDY_RANK_MAX], strides[EDDY_RANK_MAX],
        zeros[EDDY_RANK_MAX] = {0}, step = 1;
    int32_t joint = eddy_walk_joint_dims(indices, index_count, dims),
            inner = layout->out->rank - index_count;
    for (int32_t d = joint - 1; d >= 0; d--) {
        counted[d] = step;
        step *= dims[d];
    }
    for (int32_t d = 0; d < joint + inner; d++) {
        int32_t own = d - (joint + inner - values->rank);
        strides[d] = own < 0 || values->shape[own] == 1 ? 0 : values->strides[own];
    }
    eddy_walk_init(&layout->along, joint, dims);
    eddy_walk_add(&layout->along, zeros, 1);
    eddy_walk_add(&layout->along, strides, 1);
    eddy_walk_add(&layout->along, counted, 1);
    eddy_walk_add(&layout->along, counted, 1);
    eddy_walk_init(&layout->rest, inner, layout->out->shape + index_count);
    eddy_walk_add(&layout->rest, layout->strides + index_count, 1);
    eddy_walk_add(&layout->rest, strides + joint, 1);
    eddy_walk_add(&layout->rest, zeros, 1);
    eddy_walk_add(&layout->rest, zeros, 1);
}

/* The input is copied; then elements are put one by one, or rows are copied. */
static int64_t put_cost(const eddy_kernel_call *call, int64_t named, int64_t part) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    return call->kernel->cost_base_ps + eddy_cost_ps(named, part > 1 ? 25000 : 4500) +
           eddy_cost_ps(named, eddy_cost_ps(eddy_max_i64(1, part), 40)) +
           eddy_cost_ps(eddy_kernel_view_count(out), 100) + eddy_cost_far_views_ps(call);
}

/* views: in, indices ..., values, out */
static eddy_status index_put_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_index_put *attributes = call->attributes;
    const eddy_op_view *values = &call->views[call->view_count - 2],
                       *out = &call->views[call->view_count - 1];
    int32_t index_count = call->view_count - 3;
    eddy_scatter_layout layout;
    eddy_scatter_plan *p = plan->memory;
    *p = (eddy_scatter_plan){.step = 1,
                             .bound = -1,
                             .row = 1,
                             .left_out = -1,
                             .source_dtype = values->dtype,
                             .index_dtype = EDDY_I64,
                             .adds = attributes->accumulates};
    for (int32_t d = index_count; d < out->rank; d++)
        p->row *= out->shape[d];
    eddy_scatter_lay(&layout, p, &call->views[0], out);
    lay_out_put(&layout, &call->views[1], index_count, values);
    eddy_scatter_prepare(&layout, plan);
    int64_t *strides = p->words + p->behind_at;
    memcpy(strides, layout.strides, (size_t)index_count * sizeof(*strides));
    places_plan *named = (void *)(strides + index_count);
    plan->bytes =
        (size_t)((char *)places_prepare(plan, named, &call->views[1], index_count) - (char *)p);
    plan->workspace_bytes += offsets_bytes(named);
    plan->cost_ps = put_cost(call, (int64_t)(offsets_bytes(named) / sizeof(int64_t)), p->row);
    return EDDY_OK;
}

static void index_put_run(const eddy_kernel_call *call) {
    const eddy_scatter_plan *plan = call->plan;
    places found;
    found.target = &call->views[call->view_count - 1];
    found.strides = plan->words + plan->behind_at;
    found.wraps = true;
    const places_plan *named = (const void *)(found.strides + (call->view_count - 3));
    if (!find(&found, named, call, &call->views[1]))
        return;
    eddy_scatter s;
    s.in = call->views[0].data;
    s.source = call->views[call->view_count - 2].data;
    s.index = found.offsets;
    s.out = found.target;
    s.workspace = (char *)call->workspace + offsets_bytes(named);
    eddy_scatter_run(&s, call, plan);
}

const eddy_kernel eddy_cpu_index = {.name = "index",
                                    .run = index_run,
                                    .prepare = index_prepare,
                                    .cost_base_ps = 120000,
                                    .cost_element_ps = 1500};
const eddy_kernel eddy_cpu_embedding = {.name = "embedding",
                                        .run = embedding_run,
                                        .prepare = embedding_prepare,
                                        .cost_base_ps = 100000,
                                        .cost_element_ps = 160};
const eddy_kernel eddy_cpu_index_put = {.name = "index_put",
                                        .run = index_put_run,
                                        .prepare = index_put_prepare,
                                        .cost_base_ps = 150000,
                                        .cost_element_ps = 2000};
