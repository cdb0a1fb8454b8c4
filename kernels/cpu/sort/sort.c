/* sort, argsort, topk along an axis. Records (sort_key.h) are sorted, and elements fetched by them, so that values are the very
 * elements. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/sort/sort_block.h>
#include <kernels/cpu/sort/sort_key.h>
#include <kernels/cpu/sort/sort_team.h>
#include <kernels/cpu/walk.h>
#include <string.h>

/* Elements worth a slice of their own. */
#define SLICE_ELEMENTS 16384
/* Slices have records of their own: no more of them than this, nor than fit these bytes. */
#define SLICES 16
#define SLICE_BYTES ((size_t)128 << 20)
/* A choice of more than a part of the elements sorts them all. */
#define CHOICE_PART 8
/* Lines of so many elements at most are sorted side by side, where there are some. */
#define SHORT_COUNT 512
#define SHORT_LINES 3
/* So many of their elements at most are chosen side by side. */
#define SHORT_KEPT 32
/* Long lines are sorted by the team where there are fewer than this. */
#define FEW_LINES 4
#define PIECE 512

typedef struct sort {
    const eddy_op_view *in, *values, *indices;     /* values: NULL where they are not asked for */
    eddy_walk lines;                               /* in, indices, values; without the axis */
    int64_t line_count, count, kept;               /* elements of a line, and of a line of the result */
    int64_t in_stride, values_stride, indices_stride;
    eddy_sort_order order;
    bool is_choice;       /* of the first `kept`, without sorting the rest */
    bool is_side_by_side; /* EDDY_SORT_LANES lines at once */
    int64_t grain;        /* lines of a slice */
    size_t slice_bytes;
    char *records; /* [slice] */
} sort;

static int64_t round_line(int64_t bytes) {
    return (bytes + 63) & ~(int64_t)63;
}

/* Memory for the records of one line, and as much again to sort them; for the keys of lines side by side, their records, and those
 * chosen. */
static void choose_slices(sort *work) {
    int64_t records = work->is_choice ? work->kept : 2 * work->count;
    if (work->is_side_by_side)
        records = (EDDY_SORT_LANES / 2 + EDDY_SORT_LANES) * work->count +
                  (work->is_choice ? EDDY_SORT_LANES * work->kept : 0);
    work->slice_bytes = (size_t)round_line(records * (int64_t)eddy_sort_record_bytes(&work->order));
    int64_t slices = SLICES;
    while (slices > 1 && (size_t)slices * work->slice_bytes > SLICE_BYTES)
        slices /= 2;
    int64_t per_slice = (work->line_count + slices - 1) / slices;
    work->grain = eddy_max_i64(per_slice, SLICE_ELEMENTS / eddy_max_i64(1, work->count));
    work->grain = eddy_max_i64(1, work->grain);
    if (work->is_side_by_side)
        work->grain = (work->grain + EDDY_SORT_LANES - 1) / EDDY_SORT_LANES * EDDY_SORT_LANES;
}

/* A tensor of rank 0 is a line of one element. */
static int64_t along(const eddy_op_view *view, const int64_t *of_dims, int32_t axis) {
    return view->rank == 0 ? 1 : of_dims[axis];
}

/* views: in, then indices or values and indices. */
static void sort_init(sort *work, const eddy_kernel_call *call, int32_t axis, bool is_descending) {
    work->in = &call->views[0];
    work->values = call->view_count == 3 ? &call->views[1] : NULL;
    work->indices = &call->views[call->view_count - 1];
    work->count = along(work->in, work->in->shape, axis);
    work->kept = along(work->indices, work->indices->shape, axis);
    work->in_stride = along(work->in, work->in->strides, axis);
    work->indices_stride = along(work->indices, work->indices->strides, axis);
    work->values_stride = work->values != NULL ? along(work->values, work->values->strides, axis) : 0;
    const eddy_op_view *values = work->values != NULL ? work->values : work->indices;
    eddy_walk_init(&work->lines, 0, NULL);
    work->lines.operand_count = 3;
    for (int32_t d = 0; d < work->in->rank; d++) {
        const int64_t strides[] = {work->in->strides[d], work->indices->strides[d], values->strides[d]};
        if (d != axis)
            eddy_walk_append(&work->lines, work->in->shape[d], strides, 3);
    }
    eddy_walk_sort(&work->lines);
    eddy_walk_collapse(&work->lines);
    work->line_count = eddy_walk_count(&work->lines);
    work->order = eddy_sort_order_of(work->in->dtype, work->count, is_descending);
    work->is_choice = work->kept < work->count / CHOICE_PART;
    work->is_side_by_side = work->order.is_narrow && work->count <= SHORT_COUNT && work->line_count >= SHORT_LINES &&
                            (!work->is_choice || work->kept <= SHORT_KEPT);
    choose_slices(work);
    work->records = call->workspace;
}

