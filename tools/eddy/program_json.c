#include "program_json.h"

#include "output.h"
#include <jansson.h>
#include <string.h>

/* Of bytes that are no UTF-8 jansson makes nothing. */
static void put_text(json_t *object, const char *field, const char *text, size_t length) {
    json_t *value = json_stringn(text, length);
    json_object_set_new(object, field, value ? value : json_string("?"));
}

static void put_piece(json_t *object, const char *field, text_piece piece) {
    if (piece.length > 0)
        put_text(object, field, piece.at, piece.length);
}

static void put_name(json_t *object, const char *field, const program_text *text, uint32_t value) {
    const char *name = text_table_text(&text->names, value);
    put_text(object, field, name, strlen(name));
}

static json_t *values_json(const program_text *text) {
    static const char *const roles[] = {
        [TEXT_MADE] = "made",   [TEXT_INPUT] = "input",       [TEXT_DONATED] = "donated",
        [TEXT_STATE] = "state", [TEXT_CONSTANT] = "constant", [TEXT_CAPTURED] = "captured"};
    json_t *array = json_array();
    for (uint32_t v = TEXT_TABLE_FIRST; v < text->values.count; v++) {
        const text_value *value = program_text_value(text, v);
        json_t *object = json_object();
        put_name(object, "name", text, v);
        json_object_set_new(object, "role", json_string(roles[value->role]));
        put_piece(object, "layout", value->layout);
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *operand_json(const program_text *text, const text_operand *operand) {
    static const char *const accesses[] = {[TEXT_READS] = "reads",
                                           [TEXT_MAKES] = "makes",
                                           [TEXT_CHANGES] = "changes",
                                           [TEXT_SETS] = "sets"};
    json_t *object = json_object();
    put_name(object, "value", text, operand->value);
    json_object_set_new(object, "access", json_string(accesses[operand->access]));
    put_piece(object, "layout", operand->layout);
    if (operand->bytes > 0)
        json_object_set_new(object, "bytes", json_integer(operand->bytes));
    if (operand->is_in_arena)
        json_object_set_new(object, "arena_offset", json_integer(operand->offset_bytes));
    return object;
}

static json_t *instructions_json(const program_text *text) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < text->instructions.count; i++) {
        const text_instruction *instruction = program_text_instruction(text, i);
        json_t *object = json_object(), *operands = json_array();
        put_piece(object, "op", instruction->op);
        put_piece(object, "attributes", instruction->attributes);
        put_piece(object, "plan", instruction->plan);
        if (instruction->group > 0)
            json_object_set_new(object, "group", json_integer(instruction->group));
        for (uint32_t k = 0; k < instruction->operand_count; k++)
            json_array_append_new(
                operands,
                operand_json(text, program_text_operand(text, instruction->operands_at + k)));
        json_object_set_new(object, "operands", operands);
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *outputs_json(const program_text *text) {
    json_t *array = json_array();
    for (uint32_t o = 0; o < text->outputs.count; o++) {
        const text_output *output = program_text_output(text, o);
        json_t *object = json_object();
        put_piece(object, "name", output->name);
        put_piece(object, "layout", output->layout);
        put_name(object, "value", text, output->value);
        json_array_append_new(array, object);
    }
    return array;
}

int program_json_write(const tool_arguments *arguments, const program_text *text) {
    json_t *json = json_object();
    json_object_set_new(json, "values", values_json(text));
    json_object_set_new(json, "instructions", instructions_json(text));
    json_object_set_new(json, "outputs", outputs_json(text));
    if (text->alive_bytes >= 0) {
        json_object_set_new(json, "arena_bytes", json_integer(text->arena_bytes));
        json_object_set_new(json, "alive_bytes", json_integer(text->alive_bytes));
    }
    int code = tool_output(arguments, tool_put_json, json);
    json_decref(json);
    return code;
}
