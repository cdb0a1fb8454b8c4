#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_fill};
static _Atomic(void *) loaded[4][2][EDDY_CUDA_DEVICES];

/* By the power of two that the bytes of an element are. */
static const eddy_cuda_forms forms[] = {EDDY_CUDA_FORMS("eddy_fill_8", image, loaded[0]),
                                        EDDY_CUDA_FORMS("eddy_fill_16", image, loaded[1]),
                                        EDDY_CUDA_FORMS("eddy_fill_32", image, loaded[2]),
                                        EDDY_CUDA_FORMS("eddy_fill_64", image, loaded[3])};

static void run_full(const eddy_kernel_call *call) {
    const eddy_attributes_full *attributes = call->attributes;
    const eddy_op_view *out = &call->views[call->view_count - 1];
    uint64_t element = 0;
    eddy_dtype_store_scalar(out->dtype, &element, attributes->value);
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_operand operand = {out->data, out->dtype};
    eddy_cuda_map(call, &forms[__builtin_ctz((unsigned)eddy_dtype_bytes(out->dtype))], &walk,
                  &operand, &element, sizeof(element));
}

static void run_empty(const eddy_kernel_call *call) {
    (void)call;
}

const eddy_kernel eddy_cuda_full = {.name = "full", .run = run_full};
const eddy_kernel eddy_cuda_empty = {.name = "empty", .run = run_empty, .writes_nothing = true};
