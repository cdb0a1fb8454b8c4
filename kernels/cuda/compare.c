/* equal and allclose: the answer is yes, until a thread finds a difference. */
#include <base/dtype.h>
#include <kernels/attributes.h>
#include <kernels/cpu/walk.h>
#include <kernels/cuda/compare.h>
#include <kernels/cuda/images.h>
#include <kernels/cuda/kernels.h>
#include <kernels/cuda/map.h>
#include <kernels/cuda/view.h>
#include <string.h>

static eddy_cuda_image image = {.data = eddy_cuda_image_compare};

/* Elements of a block of the dense form, some a thread at once. */
#define DENSE_ELEMENTS_OF_BLOCK (EDDY_CUDA_BLOCK * 4)

static _Atomic(void *) equal_loaded[EDDY_DTYPE_COUNT][2][EDDY_CUDA_DEVICES],
    allclose_loaded[EDDY_DTYPE_COUNT][2][EDDY_CUDA_DEVICES];

static const eddy_cuda_forms equal_forms[EDDY_DTYPE_COUNT] = {
#define EQUAL(name, dtype)                                                                         \
    [EDDY_##dtype] = EDDY_CUDA_FORMS("eddy_equal_" #name, image, equal_loaded[EDDY_##dtype]),
    EDDY_CUDA_COMPARED(EQUAL)};
static const eddy_cuda_forms allclose_forms[EDDY_DTYPE_COUNT] = {
#define ALLCLOSE(name, dtype)                                                                      \
    [EDDY_##dtype] = EDDY_CUDA_FORMS("eddy_allclose_" #name, image, allclose_loaded[EDDY_##dtype]),
    EDDY_CUDA_COMPARED(ALLCLOSE)};

/* ---- the walk over both sides ---- */

static bool is_one(const eddy_walk *walk, int32_t side) {
    return walk->rank == 1 && walk->strides[side][0] == 0;
}

/* Each side is contiguous, or one element. */
static bool is_dense(const eddy_walk *walk) {
    if (walk->rank > 1)
        return false;
    for (int32_t s = 0; s < 2; s++)
        if (eddy_walk_inner_stride(walk, s) != 1 && !is_one(walk, s))
            return false;
    return true;
}

static void launch_dense(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                         const eddy_walk *walk, const uint64_t *attributes, size_t bytes) {
    eddy_cuda_dense p = {.count = eddy_walk_count(walk), .is_aligned = true};
    for (int32_t s = 0; s < 2; s++) {
        p.data[s] = call->views[s].data;
        p.broadcast |= (uint32_t)is_one(walk, s) << s;
        p.is_aligned &= is_one(walk, s) || (uintptr_t)p.data[s] % 16 == 0;
    }
    p.data[EDDY_CUDA_COMPARE_ANSWER] = call->views[2].data;
    memcpy(p.attributes, attributes, bytes);
    eddy_cuda_launch(call, &forms->dense, &p, sizeof(p),
                     eddy_cuda_blocks(call, p.count, DENSE_ELEMENTS_OF_BLOCK));
}

/* The answer stands still, and is the first operand of a map. */
static void launch_strided(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                           const eddy_walk *walk, const uint64_t *attributes, size_t bytes) {
    const eddy_cuda_forms strided = {.strided = forms->strided};
    eddy_cuda_operand operands[EDDY_CUDA_COMPARE_OPERANDS] = {{call->views[2].data, EDDY_BOOL}};
    eddy_walk all;
    eddy_walk_init(&all, 0, NULL);
    all.operand_count = EDDY_CUDA_COMPARE_OPERANDS;
    for (int32_t d = 0; d < walk->rank; d++)
        eddy_walk_append(&all, walk->dims[d],
                         (int64_t[]){0, walk->strides[0][d], walk->strides[1][d]},
                         EDDY_CUDA_COMPARE_OPERANDS);
    for (int32_t s = 0; s < 2; s++)
        operands[s + 1] = (eddy_cuda_operand){call->views[s].data, call->views[s].dtype};
    eddy_cuda_map(call, &strided, &all, operands, attributes, bytes);
}

/* Compares both sides, which broadcast to one shape. */
static void compare(const eddy_kernel_call *call, const eddy_cuda_forms *forms,
                    const uint64_t *attributes, size_t bytes) {
    int64_t shape[EDDY_RANK_MAX];
    int32_t rank = eddy_walk_joint_dims(call->views, 2, shape);
    eddy_walk walk;
    eddy_walk_init(&walk, rank, shape);
    eddy_walk_add_broadcast(&walk, &call->views[0]);
    eddy_walk_add_broadcast(&walk, &call->views[1]);
    eddy_walk_sort(&walk);
    eddy_walk_collapse(&walk);
    eddy_cuda_fill_view(call, &call->views[2], true);
    if (eddy_walk_count(&walk) > 0)
        (is_dense(&walk) ? launch_dense : launch_strided)(call, forms, &walk, attributes, bytes);
}

/* ---- kernels ---- */

/* views: a, b, answer */
static void run_equal(const eddy_kernel_call *call) {
    const eddy_op_view *a = &call->views[0], *b = &call->views[1];
    const uint64_t none = 0;
    if (a->rank != b->rank || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(*a->shape)) != 0)
        eddy_cuda_fill_view(call, &call->views[2], false);
    else
        compare(call, &equal_forms[a->dtype], &none, 0);
}

static void run_allclose(const eddy_kernel_call *call) {
    const eddy_attributes_allclose *attributes = call->attributes;
    uint64_t words[] = {[EDDY_CUDA_COMPARE_NAN_IS_EQUAL] = attributes->nan_is_equal};
    memcpy(&words[EDDY_CUDA_COMPARE_ATOL], &attributes->atol, sizeof(double));
    memcpy(&words[EDDY_CUDA_COMPARE_RTOL], &attributes->rtol, sizeof(double));
    compare(call, &allclose_forms[call->views[0].dtype], words, sizeof(words));
}

const eddy_kernel eddy_cuda_equal = {.name = "equal", .run = run_equal};
const eddy_kernel eddy_cuda_allclose = {.name = "allclose", .run = run_allclose};
