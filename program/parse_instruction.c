/* Instructions in the text of a program. */
#include <interpreter/host/transfer.h>
#include <program/parser.h>

#include <inttypes.h>
#include <program/attribute.h>
#include <program/control.h>
#include <program/draw_ops.h>
#include <program/late_read.h>
#include <program/lists.h>
#include <program/product_op.h>
#include <program/tensor_list.h>
#include <stdio.h>
#include <string.h>

#define OP_NAME_BYTES 64
#define NUMBERS_MOST 65536

/* ---- operands ---- */

static bool add_operand(eddy_parser *p, eddy_code_operand *operand, const eddy_layout *layout) {
    if (operand->access & EDDY_CODE_WRITES)
        eddy_code_value_at(p->code, operand->value)->is_written = true;
    return eddy_code_add_operand(p->code, operand, layout) || eddy_parser_fail_memory(p);
}

/* The value, which begins here where `makes` is set. */
static bool parse_value(eddy_parser *p, bool *makes, uint32_t *value) {
    eddy_lexeme name;
    int64_t number;
    if (!eddy_parser_is_at(p, "%")) {
        *makes = false;
        return eddy_cursor_name(&p->cursor, &name) && eddy_parser_find_name(p, name, value);
    }
    if (!eddy_parser_number(p, &number))
        return false;
    *makes = *makes && eddy_parser_is_next(p, number);
    return *makes ? eddy_parser_begin(p, EDDY_VALUE_MADE, 0, value)
                  : eddy_parser_find_number(p, number, value);
}

/* A run may be given a part of a larger storage as an input. */
static uint8_t access_of_set(const eddy_parser *p, uint32_t value) {
    return eddy_code_value_at(p->code, value)->kind == EDDY_VALUE_INPUT
               ? EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_COVERS_INPUT
               : EDDY_CODE_WRITES | EDDY_CODE_COVERS;
}

/* "mut x f32[2, 3]", or "none" */
static bool parse_operand(eddy_parser *p, bool is_output) {
    eddy_code_operand operand = {.value = EDDY_CODE_NONE};
    eddy_layout layout = {0};
    eddy_dtype dtype = EDDY_F32;
    if (!is_output && eddy_parser_take(p, "none"))
        return add_operand(p, &operand, &layout);
    bool changes = eddy_parser_take(p, "mut "), sets = !changes && eddy_parser_take(p, "set "),
         replaces = !changes && !sets && eddy_parser_take(p, "put ");
    bool makes = is_output && !changes && !sets && !replaces;
    if (!parse_value(p, &makes, &operand.value) || !eddy_cursor_pass(&p->cursor, " ") ||
        !eddy_parser_layout(p, &dtype, &layout))
        return false;
    operand.dtype = (uint8_t)dtype;
    operand.access = makes      ? EDDY_CODE_WRITES | EDDY_CODE_MAKES
                     : changes  ? EDDY_CODE_WRITES | EDDY_CODE_READS
                     : sets     ? access_of_set(p, operand.value)
                     : replaces ? EDDY_CODE_WRITES | EDDY_CODE_READS | EDDY_CODE_REPLACES
                                : EDDY_CODE_READS;
    if (is_output && operand.access == EDDY_CODE_READS)
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                "expected a result: a new value, or one that is written to");
    if (makes &&
        !(eddy_parser_span(p, &layout, dtype, &eddy_code_value_at(p->code, operand.value)->bytes) &&
          eddy_parser_device(p, operand.value)))
        return false;
    return add_operand(p, &operand, &layout);
}

static bool parse_list(eddy_parser *p, uint32_t *count) {
    *count = 0;
    if (!eddy_cursor_pass(&p->cursor, "["))
        return false;
    for (; !eddy_parser_take(p, "]"); ++*count)
        if ((*count > 0 && !eddy_cursor_pass(&p->cursor, ", ")) || !parse_operand(p, false))
            return false;
    return true;
}

