/* Each op, recorded with the example of its entry and replayed on other numbers, gives the bits of the call itself: results (new ones, and written
 * into the results of a run before), operands that it writes, and the state of the generator. So does the program that its text makes:
 * inferring an op again changes nothing. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <program/print.h>
#include <stdlib.h>
#include <string.h>
#include <tests/functional/described.h>
#include <tests/program/reread.h>

typedef struct call_row {
    const char *op, *operands, *attributes;
} call_row;

static const call_row rows[] = {
#define CALL(name, operands, attributes) {#name, operands, attributes},
#include <functional/op_calls.h>
};
#define ROW_COUNT ((int)(sizeof(rows) / sizeof(rows[0])))

#define OUTPUTS 8

static void expect_ok(eddy_status status, const char *what, const char *op) {
    eddy_error error = {0};
    eddy_error_take(&error);
    cr_assert_eq(status, EDDY_OK, "%s of %s: %s", what, op, error.message);
}

/* A tensor of its own memory: floats are drawn from 0.1 to 0.9, so that each op accepts them. */
static eddy_tensor *other_numbers(eddy_tensor *like, uint64_t seed) {
    eddy_dtype dtype = eddy_dtype_of(like);
    bool is_float =
        dtype == EDDY_F32 || dtype == EDDY_F64 || dtype == EDDY_F16 || dtype == EDDY_BF16;
    if (!is_float)
        return eddy_clone(like);
    eddy_generator *generator = eddy_generator_create(seed);
    eddy_tensor *numbers =
        eddy_rand(eddy_shape_of(like), EDDY_F32, EDDY_OPTIONS(rand, .generator = generator));
    eddy_generator_release(&generator);
    return eddy_cast(eddy_add_s(eddy_mul_s(numbers, EDDY_S(0.8)), EDDY_S(0.1)), dtype);
}

static void copy_operands(const described *call, uint64_t seed, described *copy) {
    *copy = *call;
    for (int64_t i = 0; i < call->operand_count; i++)
        if (call->operands[i] != EDDY_NONE)
            copy->operands[i] = other_numbers(call->operands[i], seed + (uint64_t)i);
}

static size_t bytes_of(eddy_tensor *tensor) {
    return (size_t)eddy_count_of(tensor) * eddy_dtype_bytes(eddy_dtype_of(tensor));
}

static void expect_equal(eddy_tensor *a, eddy_tensor *b, const char *op) {
    size_t bytes = bytes_of(a);
    cr_assert_eq(bytes_of(b), bytes, "%s", op);
    char *first = calloc(1, bytes + 1), *second = calloc(1, bytes + 1);
    expect_ok(eddy_read(a, first, bytes, NULL), "eager", op);
    expect_ok(eddy_read(b, second, bytes, NULL), "replay", op);
    cr_assert_arr_eq(first, second, bytes, "%s: replay has other bits", op);
    free(first);
    free(second);
}

/* The recorded call's program, its operands as inputs; NULL where it cannot be recorded. */
static eddy_program *record(const described *call, const eddy_record_options *options,
                            const call_row *row) {
    eddy_binding bindings[DESCRIBED_MAX + OUTPUTS];
    char names[DESCRIBED_MAX + OUTPUTS][8];
    eddy_tensor *outputs[OUTPUTS];
    int64_t count = 0;
    expect_ok(eddy_record_begin(options), "begin", row->op);
    expect_ok(described_call(call, "", outputs), "recorded call", row->op);
    for (int64_t i = 0; i < call->operand_count; i++)
        if (call->operands[i] != EDDY_NONE)
            bindings[count++] = (eddy_binding){.tensor = call->operands[i], EDDY_ROLE_INPUT};
    for (int32_t i = 0; i < call->op->output_count; i++)
        bindings[count++] = (eddy_binding){.tensor = outputs[i], .role = EDDY_ROLE_OUTPUT};
    for (int64_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "t%d", (int)i);
        bindings[i].name = names[i];
    }
    return eddy_record_end(&(eddy_bindings){bindings, count});
}

