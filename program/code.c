#include <program/code.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <string.h>

#define FIRST_CAPACITY 16

static size_t array_bytes(uint32_t capacity, size_t item_bytes) {
    return capacity * item_bytes;
}

bool eddy_code_array_add(eddy_code_array *array, size_t item_bytes, uint32_t count,
                         uint32_t *first) {
    if (count > UINT32_MAX / 4 - array->count)
        return false;
    uint32_t needed = array->count + count;
    if (needed > array->capacity) {
        uint32_t capacity = array->capacity ? array->capacity : FIRST_CAPACITY;
        while (capacity < needed)
            capacity *= 2;
        void *grown = eddy_memory_grow(array->items, array_bytes(array->capacity, item_bytes),
                                       array_bytes(capacity, item_bytes), EDDY_MEMORY_PROGRAM);
        if (!grown)
            return false;
        array->items = grown;
        array->capacity = capacity;
    }
    *first = array->count;
    array->count = needed;
    return true;
}

int64_t eddy_code_operand_bytes(const eddy_code *code, const eddy_code_operand *operand) {
    int64_t count = 0;
    (void)!eddy_shape_count(operand->rank, eddy_code_dims(code, operand), &count);
    return count * (int64_t)eddy_dtype_size((eddy_dtype)operand->dtype);
}

static bool add(eddy_code_array *array, const void *item, size_t item_bytes, uint32_t *index) {
    if (!eddy_code_array_add(array, item_bytes, 1, index))
        return false;
    memcpy((char *)array->items + *index * item_bytes, item, item_bytes);
    return true;
}

bool eddy_code_add_value(eddy_code *code, const eddy_code_value *value, uint32_t *index) {
    return add(&code->values, value, sizeof(*value), index);
}

bool eddy_code_add_words(eddy_code *code, const void *bytes, size_t count, uint32_t *at) {
    uint32_t words = (uint32_t)((count + sizeof(int64_t) - 1) / sizeof(int64_t));
    if (!eddy_code_array_add(&code->words, sizeof(int64_t), words, at))
        return false;
    if (words > 0) {
        eddy_code_words(code, *at)[words - 1] = 0; /* what the last word has beyond `count` */
        memcpy(eddy_code_words(code, *at), bytes, count);
    }
    return true;
}

bool eddy_code_add_operand(eddy_code *code, const eddy_code_operand *operand,
                           const eddy_layout *layout) {
    uint32_t index, at, rank = (uint32_t)layout->rank;
    if (!eddy_code_array_add(&code->words, sizeof(int64_t), 2 * rank, &at) ||
        !add(&code->operands, operand, sizeof(*operand), &index))
        return false;
    int64_t *words = eddy_code_words(code, at);
    for (uint32_t d = 0; d < rank; d++) {
        words[d] = layout->dims[d];
        words[rank + d] = layout->strides[d];
    }
    eddy_code_operand *added = eddy_code_operand_at(code, index);
    added->words_at = at;
    added->rank = (int8_t)rank;
    added->offset = layout->offset;
    return true;
}

bool eddy_code_add_instruction(eddy_code *code, const eddy_code_instruction *instruction,
                               uint32_t *index) {
    return add(&code->instructions, instruction, sizeof(*instruction), index);
}

bool eddy_code_add_draw(eddy_code *code, const eddy_code_draw *draw, uint32_t *index) {
    return add(&code->draws, draw, sizeof(*draw), index);
}

bool eddy_code_add_scalar(eddy_code *code, const eddy_code_scalar *scalar, uint32_t *index) {
    return add(&code->scalars, scalar, sizeof(*scalar), index);
}

bool eddy_code_add_patch(eddy_code *code, const eddy_code_patch *patch) {
    uint32_t index;
    return add(&code->patches, patch, sizeof(*patch), &index);
}

void eddy_code_clear_gaps(const eddy_op *op, void *attributes) {
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        if (attribute->type != EDDY_ATTRIBUTE_SHAPE)
            continue;
        char *place = (char *)attributes + attribute->offset;
        eddy_shape given, *shape = (eddy_shape *)(void *)place;
        memcpy(&given, shape, sizeof(given));
        memset(place, 0, sizeof(*shape));
        shape->rank = given.rank;
        for (int32_t d = 0; d < given.rank; d++)
            shape->dims[d] = given.dims[d];
    }
}

/* ---- parts ---- */

static bool copy_items(eddy_code_array *to, const eddy_code_array *from, size_t item_bytes,
                       uint32_t count) {
    uint32_t first;
    if (!eddy_code_array_add(to, item_bytes, count, &first))
        return false;
    if (count > 0)
        memcpy((char *)to->items + first * item_bytes, from->items, count * item_bytes);
    return true;
}

