/* index_select, gather, index, embedding and one_hot are walks along the output, in which the index and what is picked from have a stride of 0 where they do not
 * follow it. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/index.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/places.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_index};

enum {
#define NUMBER(bits) NUMBER_##bits,
    EDDY_CUDA_PICKS(NUMBER) NUMBER_ONE_HOT,
    COUNT
};
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

/* By the power of two that the bytes of an element are. */
static const eddy_cuda_forms forms[] = {
#define FORMS(bits) {.strided = {"eddy_pick_" #bits, &image, loaded[NUMBER_##bits]}},
    EDDY_CUDA_PICKS(FORMS){.strided = {"eddy_one_hot", &image, loaded[NUMBER_ONE_HOT]}}};

static uint64_t flags_of(const eddy_op_view *index) {
    return index->dtype == EDDY_I64 ? EDDY_CUDA_PICK_IS_WIDE : 0;
}

/* ---- picking ---- */

/* Operands of the walk, in bytes: the output, then the kernel's inputs. */
enum { OUT, IN, INDEX, NUMBER, OPERANDS };

typedef struct picking {
    eddy_op_view in, index, out;
    int64_t bound, step; /* bytes from index to index */
    uint64_t flags;
    bool is_empty; /* only dims of the index are appended */
    eddy_walk walk;
} picking;

static void picking_init(picking *work, const eddy_op_view *in, const eddy_op_view *index,
                         const eddy_op_view *out) {
    *work = (picking){.in = *in, .index = *index, .out = *out, .flags = flags_of(index)};
    eddy_walk_init(&work->walk, 0, NULL);
    work->walk.operand_count = OPERANDS;
    work->is_empty = eddy_kernel_view_count(out) == 0;
    if (work->is_empty)
        work->flags |= EDDY_CUDA_PICK_ONLY_LOOKS;
}

/* Strides in elements. */
static void append(picking *work, int64_t dim, int64_t out, int64_t in) {
    int64_t bytes = eddy_dtype_size(work->out.dtype);
    if (!work->is_empty)
        eddy_walk_append(&work->walk, dim, (int64_t[]){out * bytes, in * bytes, 0, 0}, OPERANDS);
}

/* A dim of the index: its stride, and that of the indices' row-major number. */
static void append_index(picking *work, int64_t dim, int64_t out, int64_t in, int64_t index,
                         int64_t number) {
    int64_t bytes = work->is_empty ? 0 : eddy_dtype_size(work->out.dtype);
    eddy_walk_append(
        &work->walk, dim,
        (int64_t[]){out * bytes, in * bytes, index * eddy_dtype_size(work->index.dtype), number},
        OPERANDS);
}

static bool divides(const picking *work, int64_t bytes) {
    const eddy_walk *walk = &work->walk;
    uint64_t all = (uintptr_t)work->in.data | (uintptr_t)work->out.data | (uint64_t)work->step;
    for (int32_t d = 0; d < walk->rank - 1; d++)
        all |= (uint64_t)walk->strides[OUT][d] | (uint64_t)walk->strides[IN][d];
    return all % (uint64_t)bytes == 0 &&
           walk->dims[walk->rank - 1] * walk->strides[OUT][walk->rank - 1] % bytes == 0;
}

/* Neighbours that one index names and that lie side by side are one element, of up to 16 bytes. Returns its bytes. */
static int64_t widen(picking *work) {
    eddy_walk *walk = &work->walk;
    int32_t inner = walk->rank - 1;
    int64_t bytes = eddy_dtype_size(work->out.dtype), wide = 16;
    if (work->is_empty || inner < 0 || walk->strides[OUT][inner] != bytes ||
        walk->strides[IN][inner] != bytes || walk->strides[NUMBER][inner] != 0)
        return bytes;
    while (wide > bytes && !divides(work, wide))
        wide /= 2;
    walk->dims[inner] /= wide / bytes;
    walk->strides[OUT][inner] = walk->strides[IN][inner] = wide;
    return wide;
}

static void pick(const eddy_kernel_call *call, picking *work) {
    eddy_walk_sort(&work->walk);
    eddy_walk_collapse(&work->walk);
    int64_t bytes = widen(work);
    eddy_cuda_operand operands[OPERANDS] = {[OUT] = {work->out.data, EDDY_U8},
                                            [IN] = {work->in.data, EDDY_U8},
                                            [INDEX] = {work->index.data, EDDY_U8},
                                            [NUMBER] = {NULL, EDDY_U8}};
    const uint64_t attributes[] = {[EDDY_CUDA_PICK_STEP] = (uint64_t)work->step,
                                   [EDDY_CUDA_PICK_BOUND] = (uint64_t)work->bound,
                                   [EDDY_CUDA_PICK_FLAGS] = work->flags};
    eddy_cuda_map(call, &forms[__builtin_ctz((unsigned)bytes)], &work->walk, operands, attributes,
                  sizeof(attributes));
}

/* The axis that is picked along. */
static void set_axis(picking *work, int32_t axis) {
    work->bound = work->in.shape[axis];
    work->step = work->in.strides[axis] * eddy_dtype_size(work->in.dtype);
}