/* *comma: what stands before an attribute. */
static bool parse_inputs(eddy_parser *p, const eddy_op *op, const char **comma) {
    uint32_t length = EDDY_CODE_NONE, count;
    *comma = "";
    for (int32_t i = 0; i < op->operand_count; i++) {
        if (op->operands[i].is_spec_only)
            continue;
        if (!eddy_cursor_pass(&p->cursor, *comma))
            return false;
        *comma = ", ";
        if (op->operands[i].kind != EDDY_OPERAND_LIST) {
            if (!parse_operand(p, false))
                return false;
            continue;
        }
        if (!parse_list(p, &count))
            return false;
        if (length != EDDY_CODE_NONE && count != length)
            return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                    "expected a list of %" PRIu32 " items, not %" PRIu32, length,
                                    count);
        length = count;
    }
    return true;
}

static bool parse_outputs(eddy_parser *p, uint32_t *count) {
    for (*count = 0; eddy_parser_is_at(p, "%") || eddy_parser_is_at(p, "mut ") ||
                     eddy_parser_is_at(p, "set ") || eddy_parser_is_at(p, "put ");
         ++*count) {
        if (*count == EDDY_OP_OUTPUT_MAX)
            return eddy_cursor_expected(&p->cursor, "an op: there are 8 results already");
        if (!parse_operand(p, true) ||
            (!eddy_parser_is_at(p, " = ") && !eddy_cursor_pass(&p->cursor, ", ")))
            return false;
    }
    return *count == 0 || eddy_cursor_pass(&p->cursor, " = ");
}

/* ---- attributes ---- */

/* "number 0": words of the attribute are filled in at each run. */
static bool parse_given(eddy_parser *p, eddy_code_instruction *instruction, int32_t i) {
    const eddy_op_attribute *attribute = &instruction->op->attributes[i];
    eddy_code_scalar use = {.attribute = (uint32_t)i,
                            .is_double = attribute->type == EDDY_ATTRIBUTE_FLOAT,
                            .wraps = instruction->op->numbers_wrap,
                            .op = instruction->op};
    int64_t number;
    uint32_t scalar, words = use.is_double ? 1 : 2;
    if (!use.is_double && attribute->type != EDDY_ATTRIBUTE_SCALAR)
        return eddy_cursor_expected(&p->cursor, "a value");
    if (!eddy_parser_take(p, "number ") ||
        !eddy_cursor_integer(&p->cursor, "a number's place", 0, NUMBERS_MOST, &number))
        return false;
    use.number = (uint32_t)number;
    use.wraps &= !use.is_double;
    if (!eddy_code_add_scalar(p->code, &use, &scalar))
        return eddy_parser_fail_memory(p);
    for (uint32_t w = 0; w < words; w++) {
        eddy_code_patch patch = {
            .to = (uint32_t)(attribute->offset / sizeof(int64_t)) + w, .scalar = scalar, .from = w};
        if (!eddy_code_add_patch(p->code, &patch))
            return eddy_parser_fail_memory(p);
    }
    instruction->patch_count += words;
    return true;
}

/* Seed and counter stand before the numbers. */
static bool add_drawn(eddy_parser *p, eddy_code_instruction *instruction, int64_t draw) {
    const eddy_op *op = instruction->op;
    instruction->draw = (uint32_t)draw + 1;
    instruction->patch_count += 2;
    for (uint32_t from = 0; from < 2; from++) {
        eddy_code_patch patch = {.to = from ? eddy_code_counter_word(op) : eddy_code_seed_word(op),
                                 .draw = instruction->draw,
                                 .from = from};
        if (!eddy_code_add_patch(p->code, &patch))
            return eddy_parser_fail_memory(p);
    }
    return true;
}

static bool parse_draw(eddy_parser *p, eddy_code_instruction *instruction, const char *comma) {
    int64_t draw, count = p->code->draws.count;
    const eddy_op *op = instruction->op;
    if (!op->is_random && !op->redraws)
        return true;
    if (!eddy_parser_take(p, *comma ? ", draw = " : "draw = "))
        return true;
    if (count == 0)
        return eddy_cursor_expected(&p->cursor, "a draw that a line before states");
    return eddy_cursor_integer(&p->cursor, "a draw", 0, count - 1, &draw) &&
           add_drawn(p, instruction, draw);
}

