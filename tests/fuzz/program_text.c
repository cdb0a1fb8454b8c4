/* A fuzzer for libFuzzer: a text is refused, or is a program. Then it runs with all passes and with none, on tensors of ones: nothing is read or written
 * outside of its storage, and results, failures and what inputs hold afterwards are the same. */
#include <base/dtype.h>
#include <base/memory.h>
#include <eddy/eddy.h>
#include <math.h>
#include <program/control.h>
#include <program/parse.h>
#include <program/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MOST 16384
#define BYTES_MOST 65536
#define BINDINGS_MOST 64
#define STEPS_MOST 64 /* of all loops of a program together */

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *text, size_t length);

static eddy_runtime *runtime;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    eddy_runtime_options options = {.size = sizeof(options), .uses_one_thread = true};
    runtime = eddy_runtime_create(&options);
    CHECK(runtime && eddy_runtime_use(runtime) == EDDY_OK);
    return 0;
}

/* ---- programs of the usual size ---- */

static int64_t count_of(const eddy_code *code, const eddy_code_operand *operand) {
    int64_t count = 1;
    for (int32_t d = 0; d < operand->rank; d++)
        count *= eddy_code_dims(code, operand)[d] % (BYTES_MOST + 1);
    return count;
}

static bool ends_soon(const eddy_code *code) {
    int64_t steps = 1;
    for (uint32_t i = 0; i < code->instructions.count; i++) {
        const eddy_code_instruction *instruction = eddy_code_instruction_at(code, i);
        if (eddy_control_of(instruction->op) != EDDY_CONTROL_LOOP)
            continue;
        int64_t most = *eddy_code_words(code, instruction->attributes_at);
        if (most < 1 || most > STEPS_MOST)
            return false;
        steps *= most;
        if (steps > STEPS_MOST)
            return false;
    }
    return true;
}

/* What it makes has elements that nobody has written. */
static bool has_empty(const eddy_code *code) {
    for (uint32_t i = 0; i < code->instructions.count; i++)
        if (strncmp(eddy_code_instruction_at(code, i)->op->name, "empty", strlen("empty")) == 0)
            return true;
    return false;
}

static bool is_small(const eddy_program *program) {
    const eddy_code *code = &program->code;
    for (uint32_t i = 0; i < code->values.count; i++)
        if (eddy_code_value_at(code, i)->bytes > BYTES_MOST)
            return false;
    for (uint32_t i = 0; i < code->operands.count; i++)
        if (count_of(code, eddy_code_operand_at(code, i)) > BYTES_MOST)
            return false;
    return code->scalars.count == 0 && program->bindings.count <= BINDINGS_MOST &&
           ends_soon(code) && !has_empty(code);
}

/* Tensors that were there before have no elements here. */
static bool is_fed(const eddy_program *program) {
    for (uint32_t e = 0; e < program->externals.count; e++)
        if (eddy_program_external_at(program, e)->input == EDDY_CODE_NONE)
            return false;
    return true;
}

static eddy_program *read_program(const char *text, size_t length, const char *passes) {
    eddy_parse_error error;
    uint32_t generators;
    eddy_program *program = eddy_program_create(runtime);
    CHECK(program);
    eddy_status status = eddy_parse_program(program, text, length, &generators, &error);
    CHECK(status == EDDY_OK || (status == EDDY_INVALID_ARGUMENT && error.reason[0]));
    bool is_tried = status == EDDY_OK && generators == 0 && is_small(program) && is_fed(program);
    if (strcmp(passes, "none") == 0)
        program->passes = 0;
    if (is_tried && eddy_program_build(program, (eddy_origin){"fuzz", NULL}) == EDDY_OK)
        return program;
    eddy_error_take(NULL);
    eddy_program_release(&program);
    return NULL;
}

/* ---- a run ---- */

