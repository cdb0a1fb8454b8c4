#include <base/assert.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/reduce/reduce_plan.h>
#include <string.h>

/* An input of this many elements is worth a slice of its own. */
#define SLICE_ELEMENTS 65536
/* Tasks that one reduction with few outputs is cut into. */
#define SPLIT_TASKS 32
/* Outputs of up to this many elements each are worth gathering side by side, whatever the layout. */
#define SHORT_COUNT 16

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Makes the innermost dim of the outputs the column dim. */
static void take_columns(eddy_reduce_plan *plan) {
    eddy_walk *kept = &plan->kept;
    int32_t inner = kept->rank - 1;
    plan->columns = kept->dims[inner];
    plan->column_in = kept->strides[0][inner];
    for (int32_t o = 0; o < plan->out_count; o++)
        plan->column_outs[o] = kept->strides[o + 1][inner];
    kept->rank--;
}

/* Whether outputs of `count` elements are worth gathering side by side, `outputs` of them in a row. */
static bool is_short(int64_t count, int64_t outputs) {
    return count <= SHORT_COUNT && outputs > count;
}

static void choose_columns(eddy_reduce_plan *plan) {
    const eddy_walk *kept = &plan->kept;
    plan->columns = 1;
    plan->panel = EDDY_REDUCE_COLUMNS;
    plan->is_by_rows = false;
    plan->column_in = plan->column_outs[0] = plan->column_outs[1] = 1;
    if (kept->rank == 0)
        return;
    int32_t inner = kept->rank - 1;
    const eddy_walk *reduced = &plan->reduced;
    if (!is_short(plan->reduced_count, kept->dims[inner]) && reduced->rank > 0 &&
        magnitude(kept->strides[0][inner]) >= magnitude(reduced->strides[0][reduced->rank - 1]))
        return;
    take_columns(plan);
}

static void choose_splits(eddy_reduce_plan *plan) {
    int64_t outputs = plan->outputs, elements = outputs * plan->reduced_count;
    plan->panels = (plan->columns + plan->panel - 1) / plan->panel;
    plan->units = outputs == 0 ? 0 : outputs / plan->columns * plan->panels;
    int64_t blocks = (plan->reduced_count + EDDY_REDUCE_BLOCK - 1) / EDDY_REDUCE_BLOCK,
            split_blocks = 1;
    bool is_whole = plan->is_by_rows || elements < 2 * SLICE_ELEMENTS || plan->units == 0;
    int64_t wanted = is_whole ? 1 : SPLIT_TASKS / plan->units;
    wanted = eddy_max_i64(wanted, 1);
    while ((blocks + split_blocks - 1) / split_blocks > wanted)
        split_blocks *= 2;
    plan->split_count = split_blocks * EDDY_REDUCE_BLOCK;
    plan->splits = eddy_max_i64(1, (blocks + split_blocks - 1) / split_blocks);
    int64_t width = eddy_min_i64(plan->columns, plan->panel);
    int64_t task = eddy_max_i64(1, width * eddy_min_i64(plan->split_count, plan->reduced_count));
    plan->task_grain = eddy_max_i64(1, SLICE_ELEMENTS / task);
}

static eddy_reduce_type type_of(eddy_dtype compute) {
    switch (compute) {
    case EDDY_F32:
        return EDDY_REDUCE_F32;
    case EDDY_F64:
        return EDDY_REDUCE_F64;
    case EDDY_I64:
        return EDDY_REDUCE_I64;
    default:
        return EDDY_REDUCE_TRUTH;
    }
}

static bool is_row_major(const eddy_op_view *view) {
    int64_t stride = 1;
    for (int32_t d = view->rank - 1; d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != stride)
            return false;
        stride *= view->shape[d];
    }
    return true;
}

bool eddy_reduce_rows_find(eddy_reduce_rows *found, const eddy_kernel_call *call,
                           eddy_attributes_reduce attributes) {
    const eddy_op_view *in = &call->views[0];
    *found = (eddy_reduce_rows){1, 1};
    for (int32_t d = in->rank - 1; d >= 0; d--) {
        int64_t dim = in->shape[d];
        if (dim == 1)
            continue;
        bool is_reduced = attributes.axes >> d & 1;
        if (in->strides[d] != found->rows * found->count || (is_reduced && found->rows > 1))
            return false;
        if (is_reduced)
            found->count *= dim;
        else
            found->rows *= dim;
    }
    int64_t elements = found->rows * found->count;
    if (elements == 0 || elements > SLICE_ELEMENTS || is_short(found->count, found->rows))
        return false;
    for (int32_t o = 1; o < call->view_count; o++)
        if (!is_row_major(&call->views[o]))
            return false;
    return true;
}

static void take_views(eddy_reduce_plan *plan, const eddy_kernel_call *call) {
    plan->in = &call->views[0];
    plan->outs = &call->views[1];
}