/* views: in, index, out. A 0-dimensional tensor counts as a vector. */
static void picking_init_along(picking *work, const eddy_kernel_call *call) {
    const eddy_op_view in = eddy_kernel_view_with_axis(&call->views[0]),
                       index = eddy_kernel_view_with_axis(&call->views[1]),
                       out = eddy_kernel_view_with_axis(&call->views[2]);
    picking_init(work, &in, &index, &out);
    set_axis(work, ((const eddy_attributes_axis *)call->attributes)->axis);
}

/* views: in, index [n], out */
static void run_index_select(const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    picking work;
    picking_init_along(&work, call);
    const eddy_op_view *out = &work.out;
    for (int32_t d = 0; d < out->rank; d++)
        if (d == axis)
            append_index(&work, out->shape[d], out->strides[d], 0, work.index.strides[0], 1);
        else
            append(&work, out->shape[d], out->strides[d], work.in.strides[d]);
    pick(call, &work);
}

/* views: in, index, out; index and out have one shape */
static void run_gather(const eddy_kernel_call *call) {
    int32_t axis = ((const eddy_attributes_axis *)call->attributes)->axis;
    picking work;
    picking_init_along(&work, call);
    work.flags |= EDDY_CUDA_PICK_FROM_END;
    int64_t number = eddy_kernel_view_count(&work.index);
    for (int32_t d = 0; d < work.out.rank; d++) {
        number /= eddy_max_i64(1, work.index.shape[d]);
        append_index(&work, work.out.shape[d], work.out.strides[d],
                     d == axis ? 0 : work.in.strides[d], work.index.strides[d], number);
    }
    pick(call, &work);
}

/* An index names a part: out has the dims of the index, and then those of `in` from `first` on. */
static void pick_parts(const eddy_kernel_call *call, picking *work, int32_t first) {
    const eddy_op_view *in = &work->in, *index = &work->index, *out = &work->out;
    int64_t number = eddy_kernel_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        append_index(work, index->shape[d], out->strides[d], 0, index->strides[d], number);
    }
    for (int32_t d = first; d < in->rank; d++)
        append(work, in->shape[d], out->strides[index->rank + d - first], in->strides[d]);
    pick(call, work);
}

/* views: index, weight [V, D], out */
static void run_embedding(const eddy_kernel_call *call) {
    picking work;
    picking_init(&work, &call->views[1], &call->views[0], &call->views[2]);
    set_axis(&work, 0);
    pick_parts(call, &work, 1);
}

/* views: in, indices ..., out */
static eddy_status prepare_index(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes = eddy_cuda_places_bytes(&call->views[1], call->view_count - 2);
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static void run_index(const eddy_kernel_call *call) {
    int32_t count = call->view_count - 2;
    const eddy_op_view *in = &call->views[0];
    eddy_cuda_places places;
    picking work;
    eddy_cuda_places_find(&places, call, in, &call->views[1], count, call->workspace);
    picking_init(&work, in, &places.index, &call->views[count + 1]);
    work.in.data = eddy_cuda_view_at(in, places.first);
    work.bound = places.bound;
    work.step = places.step * eddy_dtype_size(in->dtype);
    work.flags |= places.is_from_end ? EDDY_CUDA_PICK_FROM_END : 0;
    pick_parts(call, &work, count);
}

/* ---- one_hot ---- */

/* views: index, out i64 */
static void run_one_hot(const eddy_kernel_call *call) {
    const eddy_attributes_one_hot *attributes = call->attributes;
    const eddy_op_view *index = &call->views[0], *out = &call->views[1];
    eddy_walk walk;
    eddy_walk_init(&walk, 0, NULL);
    walk.operand_count = EDDY_CUDA_ONE_HOT_OPERANDS;
    int64_t number = eddy_kernel_view_count(index);
    for (int32_t d = 0; d < index->rank; d++) {
        number /= eddy_max_i64(1, index->shape[d]);
        eddy_walk_append(&walk, index->shape[d],
                         (int64_t[]){out->strides[d], index->strides[d], 0, number},
                         EDDY_CUDA_ONE_HOT_OPERANDS);
    }
    eddy_walk_append(&walk, attributes->classes, (int64_t[]){out->strides[index->rank], 0, 1, 0},
                     EDDY_CUDA_ONE_HOT_OPERANDS);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_operand operands[] = {
        {out->data, out->dtype}, {index->data, index->dtype}, {NULL, EDDY_U8}, {NULL, EDDY_U8}};
    const uint64_t words[] = {[EDDY_CUDA_PICK_BOUND] = (uint64_t)attributes->classes,
                              [EDDY_CUDA_PICK_FLAGS] = flags_of(index)};
    eddy_cuda_map(call, &forms[NUMBER_ONE_HOT], &walk, operands, words, sizeof(words));
}

const eddy_kernel eddy_cuda_index_select = {.name = "index_select", .run = run_index_select};
const eddy_kernel eddy_cuda_gather = {.name = "gather", .run = run_gather};
const eddy_kernel eddy_cuda_index = {.name = "index", .run = run_index, .prepare = prepare_index};
const eddy_kernel eddy_cuda_embedding = {.name = "embedding", .run = run_embedding};
const eddy_kernel eddy_cuda_one_hot = {.name = "one_hot", .run = run_one_hot};
