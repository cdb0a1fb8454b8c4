#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/index/scatter.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/move/fill.h>

#define INLINE static inline __attribute__((always_inline))

#define SLICE_ELEMENTS 32768
#define PIECE 256
/* If the innermost dim of `rest` has fewer places than this, the inner loop runs along the index. */
#define ROW_MIN 8
/* Places of a slice, at least. A slice of rows takes a quarter of all places, within bounds: each index leads to another
 * row, so that long pieces of rows pay. */
#define LINE_GRAIN 16
#define ROW_GRAIN_MIN 64
#define ROW_GRAIN_MAX 512

#define OUT EDDY_SCATTER_OUT
#define SOURCE EDDY_SCATTER_SOURCE
#define INDEX EDDY_SCATTER_INDEX
#define NUMBER EDDY_SCATTER_NUMBER
#define OPERANDS EDDY_SCATTER_OPERANDS
#define NOWHERE EDDY_SCATTER_NOWHERE

/* ---- the innermost loops ---- */

/* Puts values[i] at out[i * stride + indices[i] * step] or, if indices is NULL, at out[i * stride]. */
typedef void put_fn(void *out, int64_t stride, int64_t step, const int64_t *indices,
                    const void *values, int64_t count);
/* The same, but `end` is added to indices that are not below `bound`, and those that still are not are skipped. Returns
 * whether none was skipped. */
typedef bool put_within_fn(void *out, int64_t stride, int64_t step, const int64_t *indices,
                           uint64_t bound, int64_t end, const void *values, int64_t count);

typedef struct eddy_scatter_putter {
    put_fn *all;
    put_within_fn *within;
} putter;

/* How an element is put. It is a constant in every call of the functions that take it. */
typedef enum putting {
    SET_8,
    SET_16,
    SET_32,
    SET_64,
    ADD_8,
    ADD_16,
    ADD_32,
    ADD_64,
    ADD_F32,
    ADD_F64,
    ADD_BOOL
} putting;

INLINE void put_one(putting how, void *out, int64_t at, const void *values, int64_t i) {
    switch (how) {
    case SET_8:
        ((uint8_t *)out)[at] = ((const uint8_t *)values)[i];
        break;
    case SET_16:
        ((uint16_t *)out)[at] = ((const uint16_t *)values)[i];
        break;
    case SET_32:
        ((uint32_t *)out)[at] = ((const uint32_t *)values)[i];
        break;
    case SET_64:
        ((uint64_t *)out)[at] = ((const uint64_t *)values)[i];
        break;
    case ADD_8:
        ((uint8_t *)out)[at] += ((const uint8_t *)values)[i];
        break;
    case ADD_16:
        ((uint16_t *)out)[at] += ((const uint16_t *)values)[i];
        break;
    case ADD_32:
        ((uint32_t *)out)[at] += ((const uint32_t *)values)[i];
        break;
    case ADD_64:
        ((uint64_t *)out)[at] += ((const uint64_t *)values)[i];
        break;
    case ADD_F32:
        ((float *)out)[at] += ((const float *)values)[i];
        break;
    case ADD_F64:
        ((double *)out)[at] += ((const double *)values)[i];
        break;
    case ADD_BOOL:
        ((uint8_t *)out)[at] |= ((const uint8_t *)values)[i];
    }
}

INLINE void put(putting how, void *out, int64_t stride, int64_t step, const int64_t *indices,
                const void *values, int64_t count) {
    if (indices == NULL && stride == 1)
        for (int64_t i = 0; i < count; i++)
            put_one(how, out, i, values, i);
    else if (indices == NULL)
        for (int64_t i = 0; i < count; i++)
            put_one(how, out, i * stride, values, i);
    else
        for (int64_t i = 0; i < count; i++)
            if (indices[i] != NOWHERE)
                put_one(how, out, i * stride + indices[i] * step, values, i);
}

