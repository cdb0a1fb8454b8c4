/* sum, mean, prod, max, min, var, std, norm, logsumexp, any, all over any set of axes. See reduce_block.h for the tree and
 * reduce_plan.h for the cuts. The recipes hold what differs between these ops. */
#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/reduce/reduce_plan.h>
#include <math.h>
#include <string.h>

/* Levels of the pairwise tree over blocks: 2^40 blocks of 1024 elements exceed any memory. */
#define LEVELS 40
/* Blocks of an output that is reduced in one call, at most. */
#define ROW_BLOCKS 8

typedef union values {
    float f32[EDDY_REDUCE_COLUMNS];
    double f64[EDDY_REDUCE_COLUMNS];
    int64_t i64[EDDY_REDUCE_COLUMNS];
    uint8_t truth[EDDY_REDUCE_COLUMNS];
} values;

typedef union block_values {
    float f32[EDDY_REDUCE_BLOCK];
    double f64[EDDY_REDUCE_BLOCK];
    int64_t i64[EDDY_REDUCE_BLOCK];
    uint8_t truth[EDDY_REDUCE_BLOCK];
} block_values;

/* Partial results over `count` elements, for several outputs. `second` and `count` are used by pairs only. */
typedef struct partial {
    values first, second;
    int64_t count;
} partial;

struct reduction;

/* How a reduction works: map, first sweep, second sweep, finish. It is the first part of a call's plan. */
typedef struct recipe {
    eddy_dtype dtype;         /* the compute type */
    eddy_dtype element;       /* the blocks' elements: dtype, or F32 although dtype is F64 */
    const eddy_reduce_op *op; /* of the first sweep */
    eddy_reduce_map *map;     /* applied to each element first (F64); NULL: none */
    double parameter;         /* of map */
    bool is_mean;             /* the first sweep's sum is divided by the block's count (F64) */
    const eddy_reduce_pair
        *refine; /* sweep over deviations from the mean; their mean is added to it; NULL: none */
    const eddy_reduce_pair *pair;   /* NULL: one sweep */
    const eddy_reduce_op *pair_sum; /* combines lanes of the second sweep */
    double identity;                /* the first value if nothing is reduced */
    /* Computes the results from `whole` and stores them in whole->first; NULL: they are there already. */
    void (*finish)(const struct reduction *work, partial *whole, int64_t columns);
} recipe;

_Static_assert(sizeof(recipe) + EDDY_REDUCE_PLAN_BYTES <= EDDY_KERNEL_PLAN_BYTES,
               "a plan is a recipe and the cuts");

typedef struct reduction {
    eddy_reduce_plan plan;
    const recipe *recipe;
    const void *attributes;
    partial *partials; /* [unit][split], if there are several splits */
} reduction;

/* ---- the tree over blocks ---- */

/* Blocks combined so far: like a binary counter, bit l of `blocks` says that levels[l] holds 2^l blocks. */
typedef struct tree {
    const recipe *recipe;
    int64_t columns;
    uint64_t blocks;
    size_t bytes; /* of `columns` values */
    partial levels[LEVELS];
} tree;

static void tree_init(tree *t, const recipe *how, int64_t columns) {
    t->recipe = how;
    t->columns = columns;
    t->blocks = 0;
    t->bytes = eddy_dtype_bytes(how->dtype) * (size_t)columns;
}

static void copy(const tree *t, partial *to, const partial *from) {
    memcpy(&to->first, &from->first, t->bytes);
    if (t->recipe->pair == NULL)
        return;
    memcpy(&to->second, &from->second, t->bytes);
    to->count = from->count;
}

/* `into` comes before `other` in the order of elements; the result is left in `other`. */
static void combine(const tree *t, partial *into, partial *other) {
    if (t->recipe->pair == NULL) {
        t->recipe->op->combine(&into->first, &other->first, t->columns);
    } else {
        t->recipe->pair->merge(&into->first, &into->second, into->count, &other->first,
                               &other->second, other->count, t->columns);
        into->count += other->count;
    }
    copy(t, other, into);
}

