/* A program as text (docs/programs.md). */
#include <base/dtype.h>
#include <base/shape.h>
#include <base/status.h>
#include <errno.h>
#include <inttypes.h>
#include <program/program.h>
#include <string.h>

/* ---- values ---- */

static const char *name_of(const eddy_program *program, uint32_t value) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->value == value && binding->role != EDDY_ROLE_OUTPUT)
            return binding->name;
    }
    return NULL;
}

static void print_value(const eddy_program *program, FILE *file, uint32_t value) {
    const char *name = name_of(program, value);
    if (name)
        fprintf(file, "%s", name);
    else
        fprintf(file, "%%%u", value);
}

/* "f32[2, 3]", and what there is to say where it is not row-major from the start of its storage. */
static void print_layout(FILE *file, eddy_dtype dtype, const eddy_layout *layout) {
    char text[EDDY_RANK_MAX * 22];
    eddy_shape_format(layout->rank, layout->dims, text, sizeof(text));
    fprintf(file, "%s%s", eddy_dtype_name(dtype), text);
    if (!eddy_layout_is_contiguous(layout)) {
        eddy_shape_format(layout->rank, layout->strides, text, sizeof(text));
        fprintf(file, " strides %s", text);
    }
    if (layout->offset != 0)
        fprintf(file, " at %" PRId64, layout->offset);
}

static void print_operand(const eddy_program *program, FILE *file,
                          const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand)) {
        fprintf(file, "none");
        return;
    }
    eddy_layout layout;
    eddy_code_operand_layout(&program->code, operand, &layout);
    print_value(program, file, operand->value);
    fprintf(file, " ");
    print_layout(file, (eddy_dtype)operand->dtype, &layout);
}

/* ---- attributes ---- */

static void print_scalar(FILE *file, const eddy_scalar *scalar) {
    if (scalar->kind == EDDY_SCALAR_FLOAT)
        fprintf(file, "%.17g", scalar->value.floating);
    else if (scalar->kind == EDDY_SCALAR_INT)
        fprintf(file, "%" PRId64, scalar->value.integer);
    else
        fprintf(file, "%s", scalar->value.integer ? "true" : "false");
}

static void print_choice(FILE *file, const char *choices, int32_t number) {
    for (; number > 0 && strchr(choices, ' '); number--)
        choices = strchr(choices, ' ') + 1;
    fprintf(file, "%.*s", (int)strcspn(choices, " "), choices);
}

static void print_axes(FILE *file, uint32_t mask) {
    const char *comma = "";
    fprintf(file, "[");
    for (int axis = 0; axis < EDDY_RANK_MAX; axis++)
        if (mask >> axis & 1u) {
            fprintf(file, "%s%d", comma, axis);
            comma = ", ";
        }
    fprintf(file, "]");
}

/* "number 0" for an attribute that each run gives. */
static bool print_given(const eddy_program *program, FILE *file,
                        const eddy_code_instruction *instruction, int32_t attribute) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch =
            eddy_code_patch_at(&program->code, instruction->patches_at + k);
        const eddy_code_scalar *use =
            patch->draw ? NULL : eddy_code_scalar_at(&program->code, patch->scalar);
        if (use && use->attribute == (uint32_t)attribute) {
            fprintf(file, "number %u", use->number);
            return true;
        }
    }
    return false;
}

static void print_attribute(FILE *file, const eddy_op_attribute *attribute, const char *place) {
    char text[EDDY_RANK_MAX * 22];
    const void *value = place;
    switch (attribute->type) {
    case EDDY_ATTRIBUTE_INT:
        fprintf(file, "%" PRId64, *(const int64_t *)value);
        break;
    case EDDY_ATTRIBUTE_FLOAT:
        fprintf(file, "%.17g", *(const double *)value);
        break;
    case EDDY_ATTRIBUTE_BOOL:
        fprintf(file, "%s", *(const bool *)value ? "true" : "false");
        break;
    case EDDY_ATTRIBUTE_SCALAR:
        print_scalar(file, value);
        break;
    case EDDY_ATTRIBUTE_DTYPE:
        fprintf(file, "%s", eddy_dtype_name(*(const eddy_dtype *)value));
        break;
    case EDDY_ATTRIBUTE_SHAPE:
        eddy_shape_format(((const eddy_shape *)value)->rank, ((const eddy_shape *)value)->dims,
                          text, sizeof(text));
        fprintf(file, "%s", text);
        break;
    case EDDY_ATTRIBUTE_AXES:
        print_axes(file, *(const uint32_t *)value);
        break;
    case EDDY_ATTRIBUTE_AXIS:
        fprintf(file, "%" PRId32, *(const int32_t *)value);
        break;
    case EDDY_ATTRIBUTE_CHOICE:
        print_choice(file, attribute->choices, *(const int32_t *)value);
        break;
    case EDDY_ATTRIBUTE_PAIR:
        fprintf(file, "[%" PRId64 ", %" PRId64 "]", ((const eddy_pair *)value)->height,
                ((const eddy_pair *)value)->width);
        break;
    default:
        fprintf(file, "?");
    }
}