INLINE bool put_each_within(putting how, void *out, int64_t stride, int64_t step,
                            const int64_t *indices, uint64_t bound, int64_t end, const void *values,
                            int64_t count) {
    bool are_within = true;
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)indices[i];
        if (EDDY_UNLIKELY(at >= bound) && (at += (uint64_t)end) >= bound)
            are_within = false;
        else
            put_one(how, out, i * stride + (int64_t)at * step, values, i);
    }
    return are_within;
}

/* Along the last axis of a contiguous output the strides are constants, and no multiplication is left. */
INLINE bool put_within(putting how, void *out, int64_t stride, int64_t step, const int64_t *indices,
                       uint64_t bound, int64_t end, const void *values, int64_t count) {
    if (stride == 0 && step == 1)
        return put_each_within(how, out, 0, 1, indices, bound, end, values, count);
    return put_each_within(how, out, stride, step, indices, bound, end, values, count);
}

#define PUT(name, how)                                                                             \
    static void name(void *out, int64_t stride, int64_t step, const int64_t *indices,              \
                     const void *values, int64_t count) {                                          \
        put(how, out, stride, step, indices, values, count);                                       \
    }                                                                                              \
    static bool name##_within(void *out, int64_t stride, int64_t step, const int64_t *indices,     \
                              uint64_t bound, int64_t end, const void *values, int64_t count) {    \
        return put_within(how, out, stride, step, indices, bound, end, values, count);             \
    }

PUT(set_8, SET_8)
PUT(set_16, SET_16)
PUT(set_32, SET_32)
PUT(set_64, SET_64)
PUT(add_8, ADD_8)
PUT(add_16, ADD_16)
PUT(add_32, ADD_32)
PUT(add_64, ADD_64)
PUT(add_f32, ADD_F32)
PUT(add_f64, ADD_F64)
PUT(add_bool, ADD_BOOL)