/* Adds a full subtree of 2^level blocks; 2^level divides the number of blocks before it. */
static void tree_push(tree *t, int level, partial *block) {
    uint64_t blocks = UINT64_C(1) << level;
    for (; t->blocks >> level & 1; level++)
        combine(t, &t->levels[level], block);
    EDDY_ASSERT(level < LEVELS);
    copy(t, &t->levels[level], block);
    t->blocks += blocks;
}

/* Combines all blocks; there is at least one. */
static void tree_finish(tree *t, partial *whole) {
    int level = __builtin_ctzll(t->blocks);
    copy(t, whole, &t->levels[level]);
    for (level++; t->blocks >> level; level++)
        if (t->blocks >> level & 1)
            combine(t, &t->levels[level], whole);
}

/* ---- one block ---- */

static void take_mean(void *sums, int64_t count, int64_t columns) {
    double *means = sums;
    for (int64_t c = 0; c < columns; c++)
        means[c] /= (double)count;
}

/* Adds the mean of `count` elements' distances from an approximate mean to that mean. */
static void add_mean(void *means, void *distances, int64_t count, int64_t columns) {
    double *first = means;
    const double *second = distances;
    take_mean(distances, count, columns);
    for (int64_t c = 0; c < columns; c++)
        first[c] += second[c];
}

/* A block of one output: in place if its elements are contiguous and of type `element`, else gathered. */
static const void *gather(const reduction *work, eddy_walk_cursor *cursor, int64_t base,
                          int64_t count, block_values *gathered) {
    const eddy_reduce_plan *plan = &work->plan;
    eddy_dtype element = work->recipe->element;
    int64_t stride = eddy_walk_inner_stride(&plan->reduced, 0);
    int64_t run = eddy_walk_run(&plan->reduced, cursor);
    if (run >= count && stride == 1 && plan->in->dtype == element) {
        const void *elements = eddy_chunk_at(plan->in->data, element, base + cursor->offsets[0]);
        eddy_walk_advance(&plan->reduced, cursor, count);
        return elements;
    }
    for (int64_t done = 0; done < count; done += run) {
        run = eddy_min_i64(eddy_walk_run(&plan->reduced, cursor), count - done);
        eddy_chunk_load(element, eddy_chunk_at(gathered, element, done), plan->in->dtype,
                        eddy_chunk_at(plan->in->data, plan->in->dtype, base + cursor->offsets[0]),
                        stride, run);
        eddy_walk_advance(&plan->reduced, cursor, run);
    }
    return gathered;
}

/* Reduces a contiguous block of one output to one value at *first and, for pairs, one at *second. */
static void reduce_elements(const recipe *how, const void *elements, int64_t count, void *first,
                            void *second) {
    how->op->block(elements, count, 0, first);
    if (how->pair == NULL)
        return;
    if (how->is_mean)
        take_mean(first, count, 1);
    if (how->refine != NULL) {
        how->refine->block(elements, count, first, second);
        add_mean(first, second, count, 1);
    }
    how->pair->block(elements, count, first, second);
}

/* The same from the cursor's position on. */
static void reduce_block(const reduction *work, eddy_walk_cursor *cursor, int64_t base,
                         int64_t count, void *first, void *second) {
    const recipe *how = work->recipe;
    block_values gathered;
    const void *elements = gather(work, cursor, base, count, &gathered);
    if (how->map != NULL) {
        how->map(gathered.f64, elements, count, how->parameter);
        elements = &gathered;
    }
    reduce_elements(how, elements, count, first, second);
}

/* Reduces a group of blocks of one output, which has `left` more elements; false if the blocks have to be reduced one by
 * one. */
static bool reduce_group(const reduction *work, eddy_walk_cursor *cursor,
                         const eddy_reduce_unit *unit, int64_t left, partial *result) {
    const eddy_reduce_plan *plan = &work->plan;
    const recipe *how = work->recipe;
    const int64_t count = (int64_t)EDDY_REDUCE_GROUP * EDDY_REDUCE_BLOCK;
    if (left < count || unit->columns != 1 || how->pair != NULL || how->map != NULL ||
        plan->in->dtype != how->element || eddy_walk_inner_stride(&plan->reduced, 0) != 1 ||
        eddy_walk_run(&plan->reduced, cursor) < count)
        return false;
    how->op->group(eddy_chunk_at(plan->in->data, how->element, unit->in + cursor->offsets[0]),
                   EDDY_REDUCE_BLOCK, &result->first);
    eddy_walk_advance(&plan->reduced, cursor, count);
    return true;
}

