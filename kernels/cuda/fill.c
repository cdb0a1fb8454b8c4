#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cuda/fill.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_fill};
static _Atomic(void *) loaded[4][2][EDDY_CUDA_DEVICES];

/* By eddy_cuda_width. */
static const eddy_cuda_forms forms[] = {EDDY_CUDA_FORMS("eddy_fill_8", image, loaded[0]),
                                        EDDY_CUDA_FORMS("eddy_fill_16", image, loaded[1]),
                                        EDDY_CUDA_FORMS("eddy_fill_32", image, loaded[2]),
                                        EDDY_CUDA_FORMS("eddy_fill_64", image, loaded[3])};

/* ---- one element ---- */

void eddy_cuda_fill_view(const eddy_kernel_call *call, const eddy_op_view *target,
                         uint64_t element) {
    eddy_walk walk;
    eddy_walk_init(&walk, target->rank, target->shape);
    eddy_walk_add(&walk, target->strides, 1);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_operand operand = {target->data, target->dtype};
    eddy_cuda_map(call, &forms[eddy_cuda_width(target->dtype)], &walk, &operand, &element,
                  sizeof(element));
}

static void run_full(const eddy_kernel_call *call) {
    const eddy_attributes_full *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    uint64_t element = 0;
    eddy_dtype_store_scalar(out->dtype, &element, attributes->value);
    eddy_cuda_fill_view(call, out, element);
}

static void run_eye(const eddy_kernel_call *call) {
    const eddy_op_view *out = &call->views[0];
    uint64_t one = 0;
    eddy_dtype_store_i64(out->dtype, &one, 1);
    eddy_cuda_fill_view(call, out, 0);
    int64_t length = eddy_min_i64(out->shape[0], out->shape[1]),
            stride = out->strides[0] + out->strides[1];
    eddy_op_view diagonal = {
        .data = out->data, .shape = &length, .strides = &stride, .dtype = out->dtype, .rank = 1};
    eddy_cuda_fill_view(call, &diagonal, one);
}

static void run_empty(const eddy_kernel_call *call) {
    (void)call;
}

/* ---- sequences ---- */

/* Dtypes of numbers, in their order, with those of their values. */
enum {
#define SEQUENCE_NUMBER(name, dtype) NUMBER_real_##name, NUMBER_integer_##name,
    EDDY_CUDA_SEQUENCES(SEQUENCE_NUMBER) SEQUENCES
};
static _Atomic(void *) sequences_loaded[SEQUENCES][EDDY_CUDA_DEVICES];

/* By dtype, and whether values are integers. */
static const eddy_cuda_function sequences[EDDY_DTYPE_COUNT][2] = {
#define SEQUENCE_FUNCTION(name, dtype)                                                             \
    [EDDY_##dtype] = {                                                                             \
        {"eddy_sequence_real_" #name, &image, sequences_loaded[NUMBER_real_##name]},               \
        {"eddy_sequence_integer_" #name, &image, sequences_loaded[NUMBER_integer_##name]}},
    EDDY_CUDA_SEQUENCES(SEQUENCE_FUNCTION)};

static void launch_sequence(const eddy_kernel_call *call, bool is_integer, eddy_cuda_sequence *p) {
    const eddy_op_view *out = &call->views[0];
    p->out = out->data;
    p->count = out->shape[0];
    p->stride = out->strides[0] * eddy_dtype_size(out->dtype);
    if (p->count > 0)
        eddy_cuda_launch(call, &sequences[out->dtype][is_integer], p, sizeof(*p),
                         eddy_cuda_blocks(call, p->count, EDDY_CUDA_BLOCK));
}

static double scalar_real(eddy_scalar scalar) {
    return scalar.kind == EDDY_SCALAR_FLOAT ? scalar.value.floating : (double)scalar.value.integer;
}

/* Integers are exact while start and step are integers; otherwise a value is start + step * i in double. */
static void run_arange(const eddy_kernel_call *call) {
    const eddy_attributes_arange *attributes = call->attributes;
    bool is_real =
        attributes->start.kind == EDDY_SCALAR_FLOAT || attributes->step.kind == EDDY_SCALAR_FLOAT;
    eddy_cuda_sequence p = {.near = INT64_MAX};
    if (is_real) {
        p.start = scalar_real(attributes->start);
        p.step = scalar_real(attributes->step);
    } else {
        p.first = (uint64_t)attributes->start.value.integer;
        p.each = (uint64_t)attributes->step.value.integer;
    }
    launch_sequence(call, !is_real, &p);
}

/* Counts from the nearer end, so that both ends are exact and the middle is symmetric (as in PyTorch). */
static void run_linspace(const eddy_kernel_call *call) {
    const eddy_attributes_linspace *attributes = call->attributes;
    int64_t count = call->views[0].shape[0];
    eddy_cuda_sequence p = {.start = attributes->start, .end = attributes->end, .near = count / 2};
    p.step = count > 1 ? (p.end - p.start) / (double)(count - 1) : 0;
    if (count == 1)
        p.end = p.start;
    launch_sequence(call, false, &p);
}

const eddy_kernel eddy_cuda_arange = {.name = "arange", .run = run_arange};
const eddy_kernel eddy_cuda_linspace = {.name = "linspace", .run = run_linspace};
const eddy_kernel eddy_cuda_eye = {.name = "eye", .run = run_eye};
const eddy_kernel eddy_cuda_full = {.name = "full", .run = run_full};
const eddy_kernel eddy_cuda_empty = {.name = "empty", .run = run_empty, .writes_nothing = true};