static const putter *choose(eddy_dtype dtype, bool adds) {
#define PUTTER(name)                                                                               \
    { name, name##_within }
    static const putter sets[] = {PUTTER(set_8), PUTTER(set_16), PUTTER(set_32), PUTTER(set_64)};
    static const putter sums[] = {PUTTER(add_8), PUTTER(add_16), PUTTER(add_32), PUTTER(add_64)};
    static const putter sum_f32 = PUTTER(add_f32), sum_f64 = PUTTER(add_f64),
                        sum_bool = PUTTER(add_bool);
#undef PUTTER
    int by_bytes = __builtin_ctz((unsigned)eddy_dtype_bytes(dtype));
    return !adds                ? &sets[by_bytes]
           : dtype == EDDY_F32  ? &sum_f32
           : dtype == EDDY_F64  ? &sum_f64
           : dtype == EDDY_BOOL ? &sum_bool
                                : &sums[by_bytes];
}

/* ---- slices of the rest ---- */

int64_t eddy_scatter_checked(const eddy_scatter *s, int64_t index, int64_t number) {
    const eddy_scatter_plan *plan = s->plan;
    int64_t at = plan->from_end && index < 0 ? index + plan->bound : index;
    if (plan->bound >= 0 && (at < 0 || at >= plan->bound)) {
        eddy_kernel_fail(s->call, EDDY_OUT_OF_RANGE, number, index, plan->bound);
        return NOWHERE;
    }
    return plan->left_out >= 0 && at == plan->left_out ? NOWHERE : at;
}

typedef struct piece {
    int64_t indices[PIECE];
    _Alignas(64) char values[PIECE * 8];
} piece;

/* Whether one index names all places of a run. */
static bool has_one_index(const int64_t *strides) {
    return strides[INDEX] == 0 && strides[NUMBER] == 0;
}

/* Whether indices are used in place. */
static bool are_indices_plain(const eddy_scatter_plan *plan, const int64_t *strides) {
    return plan->index_dtype == EDDY_I64 && strides[INDEX] == 1 && plan->bound >= 0 &&
           plan->left_out < 0;
}

/* Puts `count` elements: their strides are those of the innermost dim of `walk`, the first one is at `offsets`. */
static void put_piece(const eddy_scatter *s, piece *p, const eddy_walk *walk,
                      const int64_t *offsets, int64_t count) {
    const eddy_scatter_plan *plan = s->plan;
    eddy_dtype dtype = s->ground.dtype;
    int64_t strides[OPERANDS] = {0};
    for (int o = 0; o < OPERANDS && walk->rank > 0; o++)
        strides[o] = walk->strides[o][walk->rank - 1];
    const void *values = eddy_chunk_at(s->source, plan->source_dtype, offsets[SOURCE]);
    if (plan->source_dtype != dtype || (strides[SOURCE] != 1 && count > 1)) {
        eddy_chunk_load(dtype, p->values, plan->source_dtype, values, strides[SOURCE], count);
        values = p->values;
    }
    char *out = eddy_chunk_at(s->ground.data, dtype, offsets[OUT]);
    bool is_one_index = has_one_index(strides);
    const void *given = eddy_chunk_at(s->index, plan->index_dtype, offsets[INDEX]);
    if (!is_one_index && are_indices_plain(plan, strides)) {
        const int64_t *indices = given;
        if (!plan->put->within(out, strides[OUT], plan->step, indices, (uint64_t)plan->bound,
                               plan->from_end ? plan->bound : 0, values, count))
            for (int64_t i = 0; i < count; i++)
                (void)eddy_scatter_checked(s, indices[i], offsets[NUMBER] + i * strides[NUMBER]);
        return;
    }
    eddy_chunk_load(EDDY_I64, p->indices, plan->index_dtype, given, strides[INDEX],
                    is_one_index ? 1 : count);
    if (is_one_index) {
        int64_t index = eddy_scatter_checked(s, p->indices[0], offsets[NUMBER]);
        if (index != NOWHERE)
            plan->put->all(eddy_chunk_at(out, dtype, index * plan->step), strides[OUT], 0, NULL,
                           values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        p->indices[i] =
            eddy_scatter_checked(s, p->indices[i], offsets[NUMBER] + i * strides[NUMBER]);
    plan->put->all(out, strides[OUT], plan->step, p->indices, values, count);
}

static void add_offsets(int64_t *sum, const eddy_walk_cursor *a, const eddy_walk_cursor *b) {
    for (int o = 0; o < OPERANDS; o++)
        sum[o] = a->offsets[o] + b->offsets[o];
}

/* Puts `run` neighbouring places of `rest`, for each place of `along` in turn. */
static void put_rows(const eddy_scatter *s, piece *p, const eddy_walk_cursor *place, int64_t run) {
    int64_t offsets[OPERANDS];
    eddy_walk_cursor cursor;
    eddy_walk_seek(&s->along, &cursor, 0);
    for (int64_t i = 0; i < s->plan->length; i++) {
        add_offsets(offsets, place, &cursor);
        put_piece(s, p, &s->rest, offsets, run);
        eddy_walk_next(&s->along, &cursor, s->along.rank);
    }
}

/* Puts one place of `rest`, in runs of `along`. */
static void put_line(const eddy_scatter *s, piece *p, const eddy_walk_cursor *place) {
    const eddy_walk *along = &s->along;
    int64_t count = s->plan->length, offsets[OPERANDS];
    /* In most calls there is one run only, and finding it would take as long as a short run. */
    if (along->rank <= 1) {
        for (int64_t done = 0; done < count; done += PIECE) {
            for (int o = 0; o < OPERANDS; o++)
                offsets[o] =
                    place->offsets[o] + (along->rank == 1 ? done * along->strides[o][0] : 0);
            put_piece(s, p, along, offsets, eddy_min_i64(PIECE, count - done));
        }
        return;
    }
    eddy_walk_cursor cursor;
    eddy_walk_seek(along, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(PIECE, eddy_walk_run(along, &cursor));
        add_offsets(offsets, place, &cursor);
        put_piece(s, p, along, offsets, run);
        eddy_walk_advance(along, &cursor, run);
    }
}

static void scatter_slice(void *context, int64_t begin, int64_t end) {
    const eddy_scatter *s = context;
    piece p;
    eddy_walk_cursor place;
    eddy_walk_seek(&s->rest, &place, begin);
    while (begin < end) {
        int64_t run = 1;
        if (s->plan->by_lines) {
            put_line(s, &p, &place);
        } else {
            run = eddy_min_i64(eddy_min_i64(eddy_walk_run(&s->rest, &place), end - begin),
                               s->plan->run_most);
            put_rows(s, &p, &place, run);
        }
        eddy_walk_advance(&s->rest, &place, run);
        begin += run;
    }
}

/* ---- plans ---- */

_Static_assert(EDDY_SCATTER_PLAN_MOST <= EDDY_KERNEL_PLAN_BYTES, "fits a plan");

void eddy_scatter_lay(eddy_scatter_layout *layout, eddy_scatter_plan *plan, const eddy_op_view *in,
                      const eddy_op_view *out) {
    layout->in = in;
    layout->out = out;
    layout->ground = *out;
    plan->is_cleared = in == NULL;
    plan->is_aside = plan->adds && (out->dtype == EDDY_F16 || out->dtype == EDDY_BF16);
    int64_t span = 1;
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        layout->strides[d] = plan->is_aside ? span : out->strides[d];
        span *= out->shape[d];
    }
    layout->ground.strides = layout->strides;
    if (plan->is_aside)
        layout->ground.dtype = EDDY_F32;
}

/* Whether places that differ in the index alone are closer in memory than neighbours in `rest`, as within the planes of
 * images. */
static bool is_closer(const eddy_scatter_plan *plan, const eddy_walk *rest) {
    int64_t across = rest->strides[OUT][rest->rank - 1];
    return (plan->step < 0 ? -plan->step : plan->step) < (across < 0 ? -across : across);
}

/* Elements of a row that are put at once. The limit holds only if values or indices have to be converted to a piece. */
static int64_t run_most(const eddy_scatter_plan *plan, const eddy_walk *rest, eddy_dtype ground) {
    int64_t strides[OPERANDS];
    for (int o = 0; o < OPERANDS; o++)
        strides[o] = rest->strides[o][rest->rank - 1];
    bool are_plain = plan->source_dtype == ground && strides[SOURCE] == 1;
    return are_plain && (has_one_index(strides) || are_indices_plain(plan, strides)) ? INT64_MAX
                                                                                     : PIECE;
}

/* Each slice of rows goes through all indices. */
static void cut_rest(eddy_scatter_plan *p, const eddy_walk *rest, eddy_dtype ground) {
    p->by_lines = rest->rank == 0 || rest->dims[rest->rank - 1] < ROW_MIN ||
                  (p->length >= ROW_MIN && is_closer(p, rest));
    p->run_most = p->by_lines ? 0 : run_most(p, rest, ground);
    p->grain = eddy_max_i64(ROW_GRAIN_MIN, eddy_min_i64(ROW_GRAIN_MAX, p->places / 4));
    p->grain = eddy_max_i64(p->by_lines ? LINE_GRAIN : p->grain,
                            SLICE_ELEMENTS / eddy_max_i64(1, p->length));
}

static size_t scatter_workspace(const eddy_scatter_plan *p, const eddy_op_view *out) {
    if (p->is_aside)
        return ((size_t)eddy_kernel_view_count(out) * sizeof(float) + 63) / 64 * 64;
    return p->rows > 0 ? eddy_scatter_rows_workspace(p) : 0;
}

void eddy_scatter_prepare(eddy_scatter_layout *layout, eddy_kernel_plan *plan) {
    eddy_scatter_plan *p = plan->memory;
    eddy_walk_collapse(&layout->along);
    eddy_walk_sort(&layout->rest);
    eddy_walk_collapse(&layout->rest);
    EDDY_ASSERT(layout->along.rank + layout->rest.rank <= EDDY_RANK_MAX);
    p->places = eddy_walk_count(&layout->rest);
    p->length = eddy_walk_count(&layout->along);
    p->put = choose(layout->ground.dtype, p->adds);
    cut_rest(p, &layout->rest, layout->ground.dtype);
    p->rows = eddy_scatter_row_count(layout, p);
    int64_t *words = eddy_walk_write(&layout->rest, eddy_walk_write(&layout->along, p->words));
    p->ground_at = (int32_t)(words - p->words);
    words = p->is_cleared ? eddy_fill_prepare(&layout->ground, words)
                          : eddy_copy_prepare(layout->in, &layout->ground, words);
    p->back_at = (int32_t)(words - p->words);
    if (p->is_aside)
        words = eddy_copy_prepare(&layout->ground, layout->out, words);
    p->behind_at = (int32_t)(words - p->words);
    plan->bytes = (size_t)((char *)words - (char *)p);
    plan->workspace_bytes = scatter_workspace(p, layout->out);
}

/* ---- running ---- */

static void lay_ground(const eddy_scatter *s) {
    const int64_t *words = s->plan->words + s->plan->ground_at;
    const _Alignas(8) char zero[8] = {0};
    if (s->plan->is_cleared)
        eddy_fill_run(words, s->call->team, &s->ground, zero);
    else if (s->in != s->ground.data)
        eddy_copy_run(words, s->call->team, s->in, s->ground.data);
}

/* Indices are checked even if there is nothing to put. */
static void check_indices(const eddy_scatter *s) {
    eddy_dtype dtype = s->plan->index_dtype;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&s->along, &cursor, 0);
    for (int64_t i = 0; i < s->plan->length; i++) {
        const void *index = eddy_chunk_at(s->index, dtype, cursor.offsets[INDEX]);
        (void)eddy_scatter_checked(s, eddy_dtype_load_i64(dtype, index), cursor.offsets[NUMBER]);
        eddy_walk_next(&s->along, &cursor, s->along.rank);
    }
}

/* A single thread takes all rows as one slice. */
static void put_all(eddy_scatter *s) {
    const eddy_scatter_plan *plan = s->plan;
    eddy_kernel_team *team = s->call->team;
    if (plan->places <= plan->grain || (!plan->by_lines && team->thread_count == 1))
        scatter_slice(s, 0, plan->places);
    else
        team->parallel_for(team, plan->places, plan->grain, scatter_slice, s);
}

void eddy_scatter_run(eddy_scatter *s, const eddy_kernel_call *call,
                      const eddy_scatter_plan *plan) {
    s->call = call;
    s->plan = plan;
    s->ground = *s->out;
    if (plan->is_aside) {
        s->ground.data = s->workspace;
        s->ground.dtype = EDDY_F32;
    }
    (void)eddy_walk_read(&s->rest, eddy_walk_read(&s->along, plan->words));
    if (plan->rows > 0 && (plan->is_cleared || s->in != s->out->data)) {
        eddy_scatter_run_rows(s);
        return;
    }
    lay_ground(s);
    if (plan->length > 0 && plan->places == 0)
        check_indices(s);
    else if (plan->length > 0)
        put_all(s);
    if (plan->is_aside)
        eddy_copy_run(plan->words + plan->back_at, call->team, s->ground.data, s->out->data);
}

/* ---- kernels ---- */

/* views: in, index, source, out; source is used as far as index extends. A 0-dimensional tensor counts as a vector. */
static void lay_out_scatter(const eddy_kernel_call *call, eddy_scatter_layout *layout,
                            eddy_scatter_plan *p) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view index = eddy_kernel_view_with_axis(&call->views[1]),
                       source = eddy_kernel_view_with_axis(&call->views[2]);
    eddy_walk_init(&layout->along, 0, NULL);
    eddy_walk_init(&layout->rest, 0, NULL);
    layout->along.operand_count = layout->rest.operand_count = OPERANDS;
    p->step = layout->strides[axis];
    p->bound = layout->out->shape[axis];
    int64_t count = eddy_kernel_view_count(&index), number = count;
    for (int32_t d = 0; d < index.rank; d++) {
        number /= eddy_max_i64(1, index.shape[d]);
        bool is_axis = d == axis;
        eddy_walk_append(is_axis ? &layout->along : &layout->rest, index.shape[d],
                         (int64_t[]){is_axis ? 0 : layout->strides[d], source.strides[d],
                                     index.strides[d], number},
                         OPERANDS);
    }
    if (count == 0)
        layout->along.dims[0] = 0; /* without indices there are none along the axis */
}