/* Whether each output's elements are contiguous and need no conversion. */
static bool has_plain_rows(const eddy_reduce_plan *plan, const recipe *how) {
    return how->map == NULL && plan->in->dtype == how->element && plan->reduced.rank == 1 &&
           plan->reduced.strides[0][0] == 1;
}

/* Reduces one output in one sweep: its blocks, then the blocks' values in the same tree as tree_push and tree_finish.
 * Memory that is `ahead` elements further on is prefetched. */
static void reduce_row(const recipe *how, const char *elements, int64_t count, int64_t ahead,
                       void *result) {
    if (count <= EDDY_REDUCE_BLOCK) {
        how->op->block(elements, count, ahead, result);
        return;
    }
    int64_t size = eddy_dtype_size(how->dtype), blocks = 0;
    _Alignas(8) char found[ROW_BLOCKS * 8];
    for (int64_t done = 0; done < count; done += EDDY_REDUCE_BLOCK)
        how->op->block(eddy_chunk_at(elements, how->element, done),
                       eddy_min_i64(EDDY_REDUCE_BLOCK, count - done), ahead,
                       found + blocks++ * size);
    for (int64_t apart = 1; apart < blocks; apart *= 2)
        for (int64_t b = 0; b + apart < blocks; b += 2 * apart)
            how->op->combine(found + b * size, found + (b + apart) * size, 1);
    memcpy(result, found, (size_t)size);
}

/* Reduces outputs of a few blocks each. */
static void reduce_rows(const reduction *work, const eddy_reduce_unit *unit, partial *result) {
    const eddy_reduce_plan *plan = &work->plan;
    int64_t size = eddy_dtype_size(plan->dtype);
    char *first = (char *)&result->first, *second = (char *)&result->second;
    const recipe *how = work->recipe;
    result->count = plan->reduced_count;
    if (has_plain_rows(plan, how)) {
        int64_t bytes = plan->reduced_count * eddy_dtype_size(how->element);
        int64_t ahead =
            plan->column_in * eddy_max_i64(1, EDDY_REDUCE_AHEAD / eddy_max_i64(1, bytes));
        for (int64_t c = 0; c < unit->columns; c++) {
            const char *row =
                eddy_chunk_at(plan->in->data, how->element, unit->in + c * plan->column_in);
            if (how->pair == NULL)
                reduce_row(how, row, plan->reduced_count, ahead, first + c * size);
            else
                reduce_elements(how, row, plan->reduced_count, first + c * size, second + c * size);
        }
        return;
    }
    for (int64_t c = 0; c < unit->columns; c++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(&plan->reduced, &cursor, 0);
        reduce_block(work, &cursor, unit->in + c * plan->column_in, plan->reduced_count,
                     first + c * size, second + c * size);
    }
}

/* One sweep over several outputs side by side. The first sweep has no `pair`; the others use the values `found` before. */
typedef struct sweep {
    const reduction *work;
    const eddy_reduce_op *op; /* combines lanes */
    const eddy_reduce_pair *pair;
    const values *found;
    int64_t columns;
} sweep;

/* A block of `count` rows, `apart` elements from row to row. */
static void total_columns(const sweep *s, const void *rows, int64_t apart, int64_t count,
                          values *total) {
    eddy_reduce_columns_fn *columns = s->pair != NULL ? s->pair->columns : s->op->columns;
    columns(total, rows, apart, count, s->columns, s->found);
}

/* The hardware does not prefetch parts of rows that lie apart. So many rows ahead are prefetched instead; the address may lie beyond the last row. */
#define PREFETCHED_ROWS 8

/* The same if rows have no constant distance or have to be converted. All lanes are in memory, and rows are added to them
 * in turn. */