#define FETCH(type)                                                                                                    \
    static void fetch_##type(const sort *work, const void *records, const void *from, void *to, int64_t count) {       \
        const type *elements = from;                                                                                   \
        type *fetched = to;                                                                                            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            fetched[i] = elements[eddy_sort_index(&work->order, records, i) * work->in_stride];                        \
    }

FETCH(uint8_t)
FETCH(uint16_t)
FETCH(uint32_t)
FETCH(uint64_t)

/* `count` elements by their records, side by side. */
static void fetch_piece(const sort *work, const void *records, const void *from, void *to, int64_t count) {
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

/* Elements begin .. end of the result, fetched by records. */
static void fetch(const sort *work, const char *records, const void *from, void *to, int64_t begin, int64_t end) {
    eddy_dtype dtype = work->in->dtype;
    int64_t record_bytes = (int64_t)eddy_sort_record_bytes(&work->order);
    uint64_t gathered[PIECE];
    for (int64_t done = begin; done < end; done += PIECE) {
        int64_t count = eddy_min_i64(PIECE, end - done);
        void *target = eddy_chunk_at(to, dtype, done * work->values_stride);
        bool is_dense = work->values_stride == 1;
        fetch_piece(work, records + done * record_bytes, from, is_dense ? target : gathered, count);
        if (!is_dense)
            eddy_chunk_store(dtype, target, work->values_stride, dtype, gathered, count);
    }
}

static const char *line_of(const sort *work, const eddy_walk_cursor *cursor) {
    return eddy_chunk_at(work->in->data, work->in->dtype, cursor->offsets[0]);
}

static char *spare_of(const sort *work, char *records) {
    return records + (size_t)work->count * eddy_sort_record_bytes(&work->order);
}

static void put(const sort *work, const eddy_walk_cursor *cursor, const char *records, int64_t begin, int64_t end) {
    int64_t *indices = (int64_t *)work->indices->data + cursor->offsets[1];
    for (int64_t i = begin; i < end; i++)
        indices[i * work->indices_stride] = eddy_sort_index(&work->order, records, i);
    if (work->values != NULL)
        fetch(work, records, line_of(work, cursor),
              eddy_chunk_at(work->values->data, work->values->dtype, cursor->offsets[2]), begin, end);
}

static void sort_line(const sort *work, const eddy_walk_cursor *cursor, char *records) {
    const char *from = line_of(work, cursor);
    if (work->is_choice) {
        eddy_sort_least(&work->order, records, work->kept, from, work->in_stride, work->count);
    } else {
        eddy_sort_load(&work->order, records, from, work->in_stride, 0, work->count);
        eddy_sort_records(&work->order, records, spare_of(work, records), work->count);
    }
    put(work, cursor, records, 0, work->kept);
}

/* Up to EDDY_SORT_LANES lines from the cursor's on. In memory come their keys, where later a line's records are; then the numbers of
 * all; then those chosen. */
static void sort_lines(const sort *work, eddy_walk_cursor *cursor, char *records, int64_t lines) {
    const eddy_sort_blocks *blocks = eddy_cpu_sort_blocks();
    uint32_t *keys = (uint32_t *)(void *)records;
    uint64_t *line = (uint64_t *)(void *)records;
    int64_t *all = (int64_t *)(void *)records + EDDY_SORT_LANES / 2 * work->count, *sorted = all;
    eddy_walk_cursor from = *cursor;
    if (lines < EDDY_SORT_LANES)
        memset(keys, 0, (size_t)(EDDY_SORT_LANES * work->count) * sizeof(*keys));
    for (int64_t l = 0; l < lines; l++) {
        eddy_sort_load_keys(&work->order, keys + l * work->count, line_of(work, &from), work->in_stride, work->count);
        eddy_walk_next(&work->lines, &from, work->lines.rank);
    }
    blocks->join(all, keys, work->count);
    if (work->is_choice) {
        sorted = all + EDDY_SORT_LANES * work->count;
        blocks->least(sorted, work->kept, all, work->count);
    } else {
        blocks->lines(all, work->count);
    }
    for (int64_t l = 0; l < lines; l++) {
        for (int64_t i = 0; i < work->kept; i++)
            line[i] = (uint64_t)sorted[i * EDDY_SORT_LANES + l] ^ EDDY_SORT_TURNED;
        put(work, cursor, records, 0, work->kept);
        eddy_walk_next(&work->lines, cursor, work->lines.rank);
    }
}

static void sort_slice(void *context, int64_t begin, int64_t end) {
    const sort *work = context;
    char *records = work->records + (size_t)(begin / work->grain) * work->slice_bytes;
    eddy_walk_cursor cursor;
    eddy_walk_seek(&work->lines, &cursor, begin);
    for (int64_t lines; begin < end; begin += lines) {
        lines = work->is_side_by_side ? eddy_min_i64(EDDY_SORT_LANES, end - begin) : 1;
        if (work->is_side_by_side) {
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
    const char *from =
        line_of(work, &line->cursor) + begin * work->in_stride * (int64_t)eddy_dtype_bytes(work->in->dtype);
    eddy_sort_load(&work->order, work->records, from, work->in_stride, begin, end - begin);
}

static void put_slice(void *context, int64_t begin, int64_t end) {
    const long_line *line = context;
    put(line->work, &line->cursor, line->work->records, begin, end);
}

static void sort_long_lines(const eddy_kernel_call *call, const sort *work) {
    eddy_kernel_team *team = call->team;
    long_line line = {.work = work};
    for (int64_t l = 0; l < work->line_count; l++) {
        eddy_walk_seek(&work->lines, &line.cursor, l);
        team->parallel_for(team, work->count, SLICE_ELEMENTS, load_slice, &line);
        eddy_sort_records_by_team(team, &work->order, work->records, spare_of(work, work->records), work->count);
        team->parallel_for(team, work->kept, SLICE_ELEMENTS, put_slice, &line);
    }
}

static void sort_run_of(const eddy_kernel_call *call, int32_t axis, bool is_descending) {
    if (eddy_view_count(&call->views[call->view_count - 1]) == 0)
        return;
    sort work;
    sort_init(&work, call, axis, is_descending);
    if (!work.is_choice && work.count >= EDDY_SORT_LONG && work.line_count < FEW_LINES)
        sort_long_lines(call, &work);
    else if (work.line_count <= work.grain)
        sort_slice(&work, 0, work.line_count);
    else
        call->team->parallel_for(call->team, work.line_count, work.grain, sort_slice, &work);
}

static size_t sort_workspace_of(const eddy_kernel_call *call, int32_t axis) {
    if (eddy_view_count(&call->views[call->view_count - 1]) == 0)
        return 0;
    sort work;
    sort_init(&work, call, axis, false);
    return work.slice_bytes * (size_t)((work.line_count + work.grain - 1) / work.grain);
}

static void sort_run(const eddy_kernel_call *call) {
    const eddy_attributes_sort *attributes = call->attributes;
    sort_run_of(call, attributes->axis, attributes->descending);
}

static size_t sort_workspace(const eddy_kernel_call *call) {
    return sort_workspace_of(call, ((const eddy_attributes_sort *)call->attributes)->axis);
}

/* topk's least are the largest unless the smallest are asked for. */
static void topk_run(const eddy_kernel_call *call) {
    const eddy_attributes_topk *attributes = call->attributes;
    sort_run_of(call, attributes->axis, !attributes->smallest);
}

static size_t topk_workspace(const eddy_kernel_call *call) {
    return sort_workspace_of(call, ((const eddy_attributes_topk *)call->attributes)->axis);
}

static bool is_short(const eddy_op_view *in, int32_t axis) {
    int64_t length = along(in, in->shape, axis);
    return eddy_dtype_size(in->dtype) <= 4 && length <= SHORT_COUNT && eddy_view_count(in) >= SHORT_LINES * length;
}

/* A pass over the elements for each byte of their keys, and one to fetch them; short lines side by side take less. */
static int64_t cost_along(const eddy_kernel_call *call, int32_t axis) {
    const eddy_op_view *in = &call->views[0];
    int64_t each = is_short(in, axis) ? 6500 : 2000 + 2000 * eddy_dtype_size(in->dtype);
    return 200000 + eddy_view_count(in) * each;
}

static int64_t sort_cost(const eddy_kernel_call *call) {
    return cost_along(call, ((const eddy_attributes_sort *)call->attributes)->axis);
}

static int64_t topk_cost(const eddy_kernel_call *call) {
    int64_t count = eddy_view_count(&call->views[0]), kept = eddy_view_count(&call->views[1]);
    int32_t axis = ((const eddy_attributes_topk *)call->attributes)->axis;
    int64_t of_line = along(&call->views[1], call->views[1].shape, axis);
    if (kept >= count / CHOICE_PART)
        return cost_along(call, axis);
    if (is_short(&call->views[0], axis) && of_line <= SHORT_KEPT)
        return 200000 + count * (1900 + 30 * of_line);
    return 200000 + count * 2000 + kept * 20000;
}

const eddy_kernel eddy_cpu_sort = {
    .name = "sort", .run = sort_run, .workspace = sort_workspace, .cost_base_ps = 200000, .cost = sort_cost};
const eddy_kernel eddy_cpu_topk = {
    .name = "topk", .run = topk_run, .workspace = topk_workspace, .cost_base_ps = 200000, .cost = topk_cost};