/* The ground is copied or filled; putting elements costs more. `source` is the operand whose elements are put. */
static int64_t scatter_cost(const eddy_kernel_call *call, int32_t source, int64_t element_ps) {
    return call->kernel->cost_base_ps +
           eddy_cost_ps(eddy_kernel_view_count(&call->views[call->view_count - 1]), 100) +
           eddy_cost_ps(eddy_kernel_view_count(&call->views[source]), element_ps) +
           eddy_cost_far_views_ps(call);
}

static eddy_status scatter_prepare_of(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                      bool adds) {
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]),
                       out = eddy_kernel_view_with_axis(&call->views[3]);
    eddy_scatter_layout layout; /* set one by one: walks are too large to be cleared for nothing */
    eddy_scatter_plan *p = plan->memory;
    *p = (eddy_scatter_plan){.left_out = -1,
                             .source_dtype = call->views[2].dtype,
                             .index_dtype = call->views[1].dtype,
                             .from_end = true,
                             .adds = adds};
    eddy_scatter_lay(&layout, p, &in, &out);
    lay_out_scatter(call, &layout, p);
    eddy_scatter_prepare(&layout, plan);
    plan->cost_ps = scatter_cost(call, 1, call->kernel->cost_element_ps);
    return EDDY_OK;
}

