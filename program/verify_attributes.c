/* Attributes of a program that is verified: their ranges, the words that a run fills in, and what inference says of them. */
#include <program/verifier.h>

#include <base/dtype.h>
#include <base/number.h>
#include <base/shape.h>
#include <interpreter/call/infer.h>
#include <string.h>

/* ---- attributes ---- */

static bool check_attribute(eddy_verifier *v, const eddy_op_attribute *attribute,
                            const char *place) {
    const void *value = place;
    const eddy_scalar *scalar = value;
    const eddy_shape *shape = value;
    bool is_fine = true;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_BOOL:
        is_fine = *(const uint8_t *)value <= 1;
        break;
    case EDDY_ATTRIBUTE_SCALAR:
        is_fine = (unsigned)scalar->kind <= EDDY_SCALAR_FLOAT &&
                  (scalar->kind != EDDY_SCALAR_BOOL || (uint64_t)scalar->value.integer <= 1);
        break;
    case EDDY_ATTRIBUTE_DTYPE:
        is_fine = eddy_dtype_is_valid(*(const eddy_dtype *)value);
        break;
    case EDDY_ATTRIBUTE_SHAPE:
        is_fine = shape->rank >= 0 && shape->rank <= EDDY_RANK_MAX;
        break;
    case EDDY_ATTRIBUTE_AXES:
        is_fine = *(const uint32_t *)value >> EDDY_RANK_MAX == 0;
        break;
    case EDDY_ATTRIBUTE_AXIS:
        is_fine = *(const int32_t *)value >= 0 && *(const int32_t *)value <= EDDY_RANK_MAX;
        break;
    case EDDY_ATTRIBUTE_CHOICE:
        is_fine = *(const int32_t *)value >= 0;
        break;
    default:
        break;
    }
    return is_fine || eddy_verifier_fail(v, "%s has no value that its type has", attribute->name);
}

/* Whether each run gives the number that the attribute is. */
static bool is_given(const eddy_verifier *v, const eddy_code_instruction *instruction,
                     int32_t attribute) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(v->code, instruction->patches_at + k);
        if (!patch->draw &&
            eddy_code_scalar_at(v->code, patch->scalar)->attribute == (uint32_t)attribute)
            return true;
    }
    return false;
}

/* The dtype that a number is converted to, once the call is inferred. */
static eddy_dtype held_dtype(const eddy_verifier *v, const eddy_op *op, int32_t attribute) {
    return attribute < op->scalar_count || op->output_count == 0 ? v->inference.compute
                                                                 : v->inference.outputs[0].dtype;
}

static bool check_attributes(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    const char *attributes = (const char *)eddy_code_words(v->code, instruction->attributes_at);
    for (int32_t i = 0; i < op->attribute_count; i++)
        if (!check_attribute(v, &op->attributes[i], attributes + op->attributes[i].offset))
            return false;
    return true;
}

/* Numbers are converted already: that they do not change shows it. */
static bool check_numbers(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    const char *attributes = (const char *)eddy_code_words(v->code, instruction->attributes_at);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        eddy_scalar is, wanted;
        if (!op->attributes[i].is_held || is_given(v, instruction, i))
            continue;
        memcpy(&is, attributes + op->attributes[i].offset, sizeof(is));
        wanted = is;
        eddy_dtype dtype = held_dtype(v, op, i);
        if (!eddy_number_convert(&wanted, dtype, op->numbers_wrap) || wanted.kind != is.kind ||
            wanted.value.integer != is.value.integer)
            return eddy_verifier_fail(v, "%s is no number of %s", op->attributes[i].name,
                                      eddy_dtype_name(dtype));
    }
    return true;
}

/* ---- words that a run fills in ---- */

static bool check_draw(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    const int64_t *words = eddy_code_words(v->code, instruction->attributes_at);
    uint32_t draw = instruction->draw;
    double chance = 1;
    if (draw > 0 && (draw > v->code->draws.count || !(op->is_random || op->redraws)))
        return eddy_verifier_fail(v, "there is no draw %u, or %s takes none", draw - 1, op->name);
    if (op->chance_of > 0)
        memcpy(&chance, (const char *)words + op->attributes[op->chance_of - 1].offset,
               sizeof(chance));
    if (op->is_random && (draw > 0) != (chance != 0))
        return eddy_verifier_fail(
            v, draw > 0 ? "%s draws nothing where its chance is 0" : "%s takes a draw", op->name);
    if (op->redraws && draw > 0 && chance == 0)
        return eddy_verifier_fail(v, "%s draws nothing where its chance is 0", op->name);
    if ((op->is_random || draw > 0) &&
        (words[eddy_code_seed_word(op)] != 0 || words[eddy_code_counter_word(op)] != 0))
        return eddy_verifier_fail(v, "%s has a seed of its own", op->name);
    if (!op->is_random || draw == 0)
        return true;
    if (v->draws[draw - 1])
        return eddy_verifier_fail(v, "draw %u is taken twice", draw - 1);
    v->draws[draw - 1] = true;
    return true;
}

static bool check_use(eddy_verifier *v, const eddy_code_instruction *instruction,
                      const eddy_code_patch *patch) {
    const eddy_op *op = instruction->op;
    if (patch->scalar >= v->code->scalars.count)
        return eddy_verifier_fail(v, "a number is no part of the code");
    const eddy_code_scalar *use = eddy_code_scalar_at(v->code, patch->scalar);
    if (use->attribute >= (uint32_t)op->attribute_count || use->op != op)
        return eddy_verifier_fail(v, "a number is another instruction's");
    const eddy_op_attribute *attribute = &op->attributes[use->attribute];
    bool is_double = attribute->type == EDDY_ATTRIBUTE_FLOAT;
    if (use->is_double != is_double ||
        (!is_double && (!attribute->is_held || instruction->kernel->prepare)) ||
        patch->from >= (is_double ? 1u : 2u) ||
        patch->to != attribute->offset / sizeof(int64_t) + patch->from)
        return eddy_verifier_fail(v, "%s is no number that a run can give", attribute->name);
    return true;
}

