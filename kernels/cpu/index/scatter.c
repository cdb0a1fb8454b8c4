#include <base/assert.h>
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/move/fill.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/index/scatter.h>

#define SLICE_ELEMENTS 32768
#define PIECE 256
/* Rests of fewer places than this in a row are walked along the index. */
#define ROW_MIN 8
/* Places of a slice at least. Of rows it takes long pieces, as each index leads to another one: a quarter, within bounds. */
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

/* Puts values[i] to out[i * stride + indices[i] * step], or where indices is NULL to out[i * stride]. */
typedef void put_fn(void *out, int64_t stride, int64_t step, const int64_t *indices, const void *values, int64_t count);
/* The same where each index below `bound` is used and none other, after `end` has been added to those below 0; whether all
 * were. */
typedef bool put_within_fn(void *out, int64_t stride, int64_t step, const int64_t *indices, uint64_t bound, int64_t end,
                           const void *values, int64_t count);

typedef struct putter {
    put_fn *all;
    put_within_fn *within;
} putter;

#define PUT(name, type, operator)                                                                                      \
    static void name(void *out, int64_t stride, int64_t step, const int64_t *indices, const void *values,              \
                     int64_t count) {                                                                                  \
        type *to = out;                                                                                                \
        const type *from = values;                                                                                     \
        if (indices == NULL && stride == 1) {                                                                          \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] operator from[i];                                                                                \
        } else if (indices == NULL) {                                                                                  \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i * stride] operator from[i];                                                                       \
        } else {                                                                                                       \
            for (int64_t i = 0; i < count; i++)                                                                        \
                if (indices[i] != NOWHERE)                                                                             \
                    to[i * stride + indices[i] * step] operator from[i];                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static inline bool name##_place(type *to, int64_t stride, int64_t step, const int64_t *indices, uint64_t bound,    \
                                    int64_t end, const type *from, int64_t count) {                                    \
        bool are_within = true;                                                                                        \
        _Pragma("GCC unroll 4") for (int64_t i = 0; i < count; i++) {                                                  \
            uint64_t at = (uint64_t)indices[i];                                                                        \
            if (EDDY_UNLIKELY(at >= bound) && (at += (uint64_t)end) >= bound)                                          \
                are_within = false;                                                                                    \
            else                                                                                                       \
                to[i * stride + (int64_t)at * step] operator from[i];                                                  \
        }                                                                                                              \
        return are_within;                                                                                             \
    }                                                                                                                  \
    /* Along the last axis of a contiguous output nothing is left to multiply. */                                      \
    static bool name##_within(void *out, int64_t stride, int64_t step, const int64_t *indices, uint64_t bound,         \
                              int64_t end, const void *values, int64_t count) {                                        \
        if (stride == 0 && step == 1)                                                                                  \
            return name##_place(out, 0, 1, indices, bound, end, values, count);                                        \
        return name##_place(out, stride, step, indices, bound, end, values, count);                                    \
    }

PUT(set_8, uint8_t, =)
PUT(set_16, uint16_t, =)
PUT(set_32, uint32_t, =)
PUT(set_64, uint64_t, =)
PUT(add_f32, float, +=)
PUT(add_f64, double, +=)
PUT(add_8, uint8_t, +=)
PUT(add_16, uint16_t, +=)
PUT(add_32, uint32_t, +=)
PUT(add_64, uint64_t, +=)
PUT(add_bool, uint8_t, |=)

static putter choose(eddy_dtype dtype, bool adds) {
#define PUTTER(name) (putter){name, name##_within}
    size_t bytes = eddy_dtype_bytes(dtype);
    if (!adds)
        return bytes == 1 ? PUTTER(set_8) : bytes == 2 ? PUTTER(set_16) : bytes == 4 ? PUTTER(set_32) : PUTTER(set_64);
    if (dtype == EDDY_F32)
        return PUTTER(add_f32);
    if (dtype == EDDY_F64)
        return PUTTER(add_f64);
    if (dtype == EDDY_BOOL)
        return PUTTER(add_bool);
    return bytes == 1 ? PUTTER(add_8) : bytes == 2 ? PUTTER(add_16) : bytes == 4 ? PUTTER(add_32) : PUTTER(add_64);
#undef PUTTER
}

/* ---- slices of the rest ---- */