/* What the run makes: a view of an input (meshgrid) is handed out as one. */
static eddy_tensor *target_of(eddy_tensor *output, eddy_tensor *const *inputs, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (inputs[i]->storage == output->storage)
            return EDDY_NONE;
    return output;
}

/* is_into: the outputs are there, and written into. */
static void replay(eddy_program *program, const described *call, eddy_tensor **outputs,
                   bool is_into, const char *op) {
    eddy_tensor *inputs[DESCRIBED_MAX];
    int64_t count = 0;
    for (int64_t i = 0; i < call->operand_count; i++)
        if (call->operands[i] != EDDY_NONE)
            inputs[count++] = call->operands[i];
    eddy_list given = {inputs, count};
    if (!is_into) {
        expect_ok(eddy_program_run(program, given, outputs), "run", op);
        return;
    }
    eddy_tensor *targets[OUTPUTS];
    for (int32_t i = 0; i < call->op->output_count; i++)
        targets[i] = target_of(outputs[i], inputs, count);
    expect_ok(eddy_program_run_into(program, given, (eddy_list){targets, call->op->output_count}),
              "run into", op);
}

/* The calls that are recorded without being run are the same program, and have changed none of their operands. */
static void try_noted(const eddy_program *program, const call_row *row) {
    described shown, noted, same;
    const eddy_op *op = described_op(row->op);
    described_read(&shown, op, row->operands, row->attributes);
    copy_operands(&shown, 1000, &noted);
    copy_operands(&shown, 1000, &same);
    eddy_program *other = record(&noted, EDDY_OPTIONS(record, .records_only = true), row);
    cr_assert_not_null(other, "%s", row->op);
    eddy_printed texts[2];
    cr_assert(eddy_printed_make(&texts[0], program, EDDY_PRINT_READING) &&
              eddy_printed_make(&texts[1], other, EDDY_PRINT_READING));
    cr_assert_str_eq(texts[1].text, texts[0].text, "%s", row->op);
    eddy_printed_fini(&texts[0]);
    eddy_printed_fini(&texts[1]);
    for (int64_t i = 0; i < noted.operand_count; i++)
        if (noted.operands[i] != EDDY_NONE)
            expect_equal(same.operands[i], noted.operands[i], row->op);
    eddy_program_release(&other);
}

