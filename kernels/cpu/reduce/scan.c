/* cumsum and cumprod along an axis, and cumprod's gradient. Floats are scanned in f64 and integers in i64. scan_block.h
 * defines the order of operations, which depends neither on the layout nor on the slices. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce/scan_block.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Elements that are worth a slice of their own. */
#define SLICE_ELEMENTS 32768
/* From this many neighbouring lines on, lines are scanned row by row. */
#define COLUMNS_LEAST 16
/* If lines are long and few, they are cut: a first pass computes the totals of their blocks. */
#define FEW_LINES 4
#define LONG_LINE 131072
#define GROUP (EDDY_SCAN_LINES * EDDY_SCAN_BLOCK)
/* Elements of whole lines that are processed at a time: those of all lines stay in the first-level cache. */
#define PIECE 256

typedef union value {
    double f64;
    int64_t i64;
} value;

typedef struct scan {
    /* Copied to the plan as they are. */
    int64_t line_count;
    int64_t count; /* elements of a line */
    int64_t in_stride, out_stride;
    int64_t columns; /* size of the column dim; 0: lines one by one */
    int64_t column_in, column_out, panels;
    const eddy_scan_op *op;
    value nothing;    /* the neutral value: -0 (0 would change -0), 0 or 1 */
    eddy_dtype dtype; /* F64 or I64 */
    bool is_sum;
    /* Copied as words. */
    eddy_walk lines; /* in, out; without the axis, and without the column dim */
    /* Set for each call. */
    const eddy_op_view *in, *out;
    value *totals; /* [line][block]: total of the block, later of all before it; if lines are cut */
} scan;

_Static_assert(offsetof(scan, lines) + sizeof(int64_t) * EDDY_WALK_WORDS_MOST(2) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "a plan is what is kept, and the lines");

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static int64_t blocks_of(int64_t count) {
    return (count + EDDY_SCAN_BLOCK - 1) / EDDY_SCAN_BLOCK;
}

/* The lines along the axis of `operand_count` views of one shape, in the order of the first one's memory. */
static void lines_init(eddy_walk *lines, const eddy_op_view *views, int32_t operand_count,
                       int32_t axis) {
    eddy_walk_init(lines, 0, NULL);
    for (int32_t d = 0; d < views[0].rank; d++) {
        int64_t strides[3];
        for (int32_t o = 0; o < operand_count; o++)
            strides[o] = views[o].strides[d];
        if (d != axis)
            eddy_walk_append(lines, views[0].shape[d], strides, operand_count);
    }
    lines->operand_count = operand_count;
    eddy_walk_sort(lines);
    eddy_walk_collapse(lines);
}

/* A tensor of rank 0 is a line of one element. */
static int64_t along(const eddy_op_view *view, const int64_t *of_dims, int32_t axis) {
    return view->rank == 0 ? 1 : of_dims[axis];
}

static void take_views(scan *work, const eddy_kernel_call *call) {
    work->in = &call->views[0];
    work->out = &call->views[1];
}

static void scan_init(scan *work, const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    take_views(work, call);
    work->count = along(work->in, work->in->shape, axis);
    work->in_stride = along(work->in, work->in->strides, axis);
    work->out_stride = along(work->out, work->out->strides, axis);
    lines_init(&work->lines, call->views, 2, axis);
    work->columns = 0;
    int32_t inner = work->lines.rank - 1;
    if (inner >= 0 && work->lines.dims[inner] >= COLUMNS_LEAST &&
        magnitude(work->lines.strides[0][inner]) < magnitude(work->in_stride)) {
        work->columns = work->lines.dims[inner];
        work->column_in = work->lines.strides[0][inner];
        work->column_out = work->lines.strides[1][inner];
        work->lines.rank--;
        work->panels = (work->columns + EDDY_SCAN_COLUMNS - 1) / EDDY_SCAN_COLUMNS;
    }
    work->line_count = eddy_walk_count(&work->lines);
}

static bool is_cut(const scan *work) {
    return work->columns == 0 && work->line_count < FEW_LINES && work->count >= LONG_LINE;
}