static eddy_status scatter_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return scatter_prepare_of(call, plan, false);
}

static eddy_status scatter_add_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return scatter_prepare_of(call, plan, true);
}

/* Runs index_add too. */
static void scatter_run(const eddy_kernel_call *call) {
    eddy_scatter s;
    s.in = call->views[0].data;
    s.index = call->views[1].data;
    s.source = call->views[2].data;
    s.out = &call->views[3];
    s.workspace = call->workspace;
    eddy_scatter_run(&s, call, call->plan);
}

/* Elements of out that an index names, if they are neighbours in memory order; else 0. */
static int64_t added_row(const eddy_op_view *out, int32_t axis) {
    int64_t row = 1;
    for (int32_t d = 0; d < out->rank; d++) {
        if (d < axis && out->shape[d] != 1)
            return 0;
        row *= d > axis ? out->shape[d] : 1;
    }
    return row;
}

/* views: in, index [n] or 0-dimensional, source, out */
static void lay_out_index_add(const eddy_kernel_call *call, eddy_scatter_layout *layout,
                              eddy_scatter_plan *p) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    const eddy_op_view *index = &call->views[1],
                       source = eddy_kernel_view_with_axis(&call->views[2]);
    eddy_walk_init(&layout->along, 0, NULL);
    eddy_walk_init(&layout->rest, 0, NULL);
    p->step = layout->strides[axis];
    p->bound = layout->out->shape[axis];
    for (int32_t d = 0; d < source.rank; d++) {
        if (d == axis)
            eddy_walk_append(
                &layout->along, source.shape[d],
                (int64_t[]){0, source.strides[d], index->rank > 0 ? index->strides[0] : 0, 1},
                OPERANDS);
        else
            eddy_walk_append(&layout->rest, source.shape[d],
                             (int64_t[]){layout->strides[d], source.strides[d], 0, 0}, OPERANDS);
    }
    layout->rest.operand_count = OPERANDS;
}

