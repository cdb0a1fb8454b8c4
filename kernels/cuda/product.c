/* matmul, linear, addmm: by NVIDIA's library where it is found and takes the operands as they lie, else by tiles of our own. */
#include <kernels/attributes.h>
#include <kernels/cost.h>
#include <kernels/cuda/gemm.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/product.h>
#include <kernels/cuda/view.h>
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

/* Parameters without addresses. */
typedef struct product_plan {
    eddy_cuda_product tiles;
    eddy_cuda_gemm gemm; /* if has_gemm */
    uint32_t steps;      /* of eddy_cuda_gemm_plan */
    bool has_gemm;
    /* What is added is copied to the output first, as the library does not take it as it lies. */
    bool copies_in;
} product_plan;
_Static_assert(sizeof(product_plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

/* ---- plans ---- */

static eddy_cuda_product_matrix strides_of(const eddy_matrix *matrix) {
    return (eddy_cuda_product_matrix){.row = matrix->row_stride, .column = matrix->column_stride};
}

static eddy_cuda_product *prepare(const eddy_kernel_call *call, const eddy_matrix_plan *matrices,
                                  eddy_kernel_plan *plan) {
    product_plan *made = plan->memory;
    plan->cost_ps = eddy_cost_views_ps(call);
    memset(made, 0, sizeof(*made));
    plan->bytes = sizeof(*made);
    eddy_cuda_product *p = &made->tiles;
    p->rows = matrices->out.rows;
    p->columns = matrices->out.columns;
    p->depth = matrices->a.columns;
    p->batches = matrices->batch_count;
    p->alpha = p->beta = 1;
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

/* Bytes of a factor that is copied, all of its batches, so that the next one is aligned as well as memory is. */
static size_t copy_bytes(const eddy_cuda_product *p, int which, eddy_dtype dtype) {
    int64_t count = p->batches * p->depth * (which == EDDY_CUDA_PRODUCT_A ? p->rows : p->columns);
    return ((size_t)count * eddy_dtype_bytes(dtype) + 255) & ~(size_t)255;
}

/* After the rest of the plan. */
static void prepare_gemm(const eddy_matrix_plan *matrices, bool has_in, eddy_kernel_plan *plan) {
    product_plan *made = plan->memory;
    const eddy_cuda_product *p = &made->tiles;
    eddy_dtype dtype = matrices->out.dtype;
    made->has_gemm = p->depth > 0 && eddy_dtype_is_float(dtype) &&
                     eddy_cuda_gemm_open(&plan->has_started_library) &&
                     eddy_cuda_gemm_plan(matrices, &made->gemm, &made->steps);
    if (!made->has_gemm)
        return;
    plan->workspace_bytes =
        (made->steps & EDDY_CUDA_GEMM_COPIES_A ? copy_bytes(p, EDDY_CUDA_PRODUCT_A, dtype) : 0) +
        (made->steps & EDDY_CUDA_GEMM_COPIES_B ? copy_bytes(p, EDDY_CUDA_PRODUCT_B, dtype) : 0);
    if (!has_in)
        return;
    bool is_turned = made->steps & EDDY_CUDA_GEMM_TURNS;
    int64_t row = p->in_strides.row, column = p->in_strides.column;
    made->copies_in = !eddy_cuda_gemm_add(&made->gemm, is_turned ? column : row,
                                          is_turned ? row : column, p->beta);
    if (made->copies_in)
        eddy_cuda_gemm_add_out(&made->gemm);
}

static eddy_status matmul_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_matmul(&matrices, &call->views[0], &call->views[1], &call->views[2]);
    prepare(call, &matrices, plan);
    prepare_gemm(&matrices, false, plan);
    return EDDY_OK;
}

static eddy_status linear_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_matrix_plan matrices;
    eddy_matrix_plan_linear(&matrices, &call->views[0], &call->views[1], &call->views[2],
                            &call->views[3]);
    eddy_cuda_product *p = prepare(call, &matrices, plan);
    p->in_strides.column = matrices.bias.column_stride;
    prepare_gemm(&matrices, !eddy_kernel_view_is_absent(&call->views[2]), plan);
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
    eddy_cuda_product *p = prepare(call, &matrices, plan);
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
    prepare_gemm(&matrices, p->beta != 0, plan);
    return EDDY_OK;
}

/* ---- launches ---- */

static int64_t tiles(const eddy_cuda_product *p, int64_t each) {
    int64_t lines = EDDY_CUDA_PRODUCT_SIDE * each;
    return (p->rows + lines - 1) / lines * ((p->columns + lines - 1) / lines) * p->batches;
}

/* Small tiles where large ones leave a part of the device without work. */
static void launch_tiles(const eddy_kernel_call *call, eddy_cuda_product *p, eddy_dtype dtype) {
    int64_t large = tiles(p, EDDY_CUDA_PRODUCT_LARGE), small = tiles(p, EDDY_CUDA_PRODUCT_SMALL);
    bool is_large = large >= eddy_cuda_processors(call);
    eddy_cuda_launch(call, is_large ? &functions[dtype].large : &functions[dtype].small, p,
                     sizeof(*p), eddy_cuda_blocks(call, is_large ? large : small, 1));
}

/* Copies a factor, all of its batches, row by row. */
static void copy_factor(const eddy_kernel_call *call, const eddy_cuda_product *p, int which,
                        const eddy_op_view *from, void *to) {
    bool is_a = which == EDDY_CUDA_PRODUCT_A;
    int64_t shape[EDDY_RANK_MAX], strides[EDDY_RANK_MAX], dense[EDDY_RANK_MAX], step = 1;
    int32_t rank = (int32_t)p->rank + 2;
    EDDY_ASSERT(rank <= EDDY_RANK_MAX);
    memcpy(shape, p->dims, p->rank * sizeof(*shape));
    memcpy(strides, p->strides[which], p->rank * sizeof(*strides));
    shape[rank - 2] = is_a ? p->rows : p->depth;
    shape[rank - 1] = is_a ? p->depth : p->columns;
    strides[rank - 2] = p->matrices[which].row;
    strides[rank - 1] = p->matrices[which].column;
    for (int32_t d = rank - 1; d >= 0; d--) {
        dense[d] = step;
        step *= shape[d];
    }
    eddy_op_view source = {.data = from->data,
                           .dtype = from->dtype,
                           .rank = rank,
                           .shape = shape,
                           .strides = strides},
                 target = {.data = to,
                           .dtype = from->dtype,
                           .rank = rank,
                           .shape = shape,
                           .strides = dense};
    eddy_cuda_copy_view(call, &source, &target);
}

/* What a call is given; in: NULL where nothing is added. */
typedef struct product_operands {
    const eddy_op_view *a, *b, *in, *out;
} product_operands;

/* False: the library has no algorithm, and what it was to write is to be written. */
static bool launch_gemm(const eddy_kernel_call *call, const product_plan *plan,
                        const product_operands *given) {
    const eddy_cuda_product *p = &plan->tiles;
    bool copies_a = plan->steps & EDDY_CUDA_GEMM_COPIES_A,
         copies_b = plan->steps & EDDY_CUDA_GEMM_COPIES_B, copies_in = plan->copies_in;
    char *a = copies_a ? call->workspace : given->a->data, *b = given->b->data;
    if (copies_b)
        b = (char *)call->workspace +
            (copies_a ? copy_bytes(p, EDDY_CUDA_PRODUCT_A, given->a->dtype) : 0);
    bool is_turned = plan->steps & EDDY_CUDA_GEMM_TURNS;
    eddy_cuda_gemm gemm = plan->gemm;
    eddy_cuda_gemm_operands operands = {.a = is_turned ? b : a,
                                        .b = is_turned ? a : b,
                                        .c = given->in ? given->in->data : NULL,
                                        .out = given->out->data,
                                        .alpha = p->alpha,
                                        .beta = p->beta};
    if (!copies_a && !copies_b && !copies_in && eddy_cuda_gemm_launch(call, &gemm, &operands))
        return true;
    if (given->in && !copies_in && !eddy_cuda_gemm_can(call, &gemm, &operands)) {
        eddy_cuda_gemm_add_out(&gemm);
        copies_in = true;
    }
    if (copies_in)
        operands.c = operands.out;
    if (!eddy_cuda_gemm_can(call, &gemm, &operands))
        return false;
    if (copies_a)
        copy_factor(call, p, EDDY_CUDA_PRODUCT_A, given->a, a);
    if (copies_b)
        copy_factor(call, p, EDDY_CUDA_PRODUCT_B, given->b, b);
    if (copies_in)
        eddy_cuda_copy_view(call, given->in, given->out);
    return eddy_cuda_gemm_launch(call, &gemm, &operands);
}

static void launch(const eddy_kernel_call *call, const product_operands *given) {
    const product_plan *plan = call->plan;
    eddy_cuda_product p = plan->tiles;
    if (p.rows == 0 || p.columns == 0 || p.batches == 0)
        return;
    if (plan->has_gemm && launch_gemm(call, plan, given))
        return;
    p.data[EDDY_CUDA_PRODUCT_A] = given->a->data;
    p.data[EDDY_CUDA_PRODUCT_B] = given->b->data;
    p.data[EDDY_CUDA_PRODUCT_OUT] = given->out->data;
    p.in = given->in ? given->in->data : NULL;
    launch_tiles(call, &p, given->out->dtype);
}

static void matmul_run(const eddy_kernel_call *call) {
    launch(call,
           &(product_operands){.a = &call->views[0], .b = &call->views[1], .out = &call->views[2]});
}

static void linear_run(const eddy_kernel_call *call) {
    const eddy_op_view *bias = &call->views[2];
    launch(call, &(product_operands){.a = &call->views[0],
                                     .b = &call->views[1],
                                     .in = eddy_kernel_view_is_absent(bias) ? NULL : bias,
                                     .out = &call->views[3]});
}

static void addmm_run(const eddy_kernel_call *call) {
    const product_plan *plan = call->plan;
    launch(call, &(product_operands){.a = &call->views[1],
                                     .b = &call->views[2],
                                     .in = plan->tiles.beta != 0 ? &call->views[0] : NULL,
                                     .out = &call->views[3]});
}

const eddy_kernel eddy_cuda_matmul = {
    .name = "matmul", .prepare = matmul_prepare, .run = matmul_run};
const eddy_kernel eddy_cuda_linear = {
    .name = "linear", .prepare = linear_prepare, .run = linear_run};
const eddy_kernel eddy_cuda_addmm = {.name = "addmm", .prepare = addmm_prepare, .run = addmm_run};
