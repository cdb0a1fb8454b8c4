#include <program/parse.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/shape.h>
#include <inttypes.h>
#include <program/parser.h>
#include <program/print.h>
#include <program/verify.h>
#include <stdio.h>

#define GENERATORS_MOST 65536

/* A value that a line names before the line that it begins in. */
typedef struct reference {
    eddy_lexeme name; /* of length 0: a number */
    uint32_t number;
    uint32_t binding, line;
} reference;

static uint32_t u32_at(const eddy_code_array *array, uint32_t i) {
    return ((const uint32_t *)array->items)[i];
}

/* ---- bindings ---- */

static bool add_external(eddy_parser *p, uint32_t value, uint32_t input) {
    uint32_t index;
    if (!eddy_code_array_add(&p->program->externals, sizeof(eddy_program_external), 1, &index))
        return eddy_parser_fail_memory(p);
    *eddy_program_external_at(p->program, index) =
        (eddy_program_external){.value = value, .input = input};
    return true;
}

static bool parse_of(eddy_parser *p, uint32_t binding) {
    reference later = {.binding = binding, .line = p->cursor.line};
    int64_t number = 0;
    uint32_t index;
    if (!eddy_cursor_pass(&p->cursor, " of "))
        return false;
    if (eddy_parser_is_at(p, "%") ? !eddy_parser_number(p, &number)
                                  : !eddy_cursor_name(&p->cursor, &later.name))
        return false;
    later.number = (uint32_t)number;
    if (!eddy_code_array_add(&p->references, sizeof(later), 1, &index))
        return eddy_parser_fail_memory(p);
    ((reference *)p->references.items)[index] = later;
    return true;
}

static bool add_input(eddy_parser *p, eddy_program_binding *binding) {
    int64_t bytes;
    if (!eddy_parser_span(p, &binding->layout, (eddy_dtype)binding->dtype, &bytes) ||
        !eddy_parser_add_value(p, EDDY_VALUE_INPUT, bytes, &binding->value))
        return false;
    eddy_code_value_at(p->code, binding->value)->is_donated = binding->is_donated;
    p->program->donated_count += binding->is_donated;
    return eddy_parser_device(p, binding->value) &&
           add_external(p, binding->value, p->program->input_count++);
}

/* The first name of a storage begins it; others are " of NAME". */
static bool add_held(eddy_parser *p, uint32_t index, eddy_program_binding *binding) {
    bool is_state = binding->role == EDDY_ROLE_STATE;
    if (eddy_parser_is_at(p, " of "))
        return parse_of(p, index);
    int64_t bytes = binding->count * eddy_dtype_size((eddy_dtype)binding->dtype);
    if (eddy_parser_take(p, " in ") &&
        !(eddy_cursor_integer(&p->cursor, "bytes", 0, INT64_MAX, &bytes) &&
          eddy_cursor_pass(&p->cursor, " bytes")))
        return false;
    p->program->state_count += is_state;
    p->program->constant_count += !is_state;
    return eddy_parser_add_value(p, is_state ? EDDY_VALUE_STATE : EDDY_VALUE_CONSTANT, bytes,
                                 &binding->value) &&
           eddy_parser_device(p, binding->value) && add_external(p, binding->value, EDDY_CODE_NONE);
}

static bool add_binding(eddy_parser *p, uint8_t role, eddy_lexeme name, uint32_t *index) {
    uint32_t place;
    if (!eddy_parser_grow_names(p) ||
        !eddy_code_array_add(&p->program->bindings, sizeof(eddy_program_binding), 1, index))
        return eddy_parser_fail_memory(p);
    eddy_program_binding *binding = eddy_program_binding_at(p->program, *index);
    bool is_donated = role == EDDY_ROLE_DONATED;
    *binding = (eddy_program_binding){.value = EDDY_CODE_NONE,
                                      .role = is_donated ? EDDY_ROLE_INPUT : role,
                                      .is_donated = is_donated};
    if (!eddy_code_array_add(&p->names, sizeof(name), 1, &place) ||
        !eddy_parser_add_u32(&p->binding_lines, p->cursor.line))
        return eddy_parser_fail_memory(p);
    ((eddy_lexeme *)p->names.items)[place] = name;
    if (role == EDDY_PROGRAM_KEPT)
        return true;
    uint32_t *slot = eddy_parser_find_slot(p, name);
    if (*slot != 0)
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected a name that is new");
    *slot = 1 + *index;
    return eddy_parser_set_name(p, binding, name);
}