static bool copy_operand(eddy_code *part, const eddy_code *code, const eddy_code_operand *operand) {
    eddy_layout layout;
    eddy_code_operand_layout(code, operand, &layout);
    if (operand->access & EDDY_CODE_WRITES)
        eddy_code_value_at(part, operand->value)->is_written = true;
    return eddy_code_add_operand(part, operand, &layout);
}

static bool copy_instruction(eddy_code *part, const eddy_code *code, uint32_t i, uint32_t first) {
    eddy_code_instruction copy = *eddy_code_instruction_at(code, i);
    uint32_t operands_at = copy.operands_at, patches_at = copy.patches_at, index;
    copy.operands_at = part->operands.count;
    copy.patches_at = part->patches.count;
    copy.ordinal -= eddy_code_instruction_at(code, first)->ordinal;
    for (uint32_t k = 0; k < copy.operand_count; k++)
        if (!copy_operand(part, code, eddy_code_operand_at(code, operands_at + k)))
            return false;
    for (uint32_t k = 0; k < copy.patch_count; k++)
        if (!eddy_code_add_patch(part, eddy_code_patch_at(code, patches_at + k)))
            return false;
    return eddy_code_add_words(part, eddy_code_words(code, copy.attributes_at),
                               copy.op->attribute_bytes, &copy.attributes_at) &&
           eddy_code_add_instruction(part, &copy, &index);
}

bool eddy_code_copy_part(eddy_code *part, const eddy_code *code, uint32_t first, uint32_t end,
                         uint32_t draw_count, uint32_t scalar_count) {
    if (!copy_items(&part->values, &code->values, sizeof(eddy_code_value), code->values.count) ||
        !copy_items(&part->draws, &code->draws, sizeof(eddy_code_draw), draw_count) ||
        !copy_items(&part->scalars, &code->scalars, sizeof(eddy_code_scalar), scalar_count))
        return false;
    for (uint32_t v = 0; v < part->values.count; v++)
        eddy_code_value_at(part, v)->is_written = false;
    for (uint32_t i = first; i < end; i++)
        if (!copy_instruction(part, code, i, first))
            return false;
    part->recorded_count = end - first;
    return true;
}

/* ---- finding ---- */

const eddy_code_instruction *eddy_code_find_writer(const eddy_code *code, uint32_t first,
                                                   uint32_t value) {
    for (uint32_t i = first; i < code->instructions.count; i++) {
        const eddy_code_instruction *writer = eddy_code_instruction_at(code, i);
        const eddy_code_operand *operands = eddy_code_operand_at(code, writer->operands_at);
        for (uint32_t k = 0; k < writer->operand_count; k++)
            if (operands[k].access & EDDY_CODE_WRITES && operands[k].value == value)
                return writer;
    }
    return NULL;
}

/* ---- comparing ---- */

static bool has_same_device(const eddy_code *a, const eddy_code *b, uint32_t value) {
    return value == EDDY_CODE_NONE ||
           eddy_code_has_same_device(eddy_code_value_at(a, value), eddy_code_value_at(b, value));
}

static bool is_same_operand(const eddy_code *a, const eddy_code_operand *x, const eddy_code *b,
                            const eddy_code_operand *y) {
    return x->value == y->value && has_same_device(a, b, x->value) && x->rank == y->rank &&
           x->dtype == y->dtype && x->access == y->access && x->offset == y->offset &&
           (x->rank == 0 || memcmp(eddy_code_dims(a, x), eddy_code_dims(b, y),
                                   2 * (size_t)x->rank * sizeof(int64_t)) == 0);
}

static bool is_same_patch(const eddy_code_patch *x, const eddy_code_patch *y) {
    return x->to == y->to && x->draw == y->draw && x->scalar == y->scalar && x->from == y->from;
}

/* But for the place of its call, which may be another line of the same function. */
static bool is_same_instruction(const eddy_code *a, const eddy_code *b, uint32_t i) {
    const eddy_code_instruction *x = eddy_code_instruction_at(a, i),
                                *y = eddy_code_instruction_at(b, i);
    if (x->op != y->op || x->kernel != y->kernel || x->operand_count != y->operand_count ||
        x->input_count != y->input_count || x->patch_count != y->patch_count ||
        x->draw != y->draw || x->compute != y->compute ||
        (x->op->attribute_bytes > 0 &&
         memcmp(eddy_code_words(a, x->attributes_at), eddy_code_words(b, y->attributes_at),
                x->op->attribute_bytes) != 0))
        return false;
    for (uint32_t k = 0; k < x->operand_count; k++)
        if (!is_same_operand(a, eddy_code_operand_at(a, x->operands_at + k), b,
                             eddy_code_operand_at(b, y->operands_at + k)))
            return false;
    for (uint32_t k = 0; k < x->patch_count; k++)
        if (!is_same_patch(eddy_code_patch_at(a, x->patches_at + k),
                           eddy_code_patch_at(b, y->patches_at + k)))
            return false;
    return true;
}