/* Seed and counter of an earlier draw are left out where that is part of the program. */
static bool is_left_out(const eddy_parser *p, const eddy_op *op, int32_t i, const char *comma) {
    bool is_drawn = op->redraws && (i == op->redraws - 1 || i == op->redraws);
    char expected[80];
    snprintf(expected, sizeof(expected), "%s%.64s = ", comma, op->attributes[i].name);
    return is_drawn && !eddy_parser_is_at(p, expected);
}

static bool parse_attributes(eddy_parser *p, eddy_code_instruction *instruction,
                             const char *comma) {
    const eddy_op *op = instruction->op;
    uint32_t at, words = (uint32_t)((op->attribute_bytes + sizeof(int64_t) - 1) / sizeof(int64_t));
    if (!eddy_code_array_add(&p->code->words, sizeof(int64_t), words, &at))
        return eddy_parser_fail_memory(p);
    instruction->attributes_at = at;
    if (words > 0)
        memset(eddy_code_words(p->code, at), 0, words * sizeof(int64_t));
    for (int32_t i = 0; i < op->attribute_count; i++) {
        const eddy_op_attribute *attribute = &op->attributes[i];
        if (is_left_out(p, op, i, comma))
            continue;
        if (!eddy_cursor_pass(&p->cursor, comma) ||
            !eddy_cursor_pass(&p->cursor, attribute->name) || !eddy_cursor_pass(&p->cursor, " = "))
            return false;
        comma = ", ";
        char *place = (char *)eddy_code_words(p->code, at) + attribute->offset;
        if (eddy_parser_is_at(p, "number ") ? !parse_given(p, instruction, i)
                                            : !eddy_attribute_parse(&p->cursor, attribute, place))
            return false;
    }
    return parse_draw(p, instruction, comma);
}

/* ---- instructions ---- */

static const eddy_op *parse_op(eddy_parser *p) {
    char name[OP_NAME_BYTES];
    const char *from = p->cursor.at;
    eddy_lexeme word;
    if (!eddy_cursor_word(&p->cursor, "an op", &word))
        return NULL;
    const eddy_op *op = NULL;
    if (word.length < sizeof(name)) {
        memcpy(name, word.start, word.length);
        name[word.length] = 0;
        op = eddy_op_find_built_in(name);
        op = op ? op : eddy_control_find(name);
        op = op ? op : eddy_tensor_list_find(name);
        op = op ? op : eddy_draw_op_find(name);
        op = op ? op : eddy_product_op_find(name);
        op = op || strcmp(name, eddy_transfer_op.name) != 0 ? op : &eddy_transfer_op;
    }
    if (op)
        return op;
    p->cursor.at = from;
    if (eddy_lexeme_is(word, eddy_access_op.name))
        eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                         "%s calls a function of the process that has recorded it, which no text "
                         "holds",
                         eddy_access_op.name);
    else
        eddy_cursor_expected(&p->cursor, "an op of the library");
    return NULL;
}

/* Results stand before the inputs in the text, and behind them in the code. */
static bool turn_operands(eddy_parser *p, uint32_t first, uint32_t outputs) {
    uint32_t count = p->code->operands.count - first, added;
    if (outputs == 0)
        return true;
    if (!eddy_code_array_add(&p->code->operands, sizeof(eddy_code_operand), outputs, &added))
        return eddy_parser_fail_memory(p);
    eddy_code_operand *operands = eddy_code_operand_at(p->code, first);
    memcpy(operands + count, operands, outputs * sizeof(*operands));
    memmove(operands, operands + outputs, count * sizeof(*operands));
    p->code->operands.count -= outputs;
    return true;
}

/* Attributes have parts without a name, which inference fills in (the dilation of an average). What it does to the others shows when
 * the texts are compared. */
static void take_attributes(eddy_parser *p, const eddy_code_instruction *instruction) {
    if (instruction->op->attribute_bytes > 0)
        memcpy(eddy_code_words(p->code, instruction->attributes_at), p->inference.attributes,
               instruction->op->attribute_bytes);
}

