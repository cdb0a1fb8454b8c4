/* argmax, argmin, max_dim, min_dim: the first of the largest (smallest) elements; NaN comes before all numbers. They are
 * cut into tasks as sums are. */
#include <base/dtype.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce/reduce_plan.h>
#include <string.h>

typedef union values {
    float f32[EDDY_REDUCE_COLUMNS];
    double f64[EDDY_REDUCE_COLUMNS];
    int64_t i64[EDDY_REDUCE_COLUMNS];
} values;

/* What a task found: the best value of each of its outputs, and its index. */
typedef struct found {
    values best;
    int64_t indices[EDDY_REDUCE_COLUMNS];
} found;

/* The functions for the largest or for the smallest element. */
typedef struct aim {
    int64_t is_min;
    const eddy_reduce_op *best_of;
    eddy_reduce_pick_fn *better_row;
    int64_t (*find)(const void *elements, int64_t count, const void *value);
} aim;

_Static_assert(sizeof(aim) + EDDY_REDUCE_PLAN_BYTES <= EDDY_KERNEL_PLAN_BYTES,
               "a plan is an aim and the cuts");

typedef struct search {
    eddy_reduce_plan plan;
    const aim *aim;
    found *partial; /* [unit][split], if there are several splits */
} search;

static bool is_better(const search *work, const values *a, const values *b, int64_t column) {
    switch (work->plan.type) {
    case EDDY_REDUCE_F32: {
        float x = a->f32[column], y = b->f32[column];
        return (work->aim->is_min ? x < y : x > y) || (x != x && y == y);
    }
    case EDDY_REDUCE_F64: {
        double x = a->f64[column], y = b->f64[column];
        return (work->aim->is_min ? x < y : x > y) || (x != x && y == y);
    }
    default: {
        int64_t x = a->i64[column], y = b->i64[column];
        return work->aim->is_min ? x < y : x > y;
    }
    }
}

/* One output: finds the best value of each block, and its index only if it beats the best value so far. */
static void search_row(const search *work, int64_t base, int64_t begin, int64_t end,
                       found *result) {
    const eddy_reduce_plan *plan = &work->plan;
    int64_t stride = eddy_walk_inner_stride(&plan->reduced, 0);
    union {
        float f32[EDDY_REDUCE_BLOCK];
        double f64[EDDY_REDUCE_BLOCK];
        int64_t i64[EDDY_REDUCE_BLOCK];
    } gathered;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->reduced, &cursor, begin);
    bool is_first = true;
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(&plan->reduced, &cursor), end - begin);
        run = eddy_min_i64(run, EDDY_REDUCE_BLOCK);
        const void *elements =
            eddy_chunk_at(plan->in->data, plan->in->dtype, base + cursor.offsets[0]);
        if (stride != 1 || plan->in->dtype != plan->dtype) {
            eddy_chunk_load(plan->dtype, &gathered, plan->in->dtype, elements, stride, run);
            elements = &gathered;
        }
        values best;
        work->aim->best_of->block(elements, run, 0, &best);
        if (is_first || is_better(work, &best, &result->best, 0)) {
            memcpy(&result->best, &best, eddy_dtype_bytes(plan->dtype));
            result->indices[0] = begin + work->aim->find(elements, run, &best);
            is_first = false;
        }
        eddy_walk_advance(&plan->reduced, &cursor, run);
        begin += run;
    }
}

/* Outputs of one block each, whose elements are contiguous and need no conversion. */
static void search_rows(const search *work, const eddy_reduce_unit *unit, found *result) {
    const eddy_reduce_plan *plan = &work->plan;
    for (int64_t c = 0; c < unit->columns; c++) {
        const void *row =
            eddy_chunk_at(plan->in->data, plan->dtype, unit->in + c * plan->column_in);
        void *best = eddy_chunk_at(&result->best, plan->dtype, c);
        work->aim->best_of->block(row, plan->reduced_count, 0, best);
        result->indices[c] = work->aim->find(row, plan->reduced_count, best);
    }
}

/* Several outputs side by side, row after row. */
static void search_columns(const search *work, int64_t base, int64_t begin, int64_t end,
                           int64_t columns, found *result) {
    const eddy_reduce_plan *plan = &work->plan;
    bool is_direct = plan->column_in == 1 && plan->in->dtype == plan->dtype;
    values converted;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->reduced, &cursor, begin);
    for (int64_t index = begin; index < end; index++) {
        const void *row = eddy_chunk_at(plan->in->data, plan->in->dtype, base + cursor.offsets[0]);
        if (!is_direct) {
            eddy_chunk_load(plan->dtype, &converted, plan->in->dtype, row, plan->column_in,
                            columns);
            row = &converted;
        }
        if (index == begin) {
            memcpy(&result->best, row, eddy_dtype_bytes(plan->dtype) * (size_t)columns);
            for (int64_t c = 0; c < columns; c++)
                result->indices[c] = begin;
        } else {
            work->aim->better_row(&result->best, result->indices, row, index, columns);
        }
        eddy_walk_advance(&plan->reduced, &cursor, 1);
    }
}