int64_t eddy_scatter_checked(const eddy_scatter *s, int64_t index, int64_t number) {
    int64_t at = s->from_end && index < 0 ? index + s->bound : index;
    if (s->bound >= 0 && (at < 0 || at >= s->bound)) {
        eddy_kernel_fail(s->call, EDDY_OUT_OF_RANGE, number, index, s->bound);
        return NOWHERE;
    }
    return s->left_out >= 0 && at == s->left_out ? NOWHERE : at;
}

typedef struct piece {
    int64_t indices[PIECE];
    _Alignas(64) char values[PIECE * 8];
} piece;

/* Whether all places of a run are named by one index. */
static bool has_one_index(const int64_t *strides) {
    return strides[INDEX] == 0 && strides[NUMBER] == 0;
}

/* Whether indices are used where they lie. */
static bool are_indices_plain(const eddy_scatter *s, const int64_t *strides) {
    return s->index_dtype == EDDY_I64 && strides[INDEX] == 1 && s->bound >= 0 && s->left_out < 0;
}

/* `count` elements: their strides are those of the innermost dim of `walk`, their first place is at `offsets`. */
static void put_piece(const eddy_scatter *s, putter put, piece *p, const eddy_walk *walk, const int64_t *offsets,
                      int64_t count) {
    eddy_dtype dtype = s->ground.dtype;
    int64_t strides[OPERANDS] = {0};
    for (int o = 0; o < OPERANDS && walk->rank > 0; o++)
        strides[o] = walk->strides[o][walk->rank - 1];
    const void *values = eddy_chunk_at(s->source, s->source_dtype, offsets[SOURCE]);
    if (s->source_dtype != dtype || (strides[SOURCE] != 1 && count > 1)) {
        eddy_chunk_load(dtype, p->values, s->source_dtype, values, strides[SOURCE], count);
        values = p->values;
    }
    char *out = eddy_chunk_at(s->ground.data, dtype, offsets[OUT]);
    bool is_one_index = has_one_index(strides);
    const void *given = eddy_chunk_at(s->index, s->index_dtype, offsets[INDEX]);
    if (!is_one_index && are_indices_plain(s, strides)) {
        const int64_t *indices = given;
        if (!put.within(out, strides[OUT], s->step, indices, (uint64_t)s->bound, s->from_end ? s->bound : 0, values,
                        count))
            for (int64_t i = 0; i < count; i++)
                (void)eddy_scatter_checked(s, indices[i], offsets[NUMBER] + i * strides[NUMBER]);
        return;
    }
    eddy_chunk_load(EDDY_I64, p->indices, s->index_dtype, given, strides[INDEX], is_one_index ? 1 : count);
    if (is_one_index) {
        int64_t index = eddy_scatter_checked(s, p->indices[0], offsets[NUMBER]);
        if (index != NOWHERE)
            put.all(eddy_chunk_at(out, dtype, index * s->step), strides[OUT], 0, NULL, values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        p->indices[i] = eddy_scatter_checked(s, p->indices[i], offsets[NUMBER] + i * strides[NUMBER]);
    put.all(out, strides[OUT], s->step, p->indices, values, count);
}

static void add_offsets(int64_t *sum, const eddy_walk_cursor *a, const eddy_walk_cursor *b) {
    for (int o = 0; o < OPERANDS; o++)
        sum[o] = a->offsets[o] + b->offsets[o];
}

/* `run` neighbours of the rest, with each place of the index in turn. */
static void put_rows(const eddy_scatter *s, putter put, piece *p, const eddy_walk_cursor *place, int64_t run) {
    int64_t count = eddy_walk_count(s->along), offsets[OPERANDS];
    eddy_walk_cursor cursor;
    eddy_walk_seek(s->along, &cursor, 0);
    for (int64_t i = 0; i < count; i++) {
        add_offsets(offsets, place, &cursor);
        put_piece(s, put, p, s->rest, offsets, run);
        eddy_walk_next(s->along, &cursor, s->along->rank);
    }
}

/* One place of the rest, with runs of the index. */
static void put_line(const eddy_scatter *s, putter put, piece *p, const eddy_walk_cursor *place) {
    const eddy_walk *along = s->along;
    int64_t count = eddy_walk_count(along), offsets[OPERANDS];
    /* Mostly there is but one run, and the search for it would take as long as a short one. */
    if (along->rank <= 1) {
        for (int64_t done = 0; done < count; done += PIECE) {
            for (int o = 0; o < OPERANDS; o++)
                offsets[o] = place->offsets[o] + (along->rank == 1 ? done * along->strides[o][0] : 0);
            put_piece(s, put, p, along, offsets, eddy_min_i64(PIECE, count - done));
        }
        return;
    }
    eddy_walk_cursor cursor;
    eddy_walk_seek(along, &cursor, 0);
    for (int64_t done = 0, run; done < count; done += run) {
        run = eddy_min_i64(PIECE, eddy_walk_run(along, &cursor));
        add_offsets(offsets, place, &cursor);
        put_piece(s, put, p, along, offsets, run);
        eddy_walk_advance(along, &cursor, run);
    }
}

/* Elements of a row that are put at once: only values and indices that have to be converted go through a piece. */
static int64_t row_most(const eddy_scatter *s) {
    int64_t strides[OPERANDS];
    for (int o = 0; o < OPERANDS; o++)
        strides[o] = s->rest->strides[o][s->rest->rank - 1];
    bool are_plain = s->source_dtype == s->ground.dtype && strides[SOURCE] == 1;
    return are_plain && (has_one_index(strides) || are_indices_plain(s, strides)) ? INT64_MAX : PIECE;
}

static void scatter_slice(void *context, int64_t begin, int64_t end) {
    const eddy_scatter *s = context;
    putter put = choose(s->ground.dtype, s->adds);
    piece p;
    eddy_walk_cursor place;
    eddy_walk_seek(s->rest, &place, begin);
    while (begin < end) {
        int64_t run = 1;
        if (s->by_lines) {
            put_line(s, put, &p, &place);
        } else {
            run = eddy_min_i64(eddy_min_i64(eddy_walk_run(s->rest, &place), end - begin), row_most(s));
            put_rows(s, put, &p, &place, run);
        }
        eddy_walk_advance(s->rest, &place, run);
        begin += run;
    }
}

/* ---- ground ---- */

static bool is_summed_aside(eddy_dtype dtype, bool adds) {
    return adds && (dtype == EDDY_F16 || dtype == EDDY_BF16);
}

size_t eddy_scatter_workspace(const eddy_op_view *out, bool adds, int64_t row, int64_t length) {
    if (is_summed_aside(out->dtype, adds))
        return ((size_t)eddy_view_count(out) * sizeof(float) + 63) / 64 * 64;
    return eddy_scatter_rows_workspace(out, adds, row, length);
}

void eddy_scatter_begin(eddy_scatter *s, const eddy_op_view *in, const eddy_op_view *out, void *workspace) {
    bool is_aside = is_summed_aside(out->dtype, s->adds);
    s->in = in;
    s->workspace = workspace;
    s->ground = *out;
    int64_t span = 1;
    for (int32_t d = out->rank - 1; d >= 0; d--) {
        s->strides[d] = is_aside ? span : out->strides[d];
        span *= out->shape[d];
    }
    s->ground.strides = s->strides;
    if (is_aside) {
        s->ground.data = workspace;
        s->ground.dtype = EDDY_F32;
    }
}

static void lay_ground(const eddy_scatter *s) {
    if (s->in == NULL) {
        const _Alignas(8) char zero[8] = {0};
        eddy_fill_view(s->call->team, &s->ground, zero);
    } else if (s->in->data != s->ground.data) {
        eddy_copy_view(s->call->team, s->in, &s->ground);
    }
}

/* Indices are checked even where there is nothing to put. */
static void check_indices(const eddy_scatter *s, int64_t count) {
    eddy_walk_cursor cursor;
    eddy_walk_seek(s->along, &cursor, 0);
    for (int64_t i = 0; i < count; i++) {
        const void *index = eddy_chunk_at(s->index, s->index_dtype, cursor.offsets[INDEX]);
        (void)eddy_scatter_checked(s, eddy_dtype_load_i64(s->index_dtype, index), cursor.offsets[NUMBER]);
        eddy_walk_next(s->along, &cursor, s->along->rank);
    }
}

/* Whether places that indices tell apart lie closer together than neighbours of the rest, as within the planes of images. */
static bool is_closer(const eddy_scatter *s) {
    int64_t across = s->rest->strides[OUT][s->rest->rank - 1];
    return (s->step < 0 ? -s->step : s->step) < (across < 0 ? -across : across);
}

/* Places of a slice of rows: each slice goes through all indices, so that one thread has one slice. */
static int64_t row_grain(const eddy_scatter *s, int64_t places) {
    if (s->call->team->thread_count == 1)
        return places;
    return eddy_max_i64(ROW_GRAIN_MIN, eddy_min_i64(ROW_GRAIN_MAX, places / 4));
}

void eddy_scatter_end(eddy_scatter *s, const eddy_op_view *out) {
    eddy_walk_collapse(s->along);
    eddy_walk_sort(s->rest);
    eddy_walk_collapse(s->rest);
    if (eddy_scatter_rows(s, out))
        return;
    lay_ground(s);
    int64_t places = eddy_walk_count(s->rest), length = eddy_walk_count(s->along);
    s->by_lines =
        s->rest->rank == 0 || s->rest->dims[s->rest->rank - 1] < ROW_MIN || (length >= ROW_MIN && is_closer(s));
    if (places == 0 && length > 0) {
        check_indices(s, length);
    } else if (length > 0) {
        int64_t grain = eddy_max_i64(s->by_lines ? LINE_GRAIN : row_grain(s, places), SLICE_ELEMENTS / length);
        if (places <= grain)
            scatter_slice(s, 0, places);
        else
            s->call->team->parallel_for(s->call->team, places, grain, scatter_slice, s);
    }
    if (s->ground.data != out->data)
        eddy_copy_view(s->call->team, &s->ground, out);
}

/* ---- kernels ---- */

/* views: in, index, source, out; source is taken as far as index goes. A number is a vector here. */
static void scatter(const eddy_kernel_call *call, bool adds) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view in = eddy_view_with_axis(&call->views[0]), places = eddy_view_with_axis(&call->views[1]),
                       parts = eddy_view_with_axis(&call->views[2]), whole = eddy_view_with_axis(&call->views[3]);
    const eddy_op_view *index = &places, *source = &parts, *out = &whole;
    eddy_walk along, rest;
    eddy_scatter s = {.call = call,
                      .along = &along,
                      .rest = &rest,
                      .source = source->data,
                      .index = index->data,
                      .source_dtype = source->dtype,
                      .index_dtype = index->dtype,
                      .from_end = true,
                      .left_out = -1,
                      .adds = adds};
    eddy_scatter_begin(&s, &in, out, call->workspace);
    eddy_walk_init(&along, 0, NULL);
    eddy_walk_init(&rest, 0, NULL);
    along.operand_count = rest.operand_count = OPERANDS;
    s.step = s.strides[attributes->axis];
    s.bound = out->shape[attributes->axis];
    int64_t number = eddy_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        bool is_axis = d == attributes->axis;
        eddy_walk_append(is_axis ? &along : &rest, index->shape[d],
                         (int64_t[]){is_axis ? 0 : s.strides[d], source->strides[d], index->strides[d], number},
                         OPERANDS);
    }
    if (eddy_view_count(index) == 0)
        along.dims[0] = 0; /* no place without an index has one along the axis */
    eddy_scatter_end(&s, out);
}

