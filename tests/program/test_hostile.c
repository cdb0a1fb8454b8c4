/* Texts of every op, changed at random: what is refused takes nothing, and what is accepted can be run: nothing is read or written outside of its
 * storage, which a build with AddressSanitizer shows. */
#include "mutate.h"

#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/parse.h>
#include <program/print.h>
#include <string.h>
#include <tests/functional/described.h>
#include <tests/program/texts.h>

#define TEXT_MOST 8192
#define CHANGES 60
#define BYTES_MOST 100000
#define ELEMENTS_MOST 100000

typedef struct call_row {
    const char *op, *operands, *attributes;
} call_row;

static const call_row rows[] = {
#define CALL(name, operands, attributes) {#name, operands, attributes},
#include <functional/op_calls.h>
};
#define ROW_COUNT ((int)(sizeof(rows) / sizeof(rows[0])))

/* The text of the op's example; 0 where it cannot be recorded. */
static size_t text_of(const call_row *row, char *text) {
    const eddy_op *op = described_op(row->op);
    described call;
    eddy_tensor *outputs[EDDY_OP_OUTPUT_MAX];
    eddy_binding bindings[DESCRIBED_MAX + EDDY_OP_OUTPUT_MAX];
    char names[DESCRIBED_MAX + EDDY_OP_OUTPUT_MAX][8];
    int64_t count = 0;
    if (!op)
        return 0;
    described_read(&call, op, row->operands, row->attributes);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    cr_assert_eq(described_call(&call, "", outputs), EDDY_OK);
    for (int64_t i = 0; i < call.operand_count; i++)
        if (call.operands[i] != EDDY_NONE)
            bindings[count++] = (eddy_binding){.tensor = call.operands[i], .role = EDDY_ROLE_INPUT};
    for (int32_t i = 0; i < op->output_count; i++)
        bindings[count++] = (eddy_binding){.tensor = outputs[i], .role = EDDY_ROLE_OUTPUT};
    for (int64_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "t%d", (int)i);
        bindings[i].name = names[i];
    }
    eddy_printed printed;
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, count});
    cr_assert(program && eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    keep_text(program, row->op);
    size_t length = printed.length < TEXT_MOST / 2 ? printed.length : 0;
    memcpy(text, printed.text, length);
    eddy_printed_fini(&printed);
    eddy_program_release(&program);
    return length;
}

/* Programs of the usual size only. */
static bool is_small(const eddy_program *program) {
    for (uint32_t i = 0; i < program->code.values.count; i++)
        if (eddy_code_value_at(&program->code, i)->bytes > BYTES_MOST)
            return false;
    for (uint32_t i = 0; i < program->code.operands.count; i++) {
        const eddy_code_operand *operand = eddy_code_operand_at(&program->code, i);
        int64_t count = 1;
        for (int32_t d = 0; d < operand->rank; d++)
            count *= eddy_code_dims(&program->code, operand)[d] % (ELEMENTS_MOST + 1);
        if (count > ELEMENTS_MOST)
            return false;
    }
    return program->code.scalars.count == 0;
}

static eddy_tensor *input_for(const eddy_program *program, const eddy_program_binding *binding) {
    eddy_dtype dtype = (eddy_dtype)binding->dtype;
    int64_t bytes = eddy_code_value_at(&program->code, binding->value)->bytes;
    eddy_shape shape = {.rank = binding->layout.rank};
    memcpy(shape.dims, binding->layout.dims, sizeof(shape.dims));
    eddy_tensor *all = eddy_ones(EDDY_SHAPE(bytes / (int64_t)eddy_dtype_bytes(dtype)), dtype, NULL);
    return eddy_as_strided(all, shape, binding->layout.strides, 0);
}

static void run(eddy_program *program) {
    eddy_tensor *inputs[DESCRIBED_MAX], *outputs[EDDY_OP_OUTPUT_MAX];
    int64_t count = 0;
    if (!is_small(program) || program->output_count > EDDY_OP_OUTPUT_MAX)
        return;
    eddy_status status = eddy_program_build(program, (eddy_origin){"test", NULL});
    for (uint32_t i = 0; i < program->bindings.count && status == EDDY_OK; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        if (binding->role == EDDY_ROLE_INPUT)
            inputs[count++] = input_for(program, binding);
    }
    if (status == EDDY_OK && program->executable->arena.bytes < 100 * BYTES_MOST)
        (void)!eddy_program_run(program, (eddy_list){inputs, count}, outputs);
    (void)!eddy_sync(EDDY_FOREVER);
    eddy_error_take(NULL);
}