void eddy_reduce_plan_init(eddy_reduce_plan *plan, const eddy_kernel_call *call,
                           eddy_attributes_reduce attributes, eddy_dtype dtype) {
    const eddy_op_view *in = &call->views[0];
    take_views(plan, call);
    plan->out_count = call->view_count - 1;
    EDDY_ASSERT(plan->out_count <= EDDY_REDUCE_OUTPUTS);
    plan->dtype = (uint8_t)dtype;
    plan->type = (uint8_t)type_of(dtype);
    eddy_walk_init(&plan->kept, 0, NULL);
    eddy_walk_init(&plan->reduced, 0, NULL);
    plan->kept.operand_count = 1 + plan->out_count;
    plan->reduced.operand_count = 1;
    for (int32_t d = 0, kept = 0; d < in->rank; d++) {
        if (attributes.axes >> d & 1) {
            eddy_walk_append(&plan->reduced, in->shape[d], &in->strides[d], 1);
            kept += attributes.keeps_dims;
            continue;
        }
        int64_t strides[1 + EDDY_REDUCE_OUTPUTS] = {in->strides[d]};
        for (int32_t o = 0; o < plan->out_count; o++)
            strides[o + 1] = plan->outs[o].strides[kept];
        eddy_walk_append(&plan->kept, in->shape[d], strides, 1 + plan->out_count);
        kept++;
    }
    plan->reduced_count = eddy_walk_count(&plan->reduced);
    plan->outputs = eddy_walk_count(&plan->kept);
    eddy_walk_sort(&plan->kept);
    eddy_walk_collapse(&plan->kept);
    eddy_walk_collapse(&plan->reduced);
    choose_columns(plan);
    choose_splits(plan);
}

void eddy_reduce_plan_by_rows(eddy_reduce_plan *plan, int64_t most) {
    if (plan->columns != 1 || plan->units == 0 || plan->reduced_count > most)
        return;
    if (plan->kept.rank > 0)
        take_columns(plan);
    plan->is_by_rows = true;
    int64_t rows = SLICE_ELEMENTS / eddy_max_i64(1, plan->reduced_count);
    plan->panel = eddy_max_i64(1, eddy_min_i64(EDDY_REDUCE_COLUMNS, rows));
    choose_splits(plan);
}

size_t eddy_reduce_plan_write(const eddy_reduce_plan *plan, void *memory) {
    char *words = (char *)memory + offsetof(eddy_reduce_plan, kept);
    memcpy(memory, plan, offsetof(eddy_reduce_plan, kept));
    int64_t *end =
        eddy_walk_write(&plan->reduced, eddy_walk_write(&plan->kept, (int64_t *)(void *)words));
    return (size_t)((char *)end - (char *)memory);
}

void eddy_reduce_plan_read(eddy_reduce_plan *plan, const void *memory,
                           const eddy_kernel_call *call) {
    const char *words = (const char *)memory + offsetof(eddy_reduce_plan, kept);
    memcpy(plan, memory, offsetof(eddy_reduce_plan, kept));
    eddy_walk_read(&plan->reduced,
                   eddy_walk_read(&plan->kept, (const int64_t *)(const void *)words));
    take_views(plan, call);
}

void eddy_reduce_plan_run(const eddy_reduce_plan *plan, const eddy_kernel_call *call,
                          void (*body)(void *context, int64_t begin, int64_t end), void *context) {
    int64_t tasks = plan->units * plan->splits;
    if (tasks <= plan->task_grain)
        body(context, 0, tasks);
    else
        call->team->parallel_for(call->team, tasks, plan->task_grain, body, context);
}

eddy_reduce_unit eddy_reduce_plan_unit(const eddy_reduce_plan *plan, int64_t unit) {
    eddy_walk_cursor cursor;
    int64_t panel = plan->panels == 1 ? 0 : unit % plan->panels, column = panel * plan->panel;
    eddy_walk_seek(&plan->kept, &cursor, plan->panels == 1 ? unit : unit / plan->panels);
    eddy_reduce_unit found = {.in = cursor.offsets[0] + column * plan->column_in,
                              .columns = eddy_min_i64(plan->panel, plan->columns - column)};
    for (int32_t o = 0; o < plan->out_count; o++)
        found.outs[o] = cursor.offsets[o + 1] + column * plan->column_outs[o];
    return found;
}

void eddy_reduce_plan_store(const eddy_reduce_plan *plan, const eddy_reduce_unit *unit, int32_t o,
                            eddy_dtype from, const void *values) {
    const eddy_op_view *out = &plan->outs[o];
    eddy_chunk_store(out->dtype, eddy_chunk_at(out->data, out->dtype, unit->outs[o]),
                     plan->column_outs[o], from, values, unit->columns);
}

/* For estimates: the fixed time of a reduction across rows. */
#define ACROSS_PS 150000

int64_t eddy_reduce_plan_cost(const eddy_reduce_plan *plan, const eddy_kernel_call *call,
                              uint32_t axes, int64_t element_ps, int64_t output_ps) {
    int64_t in_count = plan->outputs * plan->reduced_count;
    bool is_along = plan->in->rank == 0 || (axes >> (plan->in->rank - 1) & 1) != 0;
    int64_t bytes = eddy_cost_bytes(in_count, plan->in->dtype);
    for (int32_t o = 0; o < plan->out_count; o++)
        bytes += eddy_cost_bytes(plan->outputs, plan->outs[o].dtype);
    int64_t cost = call->kernel->cost_base_ps + eddy_cost_ps(in_count, element_ps);
    cost += is_along ? eddy_cost_ps(plan->outputs, output_ps) : ACROSS_PS;
    return cost + eddy_cost_far_ps(bytes) * (is_along ? 1 : 3);
}
