#include <program/foretell.h>

#include <base/dtype.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/late_read.h>
#include <program/verify.h>
#include <string.h>

typedef struct teller {
    const eddy_program *first, *second;
    const eddy_affine *affine;
    const eddy_code *storages; /* that makes what the program is given as storages; NULL: its own */
    eddy_program *third;       /* begins as a copy of the first */
} teller;

/* ---- code ---- */

/* Those of a value that instructions make are known from what makes it, those of an input from its binding. */
static bool tell_values(const teller *t) {
    for (uint32_t v = 0; v < t->third->code.values.count; v++) {
        const eddy_code_value *value = eddy_code_value_at(&t->first->code, v),
                              *other = eddy_code_value_at(&t->second->code, v);
        if (value->kind != other->kind || value->is_written != other->is_written ||
            value->shares != other->shares || value->is_in_tile != other->is_in_tile ||
            !eddy_code_has_same_device(value, other))
            return false;
    }
    return true;
}

/* Of what covers all of it, from 0 on. */
static bool set_bytes(const teller *t, uint32_t value, const eddy_layout *layout, uint8_t dtype) {
    int64_t low, high;
    eddy_layout_extent(layout, &low, &high);
    return !__builtin_mul_overflow(high, eddy_dtype_size((eddy_dtype)dtype),
                                   &eddy_code_value_at(&t->third->code, value)->bytes);
}

/* What is there before a run, but for the inputs, is the same memory at all sizes. */
static bool has_same_externals(const teller *t) {
    for (uint32_t e = 0; e < t->first->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(t->first, e);
        uint32_t v = external->value;
        if (external->tensor && eddy_code_value_at(&t->first->code, v)->bytes !=
                                    eddy_code_value_at(&t->second->code, v)->bytes)
            return false;
    }
    return true;
}

/* Storages that inputs have taken the place of belong to nobody: to code from outside there are none. */
static void drop_strangers(const teller *t) {
    const eddy_code *first = &t->first->code, *third = &t->third->code;
    for (uint32_t v = 0; v < third->values.count; v++)
        if (eddy_code_value_at(third, v)->kind != EDDY_VALUE_MADE)
            *eddy_code_value_at(third, v) =
                (eddy_code_value){.bytes = eddy_code_value_at(third, v)->bytes};
    for (uint32_t e = 0; e < t->third->externals.count; e++) {
        uint32_t v = eddy_program_external_at(t->third, e)->value;
        eddy_code_value_at(third, v)->kind = eddy_code_value_at(first, v)->kind;
        eddy_code_value_set_device(eddy_code_value_at(third, v),
                                   eddy_code_value_device(eddy_code_value_at(first, v)));
        eddy_code_value_at(third, v)->is_written = eddy_code_value_at(first, v)->is_written;
    }
}

static bool tell_operand(const teller *t, eddy_code_operand *operand,
                         const eddy_code_operand *other) {
    if (operand->value != other->value || operand->rank != other->rank ||
        operand->dtype != other->dtype || operand->access != other->access)
        return false;
    if (eddy_code_operand_is_absent(operand))
        return true;
    eddy_layout layouts[3];
    eddy_code_operand_layout(&t->first->code, operand, &layouts[0]);
    eddy_code_operand_layout(&t->second->code, other, &layouts[1]);
    if (!eddy_affine_layout(t->affine, &layouts[0], &layouts[1], &layouts[2]))
        return false;
    int64_t *words = eddy_code_words(&t->third->code, operand->words_at);
    for (int32_t d = 0; d < operand->rank; d++) {
        words[d] = layouts[2].dims[d];
        words[operand->rank + d] = layouts[2].strides[d];
    }
    operand->offset = layouts[2].offset;
    return !(operand->access & EDDY_CODE_MAKES) ||
           set_bytes(t, operand->value, &layouts[2], operand->dtype);
}

