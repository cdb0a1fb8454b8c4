/* Products that are added to a value at once, instead of being written, read and added.
 *
 * The product is all of a value that only the sum reads, and is computed where the sum was. The sum lies where its other operand does, which is
 * written in place, or is used there for the last time: then that value is the sum from its beginning. Nobody writes the factors in between, and no mark lies between
 * what is left out or renamed. All is row-major, so that the sum is a matrix whatever its dims are. */
#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <program/control.h>
#include <program/group.h>
#include <program/passes/passes.h>
#include <program/product_op.h>
#include <string.h>

/* Instructions that the product may lie before the sum. */
#define FARTHEST 64

typedef struct accumulating {
    eddy_code *code;
    const uint32_t *bases;
    uint32_t *uses;    /* per value: operands that name it */
    bool *is_left_out; /* per instruction */
    const eddy_op *add, *mm, *matmul, *linear;
} accumulating;

/* A product as two matrices. */
typedef struct factors {
    eddy_code_operand a, b;
    eddy_layout a_layout, b_layout;
} factors;

static const eddy_code_instruction *at(const accumulating *m, uint32_t i) {
    return eddy_code_instruction_at(m->code, i);
}

static eddy_code_operand *operands_of(const accumulating *m, uint32_t i) {
    return eddy_code_operand_at(m->code, at(m, i)->operands_at);
}

static int64_t count_of(const accumulating *m, const eddy_code_operand *operand) {
    int64_t count = 0;
    return eddy_shape_count(operand->rank, eddy_code_dims(m->code, operand), &count) ? count : 0;
}

static bool is_row_major(const accumulating *m, const eddy_code_operand *operand) {
    const int64_t *dims = eddy_code_dims(m->code, operand),
                  *strides = eddy_code_strides(m->code, operand);
    int64_t stride = 1;
    for (int32_t d = operand->rank; d-- > 0; stride *= dims[d])
        if (dims[d] != 1 && strides[d] != stride)
            return false;
    return true;
}

static bool is_whole(const accumulating *m, const eddy_code_operand *operand) {
    return operand->offset == 0 && is_row_major(m, operand) &&
           count_of(m, operand) * eddy_dtype_size((eddy_dtype)operand->dtype) ==
               eddy_code_value_at(m->code, operand->value)->bytes;
}

static bool lives_within(const accumulating *m, uint32_t value) {
    return m->bases[value] == 0 && eddy_code_value_at(m->code, value)->kind == EDDY_VALUE_MADE;
}

static bool is_mark(const accumulating *m, uint32_t i) {
    return eddy_control_of(at(m, i)->op) != EDDY_CONTROL_NONE;
}

static bool writes(const accumulating *m, uint32_t i, uint32_t value) {
    for (uint32_t k = 0; k < at(m, i)->operand_count; k++)
        if (operands_of(m, i)[k].value == value && operands_of(m, i)[k].access & EDDY_CODE_WRITES)
            return true;
    return false;
}

static bool touches(const accumulating *m, uint32_t i, uint32_t value) {
    for (uint32_t k = 0; k < at(m, i)->operand_count; k++)
        if (operands_of(m, i)[k].value == value)
            return true;
    return false;
}

static bool makes(const accumulating *m, uint32_t i, uint32_t value) {
    for (uint32_t k = at(m, i)->input_count; k < at(m, i)->operand_count; k++)
        if (operands_of(m, i)[k].value == value && operands_of(m, i)[k].access & EDDY_CODE_MAKES)
            return true;
    return false;
}

/* ---- factors ---- */

/* The operand's dims but the last as one, where its strides allow that. */
static bool flatten(const accumulating *m, const eddy_code_operand *operand, eddy_layout *layout) {
    eddy_code_operand_layout(m->code, operand, layout);
    int32_t last = layout->rank - 1;
    if (last < 1)
        return false;
    int64_t rows = 1, stride = 0;
    for (int32_t d = last; d-- > 0;) {
        if (layout->dims[d] == 1)
            continue;
        if (rows == 1)
            stride = layout->strides[d];
        else if (layout->strides[d] != stride * rows)
            return false;
        rows *= layout->dims[d];
    }
    *layout = (eddy_layout){.rank = 2,
                            .offset = layout->offset,
                            .dims = {rows, layout->dims[last]},
                            .strides = {stride, layout->strides[last]}};
    return true;
}

