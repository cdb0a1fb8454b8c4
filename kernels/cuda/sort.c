/* sort, argsort and topk: lines of up to a tile in one launch; longer ones in two spaces of records, from one to the other with each merge. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/sorted.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_sort};

#define NARROW EDDY_CUDA_SORTED_NARROW
#define WIDE EDDY_CUDA_SORTED_WIDE
#define WIDTHS EDDY_CUDA_SORTED_WIDTHS
enum { TILE, MERGE, PUT, STEPS };
static _Atomic(void *) loaded[STEPS][WIDTHS][EDDY_CUDA_DEVICES];

#define FUNCTION(name, step, width)                                                                \
    { "eddy_sort_" name, &image, loaded[step][width] }
static const eddy_cuda_function functions[STEPS][WIDTHS] = {
    [TILE] = {FUNCTION("tile_narrow", TILE, NARROW), FUNCTION("tile_wide", TILE, WIDE)},
    [MERGE] = {FUNCTION("merge_narrow", MERGE, NARROW), FUNCTION("merge_wide", MERGE, WIDE)},
    [PUT] = {FUNCTION("put_narrow", PUT, NARROW), FUNCTION("put_wide", PUT, WIDE)},
};

typedef struct sort {
    const eddy_kernel_call *call;
    int width;
    void *spaces[2]; /* for records, where lines are merged: the result is in the first */
    eddy_cuda_sort_call p;
} sort;

/* ---- what is to be sorted ---- */

static eddy_cuda_sort_kind kind_of(eddy_dtype dtype) {
    switch (dtype) {
    case EDDY_F16:
        return EDDY_CUDA_SORT_F16;
    case EDDY_BF16:
        return EDDY_CUDA_SORT_BF16;
    case EDDY_F32:
        return EDDY_CUDA_SORT_F32;
    case EDDY_F64:
        return EDDY_CUDA_SORT_F64;
    case EDDY_U8:
    case EDDY_BOOL:
        return EDDY_CUDA_SORT_UNSIGNED;
    default:
        return EDDY_CUDA_SORT_SIGNED;
    }
}

/* A record of one word has 32 bits for the key and 32 for the index. */
int eddy_cuda_sorted_width(eddy_dtype dtype, int64_t count) {
    return eddy_dtype_bytes(dtype) <= 4 && count <= UINT32_MAX ? NARROW : WIDE;
}

static size_t record_bytes(int width) {
    return width == NARROW ? sizeof(uint64_t) : sizeof(eddy_cuda_sort_wide);
}

size_t eddy_cuda_sorted_bytes(eddy_dtype dtype, int64_t count) {
    return (size_t)count * record_bytes(eddy_cuda_sorted_width(dtype, count));
}

/* The lines: in, indices, values, without the axis. */
static void describe_lines(eddy_cuda_sort_call *p, const eddy_op_view *operands, int32_t axis) {
    const eddy_op_view *in = &operands[EDDY_CUDA_SORT_IN];
    eddy_walk lines;
    eddy_walk_init(&lines, 0, NULL);
    lines.operand_count = EDDY_CUDA_SORT_OPERANDS;
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t strides[EDDY_CUDA_SORT_OPERANDS];
        for (int o = 0; o < EDDY_CUDA_SORT_OPERANDS; o++) {
            strides[o] = operands[o].strides[d] * eddy_dtype_size(operands[o].dtype);
            if (d == axis)
                p->steps[o] = strides[o];
        }
        if (d != axis)
            eddy_walk_append(&lines, in->shape[d], strides, EDDY_CUDA_SORT_OPERANDS);
    }
    eddy_walk_sort(&lines);
    eddy_walk_collapse(&lines);
    p->lines = eddy_walk_count(&lines);
    p->rank = lines.rank;
    p->is_across = lines.rank > 0 &&
                   lines.strides[EDDY_CUDA_SORT_IN][lines.rank - 1] < p->steps[EDDY_CUDA_SORT_IN];
    for (int32_t d = 0; d < lines.rank; d++) {
        p->dims[d] = lines.dims[d];
        for (int o = 0; o < EDDY_CUDA_SORT_OPERANDS; o++)
            p->strides[o][d] = lines.strides[o][d];
    }
}

/* A tile is no longer than the line needs it, or a thread sorts, so that several lines fit a block. */
static int64_t tile_of(int64_t count) {
    int64_t tile = EDDY_CUDA_SORT_EACH;
    while (tile < count && tile < EDDY_CUDA_SORT_TILE)
        tile *= 2;
    return tile;
}

/* The lines along an axis, by EDDY_CUDA_SORT_IN, ... */
static void sort_init(sort *s, const eddy_kernel_call *call, const eddy_op_view *operands,
                      int32_t axis) {
    const eddy_op_view *in = &operands[EDDY_CUDA_SORT_IN],
                       *indices = &operands[EDDY_CUDA_SORT_INDICES];
    *s = (sort){.call = call, .width = eddy_cuda_sorted_width(in->dtype, in->shape[axis])};
    s->p = (eddy_cuda_sort_call){.in = in->data,
                                 .count = in->shape[axis],
                                 .kept = indices->shape[axis],
                                 .kind = kind_of(in->dtype),
                                 .element_bytes = (int32_t)eddy_dtype_size(in->dtype)};
    describe_lines(&s->p, operands, axis);
    s->p.run = tile_of(s->p.count);
    s->p.tiles = (s->p.count + s->p.run - 1) / s->p.run;
}

