/* clip_grad_norm: the sums of squares of all items, in few launches; the norm; the scaling, which is launched in any case, since it is the device that knows the norm.
 * An item that is not contiguous in row-major order is copied before its squares are summed. */
#include <base/dtype.h>
#include <base/shape.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/listing.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/optimise.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_clip_gradient};

enum {
#define NUMBER(op, name, dtype) NUMBER_##op##_##name,
    EDDY_CUDA_CLIP_SUMS(NUMBER) EDDY_CUDA_CLIP_NORMS(NUMBER) EDDY_CUDA_CLIP_SCALES(NUMBER) COUNT
};
static _Atomic(void *) loaded[COUNT][2][EDDY_CUDA_DEVICES];

#define FUNCTION(op, name, dtype)                                                                  \
    [EDDY_##dtype] = {"eddy_" #op "_" #name, &image, loaded[NUMBER_##op##_##name][0]},
static const eddy_cuda_function sums[EDDY_DTYPE_COUNT] = {EDDY_CUDA_CLIP_SUMS(FUNCTION)};
static const eddy_cuda_function norms[EDDY_DTYPE_COUNT] = {EDDY_CUDA_CLIP_NORMS(FUNCTION)};

typedef struct scaling {
    eddy_cuda_function list;
    eddy_cuda_forms forms; /* strided alone */
} scaling;

static const scaling scalings[EDDY_DTYPE_COUNT] = {
#define SCALING(op, name, dtype)                                                                   \
    [EDDY_##dtype] = {                                                                             \
        .list = {"eddy_" #op "_" #name "_list", &image, loaded[NUMBER_##op##_##name][0]},          \
        .forms = {.strided = {"eddy_" #op "_" #name "_strided", &image,                            \
                              loaded[NUMBER_##op##_##name][1]}}},
    EDDY_CUDA_CLIP_SCALES(SCALING)};

/* ---- the workspace: the factor, the sums of the slices, and the copy of an item ---- */

#define COPY_ALIGNMENT 16

typedef struct plan {
    int64_t slices;
    size_t copy_at; /* where copies begin */
} plan;

static int64_t slices_of(const eddy_op_view *view) {
    return (eddy_kernel_view_count(view) + EDDY_CUDA_CLIP_SLICE - 1) / EDDY_CUDA_CLIP_SLICE;
}

/* In the order of its elements, or in any order. */
static eddy_walk walk_of(const eddy_op_view *view, bool is_sorted) {
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    if (is_sorted)
        eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    return walk;
}

static bool is_row_major(const eddy_op_view *view) {
    eddy_walk walk = walk_of(view, false);
    return eddy_kernel_view_count(view) == 0 || eddy_walk_is_plain(&walk);
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    plan *own = to->memory;
    int64_t slices = 0, copied = 0;
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        const eddy_op_view *view = &call->views[i];
        slices += slices_of(view);
        if (!is_row_major(view))
            copied =
                eddy_max_i64(copied, eddy_kernel_view_count(view) * eddy_dtype_size(view->dtype));
    }
    own->slices = slices;
    own->copy_at = (size_t)(1 + slices) * sizeof(double);
    own->copy_at = (own->copy_at + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    to->bytes = sizeof(*own);
    to->workspace_bytes = own->copy_at + (size_t)copied;
    to->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

/* ---- the three steps ---- */

static void begin_sums(eddy_cuda_listing *listing, const eddy_kernel_call *call, eddy_dtype dtype) {
    eddy_cuda_listing_begin(listing, call, &sums[dtype], EDDY_CUDA_CLIP_SLICE, NULL, 0);
}

static void sum_copy(const eddy_kernel_call *call, const eddy_op_view *view, double *sums_of) {
    int64_t strides[EDDY_RANK_MAX];
    eddy_shape_strides_contiguous(view->rank, view->shape, strides);
    eddy_op_view copy = *view;
    copy.data = (char *)call->workspace + ((const plan *)call->plan)->copy_at;
    copy.strides = strides;
    eddy_cuda_copy_view(call, view, &copy);
    eddy_cuda_listing listing;
    begin_sums(&listing, call, view->dtype);
    eddy_cuda_listing_add(&listing, (void *[]){copy.data, sums_of}, 2,
                          eddy_kernel_view_count(view));
    eddy_cuda_listing_end(&listing);
}

/* The sums of the slices of all items, in the order of these. */
static void sum_dtype(const eddy_kernel_call *call, eddy_dtype dtype, double *all) {
    eddy_cuda_listing listing;
    begin_sums(&listing, call, dtype);
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        const eddy_op_view *view = &call->views[i];
        if (view->dtype == dtype && is_row_major(view))
            eddy_cuda_listing_add(&listing, (void *[]){view->data, all}, 2,
                                  eddy_kernel_view_count(view));
        else if (view->dtype == dtype)
            sum_copy(call, view, all);
        all += slices_of(view);
    }
    eddy_cuda_listing_end(&listing);
}

static void find_norm(const eddy_kernel_call *call, double *scale, const double *all) {
    const eddy_attributes_clip_grad_norm *attributes = call->attributes;
    const eddy_op_view *target = &call->views[call->view_count - 1];
    bool is_absent = eddy_kernel_view_is_absent(target);
    eddy_cuda_clip_norm p = {.sums = all,
                             .slices = ((const plan *)call->plan)->slices,
                             .norm = is_absent ? NULL : target->data,
                             .scale = scale,
                             .max_norm = attributes->max_norm};
    eddy_cuda_launch(call, &norms[is_absent ? EDDY_F64 : target->dtype], &p, sizeof(p), 1);
}

static void scale_dtype(const eddy_kernel_call *call, eddy_dtype dtype, double *scale) {
    eddy_cuda_listing listing;
    eddy_cuda_listing_begin(&listing, call, &scalings[dtype].list, EDDY_CUDA_OPTIMISE_CHUNK, &scale,
                            sizeof(scale));
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        const eddy_op_view *view = &call->views[i];
        if (view->dtype != dtype)
            continue;
        eddy_walk walk = walk_of(view, true);
        if (eddy_walk_is_plain(&walk)) {
            eddy_cuda_listing_add(&listing, (void *[]){view->data}, 1, eddy_walk_count(&walk));
            continue;
        }
        eddy_cuda_operand operand = {view->data, dtype};
        eddy_cuda_map(call, &scalings[dtype].forms, &walk, &operand, &scale, sizeof(scale));
    }
    eddy_cuda_listing_end(&listing);
}

/* views: grads ..., norm, which may be absent */
static void run(const eddy_kernel_call *call) {
    double *scale = call->workspace, *all = scale + 1;
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
        if (eddy_dtype_is_float((eddy_dtype)dtype))
            sum_dtype(call, (eddy_dtype)dtype, all);
    find_norm(call, scale, all);
    for (int dtype = 0; dtype < EDDY_DTYPE_COUNT; dtype++)
        if (eddy_dtype_is_float((eddy_dtype)dtype))
            scale_dtype(call, (eddy_dtype)dtype, scale);
}

const eddy_kernel eddy_cuda_clip_grad_norm = {
    .name = "clip_grad_norm", .run = run, .prepare = prepare};
