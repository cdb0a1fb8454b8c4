/* Convolutions: by NVIDIA's library where it is found and takes the operands as they lie (dnn_conv.h; of one element's windows pointwise.h), else by products of our own. How such a product is cut
 * follows from shapes and strides alone, so that the same call has the same bits on every device. */
#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/conv.h>
#include <kernels/cuda/dnn_conv.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/pointwise.h>
#include <kernels/cuda/view.h>

/* Groups of fewer rows are computed element by element. */
#define TILED_LEAST 8
/* Tasks that occupy any device. If there are fewer tiles, their terms are split, but not into parts of fewer than SPLIT_LEAST. */
#define TASKS_GOOD 256
#define SPLIT_LEAST 256

static eddy_cuda_image image = {.data = eddy_cuda_image_conv};

typedef enum way { TILED, JOIN, DIRECT, WAYS } way;

static _Atomic(void *) loaded[WAYS][EDDY_DTYPE_COUNT][EDDY_CUDA_DEVICES];

static const eddy_cuda_function functions[WAYS][EDDY_DTYPE_COUNT] = {
#define FUNCTION(way, text, dtype) [way][EDDY_##dtype] = {text, &image, loaded[way][EDDY_##dtype]},
#define CONVS(name, dtype)                                                                         \
    FUNCTION(TILED, "eddy_conv_tiled_" #name, dtype)                                               \
    FUNCTION(JOIN, "eddy_conv_join_" #name, dtype)                                                 \
    FUNCTION(DIRECT, "eddy_conv_direct_" #name, dtype)
    EDDY_CUDA_CONVS(CONVS)};

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Whether neighbours along an axis lie closer than those along another one; an axis of one element has none. */
static bool is_closer(int64_t stride, int64_t count, int64_t than, int64_t than_count) {
    return count > 1 && (than_count <= 1 || distance(stride) < distance(than));
}

/* ---- the matrices ---- */

static eddy_cuda_conv_rows rows_of_planes(const eddy_cuda_conv *p) {
    int64_t step = p->to.strides[EDDY_CUDA_CHANNEL];
    return (eddy_cuda_conv_rows){p->to.data, p->to_channels * step, step};
}

static eddy_cuda_conv_rows rows_of_weight(const eddy_cuda_conv *p) {
    return (eddy_cuda_conv_rows){p->weight, p->weight_group, p->weight_to};
}

/* Neighbouring threads read neighbours in memory: those of a row or of a column of either matrix. */
static void choose_threads(eddy_cuda_conv *p) {
    const eddy_cuda_planes *x = &p->from, *to = &p->to;
    bool is_last = is_closer(x->strides[EDDY_CUDA_CHANNEL], p->from_channels,
                             x->strides[EDDY_CUDA_COLUMN], x->sizes[EDDY_CUDA_COLUMN]);
    p->channels_last = is_last;
    p->right_along = is_last != p->sums_places;
    if (p->sums_places)
        p->left_along = !is_closer(to->strides[EDDY_CUDA_CHANNEL], p->to_channels,
                                   to->strides[EDDY_CUDA_COLUMN], to->sizes[EDDY_CUDA_COLUMN]);
    else
        p->left_along =
            !is_closer(p->weight_to, p->to_channels, is_last ? p->weight_from : p->weight_column,
                       is_last ? p->from_channels : p->columns.size);
}

/* ---- cutting ---- */

static int64_t divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Places of a phase, the first of which has the most. */
static int64_t places_of(const eddy_cuda_conv *p) {
    return p->to.sizes[EDDY_CUDA_IMAGE] * divide_up(p->to.sizes[EDDY_CUDA_ROW], p->row_phases) *
           divide_up(p->to.sizes[EDDY_CUDA_COLUMN], p->column_phases);
}

static int64_t element_count(const eddy_cuda_conv *p) {
    return p->groups * p->row_phases * p->column_phases * p->to_channels * p->width;
}

static bool is_tiled(const eddy_cuda_conv *p) {
    return p->to_channels >= TILED_LEAST;
}

/* The right matrix has all columns of a group; rows and phases are set. */
static void cut(eddy_cuda_conv *p) {
    int64_t taps = p->from_channels * p->rows.size * p->columns.size, places = places_of(p);
    int64_t terms = p->sums_places ? places : taps;
    p->width = p->sums_places ? taps : places;
    p->row_tiles = divide_up(p->to_channels, EDDY_CUDA_CONV_TILE);
    p->column_tiles = divide_up(p->width, EDDY_CUDA_CONV_TILE);
    p->splits = 1;
    p->split_terms = eddy_max_i64(1, terms);
    p->lanes = p->sums_places ? EDDY_CUDA_CONV_THREADS : 1;
    int64_t tiles = p->row_tiles * p->column_tiles * p->groups * p->row_phases * p->column_phases;
    if (!is_tiled(p) || tiles == 0 || tiles >= TASKS_GOOD)
        return;
    int64_t splits = eddy_min_i64(TASKS_GOOD / tiles, terms / SPLIT_LEAST);
    p->split_terms = eddy_max_i64(1, divide_up(terms, eddy_max_i64(1, splits)));
    p->split_terms = divide_up(p->split_terms, EDDY_CUDA_CONV_DEPTH) * EDDY_CUDA_CONV_DEPTH;
    p->splits = eddy_max_i64(1, divide_up(terms, p->split_terms));
}

/* ---- parameters ---- */

static void set_windows(eddy_cuda_conv *p, const eddy_op_view *weight,
                        const eddy_attributes_conv *a) {
    p->groups = a->groups;
    p->from_channels = p->from.sizes[EDDY_CUDA_CHANNEL] / a->groups;
    p->to_channels = p->to.sizes[EDDY_CUDA_CHANNEL] / a->groups;
    p->rows = (eddy_conv_window){weight->shape[2], a->stride.height, a->padding.height,
                                 a->dilation.height};
    p->columns =
        (eddy_conv_window){weight->shape[3], a->stride.width, a->padding.width, a->dilation.width};
    p->row_phases = p->column_phases = 1;
}

/* The weights' first axis is the result's channels, but of a transposed convolution those of x. */
static void set_weight(eddy_cuda_conv *p, const eddy_op_view *weight) {
    const int64_t bytes = eddy_dtype_size(weight->dtype), *strides = weight->strides;
    p->weight = weight->data;
    p->weight_to = strides[p->is_transposed] * bytes;
    p->weight_from = strides[!p->is_transposed] * bytes;
    p->weight_row = strides[2] * bytes;
    p->weight_column = strides[3] * bytes;
    p->weight_group = (p->is_transposed ? p->from_channels : p->to_channels) * strides[0] * bytes;
}

/* views: x, weight, bias or absent, out */
static eddy_cuda_conv forward_of(const eddy_kernel_call *call, bool is_transposed) {
    const eddy_op_view *weight = &call->views[1], *bias = &call->views[2];
    eddy_cuda_conv p = {.from = eddy_cuda_planes_of(&call->views[0]),
                        .to = eddy_cuda_planes_of(&call->views[3]),
                        .is_transposed = is_transposed};
    set_windows(&p, weight, call->attributes);
    set_weight(&p, weight);
    if (!eddy_kernel_view_is_absent(bias)) {
        p.bias = bias->data;
        p.bias_step = bias->strides[0] * eddy_dtype_size(bias->dtype);
    }
    if (is_transposed) {
        p.row_phases = eddy_max_i64(1, eddy_min_i64(p.rows.stride, p.to.sizes[EDDY_CUDA_ROW]));
        p.column_phases =
            eddy_max_i64(1, eddy_min_i64(p.columns.stride, p.to.sizes[EDDY_CUDA_COLUMN]));
    }
    p.left = rows_of_weight(&p);
    p.out = rows_of_planes(&p);
    choose_threads(&p);
    cut(&p);
    return p;
}

/* views: grad, x, out */
static eddy_cuda_conv weight_of(const eddy_kernel_call *call) {
    const eddy_op_view *weight = &call->views[2];
    eddy_cuda_conv p = {.from = eddy_cuda_planes_of(&call->views[1]),
                        .to = eddy_cuda_planes_of(&call->views[0]),
                        .sums_places = true};
    set_windows(&p, weight, call->attributes);
    set_weight(&p, weight);
    p.left = rows_of_planes(&p);
    p.out = rows_of_weight(&p);
    choose_threads(&p);
    cut(&p);
    return p;
}

/* ---- running ---- */

static eddy_status prepare(const eddy_kernel_call *call, const eddy_cuda_conv *p,
                           eddy_kernel_plan *plan) {
    size_t bytes = call->views[0].dtype == EDDY_F64 ? sizeof(double) : sizeof(float);
    plan->cost_ps = eddy_cost_views_ps(call);
    if (p->splits > 1)
        plan->workspace_bytes = (size_t)(p->splits * element_count(p)) * bytes;
    return EDDY_OK;
}

static void run(const eddy_kernel_call *call, eddy_cuda_conv *p) {
    const eddy_dtype dtype = call->views[0].dtype;
    int64_t count = element_count(p);
    if (count == 0)
        return;
    if (!is_tiled(p)) {
        eddy_cuda_launch(call, &functions[DIRECT][dtype], p, sizeof(*p),
                         eddy_cuda_blocks(call, count * p->lanes, EDDY_CUDA_CONV_THREADS));
        return;
    }
    if (p->splits > 1)
        p->partials = call->workspace;
    int64_t tasks =
        p->row_tiles * p->column_tiles * p->splits * p->row_phases * p->column_phases * p->groups;
    eddy_cuda_launch(call, &functions[TILED][dtype], p, sizeof(*p),
                     eddy_cuda_blocks(call, tasks, 1));
    if (p->splits > 1)
        eddy_cuda_launch(call, &functions[JOIN][dtype], p, sizeof(*p),
                         eddy_cuda_blocks(call, count, EDDY_CUDA_CONV_THREADS));
}

/* ---- by the library ---- */

_Static_assert(sizeof(eddy_cuda_dnn_question) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

/* Those of a forward convolution, as the library names them, and what is added to the one that is written. */
typedef struct conv_operands {
    const eddy_op_view *x, *weight, *y, *out;
    const eddy_op_view *bias; /* NULL: none */
} conv_operands;

static conv_operands operands_of(const eddy_kernel_call *call, eddy_cuda_dnn_way what) {
    const eddy_op_view *views = call->views;
    if (what == EDDY_CUDA_DNN_WEIGHT)
        return (conv_operands){
            .x = &views[1], .weight = &views[2], .y = &views[0], .out = &views[2]};
    bool is_forward = what == EDDY_CUDA_DNN_FORWARD;
    return (conv_operands){.x = &views[is_forward ? 0 : 3],
                           .weight = &views[1],
                           .y = &views[is_forward ? 3 : 0],
                           .out = &views[3],
                           .bias = eddy_kernel_view_is_absent(&views[2]) ? NULL : &views[2]};
}

/* After the plan of our own, whose workspace stays: what the library refuses late is done with it. */
static void prepare_library(const eddy_kernel_call *call, eddy_cuda_dnn_way what,
                            void (*run_it)(const eddy_kernel_call *call), eddy_kernel_plan *plan) {
    const conv_operands operands = operands_of(call, what);
    eddy_cuda_dnn_question *question = plan->memory;
    if (!eddy_cuda_dnn_conv_of(what, operands.x, operands.weight, operands.y, call->attributes,
                               question) ||
        !eddy_cuda_dnn_open(&plan->has_started_library))
        return;
    question->conv.adds = operands.bias != NULL;
    plan->bytes = sizeof(*question);
    plan->run = run_it;
}

/* The library adds to what lies there, so that a sum is rounded once. */
static void copy_bias(const eddy_kernel_call *call, const eddy_op_view *bias,
                      const eddy_op_view *out) {
    const int64_t shape[] = {bias->shape[0], 1, 1}, strides[] = {bias->strides[0], 0, 0};
    eddy_op_view channels = *bias;
    channels.rank = 3;
    channels.shape = shape;
    channels.strides = strides;
    eddy_cuda_copy_view(call, &channels, out);
}

/* False: the library has no plan, and what it was to write is to be written. */
static bool run_library(const eddy_kernel_call *call, eddy_cuda_dnn_way what) {
    const eddy_cuda_dnn_question *question = call->plan;
    const conv_operands operands = operands_of(call, what);
    const eddy_cuda_dnn_operands given = {
        .data = {operands.x->data, operands.weight->data, operands.y->data}};
    if (operands.bias) {
        if (!eddy_cuda_dnn_can(call, question, &given))
            return false;
        copy_bias(call, operands.bias, operands.out);
    }
    return eddy_cuda_dnn_launch(call, question, &given);
}

/* ---- ops ---- */

static void conv2d_run(const eddy_kernel_call *call) {
    eddy_cuda_conv p = forward_of(call, false);
    run(call, &p);
}

static void conv2d_run_library(const eddy_kernel_call *call) {
    if (!run_library(call, EDDY_CUDA_DNN_FORWARD))
        conv2d_run(call);
}

static void conv_transpose2d_run(const eddy_kernel_call *call) {
    eddy_cuda_conv p = forward_of(call, true);
    run(call, &p);
}

static void conv_transpose2d_run_library(const eddy_kernel_call *call) {
    if (!run_library(call, EDDY_CUDA_DNN_X))
        conv_transpose2d_run(call);
}

static eddy_status prepare_forward(const eddy_kernel_call *call, bool is_transposed,
                                   void (*run_it)(const eddy_kernel_call *call),
                                   eddy_kernel_plan *plan) {
    eddy_status status;
    if (eddy_cuda_pointwise_prepare(call, is_transposed, plan, &status))
        return status;
    const eddy_cuda_conv p = forward_of(call, is_transposed);
    status = prepare(call, &p, plan);
    prepare_library(call, is_transposed ? EDDY_CUDA_DNN_X : EDDY_CUDA_DNN_FORWARD, run_it, plan);
    return status;
}

static eddy_status conv2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_forward(call, false, conv2d_run_library, plan);
}

static eddy_status conv_transpose2d_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    return prepare_forward(call, true, conv_transpose2d_run_library, plan);
}

static void conv2d_backward_weight_run(const eddy_kernel_call *call) {
    eddy_cuda_conv p = weight_of(call);
    run(call, &p);
}

static void conv2d_backward_weight_run_library(const eddy_kernel_call *call) {
    if (!run_library(call, EDDY_CUDA_DNN_WEIGHT))
        conv2d_backward_weight_run(call);
}

static eddy_status conv2d_backward_weight_prepare(const eddy_kernel_call *call,
                                                  eddy_kernel_plan *plan) {
    eddy_status status;
    if (eddy_cuda_pointwise_prepare_weight(call, plan, &status))
        return status;
    const eddy_cuda_conv p = weight_of(call);
    status = prepare(call, &p, plan);
    prepare_library(call, EDDY_CUDA_DNN_WEIGHT, conv2d_backward_weight_run_library, plan);
    return status;
}

const eddy_kernel eddy_cuda_conv2d = {
    .name = "conv2d", .run = conv2d_run, .prepare = conv2d_prepare};
const eddy_kernel eddy_cuda_conv_transpose2d = {
    .name = "conv_transpose2d", .run = conv_transpose2d_run, .prepare = conv_transpose2d_prepare};
const eddy_kernel eddy_cuda_conv2d_backward_weight = {.name = "conv2d_backward_weight",
                                                      .run = conv2d_backward_weight_run,
                                                      .prepare = conv2d_backward_weight_prepare};
