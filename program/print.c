/* A program as text (docs/program-format.md). */
#include <program/printer.h>

#include <base/dtype.h>
#include <base/memory.h>
#include <base/option.h>
#include <base/shape.h>
#include <base/status.h>
#include <errno.h>
#include <interpreter/host/transfer.h>
#include <inttypes.h>
#include <program/attribute.h>
#include <program/control.h>
#include <program/cut.h>
#include <program/lists.h>
#include <string.h>

static const eddy_code *code_of(const eddy_printer *p) {
    return &p->program->code;
}

/* ---- names and numbers of values ---- */

static void name_values(const eddy_printer *p) {
    for (uint32_t i = 0; i < p->program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(p->program, i);
        bool is_name = binding->role != EDDY_ROLE_OUTPUT && binding->role != EDDY_PROGRAM_KEPT;
        if (is_name && p->labels[binding->value] == 0)
            p->labels[binding->value] = 1 + i;
    }
}

/* What has no name gets a number, in the order of the text: the captured ones, then those that instructions make. */
static void number_values(const eddy_printer *p) {
    const eddy_code *code = code_of(p);
    uint32_t next = 0;
    for (uint32_t e = 0; e < p->program->externals.count; e++) {
        uint32_t *label = &p->labels[eddy_program_external_at(p->program, e)->value];
        if (*label == 0)
            *label = EDDY_PRINTER_UNNAMED | next++;
    }
    for (uint32_t i = 0; i < eddy_code_call_count(code_of(p)); i++) {
        const eddy_code_instruction *instruction = eddy_code_call_at(code_of(p), i);
        for (uint32_t k = 0; k < instruction->operand_count; k++) {
            const eddy_code_operand *operand =
                eddy_code_operand_at(code, instruction->operands_at + k);
            if (operand->access & EDDY_CODE_MAKES && p->labels[operand->value] == 0)
                p->labels[operand->value] = EDDY_PRINTER_UNNAMED | next++;
        }
    }
}

static bool is_plain(const char *name) {
    static const char *const kept[] = {"none", "mut", "set", "put"};
    static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        if (strcmp(name, kept[i]) == 0)
            return false;
    if (!name[0] || !strchr(letters, name[0]))
        return false;
    for (const char *at = name; *at; at++)
        if (!strchr(letters, *at) && !strchr("0123456789.", *at))
            return false;
    return true;
}

void eddy_print_name(eddy_text *text, const char *name) {
    if (is_plain(name)) {
        eddy_text_add(text, "%s", name);
        return;
    }
    eddy_text_add(text, "\"");
    for (const char *at = name; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\')
            eddy_text_add(text, "\\%c", byte);
        else if (byte < ' ' || byte == 0x7f)
            eddy_text_add(text, "\\x%02x", byte);
        else
            eddy_text_add(text, "%c", byte);
    }
    eddy_text_add(text, "\"");
}

void eddy_printer_value(eddy_printer *p, uint32_t value) {
    uint32_t label = p->labels[value];
    if (label & EDDY_PRINTER_UNNAMED)
        eddy_text_add(&p->text, "%%%" PRIu32, label & ~EDDY_PRINTER_UNNAMED);
    else
        eddy_print_name(&p->text, eddy_program_binding_at(p->program, label - 1)->name);
}

/* ---- layouts ---- */

static void print_dims(eddy_printer *p, int32_t rank, const int64_t *dims) {
    char text[EDDY_RANK_MAX * 22];
    eddy_shape_format(rank, dims, text, sizeof(text));
    eddy_text_add(&p->text, "%s", text);
}

/* "f32[2, 3]", and what there is to say where it is not row-major from the start of its storage. */
static void print_layout(eddy_printer *p, eddy_dtype dtype, const eddy_layout *layout) {
    int64_t row_major[EDDY_RANK_MAX];
    eddy_text_add(&p->text, "%s", eddy_dtype_name(dtype));
    print_dims(p, layout->rank, layout->dims);
    eddy_shape_strides_contiguous(layout->rank, layout->dims, row_major);
    if (memcmp(layout->strides, row_major, (size_t)layout->rank * sizeof(row_major[0])) != 0) {
        eddy_text_add(&p->text, " strides ");
        print_dims(p, layout->rank, layout->strides);
    }
    if (layout->offset != 0)
        eddy_text_add(&p->text, " at %" PRId64, layout->offset);
}

