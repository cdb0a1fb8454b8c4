#include <base/dtype.h>
#include <base/number.h>
#include <kernels/attributes.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/launch.h>
#include <kernels/cuda/reduce.h>
#include <math.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_reduce},
                       image_argmax = {.data = eddy_cuda_image_argmax},
                       image_variance = {.data = eddy_cuda_image_variance},
                       image_vector_norm = {.data = eddy_cuda_image_vector_norm},
                       image_logsumexp = {.data = eddy_cuda_image_logsumexp};

/* ---- which kernels there are ---- */

enum {
#define NUMBER(op, of, dtype, compute, result) NUMBER_##op##_##of,
#define SEARCH_NUMBER(op, of, dtype, compute) NUMBER_##op##_##of,
#define FLOAT_NUMBER(op, of, dtype) NUMBER_##op##_##of,
    EDDY_CUDA_REDUCTIONS(NUMBER) EDDY_CUDA_SEARCHES(SEARCH_NUMBER) EDDY_CUDA_VARIANCES(FLOAT_NUMBER)
        EDDY_CUDA_LOG_SUMS(SEARCH_NUMBER) EDDY_CUDA_NORMS(FLOAT_NUMBER)
            EDDY_CUDA_POWERS(FLOAT_NUMBER) COUNT
};

static _Atomic(void *) loaded[COUNT][3][EDDY_CUDA_DEVICES];

/* The kernels of an op and a dtype. */
typedef struct reduction {
    eddy_cuda_function rows, strided, join; /* `rows` may be none */
    uint32_t value_bytes;                   /* of a partial result */
} reduction;

#define VALUE_BYTES_f32 4
#define VALUE_BYTES_f64 8
#define VALUE_BYTES_i64 8
#define VALUE_BYTES_truth 4