static void load(const scan *work, void *buffer, int64_t offset, int64_t stride, int64_t count) {
    eddy_chunk_load(work->dtype, buffer, work->in->dtype,
                    eddy_chunk_at(work->in->data, work->in->dtype, offset), stride, count);
}

static void store(const scan *work, const void *buffer, int64_t offset, int64_t stride,
                  int64_t count) {
    eddy_chunk_store(work->out->dtype, eddy_chunk_at(work->out->data, work->out->dtype, offset),
                     stride, work->dtype, buffer, count);
}

static void fill(value *values, int64_t count, value with) {
    for (int64_t i = 0; i < count; i++)
        values[i] = with;
}

/* ---- lines side by side, row after row ---- */

static void scan_panel(const scan *work, int64_t unit) {
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->lines, &cursor, unit / work->panels);
    int64_t column = unit % work->panels * EDDY_SCAN_COLUMNS;
    int64_t columns = eddy_min_i64(EDDY_SCAN_COLUMNS, work->columns - column);
    int64_t in = cursor.offsets[0] + column * work->column_in,
            out = cursor.offsets[1] + column * work->column_out;
    value row[EDDY_SCAN_COLUMNS], totals[EDDY_SCAN_COLUMNS], before[EDDY_SCAN_COLUMNS];
    fill(totals, columns, work->nothing);
    fill(before, columns, work->nothing);
    for (int64_t i = 0; i < work->count; i++) {
        load(work, row, in + i * work->in_stride, work->column_in, columns);
        work->op->row(row, totals, before, columns);
        store(work, row, out + i * work->out_stride, work->column_out, columns);
        if (work->is_sum && (i + 1) % EDDY_SCAN_BLOCK == 0) {
            memcpy(before, row, sizeof(value) * (size_t)columns);
            fill(totals, columns, work->nothing);
        }
    }
}

static void panel_slice(void *context, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; unit++)
        scan_panel(context, unit);
}

/* ---- several whole lines at once: products, and sums of one block ---- */

static void scan_bundle(const scan *work, const int64_t *in, const int64_t *out, int64_t lines) {
    value elements[EDDY_SCAN_LINES * PIECE], totals[EDDY_SCAN_LINES];
    fill(totals, lines, work->nothing);
    for (int64_t done = 0; done < work->count; done += PIECE) {
        int64_t count = eddy_min_i64(PIECE, work->count - done);
        for (int64_t l = 0; l < lines; l++)
            load(work, &elements[l * PIECE], in[l] + done * work->in_stride, work->in_stride,
                 count);
        work->op->lines(elements, lines, PIECE, count, totals);
        for (int64_t l = 0; l < lines; l++)
            store(work, &elements[l * PIECE], out[l] + done * work->out_stride, work->out_stride,
                  count);
    }
}

static void bundle_slice(void *context, int64_t begin, int64_t end) {
    const scan *work = context;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->lines, &cursor, begin * EDDY_SCAN_LINES);
    for (int64_t bundle = begin; bundle < end; bundle++) {
        int64_t lines = eddy_min_i64(EDDY_SCAN_LINES, work->line_count - bundle * EDDY_SCAN_LINES);
        int64_t in[EDDY_SCAN_LINES], out[EDDY_SCAN_LINES];
        for (int64_t l = 0; l < lines; l++) {
            in[l] = cursor.offsets[0];
            out[l] = cursor.offsets[1];
            eddy_walk_next(&work->lines, &cursor, work->lines.rank);
        }
        scan_bundle(work, in, out, lines);
    }
}

/* ---- sums of long lines: several blocks at once ---- */

/* Loads the blocks from `begin` on and sums each, starting from the neutral value; returns the number of elements. */
static int64_t sum_blocks(const scan *work, const eddy_walk_cursor *cursor, int64_t begin,
                          value *elements, value *totals) {
    int64_t count = eddy_min_i64(GROUP, work->count - begin), whole = count / EDDY_SCAN_BLOCK;
    load(work, elements, cursor->offsets[0] + begin * work->in_stride, work->in_stride, count);
    fill(totals, EDDY_SCAN_LINES, work->nothing);
    work->op->lines(elements, whole, EDDY_SCAN_BLOCK, EDDY_SCAN_BLOCK, totals);
    if (count % EDDY_SCAN_BLOCK != 0)
        work->op->lines(&elements[whole * EDDY_SCAN_BLOCK], 1, EDDY_SCAN_BLOCK,
                        count % EDDY_SCAN_BLOCK, &totals[whole]);
    return count;
}

