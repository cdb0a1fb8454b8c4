/* addmm: matmul's kernel computes the product, in the output or, if that is f16 or bf16, in f32 in the workspace. Then one
 * pass scales it and adds the input. If alpha is 0, a and b are not read, as in BLAS. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/chunk.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/matmul_within.h>
#include <kernels/cpu/matrix/matrix_plan.h>
#include <string.h>

#define SLICE_ELEMENTS 32768
#define PIECE 256

/* The plan; matmul's plan follows it in memory. */
typedef struct addmm_plan {
    eddy_matmul_within matmul;
    int64_t count;                        /* elements of the output */
    uint64_t integer_alpha, integer_beta; /* for integer dtypes */
    eddy_dtype compute;
    bool is_direct; /* the output's rows are runs of the compute type, and hold the product */
    int64_t walk[1 + 2 * 4]; /* words: out, product, in */
} addmm_plan;

_Static_assert(sizeof(addmm_plan) + EDDY_MATRIX_BYTES_MOST <= EDDY_KERNEL_PLAN_BYTES,
               "room for matmul's plan");

typedef struct sum {
    const addmm_plan *plan;
    const eddy_op_view *in, *out;
    const void *product;
    eddy_dtype product_dtype;
    double alpha, beta;
    eddy_walk walk; /* out, product, in */
} sum;

/* Whether the product is computed in the workspace, in front of matmul's part of it, instead of the output. */
static bool is_aside(const eddy_op_view *out) {
    return out->dtype == EDDY_F16 || out->dtype == EDDY_BF16;
}

static eddy_op_view product_of(const eddy_kernel_call *call, int64_t *strides) {
    const eddy_op_view *out = &call->views[3];
    return is_aside(out) ? eddy_matmul_aside(call, out, EDDY_F32, strides) : *out;
}

/* values = alpha * values + beta * inputs */
#define SCALE(name, type, number)                                                                  \
    static void scale_##name(void *values, const void *inputs, number alpha, number beta,          \
                             int64_t count) {                                                      \
        type *to = values;                                                                         \
        const type *from = inputs;                                                                 \
        if (from == NULL) {                                                                        \
            for (int64_t i = 0; i < count; i++)                                                    \
                to[i] = alpha * to[i];                                                             \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++)                                                    \
                to[i] = alpha * to[i] + beta * from[i];                                            \
        }                                                                                          \
    }

SCALE(f32, float, float)
SCALE(f64, double, double)
SCALE(i64, uint64_t, uint64_t)

/* A run of the input in the compute type: in place, or converted to *buffer. */
static const void *inputs_at(const sum *work, const eddy_walk_cursor *cursor, int64_t run,
                             void *buffer) {
    const void *from = eddy_chunk_at(work->in->data, work->in->dtype, cursor->offsets[2]);
    int64_t stride = work->walk.rank == 0 ? 0 : eddy_walk_inner_stride(&work->walk, 2);
    if (work->in->dtype == work->plan->compute && stride == 1)
        return from;
    eddy_chunk_load(work->plan->compute, buffer, work->in->dtype, from, stride, run);
    return buffer;
}

static void scale(const sum *work, void *values, const void *inputs, int64_t count) {
    if (work->plan->compute == EDDY_F32)
        scale_f32(values, inputs, (float)work->alpha, (float)work->beta, count);
    else if (work->plan->compute == EDDY_F64)
        scale_f64(values, inputs, work->alpha, work->beta, count);
    else
        scale_i64(values, inputs, work->plan->integer_alpha, work->plan->integer_beta, count);
}