/* What the interpreter chooses for such a call. */
static bool choose(eddy_parser *p, eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    uint32_t outputs = instruction->operand_count - instruction->input_count;
    if (!eddy_inference_fits(op, instruction->input_count, outputs))
        return eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT,
                                "expected %d results of %s, not %" PRIu32, (int)op->output_count,
                                op->name, outputs);
    eddy_status status = eddy_inference_run(&p->inference, p->code, instruction);
    if (status != EDDY_OK)
        return status == EDDY_OUT_OF_MEMORY
                   ? eddy_parser_fail_memory(p)
                   : eddy_cursor_fail(&p->cursor, status, "%s", p->inference.reason);
    take_attributes(p, instruction);
    instruction->compute = (uint8_t)p->inference.compute;
    eddy_device_kind kind = eddy_code_instruction_device(p->code, instruction).kind;
    instruction->kernel = eddy_inference_kernel(op, p->inference.compute, kind);
    if (!instruction->kernel)
        return eddy_cursor_fail(&p->cursor, EDDY_UNSUPPORTED, "%s: it has no kernel for %s",
                                op->name, eddy_runtime_device_kind_name(kind));
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(p->code, instruction->patches_at + k);
        if (patch->draw)
            continue;
        eddy_code_scalar *use = eddy_code_scalar_at(p->code, patch->scalar);
        bool is_first = use->attribute < (uint32_t)op->scalar_count || op->output_count == 0;
        use->dtype = (uint8_t)(use->is_double ? EDDY_F64
                               : is_first     ? p->inference.compute
                                              : p->inference.outputs[0].dtype);
    }
    return true;
}

/* "17: " where the number among the recorded calls is not one more than that of the line before. */
static bool parse_ordinal(eddy_parser *p, eddy_code_instruction *instruction) {
    uint32_t count = p->code->instructions.count;
    int64_t ordinal =
        count > 0 ? (int64_t)eddy_code_instruction_at(p->code, count - 1)->ordinal + 1 : 0;
    bool is_given = p->cursor.at < p->cursor.end && *p->cursor.at >= '0' && *p->cursor.at <= '9';
    if (is_given && !(eddy_cursor_integer(&p->cursor, "the number of a recorded call", 0,
                                          (int64_t)p->code->recorded_count - 1, &ordinal) &&
                      eddy_cursor_pass(&p->cursor, ": ")))
        return false;
    instruction->ordinal = (uint32_t)ordinal;
    /* One instruction too many is said to be that, at the end. */
    return ordinal < p->code->recorded_count || count >= p->instruction_count ||
           eddy_cursor_fail(&p->cursor, EDDY_INVALID_ARGUMENT, "expected no more instructions");
}

/* What it makes has a shape that depends on data. */
static void note_late(eddy_parser *p, const eddy_code_instruction *instruction) {
    for (uint32_t k = instruction->input_count; k < instruction->operand_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(p->code, instruction->operands_at + k);
        if (operand->access & EDDY_CODE_MAKES)
            eddy_code_value_at(p->code, operand->value)->is_late = true;
    }
}

bool eddy_parser_instruction(eddy_parser *p) {
    eddy_code_instruction instruction = {.operands_at = p->code->operands.count};
    uint32_t outputs, index;
    const char *comma;
    if (!eddy_parser_add_u32(&p->lines, p->cursor.line))
        return eddy_parser_fail_memory(p);
    if (!parse_ordinal(p, &instruction) || !parse_outputs(p, &outputs) ||
        !(instruction.op = parse_op(p)) || !eddy_cursor_pass(&p->cursor, "(") ||
        !parse_inputs(p, instruction.op, &comma))
        return false;
    if (!turn_operands(p, instruction.operands_at, outputs))
        return false;
    instruction.patches_at = p->code->patches.count;
    if (!parse_attributes(p, &instruction, comma) || !eddy_cursor_pass(&p->cursor, ")"))
        return false;
    instruction.operand_count = p->code->operands.count - instruction.operands_at;
    instruction.input_count = instruction.operand_count - outputs;
    if (instruction.op->has_late_shape)
        note_late(p, &instruction);
    if (!choose(p, &instruction) || !eddy_cursor_pass_line_end(&p->cursor))
        return false;
    return eddy_code_add_instruction(p->code, &instruction, &index) || eddy_parser_fail_memory(p);
}