static void sweep_rows(const sweep *s, eddy_walk_cursor *cursor, int64_t base, int64_t count,
                       values *total) {
    const eddy_reduce_plan *plan = &s->work->plan;
    const recipe *how = s->work->recipe;
    values lanes[EDDY_REDUCE_LANES], converted;
    eddy_reduce_row_fn *take_row = s->pair != NULL ? s->pair->row : s->op->row;
    bool is_contiguous = plan->column_in == 1 && plan->in->dtype == how->element;
    int64_t bytes = eddy_dtype_size(plan->in->dtype),
            ahead = PREFETCHED_ROWS * eddy_walk_inner_stride(&plan->reduced, 0);
    for (int64_t done = 0; done < count; done++) {
        const void *row = eddy_chunk_at(plan->in->data, plan->in->dtype, base + cursor->offsets[0]);
        if (plan->column_in == 1)
            eddy_prefetch((uintptr_t)row + (uintptr_t)(ahead * bytes), s->columns * bytes);
        if (!is_contiguous) {
            eddy_chunk_load(how->element, &converted, plan->in->dtype, row, plan->column_in,
                            s->columns);
            row = &converted;
        }
        if (how->map != NULL) {
            how->map(converted.f64, row, s->columns, how->parameter);
            row = &converted;
        }
        values *lane = &lanes[done % EDDY_REDUCE_LANES];
        take_row(lane, done < EDDY_REDUCE_LANES, row, s->columns, s->found);
        eddy_walk_advance(&plan->reduced, cursor, 1);
    }
    int64_t present = eddy_min_i64(count, EDDY_REDUCE_LANES);
    for (int64_t width = EDDY_REDUCE_LANES / 2; width > 0; width /= 2)
        for (int64_t l = 0; l < width && l + width < present; l++)
            s->op->combine(&lanes[l], &lanes[l + width], s->columns);
    memcpy(total, lanes, eddy_dtype_bytes(plan->dtype) * (size_t)s->columns);
}

static void sweep_columns(const reduction *work, eddy_walk_cursor cursor, int64_t base,
                          int64_t count, int64_t columns, const eddy_reduce_pair *pair,
                          const values *found, values *total) {
    const eddy_reduce_plan *plan = &work->plan;
    const recipe *how = work->recipe;
    const sweep s = {work, pair != NULL ? how->pair_sum : how->op, pair, found, columns};
    bool is_contiguous = plan->column_in == 1 && plan->in->dtype == how->element;
    if (is_contiguous && how->map == NULL && eddy_walk_run(&plan->reduced, &cursor) >= count)
        total_columns(&s, eddy_chunk_at(plan->in->data, plan->in->dtype, base + cursor.offsets[0]),
                      eddy_walk_inner_stride(&plan->reduced, 0), count, total);
    else
        sweep_rows(&s, &cursor, base, count, total);
}

static void reduce_columns(const reduction *work, int64_t begin, int64_t base, int64_t count,
                           int64_t columns, partial *result) {
    const recipe *how = work->recipe;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->plan.reduced, &cursor, begin);
    sweep_columns(work, cursor, base, count, columns, NULL, NULL, &result->first);
    if (how->pair == NULL)
        return;
    if (how->is_mean)
        take_mean(&result->first, count, columns);
    if (how->refine != NULL) {
        sweep_columns(work, cursor, base, count, columns, how->refine, &result->first,
                      &result->second);
        add_mean(&result->first, &result->second, count, columns);
    }
    sweep_columns(work, cursor, base, count, columns, how->pair, &result->first, &result->second);
}

/* ---- tasks ---- */

static void store(const reduction *work, const eddy_reduce_unit *unit, partial *whole) {
    if (work->recipe->finish != NULL)
        work->recipe->finish(work, whole, unit->columns);
    eddy_reduce_plan_store(&work->plan, unit, 0, work->plan.dtype, &whole->first);
}

