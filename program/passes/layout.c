/* Images that lie channels-last between convolutions, where the calls had them row-major: convolutions are faster so, and round otherwise.
 *
 * An image is all of a value of four dims [N, C, H, W] that lives within the run, and that nothing names otherwise (a view of other dims, a part). Images
 * that convolutions, pools, norms, sums and elementwise ops have in common are one region. Of a region with convolutions all images are turned, unless as many bytes
 * go through elementwise ops together with images that stay as they are, which takes longer then: inputs, outputs, what is reshaped. No copies are added: ops take
 * operands in any order. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <program/passes/passes.h>
#include <string.h>

#define RANK 4

/* What takes images in either order, but for one operand that is none: the weights of a convolution. */
static const struct {
    const char *name;
    bool is_convolution;
    uint32_t weights; /* EDDY_CODE_NONE: no such operand */
} takers[] = {
    {"conv2d", true, 1},
    {"conv_transpose2d", true, 1},
    {"conv2d_backward_weight", true, 2},
    {"max_pool2d", false, EDDY_CODE_NONE},
    {"max_pool2d_with_indices", false, EDDY_CODE_NONE},
    {"max_pool2d_backward", false, EDDY_CODE_NONE},
    {"max_pool2d_backward_from_x", false, EDDY_CODE_NONE},
    {"avg_pool2d", false, EDDY_CODE_NONE},
    {"avg_pool2d_backward", false, EDDY_CODE_NONE},
    {"batch_norm", false, EDDY_CODE_NONE},
    {"batch_norm_training", false, EDDY_CODE_NONE},
    {"batch_norm_backward", false, EDDY_CODE_NONE},
    {"batch_norm_backward_weight", false, EDDY_CODE_NONE},
    {"sum", false, EDDY_CODE_NONE},
};

#define TAKERS (sizeof(takers) / sizeof(*takers))

typedef enum role {
    ROLE_NONE, /* no image, or it has to lie as it does */
    ROLE_CONVOLVED,
    ROLE_POOLED,
    ROLE_ELEMENTWISE,
} role;

/* Of the region that an image belongs to; the region's first image has the sums. */
typedef struct region {
    uint32_t of;      /* value: a step towards the first image */
    uint32_t operand; /* that has its dims; EDDY_CODE_NONE: none so far */
    bool is_image;
    int64_t convolved; /* bytes of images that convolutions read and write */
    int64_t mixed;     /* bytes of other images in their elementwise ops */
} region;

typedef struct laying {
    eddy_code *code;
    const uint32_t *bases;
    const eddy_op *ops[TAKERS];
    region *regions; /* per value */
} laying;

static eddy_code_operand *operand_of(const laying *l, uint32_t i, uint32_t k) {
    return eddy_code_operand_at(l->code, eddy_code_instruction_at(l->code, i)->operands_at + k);
}

static role role_of(const laying *l, uint32_t i, uint32_t k) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(l->code, i);
    if (instruction->op->is_elementwise)
        return ROLE_ELEMENTWISE;
    for (size_t t = 0; t < TAKERS; t++)
        if (instruction->op == l->ops[t])
            return k == takers[t].weights     ? ROLE_NONE
                   : takers[t].is_convolution ? ROLE_CONVOLVED
                                              : ROLE_POOLED;
    return ROLE_NONE;
}

/* ---- images ---- */

/* Of one channel, or one pixel, both orders are the same. */
static bool has_image_dims(const laying *l, const eddy_code_operand *operand) {
    const int64_t *dims = eddy_code_dims(l->code, operand);
    return operand->rank == RANK && dims[1] > 1 && dims[2] * dims[3] > 1;
}

static bool is_whole(const laying *l, const eddy_code_operand *operand) {
    eddy_layout layout;
    int64_t count, strides[EDDY_RANK_MAX];
    eddy_code_operand_layout(l->code, operand, &layout);
    eddy_shape_strides_contiguous(layout.rank, layout.dims, strides);
    return layout.offset == 0 &&
           memcmp(layout.strides, strides, (size_t)layout.rank * sizeof(*strides)) == 0 &&
           eddy_shape_count(layout.rank, layout.dims, &count) &&
           count * eddy_dtype_size((eddy_dtype)operand->dtype) ==
               eddy_code_value_at(l->code, operand->value)->bytes;
}

static bool may_turn(const laying *l, uint32_t i, uint32_t k) {
    const eddy_code_operand *operand = operand_of(l, i, k);
    const eddy_code_value *value = eddy_code_value_at(l->code, operand->value);
    return role_of(l, i, k) != ROLE_NONE && l->bases[operand->value] == 0 &&
           value->kind == EDDY_VALUE_MADE && has_image_dims(l, operand) && is_whole(l, operand);
}