static void scatter_run(const eddy_kernel_call *call) {
    scatter(call, false);
}

static void scatter_add_run(const eddy_kernel_call *call) {
    scatter(call, true);
}

/* Elements of out that an index names, where they are neighbours. */
static int64_t added_row(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view *out = &call->views[3];
    int64_t row = 1;
    for (int32_t d = 0; d < out->rank; d++) {
        if (d < attributes->axis && out->shape[d] != 1)
            return 0;
        row *= d > attributes->axis ? out->shape[d] : 1;
    }
    return row;
}

/* views: in, index [n] or a number, source, out */
static void index_add_run(const eddy_kernel_call *call) {
    const eddy_attributes_axis *attributes = call->attributes;
    const eddy_op_view in = eddy_view_with_axis(&call->views[0]), parts = eddy_view_with_axis(&call->views[2]),
                       whole = eddy_view_with_axis(&call->views[3]);
    const eddy_op_view *index = &call->views[1], *source = &parts, *out = &whole;
    eddy_walk along, rest;
    eddy_scatter s = {.call = call,
                      .along = &along,
                      .rest = &rest,
                      .source = source->data,
                      .index = index->data,
                      .source_dtype = source->dtype,
                      .index_dtype = index->dtype,
                      .row = added_row(call),
                      .left_out = -1,
                      .adds = true};
    eddy_scatter_begin(&s, &in, out, call->workspace);
    eddy_walk_init(&along, 0, NULL);
    eddy_walk_init(&rest, 0, NULL);
    s.step = s.strides[attributes->axis];
    s.bound = out->shape[attributes->axis];
    for (int32_t d = 0; d < source->rank; d++) {
        if (d == attributes->axis)
            eddy_walk_append(&along, source->shape[d],
                             (int64_t[]){0, source->strides[d], index->rank > 0 ? index->strides[0] : 0, 1}, OPERANDS);
        else
            eddy_walk_append(&rest, source->shape[d], (int64_t[]){s.strides[d], source->strides[d], 0, 0}, OPERANDS);
    }
    rest.operand_count = OPERANDS;
    eddy_scatter_end(&s, out);
}