bool eddy_code_has_same_uses(const eddy_code *a, const eddy_code *b) {
    if (a->draws.count != b->draws.count || a->scalars.count != b->scalars.count)
        return false;
    for (uint32_t i = 0; i < a->draws.count; i++)
        if (eddy_code_draw_at(a, i)->generator != eddy_code_draw_at(b, i)->generator)
            return false;
    for (uint32_t i = 0; i < a->scalars.count; i++)
        if (eddy_code_scalar_at(a, i)->number != eddy_code_scalar_at(b, i)->number ||
            eddy_code_scalar_at(a, i)->dtype != eddy_code_scalar_at(b, i)->dtype)
            return false;
    return true;
}

bool eddy_code_is_equal(const eddy_code *a, const eddy_code *b, uint32_t *difference) {
    uint32_t count = a->instructions.count < b->instructions.count ? a->instructions.count
                                                                   : b->instructions.count;
    for (*difference = 0; *difference < count; ++*difference)
        if (!is_same_instruction(a, b, *difference))
            return false;
    return a->instructions.count == b->instructions.count &&
           a->late_calls.count == b->late_calls.count && eddy_code_has_same_uses(a, b);
}

bool eddy_code_has_same_layout(const eddy_code *code, const eddy_code_operand *x,
                               const eddy_code_operand *y) {
    return x->dtype == y->dtype && x->rank == y->rank && x->offset == y->offset &&
           (x->rank == 0 || memcmp(eddy_code_dims(code, x), eddy_code_dims(code, y),
                                   2 * (size_t)x->rank * sizeof(int64_t)) == 0);
}

eddy_device eddy_code_instruction_device(const eddy_code *code,
                                         const eddy_code_instruction *instruction) {
    for (uint32_t k = instruction->operand_count; k-- > 0;) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (!eddy_code_operand_is_absent(operand))
            return eddy_code_value_device(eddy_code_value_at(code, operand->value));
    }
    return EDDY_CPU;
}

bool eddy_code_is_on_one_device(const eddy_code *code, const eddy_code_instruction *instruction) {
    const eddy_code_value *first = NULL;
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (eddy_code_operand_is_absent(operand))
            continue;
        const eddy_code_value *value = eddy_code_value_at(code, operand->value);
        if (first && !eddy_code_has_same_device(first, value))
            return false;
        first = value;
    }
    return true;
}

void eddy_code_operand_layout(const eddy_code *code, const eddy_code_operand *operand,
                              eddy_layout *layout) {
    const int64_t *dims = eddy_code_dims(code, operand), *strides = dims + operand->rank;
    layout->rank = operand->rank;
    layout->offset = operand->offset;
    for (int32_t d = 0; d < operand->rank; d++) {
        layout->dims[d] = dims[d];
        layout->strides[d] = strides[d];
    }
}

bool eddy_code_reads_donated(const eddy_code *code, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand = eddy_code_operand_at(code, instruction->operands_at + k);
        if (!eddy_code_operand_is_absent(operand) &&
            eddy_code_value_at(code, operand->value)->is_donated)
            return true;
    }
    return false;
}

static bool array_copy(eddy_code_array *to, const eddy_code_array *from, size_t item_bytes) {
    uint32_t first;
    if (from->count == 0)
        return true;
    if (!eddy_code_array_add(to, item_bytes, from->count, &first))
        return false;
    memcpy(to->items, from->items, from->count * item_bytes);
    return true;
}

/* The arrays of code, with their items. */
#define ARRAYS(row)                                                                                \
    row(values, eddy_code_value) row(operands, eddy_code_operand)                                  \
        row(instructions, eddy_code_instruction) row(words, int64_t) row(draws, eddy_code_draw)    \
            row(scalars, eddy_code_scalar) row(patches, eddy_code_patch)                           \
                row(groups, eddy_code_group) row(late_calls, eddy_code_instruction)

bool eddy_code_copy(eddy_code *to, const eddy_code *from) {
    *to = (eddy_code){.recorded_count = from->recorded_count,
                      .draws_late = from->draws_late,
                      .sets_draws = from->sets_draws,
                      .has_rounds = from->has_rounds,
                      .is_cut = from->is_cut};
#define COPY(name, type) array_copy(&to->name, &from->name, sizeof(type)) &&
    return ARRAYS(COPY) true;
#undef COPY
}

int64_t eddy_code_bytes(const eddy_code *code) {
#define BYTES(name, type) +(int64_t)array_bytes(code->name.capacity, sizeof(type))
    return ARRAYS(BYTES);
#undef BYTES
}

void eddy_code_array_fini(eddy_code_array *array, size_t item_bytes) {
    eddy_memory_release(array->items, array_bytes(array->capacity, item_bytes),
                        EDDY_MEMORY_PROGRAM);
    *array = (eddy_code_array){0};
}

void eddy_code_fini(eddy_code *code) {
#define FINI(name, type) eddy_code_array_fini(&code->name, sizeof(type));
    ARRAYS(FINI)
#undef FINI
}