static void turn(eddy_layout *layout) {
    int64_t dim = layout->dims[0], stride = layout->strides[0];
    layout->dims[0] = layout->dims[1];
    layout->strides[0] = layout->strides[1];
    layout->dims[1] = dim;
    layout->strides[1] = stride;
}

/* Whether the instruction multiplies matrices, and nothing else. */
static bool see_factors(const accumulating *m, uint32_t i, factors *f) {
    const eddy_code_instruction *instruction = at(m, i);
    const eddy_code_operand *operands = operands_of(m, i);
    bool is_linear = instruction->op == m->linear;
    if ((!is_linear && instruction->op != m->mm && instruction->op != m->matmul) ||
        (is_linear && !eddy_code_operand_is_absent(&operands[2])) || operands[1].rank != 2)
        return false;
    f->a = operands[0];
    f->b = operands[1];
    eddy_code_operand_layout(m->code, &f->b, &f->b_layout);
    if (is_linear)
        turn(&f->b_layout);
    return flatten(m, &f->a, &f->a_layout);
}

/* ---- the sum ---- */

/* The instruction that makes the product that is operand k of sum i; EDDY_CODE_NONE: it is none, or has to stay. */
static uint32_t product_of(const accumulating *m, uint32_t i, uint32_t k, factors *f) {
    const eddy_code_operand *product = &operands_of(m, i)[k];
    uint32_t lowest = i > FARTHEST ? i - FARTHEST : 0, made = i;
    if (!lives_within(m, product->value) || m->uses[product->value] != 2 || !is_whole(m, product))
        return EDDY_CODE_NONE;
    do {
        if (made == lowest || is_mark(m, made))
            return EDDY_CODE_NONE;
        made--;
    } while (m->is_left_out[made] || !makes(m, made, product->value));
    const eddy_code_operand *result = operands_of(m, made) + at(m, made)->operand_count - 1;
    if (!see_factors(m, made, f) || !is_whole(m, result) || f->a.dtype != product->dtype ||
        f->b.dtype != product->dtype)
        return EDDY_CODE_NONE;
    for (uint32_t between = made + 1; between <= i; between++)
        if (!m->is_left_out[between] &&
            (writes(m, between, f->a.value) || writes(m, between, f->b.value)))
            return EDDY_CODE_NONE;
    return made;
}

/* Whether the other operand's value has ended with instruction i, and has begun since the last mark. */
static bool ends_here(const accumulating *m, uint32_t i, uint32_t value) {
    for (uint32_t later = i + 1; later < m->code->instructions.count; later++)
        if (touches(m, later, value))
            return false;
    for (uint32_t before = i; before-- > 0 && !is_mark(m, before);)
        if (!m->is_left_out[before] && makes(m, before, value))
            return true;
    return false;
}

static void rename_value(const accumulating *m, uint32_t end, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t k = 0; k < at(m, i)->operand_count; k++)
            if (operands_of(m, i)[k].value == from) {
                operands_of(m, i)[k].value = to;
                m->uses[to]++;
            }
}

/* Whether the sum can lie where its operand `other` does; *sum: the operand of what is left. */
static bool place(const accumulating *m, uint32_t i, const eddy_code_operand *other,
                  eddy_code_operand *sum) {
    const eddy_code_operand *made = &operands_of(m, i)[2];
    *sum = *made;
    if (made->value == other->value) {
        /* What is set as a whole is no other operand's. */
        EDDY_ASSERT(!(made->access & (EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT)));
        return eddy_code_has_same_layout(m->code, made, other);
    }
    if (!(made->access & EDDY_CODE_MAKES) || !is_whole(m, made) || !is_whole(m, other) ||
        eddy_code_value_at(m->code, made->value)->kind != EDDY_VALUE_MADE ||
        !lives_within(m, other->value) ||
        eddy_code_value_at(m->code, other->value)->bytes !=
            eddy_code_value_at(m->code, made->value)->bytes ||
        !ends_here(m, i, other->value))
        return false;
    sum->access = EDDY_CODE_READS | EDDY_CODE_WRITES | EDDY_CODE_REPLACES;
    rename_value(m, i, other->value, made->value);
    return true;
}

