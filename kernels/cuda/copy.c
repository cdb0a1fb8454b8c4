#include <base/dtype.h>
#include <kernels/cuda/copy.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/view.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_copy};

enum {
#define CAST_NUMBER(from, from_dtype, to, to_dtype) NUMBER_##from##_##to,
#define MOVE_NUMBER(bits) NUMBER_##bits,
    EDDY_CUDA_CASTS(CAST_NUMBER) EDDY_CUDA_MOVES(MOVE_NUMBER) COUNT
};

static _Atomic(void *) loaded[COUNT][2][EDDY_CUDA_DEVICES];

static const eddy_cuda_forms forms[COUNT] = {
#define CAST_FORMS(from, from_dtype, to, to_dtype)                                                 \
    [NUMBER_##from##_##to] =                                                                       \
        EDDY_CUDA_FORMS("eddy_cast_" #from "_" #to, image, loaded[NUMBER_##from##_##to]),
#define MOVE_FORMS(bits)                                                                           \
    [NUMBER_##bits] = EDDY_CUDA_FORMS("eddy_move_" #bits, image, loaded[NUMBER_##bits]),
    EDDY_CUDA_CASTS(CAST_FORMS) EDDY_CUDA_MOVES(MOVE_FORMS)};

/* By [from][to]; 1 more than the number, and 0 where they are one dtype. */
static const uint8_t casts[EDDY_DTYPE_COUNT][EDDY_DTYPE_COUNT] = {
#define CAST_PLACE(from, from_dtype, to, to_dtype)                                                 \
    [EDDY_##from_dtype][EDDY_##to_dtype] = NUMBER_##from##_##to + 1,
    EDDY_CUDA_CASTS(CAST_PLACE)};

static const eddy_cuda_forms *forms_of(eddy_dtype from, eddy_dtype to) {
    return from == to ? &forms[NUMBER_8 + eddy_cuda_width(to)] : &forms[casts[from][to] - 1];
}

void eddy_cuda_copy_view(const eddy_kernel_call *call, const eddy_op_view *source,
                         const eddy_op_view *target) {
    eddy_walk walk;
    eddy_walk_init(&walk, target->rank, target->shape);
    eddy_walk_add(&walk, target->strides, 1);
    eddy_walk_add_broadcast(&walk, source);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_operand operands[] = {{target->data, target->dtype}, {source->data, source->dtype}};
    eddy_cuda_map(call, forms_of(source->dtype, target->dtype), &walk, operands, call->attributes,
                  0);
}

static void run(const eddy_kernel_call *call) {
    eddy_cuda_copy_view(call, &call->views[0], &call->views[1]);
}

const eddy_kernel eddy_cuda_copy = {.name = "copy", .run = run};