/* Bytes of the struct that are no attribute's are 0 in all code. */
static bool tell_attributes(const teller *t, const eddy_code_instruction *instruction,
                            const eddy_code_instruction *other) {
    const eddy_op *op = instruction->op;
    if (eddy_late_read_is(op)) /* no numbers, but whom it calls */
        return memcmp(eddy_code_words(&t->first->code, instruction->attributes_at),
                      eddy_code_words(&t->second->code, other->attributes_at),
                      op->attribute_bytes) == 0;
    char *third = (char *)eddy_code_words(&t->third->code, instruction->attributes_at);
    const char *first = (const char *)eddy_code_words(&t->first->code, instruction->attributes_at),
               *second = (const char *)eddy_code_words(&t->second->code, other->attributes_at);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        size_t offset = op->attributes[i].offset;
        if (!eddy_affine_attribute(t->affine, &op->attributes[i], first + offset, second + offset,
                                   third + offset))
            return false;
    }
    return true;
}

static bool has_same_patches(const teller *t, const eddy_code_instruction *instruction,
                             const eddy_code_instruction *other) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *x = eddy_code_patch_at(&t->third->code, instruction->patches_at + k),
                              *y = eddy_code_patch_at(&t->second->code, other->patches_at + k);
        if (x->to != y->to || x->draw != y->draw || x->scalar != y->scalar || x->from != y->from)
            return false;
    }
    return true;
}

static bool tell_instruction(const teller *t, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_call_at(&t->third->code, i),
                                *other = eddy_code_call_at(&t->second->code, i);
    if (instruction->op != other->op || instruction->kernel != other->kernel ||
        instruction->operand_count != other->operand_count ||
        instruction->input_count != other->input_count ||
        instruction->patch_count != other->patch_count || instruction->draw != other->draw ||
        instruction->compute != other->compute || instruction->ordinal != other->ordinal ||
        !has_same_patches(t, instruction, other))
        return false;
    for (uint32_t k = 0; k < instruction->operand_count; k++)
        if (!tell_operand(t, eddy_code_operand_at(&t->third->code, instruction->operands_at + k),
                          eddy_code_operand_at(&t->second->code, other->operands_at + k)))
            return false;
    return tell_attributes(t, instruction, other);
}

/* Of lowered code; else there are none. */
static bool has_same_groups(const teller *t) {
    const eddy_code *a = &t->first->code, *b = &t->second->code;
    if (a->groups.count != b->groups.count)
        return false;
    for (uint32_t g = 0; g < a->groups.count; g++) {
        const eddy_code_group *group = eddy_code_group_at(a, g), *other = eddy_code_group_at(b, g);
        if (group->first != other->first || group->count != other->count ||
            group->is_chain != other->is_chain)
            return false;
    }
    return true;
}

static bool tell_code(const teller *t) {
    const eddy_code *a = &t->first->code, *b = &t->second->code;
    if (a->values.count != b->values.count || a->instructions.count != b->instructions.count ||
        a->late_calls.count != b->late_calls.count || a->recorded_count != b->recorded_count ||
        !eddy_code_has_same_uses(a, b) || !has_same_groups(t) || !tell_values(t) ||
        !has_same_externals(t))
        return false;
    drop_strangers(t);
    for (uint32_t i = 0; i < eddy_code_call_count(a); i++)
        if (!tell_instruction(t, i))
            return false;
    return true;
}

/* ---- bindings ---- */

/* The product of dims is on no line: a storage is as large as what makes it. */
static void tell_storage(const teller *t, eddy_program_binding *binding) {
    const eddy_code *from = t->storages ? t->storages : &t->third->code;
    binding->count = binding->layout.dims[0] = eddy_code_value_at(from, binding->value)->bytes;
}