static void reduce_task(const reduction *work, int64_t task) {
    const eddy_reduce_plan *plan = &work->plan;
    eddy_reduce_unit unit = eddy_reduce_plan_unit(plan, task / plan->splits);
    int64_t begin = task % plan->splits * plan->split_count;
    int64_t end = eddy_min_i64(begin + plan->split_count, plan->reduced_count);
    partial result;
    if (plan->is_by_rows) {
        reduce_rows(work, &unit, &result);
        store(work, &unit, &result);
        return;
    }
    tree t;
    tree_init(&t, work->recipe, unit.columns);
    eddy_walk_cursor cursor;
    eddy_walk_seek(&plan->reduced, &cursor, begin);
    for (int64_t count; begin < end; begin += count) {
        count = eddy_min_i64(EDDY_REDUCE_BLOCK, end - begin);
        result.count = count;
        if (t.blocks % EDDY_REDUCE_GROUP == 0 &&
            reduce_group(work, &cursor, &unit, end - begin, &result)) {
            count = (int64_t)EDDY_REDUCE_GROUP * EDDY_REDUCE_BLOCK;
            tree_push(&t, EDDY_REDUCE_GROUP_LEVELS, &result);
            continue;
        }
        if (unit.columns == 1)
            reduce_block(work, &cursor, unit.in, count, &result.first, &result.second);
        else
            reduce_columns(work, begin, unit.in, count, unit.columns, &result);
        tree_push(&t, 0, &result);
    }
    tree_finish(&t, &result);
    if (plan->splits == 1)
        store(work, &unit, &result);
    else
        copy(&t, &work->partials[task], &result);
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
        tree_init(&t, work->recipe, unit.columns);
        partial result;
        for (int64_t s = 0; s < plan->splits; s++) {
            copy(&t, &result, &work->partials[u * plan->splits + s]);
            tree_push(&t, 0, &result);
        }
        tree_finish(&t, &result);
        store(work, &unit, &result);
    }
}

/* Ops that inference rejects for empty reductions (max) have no outputs here. */
static void store_empty(const reduction *work) {
    double identity[EDDY_REDUCE_COLUMNS];
    for (int c = 0; c < EDDY_REDUCE_COLUMNS; c++)
        identity[c] = work->recipe->identity;
    for (int64_t u = 0; u < work->plan.units; u++) {
        eddy_reduce_unit unit = eddy_reduce_plan_unit(&work->plan, u);
        partial nothing;
        memset(&nothing, 0, sizeof(nothing));
        eddy_chunk_copy(work->plan.dtype, &nothing.first, 1, EDDY_F64, identity, 1, unit.columns);
        store(work, &unit, &nothing);
    }
}

/* ---- recipes ---- */

static eddy_reduce_type type_of(const eddy_kernel_call *call) {
    eddy_dtype dtype = eddy_chunk_compute_dtype(call->views[0].dtype);
    return dtype == EDDY_F32   ? EDDY_REDUCE_F32
           : dtype == EDDY_F64 ? EDDY_REDUCE_F64
                               : EDDY_REDUCE_I64;
}

static const eddy_reduce_blocks *blocks_of(const eddy_kernel_call *call) {
    return eddy_reduce_blocks_of(type_of(call));
}

static const eddy_reduce_wide_blocks *wide_blocks_of(const eddy_kernel_call *call) {
    return eddy_reduce_wide_blocks_of(type_of(call));
}

/* `op` is one of blocks_of. */
static recipe plain(const eddy_kernel_call *call, const eddy_reduce_op *op, double identity) {
    eddy_dtype dtype = eddy_chunk_compute_dtype(call->views[0].dtype);
    return (recipe){.dtype = dtype, .element = dtype, .op = op, .identity = identity};
}

/* Floats, reduced in f64; `op` is one of wide_blocks_of. */
static recipe wide(const eddy_kernel_call *call, const eddy_reduce_op *op, double identity) {
    eddy_dtype element = eddy_chunk_compute_dtype(call->views[0].dtype);
    return (recipe){.dtype = EDDY_F64, .element = element, .op = op, .identity = identity};
}

static recipe truth(const eddy_reduce_op *op, double identity) {
    return (recipe){.dtype = EDDY_BOOL, .element = EDDY_BOOL, .op = op, .identity = identity};
}

