#include <program/foretell.h>

#include <base/dtype.h>
#include <base/status.h>
#include <interpreter/tape/autograd.h>
#include <program/gradient.h>
#include <program/late_read.h>
#include <program/verify.h>
#include <string.h>

typedef struct teller {
    const eddy_program *const *known;
    const eddy_affine *affine;
    const eddy_code *storages; /* that makes what the program is given as storages; NULL: its own */
    eddy_program *told;        /* begins as a copy of the first */
} teller;

/* ---- whether two are alike but for numbers ---- */

/* Those of a value that instructions make are known from what makes it, those of an input from its binding. */
static bool has_same_values(const eddy_code *a, const eddy_code *b) {
    for (uint32_t v = 0; v < a->values.count; v++) {
        const eddy_code_value *value = eddy_code_value_at(a, v), *other = eddy_code_value_at(b, v);
        if (value->kind != other->kind || value->is_written != other->is_written ||
            value->shares != other->shares || value->is_in_tile != other->is_in_tile ||
            value->is_turned != other->is_turned || !eddy_code_has_same_device(value, other))
            return false;
    }
    return true;
}

/* What is there before a run, but for the inputs, is the same memory at all sizes. */
static bool has_same_externals(const eddy_program *a, const eddy_program *b) {
    for (uint32_t e = 0; e < a->externals.count; e++) {
        const eddy_program_external *external = eddy_program_external_at(a, e);
        uint32_t v = external->value;
        if (external->tensor &&
            eddy_code_value_at(&a->code, v)->bytes != eddy_code_value_at(&b->code, v)->bytes)
            return false;
    }
    return true;
}

static bool has_same_operands(const eddy_code *a, const eddy_code_instruction *instruction,
                              const eddy_code *b, const eddy_code_instruction *other) {
    for (uint32_t k = 0; k < instruction->operand_count; k++) {
        const eddy_code_operand *x = eddy_code_operand_at(a, instruction->operands_at + k),
                                *y = eddy_code_operand_at(b, other->operands_at + k);
        if (x->value != y->value || x->rank != y->rank || x->dtype != y->dtype ||
            x->access != y->access)
            return false;
    }
    return true;
}

static bool has_same_patches(const eddy_code *a, const eddy_code_instruction *instruction,
                             const eddy_code *b, const eddy_code_instruction *other) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *x = eddy_code_patch_at(a, instruction->patches_at + k),
                              *y = eddy_code_patch_at(b, other->patches_at + k);
        if (x->to != y->to || x->draw != y->draw || x->scalar != y->scalar || x->from != y->from)
            return false;
    }
    return true;
}

static bool has_same_instructions(const eddy_code *a, const eddy_code *b) {
    for (uint32_t i = 0; i < eddy_code_call_count(a); i++) {
        const eddy_code_instruction *instruction = eddy_code_call_at(a, i),
                                    *other = eddy_code_call_at(b, i);
        if (instruction->op != other->op || instruction->kernel != other->kernel ||
            instruction->operand_count != other->operand_count ||
            instruction->input_count != other->input_count ||
            instruction->patch_count != other->patch_count || instruction->draw != other->draw ||
            instruction->compute != other->compute || instruction->ordinal != other->ordinal ||
            !has_same_patches(a, instruction, b, other) ||
            !has_same_operands(a, instruction, b, other))
            return false;
    }
    return true;
}