/* " on far:0" behind the layout with which a value begins. */
static void print_device(eddy_printer *p, uint32_t value) {
    const eddy_code_value *of = eddy_code_value_at(code_of(p), value);
    char text[32];
    if (EDDY_LIKELY(of->device_kind == 0))
        return;
    eddy_device_format(eddy_code_value_device(of), text, sizeof(text));
    eddy_text_add(&p->text, " on %s", text);
}

/* ---- operands ---- */

static void print_operand(eddy_printer *p, const eddy_code_operand *operand) {
    if (eddy_code_operand_is_absent(operand)) {
        eddy_text_add(&p->text, "none");
        return;
    }
    eddy_layout layout;
    eddy_code_operand_layout(code_of(p), operand, &layout);
    if (eddy_code_value_at(code_of(p), operand->value)->is_turned)
        eddy_shape_strides_contiguous(layout.rank, layout.dims, layout.strides);
    bool is_target = operand->access & EDDY_CODE_WRITES && !(operand->access & EDDY_CODE_MAKES);
    if (is_target)
        eddy_text_add(&p->text, operand->access & EDDY_CODE_REPLACES ? "put "
                                : operand->access & (EDDY_CODE_COVERS | EDDY_CODE_COVERS_INPUT)
                                    ? "set "
                                    : "mut ");
    eddy_printer_value(p, operand->value);
    eddy_text_add(&p->text, " ");
    print_layout(p, (eddy_dtype)operand->dtype, &layout);
    if (operand->access & EDDY_CODE_MAKES)
        print_device(p, operand->value);
}

static void print_operands(eddy_printer *p, uint32_t first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        eddy_text_add(&p->text, k ? ", " : "");
        print_operand(p, eddy_code_operand_at(code_of(p), first + k));
    }
}

/* Lists stand in brackets. Returns what stands before an attribute. */
static const char *print_inputs(eddy_printer *p, const eddy_code_instruction *instruction) {
    const eddy_op *op = instruction->op;
    uint32_t at = instruction->operands_at;
    int64_t length = eddy_lists_length(op, instruction->input_count);
    const char *comma = "";
    for (int32_t i = 0; i < op->operand_count; i++) {
        if (op->operands[i].is_spec_only)
            continue;
        bool is_list = op->operands[i].kind == EDDY_OPERAND_LIST;
        uint32_t count = is_list ? (uint32_t)length : 1;
        eddy_text_add(&p->text, "%s%s", comma, is_list ? "[" : "");
        print_operands(p, at, count);
        eddy_text_add(&p->text, is_list ? "]" : "");
        at += count;
        comma = ", ";
    }
    return comma;
}

/* ---- attributes ---- */

/* "number 0" for an attribute that each run gives. */
static bool print_given(eddy_printer *p, const eddy_code_instruction *instruction,
                        int32_t attribute) {
    for (uint32_t k = 0; k < instruction->patch_count; k++) {
        const eddy_code_patch *patch = eddy_code_patch_at(code_of(p), instruction->patches_at + k);
        const eddy_code_scalar *use =
            patch->draw ? NULL : eddy_code_scalar_at(code_of(p), patch->scalar);
        if (use && use->attribute == (uint32_t)attribute) {
            eddy_text_add(&p->text, "number %" PRIu32, use->number);
            return true;
        }
    }
    return false;
}

static void print_attributes(eddy_printer *p, const eddy_code_instruction *instruction,
                             const char *comma) {
    const eddy_op *op = instruction->op;
    const char *attributes = (const char *)eddy_code_words(code_of(p), instruction->attributes_at);
    for (int32_t i = 0; i < op->attribute_count; i++) {
        if (instruction->draw && op->redraws && (i == op->redraws - 1 || i == op->redraws))
            continue;
        eddy_text_add(&p->text, "%s%s = ", comma, op->attributes[i].name);
        comma = ", ";
        if (!print_given(p, instruction, i))
            eddy_attribute_format(&p->text, &op->attributes[i],
                                  attributes + op->attributes[i].offset);
    }
    if (instruction->draw)
        eddy_text_add(&p->text, "%sdraw = %" PRIu32, comma, instruction->draw - 1);
}

/* ---- lines ---- */

/* A state may be a part of its storage, and a storage may have several. */
static void print_storage(eddy_printer *p, uint32_t i, const eddy_program_binding *binding) {
    int64_t bytes = eddy_code_value_at(code_of(p), binding->value)->bytes;
    if (p->labels[binding->value] != 1 + i) {
        eddy_text_add(&p->text, " of ");
        eddy_printer_value(p, binding->value);
        return;
    }
    if (bytes != binding->count * eddy_dtype_size((eddy_dtype)binding->dtype))
        eddy_text_add(&p->text, " in %" PRId64 " bytes", bytes);
    print_device(p, binding->value);
}