/* Whether the text was a program. */
static bool try_text(const char *text, size_t length) {
    eddy_parse_error error;
    eddy_runtime *runtime;
    uint32_t generators;
    cr_assert_eq(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime), EDDY_OK);
    eddy_program *program = eddy_program_create(runtime);
    eddy_status status = eddy_parse_program(program, text, length, &generators, &error);
    cr_assert(status == EDDY_OK || status == EDDY_INVALID_ARGUMENT);
    eddy_scope *scope = eddy_scope_begin();
    if (status == EDDY_OK && generators == 0)
        run(program);
    eddy_scope_end(scope);
    eddy_program_release(&program);
    return status == EDDY_OK;
}

static int try_row(const call_row *row, mutator *m) {
    char from[TEXT_MOST], text[TEXT_MOST];
    eddy_scope *scope = eddy_scope_begin();
    size_t length = text_of(row, from);
    eddy_scope_end(scope);
    int accepted = 0;
    for (int i = 0; i < CHANGES && length > 0; i++) {
        memcpy(text, from, length);
        size_t changed =
            i % 4 == 0 ? mutator_change(m, text, length) : mutator_renumber(m, text, length);
        accepted += try_text(text, changed);
    }
    return accepted;
}

Test(hostile, accepted_texts_of_every_op_can_be_run, .timeout = 300) {
    mutator m = {88172645463325252u};
    int accepted = 0;
    for (int i = 0; i < ROW_COUNT; i++)
        accepted += try_row(&rows[i], &m);
    cr_assert_gt(accepted, 100, "%d", accepted);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Of a program's text: that, and many changes of it, of which some are programs, too. */
static void try_changes(const char *from, size_t bytes) {
    mutator m = {88172645463325252u};
    char text[2048];
    int accepted = 0;
    cr_assert_lt(2 * bytes, sizeof(text));
    cr_assert(try_text(from, bytes));
    for (int i = 0; i < 4000; i++) {
        memcpy(text, from, bytes + 1);
        size_t length =
            i % 4 == 0 ? mutator_change(&m, text, bytes) : mutator_renumber(&m, text, bytes);
        accepted += try_text(text, length);
    }
    cr_assert_gt(accepted, 100, "%d", accepted);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Draws in branches, and what is done with them. Predicates and tensors may be any; there is no loop, which may never end. */
Test(hostile, accepted_texts_with_draws_in_branches_can_be_run, .timeout = 300) {
    static const char from[] =
        "eddy program, version 1, 10 instructions\ninput p bool[]\ninput x f32[3]\n"
        "input drawn i64[2]\noutput y f32[3] of %3\noutput z f32[3] of %4\ndraw 0\ndraw 1\ndraw 2\n"
        "%0 f32[3] = dropout(x f32[3], p = 0.5, draw = 0)\nif(p bool[])\n"
        "%1 f32[3] = dropout(%0 f32[3], p = 0.5, draw = 1)\n%2 i64[2] = draw_get(draw = 1)\n"
        "draw_set(drawn i64[2], draw = 0)\nelse()\nset %1 f32[3] = bernoulli(x f32[3], draw = 2)\n"
        "end_if()\n%3 f32[3] = dropout_backward(x f32[3], p = 0.5, draw = 0)\n"
        "%4 f32[3] = dropout_backward(%1 f32[3], p = 0.5, draw = 1)\n";
    try_changes(from, sizeof(from) - 1);
}

/* Calls behind a run, of what it makes, of parts of that and of an input. */
Test(hostile, accepted_texts_with_late_shapes_can_be_run, .timeout = 300) {
    static const char from[] =
        "eddy program, version 1, 9 instructions\ninput x f32[4, 3]\ninput s f32[6]\n"
        "output y f32[4, 3] of %0\noutput n i64[0] of %4\noutput m f32[0] of %5\n"
        "output u i64[0] of %6\noutput c i64[0] of %9\n%0 f32[4, 3] = relu(x f32[4, 3])\n"
        "%1 f32[4, 3] = ceil(x f32[4, 3])\n%2 bool[4, 3] = gt(%0 f32[4, 3], %1 f32[4, 3])\n"
        "%3 i64[12] = cast(x f32[12], dtype = i64)\nmut s f32[6] = neg(s f32[6])\n"
        "%4 i64[0] = nonzero(s f32[4] at 2)\n"
        "%5 f32[0] = masked_select(%0 f32[3, 4] strides [1, 3], %2 bool[3, 4] strides [1, 3])\n"
        "%6 i64[0] = unique(%3 i64[6] strides [2])\n"
        "%7 i64[0], %8 i64[0], %9 i64[0] = unique_counts(%3 i64[5] at 7)\n";
    try_changes(from, sizeof(from) - 1);
}