/* Outputs: the index, or value and index. */
static void store(const search *work, const eddy_reduce_unit *unit, const found *result) {
    const eddy_reduce_plan *plan = &work->plan;
    if (plan->out_count == 2)
        eddy_reduce_plan_store(plan, unit, 0, plan->dtype, &result->best);
    eddy_reduce_plan_store(plan, unit, plan->out_count - 1, EDDY_I64, result->indices);
}

static void search_slice(void *context, int64_t first, int64_t last) {
    const search *work = context;
    const eddy_reduce_plan *plan = &work->plan;
    for (int64_t task = first; task < last; task++) {
        eddy_reduce_unit unit = eddy_reduce_plan_unit(plan, task / plan->splits);
        int64_t begin = task % plan->splits * plan->split_count;
        int64_t end = eddy_min_i64(begin + plan->split_count, plan->reduced_count);
        found result;
        if (plan->is_by_rows)
            search_rows(work, &unit, &result);
        else if (unit.columns == 1)
            search_row(work, unit.in, begin, end, &result);
        else
            search_columns(work, unit.in, begin, end, unit.columns, &result);
        if (plan->splits == 1) {
            store(work, &unit, &result);
        } else {
            memcpy(&work->partial[task].best, &result.best,
                   eddy_dtype_bytes(plan->dtype) * (size_t)unit.columns);
            memcpy(work->partial[task].indices, result.indices,
                   sizeof(int64_t) * (size_t)unit.columns);
        }
    }
}

static void join_splits(const search *work) {
    const eddy_reduce_plan *plan = &work->plan;
    for (int64_t u = 0; u < plan->units; u++) {
        eddy_reduce_unit unit = eddy_reduce_plan_unit(plan, u);
        const found *partial = &work->partial[u * plan->splits];
        found result = {0};
        size_t bytes = eddy_dtype_bytes(plan->dtype);
        for (int64_t c = 0; c < unit.columns; c++) {
            int64_t best = 0;
            for (int64_t s = 1; s < plan->splits; s++)
                if (is_better(work, &partial[s].best, &partial[best].best, c))
                    best = s;
            memcpy((char *)&result.best + bytes * (size_t)c,
                   (const char *)&partial[best].best + bytes * (size_t)c, bytes);
            result.indices[c] = partial[best].indices[c];
        }
        store(work, &unit, &result);
    }
}

static void argmax_run(const eddy_kernel_call *call) {
    /* Set one by one: walks are too large to be cleared for nothing. */
    search work;
    work.aim = call->plan;
    work.partial = call->workspace;
    eddy_reduce_plan_read(&work.plan, work.aim + 1, call);
    if (work.plan.reduced_count == 0)
        return; /* inference allows this only if there are no outputs */
    eddy_reduce_plan_run(&work.plan, call, search_slice, &work);
    if (work.plan.splits > 1)
        join_splits(&work);
}

/* ---- plans ---- */

static eddy_status prepare_search(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                  eddy_attributes_reduce attributes, bool is_min) {
    eddy_reduce_plan plan;
    eddy_reduce_plan_init(&plan, call, attributes, eddy_chunk_compute_dtype(call->views[0].dtype));
    if (plan.in->dtype == plan.dtype && plan.reduced.rank == 1 && plan.reduced.strides[0][0] == 1)
        eddy_reduce_plan_by_rows(&plan, EDDY_REDUCE_BLOCK);
    const eddy_reduce_blocks *blocks = eddy_reduce_blocks_of(plan.type);
    aim *kept = to->memory;
    kept->is_min = is_min;
    kept->best_of = is_min ? &blocks->min : &blocks->max;
    kept->better_row = is_min ? blocks->argmin_row : blocks->argmax_row;
    kept->find = blocks->find;
    to->bytes = sizeof(*kept) + eddy_reduce_plan_write(&plan, kept + 1);
    to->workspace_bytes = plan.splits == 1 ? 0 : (size_t)(plan.units * plan.splits) * sizeof(found);
    to->cost_ps = eddy_reduce_plan_cost(&plan, call, attributes.axes, 65, 45000);
    return EDDY_OK;
}

/* One axis; a tensor of rank 0 has none. */
static eddy_attributes_reduce one_axis(const eddy_kernel_call *call) {
    const eddy_attributes_axis_keepdim *attributes = call->attributes;
    return (eddy_attributes_reduce){.axes = call->views[0].rank == 0 ? 0 : 1u << attributes->axis,
                                    .keeps_dims = attributes->keeps_dims};
}

static eddy_status argmax_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_search(call, plan, *(const eddy_attributes_reduce *)call->attributes, false);
}

static eddy_status argmin_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_search(call, plan, *(const eddy_attributes_reduce *)call->attributes, true);
}

static eddy_status max_dim_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_search(call, plan, one_axis(call), false);
}

static eddy_status min_dim_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_search(call, plan, one_axis(call), true);
}

#define KERNEL(label)                                                                              \
    const eddy_kernel eddy_cpu_##label = {.name = #label,                                          \
                                          .prepare = label##_prepare,                              \
                                          .run = argmax_run,                                       \
                                          .cost_base_ps = 150000,                                  \
                                          .cost_element_ps = 65};

KERNEL(argmax)
KERNEL(argmin)
KERNEL(max_dim)
KERNEL(min_dim)
