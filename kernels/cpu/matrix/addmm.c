/* addmm: the matrix product by matmul's kernel, into the output or, where that is f16 or bf16, into f32 in the workspace; then
 * one pass that scales it and adds the input. With an alpha of 0 a and b are not read, as in BLAS. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/walk.h>
#include <string.h>

#define SLICE_ELEMENTS 32768
#define PIECE 256

typedef struct sum {
    const eddy_op_view *in, *out;
    eddy_op_view product;
    int64_t strides[2]; /* the product's */
    double alpha, beta;
    eddy_walk walk; /* out, product, in */
} sum;

/* The product's place: the output, or the workspace behind what matmul takes of it. */
static bool is_aside(const eddy_op_view *out) {
    return out->dtype == EDDY_F16 || out->dtype == EDDY_BF16;
}

static size_t aside_bytes(const eddy_op_view *out) {
    return is_aside(out) ? ((size_t)eddy_view_count(out) * sizeof(float) + 63) / 64 * 64 : 0;
}

static eddy_op_view product_of(const eddy_kernel_call *call, int64_t *strides) {
    eddy_op_view product = call->views[3];
    if (!is_aside(&product))
        return product;
    strides[0] = eddy_max_i64(1, product.shape[1]);
    strides[1] = 1;
    product.strides = strides;
    product.dtype = EDDY_F32;
    product.data = call->workspace;
    return product;
}

/* values = alpha * values + beta * inputs */
#define SCALE(name, type, number)                                                                                      \
    static void scale_##name(void *values, const void *inputs, number alpha, number beta, int64_t count) {             \
        type *to = values;                                                                                             \
        const type *from = inputs;                                                                                     \
        if (from == NULL) {                                                                                            \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] = alpha * to[i];                                                                                 \
        } else {                                                                                                       \
            for (int64_t i = 0; i < count; i++)                                                                        \
                to[i] = alpha * to[i] + beta * from[i];                                                                \
        }                                                                                                              \
    }

SCALE(f32, float, float)
SCALE(f64, double, double)
SCALE(i64, uint64_t, uint64_t)

static uint64_t integer_of(double value) {
    int64_t integer;
    eddy_dtype_store_f64(EDDY_I64, &integer, value);
    return (uint64_t)integer;
}

/* A run of the input in the compute type: where it lies, or in *buffer. */
static const void *inputs_at(const sum *work, const eddy_walk_cursor *cursor, int64_t run, void *buffer) {
    const void *from = eddy_chunk_at(work->in->data, work->in->dtype, cursor->offsets[2]);
    eddy_dtype compute = eddy_chunk_compute_dtype(work->out->dtype);
    int64_t stride = work->walk.rank == 0 ? 0 : eddy_walk_inner_stride(&work->walk, 2);
    if (work->in->dtype == compute && stride == 1)
        return from;
    eddy_chunk_load(compute, buffer, work->in->dtype, from, stride, run);
    return buffer;
}

static void sum_slice(void *context, int64_t begin, int64_t end) {
    const sum *work = context;
    const eddy_walk *walk = &work->walk;
    eddy_dtype compute = eddy_chunk_compute_dtype(work->out->dtype);
    /* The product lies in the output. */
    bool is_direct =
        work->product.data == work->out->data && work->out->dtype == compute && eddy_walk_inner_stride(walk, 0) == 1;
    _Alignas(64) char values[PIECE * 8], inputs[PIECE * 8];
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin), PIECE);
        void *to = eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[0]), *sums = is_direct ? to : values;
        if (work->alpha == 0)
            memset(sums, 0, (size_t)(run * eddy_dtype_size(compute)));
        else if (!is_direct)
            eddy_chunk_load(compute, values, work->product.dtype,
                            eddy_chunk_at(work->product.data, work->product.dtype, cursor.offsets[1]),
                            eddy_walk_inner_stride(walk, 1), run);
        const void *added = work->beta != 0 ? inputs_at(work, &cursor, run, inputs) : NULL;
        if (compute == EDDY_F32)
            scale_f32(sums, added, (float)work->alpha, (float)work->beta, run);
        else if (compute == EDDY_F64)
            scale_f64(sums, added, work->alpha, work->beta, run);
        else
            scale_i64(sums, added, integer_of(work->alpha), integer_of(work->beta), run);
        if (!is_direct)
            eddy_chunk_store(work->out->dtype, to, eddy_walk_inner_stride(walk, 0), compute, values, run);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* The call of matmul within: `views` and `strides` are the caller's. */
static eddy_kernel_call matmul_within(const eddy_kernel_call *call, eddy_op_view *views, int64_t *strides) {
    eddy_kernel_call matmul = *call;
    views[0] = call->views[1];
    views[1] = call->views[2];
    views[2] = product_of(call, strides);
    matmul.kernel = &eddy_cpu_matmul;
    matmul.views = views;
    matmul.view_count = 3;
    matmul.attributes = NULL;
    return matmul;
}

/* views: in, a, b, out */
static void addmm_run(const eddy_kernel_call *call) {
    const eddy_attributes_addmm *attributes = call->attributes;
    sum work = {.in = &call->views[0], .out = &call->views[3], .alpha = attributes->alpha, .beta = attributes->beta};
    int64_t count = eddy_view_count(work.out);
    if (count == 0)
        return;
    eddy_op_view views[3];
    eddy_kernel_call matmul = matmul_within(call, views, work.strides);
    work.product = views[2];
    matmul.workspace = (char *)call->workspace + aside_bytes(work.out);
    if (work.alpha != 0)
        eddy_cpu_matmul.run(&matmul);
    eddy_walk_init(&work.walk, 2, work.out->shape);
    eddy_walk_add(&work.walk, work.out->strides, 1);
    eddy_walk_add(&work.walk, work.product.strides, 1);
    eddy_walk_add_broadcast(&work.walk, work.in);
    eddy_walk_collapse(&work.walk);
    if (count <= SLICE_ELEMENTS)
        sum_slice(&work, 0, count);
    else
        call->team->parallel_for(call->team, count, SLICE_ELEMENTS, sum_slice, &work);
}

static size_t addmm_workspace(const eddy_kernel_call *call) {
    eddy_op_view views[3];
    int64_t strides[2];
    eddy_kernel_call matmul = matmul_within(call, views, strides);
    return aside_bytes(&call->views[3]) + eddy_cpu_matmul.workspace(&matmul);
}

static int64_t addmm_cost(const eddy_kernel_call *call) {
    eddy_op_view views[3];
    int64_t strides[2];
    eddy_kernel_call matmul = matmul_within(call, views, strides);
    return eddy_cpu_matmul.cost(&matmul) + 300 * eddy_view_count(&call->views[3]);
}

static bool addmm_start(const eddy_kernel_call *call) {
    eddy_op_view views[3];
    int64_t strides[2];
    eddy_kernel_call matmul = matmul_within(call, views, strides);
    return eddy_cpu_matmul.start(&matmul);
}

const eddy_kernel eddy_cpu_addmm = {.name = "addmm",
                                    .run = addmm_run,
                                    .workspace = addmm_workspace,
                                    .cost_base_ps = 500000,
                                    .cost_element_ps = 3000,
                                    .cost = addmm_cost,
                                    .start = addmm_start};