static void try_row(const call_row *row) {
    described shown, recorded, called, replayed;
    eddy_tensor *eager[OUTPUTS] = {0}, *outputs[OUTPUTS] = {0};
    const eddy_op *op = described_op(row->op);
    if (!op || op->output_count > OUTPUTS)
        return; /* a function made of ops */
    eddy_scope *scope = eddy_scope_begin();
    described_read(&shown, op, row->operands, row->attributes);
    copy_operands(&shown, 1000, &recorded);
    copy_operands(&shown, 2000, &called);
    copy_operands(&shown, 2000, &replayed);
    eddy_program *program = record(&recorded, NULL, row);
    cr_assert_not_null(program, "%s", row->op);
    if (!op->has_late_shape)
        try_noted(program, row);
    for (uint64_t round = 0; round < 5; round++) {
        uint64_t seeds[2], counters[2];
        if (round == 2) {
            eddy_program *copy = reread(program, row->op);
            eddy_program_release(&program);
            program = copy;
        }
        eddy_seed(77 + round);
        expect_ok(described_call(&called, "", eager), "call", row->op);
        eddy_generator_state(eddy_generator_default(), &seeds[0], &counters[0]);
        eddy_seed(77 + round);
        replay(program, &replayed, outputs, round > 1 && !op->has_late_shape, row->op);
        eddy_generator_state(eddy_generator_default(), &seeds[1], &counters[1]);
        cr_assert_eq(counters[0], counters[1], "%s: the generator", row->op);
        for (int32_t i = 0; i < op->output_count; i++)
            if (strcmp(row->op, "empty") != 0 && strcmp(row->op, "empty_like") != 0)
                expect_equal(eager[i], outputs[i], row->op);
        for (int64_t i = 0; i < called.operand_count; i++)
            if (called.operands[i] != EDDY_NONE)
                expect_equal(called.operands[i], replayed.operands[i], row->op);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(replay_ops, every_op_has_the_bits_of_its_call) {
    for (int i = 0; i < ROW_COUNT; i++)
        try_row(&rows[i]);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Writes to the same tensors again and again are the recording's own, whichever op makes them. */
static void try_alone(const call_row *row) {
    described call, own;
    eddy_tensor *outputs[OUTPUTS] = {0};
    const eddy_op *op = described_op(row->op);
    if (!op || op->output_count > OUTPUTS || op->has_late_shape)
        return;
    eddy_scope *scope = eddy_scope_begin();
    described_read(&call, op, row->operands, row->attributes);
    copy_operands(&call, 1000, &own);
    expect_ok(eddy_record_begin(NULL), "begin", row->op);
    for (int k = 0; k < 3; k++)
        expect_ok(described_call(&own, "", outputs), "recorded call", row->op);
    eddy_program *program = eddy_record_end(NULL);
    expect_ok(program ? EDDY_OK : EDDY_UNSUPPORTED, "end", row->op);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(replay_ops, no_op_of_the_recording_looks_like_one_of_another_thread) {
    for (int i = 0; i < ROW_COUNT; i++)
        try_alone(&rows[i]);
}

/* Elementwise ops have no examples in their entries: f32 and i32, broadcast, and laid out apart. */
static eddy_tensor *strided(eddy_dtype dtype, int64_t first) {
    int64_t values[24];
    for (int i = 0; i < 24; i++)
        values[i] = 1 + (first + i * 5) % 7;
    eddy_tensor *whole = eddy_from_data(values, EDDY_SHAPE(4, 6), EDDY_I64, NULL);
    return eddy_slice(eddy_t(eddy_cast(whole, dtype)), 0, 1, 6, 2);
}

static void try_elementwise(const eddy_op *op, eddy_dtype dtype, bool is_strided) {
    described call = {.op = op}, other;
    eddy_scope *scope = eddy_scope_begin();
    for (int32_t i = 0; i < op->operand_count; i++) {
        eddy_dtype own = op->operands[i].is_bool ? EDDY_BOOL : dtype;
        call.operands[i] = is_strided && own != EDDY_BOOL ? strided(own, i)
                           : i == 1                       ? described_ones(own, EDDY_SHAPE(4))
                                                          : described_ones(own, EDDY_SHAPE(3, 4));
    }
    call.operand_count = op->operand_count;
    for (int32_t i = 0; i < op->scalar_count; i++)
        described_attribute(&call, op->attributes[i].name, EDDY_ATTRIBUTE_SCALAR)->value.scalar =
            EDDY_S(2);
    other = call;
    if (!is_strided)
        copy_operands(&call, 5, &other);
    eddy_tensor *result = NULL, *replayed = NULL;
    if (described_call(&call, "", &result) == EDDY_OK && op->output_count == 1) {
        const call_row row = {.op = op->name};
        eddy_program *program = record(&call, NULL, &row);
        cr_assert_not_null(program, "%s", op->name);
        expect_ok(described_call(&other, "", &result), "call", op->name);
        eddy_program *copy = reread(program, op->name);
        replay(program, &other, &replayed, false, op->name);
        expect_equal(result, replayed, op->name);
        replay(copy, &other, &replayed, false, op->name);
        expect_equal(result, replayed, op->name);
        eddy_program_release(&copy);
        eddy_program_release(&program);
    }
    eddy_error_take(NULL);
    eddy_scope_end(scope);
}

Test(replay_ops, elementwise_ops_have_the_bits_of_their_calls) {
    int count = 0;
    for (uint32_t i = 0; i < eddy_op_table_count; i++) {
        const eddy_op *op = eddy_op_table[i];
        if (!op->is_elementwise)
            continue;
        count++;
        for (int is_strided = 0; is_strided < 2; is_strided++) {
            try_elementwise(op, EDDY_F32, is_strided);
            try_elementwise(op, EDDY_BF16, is_strided);
            try_elementwise(op, EDDY_I32, is_strided);
        }
    }
    cr_assert_gt(count, 60);
    cr_assert_eq(eddy_live_count(), 0);
}