/* views: grad [.., D], index [..], out [V, D] */
static void embedding_backward_run(const eddy_kernel_call *call) {
    const eddy_attributes_embedding *attributes = call->attributes;
    const eddy_op_view *grad = &call->views[0], *index = &call->views[1], *out = &call->views[2];
    eddy_walk along, rest;
    eddy_scatter s = {.call = call,
                      .along = &along,
                      .rest = &rest,
                      .source = grad->data,
                      .index = index->data,
                      .source_dtype = grad->dtype,
                      .index_dtype = index->dtype,
                      .row = out->shape[1],
                      .left_out = attributes->padding_index,
                      .adds = true};
    eddy_scatter_begin(&s, NULL, out, call->workspace);
    s.step = s.strides[0];
    s.bound = out->shape[0];
    eddy_walk_init(&along, 0, NULL);
    eddy_walk_init(&rest, 0, NULL);
    along.operand_count = OPERANDS;
    int64_t number = eddy_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        eddy_walk_append(&along, index->shape[d], (int64_t[]){0, grad->strides[d], index->strides[d], number},
                         OPERANDS);
    }
    eddy_walk_append(&rest, out->shape[1], (int64_t[]){s.strides[1], grad->strides[grad->rank - 1], 0, 0}, OPERANDS);
    eddy_scatter_end(&s, out);
}