static void reduce_run(const eddy_kernel_call *call) {
    /* Set one by one: walks are too large to be cleared for nothing. */
    reduction work;
    work.recipe = call->plan;
    work.attributes = call->attributes;
    work.partials = call->workspace;
    eddy_reduce_plan_read(&work.plan, work.recipe + 1, call);
    if (work.plan.reduced_count == 0) {
        store_empty(&work);
        return;
    }
    eddy_reduce_plan_run(&work.plan, call, reduce_slice, &work);
    if (work.plan.splits > 1)
        join_splits(&work);
}

/* ---- small rows ---- */

/* The plan of a call that needs no walks. */
typedef struct rows_plan {
    recipe recipe;
    eddy_reduce_rows rows;
} rows_plan;

static void reduce_rows_run(const eddy_kernel_call *call) {
    const rows_plan *plan = call->plan;
    int64_t rows = plan->rows.rows, count = plan->rows.count;
    reduction work;
    work.recipe = &plan->recipe;
    work.attributes = call->attributes;
    /* Only the members that reduce_rows and store read are set. */
    work.plan.in = &call->views[0];
    work.plan.outs = &call->views[1];
    work.plan.dtype = (uint8_t)plan->recipe.dtype;
    work.plan.reduced_count = work.plan.column_in = count;
    work.plan.column_outs[0] = 1;
    eddy_walk_init(&work.plan.reduced, 1, &count);
    work.plan.reduced.strides[0][0] = 1;
    partial result;
    eddy_reduce_unit unit;
    for (int64_t row = 0; row < rows; row += unit.columns) {
        unit.in = row * count;
        unit.outs[0] = row;
        unit.columns = eddy_min_i64(EDDY_REDUCE_COLUMNS, rows - row);
        reduce_rows(&work, &unit, &result);
        store(&work, &unit, &result);
    }
}

/* Elements of a row for reduce_rows, at most. */
static int64_t row_most(const recipe *how, bool is_plain) {
    return is_plain && how->pair == NULL ? ROW_BLOCKS * EDDY_REDUCE_BLOCK : EDDY_REDUCE_BLOCK;
}

/* False if the call does not consist of small rows. */
static bool plan_rows(const eddy_kernel_call *call, eddy_kernel_plan *to,
                      eddy_attributes_reduce attributes, const recipe *how) {
    rows_plan *plan = to->memory;
    if (how->map != NULL || call->views[0].dtype != how->element ||
        !eddy_reduce_rows_find(&plan->rows, call, attributes) ||
        plan->rows.count > row_most(how, true))
        return false;
    plan->recipe = *how;
    to->bytes = sizeof(*plan);
    to->run = reduce_rows_run;
    return true;
}

/* ---- plans ---- */

/* The times of a kernel's estimate (eddy_reduce_plan_cost). */
typedef struct price {
    int64_t element_ps, output_ps;
} price;

static eddy_status reduce_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                  const recipe *how, price takes) {
    eddy_attributes_reduce attributes;
    memcpy(&attributes, call->attributes, sizeof(attributes));
    if (plan_rows(call, to, attributes, how)) {
        const eddy_reduce_rows *rows = &((const rows_plan *)to->memory)->rows;
        to->cost_ps = call->kernel->cost_base_ps +
                      rows->rows * (rows->count * takes.element_ps + takes.output_ps);
        return EDDY_OK;
    }
    eddy_reduce_plan plan;
    eddy_reduce_plan_init(&plan, call, attributes, how->dtype);
    eddy_reduce_plan_by_rows(&plan, row_most(how, has_plain_rows(&plan, how)));
    recipe *kept = to->memory;
    *kept = *how;
    to->bytes = sizeof(*kept) + eddy_reduce_plan_write(&plan, kept + 1);
    to->workspace_bytes =
        plan.splits == 1 ? 0 : (size_t)(plan.units * plan.splits) * sizeof(partial);
    to->cost_ps =
        eddy_reduce_plan_cost(&plan, call, attributes.axes, takes.element_ps, takes.output_ps);
    return EDDY_OK;
}

