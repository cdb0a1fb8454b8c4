/* sort, argsort, topk along an axis. Records (sort_key.h) are sorted, and elements are then fetched by the records'
 * indices, so that values keep their bits. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/sort/sort_block.h>
#include <kernels/cpu/sort/sort_key.h>
#include <kernels/cpu/sort/sort_team.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Elements that are worth a slice of their own. */
#define SLICE_ELEMENTS 16384
/* Each slice has its own records, so there are no more slices than this, nor more than fit these bytes. */
#define SLICES 16
#define SLICE_BYTES ((int64_t)128 << 20)
/* If more than this part of the elements is selected, all of them are sorted. */
#define CHOICE_PART 8
/* Lines of at most this many elements are sorted side by side, if there are several. */
#define SHORT_COUNT 512
#define SHORT_LINES 3
/* At most this many of their elements are selected side by side. */
#define SHORT_KEPT 32
/* Long lines are sorted by the team if there are fewer than this. */
#define FEW_LINES 4
#define PIECE 512

typedef struct sort_plan {
    int64_t line_count;  /* 0: nothing to do */
    int64_t count, kept; /* elements of a line, and of a line of the result */
    int64_t in_stride, values_stride, indices_stride;
    int64_t grain; /* lines of a slice */
    int64_t slice_bytes;
    eddy_sort_order order;
    bool is_choice;       /* selects the first `kept` without sorting the rest */
    bool is_side_by_side; /* EDDY_SORT_LANES lines at once */
    bool is_long;         /* line by line, each one by the team */
    int64_t words[];      /* of the walk */
} sort_plan;

_Static_assert(sizeof(sort_plan) + EDDY_WALK_WORDS_MOST(3) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct sort {
    const sort_plan *plan;
    const eddy_op_view *in, *values, *indices; /* values: NULL if not required */
    eddy_walk lines;                           /* in, indices, values; without the axis */
    char *records;                             /* [slice] */
} sort;

static int64_t round_line(int64_t bytes) {
    return (bytes + 63) & ~(int64_t)63;
}

/* Memory for the records of one line, and as much again to sort them. For lines side by side: their keys, their records,
 * and the selected records. */
static void choose_slices(sort_plan *p) {
    int64_t records = p->is_choice ? p->kept : 2 * p->count;
    if (p->is_side_by_side)
        records = (EDDY_SORT_LANES / 2 + EDDY_SORT_LANES) * p->count +
                  (p->is_choice ? EDDY_SORT_LANES * p->kept : 0);
    p->slice_bytes = round_line(records * (int64_t)eddy_sort_record_bytes(&p->order));
    int64_t slices = SLICES;
    while (slices > 1 && slices * p->slice_bytes > SLICE_BYTES)
        slices /= 2;
    int64_t per_slice = (p->line_count + slices - 1) / slices;
    p->grain = eddy_max_i64(per_slice, SLICE_ELEMENTS / eddy_max_i64(1, p->count));
    p->grain = eddy_max_i64(1, p->grain);
    if (p->is_side_by_side)
        p->grain = (p->grain + EDDY_SORT_LANES - 1) / EDDY_SORT_LANES * EDDY_SORT_LANES;
}

/* A tensor of rank 0 is a line of one element. */
static int64_t along(const eddy_op_view *view, const int64_t *of_dims, int32_t axis) {
    return view->rank == 0 ? 1 : of_dims[axis];
}

/* views: in, then indices or values and indices. */
static const eddy_op_view *values_of(const eddy_kernel_call *call) {
    return call->view_count == 3 ? &call->views[1] : NULL;
}

static void walk_lines(eddy_walk *lines, const eddy_kernel_call *call, int32_t axis) {
    const eddy_op_view *in = &call->views[0], *values = &call->views[1],
                       *indices = &call->views[call->view_count - 1];
    eddy_walk_init(lines, 0, NULL);
    lines->operand_count = 3;
    for (int32_t d = 0; d < in->rank; d++) {
        const int64_t strides[] = {in->strides[d], indices->strides[d], values->strides[d]};
        if (d != axis)
            eddy_walk_append(lines, in->shape[d], strides, 3);
    }
    eddy_walk_sort(lines);
    eddy_walk_collapse(lines);
}

static void choose_way(sort_plan *p) {
    p->is_choice = p->kept < p->count / CHOICE_PART;
    p->is_side_by_side = p->order.is_narrow && p->count <= SHORT_COUNT &&
                         p->line_count >= SHORT_LINES && (!p->is_choice || p->kept <= SHORT_KEPT);
    p->is_long = !p->is_choice && p->count >= EDDY_SORT_LONG && p->line_count < FEW_LINES;
    choose_slices(p);
}

static void sort_prepare_of(const eddy_kernel_call *call, eddy_kernel_plan *plan, int32_t axis,
                            bool is_descending) {
    const eddy_op_view *in = &call->views[0], *values = values_of(call),
                       *indices = &call->views[call->view_count - 1];
    sort_plan *p = plan->memory;
    eddy_walk lines;
    walk_lines(&lines, call, axis);
    p->line_count = eddy_walk_count(&lines);
    p->count = along(in, in->shape, axis);
    p->kept = along(indices, indices->shape, axis);
    p->in_stride = along(in, in->strides, axis);
    p->indices_stride = along(indices, indices->strides, axis);
    p->values_stride = values != NULL ? along(values, values->strides, axis) : 0;
    p->order = eddy_sort_order_of(in->dtype, p->count, is_descending);
    choose_way(p);
    if (p->kept == 0)
        p->line_count = 0;
    plan->bytes = (size_t)((char *)eddy_walk_write(&lines, p->words) - (char *)p);
    plan->workspace_bytes = (size_t)(p->slice_bytes * ((p->line_count + p->grain - 1) / p->grain));
}

#define FETCH(type)                                                                                \
    static void fetch_##type(const sort *work, const void *records, const void *from, void *to,    \
                             int64_t count) {                                                      \
        const type *elements = from;                                                               \
        type *fetched = to;                                                                        \
        const eddy_sort_order order = work->plan->order;                                           \
        int64_t stride = work->plan->in_stride;                                                    \
        for (int64_t i = 0; i < count; i++)                                                        \
            fetched[i] = elements[eddy_sort_index(&order, records, i) * stride];                   \
    }