/* Instruction i, a sum, becomes what adds the product to `sum`. False without memory. */
static bool replace(accumulating *m, uint32_t i, const factors *f, const eddy_code_operand *sum) {
    eddy_code *code = m->code;
    uint32_t operands_at = code->operands.count, words_at;
    eddy_layout layout = {.rank = 2,
                          .offset = sum->offset,
                          .dims = {f->a_layout.dims[0], f->b_layout.dims[1]},
                          .strides = {f->b_layout.dims[1], 1}};
    if (!eddy_code_add_operand(code, &f->a, &f->a_layout) ||
        !eddy_code_add_operand(code, &f->b, &f->b_layout) ||
        !eddy_code_add_operand(code, sum, &layout) ||
        !eddy_code_add_words(code, NULL, 0, &words_at))
        return false;
    eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
    instruction->op = &eddy_product_op;
    instruction->kernel = eddy_product_op.kernels[0]->fast;
    instruction->operands_at = operands_at;
    instruction->operand_count = instruction->input_count = 3;
    instruction->attributes_at = words_at;
    instruction->patch_count = 0;
    return true;
}

/* Whether instruction i adds values of one row-major shape, as f32 or f64. */
static bool is_sum(const accumulating *m, uint32_t i) {
    const eddy_code_operand *operands = operands_of(m, i);
    if (at(m, i)->op != m->add || at(m, i)->operand_count != 3 ||
        (operands[2].dtype != EDDY_F32 && operands[2].dtype != EDDY_F64))
        return false;
    for (int k = 0; k < 3; k++)
        if (operands[k].dtype != operands[2].dtype || !is_row_major(m, &operands[k]) ||
            count_of(m, &operands[k]) != count_of(m, &operands[2]))
            return false;
    return count_of(m, &operands[2]) > 0;
}

static bool look_at(accumulating *m, uint32_t i) {
    if (!is_sum(m, i))
        return true;
    for (uint32_t k = 2; k-- > 0;) {
        factors f;
        eddy_code_operand sum, other = operands_of(m, i)[1 - k];
        uint32_t product = product_of(m, i, k, &f);
        if (product == EDDY_CODE_NONE || other.value == operands_of(m, i)[k].value ||
            other.value == f.a.value || other.value == f.b.value || !place(m, i, &other, &sum))
            continue;
        m->is_left_out[product] = true;
        return replace(m, i, &f, &sum);
    }
    return true;
}

bool eddy_pass_accumulate(eddy_code *code, const uint32_t *bases) {
    uint32_t count = code->instructions.count, kept = 0;
    size_t bytes = code->values.count * sizeof(uint32_t) + count + 1;
    accumulating m = {.code = code,
                      .bases = bases,
                      .uses = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_PROGRAM),
                      .add = eddy_op_find_built_in("add"),
                      .mm = eddy_op_find_built_in("mm"),
                      .matmul = eddy_op_find_built_in("matmul"),
                      .linear = eddy_op_find_built_in("linear")};
    if (!m.uses)
        return false;
    m.is_left_out = (bool *)(m.uses + code->values.count);
    eddy_group_count_uses(code, m.uses);
    bool is_good = true;
    for (uint32_t i = 0; i < count && is_good; i++)
        is_good = look_at(&m, i);
    for (uint32_t i = 0; i < count; i++)
        if (!m.is_left_out[i])
            *eddy_code_instruction_at(code, kept++) = *eddy_code_instruction_at(code, i);
    code->instructions.count = kept;
    eddy_memory_release(m.uses, bytes, EDDY_MEMORY_PROGRAM);
    return is_good;
}
