/* sum, mean, max over any set of axes. See reduce_block.h for the tree and reduce_plan.h for the cuts. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce_plan.h>
#include <math.h>
#include <string.h>

/* Levels of the pairwise tree over blocks: 2^40 blocks of 1024 are more than any memory. */
#define LEVELS 40

typedef union values {
    float f32[EDDY_REDUCE_COLUMNS];
    double f64[EDDY_REDUCE_COLUMNS];
    int64_t i64[EDDY_REDUCE_COLUMNS];
} values;

/* Blocks combined so far: like a binary counter, bit l of `blocks` says that levels[l] holds the sum of 2^l blocks. */
typedef struct tree {
    const eddy_reduce_op *op;
    int64_t columns;
    uint64_t blocks;
    size_t bytes; /* of `columns` values */
    values levels[LEVELS];
} tree;

typedef struct reduction {
    eddy_reduce_plan plan;
    const eddy_reduce_op *op;
    bool is_mean;
    values *partial; /* [unit][split], where there are several splits */
} reduction;

static void tree_push(tree *t, values *block) {
    int level = 0;
    for (; t->blocks >> level & 1; level++) {
        t->op->combine(&t->levels[level], block, t->columns);
        memcpy(block, &t->levels[level], t->bytes);
    }
    EDDY_ASSERT(level < LEVELS);
    memcpy(&t->levels[level], block, t->bytes);
    t->blocks++;
}

/* The total of at least one block. */
static void tree_finish(tree *t, values *result) {
    int level = __builtin_ctzll(t->blocks);
    memcpy(result, &t->levels[level], t->bytes);
    for (level++; t->blocks >> level; level++) {
        if (t->blocks >> level & 1) {
            t->op->combine(&t->levels[level], result, t->columns);
            memcpy(result, &t->levels[level], t->bytes);
        }
    }
}

/* A block of one output: where it does not lie contiguous in the compute type, it is gathered first. */
static void reduce_block(const reduction *work, eddy_walk_cursor *cursor, int64_t base, int64_t count, values *result) {
    const eddy_reduce_plan *plan = &work->plan;
    int64_t stride = eddy_walk_inner_stride(&plan->reduced, 0);
    int64_t run = eddy_walk_run(&plan->reduced, cursor);
    if (run >= count && stride == 1 && plan->in.dtype == plan->dtype) {
        work->op->block(eddy_chunk_at(plan->in.data, plan->dtype, base + cursor->offsets[0]), count, result);
        eddy_walk_advance(&plan->reduced, cursor, count);
        return;
    }
    union {
        float f32[EDDY_REDUCE_BLOCK];
        double f64[EDDY_REDUCE_BLOCK];
        int64_t i64[EDDY_REDUCE_BLOCK];
    } gathered;
    for (int64_t done = 0; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&plan->reduced, cursor), count - done);
        eddy_chunk_load(plan->dtype, eddy_chunk_at(&gathered, plan->dtype, done), plan->in.dtype,
                        eddy_chunk_at(plan->in.data, plan->in.dtype, base + cursor->offsets[0]), stride, run);
        eddy_walk_advance(&plan->reduced, cursor, run);
    }
    work->op->block(&gathered, count, result);
}