static void print_binding(eddy_printer *p, uint32_t i) {
    static const char *const roles[] = {"input ",    "output ",  "state ",
                                        "constant ", "donated ", "gradient "};
    const eddy_program_binding *binding = eddy_program_binding_at(p->program, i);
    if (binding->role == EDDY_PROGRAM_KEPT && p->what == EDDY_PRINT_CODE)
        return;
    eddy_text_add(&p->text, "%s", roles[binding->is_donated ? EDDY_ROLE_DONATED : binding->role]);
    if (binding->name) {
        eddy_print_name(&p->text, binding->name);
        eddy_text_add(&p->text, " ");
    }
    print_layout(p, (eddy_dtype)binding->dtype, &binding->layout);
    if (binding->role == EDDY_ROLE_STATE || binding->role == EDDY_ROLE_CONSTANT) {
        print_storage(p, i, binding);
    } else if (binding->role == EDDY_ROLE_INPUT) {
        print_device(p, binding->value);
    } else {
        eddy_text_add(&p->text, " of ");
        eddy_printer_value(p, binding->value);
    }
    eddy_text_add(&p->text, "\n");
}

static void print_captured(eddy_printer *p) {
    for (uint32_t e = 0; e < p->program->externals.count; e++) {
        uint32_t value = eddy_program_external_at(p->program, e)->value;
        const eddy_code_value *of = eddy_code_value_at(code_of(p), value);
        if (of->kind != EDDY_VALUE_CAPTURED)
            continue;
        eddy_text_add(&p->text, "captured ");
        eddy_printer_value(p, value);
        eddy_text_add(&p->text, " %" PRId64 " bytes", of->bytes);
        print_device(p, value);
        eddy_text_add(&p->text, "%s\n", of->is_written ? ", written" : "");
    }
}

static void print_draws(eddy_printer *p) {
    for (uint32_t i = 0; i < code_of(p)->draws.count; i++) {
        uint32_t generator = eddy_code_draw_at(code_of(p), i)->generator;
        eddy_text_add(&p->text, "draw %" PRIu32, i);
        if (generator != EDDY_CODE_NONE)
            eddy_text_add(&p->text, " of generator %" PRIu32, generator);
        eddy_text_add(&p->text, "\n");
    }
}

static bool is_cut(const eddy_printer *p, uint32_t i) {
    return eddy_control_of(eddy_code_call_at(code_of(p), i)->op) == EDDY_CONTROL_CUT;
}

/* What lies behind a cut, unless that is one more call of a device of calls. */
static void print_cut(eddy_printer *p, uint32_t i) {
    const eddy_code_instruction *next = eddy_code_instruction_at(code_of(p), i + 1),
                                *before = eddy_code_instruction_at(code_of(p), i - 1);
    eddy_device device = eddy_code_instruction_device(code_of(p), next),
                other = eddy_code_instruction_device(code_of(p), before);
    char text[32];
    if (next->op != &eddy_transfer_op && before->op != &eddy_transfer_op &&
        device.kind == other.kind && device.index == other.index)
        return;
    eddy_device_format(device, text, sizeof(text));
    eddy_text_add(&p->text, "    # %s %s\n",
                  next->op == &eddy_transfer_op ? "a copy to" : "a partition on", text);
}

/* "%7 f32[2, 3] = add(x f32[2, 3], %4 f32[3])": what is written before the sign, what is read behind it. */
static void print_instruction(eddy_printer *p, uint32_t i) {
    const eddy_code_instruction *instruction = eddy_code_call_at(code_of(p), i);
    uint32_t before = i;
    while (before > 0 && is_cut(p, before - 1))
        before--;
    if (instruction->ordinal !=
        (before > 0 ? eddy_code_call_at(code_of(p), before - 1)->ordinal + 1 : 0))
        eddy_text_add(&p->text, "%" PRIu32 ": ", instruction->ordinal);
    uint32_t outputs = instruction->operand_count - instruction->input_count;
    print_operands(p, instruction->operands_at + instruction->input_count, outputs);
    eddy_text_add(&p->text, "%s%s(", outputs ? " = " : "", instruction->op->name);
    const char *comma = print_inputs(p, instruction);
    print_attributes(p, instruction, comma);
    eddy_text_add(&p->text, ")\n");
}

