/* repeat, repeat_interleave, flip, roll: boxes (views of parts) are copied to other positions. */
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_ELEMENTS 65536

/* A view whose dims and strides may be changed. */
typedef struct box {
    eddy_op_view view;
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX];
} box;

static void box_init(box *b, const eddy_op_view *view) {
    b->view = *view;
    memcpy(b->shape, view->shape, (size_t)view->rank * sizeof(b->shape[0]));
    memcpy(b->strides, view->strides, (size_t)view->rank * sizeof(b->strides[0]));
    b->view.shape = b->shape;
    b->view.strides = b->strides;
}

static void box_move(box *b, int32_t d, int64_t places) {
    b->view.data = eddy_chunk_at(b->view.data, b->view.dtype, places * b->strides[d]);
}

/* The tile is copied once. Then, from the last axis on, the filled part of the axis is copied behind itself, which doubles
 * it each time. So no view has more dims than the output. */
static void repeat_run(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    if (eddy_kernel_view_count(out) == 0)
        return;
    int64_t tile[EDDY_RANK_MAX];
    int32_t added = out->rank - in->rank;
    for (int32_t d = 0; d < out->rank; d++)
        tile[d] = d < added ? 1 : in->shape[d - added];
    box to, from;
    box_init(&to, out);
    memcpy(to.shape, tile, (size_t)out->rank * sizeof(tile[0]));
    box_init(&from, &to.view);
    from.view.data = in->data;
    for (int32_t d = 0; d < out->rank; d++)
        from.strides[d] = d < added ? 0 : in->strides[d - added];
    eddy_copy_view(call->team, &from.view, &to.view);
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        for (int64_t filled = tile[d], run; filled < out->shape[d]; filled += run) {
            run = eddy_min_i64(filled, out->shape[d] - filled);
            box_init(&from, out);
            memcpy(from.shape, tile, (size_t)d * sizeof(tile[0]));
            from.shape[d] = run;
            box_init(&to, &from.view);
            box_move(&to, d, filled);
            eddy_copy_view(call->team, &from.view, &to.view);
        }
    }
}

/* The plan of copying one box to one or several boxes at a constant distance. */
typedef struct boxes_plan {
    int64_t from, step; /* offset of the first box; elements from box to box */
    int64_t times;
    int64_t words[]; /* of eddy_copy_prepare */
} boxes_plan;

_Static_assert(sizeof(boxes_plan) + EDDY_COPY_WORDS_MOST * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

static eddy_status boxes_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                 const eddy_op_view *from, const eddy_op_view *to) {
    boxes_plan *p = plan->memory;
    plan->bytes = (size_t)((char *)eddy_copy_prepare(from, to, p->words) - (char *)p);
    p->times = p->words[0] == 0 ? 0 : p->times;
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void boxes_run(const eddy_kernel_call *call) {
    const boxes_plan *plan = call->plan;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    for (int64_t i = 0; i < plan->times; i++)
        eddy_copy_run(plan->words, call->team, eddy_chunk_at(in->data, in->dtype, plan->from),
                      eddy_chunk_at(out->data, out->dtype, i * plan->step));
}

/* The axis is treated as two: its elements, and the copies of each. If the rank allows no further axis, the copies are
 * made one by one. */
static eddy_status repeat_interleave_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_repeat_interleave *attributes = call->attributes;
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]);
    boxes_plan *p = plan->memory;
    int32_t axis = attributes->axis;
    /* Of a tensor without elements they may be more than strides hold. */
    int64_t repeats = eddy_kernel_view_count(&call->views[1]) > 0 ? attributes->repeats : 0;
    box to, from;
    box_init(&to, &call->views[1]);
    box_init(&from, &in);
    int64_t stride = to.strides[axis];
    *p = (boxes_plan){.step = stride, .times = 1};
    to.shape[axis] = in.shape[axis];
    to.strides[axis] = stride * repeats;
    if (in.rank == EDDY_RANK_MAX) {
        p->times = repeats;
    } else {
        to.shape[in.rank] = from.shape[in.rank] = repeats;
        to.strides[in.rank] = stride;
        from.strides[in.rank] = 0;
        to.view.rank = from.view.rank = in.rank + 1;
    }
    return boxes_prepare(call, plan, &from.view, &to.view);
}