static bool parse_binding(eddy_parser *p, uint8_t role) {
    eddy_lexeme name = {0};
    eddy_dtype dtype = EDDY_F32;
    uint32_t index;
    if (role != EDDY_PROGRAM_KEPT &&
        !(eddy_cursor_name(&p->cursor, &name) && eddy_cursor_pass(&p->cursor, " ")))
        return false;
    if (!add_binding(p, role, name, &index))
        return false;
    eddy_program_binding *binding = eddy_program_binding_at(p->program, index);
    if (!eddy_parser_layout(p, &dtype, &binding->layout) ||
        !eddy_shape_count(binding->layout.rank, binding->layout.dims, &binding->count) ||
        binding->count > INT64_MAX / 16)
        return eddy_cursor_expected(&p->cursor, "a layout");
    binding->dtype = (uint8_t)dtype;
    p->program->output_count += role == EDDY_ROLE_OUTPUT;
    bool is_held = role == EDDY_ROLE_STATE || role == EDDY_ROLE_CONSTANT;
    return (binding->role == EDDY_ROLE_INPUT ? add_input(p, binding)
            : is_held                        ? add_held(p, index, binding)
                                             : parse_of(p, index)) &&
           eddy_cursor_pass_line_end(&p->cursor);
}

static bool parse_bindings(eddy_parser *p) {
    static const char *const roles[] = {"input ",    "output ",  "state ",
                                        "constant ", "donated ", "gradient "};
    for (bool is_one = true; is_one;) {
        is_one = false;
        for (uint8_t role = 0; role <= EDDY_PROGRAM_KEPT && !is_one; role++)
            if (eddy_parser_take(p, roles[role])) {
                is_one = true;
                if (!parse_binding(p, role))
                    return false;
            }
    }
    return true;
}

/* "captured %0 24 bytes, written": the last word is compared with the instructions when the texts are. */
static bool parse_captured(eddy_parser *p) {
    while (eddy_parser_take(p, "captured ")) {
        int64_t number, bytes;
        uint32_t value;
        if (!eddy_parser_number(p, &number))
            return false;
        if (!eddy_parser_is_next(p, number))
            return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected %%%" PRIu32,
                                    p->numbered.count);
        if (!eddy_cursor_pass(&p->cursor, " ") ||
            !eddy_cursor_integer(&p->cursor, "bytes", 0, INT64_MAX, &bytes) ||
            !eddy_cursor_pass(&p->cursor, " bytes"))
            return false;
        if (!eddy_parser_begin(p, EDDY_VALUE_CAPTURED, bytes, &value) ||
            !eddy_parser_device(p, value))
            return false;
        (void)eddy_parser_take(p, ", written");
        if (!eddy_cursor_pass_line_end(&p->cursor) || !add_external(p, value, EDDY_CODE_NONE))
            return false;
    }
    return true;
}

static bool parse_draws(eddy_parser *p) {
    while (eddy_parser_take(p, "draw ")) {
        int64_t number, generator = EDDY_CODE_NONE;
        uint32_t index, next = p->code->draws.count;
        if (!eddy_cursor_integer(&p->cursor, "the next draw", next, next, &number))
            return false;
        if (eddy_parser_take(p, " of generator ")) {
            if (!eddy_cursor_integer(&p->cursor, "a generator", 0,
                                     p->generator_count < GENERATORS_MOST ? p->generator_count
                                                                          : GENERATORS_MOST,
                                     &generator))
                return false;
            p->generator_count += generator == p->generator_count;
        }
        eddy_code_draw draw = {.generator = (uint32_t)generator};
        if (!eddy_code_add_draw(p->code, &draw, &index))
            return eddy_parser_fail_memory(p);
        if (!eddy_cursor_pass_line_end(&p->cursor))
            return false;
    }
    return true;
}

/* ---- all of it ---- */

/* Passes leave some of the recorded calls out, and may do others in parts. */
static bool parse_recorded(eddy_parser *p) {
    int64_t count = p->instruction_count;
    if (eddy_parser_take(p, ", ")) {
        if (!eddy_cursor_integer(&p->cursor, "a number of recorded calls", 1, INT32_MAX, &count))
            return false;
        if (count == p->instruction_count)
            return eddy_cursor_fail(
                &p->cursor, EDDY_INVALID_ARGUMENT,
                "expected another number of recorded calls than of instructions");
        if (!eddy_cursor_pass(&p->cursor, " recorded"))
            return false;
    }
    p->code->recorded_count = (uint32_t)count;
    return true;
}