static eddy_status index_add_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]),
                       out = eddy_kernel_view_with_axis(&call->views[3]);
    eddy_scatter_layout layout;
    eddy_scatter_plan *p = plan->memory;
    *p = (eddy_scatter_plan){.row = added_row(&call->views[3], attributes->axis),
                             .left_out = -1,
                             .source_dtype = call->views[2].dtype,
                             .index_dtype = call->views[1].dtype,
                             .adds = true};
    eddy_scatter_lay(&layout, p, &in, &out);
    lay_out_index_add(call, &layout, p);
    eddy_scatter_prepare(&layout, plan);
    plan->cost_ps = scatter_cost(call, 2, p->row > 1 ? 270 : call->kernel->cost_element_ps);
    return EDDY_OK;
}

static void lay_out_embedding(const eddy_kernel_call *call, eddy_scatter_layout *layout,
                              eddy_scatter_plan *p) {
    const eddy_op_view *grad = &call->views[0], *index = &call->views[1], *out = layout->out;
    eddy_walk_init(&layout->along, 0, NULL);
    eddy_walk_init(&layout->rest, 0, NULL);
    layout->along.operand_count = OPERANDS;
    p->step = layout->strides[0];
    p->bound = out->shape[0];
    int64_t number = eddy_kernel_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        eddy_walk_append(&layout->along, index->shape[d],
                         (int64_t[]){0, grad->strides[d], index->strides[d], number}, OPERANDS);
    }
    eddy_walk_append(&layout->rest, out->shape[1],
                     (int64_t[]){layout->strides[1], grad->strides[grad->rank - 1], 0, 0},
                     OPERANDS);
}