static eddy_status flip_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_flip *attributes = call->attributes;
    boxes_plan *p = plan->memory;
    *p = (boxes_plan){.times = 1};
    box from;
    box_init(&from, &call->views[0]);
    for (int32_t d = 0; d < from.view.rank; d++) {
        if (!(attributes->axes >> d & 1u))
            continue;
        p->from += (from.shape[d] - 1) * from.strides[d];
        from.strides[d] = -from.strides[d];
    }
    return boxes_prepare(call, plan, &from.view, &call->views[1]);
}

/* The plan of a rotation in row-major order. */
typedef struct rotation_plan {
    int64_t count, shift;
    int64_t words[]; /* of walks: the input's, the output's */
} rotation_plan;

_Static_assert(sizeof(rotation_plan) + 2 * EDDY_WALK_WORDS_MOST(1) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct rotation {
    const eddy_op_view *in, *out;
    eddy_walk from, to;
    int64_t count, shift;
} rotation;

/* Elements begin .. end - 1 of the output in row-major order; each side has its own walk. */
static void rotate_slice(void *context, int64_t begin, int64_t end) {
    const rotation *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t source = begin < work->shift ? begin - work->shift + work->count : begin - work->shift;
    eddy_walk_cursor from, to;
    eddy_walk_seek(&work->to, &to, begin);
    eddy_walk_seek(&work->from, &from, source);
    while (begin < end) {
        int64_t run =
            eddy_min_i64(eddy_walk_run(&work->to, &to), eddy_walk_run(&work->from, &from));
        run = eddy_min_i64(run, end - begin);
        eddy_chunk_copy(dtype, eddy_chunk_at(work->out->data, dtype, to.offsets[0]),
                        eddy_walk_inner_stride(&work->to, 0), dtype,
                        eddy_chunk_at(work->in->data, dtype, from.offsets[0]),
                        eddy_walk_inner_stride(&work->from, 0), run);
        eddy_walk_advance(&work->to, &to, run);
        eddy_walk_advance(&work->from, &from,
                          run); /* after the last element it is at the first one again */
        begin += run;
    }
}

static int64_t *write_walk(const eddy_op_view *view, int64_t *words) {
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    eddy_walk_collapse(&walk);
    return eddy_walk_write(&walk, words);
}

static void rotate_run(const eddy_kernel_call *call) {
    const rotation_plan *plan = call->plan;
    rotation work; /* set one by one: a walk is too large to be cleared for nothing */
    work.in = &call->views[0];
    work.out = &call->views[1];
    work.shift = plan->shift;
    work.count = plan->count;
    (void)eddy_walk_read(&work.to, eddy_walk_read(&work.from, plan->words));
    if (work.count <= SLICE_ELEMENTS)
        rotate_slice(&work, 0, work.count);
    else
        call->team->parallel_for(call->team, work.count, SLICE_ELEMENTS, rotate_slice, &work);
}

static void rotate_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan, int64_t count,
                           int64_t shift) {
    rotation_plan *p = plan->memory;
    *p = (rotation_plan){.count = count, .shift = shift};
    int64_t *to = write_walk(&call->views[0], p->words);
    plan->run = rotate_run;
    plan->bytes = (size_t)((char *)write_walk(&call->views[1], to) - (char *)p);
}

/* One axis is rolled, and all elements are contiguous. The dims from the axis on form one row; the end of the row moves to
 * the front. */
typedef struct turn_plan {
    int64_t row, shift; /* elements */
    int64_t rows, grain;
} turn_plan;

typedef struct turn {
    const eddy_op_view *in, *out;
    const turn_plan *plan;
} turn;

static void turn_slice(void *context, int64_t begin, int64_t end) {
    const turn *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t row = work->plan->row, shift = work->plan->shift, kept = row - shift;
    for (int64_t r = begin; r < end; r++) {
        char *to = eddy_chunk_at(work->out->data, dtype, r * row);
        const char *from = eddy_chunk_at(work->in->data, dtype, r * row);
        eddy_chunk_copy(dtype, to, 1, dtype, eddy_chunk_at(from, dtype, kept), 1, shift);
        eddy_chunk_copy(dtype, eddy_chunk_at(to, dtype, shift), 1, dtype, from, 1, kept);
    }
}