static void sum_slice(void *context, int64_t begin, int64_t end) {
    const sum *work = context;
    const eddy_walk *walk = &work->walk;
    eddy_dtype compute = work->plan->compute;
    bool is_direct = work->plan->is_direct;
    _Alignas(64) char values[PIECE * 8], inputs[PIECE * 8];
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin), PIECE);
        void *to = eddy_chunk_at(work->out->data, work->out->dtype, cursor.offsets[0]),
             *sums = is_direct ? to : values;
        if (work->alpha == 0)
            memset(sums, 0, (size_t)(run * eddy_dtype_size(compute)));
        else if (!is_direct)
            eddy_chunk_load(compute, values, work->product_dtype,
                            eddy_chunk_at(work->product, work->product_dtype, cursor.offsets[1]),
                            eddy_walk_inner_stride(walk, 1), run);
        scale(work, sums, work->beta != 0 ? inputs_at(work, &cursor, run, inputs) : NULL, run);
        if (!is_direct)
            eddy_chunk_store(work->out->dtype, to, eddy_walk_inner_stride(walk, 0), compute, values,
                             run);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

/* Those of matmul; `strides` are the product's where it is aside. */
static void find_views(const eddy_kernel_call *call, eddy_op_view *views, int64_t *strides) {
    views[0] = call->views[1];
    views[1] = call->views[2];
    views[2] = product_of(call, strides);
}

/* views: in, a, b, out */
static void addmm_run(const eddy_kernel_call *call) {
    const addmm_plan *plan = call->plan;
    const eddy_attributes_addmm *attributes = call->attributes;
    if (plan->count == 0)
        return;
    eddy_op_view views[3];
    int64_t strides[2];
    find_views(call, views, strides);
    if (attributes->alpha != 0)
        eddy_matmul_within_run(&plan->matmul, call, views, plan + 1);
    sum work;
    work.plan = plan;
    work.in = &call->views[0];
    work.out = &call->views[3];
    work.product = views[2].data;
    work.product_dtype = views[2].dtype;
    work.alpha = attributes->alpha;
    work.beta = attributes->beta;
    eddy_walk_read(&work.walk, plan->walk);
    if (plan->count <= SLICE_ELEMENTS)
        sum_slice(&work, 0, plan->count);
    else
        call->team->parallel_for(call->team, plan->count, SLICE_ELEMENTS, sum_slice, &work);
}

static uint64_t integer_of(double value) {
    int64_t integer;
    eddy_dtype_store_f64(EDDY_I64, &integer, value);
    return (uint64_t)integer;
}

static void plan_sum(addmm_plan *own, const eddy_kernel_call *call,
                     const int64_t *product_strides) {
    const eddy_attributes_addmm *attributes = call->attributes;
    const eddy_op_view *out = &call->views[3];
    eddy_walk walk;
    eddy_walk_init(&walk, 2, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add(&walk, product_strides, 1);
    eddy_walk_add_broadcast(&walk, &call->views[0]);
    eddy_walk_collapse(&walk);
    eddy_walk_write(&walk, own->walk);
    own->count = eddy_kernel_view_count(out);
    own->compute = eddy_chunk_compute_dtype(out->dtype);
    own->is_direct = out->dtype == own->compute && eddy_walk_inner_stride(&walk, 0) == 1;
    bool is_integer = own->compute == EDDY_I64;
    own->integer_alpha = is_integer ? integer_of(attributes->alpha) : 0;
    own->integer_beta = is_integer ? integer_of(attributes->beta) : 0;
}

static eddy_status addmm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    addmm_plan *own = plan->memory;
    eddy_op_view views[3];
    int64_t strides[2];
    find_views(call, views, strides);
    plan_sum(own, call, views[2].strides);
    own->matmul.aside_bytes =
        is_aside(&call->views[3]) ? ((size_t)own->count * sizeof(float) + 63) / 64 * 64 : 0;
    eddy_status status = eddy_matmul_within_prepare(&own->matmul, call, views, own + 1, plan);
    if (status != EDDY_OK)
        return status;
    plan->cost_ps += 300 * own->count;
    plan->bytes += sizeof(*own);
    return EDDY_OK;
}

const eddy_kernel eddy_cpu_addmm = {.name = "addmm",
                                    .run = addmm_run,
                                    .prepare = addmm_prepare,
                                    .cost_base_ps = 500000,
                                    .cost_element_ps = 3000};