/* Of lowered code; else there are none. */
static bool has_same_groups(const eddy_code *a, const eddy_code *b) {
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

static bool has_same_code(const eddy_code *a, const eddy_code *b) {
    return a->values.count == b->values.count && a->instructions.count == b->instructions.count &&
           a->late_calls.count == b->late_calls.count && a->recorded_count == b->recorded_count &&
           eddy_code_has_same_uses(a, b) && has_same_groups(a, b) && has_same_values(a, b) &&
           has_same_instructions(a, b);
}

static bool has_same_bindings(const eddy_program *a, const eddy_program *b) {
    if (a->bindings.count != b->bindings.count)
        return false;
    for (uint32_t i = 0; i < a->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(a, i),
                                   *other = eddy_program_binding_at(b, i);
        if (binding->role != other->role || binding->value != other->value ||
            binding->dtype != other->dtype || binding->is_covered != other->is_covered ||
            binding->is_storage != other->is_storage)
            return false;
    }
    return true;
}

static bool is_alike(const eddy_program *a, const eddy_program *b) {
    return eddy_program_has_same_tensors(a, b) && a->layout == b->layout &&
           has_same_code(&a->code, &b->code) && has_same_externals(a, b) && has_same_bindings(a, b);
}

/* ---- code ---- */

/* Of what covers all of it, from 0 on. */
static bool set_bytes(const teller *t, uint32_t value, const eddy_layout *layout, uint8_t dtype) {
    int64_t low, high;
    eddy_layout_extent(layout, &low, &high);
    return !__builtin_mul_overflow(high, eddy_dtype_size((eddy_dtype)dtype),
                                   &eddy_code_value_at(&t->told->code, value)->bytes);
}

/* Storages that inputs have taken the place of belong to nobody: to code from outside there are none. */
static void drop_strangers(const teller *t) {
    const eddy_code *first = &t->known[0]->code, *told = &t->told->code;
    for (uint32_t v = 0; v < told->values.count; v++)
        if (eddy_code_value_at(told, v)->kind != EDDY_VALUE_MADE)
            *eddy_code_value_at(told, v) =
                (eddy_code_value){.bytes = eddy_code_value_at(told, v)->bytes};
    for (uint32_t e = 0; e < t->told->externals.count; e++) {
        uint32_t v = eddy_program_external_at(t->told, e)->value;
        eddy_code_value_at(told, v)->kind = eddy_code_value_at(first, v)->kind;
        eddy_code_value_set_device(eddy_code_value_at(told, v),
                                   eddy_code_value_device(eddy_code_value_at(first, v)));
        eddy_code_value_at(told, v)->is_written = eddy_code_value_at(first, v)->is_written;
    }
}

/* Number k of instruction i. */
static bool tell_operand(const teller *t, uint32_t i, uint32_t k) {
    eddy_layout known[EDDY_KNOWN_MOST], told = {0};
    eddy_code_operand *operand =
        eddy_code_operand_at(&t->told->code, eddy_code_call_at(&t->told->code, i)->operands_at + k);
    if (eddy_code_operand_is_absent(operand))
        return true;
    for (int32_t p = 0; p < t->affine->count; p++) {
        const eddy_code *code = &t->known[p]->code;
        eddy_code_operand_layout(
            code, eddy_code_operand_at(code, eddy_code_call_at(code, i)->operands_at + k),
            &known[p]);
    }
    if (!eddy_affine_layout(t->affine, known, &told))
        return false;
    int64_t *words = eddy_code_words(&t->told->code, operand->words_at);
    for (int32_t d = 0; d < operand->rank; d++) {
        words[d] = told.dims[d];
        words[operand->rank + d] = told.strides[d];
    }
    operand->offset = told.offset;
    return !(operand->access & EDDY_CODE_MAKES) ||
           set_bytes(t, operand->value, &told, operand->dtype);
}

/* Bytes of the struct that are no attribute's are 0 in all code. */
static bool tell_attributes(const teller *t, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_call_at(&t->told->code, i);
    const eddy_op *op = instruction->op;
    const char *known[EDDY_KNOWN_MOST], *of[EDDY_KNOWN_MOST];
    for (int32_t p = 0; p < t->affine->count; p++) {
        const eddy_code *code = &t->known[p]->code;
        known[p] = (const char *)eddy_code_words(code, eddy_code_call_at(code, i)->attributes_at);
        /* A late read has no numbers, but whom it calls. */
        if (eddy_late_read_is(op) && memcmp(known[0], known[p], op->attribute_bytes) != 0)
            return false;
    }
    if (eddy_late_read_is(op))
        return true;
    char *told = (char *)eddy_code_words(&t->told->code, instruction->attributes_at);
    for (int32_t a = 0; a < op->attribute_count; a++) {
        size_t offset = op->attributes[a].offset;
        for (int32_t p = 0; p < t->affine->count; p++)
            of[p] = known[p] + offset;
        if (!eddy_affine_attribute(t->affine, &op->attributes[a], of, told + offset))
            return false;
    }
    return true;
}

static bool tell_code(const teller *t) {
    drop_strangers(t);
    for (uint32_t i = 0; i < eddy_code_call_count(&t->told->code); i++) {
        uint32_t count = eddy_code_call_at(&t->told->code, i)->operand_count;
        for (uint32_t k = 0; k < count; k++)
            if (!tell_operand(t, i, k))
                return false;
        if (!tell_attributes(t, i))
            return false;
    }
    return true;
}

/* ---- bindings ---- */

/* The product of dims is no number that is foretold: a storage is as large as what makes it. */
static void tell_storage(const teller *t, eddy_program_binding *binding) {
    const eddy_code *from = t->storages ? t->storages : &t->told->code;
    binding->count = binding->layout.dims[0] = eddy_code_value_at(from, binding->value)->bytes;
}

static bool tell_layout(const teller *t, uint32_t i) {
    eddy_layout known[EDDY_KNOWN_MOST];
    eddy_program_binding *binding = eddy_program_binding_at(t->told, i);
    for (int32_t p = 0; p < t->affine->count; p++)
        known[p] = eddy_program_binding_at(t->known[p], i)->layout;
    return eddy_affine_layout(t->affine, known, &binding->layout) &&
           eddy_shape_count(binding->layout.rank, binding->layout.dims, &binding->count);
}

static bool tell_bindings(const teller *t) {
    for (uint32_t i = 0; i < t->told->bindings.count; i++) {
        eddy_program_binding *binding = eddy_program_binding_at(t->told, i);
        if (binding->is_storage)
            tell_storage(t, binding);
        else if (!tell_layout(t, i))
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

eddy_status eddy_program_foretell_part(const eddy_program *const *known, const eddy_affine *affine,
                                       const eddy_code *storages, eddy_program **program) {
    eddy_verdict verdict;
    for (int32_t p = 1; p < affine->count; p++)
        if (!is_alike(known[0], known[p]))
            return EDDY_INVALID_ARGUMENT;
    teller t = {known, affine, storages, copy(known[0])};
    if (!t.told)
        return EDDY_OUT_OF_MEMORY;
    eddy_status status = tell_code(&t) && tell_bindings(&t) ? EDDY_OK : EDDY_INVALID_ARGUMENT;
    /* Lowered code is no code from outside: its build looks at it. */
    if (status == EDDY_OK && !known[0]->layout)
        status = eddy_verify_program(t.told, &verdict);
    if (status == EDDY_OK)
        *program = t.told;
    else
        eddy_program_destroy(t.told);
    return status;
}

/* Whether all of them have gradients that go back through their runs, or none has. */
static bool has_same_gradients(const eddy_program *const *known, const eddy_affine *affine,
                               const eddy_program_gradient **gradients) {
    for (int32_t p = 0; p < affine->count; p++) {
        gradients[p] = known[p]->gradient;
        if (!gradients[p] != !gradients[0])
            return false;
    }
    return true;
}

eddy_status eddy_program_foretell(const eddy_program *const *known, const eddy_affine *affine,
                                  eddy_program **program) {
    const eddy_program_gradient *gradients[EDDY_KNOWN_MOST];
    eddy_program *made = NULL;
    if (!has_same_gradients(known, affine, gradients))
        return EDDY_INVALID_ARGUMENT;
    eddy_status status = eddy_program_foretell_part(known, affine, NULL, &made);
    if (status == EDDY_OK && gradients[0])
        status = eddy_program_gradient_foretell(gradients, affine, &made->gradient);
    if (status == EDDY_OK)
        *program = made;
    else if (made)
        eddy_program_destroy(made);
    return status;
}
