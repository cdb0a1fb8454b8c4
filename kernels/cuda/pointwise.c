#include <kernels/attributes.h>
#include <kernels/cuda/gemm.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/pointwise.h>

/* Operands of linear, of which matmul has three. */
#define OPERANDS 4
#define RANK 3

/* A call of linear or matmul, and the views that it is given. Points into itself. */
typedef struct product_call {
    eddy_kernel_call call;
    eddy_op_view views[OPERANDS];
    int64_t shapes[OPERANDS][RANK], strides[OPERANDS][RANK];
} product_call;

static void init(product_call *made, const eddy_kernel_call *call, const eddy_kernel *kernel,
                 int32_t view_count) {
    made->call = *call;
    made->call.kernel = kernel;
    made->call.views = made->views;
    made->call.view_count = view_count;
}

static void set_view(product_call *made, int number, const eddy_op_view *of, int32_t rank,
                     const int64_t *shape, const int64_t *strides) {
    eddy_op_view *view = &made->views[number];
    for (int32_t d = 0; d < rank; d++) {
        made->shapes[number][d] = shape[d];
        made->strides[number][d] = strides[d];
    }
    *view = *of;
    view->rank = rank;
    view->shape = made->shapes[number];
    view->strides = made->strides[number];
}

static bool is_pointwise(const eddy_attributes_conv *a, const eddy_op_view *weight) {
    return a->groups == 1 && weight->shape[2] == 1 && weight->shape[3] == 1 &&
           a->stride.height == 1 && a->stride.width == 1 && a->padding.height == 0 &&
           a->padding.width == 0;
}

static bool have_same_places(const eddy_op_view *a, const eddy_op_view *b) {
    return a->shape[a->rank - 2] == b->shape[b->rank - 2] &&
           a->shape[a->rank - 1] == b->shape[b->rank - 1];
}

/* ---- images as [N, places, channels] ---- */

typedef struct flat {
    int64_t shape[RANK], strides[RANK];
} flat;

/* Whether two dims are one, and its stride. */
static bool join(int64_t outer_size, int64_t outer_stride, int64_t size, int64_t stride,
                 int64_t *joint) {
    *joint = size == 1 ? outer_stride : stride;
    return outer_size <= 1 || size <= 1 || outer_stride == size * stride;
}

/* False: its rows do not follow one another at the stride of columns. */
static bool flatten(const eddy_op_view *image, flat *to) {
    const int64_t *shape = image->shape + image->rank - 3,
                  *strides = image->strides + image->rank - 3;
    bool has_batch = image->rank == 4;
    *to = (flat){.shape = {has_batch ? image->shape[0] : 1, shape[1] * shape[2], shape[0]},
                 .strides = {has_batch ? image->strides[0] : 0, 0, strides[0]}};
    return join(shape[1], strides[1], shape[2], strides[2], &to->strides[1]);
}

/* ---- conv2d, conv_transpose2d: views x, weight, bias or absent, out; linear has the same ---- */

static bool make_linear(const eddy_kernel_call *call, bool is_transposed, product_call *made) {
    const eddy_op_view *x = &call->views[0], *weight = &call->views[1], *out = &call->views[3];
    flat from, to;
    if (!is_pointwise(call->attributes, weight) || !have_same_places(x, out) ||
        !flatten(x, &from) || !flatten(out, &to))
        return false;
    init(made, call, &eddy_cuda_linear, OPERANDS);
    set_view(made, 0, x, RANK, from.shape, from.strides);
    set_view(made, 1, weight, 2,
             (int64_t[]){weight->shape[is_transposed], weight->shape[!is_transposed]},
             (int64_t[]){weight->strides[is_transposed], weight->strides[!is_transposed]});
    made->views[2] = call->views[2];
    set_view(made, 3, out, RANK, to.shape, to.strides);
    return true;
}

static void run_linear(const eddy_kernel_call *call, bool is_transposed) {
    product_call made;
    bool is_made = make_linear(call, is_transposed, &made);
    EDDY_ASSERT(is_made);
    eddy_cuda_linear.run(&made.call);
}

static void run(const eddy_kernel_call *call) {
    run_linear(call, false);
}

static void run_transposed(const eddy_kernel_call *call) {
    run_linear(call, true);
}

bool eddy_cuda_pointwise_prepare(const eddy_kernel_call *call, bool is_transposed,
                                 eddy_kernel_plan *plan, eddy_status *status) {
    product_call made;
    if (!make_linear(call, is_transposed, &made) ||
        !eddy_cuda_gemm_open(&plan->has_started_library))
        return false;
    *status = eddy_cuda_linear.prepare(&made.call, plan);
    plan->run = is_transposed ? run_transposed : run;
    return true;
}

/* ---- conv2d_backward_weight: views grad, x, out; [channels of the result, places] x [places, channels], with the places of all images ---- */

static bool make_matmul(const eddy_kernel_call *call, product_call *made) {
    const eddy_op_view *grad = &call->views[0], *x = &call->views[1], *out = &call->views[2];
    flat rows, columns;
    int64_t row_step, column_step;
    if (!is_pointwise(call->attributes, out) || !have_same_places(grad, x) ||
        !flatten(grad, &rows) || !flatten(x, &columns) ||
        !join(rows.shape[0], rows.strides[0], rows.shape[1], rows.strides[1], &row_step) ||
        !join(columns.shape[0], columns.strides[0], columns.shape[1], columns.strides[1],
              &column_step))
        return false;
    int64_t places = rows.shape[0] * rows.shape[1];
    init(made, call, &eddy_cuda_matmul, 3);
    set_view(made, 0, grad, 2, (int64_t[]){rows.shape[2], places},
             (int64_t[]){rows.strides[2], row_step});
    set_view(made, 1, x, 2, (int64_t[]){places, columns.shape[2]},
             (int64_t[]){column_step, columns.strides[2]});
    set_view(made, 2, out, 2, out->shape, out->strides);
    return true;
}

static void run_weight(const eddy_kernel_call *call) {
    product_call made;
    bool is_made = make_matmul(call, &made);
    EDDY_ASSERT(is_made);
    eddy_cuda_matmul.run(&made.call);
}

bool eddy_cuda_pointwise_prepare_weight(const eddy_kernel_call *call, eddy_kernel_plan *plan,
                                        eddy_status *status) {
    product_call made;
    if (!make_matmul(call, &made) || !eddy_cuda_gemm_open(&plan->has_started_library))
        return false;
    *status = eddy_cuda_matmul.prepare(&made.call, plan);
    plan->run = run_weight;
    return true;
}
