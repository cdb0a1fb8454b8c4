/* Where the rows and columns of the result come from is computed once, by a launch of its own, into the workspace. */
#include <base/dtype.h>
#include <eddy/choice.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/interpolate.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_interpolate};

enum {
    NUMBER_TAPS,
#define NEAREST(bits) NUMBER_NEAREST_##bits,
#define FLOATS(name, dtype) NUMBER_BILINEAR_##dtype, NUMBER_BACK_##dtype,
    EDDY_CUDA_NEAREST(NEAREST) EDDY_CUDA_INTERPOLATE_FLOATS(FLOATS) COUNT
#undef NEAREST
#undef FLOATS
};
static _Atomic(void *) loaded[COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[COUNT] = {
#define NEAREST(bits)                                                                              \
    [NUMBER_NEAREST_##bits] = {"eddy_nearest_" #bits, &image, loaded[NUMBER_NEAREST_##bits]},
#define FLOATS(name, dtype)                                                                        \
    [NUMBER_BILINEAR_##dtype] = {"eddy_bilinear_" #name, &image, loaded[NUMBER_BILINEAR_##dtype]}, \
    [NUMBER_BACK_##dtype] = {"eddy_interpolate_back_" #name, &image, loaded[NUMBER_BACK_##dtype]},
    [NUMBER_TAPS] = {"eddy_taps", &image, loaded[NUMBER_TAPS]},
    EDDY_CUDA_NEAREST(NEAREST) EDDY_CUDA_INTERPOLATE_FLOATS(FLOATS)};

#undef FLOATS
#define FLOATS(name, dtype) [EDDY_##dtype] = NUMBER_BILINEAR_##dtype,
static const int bilinear_numbers[EDDY_DTYPE_COUNT] = {EDDY_CUDA_INTERPOLATE_FLOATS(FLOATS)};

static eddy_cuda_resizing parameters_of(const eddy_op_view *small, const eddy_op_view *large) {
    return (eddy_cuda_resizing){.small = eddy_cuda_planes_of(small),
                                .large = eddy_cuda_planes_of(large)};
}

/* Of an axis that has `in` elements, and `out` in the result. */
static eddy_tap_axis axis_of(const eddy_attributes_interpolate *a, int64_t in, int64_t out) {
    return (eddy_tap_axis){in, out, a->scale, a->mode == EDDY_MODE_BILINEAR, a->aligns_corners};
}

static void find_taps(const eddy_kernel_call *call, eddy_cuda_resizing *p) {
    const int64_t *in = p->small.sizes, *out = p->large.sizes;
    eddy_cuda_taps taps = {
        .rows = axis_of(call->attributes, in[EDDY_CUDA_ROW], out[EDDY_CUDA_ROW]),
        .columns = axis_of(call->attributes, in[EDDY_CUDA_COLUMN], out[EDDY_CUDA_COLUMN]),
        .taps = call->workspace};
    p->rows = taps.taps;
    p->columns = taps.taps + taps.rows.out;
    eddy_cuda_launch(call, &functions[NUMBER_TAPS], &taps, sizeof(taps),
                     eddy_cuda_blocks(call, taps.rows.out + taps.columns.out, EDDY_CUDA_BLOCK));
}

static void launch(const eddy_kernel_call *call, int number, const eddy_cuda_planes *to,
                   eddy_cuda_resizing *p) {
    p->places = eddy_cuda_plane_places_of(to);
    if (p->places.count == 0)
        return;
    find_taps(call, p);
    eddy_cuda_launch(call, &functions[number], p, sizeof(*p),
                     eddy_cuda_blocks(call, p->places.count, EDDY_CUDA_BLOCK));
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                           const eddy_op_view *large) {
    const int64_t *shape = large->shape + large->rank - 2;
    plan->cost_ps = eddy_cost_views_ps(call);
    plan->workspace_bytes = (size_t)(shape[0] + shape[1]) * sizeof(eddy_tap);
    return EDDY_OK;
}

/* views: x, out */
static eddy_status prepare_forward(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare(call, plan, &call->views[1]);
}

static void run_forward(const eddy_kernel_call *call) {
    const eddy_attributes_interpolate *a = call->attributes;
    const eddy_dtype dtype = call->views[0].dtype;
    eddy_cuda_resizing p = parameters_of(&call->views[0], &call->views[1]);
    int number = a->mode == EDDY_MODE_BILINEAR ? bilinear_numbers[dtype]
                                               : NUMBER_NEAREST_8 + (int)eddy_cuda_width(dtype);
    launch(call, number, &p.large, &p);
}

/* views: grad, out */
static eddy_status prepare_back(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare(call, plan, &call->views[0]);
}

static void run_back(const eddy_kernel_call *call) {
    eddy_cuda_resizing p = parameters_of(&call->views[1], &call->views[0]);
    launch(call, bilinear_numbers[call->views[0].dtype] + 1, &p.small, &p);
}

const eddy_kernel eddy_cuda_interpolate = {
    .name = "interpolate", .run = run_forward, .prepare = prepare_forward};
const eddy_kernel eddy_cuda_interpolate_backward = {
    .name = "interpolate_backward", .run = run_back, .prepare = prepare_back};
