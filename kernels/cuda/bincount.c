/* bincount: `count` finds the length, `run` counts, or sorts the numbers and adds up weights. */
#include <base/dtype.h>
#include <kernels/cost.h>
#include <kernels/counted.h>
#include <kernels/cuda/bincount.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/sorted.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_bincount};

static _Atomic(void *) loaded[4][EDDY_CUDA_DEVICES],
    sums_loaded[EDDY_CUDA_SORTED_WIDTHS][2][EDDY_CUDA_DEVICES];

static const eddy_cuda_function most_function = {"eddy_bincount_most", &image, loaded[0]},
                                length_function = {"eddy_bincount_length", &image, loaded[1]},
                                few_function = {"eddy_bincount_few", &image, loaded[2]},
                                many_function = {"eddy_bincount_many", &image, loaded[3]};
/* By the width of records, and whether sums are f64. */
static const eddy_cuda_function sum_functions[EDDY_CUDA_SORTED_WIDTHS][2] = {
    [EDDY_CUDA_SORTED_NARROW] = {{"eddy_bincount_sum_narrow_f32", &image, sums_loaded[0][0]},
                                 {"eddy_bincount_sum_narrow_f64", &image, sums_loaded[0][1]}},
    [EDDY_CUDA_SORTED_WIDE] = {{"eddy_bincount_sum_wide_f32", &image, sums_loaded[1][0]},
                               {"eddy_bincount_sum_wide_f64", &image, sums_loaded[1][1]}}};

/* views: in, weights (or absent), out */
enum { IN, WEIGHTS, OUT };

/* Where things lie in the workspace; what nobody needs takes no room. */
typedef struct places {
    size_t weights_at; /* converted to the dtype of the result */
    size_t records_at, spare_at, end_at;
} places;

static size_t round_up(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static int64_t chunks_of(int64_t count) {
    return (count + EDDY_CUDA_BINCOUNT_CHUNK - 1) / EDDY_CUDA_BINCOUNT_CHUNK;
}

static bool has_weights(const eddy_kernel_call *call) {
    return !eddy_kernel_view_is_absent(&call->views[WEIGHTS]);
}

static bool are_converted(const eddy_kernel_call *call) {
    return has_weights(call) && call->views[WEIGHTS].dtype != call->views[OUT].dtype;
}

static places places_of(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[IN];
    int64_t count = in->shape[0];
    size_t converted =
               are_converted(call) ? (size_t)count * eddy_dtype_bytes(call->views[OUT].dtype) : 0,
           records = has_weights(call) ? eddy_cuda_sorted_bytes(in->dtype, count) : 0;
    places at = {.weights_at = round_up((size_t)chunks_of(count) * sizeof(int64_t))};
    at.records_at = at.weights_at + round_up(converted);
    at.spare_at = at.records_at + round_up(records);
    at.end_at = at.spare_at + round_up(records);
    return at;
}

static eddy_status prepare_bincount(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    plan->workspace_bytes = places_of(call).end_at;
    plan->cost_ps = eddy_cost_views_ps(call);
    return EDDY_OK;
}

static eddy_cuda_bincount_call parameters_of(const eddy_kernel_call *call) {
    const eddy_op_view *in = &call->views[IN];
    return (eddy_cuda_bincount_call){.in = in->data,
                                     .most = call->workspace,
                                     .count = in->shape[0],
                                     .step = in->strides[0] * eddy_dtype_size(in->dtype),
                                     .element_bytes = (int32_t)eddy_dtype_size(in->dtype),
                                     .is_signed = in->dtype != EDDY_U8};
}

static void count_bincount(const eddy_kernel_call *call, eddy_shape *shapes) {
    (void)shapes;
    eddy_cuda_bincount_call p = parameters_of(call);
    if (p.count == 0)
        return;
    eddy_cuda_launch(call, &most_function, &p, sizeof(p),
                     eddy_cuda_blocks(call, chunks_of(p.count), 1));
    eddy_cuda_launch(call, &length_function, &p, sizeof(p), 1);
}

static void count_numbers(const eddy_kernel_call *call, eddy_cuda_bincount_call *p) {
    eddy_cuda_fill_view(call, &call->views[OUT], 0);
    if (p->count == 0)
        return;
    eddy_cuda_launch(call, p->length <= EDDY_CUDA_BINCOUNT_FEW ? &few_function : &many_function, p,
                     sizeof(*p), eddy_cuda_blocks(call, p->count, EDDY_CUDA_BINCOUNT_CHUNK));
}

/* The weights in the dtype of the result. */
static void convert_weights(const eddy_kernel_call *call, eddy_cuda_bincount_call *p,
                            void *converted) {
    static const int64_t one = 1;
    const eddy_op_view *weights = &call->views[WEIGHTS];
    eddy_op_view to = *weights;
    if (are_converted(call)) {
        to.data = converted;
        to.dtype = call->views[OUT].dtype;
        to.strides = &one;
        eddy_cuda_copy_view(call, weights, &to);
    }
    p->weights = to.data;
    p->weight_step = to.strides[0] * eddy_dtype_size(to.dtype);
}

static void add_weights(const eddy_kernel_call *call, eddy_cuda_bincount_call *p) {
    const eddy_op_view *in = &call->views[IN], *out = &call->views[OUT];
    places at = places_of(call);
    char *workspace = call->workspace;
    if (p->count == 0) {
        eddy_cuda_fill_view(call, out, 0);
        return;
    }
    convert_weights(call, p, workspace + at.weights_at);
    eddy_cuda_sorted_launch(call, in, workspace + at.records_at, workspace + at.spare_at);
    p->records = workspace + at.records_at;
    int width = eddy_cuda_sorted_width(in->dtype, p->count);
    eddy_cuda_launch(call, &sum_functions[width][out->dtype == EDDY_F64], p, sizeof(*p),
                     eddy_cuda_blocks(call, p->length, EDDY_CUDA_BLOCK));
}

static void run_bincount(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[OUT];
    eddy_cuda_bincount_call p = parameters_of(call);
    p.out = out->data;
    p.length = out->shape[0];
    p.out_step = out->strides[0] * eddy_dtype_size(out->dtype);
    if (p.length == 0)
        return;
    if (has_weights(call))
        add_weights(call, &p);
    else
        count_numbers(call, &p);
}

const eddy_kernel eddy_cuda_bincount = {.name = "bincount",
                                        .run = run_bincount,
                                        .prepare = prepare_bincount,
                                        .count = count_bincount,
                                        .shape = eddy_counted_bincount};
