/* Copy and cast. Dims are sorted by the target's strides, so that memory is written in ascending order. A source that is
 * contiguous along another dim (a transpose) is copied in square tiles. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/move/move_block.h>
#include <kernels/cpu/walk.h>

/* For estimates: the factor for far memory, at most. */
#define APART_MOST 6
#define SLICE_BYTES (256 * 1024)
/* Side of a transposed tile: 32 x 32 elements of 8 bytes, read and written, fit the first-level cache. */
#define TILE 32
/* From this many bytes on, the next tile is prefetched while a tile is transposed. Less is usually in the second-level
 * cache. */
#define PREFETCHED_BYTES (1 << 20)

/* How a view is copied, for plans. The walk's words follow, except for line_slice. */
typedef struct copy_plan {
    int64_t count, grain; /* what slices number: elements or bands */
    void (*slice)(void *context, int64_t begin, int64_t end);
    int64_t target_stride, source_stride; /* of the innermost dim */
    eddy_dtype to, from;
} copy_plan;

/* The words of a copy_plan. */
#define HEAD ((int64_t)(sizeof(copy_plan) / sizeof(int64_t)))
_Static_assert(HEAD + EDDY_WALK_WORDS_MOST(2) == EDDY_COPY_WORDS_MOST, "copy.h says so");
_Static_assert(EDDY_COPY_WORDS_MOST * sizeof(int64_t) <= EDDY_KERNEL_PLAN_BYTES, "fits a plan");

typedef struct copy {
    copy_plan plan;
    void *target;
    const void *source;
    eddy_walk walk; /* target, source */
} copy;

/* Both sides have one stride: no walk is needed. */
static void line_slice(void *context, int64_t begin, int64_t end) {
    const copy *work = context;
    const copy_plan *plan = &work->plan;
    eddy_chunk_copy(plan->to, eddy_chunk_at(work->target, plan->to, begin * plan->target_stride),
                    plan->target_stride, plan->from,
                    eddy_chunk_at(work->source, plan->from, begin * plan->source_stride),
                    plan->source_stride, end - begin);
}

