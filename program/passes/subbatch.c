/* Gradients of weights, added up over sub-batches: what leads to them is done for a few images, or rows, at a time, and takes memory for these
 * alone. After Lym et al., Mini-batch Serialization, 2019.
 *
 * A block (batching.h) is done once for each of some sub-batches of equal size:
 *
 *   %1 [64, ..] = relu_backward(dy [64, ..], y [64, ..])     %1 [32, ..] = relu_backward(dy [32, ..], y [32, ..])
 *   %2 = conv2d_backward_weight(%1 [64, ..], x [64, ..])     %2 = conv2d_backward_weight(%1 [32, ..], x [32, ..])
 *                                                            %3 [32, ..] = relu_backward(dy [32, ..] at .., y [32, ..] at ..)
 *                                                            %4 = conv2d_backward_weight(%3 [32, ..], x [32, ..] at ..)
 *                                                            put %2 = add(%2, %4)
 *
 * What is handed on within the block is a value for each sub-batch. */
#include <base/assert.h>
#include <base/dtype.h>
#include <base/shape.h>
#include <program/passes/batching.h>
#include <program/passes/passes.h>
#include <stddef.h>
#include <string.h>

typedef struct splitting {
    eddy_batching batching;
    eddy_code *code;
    eddy_code_array made; /* eddy_code_instruction: the code's, as they will be */
    uint32_t begin, end;  /* places of the block's instructions */
    uint32_t part, parts; /* the present sub-batch, and how many there are */
    const eddy_op *add;
} splitting;

static bool add_instruction(splitting *s, const eddy_code_instruction *instruction) {
    uint32_t index;
    if (!eddy_code_array_add(&s->made, sizeof(*instruction), 1, &index))
        return false;
    ((eddy_code_instruction *)s->made.items)[index] = *instruction;
    return true;
}

/* Attributes of the op at the end of the words: those at `from`. */
static bool copy_attributes(const splitting *s, const eddy_op *op, uint32_t from, uint32_t *at) {
    size_t words = (op->attribute_bytes + sizeof(int64_t) - 1) / sizeof(int64_t);
    if (!eddy_code_array_add(&s->code->words, sizeof(int64_t), (uint32_t)words, at))
        return false;
    for (size_t w = 0; w < words; w++)
        eddy_code_words(s->code, *at)[w] = eddy_code_words(s->code, from)[w];
    return true;
}

/* What is handed on within the block is as large as a sub-batch from now on. */
static void begin_block(const splitting *s) {
    const eddy_batching *b = &s->batching;
    for (uint32_t p = s->begin; p < s->end; p++)
        for (uint32_t i = b->order[p], k = 0; k < eddy_batching_at(b, i)->operand_count; k++)
            if (!eddy_batching_is_absent(b, i, k) && !eddy_batching_is_sum(b, i, k) &&
                eddy_batching_operand(b, i, k)->access & EDDY_CODE_MAKES)
                eddy_code_value_at(s->code, eddy_batching_operand(b, i, k)->value)->bytes /=
                    s->parts;
}

/* ---- an instruction for the present sub-batch ---- */

/* What stands for a value that the block makes: in the first sub-batch that value itself, then one that is like it. */
static bool make_part(const splitting *s, uint32_t value) {
    uint32_t *part = &s->batching.values[value].part;
    *part = value;
    if (s->part == 0)
        return true;
    const eddy_code_value like = *eddy_code_value_at(s->code, value);
    return eddy_code_add_value(s->code, &like, part);
}

static bool add_absent(const splitting *s, const eddy_code_operand *operand) {
    const eddy_layout layout = {.rank = 0};
    return eddy_code_add_operand(s->code, operand, &layout);
}

static bool add_operand(const splitting *s, uint32_t i, uint32_t k) {
    const eddy_batching *b = &s->batching;
    eddy_code_operand operand = *eddy_batching_operand(b, i, k);
    if (eddy_batching_is_absent(b, i, k))
        return add_absent(s, &operand);
    eddy_layout layout;
    int8_t dim = eddy_batching_dim(b, i, k);
    bool is_part = eddy_batching_is_sum(b, i, k) || eddy_batching_is_handed_on(b, operand.value);
    eddy_code_operand_layout(s->code, &operand, &layout);
    if (dim != EDDY_BATCH_NO_DIM) {
        layout.dims[dim] /= s->parts;
        layout.offset += is_part ? 0 : s->part * layout.dims[dim] * layout.strides[dim];
    }
    if (operand.access & EDDY_CODE_MAKES && !make_part(s, operand.value))
        return false;
    if (is_part)
        operand.value = b->values[operand.value].part;
    operand.offset = layout.offset;
    return eddy_code_add_operand(s->code, &operand, &layout);
}