static void print_attributes(const eddy_program *program, FILE *file,
                             const eddy_code_instruction *instruction, const char *comma) {
    const eddy_op *op = instruction->op;
    const char *attributes =
        (const char *)eddy_code_words(&program->code, instruction->attributes_at);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        if (instruction->draw && op->redraws && (i == op->redraws - 1 || i == op->redraws))
            continue;
        fprintf(file, "%s%s = ", comma, op->attributes[i].name);
        comma = ", ";
        if (!print_given(program, file, instruction, i))
            print_attribute(file, &op->attributes[i], attributes + op->attributes[i].offset);
    }
    if (instruction->draw)
        fprintf(file, "%sdraw = %u", comma, instruction->draw - 1);
}

/* ---- lines ---- */

static void print_binding(const eddy_program *program, FILE *file,
                          const eddy_program_binding *binding) {
    static const char *const roles[] = {"input", "output", "state", "constant", "gradient"};
    fprintf(file, "%s %s%s", roles[binding->role], binding->name ? binding->name : "",
            binding->name ? " " : "");
    print_layout(file, (eddy_dtype)binding->dtype, &binding->layout);
    if (binding->role == EDDY_ROLE_OUTPUT || binding->role == EDDY_PROGRAM_KEPT) {
        fprintf(file, " of ");
        print_value(program, file, binding->value);
    }
    fprintf(file, "\n");
}

static void print_captured(const eddy_program *program, FILE *file) {
    for (uint32_t e = 0; e < program->externals.count; e++) {
        uint32_t value = eddy_program_external_at(program, e)->value;
        const eddy_code_value *of = eddy_code_value_at(&program->code, value);
        if (of->kind == EDDY_VALUE_CAPTURED)
            fprintf(file, "captured %%%u %" PRId64 " bytes%s\n", value, of->bytes,
                    of->is_written ? ", written" : "");
    }
}

/* "%7 f32[2, 3] = add(x f32[2, 3], %4 f32[3])": what is written before the sign, what is read behind it. */
static void print_instruction(const eddy_program *program, FILE *file, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_instruction_at(&program->code, i);
    const char *comma = "";
    for (uint32_t k = instruction->input_count; k < instruction->operand_count; k++) {
        fprintf(file, "%s", comma);
        print_operand(program, file,
                      eddy_code_operand_at(&program->code, instruction->operands_at + k));
        comma = ", ";
    }
    fprintf(file, "%s%s(", *comma ? " = " : "", instruction->op->name);
    comma = "";
    for (uint32_t k = 0; k < instruction->input_count; k++) {
        const eddy_code_operand *operand =
            eddy_code_operand_at(&program->code, instruction->operands_at + k);
        fprintf(file, "%s%s", comma, operand->access & EDDY_CODE_WRITES ? "mut " : "");
        print_operand(program, file, operand);
        comma = ", ";
    }
    print_attributes(program, file, instruction, comma);
    fprintf(file, ")\n");
}

eddy_status eddy_program_print(const eddy_program *program, FILE *file) {
    eddy_origin origin = EDDY_ORIGIN("program_print");
    eddy_status status = eddy_program_check(program, origin);
    if (status != EDDY_OK)
        return status;
    if (!file)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the file is NULL");
    fprintf(file, "eddy program, %u instructions\n", program->code.instructions.count);
    for (uint32_t i = 0; i < program->bindings.count; i++)
        print_binding(program, file, eddy_program_binding_at(program, i));
    print_captured(program, file);
    for (uint32_t i = 0; i < program->code.instructions.count; i++)
        print_instruction(program, file, i);
    errno = 0;
    if (fflush(file) != 0 || ferror(file))
        return eddy_fail(EDDY_IO, origin, "the program cannot be written: %s",
                         strerror(errno ? errno : EIO));
    return EDDY_OK;
}