/* The usual estimate, with the time for an element that the kernel states. */
static price usual(const eddy_kernel_call *call) {
    return (price){call->kernel->cost_element_ps, 12000};
}

/* A bool has one byte; other dtypes are converted to bool first. */
static price of_truths(const eddy_kernel_call *call) {
    return (price){call->views[0].dtype == EDDY_BOOL ? 28 : 100, 12000};
}

static eddy_status sum_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = plain(call, &blocks_of(call)->sum, 0);
    return reduce_prepare(call, plan, &how, usual(call));
}

static void divide_by_count(const reduction *work, partial *whole, int64_t columns) {
    if (work->plan.dtype == EDDY_F32)
        for (int64_t c = 0; c < columns; c++)
            whole->first.f32[c] /= (float)work->plan.reduced_count;
    else
        for (int64_t c = 0; c < columns; c++)
            whole->first.f64[c] /= (double)work->plan.reduced_count;
}

static eddy_status mean_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = plain(call, &blocks_of(call)->sum, 0);
    how.finish = divide_by_count;
    return reduce_prepare(call, plan, &how, usual(call));
}

/* f32 and shorter are multiplied in f64. Every multiplication's rounding error is in the product, whatever the tree, and a
 * partial product may overflow although the whole does not. */
static eddy_status prod_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    bool is_float = eddy_dtype_is_float(call->views[0].dtype);
    recipe how = is_float ? wide(call, &wide_blocks_of(call)->prod, 1)
                          : plain(call, &blocks_of(call)->prod, 1);
    return reduce_prepare(call, plan, &how, usual(call));
}

static eddy_status max_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = call->views[0].dtype == EDDY_BOOL
                     ? truth(&eddy_reduce_blocks_of(EDDY_REDUCE_TRUTH)->max, 0)
                     : plain(call, &blocks_of(call)->max, 0);
    return reduce_prepare(call, plan, &how, usual(call));
}

static eddy_status min_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = call->views[0].dtype == EDDY_BOOL
                     ? truth(&eddy_reduce_blocks_of(EDDY_REDUCE_TRUTH)->min, 0)
                     : plain(call, &blocks_of(call)->min, 0);
    return reduce_prepare(call, plan, &how, usual(call));
}

static eddy_status any_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = truth(&eddy_reduce_blocks_of(EDDY_REDUCE_TRUTH)->max, 0);
    return reduce_prepare(call, plan, &how, of_truths(call));
}

static eddy_status all_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = truth(&eddy_reduce_blocks_of(EDDY_REDUCE_TRUTH)->min, 1);
    return reduce_prepare(call, plan, &how, of_truths(call));
}

/* f32 and shorter are summed in f64 too, in which the mean of a block of equal elements is exact and their variance 0. f64
 * needs the refined mean for that. */
static recipe variance(const eddy_kernel_call *call) {
    const eddy_reduce_wide_blocks *blocks = wide_blocks_of(call);
    recipe how = wide(call, &blocks->sum, 0);
    how.is_mean = true;
    how.refine = how.element == EDDY_F64 ? &blocks->deviation : NULL;
    how.pair = &blocks->variance;
    how.pair_sum = &blocks->sum;
    return how;
}

static void divide_squares(const reduction *work, partial *whole, int64_t columns) {
    const eddy_attributes_var *attributes = work->attributes;
    double divisor = fmax(0, (double)work->plan.reduced_count - attributes->correction);
    for (int64_t c = 0; c < columns; c++)
        whole->first.f64[c] = whole->second.f64[c] / divisor;
}

static void divide_squares_and_root(const reduction *work, partial *whole, int64_t columns) {
    divide_squares(work, whole, columns);
    for (int64_t c = 0; c < columns; c++)
        whole->first.f64[c] = sqrt(whole->first.f64[c]);
}

static eddy_status var_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = variance(call);
    how.finish = divide_squares;
    return reduce_prepare(call, plan, &how, usual(call));
}

static eddy_status std_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    recipe how = variance(call);
    how.finish = divide_squares_and_root;
    return reduce_prepare(call, plan, &how, usual(call));
}