/* views: in, then indices or values and indices. A 0-dimensional tensor is a line of one element. */
static void sort_init_of_op(sort *s, const eddy_kernel_call *call, int32_t axis,
                            bool is_descending) {
    bool has_values = call->view_count == 3;
    eddy_op_view operands[EDDY_CUDA_SORT_OPERANDS];
    operands[EDDY_CUDA_SORT_IN] = eddy_kernel_view_with_axis(&call->views[0]);
    operands[EDDY_CUDA_SORT_INDICES] =
        eddy_kernel_view_with_axis(&call->views[call->view_count - 1]);
    operands[EDDY_CUDA_SORT_VALUES] = eddy_kernel_view_with_axis(&call->views[1]);
    sort_init(s, call, operands, axis);
    s->p.indices = operands[EDDY_CUDA_SORT_INDICES].data;
    s->p.values = has_values ? operands[EDDY_CUDA_SORT_VALUES].data : NULL;
    s->p.is_descending = is_descending;
}

/* ---- launches ---- */

static size_t space_bytes(const sort *s) {
    bool is_merged = s->p.count > EDDY_CUDA_SORT_TILE && s->p.kept > 0;
    return is_merged ? (size_t)(s->p.lines * s->p.count) * record_bytes(s->width) : 0;
}

static void launch(sort *s, int step, int64_t work, int64_t of_block) {
    eddy_cuda_launch(s->call, &functions[step][s->width], &s->p, sizeof(s->p),
                     eddy_cuda_blocks(s->call, work, of_block));
}

/* Runs get twice as long with each, until one is left. */
static int merges_of(const eddy_cuda_sort_call *p) {
    int merges = 0;
    for (int64_t run = p->run; run < p->count; run *= 2)
        merges++;
    return merges;
}

/* From tiles on, which are in the first space if the number of merges is even. What is not kept of runs is not moved. */
static void merge_all(sort *s) {
    eddy_cuda_sort_call *p = &s->p;
    for (int left = merges_of(p); left > 0; left--, p->run *= 2) {
        p->from = s->spaces[left % 2];
        p->to = s->spaces[(left - 1) % 2];
        int64_t pairs = (p->count + 2 * p->run - 1) / (2 * p->run);
        launch(s, MERGE, p->lines * pairs * eddy_min_i64(2 * p->run, p->kept), EDDY_CUDA_SORT_TILE);
    }
}

static void launch_tiles(sort *s) {
    launch(s, TILE, s->p.lines * s->p.tiles * s->p.run, EDDY_CUDA_SORT_TILE);
}

static void sort_all(sort *s) {
    eddy_cuda_sort_call *p = &s->p;
    if (p->lines == 0 || p->kept == 0)
        return;
    if (p->tiles == 1) {
        launch_tiles(s);
        return;
    }
    s->spaces[0] = s->call->workspace;
    s->spaces[1] = (char *)s->call->workspace + space_bytes(s);
    p->to = s->spaces[merges_of(p) % 2];
    launch_tiles(s);
    merge_all(s);
    p->from = s->spaces[0];
    launch(s, PUT, p->lines * p->kept, EDDY_CUDA_BLOCK);
}

void eddy_cuda_sorted_launch(const eddy_kernel_call *call, const eddy_op_view *line, void *first,
                             void *second) {
    eddy_op_view operands[] = {*line, *line, *line};
    sort s;
    sort_init(&s, call, operands, 0);
    s.spaces[0] = first;
    s.spaces[1] = second;
    s.p.to = s.spaces[merges_of(&s.p) % 2];
    launch_tiles(&s);
    merge_all(&s);
}

/* ---- kernels ---- */

static void sort_init_of_sort(sort *s, const eddy_kernel_call *call) {
    const eddy_attributes_sort *attributes = call->attributes;
    sort_init_of_op(s, call, attributes->axis, attributes->is_descending);
}

/* The first elements are the largest ones, unless the smallest are wanted. */
static void sort_init_of_topk(sort *s, const eddy_kernel_call *call) {
    const eddy_attributes_topk *attributes = call->attributes;
    sort_init_of_op(s, call, attributes->axis, !attributes->is_smallest);
}

static eddy_status prepare(const sort *s, eddy_kernel_plan *plan) {
    plan->workspace_bytes = 2 * space_bytes(s);
    plan->cost_ps = eddy_cost_views_ps(s->call);
    return EDDY_OK;
}

static eddy_status prepare_sort(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    sort s;
    sort_init_of_sort(&s, call);
    return prepare(&s, plan);
}

static void run_sort(const eddy_kernel_call *call) {
    sort s;
    sort_init_of_sort(&s, call);
    sort_all(&s);
}

static eddy_status prepare_topk(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    sort s;
    sort_init_of_topk(&s, call);
    return prepare(&s, plan);
}

static void run_topk(const eddy_kernel_call *call) {
    sort s;
    sort_init_of_topk(&s, call);
    sort_all(&s);
}

const eddy_kernel eddy_cuda_sort = {.name = "sort", .run = run_sort, .prepare = prepare_sort};
const eddy_kernel eddy_cuda_topk = {.name = "topk", .run = run_topk, .prepare = prepare_topk};
