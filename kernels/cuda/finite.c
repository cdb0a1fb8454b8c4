/* The kernels behind EDDY_CHECK_FINITE. They are no op's: the library calls them around each call, with one view, which is read. */
#include <base/dtype.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/finite.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/finite.h>

_Static_assert(sizeof(eddy_attributes_check_finite) <= EDDY_CUDA_ELEMENTWISE_ATTRIBUTE_BYTES,
               "a kernel has room for them");

static eddy_cuda_image image = {.data = eddy_cuda_image_finite};

static _Atomic(void *) infinity_loaded[EDDY_DTYPE_COUNT][2][EDDY_CUDA_DEVICES],
    finite_loaded[EDDY_DTYPE_COUNT][2][EDDY_CUDA_DEVICES];

/* Strided alone: who checks has time. */
static const eddy_cuda_forms infinity_forms[EDDY_DTYPE_COUNT] = {
#define INFINITY_FORM(name, dtype)                                                                 \
    [EDDY_##dtype] = {.strided = {"eddy_check_infinity_" #name "_strided", &image,                 \
                                  infinity_loaded[EDDY_##dtype][1]}},
    EDDY_CUDA_FINITE(INFINITY_FORM)};
static const eddy_cuda_forms finite_forms[EDDY_DTYPE_COUNT] = {
#define FINITE_FORM(name, dtype)                                                                   \
    [EDDY_##dtype] = {.strided = {"eddy_check_finite_" #name "_strided", &image,                   \
                                  finite_loaded[EDDY_##dtype][1]}},
    EDDY_CUDA_FINITE(FINITE_FORM)};

static void look(const eddy_kernel_call *call, const eddy_cuda_forms *forms, size_t bytes) {
    const eddy_op_view *view = &call->views[0];
    const eddy_cuda_operand operand = {view->data, view->dtype};
    eddy_walk walk;
    eddy_walk_init(&walk, view->rank, view->shape);
    eddy_walk_add(&walk, view->strides, 1);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_map(call, &forms[view->dtype], &walk, &operand, call->attributes, bytes);
}

static void run_infinity(const eddy_kernel_call *call) {
    look(call, infinity_forms, 0);
}

static void run_finite(const eddy_kernel_call *call) {
    look(call, finite_forms, sizeof(eddy_attributes_check_finite));
}

const eddy_kernel eddy_cuda_check_infinity = {.name = "check_infinity", .run = run_infinity};
const eddy_kernel eddy_cuda_check_finite = {.name = "check_finite", .run = run_finite};