static bool has_dims_of(const laying *l, const eddy_code_operand *operand, uint32_t other) {
    const eddy_code_operand *first = eddy_code_operand_at(l->code, other);
    return memcmp(eddy_code_dims(l->code, operand), eddy_code_dims(l->code, first),
                  RANK * sizeof(int64_t)) == 0;
}

/* A value is an image where all operands that name it may be turned, and have the same dims. */
static void find_images(const laying *l) {
    for (uint32_t v = 0; v < l->code->values.count; v++)
        l->regions[v] = (region){.of = v, .operand = EDDY_CODE_NONE, .is_image = true};
    for (uint32_t i = 0; i < l->code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(l->code, i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand = operand_of(l, i, k);
            if (eddy_code_operand_is_absent(operand))
                continue;
            region *of = &l->regions[operand->value];
            of->is_image = of->is_image && may_turn(l, i, k) &&
                           (of->operand == EDDY_CODE_NONE || has_dims_of(l, operand, of->operand));
            of->operand = instruction->operands_at + k;
        }
    }
}

static bool is_image(const laying *l, uint32_t i, uint32_t k) {
    const eddy_code_operand *operand = operand_of(l, i, k);
    return !eddy_code_operand_is_absent(operand) && l->regions[operand->value].is_image;
}

/* ---- regions ---- */

static region *region_of(const laying *l, uint32_t value) {
    while (l->regions[value].of != value)
        value = l->regions[value].of = l->regions[l->regions[value].of].of;
    return &l->regions[value];
}

static void join(const laying *l, uint32_t a, uint32_t b) {
    region *first = region_of(l, a), *second = region_of(l, b);
    if (first == second)
        return;
    second->of = first->of;
    first->convolved += second->convolved;
    first->mixed += second->mixed;
}

static void see(const laying *l, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(l->code, i);
    uint32_t first = EDDY_CODE_NONE;
    int64_t mixed = 0;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = operand_of(l, i, k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        if (!is_image(l, i, k)) {
            if (role_of(l, i, k) == ROLE_ELEMENTWISE && has_image_dims(l, operand))
                mixed += eddy_code_operand_bytes(l->code, operand);
            continue;
        }
        if (first != EDDY_CODE_NONE)
            join(l, first, operand->value);
        first = operand->value;
        if (role_of(l, i, k) == ROLE_CONVOLVED && operand->dtype == EDDY_F32)
            region_of(l, first)->convolved += eddy_code_operand_bytes(l->code, operand);
    }
    if (first != EDDY_CODE_NONE)
        region_of(l, first)->mixed += mixed;
}

/* ---- turning ---- */

static bool turn(const laying *l, eddy_code_operand *operand) {
    int64_t words[2 * RANK], *dims = words, *strides = words + RANK;
    memcpy(dims, eddy_code_dims(l->code, operand), RANK * sizeof(*dims));
    strides[0] = dims[1] * dims[2] * dims[3];
    strides[1] = 1;
    strides[2] = dims[3] * dims[1];
    strides[3] = dims[1];
    eddy_code_value_at(l->code, operand->value)->is_turned = true;
    return eddy_code_add_words(l->code, words, sizeof(words), &operand->words_at);
}

static bool turn_all(const laying *l) {
    for (uint32_t i = 0; i < l->code->instructions.count; i++)
        for (uint32_t k = 0; k < eddy_code_instruction_at(l->code, i)->operand_count; k++) {
            if (!is_image(l, i, k))
                continue;
            const region *of = region_of(l, operand_of(l, i, k)->value);
            if (of->convolved > of->mixed && !turn(l, operand_of(l, i, k)))
                return false;
        }
    return true;
}

bool eddy_pass_layout(eddy_code *code, const uint32_t *bases) {
    laying l = {.code = code, .bases = bases};
    size_t bytes = code->values.count * sizeof(*l.regions) + 1;
    l.regions = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM);
    if (!l.regions)
        return false;
    for (size_t t = 0; t < TAKERS; t++)
        l.ops[t] = eddy_op_find_built_in(takers[t].name);
    find_images(&l);
    for (uint32_t i = 0; i < code->instructions.count; i++)
        see(&l, i);
    bool is_good = turn_all(&l);
    eddy_memory_release(l.regions, bytes, EDDY_MEMORY_PROGRAM);
    return is_good;
}