FETCH(uint8_t)
FETCH(uint16_t)
FETCH(uint32_t)
FETCH(uint64_t)

/* `count` elements by their records, stored contiguously. */
static void fetch_piece(const sort *work, const void *records, const void *from, void *to,
                        int64_t count) {
    switch (eddy_dtype_bytes(work->in->dtype)) {
    case 1:
        fetch_uint8_t(work, records, from, to, count);
        break;
    case 2:
        fetch_uint16_t(work, records, from, to, count);
        break;
    case 4:
        fetch_uint32_t(work, records, from, to, count);
        break;
    default:
        fetch_uint64_t(work, records, from, to, count);
        break;
    }
}

/* Elements begin .. end - 1 of the result, fetched by their records. */
static void fetch(const sort *work, const char *records, const void *from, void *to, int64_t begin,
                  int64_t end) {
    const sort_plan *plan = work->plan;
    eddy_dtype dtype = work->in->dtype;
    int64_t record_bytes = (int64_t)eddy_sort_record_bytes(&plan->order);
    uint64_t gathered[PIECE];
    for (int64_t done = begin; done < end; done += PIECE) {
        int64_t count = eddy_min_i64(PIECE, end - done);
        void *target = eddy_chunk_at(to, dtype, done * plan->values_stride);
        bool is_dense = plan->values_stride == 1;
        fetch_piece(work, records + done * record_bytes, from, is_dense ? target : gathered, count);
        if (!is_dense)
            eddy_chunk_store(dtype, target, plan->values_stride, dtype, gathered, count);
    }
}

static const char *line_of(const sort *work, const eddy_walk_cursor *cursor) {
    return eddy_chunk_at(work->in->data, work->in->dtype, cursor->offsets[0]);
}

