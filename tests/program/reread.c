#include "reread.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/generator.h>
#include <program/control.h>
#include <program/cut.h>
#include <program/parse.h>
#include <program/print.h>
#include <string.h>

static eddy_tensor *tensor_of(const eddy_program *program, uint32_t value) {
    for (uint32_t e = 0; e < program->externals.count; e++)
        if (eddy_program_external_at(program, e)->value == value)
            return eddy_program_external_at(program, e)->tensor;
    return NULL;
}

static uint32_t state_of(const eddy_program *program, const char *name) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->name && strcmp(binding->name, name) == 0)
            return binding->value;
    }
    return EDDY_CODE_NONE;
}

/* States by their names, captured ones in their order. */
static void take_tensors(const eddy_program *from, eddy_program *to) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < to->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(to, i);
        for (uint32_t e = 0; e < to->externals.count; e++)
            if ((binding->role == EDDY_ROLE_STATE || binding->role == EDDY_ROLE_CONSTANT) &&
                eddy_program_external_at(to, e)->value == binding->value)
                eddy_program_external_at(to, e)->tensor =
                    tensor_of(from, state_of(from, binding->name));
    }
    for (uint32_t e = 0; e < to->externals.count; e++) {
        eddy_program_external *external = eddy_program_external_at(to, e);
        if (external->input == EDDY_CODE_NONE && !external->tensor) {
            const eddy_program_external *held;
            do
                held = eddy_program_external_at(from, next++);
            while (eddy_code_value_at(&from->code, held->value)->kind != EDDY_VALUE_CAPTURED);
            external->tensor = held->tensor;
        }
        if (external->tensor)
            eddy_tensor_retain(external->tensor);
    }
    for (uint32_t i = 0; i < from->generators.count; i++) {
        uint32_t index;
        cr_assert(eddy_code_array_add(&to->generators, sizeof(eddy_generator *), 1, &index));
        ((eddy_generator **)to->generators.items)[index] =
            eddy_generator_retain(((eddy_generator **)from->generators.items)[i]);
    }
}

/* The next call from *i on: cuts stand in no text. NULL: there is none. */
static const eddy_code_instruction *next_call(const eddy_code *code, uint32_t *i) {
    while (*i < eddy_code_call_count(code)) {
        const eddy_code_instruction *call = eddy_code_call_at(code, (*i)++);
        if (eddy_control_of(call->op) != EDDY_CONTROL_CUT)
            return call;
    }
    return NULL;
}

static void expect_same_code(const eddy_code *a, const eddy_code *b, const char *what) {
    uint32_t at_a = 0, at_b = 0;
    const eddy_code_instruction *x, *y;
    cr_assert_eq(eddy_code_call_count(a) - eddy_cut_count(a),
                 eddy_code_call_count(b) - eddy_cut_count(b));
    cr_assert_eq(a->draws.count, b->draws.count);
    cr_assert_eq(a->scalars.count, b->scalars.count);
    while ((x = next_call(a, &at_a)) && (y = next_call(b, &at_b))) {
        cr_assert(x->op == y->op && x->kernel == y->kernel && x->compute == y->compute &&
                      x->operand_count == y->operand_count && x->input_count == y->input_count &&
                      x->patch_count == y->patch_count && x->draw == y->draw,
                  "%s: %s", what, x->op->name);
        cr_assert_arr_eq(eddy_code_words(a, x->attributes_at), eddy_code_words(b, y->attributes_at),
                         x->op->attribute_bytes, "%s: attributes of %s", what, x->op->name);
        for (uint32_t k = 0; k < x->operand_count; k++)
            cr_assert_eq(eddy_code_operand_at(a, x->operands_at + k)->access,
                         eddy_code_operand_at(b, y->operands_at + k)->access);
    }
}

/* Groups are not read: who builds the program finds them again. Returns what is left of the text. */
static size_t drop_groups(char *text) {
    static const char *const lines[] = {"\nfused {\n", "\n}\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        for (char *at; (at = strstr(text, lines[i]));)
            memmove(at, at + strlen(lines[i]) - 1, strlen(at + strlen(lines[i]) - 1) + 1);
    return strlen(text);
}

eddy_program *reread(const eddy_program *program, const char *what) {
    eddy_printed first, second;
    eddy_parse_error error = {0};
    uint32_t generators = 0;
    cr_assert(eddy_printed_make(&first, program, EDDY_PRINT_READING));
    size_t length = drop_groups(first.text);
    eddy_program *copy = eddy_program_create(program->runtime);
    eddy_status status = eddy_parse_program(copy, first.text, length, &generators, &error);
    cr_assert_eq(status, EDDY_OK, "%s: line %u: %s\n%s", what, error.line, error.reason,
                 first.text);
    cr_assert_eq(generators, program->generators.count);
    cr_assert(eddy_printed_make(&second, copy, EDDY_PRINT_READING));
    (void)drop_groups(second.text);
    cr_assert_str_eq(first.text, second.text, "%s", what);
    expect_same_code(&program->code, &copy->code, what);
    take_tensors(program, copy);
    cr_assert_eq(eddy_program_build(copy, (eddy_origin){"reread", NULL}), EDDY_OK, "%s", what);
    eddy_printed_fini(&first);
    eddy_printed_fini(&second);
    return copy;
}