static void take_square_root(const reduction *work, partial *whole, int64_t columns) {
    (void)work;
    for (int64_t c = 0; c < columns; c++)
        whole->first.f64[c] = sqrt(whole->first.f64[c]);
}

/* Sums of powers are not negative. */
static void take_root(const reduction *work, partial *whole, int64_t columns) {
    const recipe *how = work->recipe;
    how->map(whole->first.f64, whole->first.f64, columns, 1 / how->parameter);
}

/* Powers take most of the time, unless p is one of the special values. */
static eddy_status norm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_norm *attributes = call->attributes;
    const eddy_reduce_wide_blocks *blocks = wide_blocks_of(call);
    double p = attributes->p;
    recipe how;
    if (p == 0) {
        how = wide(call, &blocks->nonzeros, 0);
    } else if (p == 1) {
        how = wide(call, &blocks->magnitudes, 0);
    } else if (isinf(p)) {
        how = wide(call, p > 0 ? &blocks->max_magnitude : &blocks->min_magnitude, 0);
    } else if (p == 2) {
        how = wide(call, &blocks->squares, 0);
        how.finish = take_square_root;
    } else {
        blocks = eddy_reduce_wide_blocks_of(EDDY_REDUCE_F64);
        how = (recipe){.dtype = EDDY_F64,
                       .element = EDDY_F64,
                       .op = &blocks->sum,
                       .map = blocks->power,
                       .parameter = p,
                       .finish = take_root};
    }
    return reduce_prepare(call, plan, &how, (price){how.map == NULL ? 100 : 9000, 12000});
}

static void add_log(const reduction *work, partial *whole, int64_t columns) {
    const eddy_reduce_type type = work->plan.dtype == EDDY_F32 ? EDDY_REDUCE_F32 : EDDY_REDUCE_F64;
    eddy_reduce_blocks_of(type)->add_log(&whole->first, &whole->second, columns);
}

static eddy_status logsumexp_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_reduce_blocks *blocks = blocks_of(call);
    recipe how = plain(call, &blocks->max, -INFINITY);
    how.pair = &blocks->log_sum_exp;
    how.pair_sum = &blocks->sum;
    how.finish = add_log;
    return reduce_prepare(call, plan, &how, (price){call->kernel->cost_element_ps, 26000});
}

/* ---- a row at a time ---- */

_Static_assert(EDDY_KERNEL_ROW_ELEMENTS <= EDDY_REDUCE_BLOCK, "a row is one block");

#define ROWS(name_)                                                                                \
    static void name_##_rows(char *const *data, const int64_t *strides, int64_t rows,              \
                             int64_t columns) {                                                    \
        eddy_reduce_block_fn *block = eddy_reduce_blocks_of(EDDY_REDUCE_F32)->name_.block;         \
        for (int64_t row = 0; row < rows; row++)                                                   \
            block(data[0] + row * strides[0], columns, 0, data[1] + row * strides[1]);             \
    }

ROWS(sum)
ROWS(max)
ROWS(min)

static void mean_rows(char *const *data, const int64_t *strides, int64_t rows, int64_t columns) {
    sum_rows(data, strides, rows, columns);
    for (int64_t row = 0; row < rows; row++)
        *(float *)(void *)(data[1] + row * strides[1]) /= (float)columns;
}

/* ---- kernels ---- */

#define REDUCTION(name_, element, rows_)                                                           \
    const eddy_kernel eddy_cpu_##name_ = {.name = #name_,                                          \
                                          .prepare = name_##_prepare,                              \
                                          .run = reduce_run,                                       \
                                          .rows = rows_,                                           \
                                          .cost_base_ps = 90000,                                   \
                                          .cost_element_ps = element};

REDUCTION(sum, 65, sum_rows)
REDUCTION(mean, 65, mean_rows)
REDUCTION(prod, 75, NULL)
REDUCTION(max, 75, max_rows)
REDUCTION(min, 75, min_rows)
REDUCTION(any, 28, NULL)
REDUCTION(all, 28, NULL)
REDUCTION(var, 250, NULL)
REDUCTION(std, 250, NULL)
REDUCTION(logsumexp, 420, NULL)
REDUCTION(norm, 100, NULL)