static char *spare_of(const sort *work, char *records) {
    const sort_plan *plan = work->plan;
    return records + (size_t)plan->count * eddy_sort_record_bytes(&plan->order);
}

static void put(const sort *work, const eddy_walk_cursor *cursor, const char *records,
                int64_t begin, int64_t end) {
    int64_t *indices = (int64_t *)work->indices->data + cursor->offsets[1];
    const eddy_sort_order order = work->plan->order;
    int64_t stride = work->plan->indices_stride;
    for (int64_t i = begin; i < end; i++)
        indices[i * stride] = eddy_sort_index(&order, records, i);
    if (work->values != NULL)
        fetch(work, records, line_of(work, cursor),
              eddy_chunk_at(work->values->data, work->values->dtype, cursor->offsets[2]), begin,
              end);
}

static void sort_line(const sort *work, const eddy_walk_cursor *cursor, char *records) {
    const sort_plan *plan = work->plan;
    const char *from = line_of(work, cursor);
    if (plan->is_choice) {
        eddy_sort_least(&plan->order, records, plan->kept, from, plan->in_stride, plan->count);
    } else {
        eddy_sort_load(&plan->order, records, from, plan->in_stride, 0, plan->count);
        eddy_sort_records(&plan->order, records, spare_of(work, records), plan->count);
    }
    put(work, cursor, records, 0, plan->kept);
}

/* Sorts up to EDDY_SORT_LANES lines, from the cursor's on. The memory holds their keys, which are later overwritten with
 * the records of one line; then the records of all lines; then the selected records. */
static void sort_lines(const sort *work, eddy_walk_cursor *cursor, char *records, int64_t lines) {
    const sort_plan *plan = work->plan;
    const eddy_sort_blocks *blocks = eddy_cpu_sort_blocks();
    uint32_t *keys = (uint32_t *)(void *)records;
    uint64_t *line = (uint64_t *)(void *)records;
    int64_t *all = (int64_t *)(void *)records + EDDY_SORT_LANES / 2 * plan->count, *sorted = all;
    eddy_walk_cursor from = *cursor;
    if (lines < EDDY_SORT_LANES)
        memset(keys, 0, (size_t)(EDDY_SORT_LANES * plan->count) * sizeof(*keys));
    for (int64_t l = 0; l < lines; l++) {
        eddy_sort_load_keys(&plan->order, keys + l * plan->count, line_of(work, &from),
                            plan->in_stride, plan->count);
        eddy_walk_next(&work->lines, &from, work->lines.rank);
    }
    blocks->join(all, keys, plan->count);
    if (plan->is_choice) {
        sorted = all + EDDY_SORT_LANES * plan->count;
        blocks->least(sorted, plan->kept, all, plan->count);
    } else {
        blocks->lines(all, plan->count);
    }
    for (int64_t l = 0; l < lines; l++) {
        for (int64_t i = 0; i < plan->kept; i++)
            line[i] = (uint64_t)sorted[i * EDDY_SORT_LANES + l] ^ EDDY_SORT_TURNED;
        put(work, cursor, records, 0, plan->kept);
        eddy_walk_next(&work->lines, cursor, work->lines.rank);
    }
}

static void sort_slice(void *context, int64_t begin, int64_t end) {
    const sort *work = context;
    const sort_plan *plan = work->plan;
    char *records = work->records + begin / plan->grain * plan->slice_bytes;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->lines, &cursor, begin);
    for (int64_t lines; begin < end; begin += lines) {
        lines = plan->is_side_by_side ? eddy_min_i64(EDDY_SORT_LANES, end - begin) : 1;
        if (plan->is_side_by_side) {
            sort_lines(work, &cursor, records, lines);
            continue;
        }
        sort_line(work, &cursor, records);
        eddy_walk_next(&work->lines, &cursor, work->lines.rank);
    }
}

/* ---- a long line ---- */

typedef struct long_line {
    const sort *work;
    eddy_walk_cursor cursor;
} long_line;