/* Scans blocks whose preceding total is known: *before and, afterwards, the total before the next block. */
static void finish_blocks(const scan *work, const eddy_walk_cursor *cursor, int64_t begin,
                          value *before) {
    value elements[GROUP], totals[EDDY_SCAN_LINES];
    int64_t count = sum_blocks(work, cursor, begin, elements, totals);
    for (int64_t done = 0; done < count; done += EDDY_SCAN_BLOCK) {
        int64_t block = eddy_min_i64(EDDY_SCAN_BLOCK, count - done);
        work->op->shift(&elements[done], block, before);
        *before = elements[done + block - 1];
    }
    store(work, elements, cursor->offsets[1] + begin * work->out_stride, work->out_stride, count);
}

static void line_slice(void *context, int64_t begin, int64_t end) {
    const scan *work = context;
    for (int64_t line = begin; line < end; line++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->lines, &cursor, line);
        value before = work->nothing;
        for (int64_t done = 0; done < work->count; done += GROUP)
            finish_blocks(work, &cursor, done, &before);
    }
}

static int64_t groups_of(const scan *work) {
    return (work->count + GROUP - 1) / GROUP;
}

static void total_slice(void *context, int64_t begin, int64_t end) {
    const scan *work = context;
    for (int64_t task = begin; task < end; task++) {
        int64_t line = task / groups_of(work), at = task % groups_of(work) * GROUP;
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->lines, &cursor, line);
        value elements[GROUP], totals[EDDY_SCAN_LINES];
        int64_t count = sum_blocks(work, &cursor, at, elements, totals);
        memcpy(&work->totals[line * blocks_of(work->count) + at / EDDY_SCAN_BLOCK], totals,
               sizeof(value) * (size_t)blocks_of(count));
    }
}

static void finish_slice(void *context, int64_t begin, int64_t end) {
    const scan *work = context;
    for (int64_t task = begin; task < end; task++) {
        int64_t line = task / groups_of(work), at = task % groups_of(work) * GROUP;
        eddy_walk_cursor cursor;
        eddy_walk_seek(&work->lines, &cursor, line);
        value before = work->totals[line * blocks_of(work->count) + at / EDDY_SCAN_BLOCK];
        finish_blocks(work, &cursor, at, &before);
    }
}

/* Makes the same additions as line_slice; those within blocks are made twice. */
static void scan_cut_lines(const eddy_kernel_call *call, scan *work) {
    int64_t tasks = work->line_count * groups_of(work), blocks = blocks_of(work->count);
    call->team->parallel_for(call->team, tasks, SLICE_ELEMENTS / GROUP, total_slice, work);
    for (int64_t line = 0; line < work->line_count; line++) {
        value before = work->nothing;
        for (int64_t b = 0; b < blocks; b++) {
            value next = work->totals[line * blocks + b];
            work->op->shift(&next, 1, &before);
            work->totals[line * blocks + b] = before;
            before = next;
        }
    }
    call->team->parallel_for(call->team, tasks, SLICE_ELEMENTS / GROUP, finish_slice, work);
}

/* ---- slices ---- */

static void scan_run_slices(const eddy_kernel_call *call, int64_t tasks, int64_t task_elements,
                            void (*slice)(void *, int64_t, int64_t), void *work) {
    int64_t grain = eddy_max_i64(1, SLICE_ELEMENTS / task_elements);
    if (tasks <= grain)
        slice(work, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, grain, slice, work);
}

/* ---- the kernels ---- */