static size_t scatter_add_workspace(const eddy_kernel_call *call) {
    return eddy_scatter_workspace(&call->views[3], true, 0, 0);
}

static size_t index_add_workspace(const eddy_kernel_call *call) {
    return eddy_scatter_workspace(&call->views[3], true, added_row(call), eddy_view_count(&call->views[1]));
}

static size_t embedding_backward_workspace(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[2];
    return eddy_scatter_workspace(out, true, out->shape[1], eddy_view_count(&call->views[1]));
}

/* The ground is copied or filled; what is put costs more. `source` is the operand that is gone through. */
static int64_t scatter_cost_of(const eddy_kernel_call *call, int32_t source, int64_t element_ps) {
    return call->kernel->cost_base_ps + eddy_cost_ps(eddy_view_count(&call->views[call->view_count - 1]), 100) +
           eddy_cost_ps(eddy_view_count(&call->views[source]), element_ps) + eddy_cost_far_views_ps(call);
}

static int64_t scatter_cost(const eddy_kernel_call *call) {
    return scatter_cost_of(call, 1, call->kernel->cost_element_ps);
}

static int64_t index_add_cost(const eddy_kernel_call *call) {
    return scatter_cost_of(call, 2, added_row(call) > 1 ? 270 : call->kernel->cost_element_ps);
}

static int64_t embedding_backward_cost(const eddy_kernel_call *call) {
    return scatter_cost_of(call, 0, call->kernel->cost_element_ps);
}

const eddy_kernel eddy_cpu_scatter = {
    .name = "scatter", .run = scatter_run, .cost_base_ps = 120000, .cost_element_ps = 1000, .cost = scatter_cost};
const eddy_kernel eddy_cpu_scatter_add = {.name = "scatter_add",
                                          .run = scatter_add_run,
                                          .workspace = scatter_add_workspace,
                                          .cost_base_ps = 120000,
                                          .cost_element_ps = 1200,
                                          .cost = scatter_cost};
const eddy_kernel eddy_cpu_index_add = {.name = "index_add",
                                        .run = index_add_run,
                                        .workspace = index_add_workspace,
                                        .cost_base_ps = 120000,
                                        .cost_element_ps = 1000,
                                        .cost = index_add_cost};
const eddy_kernel eddy_cpu_embedding_backward = {.name = "embedding_backward",
                                                 .run = embedding_backward_run,
                                                 .workspace = embedding_backward_workspace,
                                                 .cost_base_ps = 120000,
                                                 .cost_element_ps = 1000,
                                                 .cost = embedding_backward_cost};