static bool parse_head(eddy_parser *p) {
    int64_t version;
    return eddy_cursor_pass(&p->cursor, "eddy program, version ") &&
           eddy_cursor_integer(&p->cursor, "the version", EDDY_PRINT_VERSION, EDDY_PRINT_VERSION,
                               &version) &&
           eddy_cursor_pass(&p->cursor, ", ") &&
           eddy_cursor_integer(&p->cursor, "a number of instructions", 0, INT32_MAX,
                               &p->instruction_count) &&
           eddy_cursor_pass(&p->cursor, " instructions") && parse_recorded(p) &&
           eddy_cursor_pass_line_end(&p->cursor);
}

/* Bindings name values of any line. */
static bool resolve(eddy_parser *p) {
    const reference *references = p->references.items;
    for (uint32_t i = 0; i < p->references.count; i++) {
        eddy_program_binding *binding = eddy_program_binding_at(p->program, references[i].binding);
        p->cursor.line = references[i].line;
        if (references[i].name.length
                ? !eddy_parser_find_name(p, references[i].name, &binding->value)
                : !eddy_parser_find_number(p, references[i].number, &binding->value))
            return false;
    }
    for (uint32_t i = 0; i < p->program->bindings.count; i++)
        eddy_program_binding_place(p->program, eddy_program_binding_at(p->program, i));
    return true;
}

static bool parse_text(eddy_parser *p) {
    if (!parse_head(p) || !parse_bindings(p) || !parse_captured(p) || !parse_draws(p))
        return false;
    while (p->cursor.at < p->cursor.end)
        if (!eddy_parser_instruction(p))
            return false;
    if (p->instruction_count != p->code->instructions.count)
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                "expected %" PRId64 " instructions, not %" PRIu32,
                                p->instruction_count, p->code->instructions.count);
    return resolve(p);
}

static bool verify(eddy_parser *p) {
    eddy_verdict verdict;
    eddy_status status = eddy_verify_program(p->program, &verdict);
    if (status == EDDY_OK)
        return true;
    p->cursor.line = verdict.instruction != EDDY_CODE_NONE ? u32_at(&p->lines, verdict.instruction)
                     : verdict.binding != EDDY_CODE_NONE
                         ? u32_at(&p->binding_lines, verdict.binding)
                         : 0;
    return eddy_cursor_fail(&p->cursor, status, "%s", verdict.reason);
}

/* There is one text for a program, so that texts can be compared. */
static bool compare_text(eddy_parser *p, const char *text, size_t length) {
    eddy_printed printed;
    if (!eddy_printed_make(&printed, p->program, EDDY_PRINT_READING))
        return eddy_parser_fail_memory(p);
    size_t at = 0, least = length < printed.length ? length : printed.length;
    p->cursor.line = 1;
    for (; at < least && text[at] == printed.text[at]; at++)
        p->cursor.line += text[at] == '\n';
    bool is_same_text = at == length && at == printed.length;
    eddy_printed_fini(&printed);
    return is_same_text ||
           eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                            "expected what stands here in the form in which it is printed");
}

static void parser_fini(eddy_parser *p) {
    eddy_code_array_fini(&p->numbered, sizeof(uint32_t));
    eddy_code_array_fini(&p->references, sizeof(reference));
    eddy_code_array_fini(&p->names, sizeof(eddy_lexeme));
    eddy_code_array_fini(&p->lines, sizeof(uint32_t));
    eddy_code_array_fini(&p->binding_lines, sizeof(uint32_t));
    eddy_memory_release(p->slots, p->slot_count * sizeof(uint32_t), EDDY_MEMORY_PROGRAM);
    eddy_inference_fini(&p->inference);
}

eddy_status eddy_parse_program(eddy_program *program, const char *text, size_t length,
                               uint32_t *generator_count, eddy_parse_error *error) {
    eddy_parser p = {.program = program, .code = &program->code};
    eddy_cursor_init(&p.cursor, text, length);
    if (parse_text(&p) && verify(&p) && compare_text(&p, text, length)) {
        *generator_count = p.generator_count;
    } else {
        error->line = p.cursor.failed_line;
        snprintf(error->reason, sizeof(error->reason), "%s", p.cursor.reason);
    }
    parser_fini(&p);
    return p.cursor.status;
}