static void scan_run(const eddy_kernel_call *call) {
    /* Members are set one by one: a walk is too large to be cleared for nothing. */
    scan work;
    memcpy(&work, call->plan, offsetof(scan, lines));
    if (work.count == 0 || work.line_count == 0)
        return;
    eddy_walk_read(&work.lines, (const int64_t *)(const void *)((const char *)call->plan +
                                                                offsetof(scan, lines)));
    take_views(&work, call);
    work.totals = call->workspace;
    if (work.columns > 0)
        scan_run_slices(call, work.line_count * work.panels,
                        work.count * eddy_min_i64(EDDY_SCAN_COLUMNS, work.columns), panel_slice,
                        &work);
    else if (!work.is_sum || work.count <= EDDY_SCAN_BLOCK)
        scan_run_slices(call, (work.line_count + EDDY_SCAN_LINES - 1) / EDDY_SCAN_LINES,
                        work.count * EDDY_SCAN_LINES, bundle_slice, &work);
    else if (is_cut(&work) && call->team->thread_count > 2)
        scan_cut_lines(call, &work);
    else
        scan_run_slices(call, work.line_count, work.count, line_slice, &work);
}

static void choose_op(scan *work, bool is_sum) {
    bool is_float = eddy_dtype_is_float(work->in->dtype);
    const eddy_scan_blocks *blocks = is_float ? eddy_cpu_scan_f64() : eddy_cpu_scan_i64();
    work->is_sum = is_sum;
    work->op = is_sum ? &blocks->sum : &blocks->prod;
    if (is_float) {
        work->dtype = EDDY_F64;
        work->nothing.f64 = is_sum ? -0.0 : 1;
    } else {
        work->dtype = EDDY_I64;
        work->nothing.i64 = !is_sum;
    }
}

static eddy_status scan_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan, bool is_sum) {
    scan work;
    scan_init(&work, call);
    choose_op(&work, is_sum);
    if (is_sum && is_cut(&work))
        plan->workspace_bytes = sizeof(value) * (size_t)(work.line_count * blocks_of(work.count));
    plan->cost_ps = eddy_cost_views_ps(call);
    memcpy(plan->memory, &work, offsetof(scan, lines));
    char *words = (char *)plan->memory + offsetof(scan, lines);
    plan->bytes = (size_t)((char *)eddy_walk_write(&work.lines, (int64_t *)(void *)words) -
                           (char *)plan->memory);
    return EDDY_OK;
}

static eddy_status cumsum_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return scan_prepare(call, plan, true);
}

static eddy_status cumprod_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return scan_prepare(call, plan, false);
}

/* ---- the gradient of cumprod ----
 *
 * Let p[k] be the product of all elements before k, and s[k] = grad[k] + x[k + 1] s[k + 1]. Then the gradient of x[k] is
 * p[k] s[k]. There is no division, so zeros need no special case. p is computed once up to the start of each block, and
 * again within the block on the way back. */

typedef struct backward {
    /* Copied to the plan as they are. */
    int64_t line_count, count;
    int64_t grad_stride, in_stride, out_stride;
    /* Copied as words. */
    eddy_walk lines; /* in, grad, out */
    /* Set for each call. */
    const eddy_op_view *grad, *in, *out;
    double *products; /* [line][block]: product of all elements before the block */
} backward;

_Static_assert(offsetof(backward, lines) + sizeof(int64_t) * EDDY_WALK_WORDS_MOST(3) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "a plan is what is kept, and the lines");

static void backward_take_views(backward *work, const eddy_kernel_call *call) {
    work->grad = &call->views[0];
    work->in = &call->views[1];
    work->out = &call->views[2];
}

static void backward_init(backward *work, const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view views[] = {call->views[1], call->views[0], call->views[2]};
    backward_take_views(work, call);
    work->count = along(work->in, work->in->shape, axis);
    work->in_stride = along(work->in, work->in->strides, axis);
    work->grad_stride = along(work->grad, work->grad->strides, axis);
    work->out_stride = along(work->out, work->out->strides, axis);
    lines_init(&work->lines, views, 3, axis);
    work->line_count = eddy_walk_count(&work->lines);
}

static void load_view(const eddy_op_view *view, double *buffer, int64_t offset, int64_t stride,
                      int64_t count) {
    eddy_chunk_load(EDDY_F64, buffer, view->dtype, eddy_chunk_at(view->data, view->dtype, offset),
                    stride, count);
}

