/* clip_grad_norm: computes the 2-norm of a list of tensors, then scales them if it is too large. Squares are summed in
 * f64: the blocks of a slice (reduce_block.h) in order, then the slices in order; all slices have one size. So the norm
 * does not depend on layout, threads or instruction set. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce/reduce_block.h>
#include <kernels/cpu/walk.h>
#include <math.h>

#define SLICE_ELEMENTS 16384
#define PIECE 512

/* The plan of a call. The list may have any length, so the plan does not hold its walks. */
typedef struct clip_plan {
    int64_t slices;
} clip_plan;

typedef struct clip {
    const eddy_kernel_call *call;
    int32_t items;
    double *sums; /* one per slice; a slice lies within one tensor */
    double scale;
} clip;

typedef struct place {
    int32_t item;
    int64_t begin, end; /* elements of the item */
} place;

static int64_t slices_of(int64_t elements) {
    return (elements + SLICE_ELEMENTS - 1) / SLICE_ELEMENTS;
}

static place place_of(const clip *work, int64_t slice) {
    place at = {0};
    int64_t count = eddy_kernel_view_count(&work->call->views[0]);
    for (; slice >= slices_of(count); count = eddy_kernel_view_count(&work->call->views[++at.item]))
        slice -= slices_of(count);
    at.begin = slice * SLICE_ELEMENTS;
    at.end = eddy_min_i64(at.begin + SLICE_ELEMENTS, count);
    return at;
}

/* Elements are read in row-major order, whatever their strides: an element's number decides which sum it is added to. */
static void begin_walk(const eddy_op_view *view, int64_t begin, eddy_walk *walk,
                       eddy_walk_cursor *cursor) {
    eddy_walk_init(walk, view->rank, view->shape);
    eddy_walk_add(walk, view->strides, 1);
    eddy_walk_collapse(walk);
    eddy_walk_seek(walk, cursor, begin);
}

/* A block's elements in row-major order, as `dtype`: in place, or converted to *buffer. */
static const void *gather(const eddy_op_view *view, const eddy_walk *walk, eddy_walk_cursor *cursor,
                          eddy_dtype dtype, double *buffer, int64_t count) {
    int64_t stride = eddy_walk_inner_stride(walk, 0),
            run = eddy_min_i64(eddy_walk_run(walk, cursor), count);
    const void *elements = eddy_chunk_at(view->data, view->dtype, cursor->offsets[0]);
    if (run == count && stride == 1 && view->dtype == dtype) {
        eddy_walk_advance(walk, cursor, run);
        return elements;
    }
    for (int64_t done = 0; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(walk, cursor), count - done);
        eddy_chunk_load(dtype, eddy_chunk_at(buffer, dtype, done), view->dtype,
                        eddy_chunk_at(view->data, view->dtype, cursor->offsets[0]), stride, run);
        eddy_walk_advance(walk, cursor, run);
    }
    return buffer;
}

static double sum_slice(const eddy_op_view *view, const place *at) {
    eddy_dtype dtype = eddy_chunk_compute_dtype(view->dtype);
    const eddy_reduce_op *squares =
        &eddy_reduce_wide_blocks_of(dtype == EDDY_F64 ? EDDY_REDUCE_F64 : EDDY_REDUCE_F32)->squares;
    double total = 0, sum, buffer[EDDY_REDUCE_BLOCK];
    eddy_walk walk;
    eddy_walk_cursor cursor;
    begin_walk(view, at->begin, &walk, &cursor);
    for (int64_t i = at->begin, count; i < at->end; i += count) {
        count = eddy_min_i64(EDDY_REDUCE_BLOCK, at->end - i);
        squares->block(gather(view, &walk, &cursor, dtype, buffer, count), count, 0, &sum);
        total += sum;
    }
    return total;
}

static void sum_slices(void *context, int64_t begin, int64_t end) {
    const clip *work = context;
    for (int64_t slice = begin; slice < end; slice++) {
        place at = place_of(work, slice);
        work->sums[slice] = sum_slice(&work->call->views[at.item], &at);
    }
}

static void scale_slices(void *context, int64_t begin, int64_t end) {
    const clip *work = context;
    double values[PIECE];
    for (int64_t slice = begin; slice < end; slice++) {
        place at = place_of(work, slice);
        const eddy_op_view *view = &work->call->views[at.item];
        eddy_walk walk;
        eddy_walk_cursor cursor;
        begin_walk(view, at.begin, &walk, &cursor);
        for (int64_t i = at.begin; i < at.end;) {
            int64_t run =
                eddy_min_i64(eddy_min_i64(eddy_walk_run(&walk, &cursor), at.end - i), PIECE);
            void *data = eddy_chunk_at(view->data, view->dtype, cursor.offsets[0]);
            int64_t stride = eddy_walk_inner_stride(&walk, 0);
            eddy_chunk_load(EDDY_F64, values, view->dtype, data, stride, run);
            for (int64_t k = 0; k < run; k++)
                values[k] *= work->scale;
            eddy_chunk_store(view->dtype, data, stride, EDDY_F64, values, run);
            eddy_walk_advance(&walk, &cursor, run);
            i += run;
        }
    }
}

static void clip_gradient_run_slices(clip *work, int64_t slices,
                                     void (*slice)(void *, int64_t, int64_t)) {
    if (slices <= 1)
        slice(work, 0, slices);
    else
        work->call->team->parallel_for(work->call->team, slices, 1, slice, work);
}

/* The view of the norm may be absent. */
static void clip_gradient_run(const eddy_kernel_call *call) {
    const eddy_attributes_clip_grad_norm *attributes = call->attributes;
    clip work = {.call = call, .items = call->view_count - 1, .sums = call->workspace};
    int64_t slices = ((const clip_plan *)call->plan)->slices;
    clip_gradient_run_slices(&work, slices, sum_slices);
    double squares = 0;
    for (int64_t i = 0; i < slices; i++)
        squares += work.sums[i];
    double norm = sqrt(squares);
    const eddy_op_view *target = &call->views[work.items];
    if (target->rank >= 0)
        eddy_chunk_store(target->dtype, target->data, 1, EDDY_F64, &norm, 1);
    work.scale = attributes->max_norm / (norm + 1e-6);
    if (!(work.scale >= 1)) /* also for NaN, so that it becomes visible */
        clip_gradient_run_slices(&work, slices, scale_slices);
}

/* The estimate is for one pass over memory: usually there is nothing to clip. */
static eddy_status clip_gradient_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    clip_plan *to = plan->memory;
    to->slices = 0;
    int64_t elements = 0;
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        int64_t count = eddy_kernel_view_count(&call->views[i]);
        to->slices += slices_of(count);
        elements += count;
    }
    plan->bytes = sizeof(*to);
    plan->workspace_bytes = (size_t)to->slices * sizeof(double);
    plan->cost_ps = call->kernel->cost_base_ps + 30000 * (int64_t)call->view_count +
                    eddy_cost_ps(elements, call->kernel->cost_element_ps) +
                    eddy_cost_far_views_ps(call);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_clip_grad_norm = {.name = "clip_grad_norm",
                                             .run = clip_gradient_run,
                                             .prepare = clip_gradient_prepare,
                                             .cost_base_ps = 100000,
                                             .cost_element_ps = 130};
