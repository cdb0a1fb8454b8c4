/* rand, randn, randint, bernoulli, dropout and its gradient: walks along the output, with the elements' numbers as an operand. */
#include <base/dtype.h>
#include <base/shape.h>
#include <kernels/attributes.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/random.h>
#include <kernels/random.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_random};

enum {
#define NUMBER(op, name, dtype) NUMBER_##op##_##name,
    EDDY_CUDA_RANDOM_FILLS(NUMBER) EDDY_CUDA_RANDOM_DECISIONS(NUMBER) COUNT
};
static _Atomic(void *) loaded[COUNT][2][EDDY_CUDA_DEVICES];

typedef enum op { OP_rand, OP_randn, OP_randint, OP_bernoulli, OP_dropout, OPS } op;

static const eddy_cuda_forms forms[OPS][EDDY_DTYPE_COUNT] = {
#define FORMS(op, name, dtype)                                                                     \
    [OP_##op][EDDY_##dtype] =                                                                      \
        EDDY_CUDA_FORMS("eddy_" #op "_" #name, image, loaded[NUMBER_##op##_##name]),
    EDDY_CUDA_RANDOM_FILLS(FORMS) EDDY_CUDA_RANDOM_DECISIONS(FORMS)
        /* It has the bits of i8. */
        [OP_randint][EDDY_U8] =
            EDDY_CUDA_FORMS("eddy_randint_i8", image, loaded[NUMBER_randint_i8])};

/* views: in, if the op has one; out */
static void draw(const eddy_kernel_call *call, op number, const uint64_t *attributes) {
    const eddy_op_view *out = &call->views[call->view_count - 1];
    int64_t numbers[EDDY_RANK_MAX];
    eddy_shape_strides_contiguous(out->rank, out->shape, numbers);
    eddy_cuda_operand operands[3] = {{out->data, out->dtype}};
    eddy_walk walk;
    eddy_walk_init(&walk, out->rank, out->shape);
    eddy_walk_add(&walk, out->strides, 1);
    for (int32_t i = 0; i < call->view_count - 1; i++) {
        operands[walk.operand_count] =
            (eddy_cuda_operand){call->views[i].data, call->views[i].dtype};
        eddy_walk_add(&walk, call->views[i].strides, 1);
    }
    operands[walk.operand_count] = (eddy_cuda_operand){NULL, EDDY_U8};
    eddy_walk_add(&walk, numbers, 1);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_map(call, &forms[number][out->dtype], &walk, operands, attributes,
                  EDDY_CUDA_RANDOM_ATTRIBUTES * sizeof(*attributes));
}

static void draw_plainly(const eddy_kernel_call *call, op number) {
    const eddy_attributes_random *attributes = call->attributes;
    const uint64_t words[EDDY_CUDA_RANDOM_ATTRIBUTES] = {[EDDY_CUDA_RANDOM_SEED] = attributes->seed,
                                                         [EDDY_CUDA_RANDOM_COUNTER] =
                                                             attributes->counter};
    draw(call, number, words);
}

static void run_rand(const eddy_kernel_call *call) {
    draw_plainly(call, OP_rand);
}

static void run_randn(const eddy_kernel_call *call) {
    draw_plainly(call, OP_randn);
}

static void run_bernoulli(const eddy_kernel_call *call) {
    draw_plainly(call, OP_bernoulli);
}

static void run_randint(const eddy_kernel_call *call) {
    const eddy_attributes_randint *attributes = call->attributes;
    const uint64_t words[EDDY_CUDA_RANDOM_ATTRIBUTES] = {
        [EDDY_CUDA_RANDOM_SEED] = attributes->seed,
        [EDDY_CUDA_RANDOM_COUNTER] = attributes->counter,
        [EDDY_CUDA_RANDOM_LOW] = (uint64_t)attributes->low,
        [EDDY_CUDA_RANDOM_RANGE] = (uint64_t)attributes->high - (uint64_t)attributes->low};
    draw(call, OP_randint, words);
}

/* p: as given. */
static void drop(const eddy_kernel_call *call, uint64_t seed, uint64_t counter, double p) {
    const uint64_t words[EDDY_CUDA_RANDOM_ATTRIBUTES] = {
        [EDDY_CUDA_RANDOM_SEED] = seed,
        [EDDY_CUDA_RANDOM_COUNTER] = counter,
        [EDDY_CUDA_RANDOM_SCALE] = eddy_bits_of_f64(eddy_random_drop_scale(p)),
        [EDDY_CUDA_RANDOM_LEAST] = eddy_bits_of_f64((double)eddy_random_drop_least(p))};
    draw(call, OP_dropout, words);
}

static void run_dropout(const eddy_kernel_call *call) {
    const eddy_attributes_dropout *attributes = call->attributes;
    drop(call, attributes->seed, attributes->counter, attributes->p);
}

static void run_dropout_backward(const eddy_kernel_call *call) {
    const eddy_attributes_dropout_backward *attributes = call->attributes;
    drop(call, (uint64_t)attributes->seed, (uint64_t)attributes->counter, attributes->p);
}

const eddy_kernel eddy_cuda_rand = {.name = "rand", .run = run_rand};
const eddy_kernel eddy_cuda_randn = {.name = "randn", .run = run_randn};
const eddy_kernel eddy_cuda_randint = {.name = "randint", .run = run_randint};
const eddy_kernel eddy_cuda_bernoulli = {.name = "bernoulli", .run = run_bernoulli};
const eddy_kernel eddy_cuda_dropout = {.name = "dropout", .run = run_dropout};
const eddy_kernel eddy_cuda_dropout_backward = {.name = "dropout_backward",
                                                .run = run_dropout_backward};