static void find_products(const backward *work, int64_t in, double *products) {
    double elements[EDDY_SCAN_BLOCK], product = 1;
    for (int64_t b = 0; b < blocks_of(work->count); b++) {
        int64_t begin = b * EDDY_SCAN_BLOCK,
                count = eddy_min_i64(EDDY_SCAN_BLOCK, work->count - begin);
        products[b] = product;
        load_view(work->in, elements, in + begin * work->in_stride, work->in_stride, count);
        for (int64_t i = 0; i < count; i++)
            product *= elements[i];
    }
}

static void backward_line(const backward *work, int64_t line) {
    double elements[EDDY_SCAN_BLOCK], grads[EDDY_SCAN_BLOCK], before[EDDY_SCAN_BLOCK];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->lines, &cursor, line);
    double *products = work->products + line * blocks_of(work->count);
    find_products(work, cursor.offsets[0], products);
    double after = 0; /* x[k + 1] s[k + 1] */
    for (int64_t b = blocks_of(work->count) - 1; b >= 0; b--) {
        int64_t begin = b * EDDY_SCAN_BLOCK,
                count = eddy_min_i64(EDDY_SCAN_BLOCK, work->count - begin);
        load_view(work->in, elements, cursor.offsets[0] + begin * work->in_stride, work->in_stride,
                  count);
        load_view(work->grad, grads, cursor.offsets[1] + begin * work->grad_stride,
                  work->grad_stride, count);
        before[0] = products[b];
        for (int64_t i = 1; i < count; i++)
            before[i] = before[i - 1] * elements[i - 1];
        for (int64_t i = count - 1; i >= 0; i--) {
            double sum = grads[i] + after;
            after = elements[i] * sum;
            /* Behind a zero the gradient is 0, even if the sum has overflowed. */
            grads[i] = before[i] == 0 ? 0 : before[i] * sum;
        }
        eddy_chunk_store(work->out->dtype,
                         eddy_chunk_at(work->out->data, work->out->dtype,
                                       cursor.offsets[2] + begin * work->out_stride),
                         work->out_stride, EDDY_F64, grads, count);
    }
}

static void scan_backward_slice(void *context, int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; line++)
        backward_line(context, line);
}

static void cumprod_backward_run(const eddy_kernel_call *call) {
    backward work;
    memcpy(&work, call->plan, offsetof(backward, lines));
    if (work.count == 0 || work.line_count == 0)
        return;
    eddy_walk_read(&work.lines, (const int64_t *)(const void *)((const char *)call->plan +
                                                                offsetof(backward, lines)));
    backward_take_views(&work, call);
    work.products = call->workspace;
    scan_run_slices(call, work.line_count, work.count, scan_backward_slice, &work);
}

static eddy_status cumprod_backward_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    backward work;
    backward_init(&work, call);
    plan->workspace_bytes = sizeof(double) * (size_t)(work.line_count * blocks_of(work.count));
    plan->cost_ps = eddy_cost_views_ps(call);
    memcpy(plan->memory, &work, offsetof(backward, lines));
    char *words = (char *)plan->memory + offsetof(backward, lines);
    plan->bytes = (size_t)((char *)eddy_walk_write(&work.lines, (int64_t *)(void *)words) -
                           (char *)plan->memory);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_cumsum = {.name = "cumsum",
                                     .prepare = cumsum_prepare,
                                     .run = scan_run,
                                     .cost_base_ps = 150000,
                                     .cost_element_ps = 850};
const eddy_kernel eddy_cpu_cumprod = {.name = "cumprod",
                                      .prepare = cumprod_prepare,
                                      .run = scan_run,
                                      .cost_base_ps = 150000,
                                      .cost_element_ps = 900};
const eddy_kernel eddy_cpu_cumprod_backward = {.name = "cumprod_backward",
                                               .prepare = cumprod_backward_prepare,
                                               .run = cumprod_backward_run,
                                               .cost_base_ps = 150000,
                                               .cost_element_ps = 6000};