static bool check_patches(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    const int64_t *words = eddy_code_words(v->code, instruction->attributes_at);
    uint32_t drawn = 0;
    if (instruction->patches_at + (uint64_t)instruction->patch_count > v->code->patches.count)
        return eddy_verifier_fail(v, "patches are no part of the code");
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(v->code, instruction->patches_at + k);
        if ((patch->to + UINT64_C(1)) * sizeof(int64_t) > op->kernel_attribute_bytes ||
            words[patch->to] != 0)
            return eddy_verifier_fail(v, "a run fills in what is no attribute, or has a value");
        if (!patch->draw && !check_use(v, instruction, patch))
            return false;
        uint32_t word = patch->from ? eddy_code_counter_word(op) : eddy_code_seed_word(op);
        if (patch->draw &&
            (patch->draw != instruction->draw || patch->from != drawn++ || patch->to != word))
            return eddy_verifier_fail(v, "a run fills in seed and counter of another draw");
    }
    return drawn == (instruction->draw ? 2u : 0u) ||
           eddy_verifier_fail(v, "a draw is not filled in");
}

/* The dtypes of given numbers, once the call is inferred. */
static bool check_given(eddy_verifier *v, const eddy_code_instruction *instruction) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(v->code, instruction->patches_at + k);
        if (patch->draw)
            continue;
        const eddy_code_scalar *use = eddy_code_scalar_at(v->code, patch->scalar);
        eddy_dtype dtype =
            use->is_double ? EDDY_F64 : held_dtype(v, instruction->op, (int32_t)use->attribute);
        if (use->dtype != dtype)
            return eddy_verifier_fail(v,
                                      "a number is converted to another dtype than its attribute");
    }
    return true;
}

/* ---- inference ---- */

static bool check_result(eddy_verifier *v, const eddy_code_operand *operand,
                         const eddy_spec *spec) {
    if (operand->dtype == spec->dtype &&
        eddy_shape_equal(operand->rank, eddy_code_dims(v->code, operand), spec->shape.rank,
                         spec->shape.dims))
        return true;
    char dims[EDDY_RANK_MAX * 22];
    eddy_shape_format(spec->shape.rank, spec->shape.dims, dims, sizeof(dims));
    return eddy_verifier_fail(v, "the result is %s%.200s", eddy_dtype_name(spec->dtype), dims);
}

/* Its shape is known behind a run. */
static bool check_late_result(eddy_verifier *v, const eddy_code_operand *operand,
                              const eddy_spec *spec) {
    bool is_fine = operand->dtype == spec->dtype && operand->rank == 1 &&
                   eddy_code_dims(v->code, operand)[0] == 0 &&
                   eddy_code_value_at(v->code, operand->value)->is_late;
    return is_fine || eddy_verifier_fail(v,
                                         "the result is %s[0], which stands for a shape that "
                                         "depends on data",
                                         eddy_dtype_name(spec->dtype));
}

/* Operands that are promoted have been cast. */
static bool check_promoted(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    uint32_t at = instruction->operands_at;
    eddy_operand_iterator iterator;
    eddy_operand_iterator_begin(&iterator, op, v->inference.list_counts);
    for (const eddy_op_operand *of; (of = eddy_operand_iterator_next(&iterator)) != NULL;) {
        if (of->is_spec_only)
            continue;
        const eddy_code_operand *operand = eddy_code_operand_at(v->code, at++);
        if (!eddy_code_operand_is_absent(operand) && eddy_infer_is_promoted(op, of) &&
            operand->dtype != v->inference.compute)
            return eddy_verifier_fail(v, "%s computes in %s, and %s is %s", op->name,
                                      eddy_dtype_name(v->inference.compute), of->name,
                                      eddy_dtype_name((eddy_dtype)operand->dtype));
    }
    return true;
}

static bool check_inference(eddy_verifier *v, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    eddy_status status = eddy_inference_run(&v->inference, v->code, instruction);
    if (status == EDDY_OUT_OF_MEMORY)
        return eddy_verifier_fail_memory(v);
    if (status != EDDY_OK)
        return eddy_verifier_fail(v, "%s", v->inference.reason);
    for (int32_t i = 0; i < op->output_count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(
            v->code, instruction->operands_at + instruction->input_count + (uint32_t)i);
        if (!(op->has_late_shape ? check_late_result : check_result)(v, operand,
                                                                     &v->inference.outputs[i]))
            return false;
    }
    if (op->attribute_bytes > 0 &&
        memcmp(v->inference.attributes, eddy_code_words(v->code, instruction->attributes_at),
               op->attribute_bytes) != 0)
        return eddy_verifier_fail(v, "%s: an attribute is not as inference leaves it", op->name);
    if (instruction->compute != v->inference.compute ||
        instruction->kernel !=
            eddy_inference_kernel(op, v->inference.compute,
                                  eddy_code_instruction_device(v->code, instruction).kind))
        return eddy_verifier_fail(v, "%s: the kernel is another than a call's", op->name);
    return check_promoted(v, instruction) && check_numbers(v, instruction) &&
           check_given(v, instruction);
}

bool eddy_verifier_attributes(eddy_verifier *v, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(v->code, i);
    return check_attributes(v, instruction) && check_draw(v, instruction) &&
           check_patches(v, instruction) && check_inference(v, instruction);
}