static bool tell_bindings(const teller *t) {
    if (t->first->bindings.count != t->second->bindings.count)
        return false;
    for (uint32_t i = 0; i < t->third->bindings.count; i++) {
        eddy_program_binding *binding = eddy_program_binding_at(t->third, i);
        const eddy_program_binding *other = eddy_program_binding_at(t->second, i);
        if (binding->role != other->role || binding->value != other->value ||
            binding->dtype != other->dtype || binding->is_covered != other->is_covered ||
            binding->is_storage != other->is_storage)
            return false;
        if (binding->is_storage)
            tell_storage(t, binding);
        else if (!eddy_affine_layout(t->affine, &eddy_program_binding_at(t->first, i)->layout,
                                     &other->layout, &binding->layout) ||
                 !eddy_shape_count(binding->layout.rank, binding->layout.dims, &binding->count))
            return false;
        if (binding->role == EDDY_ROLE_INPUT &&
            !set_bytes(t, binding->value, &binding->layout, binding->dtype))
            return false;
    }
    return true;
}

/* ---- the copy ---- */

static bool copy_bindings(eddy_program *to, const eddy_program *from) {
    for (uint32_t i = 0; i < from->bindings.count; i++) {
        uint32_t index;
        const char *name = eddy_program_binding_at(from, i)->name;
        if (!eddy_code_array_add(&to->bindings, sizeof(eddy_program_binding), 1, &index))
            return false;
        eddy_program_binding *binding = eddy_program_binding_at(to, index);
        *binding = *eddy_program_binding_at(from, i);
        binding->name = NULL;
        if (name && !(binding->name = eddy_program_name_copy(name)))
            return false;
    }
    return true;
}

static bool copy_kept(eddy_program *to, const eddy_program *from) {
    const eddy_program_kept *kept = from->kept.items;
    for (uint32_t i = 0; i < from->kept.count; i++) {
        uint32_t index;
        if (!eddy_code_array_add(&to->kept, sizeof(*kept), 1, &index))
            return false;
        eddy_autograd_node_retain(kept[i].node);
        ((eddy_program_kept *)to->kept.items)[index] = kept[i];
    }
    return true;
}

/* NULL without memory. */
static eddy_program *copy(const eddy_program *from) {
    eddy_program *to = eddy_program_create(from->runtime);
    if (!to)
        return NULL;
    to->input_count = from->input_count;
    to->output_count = from->output_count;
    to->passes = from->passes;
    to->layout = eddy_arena_layout_retain(from->layout);
    if (eddy_code_copy(&to->code, &from->code) &&
        eddy_program_externals_copy(&to->externals, &from->externals) && copy_bindings(to, from) &&
        copy_kept(to, from) && eddy_program_tape_copy(to, from) &&
        eddy_program_hold_generators(to, from) && eddy_program_inner_copy(&to->inner, &from->inner))
        return to;
    eddy_program_destroy(to);
    return NULL;
}

/* ---- all of it ---- */

eddy_status eddy_program_foretell_part(const eddy_program *first, const eddy_program *second,
                                       const eddy_affine *affine, const eddy_code *storages,
                                       eddy_program **program) {
    eddy_verdict verdict;
    if (!eddy_program_has_same_tensors(first, second) || first->layout != second->layout)
        return EDDY_INVALID_ARGUMENT;
    teller t = {first, second, affine, storages, copy(first)};
    if (!t.third)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = tell_code(&t) && tell_bindings(&t) ? EDDY_OK : EDDY_INVALID_ARGUMENT;
    /* Lowered code is no code from outside: its build looks at it. */
    if (status == EDDY_OK && !first->layout)
        status = eddy_verify_program(t.third, &verdict);
    if (status == EDDY_OK)
        *program = t.third;
    else
        eddy_program_destroy(t.third);
    return status;
}

eddy_status eddy_program_foretell(const eddy_program *first, const eddy_program *second,
                                  const eddy_affine *affine, eddy_program **program) {
    eddy_program *made = NULL;
    if (!first->gradient != !second->gradient)
        return EDDY_INVALID_ARGUMENT;
    eddy_status status = eddy_program_foretell_part(first, second, affine, NULL, &made);
    if (status == EDDY_OK && first->gradient)
        status = eddy_program_gradient_foretell(first->gradient, second->gradient, affine,
                                                &made->gradient);
    if (status == EDDY_OK)
        *program = made;
    else if (made)
        eddy_program_destroy(made);
    return status;
}