/* views: grad [.., D], index [..], out [V, D] */
static eddy_status embedding_backward_prepare(const eddy_kernel_call *call,
                                              eddy_kernel_plan *plan) {
    const eddy_attributes_embedding *attributes = call->attributes;
    const eddy_op_view *out = &call->views[2];
    eddy_scatter_layout layout;
    eddy_scatter_plan *p = plan->memory;
    *p = (eddy_scatter_plan){.row = out->shape[1],
                             .left_out = attributes->padding_index,
                             .source_dtype = call->views[0].dtype,
                             .index_dtype = call->views[1].dtype,
                             .adds = true};
    eddy_scatter_lay(&layout, p, NULL, out);
    lay_out_embedding(call, &layout, p);
    eddy_scatter_prepare(&layout, plan);
    plan->cost_ps = scatter_cost(call, 0, call->kernel->cost_element_ps);
    return EDDY_OK;
}

static void embedding_backward_run(const eddy_kernel_call *call) {
    eddy_scatter s;
    s.in = NULL;
    s.source = call->views[0].data;
    s.index = call->views[1].data;
    s.out = &call->views[2];
    s.workspace = call->workspace;
    eddy_scatter_run(&s, call, call->plan);
}

const eddy_kernel eddy_cpu_scatter = {.name = "scatter",
                                      .run = scatter_run,
                                      .prepare = scatter_prepare,
                                      .cost_base_ps = 120000,
                                      .cost_element_ps = 1000};
const eddy_kernel eddy_cpu_scatter_add = {.name = "scatter_add",
                                          .run = scatter_run,
                                          .prepare = scatter_add_prepare,
                                          .cost_base_ps = 120000,
                                          .cost_element_ps = 1200};
const eddy_kernel eddy_cpu_index_add = {.name = "index_add",
                                        .run = scatter_run,
                                        .prepare = index_add_prepare,
                                        .cost_base_ps = 120000,
                                        .cost_element_ps = 1000};
const eddy_kernel eddy_cpu_embedding_backward = {.name = "embedding_backward",
                                                 .run = embedding_backward_run,
                                                 .prepare = embedding_backward_prepare,
                                                 .cost_base_ps = 120000,
                                                 .cost_element_ps = 1000};