static const reduction reductions[COUNT] = {
#define WITH_ROWS(op, of, image_, bytes)                                                           \
    [NUMBER_##op##_##of] = {                                                                       \
        .rows = {"eddy_" #op "_" #of "_rows", &image_, loaded[NUMBER_##op##_##of][0]},             \
        .strided = {"eddy_" #op "_" #of "_strided", &image_, loaded[NUMBER_##op##_##of][1]},       \
        .join = {"eddy_" #op "_" #of "_join", &image_, loaded[NUMBER_##op##_##of][2]},             \
        .value_bytes = bytes,                                                                      \
    },
#define WITHOUT_ROWS(op, of, image_, bytes)                                                        \
    [NUMBER_##op##_##of] = {                                                                       \
        .strided = {"eddy_" #op "_" #of "_strided", &image_, loaded[NUMBER_##op##_##of][1]},       \
        .join = {"eddy_" #op "_" #of "_join", &image_, loaded[NUMBER_##op##_##of][2]},             \
        .value_bytes = bytes,                                                                      \
    },
#define REDUCTION(op, of, dtype, compute, result) WITH_ROWS(op, of, image, VALUE_BYTES_##compute)
#define NORM(op, of, dtype) WITH_ROWS(op, of, image_vector_norm, VALUE_BYTES_f64)
#define SEARCH(op, of, dtype, compute) WITHOUT_ROWS(op, of, image_argmax, EDDY_CUDA_SEARCH_BYTES)
#define VARIANCE(op, of, dtype) WITHOUT_ROWS(op, of, image_variance, EDDY_CUDA_MOMENTS_BYTES)
#define LOG_SUM(op, of, dtype, compute)                                                            \
    WITHOUT_ROWS(op, of, image_logsumexp, 2 * VALUE_BYTES_##compute)
#define POWERS(op, of, dtype) WITHOUT_ROWS(op, of, image_vector_norm, VALUE_BYTES_f64)
    EDDY_CUDA_REDUCTIONS(REDUCTION) EDDY_CUDA_SEARCHES(SEARCH) EDDY_CUDA_VARIANCES(VARIANCE)
        EDDY_CUDA_LOG_SUMS(LOG_SUM) EDDY_CUDA_NORMS(NORM) EDDY_CUDA_POWERS(POWERS)};

typedef enum op {
    OP_sum,
    OP_prod,
    OP_max,
    OP_min,
    OP_any,
    OP_all,
    OP_argmax,
    OP_argmin,
    OP_var,
    OP_logsumexp,
    OP_squares,
    OP_magnitudes,
    OP_nonzeros,
    OP_max_magnitude,
    OP_min_magnitude,
    OP_powers,
    OPS
} op;

/* The number and 1, by op and dtype. Those of max and min of bool are any's and all's. */
static const uint8_t numbers[OPS][EDDY_DTYPE_COUNT] = {
#define PLACE(op, of, dtype, compute, result) [OP_##op][EDDY_##dtype] = NUMBER_##op##_##of + 1,
#define SEARCH_PLACE(op, of, dtype, compute) PLACE(op, of, dtype, compute, i64)
#define FLOAT_PLACE(op, of, dtype) PLACE(op, of, dtype, f64, of)
    EDDY_CUDA_REDUCTIONS(PLACE) EDDY_CUDA_SEARCHES(SEARCH_PLACE) EDDY_CUDA_VARIANCES(FLOAT_PLACE)
        EDDY_CUDA_LOG_SUMS(SEARCH_PLACE) EDDY_CUDA_NORMS(FLOAT_PLACE)
            EDDY_CUDA_POWERS(FLOAT_PLACE)[OP_max][EDDY_BOOL] = NUMBER_any_truth + 1,
    [OP_min][EDDY_BOOL] = NUMBER_all_truth + 1};

/* ---- plans ---- */

typedef struct plan {
    const reduction *of;
    bool has_rows;
    uint32_t join_abreast;       /* of the launch that joins, if there are splits */
    eddy_cuda_reduce parameters; /* without addresses */
} plan;

_Static_assert(sizeof(plan) <= EDDY_KERNEL_PLAN_BYTES, "a plan fits");

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Of max_dim and min_dim the values come first, which the kernels have last. */
static const eddy_op_view *out_of(const eddy_kernel_call *call) {
    return &call->views[call->view_count - 1];
}

static const eddy_op_view *best_of(const eddy_kernel_call *call) {
    return call->view_count == 3 ? &call->views[1] : NULL;
}

/* The dims of the outputs in the order in which the input lies, and those of each output's elements in their own. */
static void walk(const eddy_kernel_call *call, eddy_attributes_reduce attributes, eddy_walk *kept,
                 eddy_walk *reduced) {
    const eddy_op_view *in = &call->views[0], *out = out_of(call), *best = best_of(call);
    eddy_walk_init(kept, 0, NULL);
    eddy_walk_init(reduced, 0, NULL);
    kept->operand_count = call->view_count;
    reduced->operand_count = 1;
    for (int32_t d = 0, place = 0; d < in->rank; d++) {
        if (attributes.axes >> d & 1) {
            eddy_walk_append(reduced, in->shape[d], &in->strides[d], 1);
            place += attributes.keeps_dims;
            continue;
        }
        int64_t strides[] = {in->strides[d], out->strides[place], best ? best->strides[place] : 0};
        eddy_walk_append(kept, in->shape[d], strides, call->view_count);
        place++;
    }
    eddy_walk_sort(kept);
    eddy_walk_collapse(kept);
    eddy_walk_collapse(reduced);
}

/* Whether neighbouring outputs are nearer to each other than neighbouring elements of one. */
static bool lies_across(const eddy_walk *kept, const eddy_walk *reduced) {
    return kept->rank > 0 && reduced->rank > 0 &&
           magnitude(eddy_walk_inner_stride(kept, 0)) <
               magnitude(eddy_walk_inner_stride(reduced, 0));
}

/* Spreads the threads of a block over lanes, blocks of one output, and outputs. `width`: lanes of a thread. */
static void spread(eddy_cuda_reduce *p, int64_t width) {
    int64_t lanes = eddy_min_i64(p->count, EDDY_CUDA_REDUCE_LANES);
    int64_t blocks = (p->count + EDDY_CUDA_REDUCE_BLOCK - 1) / EDDY_CUDA_REDUCE_BLOCK;
    p->places = eddy_cuda_power_of_two((lanes + width - 1) / width, EDDY_CUDA_REDUCE_LANES);
    uint32_t left = EDDY_CUDA_BLOCK / p->places;
    p->team = eddy_cuda_power_of_two(
        blocks, p->is_across ? left / eddy_cuda_power_of_two(p->outputs, left) : left);
    p->abreast = left / p->team;
    p->splits = eddy_max_i64(1, (blocks + p->team - 1) / p->team);
}

static eddy_status prepare_axes(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                eddy_attributes_reduce attributes, op number) {
    const eddy_op_view *in = &call->views[0];
    const int64_t bytes = eddy_dtype_size(in->dtype),
                  sizes[] = {bytes, eddy_dtype_size(out_of(call)->dtype), bytes};
    eddy_walk kept, reduced;
    walk(call, attributes, &kept, &reduced);
    plan *own = to->memory;
    memset(own, 0, sizeof(*own));
    to->bytes = sizeof(*own);
    own->of = &reductions[numbers[number][in->dtype] - 1];
    eddy_cuda_reduce *p = &own->parameters;
    p->outputs = eddy_walk_count(&kept);
    p->count = eddy_walk_count(&reduced);
    if (p->outputs == 0)
        return EDDY_OK;
    eddy_cuda_dims_take(&p->kept, &kept, sizes);
    if (p->count > 0)
        eddy_cuda_dims_take(&p->reduced, &reduced, sizes);
    own->has_rows = own->of->rows.symbol && p->reduced.rank == 1 && reduced.strides[0][0] == 1;
    p->is_across = !own->has_rows && lies_across(&kept, &reduced);
    spread(p, own->has_rows ? 16 / sizes[0] : 1);
    p->is_aligned = true;
    for (int32_t d = 0; d < kept.rank; d++)
        p->is_aligned &= p->kept.strides[0][d] % 16 == 0;
    own->join_abreast =
        EDDY_CUDA_BLOCK / eddy_cuda_power_of_two((p->splits + 1) / 2, EDDY_CUDA_BLOCK);
    if (p->splits > 1)
        to->workspace_bytes = (size_t)(p->outputs * p->splits) * own->of->value_bytes;
    return EDDY_OK;
}

static eddy_status prepare(const eddy_kernel_call *call, eddy_kernel_plan *to, op number) {
    eddy_attributes_reduce attributes;
    memcpy(&attributes, call->attributes, sizeof(attributes));
    return prepare_axes(call, to, attributes, number);
}

static void run(const eddy_kernel_call *call) {
    const plan *own = call->plan;
    eddy_cuda_reduce p = own->parameters;
    if (p.outputs == 0)
        return;
    p.in = call->views[0].data;
    p.out = out_of(call)->data;
    p.best = best_of(call) ? best_of(call)->data : NULL;
    p.partials = p.splits > 1 ? call->workspace : NULL;
    p.is_aligned = p.is_aligned && (uintptr_t)p.in % 16 == 0;
    eddy_cuda_launch(call, own->has_rows ? &own->of->rows : &own->of->strided, &p, sizeof(p),
                     eddy_cuda_blocks(call, p.outputs * p.splits, p.abreast));
    if (p.splits == 1)
        return;
    p.abreast = own->join_abreast;
    p.places = EDDY_CUDA_BLOCK / p.abreast;
    eddy_cuda_launch(call, &own->of->join, &p, sizeof(p),
                     eddy_cuda_blocks(call, p.outputs, p.abreast));
}

/* ---- kernels ---- */

static eddy_status mean_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    eddy_status status = prepare(call, to, OP_sum);
    ((plan *)to->memory)->parameters.is_mean = true;
    return status;
}

const eddy_kernel eddy_cuda_mean = {.name = "mean", .prepare = mean_prepare, .run = run};

static eddy_status prepare_variance(const eddy_kernel_call *call, eddy_kernel_plan *to,
                                    bool takes_root) {
    const eddy_attributes_var *attributes = call->attributes;
    eddy_status status = prepare(call, to, OP_var);
    eddy_cuda_reduce *p = &((plan *)to->memory)->parameters;
    p->takes_root = takes_root;
    p->correction = attributes->correction;
    return status;
}

static eddy_status var_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    return prepare_variance(call, to, false);
}

static eddy_status std_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    return prepare_variance(call, to, true);
}

const eddy_kernel eddy_cuda_var = {.name = "var", .prepare = var_prepare, .run = run};
const eddy_kernel eddy_cuda_std = {.name = "std", .prepare = std_prepare, .run = run};

static op norm_of(double order) {
    return order == 0      ? OP_nonzeros
           : order == 1    ? OP_magnitudes
           : order == 2    ? OP_squares
           : !isinf(order) ? OP_powers
           : order > 0     ? OP_max_magnitude
                           : OP_min_magnitude;
}

static eddy_status norm_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    const double order = ((const eddy_attributes_norm *)call->attributes)->p;
    eddy_status status = prepare(call, to, norm_of(order));
    eddy_cuda_reduce *p = &((plan *)to->memory)->parameters;
    p->takes_root = order == 2;
    p->order = order;
    return status;
}

const eddy_kernel eddy_cuda_norm = {.name = "norm", .prepare = norm_prepare, .run = run};

/* A tensor of rank 0 has no axis. */
static eddy_status prepare_axis(const eddy_kernel_call *call, eddy_kernel_plan *to, op number) {
    const eddy_attributes_axis_keepdim *attributes = call->attributes;
    const eddy_attributes_reduce one = {.axes =
                                            call->views[0].rank == 0 ? 0 : 1u << attributes->axis,
                                        .keeps_dims = attributes->keeps_dims};
    return prepare_axes(call, to, one, number);
}

static eddy_status max_dim_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    return prepare_axis(call, to, OP_argmax);
}

static eddy_status min_dim_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {
    return prepare_axis(call, to, OP_argmin);
}

const eddy_kernel eddy_cuda_max_dim = {.name = "max_dim", .prepare = max_dim_prepare, .run = run};
const eddy_kernel eddy_cuda_min_dim = {.name = "min_dim", .prepare = min_dim_prepare, .run = run};

#define KERNEL(op)                                                                                 \
    static eddy_status op##_prepare(const eddy_kernel_call *call, eddy_kernel_plan *to) {          \
        return prepare(call, to, OP_##op);                                                         \
    }                                                                                              \
    const eddy_kernel eddy_cuda_##op = {.name = #op, .prepare = op##_prepare, .run = run};

KERNEL(sum)
KERNEL(prod)
KERNEL(max)
KERNEL(min)
KERNEL(any)
KERNEL(all)
KERNEL(argmax)
KERNEL(argmin)
KERNEL(logsumexp)