/* The shape of what is written says how many items there are. */
static bool add_attributes(const splitting *s, eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    for (int32_t a = 0; a < op->attribute_count; a++) {
        if (op->attributes[a].type != EDDY_ATTRIBUTE_SHAPE)
            continue;
        eddy_shape shape;
        if (!copy_attributes(s, op, instruction->attributes_at, &instruction->attributes_at))
            return false;
        char *attributes = (char *)eddy_code_words(s->code, instruction->attributes_at);
        memcpy(&shape, attributes + op->attributes[a].offset, sizeof(shape));
        shape.dims[0] /= s->parts;
        memcpy(attributes + op->attributes[a].offset, &shape, sizeof(shape));
    }
    return true;
}

/* The sum over this sub-batch is added to that over those before it. */
static bool add_up(splitting *s, uint32_t i, uint32_t k) {
    eddy_code_operand sum = *eddy_batching_operand(&s->batching, i, k), part = sum;
    eddy_code_instruction add = *eddy_batching_at(&s->batching, i);
    eddy_layout layout;
    EDDY_ASSERT(s->add->attribute_bytes == 0);
    eddy_code_operand_layout(s->code, &sum, &layout);
    add.op = s->add;
    add.kernel = eddy_op_kernel_for(s->add, (eddy_dtype)sum.dtype);
    add.operands_at = s->code->operands.count;
    add.operand_count = 3;
    add.input_count = 2;
    add.compute = sum.dtype;
    sum.access = part.access = EDDY_CODE_READS;
    part.value = s->batching.values[sum.value].part;
    if (!eddy_code_add_operand(s->code, &sum, &layout) ||
        !eddy_code_add_operand(s->code, &part, &layout))
        return false;
    sum.access = EDDY_CODE_READS | EDDY_CODE_WRITES | EDDY_CODE_REPLACES;
    return eddy_code_add_operand(s->code, &sum, &layout) &&
           eddy_code_add_words(s->code, NULL, 0, &add.attributes_at) && add_instruction(s, &add);
}

static bool add_for_part(splitting *s, uint32_t i) {
    const eddy_batching *b = &s->batching;
    eddy_code_instruction instruction = *eddy_batching_at(b, i);
    instruction.operands_at = s->code->operands.count;
    for (uint32_t k = 0; k < instruction.operand_count; k++)
        if (!add_operand(s, i, k))
            return false;
    if (!add_attributes(s, &instruction) || !add_instruction(s, &instruction))
        return false;
    for (uint32_t k = 0; s->part > 0 && k < instruction.operand_count; k++)
        if (eddy_batching_is_sum(b, i, k) && !add_up(s, i, k))
            return false;
    return true;
}

/* ---- all of it ---- */

static bool make_block(splitting *s) {
    begin_block(s);
    for (s->part = 0; s->part < s->parts; s->part++)
        for (uint32_t p = s->begin; p < s->end; p++)
            if (!add_for_part(s, s->batching.order[p]))
                return false;
    return true;
}

static bool make_all(splitting *s) {
    const eddy_batching *b = &s->batching;
    for (s->begin = 0; s->begin < b->count; s->begin = s->end) {
        uint32_t first = b->order[s->begin], block = eddy_batching_block_of(b, first);
        s->end = eddy_batching_end(b, s->begin);
        s->parts = block != EDDY_CODE_NONE ? b->items[block].region.parts : 1;
        if (!(s->parts > 1 ? make_block(s) : add_instruction(s, eddy_batching_at(b, first))))
            return false;
    }
    return true;
}

static bool has_blocks(const eddy_batching *b) {
    for (uint32_t i = 0; i < b->count; i++)
        if (eddy_batching_block_of(b, i) != EDDY_CODE_NONE)
            return true;
    return false;
}

static bool split(splitting *s) {
    eddy_batching *b = &s->batching;
    if (!has_blocks(b))
        return true;
    if (!eddy_batching_plan(b))
        return false;
    if (!has_blocks(b))
        return true;
    if (!make_all(s))
        return false;
    eddy_code_array_fini(&s->code->instructions, sizeof(eddy_code_instruction));
    s->code->instructions = s->made;
    s->made = (eddy_code_array){0};
    return true;
}

bool eddy_pass_subbatch(eddy_code *code, const uint32_t *bases) {
    splitting s = {.code = code, .add = eddy_op_find_built_in("add")};
    bool is_good = eddy_batching_find(&s.batching, code, bases) && split(&s);
    eddy_code_array_fini(&s.made, sizeof(eddy_code_instruction));
    eddy_batching_fini(&s.batching);
    return is_good;
}