static void load_slice(void *context, int64_t begin, int64_t end) {
    const long_line *line = context;
    const sort *work = line->work;
    const sort_plan *plan = work->plan;
    const char *from = line_of(work, &line->cursor) +
                       begin * plan->in_stride * (int64_t)eddy_dtype_bytes(work->in->dtype);
    eddy_sort_load(&plan->order, work->records, from, plan->in_stride, begin, end - begin);
}

static void put_slice(void *context, int64_t begin, int64_t end) {
    const long_line *line = context;
    put(line->work, &line->cursor, line->work->records, begin, end);
}

static void sort_long_lines(const eddy_kernel_call *call, const sort *work) {
    const sort_plan *plan = work->plan;
    eddy_kernel_team *team = call->team;
    long_line line = {.work = work};
    for (int64_t l = 0; l < plan->line_count; l++) {
        eddy_walk_seek(&work->lines, &line.cursor, l);
        team->parallel_for(team, plan->count, SLICE_ELEMENTS, load_slice, &line);
        eddy_sort_records_by_team(team, &plan->order, work->records, spare_of(work, work->records),
                                  plan->count);
        team->parallel_for(team, plan->kept, SLICE_ELEMENTS, put_slice, &line);
    }
}

static void sort_run(const eddy_kernel_call *call) {
    const sort_plan *plan = call->plan;
    if (plan->line_count == 0)
        return;
    sort work; /* set one by one: a walk is too large to be cleared for nothing */
    work.plan = plan;
    work.in = &call->views[0];
    work.values = values_of(call);
    work.indices = &call->views[call->view_count - 1];
    work.records = call->workspace;
    (void)eddy_walk_read(&work.lines, plan->words);
    if (plan->is_long)
        sort_long_lines(call, &work);
    else if (plan->line_count <= plan->grain)
        sort_slice(&work, 0, plan->line_count);
    else
        call->team->parallel_for(call->team, plan->line_count, plan->grain, sort_slice, &work);
}

static bool is_short(const eddy_op_view *in, int32_t axis) {
    int64_t length = along(in, in->shape, axis);
    return eddy_dtype_size(in->dtype) <= 4 && length <= SHORT_COUNT &&
           eddy_kernel_view_count(in) >= SHORT_LINES * length;
}

/* A pass over the elements for each byte of their keys, and one to fetch them. Short lines side by side take less time. */
static int64_t cost_along(const eddy_kernel_call *call, int32_t axis) {
    const eddy_op_view *in = &call->views[0];
    int64_t each = is_short(in, axis) ? 6500 : 2000 + 2000 * eddy_dtype_size(in->dtype);
    return 200000 + eddy_kernel_view_count(in) * each;
}

static int64_t topk_cost(const eddy_kernel_call *call, int32_t axis) {
    int64_t count = eddy_kernel_view_count(&call->views[0]),
            kept = eddy_kernel_view_count(&call->views[1]);
    int64_t of_line = along(&call->views[1], call->views[1].shape, axis);
    if (kept >= count / CHOICE_PART)
        return cost_along(call, axis);
    if (is_short(&call->views[0], axis) && of_line <= SHORT_KEPT)
        return 200000 + count * (1900 + 30 * of_line);
    return 200000 + count * 2000 + kept * 20000;
}

static eddy_status sort_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_sort *attributes = call->attributes;
    sort_prepare_of(call, plan, attributes->axis, attributes->is_descending);
    plan->cost_ps = cost_along(call, attributes->axis);
    return EDDY_OK;
}

/* The first elements are the largest ones, unless the smallest are required. */
static eddy_status topk_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_topk *attributes = call->attributes;
    sort_prepare_of(call, plan, attributes->axis, !attributes->is_smallest);
    plan->cost_ps = topk_cost(call, attributes->axis);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_sort = {
    .name = "sort", .run = sort_run, .prepare = sort_prepare, .cost_base_ps = 200000};
const eddy_kernel eddy_cpu_topk = {
    .name = "topk", .run = sort_run, .prepare = topk_prepare, .cost_base_ps = 200000};