typedef struct ran {
    eddy_tensor *inputs[BINDINGS_MOST], *wholes[BINDINGS_MOST], *outputs[BINDINGS_MOST];
    int64_t input_count, output_count;
    eddy_status status;
    uint64_t seed, draws; /* of the generator, afterwards */
} ran;

static void make_inputs(const eddy_program *program, ran *r) {
    for (uint32_t i = 0; i < program->bindings.count; i++) {
        const eddy_program_binding *binding = eddy_program_binding_at(program, i);
        int64_t bytes = eddy_code_value_at(&program->code, binding->value)->bytes;
        eddy_shape shape = {.rank = binding->layout.rank};
        if (binding->role != EDDY_ROLE_INPUT)
            continue;
        memcpy(shape.dims, binding->layout.dims, sizeof(shape.dims));
        eddy_tensor *whole =
            eddy_ones(EDDY_SHAPE(bytes / (int64_t)eddy_dtype_bytes((eddy_dtype)binding->dtype)),
                      (eddy_dtype)binding->dtype, NULL);
        r->wholes[r->input_count] = whole;
        r->inputs[r->input_count++] = eddy_as_strided(whole, shape, binding->layout.strides, 0);
    }
}

static void run(eddy_program *program, ran *r) {
    *r = (ran){.output_count = program->output_count};
    make_inputs(program, r);
    eddy_error_take(NULL);
    eddy_seed(7);
    r->status = eddy_program_run(program, (eddy_list){r->inputs, r->input_count}, r->outputs);
    (void)!eddy_sync(EDDY_FOREVER);
    CHECK(eddy_generator_state(eddy_generator_default(), &r->seed, &r->draws) == EDDY_OK);
    eddy_error_take(NULL);
}

/* No op promises the sign of a NaN, nor which NaN it is. */
static void expect_same_elements(eddy_tensor *a, eddy_tensor *b) {
    size_t count = (size_t)eddy_count_of(a);
    eddy_tensor *first = eddy_cast(a, EDDY_F64), *second = eddy_cast(b, EDDY_F64);
    double *x = malloc(count * sizeof(*x) + 1), *y = malloc(count * sizeof(*y) + 1);
    CHECK(x && y && eddy_read(first, x, count * sizeof(*x), NULL) == EDDY_OK &&
          eddy_read(second, y, count * sizeof(*y), NULL) == EDDY_OK);
    for (size_t i = 0; i < count; i++)
        CHECK((isnan(x[i]) && isnan(y[i])) || memcmp(&x[i], &y[i], sizeof(*x)) == 0);
    free(x);
    free(y);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    eddy_status first = eddy_wait(a, EDDY_FOREVER), second = eddy_wait(b, EDDY_FOREVER);
    eddy_error_take(NULL);
    CHECK(first == second);
    if (first == EDDY_OK)
        expect_same_elements(a, b);
}

static void run_both(eddy_program *plain, eddy_program *passed) {
    ran a, b;
    run(plain, &a);
    run(passed, &b);
    CHECK(a.status == b.status && a.draws == b.draws);
    for (int64_t i = 0; i < a.input_count; i++)
        expect_same(a.wholes[i], b.wholes[i]);
    for (int64_t i = 0; i < a.output_count && a.status == EDDY_OK; i++)
        expect_same(a.outputs[i], b.outputs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    if (length > TEXT_MOST)
        return 0;
    eddy_scope *scope = eddy_scope_begin();
    char *text = malloc(length + 1);
    CHECK(scope && text);
    memcpy(text, data, length);
    eddy_program *plain = read_program(text, length, "none");
    eddy_program *passed = plain ? read_program(text, length, "all") : NULL;
    if (plain && passed)
        run_both(plain, passed);
    free(text);
    eddy_program_release(&plain);
    eddy_program_release(&passed);
    eddy_scope_end(scope);
    eddy_error_take(NULL);
    eddy_trim(); /* what is kept for programs to come */
    CHECK(eddy_live_count() == 0 && eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes == 0);
    return 0;
}
