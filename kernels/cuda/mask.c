#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_mask};
static _Atomic(void *) loaded[4][2][EDDY_CUDA_DEVICES];

/* By eddy_cuda_width. */
static const eddy_cuda_forms forms[] = {EDDY_CUDA_FORMS("eddy_masked_fill_8", image, loaded[0]),
                                        EDDY_CUDA_FORMS("eddy_masked_fill_16", image, loaded[1]),
                                        EDDY_CUDA_FORMS("eddy_masked_fill_32", image, loaded[2]),
                                        EDDY_CUDA_FORMS("eddy_masked_fill_64", image, loaded[3])};

/* views: in, mask, out */
static void run_masked_fill(const eddy_kernel_call *call) {
    const eddy_attributes_full *attributes = call->attributes;
    const eddy_op_view *in = &call->views[0], *mask = &call->views[1], *out = &call->views[2];
    uint64_t element = 0;
    eddy_dtype_store_scalar(out->dtype, &element, attributes->value);
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    eddy_walk_add_broadcast(&walk, in);
    eddy_walk_add_broadcast(&walk, mask);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    const eddy_cuda_operand operands[] = {
        {out->data, out->dtype}, {in->data, in->dtype}, {mask->data, mask->dtype}};
    eddy_cuda_map(call, &forms[eddy_cuda_width(out->dtype)], &walk, operands, &element,
                  sizeof(element));
}

const eddy_kernel eddy_cuda_masked_fill = {.name = "masked_fill", .run = run_masked_fill};
