/* masked_fill, masked_select, masked_scatter. The length of masked_select's result is known only after counting, so the
 * kernel has two entries. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/index/mask_block.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/move/copy.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_ELEMENTS 65536

/* ---- masked_fill ---- */

typedef struct filling_plan {
    int64_t count;
    eddy_mask_fill *fill;
    _Alignas(8) char value[8];
    int64_t words[]; /* of the walk */
} filling_plan;

_Static_assert(sizeof(filling_plan) + EDDY_WALK_WORDS_MOST(3) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct filling {
    const eddy_op_view *in, *mask, *out;
    const filling_plan *plan;
    eddy_walk walk; /* out, in, mask */
} filling;

static void mask_fill_slice(void *context, int64_t begin, int64_t end) {
    const filling *work = context;
    const eddy_walk *walk = &work->walk;
    eddy_dtype dtype = work->out->dtype;
    int64_t out_stride = eddy_walk_inner_stride(walk, 0),
            in_stride = eddy_walk_inner_stride(walk, 1);
    int64_t mask_stride = eddy_walk_inner_stride(walk, 2);
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        work->plan->fill(eddy_chunk_at(work->out->data, dtype, cursor.offsets[0]), out_stride,
                         eddy_chunk_at(work->in->data, dtype, cursor.offsets[1]), in_stride,
                         (const uint8_t *)work->mask->data + cursor.offsets[2], mask_stride,
                         work->plan->value, run);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* views: in, mask, out */
static eddy_status masked_fill_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_full *attributes = call->attributes;
    const eddy_op_view *out = &call->views[2];
    filling_plan *p = plan->memory;
    size_t bytes = eddy_dtype_bytes(out->dtype);
    const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks();
    *p = (filling_plan){.fill = bytes == 1   ? blocks->fill_8
                                : bytes == 2 ? blocks->fill_16
                                : bytes == 4 ? blocks->fill_32
                                             : blocks->fill_64};
    eddy_dtype_store_scalar(out->dtype, p->value, attributes->value);
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add_broadcast(&walk, &call->views[0]);
    eddy_walk_add_broadcast(&walk, &call->views[1]);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void masked_fill_run(const eddy_kernel_call *call) {
    const filling_plan *plan = call->plan;
    filling work; /* set one by one: a walk is too large to be cleared for nothing */
    work.in = &call->views[0];
    work.mask = &call->views[1];
    work.out = &call->views[2];
    work.plan = plan;
    (void)eddy_walk_read(&work.walk, plan->words);
    if (plan->count > SLICE_ELEMENTS)
        call->team->parallel_for(call->team, plan->count, SLICE_ELEMENTS, mask_fill_slice, &work);
    else if (plan->count > 0)
        mask_fill_slice(&work, 0, plan->count);
}

/* ---- in row-major order ---- */

/* Places of a row of the walk that are processed together. */
#define PIECE 256

/* Called for each piece with places where the mask holds. `held` has their numbers, ascending, counted from place `from`
 * of the row. False: stop. */
typedef bool take_fn(void *context, const int64_t *offsets, const eddy_walk *walk, int64_t from,
                     const int32_t *held, int64_t count);

/* The mask is operand 1 of the walk; the walk has `left` places. */
static void each_held(const eddy_walk *walk, int64_t left, const uint8_t *mask, take_fn *take,
                      void *context) {
    int64_t stride = eddy_walk_inner_stride(walk, 1);
    if (left == 0)
        return;
    const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks();
    int32_t held[PIECE];
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, 0);
    for (int64_t row; left > 0; left -= row) {
        row = eddy_walk_run(walk, &cursor);
        for (int64_t from = 0; from < row; from += PIECE) {
            const uint8_t *at = mask + cursor.offsets[1] + from * stride;
            int64_t count = blocks->find(held, at, stride, eddy_min_i64(PIECE, row - from));
            if (count > 0 && !take(context, cursor.offsets, walk, from, held, count))
                return;
        }
        eddy_walk_advance(walk, &cursor, row);
    }
}

static bool is_run(const int32_t *held, int64_t count) {
    return held[count - 1] - held[0] == count - 1;
}

#define MOVE(type)                                                                                 \
    for (int64_t i = 0; i < count; i++)                                                            \
    ((type *)to)[at_to ? at_to[i] * to_stride : i * to_stride] =                                   \
        ((const type *)from)[at_from ? at_from[i] * from_stride : i * from_stride]

/* Moves elements of `bytes` bytes. at_to or at_from NULL: 0, 1, ... */
static void move(size_t bytes, void *to, const int32_t *at_to, int64_t to_stride, const void *from,
                 const int32_t *at_from, int64_t from_stride, int64_t count) {
    if (bytes == 1)
        MOVE(uint8_t);
    else if (bytes == 2)
        MOVE(uint16_t);
    else if (bytes == 4)
        MOVE(uint32_t);
    else
        MOVE(uint64_t);
}

/* ---- masked_select ---- */

typedef struct selection_plan {
    int64_t count;   /* places of the joint shape */
    int64_t words[]; /* of the walk: in, mask */
} selection_plan;

_Static_assert(sizeof(selection_plan) + EDDY_WALK_WORDS_MOST(2) * sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct selection {
    const eddy_op_view *in, *out;
    int64_t count;
} selection;

static bool select_held(void *context, const int64_t *offsets, const eddy_walk *walk, int64_t from,
                        const int32_t *held, int64_t count) {
    selection *work = context;
    eddy_dtype dtype = work->out->dtype;
    int64_t stride = eddy_walk_inner_stride(walk, 0), to_stride = work->out->strides[0];
    void *to = eddy_chunk_at(work->out->data, dtype, work->count * to_stride);
    const void *row = eddy_chunk_at(work->in->data, dtype, offsets[0] + from * stride);
    if (is_run(held, count))
        eddy_chunk_copy(dtype, to, to_stride, dtype, eddy_chunk_at(row, dtype, held[0] * stride),
                        stride, count);
    else
        move(eddy_dtype_bytes(dtype), to, NULL, to_stride, row, held, stride, count);
    work->count += count;
    return true;
}

static eddy_status masked_select_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *in = &call->views[0], *mask = &call->views[1];
    selection_plan *p = plan->memory;
    int64_t dims[EDDY_RANK_MAX];
    int32_t rank = eddy_walk_joint_dims(call->views, 2, dims);
    eddy_walk walk;
    eddy_walk_init(&walk, rank, dims);
    eddy_walk_add_broadcast(&walk, in);
    eddy_walk_add_broadcast(&walk, mask);
    eddy_walk_collapse(&walk);
    p->count = eddy_walk_count(&walk);
    plan->bytes = (size_t)((char *)eddy_walk_write(&walk, p->words) - (char *)p);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void masked_select_count(const eddy_kernel_call *call, eddy_shape *shapes) {
    const selection_plan *plan = call->plan;
    eddy_walk walk;
    (void)eddy_walk_read(&walk, plan->words);
    int64_t left = plan->count, stride = eddy_walk_inner_stride(&walk, 1), held = 0;
    eddy_walk_cursor cursor = {0};
    if (left > 0)
        eddy_walk_seek(&walk, &cursor, 0);
    for (int64_t row; left > 0; left -= row) {
        const uint8_t *mask = (const uint8_t *)call->views[1].data + cursor.offsets[1];
        row = eddy_walk_run(&walk, &cursor);
        if (stride == 1)
            held += eddy_cpu_mask_blocks()->count(mask, row);
        else
            for (int64_t i = 0; i < row; i++)
                held += mask[i * stride] != 0;
        eddy_walk_advance(&walk, &cursor, row);
    }
    eddy_counted_masked_select(call, held, shapes);
}

/* views: in, mask, out [n] */
static void masked_select_run(const eddy_kernel_call *call) {
    const selection_plan *plan = call->plan;
    selection work = {.in = &call->views[0], .out = &call->views[2]};
    eddy_walk walk;
    (void)eddy_walk_read(&walk, plan->words);
    each_held(&walk, plan->count, call->views[1].data, select_held, &work);
}

/* ---- masked_scatter ---- */

/* Contiguous operands need no walks. */
typedef struct scattering_plan {
    int64_t count, source_count;
    int64_t words[]; /* of walks: the source's; out and mask; then how the input is copied */
} scattering_plan;

_Static_assert(sizeof(scattering_plan) +
                       (EDDY_WALK_WORDS_MOST(1) + EDDY_WALK_WORDS_MOST(2) + EDDY_COPY_WORDS_MOST) *
                           sizeof(int64_t) <=
                   EDDY_KERNEL_PLAN_BYTES,
               "fits a plan");

typedef struct scattering {
    const eddy_kernel_call *call;
    const eddy_op_view *source, *out;
    eddy_walk walk; /* the source's */
    eddy_walk_cursor cursor;
    int64_t count, left; /* elements of the source: all, and those not yet used */
} scattering;

static bool scatter_held(void *context, const int64_t *offsets, const eddy_walk *walk, int64_t from,
                         const int32_t *held, int64_t count) {
    scattering *work = context;
    int64_t stride = eddy_walk_inner_stride(walk, 0),
            source_stride = eddy_walk_inner_stride(&work->walk, 0);
    eddy_dtype dtype = work->out->dtype;
    if (count > work->left) {
        eddy_kernel_fail(work->call, EDDY_OUT_OF_RANGE, work->count, work->count, work->count);
        return false;
    }
    work->left -= count;
    char *row = eddy_chunk_at(work->out->data, dtype, offsets[0] + from * stride);
    for (int64_t run; count > 0; count -= run, held += run) {
        run = eddy_min_i64(count, eddy_walk_run(&work->walk, &work->cursor));
        const void *source = eddy_chunk_at(work->source->data, dtype, work->cursor.offsets[0]);
        if (is_run(held, run))
            eddy_chunk_copy(dtype, eddy_chunk_at(row, dtype, held[0] * stride), stride, dtype,
                            source, source_stride, run);
        else
            move(eddy_dtype_bytes(dtype), row, held, stride, source, NULL, source_stride, run);
        eddy_walk_advance(&work->walk, &work->cursor, run);
    }
    return true;
}

/* Contiguous operands, in one pass. */
static void masked_scatter_expand(const eddy_kernel_call *call) {
    const scattering_plan *plan = call->plan;
    size_t bytes = eddy_dtype_bytes(call->views[0].dtype);
    const eddy_mask_blocks *blocks = eddy_cpu_mask_blocks();
    eddy_mask_expand *block = bytes == 1   ? blocks->expand_8
                              : bytes == 2 ? blocks->expand_16
                              : bytes == 4 ? blocks->expand_32
                                           : blocks->expand_64;
    const char *in = call->views[0].data, *source = call->views[2].data;
    const uint8_t *mask = call->views[1].data;
    char *out = call->views[3].data;
    _Alignas(8) char last[PIECE * 8];
    int64_t count = plan->count, total = plan->source_count, left = total;
    for (int64_t done = 0, piece; done < count; done += piece) {
        piece = eddy_min_i64(PIECE, count - done);
        /* The block may read as many elements of the source as the piece has. */
        if (left < piece) {
            memset(last, 0, sizeof(last));
            if (left > 0)
                memcpy(last, source, (size_t)left * bytes);
        }
        int64_t offset = done * (int64_t)bytes;
        int64_t taken =
            block(out + offset, in + offset, mask + done, left < piece ? last : source, piece);
        if (taken > left) {
            eddy_kernel_fail(call, EDDY_OUT_OF_RANGE, total, total, total);
            return;
        }
        left -= taken;
        source += taken * (int64_t)bytes;
    }
}

static void source_walk(eddy_walk *walk, const eddy_op_view *source) {
    eddy_walk_init(walk, source->rank, source->shape);
    eddy_walk_add(walk, source->strides, 1);
    eddy_walk_collapse(walk);
}

static bool are_plain(const eddy_walk *from, const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[3];
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add_broadcast(&walk, &call->views[0]);
    eddy_walk_add_broadcast(&walk, &call->views[1]);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_collapse(&walk);
    return eddy_walk_is_plain(&walk) && eddy_walk_is_plain(from);
}

/* Words for copying the input, which may broadcast, to the output. */
static int64_t *copy_words(const eddy_op_view *in, const eddy_op_view *out, int64_t *words) {
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add_broadcast(&walk, in);
    eddy_op_view whole = {NULL, out->shape, walk.strides[0], in->dtype, out->rank};
    return eddy_copy_prepare(&whole, out, words);
}

static eddy_status masked_scatter_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_op_view *out = &call->views[3];
    scattering_plan *p = plan->memory;
    int64_t *words = p->words;
    eddy_walk from, walk;
    source_walk(&from, &call->views[2]);
    p->count = eddy_kernel_view_count(out);
    p->source_count = eddy_walk_count(&from);
    if (are_plain(&from, call)) {
        plan->run = masked_scatter_expand;
    } else {
        eddy_walk_init(&walk, out->rank, out->shape);
        eddy_walk_add(&walk, out->strides, 1);
        eddy_walk_add_broadcast(&walk, &call->views[1]);
        eddy_walk_collapse(&walk);
        words = eddy_walk_write(&walk, eddy_walk_write(&from, words));
        words = copy_words(&call->views[0], out, words);
    }
    plan->bytes = (size_t)((char *)words - (char *)p);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* views: in, mask, source, out */
static void masked_scatter_run(const eddy_kernel_call *call) {
    const scattering_plan *plan = call->plan;
    const eddy_op_view *in = &call->views[0];
    eddy_walk walk;
    scattering work; /* set one by one, as above */
    work.call = call;
    work.source = &call->views[2];
    work.out = &call->views[3];
    work.count = work.left = plan->source_count;
    const int64_t *words = eddy_walk_read(&walk, eddy_walk_read(&work.walk, plan->words));
    if (in->data != work.out->data)
        eddy_copy_run(words, call->team, in->data, work.out->data);
    if (work.left > 0)
        eddy_walk_seek(&work.walk, &work.cursor, 0);
    each_held(&walk, plan->count, call->views[1].data, scatter_held, &work);
}

const eddy_kernel eddy_cpu_masked_fill = {.name = "masked_fill",
                                          .run = masked_fill_run,
                                          .prepare = masked_fill_prepare,
                                          .cost_base_ps = 50000,
                                          .cost_element_ps = 130};
const eddy_kernel eddy_cpu_masked_select = {.name = "masked_select",
                                            .run = masked_select_run,
                                            .prepare = masked_select_prepare,
                                            .count = masked_select_count,
                                            .cost_base_ps = 80000,
                                            .cost_element_ps = 1400};
const eddy_kernel eddy_cpu_masked_scatter = {.name = "masked_scatter",
                                             .run = masked_scatter_run,
                                             .prepare = masked_scatter_prepare,
                                             .cost_base_ps = 100000,
                                             .cost_element_ps = 400};