/* A block of several outputs side by side: rows into lanes, then lanes halved. */
static void reduce_columns(const reduction *work, eddy_walk_cursor *cursor, int64_t base, int64_t count,
                           int64_t columns, values *result) {
    const eddy_reduce_plan *plan = &work->plan;
    values lanes[EDDY_REDUCE_LANES], converted;
    int64_t row_stride = eddy_walk_inner_stride(&plan->reduced, 0);
    bool is_direct = plan->column_in == 1 && plan->in.dtype == plan->dtype;
    /* The lanes lie EDDY_REDUCE_COLUMNS elements of the compute type apart, from the start of the array on. */
    for (int64_t done = 0, run; done < count; done += run) {
        const void *rows = eddy_chunk_at(plan->in.data, plan->in.dtype, base + cursor->offsets[0]);
        if (is_direct) {
            run = eddy_min_i64(eddy_walk_run(&plan->reduced, cursor), count - done);
        } else {
            run = 1;
            eddy_chunk_load(plan->dtype, &converted, plan->in.dtype, rows, plan->column_in, columns);
            rows = &converted;
        }
        work->op->rows(lanes, rows, row_stride, done, run, columns);
        eddy_walk_advance(&plan->reduced, cursor, run);
    }
    int64_t present = eddy_min_i64(count, EDDY_REDUCE_LANES);
    for (int64_t width = EDDY_REDUCE_LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            work->op->combine(eddy_chunk_at(lanes, plan->dtype, l * EDDY_REDUCE_COLUMNS),
                              eddy_chunk_at(lanes, plan->dtype, (l + width) * EDDY_REDUCE_COLUMNS), columns);
    memcpy(result, lanes, eddy_dtype_bytes(plan->dtype) * (size_t)columns);
}

static void store(const reduction *work, const eddy_reduce_unit *unit, values *result) {
    const eddy_reduce_plan *plan = &work->plan;
    if (work->is_mean && plan->dtype == EDDY_F32)
        for (int64_t c = 0; c < unit->columns; c++)
            result->f32[c] /= (float)plan->reduced_count;
    else if (work->is_mean)
        for (int64_t c = 0; c < unit->columns; c++)
            result->f64[c] /= (double)plan->reduced_count;
    eddy_chunk_store(plan->out.dtype, eddy_chunk_at(plan->out.data, plan->out.dtype, unit->out), plan->column_out,
                     plan->dtype, result, unit->columns);
}

static void reduce_task(const reduction *work, int64_t task) {
    const eddy_reduce_plan *plan = &work->plan;
    eddy_reduce_unit unit = eddy_reduce_plan_unit(plan, task / plan->splits);
    int64_t begin = task % plan->splits * plan->split_count;
    int64_t end = eddy_min_i64(begin + plan->split_count, plan->reduced_count);
    values result;
    tree t;
    t.op = work->op;
    t.columns = unit.columns;
    t.blocks = 0;
    t.bytes = eddy_dtype_bytes(plan->dtype) * (size_t)unit.columns;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->reduced, &cursor, begin);
    for (; begin < end; begin += EDDY_REDUCE_BLOCK) {
        int64_t count = eddy_min_i64(EDDY_REDUCE_BLOCK, end - begin);
        if (unit.columns == 1)
            reduce_block(work, &cursor, unit.in, count, &result);
        else
            reduce_columns(work, &cursor, unit.in, count, unit.columns, &result);
        tree_push(&t, &result);
    }
    tree_finish(&t, &result);
    if (plan->splits == 1)
        store(work, &unit, &result);
    else
        memcpy(&work->partial[task], &result, t.bytes);
}

static void reduce_slice(void *context, int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; task++)
        reduce_task(context, task);
}

/* Each split but the last is a full subtree of one height, so that pushing them in order completes the tree. */
static void join_splits(const reduction *work) {
    const eddy_reduce_plan *plan = &work->plan;
    for (int64_t u = 0; u < plan->units; u++) {
        eddy_reduce_unit unit = eddy_reduce_plan_unit(plan, u);
        tree t;
        t.op = work->op;
        t.columns = unit.columns;
        t.blocks = 0;
        t.bytes = eddy_dtype_bytes(plan->dtype) * (size_t)unit.columns;
        values result;
        for (int64_t s = 0; s < plan->splits; s++) {
            memcpy(&result, &work->partial[u * plan->splits + s], t.bytes);
            tree_push(&t, &result);
        }
        tree_finish(&t, &result);
        store(work, &unit, &result);
    }
}

/* A sum over nothing is 0, a mean NaN; max over nothing is refused by inference. */
static void store_empty(const reduction *work) {
    values result;
    memset(&result, 0, sizeof(result));
    for (int64_t u = 0; u < work->plan.units; u++) {
        eddy_reduce_unit unit = eddy_reduce_plan_unit(&work->plan, u);
        memset(&result, 0, sizeof(result));
        store(work, &unit, &result);
    }
}

static void run(const eddy_kernel_call *call, reduction *work) {
    eddy_reduce_plan_init(&work->plan, call);
    const eddy_reduce_plan *plan = &work->plan;
    const eddy_reduce_blocks *blocks = eddy_cpu_reduce_blocks();
    work->op = call->kernel == &eddy_cpu_max ? &blocks->max[plan->type] : &blocks->sum[plan->type];
    work->partial = call->workspace;
    if (plan->reduced_count == 0) {
        store_empty(work);
        return;
    }
    eddy_reduce_plan_run(plan, call, reduce_slice, work);
    if (plan->splits > 1)
        join_splits(work);
}

static void sum_run(const eddy_kernel_call *call) {
    reduction work = {.is_mean = false};
    run(call, &work);
}

static void mean_run(const eddy_kernel_call *call) {
    reduction work = {.is_mean = true};
    run(call, &work);
}

static size_t workspace(const eddy_kernel_call *call) {
    eddy_reduce_plan plan;
    eddy_reduce_plan_init(&plan, call);
    return plan.splits == 1 ? 0 : (size_t)(plan.units * plan.splits) * sizeof(values);
}

const eddy_kernel eddy_cpu_sum = {
    .name = "sum", .run = sum_run, .workspace = workspace, .cost_base_ps = 150000, .cost_element_ps = 100};
const eddy_kernel eddy_cpu_mean = {
    .name = "mean", .run = mean_run, .workspace = workspace, .cost_base_ps = 150000, .cost_element_ps = 100};
const eddy_kernel eddy_cpu_max = {
    .name = "max", .run = sum_run, .workspace = workspace, .cost_base_ps = 150000, .cost_element_ps = 100};