static bool lies_plain(const eddy_op_view *in, const eddy_op_view *out) {
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add(&walk, in->strides, 1);
    eddy_walk_collapse(&walk);
    return eddy_walk_is_plain(&walk);
}

static void turn_run(const eddy_kernel_call *call) {
    const turn_plan *plan = call->plan;
    turn work = {.in = &call->views[0], .out = &call->views[1], .plan = plan};
    if (plan->rows <= plan->grain)
        turn_slice(&work, 0, plan->rows);
    else
        call->team->parallel_for(call->team, plan->rows, plan->grain, turn_slice, &work);
}

/* Leaves the call to roll_run if rows are so long that each has to be cut into slices. */
static void turn_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan, int64_t count,
                         int32_t axis, int64_t shift) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    int64_t row = 1;
    for (int32_t d = axis; d < out->rank; d++)
        row *= out->shape[d];
    int64_t grain = SLICE_ELEMENTS / row;
    if (grain == 0 || !lies_plain(in, out))
        return;
    *(turn_plan *)plan->memory =
        (turn_plan){row, shift * (row / out->shape[axis]), count / row, grain};
    plan->run = turn_run;
    plan->bytes = sizeof(turn_plan);
}

static uint32_t moved_axes(const eddy_kernel_call *call) {
    const eddy_attributes_roll *attributes = call->attributes;
    uint32_t moved = 0;
    for (int32_t d = 0; d < call->views[0].rank; d++)
        if (attributes->shifts.dims[d] != 0)
            moved |= 1u << d;
    return moved;
}

static eddy_status roll_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_roll *attributes = call->attributes;
    int64_t count = eddy_kernel_view_count(&call->views[1]);
    plan->cost_ps = eddy_cost_views_ps(call);
    if (count == 0)
        return EDDY_OK;
    if (attributes->shifts.rank != call->views[0].rank) {
        rotate_prepare(call, plan, count, attributes->shifts.dims[0]);
        return EDDY_OK;
    }
    uint32_t moved = moved_axes(call);
    int32_t axis = moved != 0 ? __builtin_ctz(moved) : 0;
    if (moved != 0 && (moved & (moved - 1)) == 0)
        turn_prepare(call, plan, count, axis, attributes->shifts.dims[axis]);
    return EDDY_OK;
}

/* Each axis that is rolled is cut in two; each combination of parts is a box that keeps its inner order. A plan could not
 * hold all boxes. */
static void roll_run(const eddy_kernel_call *call) {
    const eddy_attributes_roll *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    if (eddy_kernel_view_count(out) == 0)
        return;
    uint32_t moved = moved_axes(call);
    /* Iterates over all subsets of `moved`: the axes whose end moves to the front. */
    uint32_t wraps = 0;
    do {
        box from, to;
        box_init(&from, in);
        box_init(&to, out);
        for (int32_t d = 0; d < in->rank; d++) {
            int64_t shift = attributes->shifts.dims[d], kept = in->shape[d] - shift;
            if (!(moved >> d & 1u))
                continue;
            bool does_wrap = wraps >> d & 1u;
            from.shape[d] = to.shape[d] = does_wrap ? shift : kept;
            box_move(does_wrap ? &from : &to, d, does_wrap ? kept : shift);
        }
        eddy_copy_view(call->team, &from.view, &to.view);
        wraps = (wraps - moved) & moved;
    } while (wraps != 0);
}

const eddy_kernel eddy_cpu_repeat = {
    .name = "repeat", .run = repeat_run, .cost_base_ps = 100000, .cost_element_ps = 110};
const eddy_kernel eddy_cpu_repeat_interleave = {.name = "repeat_interleave",
                                                .run = boxes_run,
                                                .prepare = repeat_interleave_prepare,
                                                .cost_base_ps = 100000,
                                                .cost_element_ps = 155};
const eddy_kernel eddy_cpu_flip = {.name = "flip",
                                   .run = boxes_run,
                                   .prepare = flip_prepare,
                                   .cost_base_ps = 90000,
                                   .cost_element_ps = 170};
const eddy_kernel eddy_cpu_roll = {.name = "roll",
                                   .run = roll_run,
                                   .prepare = roll_prepare,
                                   .cost_base_ps = 90000,
                                   .cost_element_ps = 130};
