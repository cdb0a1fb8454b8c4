/* repeat, repeat_interleave, flip, roll: whole boxes are copied to other places. */
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/kernels.h>
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

/* The tile is copied once. Then, from the last axis on, what is filled along the axis is copied behind itself, which
 * doubles it each time: no view has more dims than the output. */
static void repeat_run(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    if (eddy_view_count(out) == 0)
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

/* The axis is seen as two: its parts, and the places that each is copied to; one place at a time where there is no room
 * for another axis. */
static void repeat_interleave_run(const eddy_kernel_call *call) {
    const eddy_attributes_repeat_interleave *attributes = call->attributes;
    const eddy_op_view with_axis = eddy_view_with_axis(&call->views[0]), *in = &with_axis;
    int32_t axis = attributes->axis;
    if (eddy_view_count(&call->views[1]) == 0)
        return;
    box to, from;
    box_init(&to, &call->views[1]);
    box_init(&from, in);
    int64_t stride = to.strides[axis];
    to.shape[axis] = in->shape[axis];
    to.strides[axis] = stride * attributes->repeats;
    if (in->rank == EDDY_RANK_MAX) {
        for (int64_t i = 0; i < attributes->repeats; i++) {
            eddy_copy_view(call->team, &from.view, &to.view);
            to.view.data = eddy_chunk_at(to.view.data, to.view.dtype, stride);
        }
        return;
    }
    to.shape[in->rank] = from.shape[in->rank] = attributes->repeats;
    to.strides[in->rank] = stride;
    from.strides[in->rank] = 0;
    to.view.rank = from.view.rank = in->rank + 1;
    eddy_copy_view(call->team, &from.view, &to.view);
}

static void flip_run(const eddy_kernel_call *call) {
    const eddy_attributes_flip *attributes = call->attributes;
    if (eddy_view_count(&call->views[1]) == 0)
        return;
    box from;
    box_init(&from, &call->views[0]);
    for (int32_t d = 0; d < from.view.rank; d++) {
        if (!(attributes->axes >> d & 1u))
            continue;
        box_move(&from, d, from.shape[d] - 1);
        from.strides[d] = -from.strides[d];
    }
    eddy_copy_view(call->team, &from.view, &call->views[1]);
}

typedef struct rotation {
    const eddy_op_view *in, *out;
    eddy_walk from, to;
    int64_t count, shift;
} rotation;

/* Elements begin .. end of the output in row-major order, each side by its own walk. */
static void rotate_slice(void *context, int64_t begin, int64_t end) {
    const rotation *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t source = begin < work->shift ? begin - work->shift + work->count : begin - work->shift;
    eddy_walk_cursor from, to;
    eddy_walk_seek(&work->to, &to, begin);
    eddy_walk_seek(&work->from, &from, source);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(&work->to, &to), eddy_walk_run(&work->from, &from));
        run = eddy_min_i64(run, end - begin);
        eddy_chunk_copy(
            dtype, eddy_chunk_at(work->out->data, dtype, to.offsets[0]), eddy_walk_inner_stride(&work->to, 0), dtype,
            eddy_chunk_at(work->in->data, dtype, from.offsets[0]), eddy_walk_inner_stride(&work->from, 0), run);
        eddy_walk_advance(&work->to, &to, run);
        eddy_walk_advance(&work->from, &from, run); /* past the last element it is at the first again */
        begin += run;
    }
}

static void rotate(const eddy_kernel_call *call, int64_t shift) {
    /* Set one by one: a walk is too large to be cleared for nothing. */
    rotation work;
    work.in = &call->views[0];
    work.out = &call->views[1];
    work.shift = shift;
    work.count = eddy_view_count(work.out);
    eddy_walk_init(&work.from, work.in->rank, work.in->shape);
    eddy_walk_add(&work.from, work.in->strides, 1);
    eddy_walk_collapse(&work.from);
    eddy_walk_init(&work.to, work.out->rank, work.out->shape);
    eddy_walk_add(&work.to, work.out->strides, 1);
    eddy_walk_collapse(&work.to);
    if (work.count <= SLICE_ELEMENTS)
        rotate_slice(&work, 0, work.count);
    else
        call->team->parallel_for(call->team, work.count, SLICE_ELEMENTS, rotate_slice, &work);
}

/* One axis moves, and all lies side by side: the places from the axis on are one row, whose end comes in at the front. */
typedef struct turn {
    const eddy_op_view *in, *out;
    int64_t row, shift; /* elements */
} turn;

static void turn_slice(void *context, int64_t begin, int64_t end) {
    const turn *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t kept = work->row - work->shift;
    for (int64_t r = begin; r < end; r++) {
        char *to = eddy_chunk_at(work->out->data, dtype, r * work->row);
        const char *from = eddy_chunk_at(work->in->data, dtype, r * work->row);
        eddy_chunk_copy(dtype, to, 1, dtype, eddy_chunk_at(from, dtype, kept), 1, work->shift);
        eddy_chunk_copy(dtype, eddy_chunk_at(to, dtype, work->shift), 1, dtype, from, 1, kept);
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

/* False where rows are so long that each should be shared out. */
static bool turn_rows(const eddy_kernel_call *call, int32_t axis, int64_t shift) {
    turn work = {.in = &call->views[0], .out = &call->views[1], .row = 1, .shift = shift};
    for (int32_t d = axis; d < work.out->rank; d++)
        work.row *= work.out->shape[d];
    work.shift *= work.row / work.out->shape[axis];
    int64_t rows = eddy_view_count(work.out) / work.row, grain = SLICE_ELEMENTS / work.row;
    if (grain == 0 || !lies_plain(work.in, work.out))
        return false;
    if (rows <= grain)
        turn_slice(&work, 0, rows);
    else
        call->team->parallel_for(call->team, rows, grain, turn_slice, &work);
    return true;
}

/* Each axis that moves is cut in two; every combination of halves is a box that keeps its inner order. */
static void roll_run(const eddy_kernel_call *call) {
    const eddy_attributes_roll *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *out = &call->views[1];
    if (eddy_view_count(out) == 0)
        return;
    if (attributes->shifts.rank < 0) {
        rotate(call, attributes->shifts.dims[0]);
        return;
    }
    uint32_t moved = 0;
    for (int32_t d = 0; d < in->rank; d++)
        if (attributes->shifts.dims[d] != 0)
            moved |= 1u << d;
    if (moved != 0 && (moved & (moved - 1)) == 0) {
        int32_t axis = __builtin_ctz(moved);
        if (turn_rows(call, axis, attributes->shifts.dims[axis]))
            return;
    }
    /* Every subset of `moved`: the axes whose end comes in at the front. */
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
const eddy_kernel eddy_cpu_repeat_interleave = {
    .name = "repeat_interleave", .run = repeat_interleave_run, .cost_base_ps = 100000, .cost_element_ps = 155};
const eddy_kernel eddy_cpu_flip = {.name = "flip", .run = flip_run, .cost_base_ps = 90000, .cost_element_ps = 170};
const eddy_kernel eddy_cpu_roll = {.name = "roll", .run = roll_run, .cost_base_ps = 90000, .cost_element_ps = 130};
