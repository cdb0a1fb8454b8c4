/* matmul, linear, addmm. */
#include <kernels/attributes.h>
#include <kernels/cpu/matrix/matrix_plan.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/product.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_product};
static _Atomic(void *) loaded[EDDY_DTYPE_COUNT][2][EDDY_CUDA_DEVICES];

static const struct {
    eddy_cuda_function large, small;
} functions[EDDY_DTYPE_COUNT] = {
#define FUNCTION(name, dtype, number)                                                              \
    [EDDY_##dtype] = {.large = {"eddy_product_" #name "_large", &image, loaded[EDDY_##dtype][0]},  \
                      .small = {"eddy_product_" #name "_small", &image, loaded[EDDY_##dtype][1]}},
    EDDY_CUDA_PRODUCTS(FUNCTION)};

_Static_assert(sizeof(eddy_cuda_product) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

/* ---- plans: the parameters without addresses ---- */

static eddy_cuda_product_matrix strides_of(const eddy_matrix *matrix) {
    return (eddy_cuda_product_matrix){.row = matrix->row_stride, .column = matrix->column_stride};
}

static eddy_cuda_product *prepare(const eddy_matrix_plan *matrices, eddy_kernel_plan *plan) {
    eddy_cuda_product *p = plan->memory;
    memset(p, 0, sizeof(*p));
    plan->bytes = sizeof(*p);
    p->rows = matrices->out.rows;
    p->columns = matrices->out.columns;
    p->depth = matrices->a.columns;
    p->batches = matrices->batch_count;
    p->matrices[EDDY_CUDA_PRODUCT_A] = strides_of(&matrices->a);
    p->matrices[EDDY_CUDA_PRODUCT_B] = strides_of(&matrices->b);
    p->matrices[EDDY_CUDA_PRODUCT_OUT] = strides_of(&matrices->out);
    p->rank = (uint32_t)matrices->batches.rank;
    for (uint32_t d = 0; d < p->rank; d++) {
        p->dims[d] = matrices->batches.dims[d];
        for (int k = 0; k < EDDY_CUDA_PRODUCT_MATRICES; k++)
            p->strides[k][d] = matrices->batches.strides[k][d];
    }
    return p;
}

static eddy_status matmul_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_matmul(&matrices, &call->views[0], &call->views[1], &call->views[2]);
    prepare(&matrices, plan);
    return EDDY_OK;
}

static eddy_status linear_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_linear(&matrices, &call->views[0], &call->views[1], &call->views[2],
                            &call->views[3]);
    eddy_cuda_product *p = prepare(&matrices, plan);
    p->in_strides.column = matrices.bias.column_stride;
    return EDDY_OK;
}

static uint64_t integer_of(double value) {
    int64_t integer;
    eddy_dtype_store_f64(EDDY_I64, &integer, value);
    return (uint64_t)integer;
}

/* Of the input's last dims; it broadcasts to the result. */
static int64_t stride_of(const eddy_op_view *in, int32_t from_last) {
    int32_t d = in->rank - from_last;
    return d < 0 || in->shape[d] == 1 ? 0 : in->strides[d];
}

/* views: in, a, b, out. With a factor of 0 the operand behind it is not read. */
static eddy_status addmm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    const eddy_attributes_addmm *attributes = call->attributes;
    eddy_matrix_plan matrices;
    eddy_matrix_plan_matmul(&matrices, &call->views[1], &call->views[2], &call->views[3]);
    eddy_cuda_product *p = prepare(&matrices, plan);
    p->in_strides.row = stride_of(&call->views[0], 2);
    p->in_strides.column = stride_of(&call->views[0], 1);
    p->is_scaled = true;
    p->alpha = attributes->alpha;
    p->beta = attributes->beta;
    if (matrices.compute == EDDY_I64) {
        p->integer_alpha = integer_of(attributes->alpha);
        p->integer_beta = integer_of(attributes->beta);
    }
    if (attributes->alpha == 0)
        p->depth = 0;
    return EDDY_OK;
}

/* ---- launches ---- */

static int64_t tiles(const eddy_cuda_product *p, int64_t each) {
    int64_t lines = EDDY_CUDA_PRODUCT_SIDE * each;
    return (p->rows + lines - 1) / lines * ((p->columns + lines - 1) / lines) * p->batches;
}

/* Small tiles where large ones leave a part of the device without work. */
static void launch(const eddy_kernel_call *call, eddy_cuda_product *p, const eddy_op_view *a,
                   const eddy_op_view *b, const eddy_op_view *in, const eddy_op_view *out) {
    if (p->rows == 0 || p->columns == 0 || p->batches == 0)
        return;
    p->data[EDDY_CUDA_PRODUCT_A] = a->data;
    p->data[EDDY_CUDA_PRODUCT_B] = b->data;
    p->data[EDDY_CUDA_PRODUCT_OUT] = out->data;
    p->in = in ? in->data : NULL;
    int64_t large = tiles(p, EDDY_CUDA_PRODUCT_LARGE), small = tiles(p, EDDY_CUDA_PRODUCT_SMALL);
    bool is_large = large >= eddy_cuda_processors(call);
    eddy_cuda_launch(call, is_large ? &functions[out->dtype].large : &functions[out->dtype].small,
                     p, sizeof(*p), eddy_cuda_blocks(call, is_large ? large : small, 1));
}

static void matmul_run(const eddy_kernel_call *call) {
    eddy_cuda_product p = *(const eddy_cuda_product *)call->plan;
    launch(call, &p, &call->views[0], &call->views[1], NULL, &call->views[2]);
}

static void linear_run(const eddy_kernel_call *call) {
    eddy_cuda_product p = *(const eddy_cuda_product *)call->plan;
    const eddy_op_view *bias = &call->views[2];
    launch(call, &p, &call->views[0], &call->views[1],
           eddy_kernel_view_is_absent(bias) ? NULL : bias, &call->views[3]);
}

static void addmm_run(const eddy_kernel_call *call) {
    eddy_cuda_product p = *(const eddy_cuda_product *)call->plan;
    launch(call, &p, &call->views[1], &call->views[2], p.beta != 0 ? &call->views[0] : NULL,
           &call->views[3]);
}

const eddy_kernel eddy_cuda_matmul = {
    .name = "matmul", .prepare = matmul_prepare, .run = matmul_run};
const eddy_kernel eddy_cuda_linear = {
    .name = "linear", .prepare = linear_prepare, .run = linear_run};
const eddy_kernel eddy_cuda_addmm = {.name = "addmm", .prepare = addmm_prepare, .run = addmm_run};
