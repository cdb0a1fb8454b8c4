#include <kernels/cpu/matrix/add_product.h>

#include <base/dtype.h>
#include <kernels/cpu/kernels.h>
#include <kernels/cpu/matrix/matmul_within.h>
#include <kernels/cpu/matrix/matrix_plan.h>

#define SLICE_ELEMENTS 32768

/* The plan; matmul's plan follows it in memory. */
typedef struct add_product_plan {
    eddy_matmul_within matmul;
    int64_t walk[1 + 2 * 3]; /* words: sum, product */
    int64_t count;
} add_product_plan;

_Static_assert(sizeof(add_product_plan) + EDDY_MATRIX_BYTES_MOST <= EDDY_KERNEL_PLAN_BYTES,
               "room for matmul's plan");

typedef struct adding {
    const eddy_op_view *sum;
    const char *product;
    eddy_walk walk;
} adding;

#define ADD(name, real)                                                                            \
    static void add_##name(real *to, int64_t stride, const real *from, int64_t from_stride,        \
                           int64_t count) {                                                        \
        for (int64_t i = 0; i < count; i++)                                                        \
            to[i * stride] += from[i * from_stride];                                               \
    }
ADD(f32, float)
ADD(f64, double)

static void add_slice(void *context, int64_t begin, int64_t end) {
    const adding *work = context;
    const eddy_walk *walk = &work->walk;
    bool is_wide = work->sum->dtype == EDDY_F64;
    size_t bytes = eddy_dtype_bytes(work->sum->dtype);
    int64_t stride = walk->rank == 0 ? 0 : eddy_walk_inner_stride(walk, 0),
            from_stride = walk->rank == 0 ? 0 : eddy_walk_inner_stride(walk, 1);
    eddy_walk_cursor cursor;
    eddy_walk_seek(walk, &cursor, begin);
    while (begin < end) {
        int64_t run = eddy_min_i64(eddy_walk_run(walk, &cursor), end - begin);
        char *to = (char *)work->sum->data + cursor.offsets[0] * (int64_t)bytes;
        const char *from = work->product + cursor.offsets[1] * (int64_t)bytes;
        if (is_wide)
            add_f64((double *)(void *)to, stride, (const double *)(const void *)from, from_stride,
                    run);
        else
            add_f32((float *)(void *)to, stride, (const float *)(const void *)from, from_stride,
                    run);
        eddy_walk_advance(walk, &cursor, run);
        begin += run;
    }
}

static void find_views(const eddy_kernel_call *call, eddy_op_view *views, int64_t *strides) {
    views[0] = call->views[0];
    views[1] = call->views[1];
    views[2] = eddy_matmul_aside(call, &call->views[2], call->views[2].dtype, strides);
}

static void add_product_run(const eddy_kernel_call *call) {
    const add_product_plan *plan = call->plan;
    if (plan->count == 0)
        return;
    eddy_op_view views[3];
    int64_t strides[2];
    find_views(call, views, strides);
    eddy_matmul_within_run(&plan->matmul, call, views, plan + 1);
    adding work = {.sum = &call->views[2], .product = views[2].data};
    eddy_walk_read(&work.walk, plan->walk);
    if (plan->count <= SLICE_ELEMENTS)
        add_slice(&work, 0, plan->count);
    else
        call->team->parallel_for(call->team, plan->count, SLICE_ELEMENTS, add_slice, &work);
}

static eddy_status add_product_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    add_product_plan *own = plan->memory;
    const eddy_op_view *sum = &call->views[2];
    eddy_op_view views[3];
    int64_t strides[2];
    own->count = eddy_kernel_view_count(sum);
    own->matmul.aside_bytes = ((size_t)own->count * eddy_dtype_bytes(sum->dtype) + 63) / 64 * 64;
    find_views(call, views, strides);
    eddy_status status = eddy_matmul_within_prepare(&own->matmul, call, views, own + 1, plan);
    if (status != EDDY_OK)
        return status;
    eddy_walk walk;
    eddy_walk_init(&walk, 2, sum->shape);
    eddy_walk_add(&walk, sum->strides, 1);
    eddy_walk_add(&walk, strides, 1);
    eddy_walk_collapse(&walk);
    eddy_walk_write(&walk, own->walk);
    plan->cost_ps += 300 * own->count;
    plan->bytes += sizeof(*own);
    return EDDY_OK;
}

static eddy_status onto_prepare(const eddy_kernel_call *call, eddy_kernel_plan *plan) {
    eddy_kernel_call matmul = *call;
    matmul.kernel = &eddy_cpu_matmul_onto;
    eddy_status status = eddy_cpu_matmul_onto.prepare(&matmul, plan);
    return status == EDDY_UNSUPPORTED ? add_product_prepare(call, plan) : status;
}

static const eddy_kernel onto = {.name = "add_product_fast",
                                 .run = add_product_run,
                                 .prepare = onto_prepare,
                                 .cost_base_ps = 150000,
                                 .cost_element_ps = 3000};
const eddy_kernel eddy_cpu_add_product = {.name = "add_product",
                                          .run = add_product_run,
                                          .prepare = add_product_prepare,
                                          .fast = &onto,
                                          .cost_base_ps = 150000,
                                          .cost_element_ps = 3000};