static void print_head(eddy_printer *p) {
    uint32_t count = eddy_code_call_count(code_of(p)) - eddy_cut_count(code_of(p)),
             recorded = code_of(p)->recorded_count;
    eddy_text_add(&p->text, "eddy program, version %d, %" PRIu32 " instructions",
                  EDDY_PRINT_VERSION, count);
    if (recorded != count)
        eddy_text_add(&p->text, ", %" PRIu32 " recorded", recorded);
    eddy_text_add(&p->text, "\n");
}

/* Groups are found again by who builds a program from its text. */
static void print_instructions(eddy_printer *p) {
    const eddy_code *code = code_of(p);
    uint32_t group = p->what == EDDY_PRINT_CODE ? code->groups.count : 0;
    for (uint32_t i = 0; i < eddy_code_call_count(code_of(p)); i++) {
        if (is_cut(p, i)) {
            if (p->what == EDDY_PRINT_PLAN)
                print_cut(p, i);
            continue;
        }
        const eddy_code_group *g =
            group < code->groups.count ? eddy_code_group_at(code, group) : NULL;
        if (g && g->first == i) {
            eddy_text_add(&p->text, "fused {\n");
            if (p->what == EDDY_PRINT_PLAN)
                eddy_printer_tiles(p, group);
        }
        print_instruction(p, i);
        if (p->what == EDDY_PRINT_PLAN && i >= code->instructions.count)
            eddy_text_add(&p->text, "    # called behind the run\n");
        else if (p->what == EDDY_PRINT_PLAN)
            eddy_printer_step(p, i, g && g->first <= i ? (int64_t)group : -1);
        if (g && g->first + g->count == i + 1) {
            eddy_text_add(&p->text, "}\n");
            group++;
        }
    }
}

static void print_all(eddy_printer *p) {
    print_head(p);
    for (uint32_t i = 0; i < p->program->bindings.count; i++)
        print_binding(p, i);
    print_captured(p);
    print_draws(p);
    print_instructions(p);
    if (p->what == EDDY_PRINT_PLAN)
        eddy_printer_memory(p);
}

/* ---- all of it ---- */

bool eddy_printed_make(eddy_printed *printed, const eddy_program *program, eddy_print_what what) {
    size_t bytes = program->code.values.count * sizeof(uint32_t);
    eddy_printer p = {.program = program, .what = what};
    *printed = (eddy_printed){0};
    p.labels = eddy_memory_acquire_zeroed(bytes, EDDY_MEMORY_TEXT);
    if (!p.labels)
        return false;
    name_values(&p);
    number_values(&p);
    print_all(&p); /* counts */
    printed->length = p.text.length;
    printed->text = eddy_memory_acquire(printed->length + 1, EDDY_MEMORY_TEXT);
    p.text = (eddy_text){.buffer = printed->text, .size = printed->length + 1};
    if (printed->text)
        print_all(&p);
    eddy_memory_release(p.labels, bytes, EDDY_MEMORY_TEXT);
    return printed->text != NULL;
}

void eddy_printed_fini(eddy_printed *printed) {
    if (printed->text)
        eddy_memory_release(printed->text, printed->length + 1, EDDY_MEMORY_TEXT);
    *printed = (eddy_printed){0};
}

eddy_status eddy_program_print(const eddy_program *program, FILE *file,
                               const eddy_program_print_options *options) {
    eddy_origin origin = EDDY_ORIGIN("program_print");
    eddy_status status = eddy_program_check(program, origin);
    if (status != EDDY_OK)
        return status;
    if (!file)
        return eddy_fail(EDDY_INVALID_ARGUMENT, origin, "the file is NULL");
    eddy_print_what what = EDDY_OPTION(options, shows_plan) ? EDDY_PRINT_PLAN : EDDY_PRINT_READING;
    eddy_printed printed;
    if (!eddy_printed_make(&printed, program, what))
        return eddy_fail(EDDY_OUT_OF_MEMORY, origin, "no memory for the text");
    errno = 0;
    bool is_written = fwrite(printed.text, 1, printed.length, file) == printed.length;
    is_written = fflush(file) == 0 && !ferror(file) && is_written;
    int reason = errno ? errno : EIO;
    eddy_printed_fini(&printed);
    return is_written
               ? EDDY_OK
               : eddy_fail(EDDY_IO, origin, "the program cannot be written: %s", strerror(reason));
}