static void copy_slice(void *context, int64_t begin, int64_t end) {
    const copy *work = context;
    const eddy_walk *walk = &work->walk;
    eddy_dtype to = work->plan.to, from = work->plan.from;
    int64_t target_stride = work->plan.target_stride, source_stride = work->plan.source_stride;
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        eddy_walk_prefetch(walk, &cursor, 1, work->source, eddy_dtype_size(from));
        eddy_chunk_copy(to, eddy_chunk_at(work->target, to, cursor.offsets[0]), target_stride, from,
                        eddy_chunk_at(work->source, from, cursor.offsets[1]), source_stride, run);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* Rows of elements of 4 or 8 bytes that run backwards in the source. The function is looked up once, not for each row. */
static bool is_reversed(const copy *work) {
    return work->plan.from == work->plan.to && eddy_dtype_size(work->plan.to) >= 4 &&
           work->plan.target_stride == 1 && work->plan.source_stride == -1;
}

static void reverse_slice(void *context, int64_t begin, int64_t end) {
    const copy *work = context;
    const eddy_walk *walk = &work->walk;
    const eddy_move_blocks *blocks = eddy_cpu_move_blocks();
    int64_t bytes = eddy_dtype_size(work->plan.to);
    void (*reverse)(void *, const void *, int64_t) =
        bytes == 4 ? blocks->reverse_32 : blocks->reverse_64;
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    for (int64_t run; begin < end; begin += run) {
        run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        eddy_walk_prefetch(walk, &cursor, 1, work->source, bytes);
        reverse((char *)work->target + cursor.offsets[0] * bytes,
                (const char *)work->source + cursor.offsets[1] * bytes, run);
        eddy_walk_advance(walk, &cursor, run);
    }
}

/* Indices that interleave two vectors: their lower halves, and their upper halves. */
#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#define UNROLLED _Pragma("GCC unroll 16")

/* target[i * row + j] = source[i + j * column], for i < height and j < width: in squares whose rows fill a vector. A square is transposed in log2(SIDE) steps:
 * each step interleaves row k with row k + SIDE / 2, which gives rows 2 k and 2 k + 1. */
#define TRANSPOSE(bits, SIDE, LOW, HIGH)                                                           \
    typedef uint##bits##_t row_##bits                                                              \
        __attribute__((vector_size(16), aligned((bits) / 8), may_alias));                          \
    static inline __attribute__((always_inline)) void square_##bits(                               \
        uint##bits##_t *target, int64_t row, const uint##bits##_t *source, int64_t column) {       \
        row_##bits rows[SIDE], joined[SIDE];                                                       \
        UNROLLED for (int k = 0; k < (SIDE); k++) {                                                \
            rows[k] = *(const row_##bits *)(source + k * column);                                  \
        }                                                                                          \
        UNROLLED for (int side = 1; side < (SIDE); side *= 2) {                                    \
            UNROLLED for (int k = 0; k < (SIDE) / 2; k++) {                                        \
                joined[2 * k] = __builtin_shufflevector(rows[k], rows[k + (SIDE) / 2], LOW);       \
                joined[2 * k + 1] = __builtin_shufflevector(rows[k], rows[k + (SIDE) / 2], HIGH);  \
            }                                                                                      \
            UNROLLED for (int k = 0; k < (SIDE); k++) {                                            \
                rows[k] = joined[k];                                                               \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int k = 0; k < (SIDE); k++) {                                                \
            *(row_##bits *)(target + k * row) = rows[k];                                           \
        }                                                                                          \
    }                                                                                              \
    static void transpose_##bits(uint##bits##_t *restrict target, int64_t row,                     \
                                 const uint##bits##_t *restrict source, int64_t column,            \
                                 int64_t height, int64_t width) {                                  \
        int64_t whole = height / (SIDE) * (SIDE), i = 0;                                           \
        for (; i < whole; i += (SIDE)) {                                                           \
            int64_t j = 0;                                                                         \
            for (; j + (SIDE) <= width; j += (SIDE))                                               \
                square_##bits(target + i * row + j, row, source + i + j * column, column);         \
            for (; j < width; j++)                                                                 \
                for (int64_t k = i; k < i + (SIDE); k++)                                           \
                    target[k * row + j] = source[k + j * column];                                  \
        }                                                                                          \
        for (; i < height; i++)                                                                    \
            for (int64_t j = 0; j < width; j++)                                                    \
                target[i * row + j] = source[i + j * column];                                      \
    }

TRANSPOSE(8, 16, LOW_16, HIGH_16)
TRANSPOSE(16, 8, LOW_8, HIGH_8)
TRANSPOSE(32, 4, LOW_4, HIGH_4)
TRANSPOSE(64, 2, LOW_2, HIGH_2)

static void transpose_tile(eddy_dtype dtype, void *target, int64_t row, const void *source,
                           int64_t column, int64_t height, int64_t width) {
    switch (eddy_dtype_bytes(dtype)) {
    case 1:
        transpose_8(target, row, source, column, height, width);
        break;
    case 2:
        transpose_16(target, row, source, column, height, width);
        break;
    case 4:
        transpose_32(target, row, source, column, height, width);
        break;
    default:
        transpose_64(target, row, source, column, height, width);
        break;
    }
}

/* Prefetches the runs of the source that a tile reads, `height` elements each. */
static void prefetch_tile(eddy_dtype dtype, const char *source, int64_t column, int64_t height,
                          int64_t width) {
    int64_t bytes = eddy_dtype_size(dtype);
    for (int64_t j = 0; j < width; j++)
        eddy_prefetch((uintptr_t)source + (uintptr_t)(j * column * bytes), height * bytes);
}

/* Slices number bands. A band is TILE indices of the tiled dim, at one index of the outer dims. */
static void transpose_slice(void *context, int64_t begin, int64_t end) {
    const copy *work = context;
    const eddy_walk *walk = &work->walk; /* outer dims, then the tiled and the inner dim */
    int32_t tiled = walk->rank, inner = tiled + 1;
    int64_t height = walk->dims[tiled], width = walk->dims[inner],
            bands = (height + TILE - 1) / TILE;
    int64_t row = walk->strides[0][tiled], column = walk->strides[1][inner];
    eddy_dtype dtype = work->plan.to;
    bool is_prefetched = height * width * eddy_dtype_size(dtype) >= PREFETCHED_BYTES;
    for (int64_t band = begin; band < end; band++) {
        eddy_walk_cursor cursor;
        eddy_walk_seek(walk, &cursor, band / bands);
        int64_t i = band % bands * TILE;
        char *target = eddy_chunk_at(work->target, dtype, cursor.offsets[0] + i * row);
        const char *source = eddy_chunk_at(work->source, dtype, cursor.offsets[1] + i);
        int64_t rows = eddy_min_i64(TILE, height - i);
        for (int64_t j = 0; j < width; j += TILE) {
            const char *from = eddy_chunk_at(source, dtype, j * column);
            if (is_prefetched && j + TILE < width)
                prefetch_tile(dtype, eddy_chunk_at(from, dtype, TILE * column), column, rows,
                              eddy_min_i64(TILE, width - j - TILE));
            transpose_tile(dtype, eddy_chunk_at(target, dtype, j), row, from, column, rows,
                           eddy_min_i64(TILE, width - j));
        }
    }
}

/* Moves the dim along which the source is contiguous next to the inner one. False if the copy is not a transpose. */
static bool find_transpose(copy *work) {
    eddy_walk *walk = &work->walk;
    int32_t inner = walk->rank - 1;
    if (walk->rank < 2 || work->plan.from != work->plan.to || walk->strides[0][inner] != 1 ||
        walk->strides[1][inner] == 1 || walk->strides[1][inner] == 0 || walk->dims[inner] < 4)
        return false;
    int32_t tiled = 0;
    while (tiled < inner && (walk->strides[1][tiled] != 1 || walk->dims[tiled] < 4))
        tiled++;
    if (tiled == inner)
        return false;
    for (; tiled < inner - 1; tiled++) {
        int64_t dim = walk->dims[tiled];
        walk->dims[tiled] = walk->dims[tiled + 1];
        walk->dims[tiled + 1] = dim;
        for (int32_t o = 0; o < 2; o++) {
            int64_t stride = walk->strides[o][tiled];
            walk->strides[o][tiled] = walk->strides[o][tiled + 1];
            walk->strides[o][tiled + 1] = stride;
        }
    }
    return true;
}

/* Set one by one: a walk is too large to be cleared for nothing. Data pointers are set later. */
static void copy_init(copy *work, const eddy_op_view *source, const eddy_op_view *target) {
    eddy_walk *walk = &work->walk;
    work->plan = (copy_plan){
        .count = eddy_kernel_view_count(target), .to = target->dtype, .from = source->dtype};
    eddy_walk_init(walk, target->rank, target->shape);
    eddy_walk_add(walk, target->strides, 1);
    eddy_walk_add(walk, source->strides, 1);
    eddy_walk_sort(walk);
    eddy_walk_collapse(walk);
    work->plan.grain = SLICE_BYTES / eddy_dtype_size(target->dtype);
    work->plan.target_stride = eddy_walk_inner_stride(walk, 0);
    work->plan.source_stride = eddy_walk_inner_stride(walk, 1);
    if (work->plan.count > 0 && find_transpose(work)) {
        int64_t height = walk->dims[walk->rank - 2], width = walk->dims[walk->rank - 1];
        work->plan.slice = transpose_slice;
        work->plan.count = work->plan.count / (height * width) * ((height + TILE - 1) / TILE);
        work->plan.grain = eddy_max_i64(1, work->plan.grain / (TILE * width));
    } else {
        work->plan.slice = is_reversed(work) ? reverse_slice
                           : walk->rank <= 1 ? line_slice
                                             : copy_slice;
    }
}

static void copy_all(copy *work, eddy_kernel_team *team, const void *source, void *target) {
    const copy_plan *plan = &work->plan;
    work->source = source;
    work->target = target;
    if (plan->count == 0)
        return;
    if (plan->slice == transpose_slice)
        work->walk.rank -= 2; /* bands are counted over the outer dims */
    if (team == NULL || plan->count <= plan->grain)
        plan->slice(work, 0, plan->count);
    else
        team->parallel_for(team, plan->count, plan->grain, plan->slice, work);
}

void eddy_copy_view(eddy_kernel_team *team, const eddy_op_view *source,
                    const eddy_op_view *target) {
    copy work;
    copy_init(&work, source, target);
    copy_all(&work, team, source->data, target->data);
}

int64_t *eddy_copy_prepare(const eddy_op_view *source, const eddy_op_view *target, int64_t *words) {
    copy work;
    copy_init(&work, source, target);
    *(copy_plan *)(void *)words = work.plan;
    return work.plan.slice == line_slice ? words + HEAD : eddy_walk_write(&work.walk, words + HEAD);
}

void eddy_copy_run(const int64_t *words, eddy_kernel_team *team, const void *source, void *target) {
    copy work;
    work.plan = *(const copy_plan *)(const void *)words;
    if (work.plan.slice != line_slice)
        (void)eddy_walk_read(&work.walk, words + HEAD);
    copy_all(&work, team, source, target);
}

/* Distance in memory of elements that are neighbours along the last axis. */
static int64_t distance(const eddy_op_view *view) {
    int64_t stride = view->rank == 0 ? 1 : view->strides[view->rank - 1];
    return stride < 0 ? -stride : stride;
}

/* Elements that are not contiguous take longer. If they are far apart, their cache lines and pages are loaded but little
 * of them is used. */
static int64_t copy_cost(const eddy_kernel_call *call) {
    const eddy_op_view *source = &call->views[0], *target = &call->views[1];
    int64_t count = eddy_kernel_view_count(target);
    int64_t apart = eddy_max_i64(1, eddy_max_i64(distance(source), distance(target)));
    int64_t base_ps = apart > 1 ? 140000 : call->kernel->cost_base_ps;
    int64_t element_ps = apart > 1 ? 240 : call->kernel->cost_element_ps;
    int64_t bytes = eddy_cost_bytes(count, source->dtype) + eddy_cost_bytes(count, target->dtype);
    return base_ps + eddy_cost_ps(count, element_ps) +
           eddy_cost_far_ps(bytes) * eddy_min_i64(apart, APART_MOST);
}

static eddy_status copy_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    int64_t *words = plan->memory,
            *end = eddy_copy_prepare(&call->views[0], &call->views[1], words);
    plan->bytes = (size_t)(end - words) * sizeof(*words);
    plan->cost_ps = copy_cost(call);
    return EDDY_OK;
}

static void copy_run(const eddy_kernel_call *call) {
    eddy_copy_run(call->plan, call->team, call->views[0].data, call->views[1].data);
}

const eddy_kernel eddy_cpu_copy = {.name = "copy",
                                   .run = copy_run,
                                   .prepare = copy_prepare,
                                   .cost_base_ps = 40000,
                                   .cost_element_ps = 100};
