/* The text of programs: what is printed makes the same program again, and every other text is refused where it is wrong. */
#include <base/memory.h>
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/caller.h>
#include <math.h>
#include <program/decimal.h>
#include <program/parse.h>
#include <program/print.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/mutate.h>
#include <tests/program/numbered.h>
#include <tests/program/reread.h>

static void begin(void) {
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
}

static eddy_program *end(const eddy_bindings *bindings) {
    eddy_error error = {0};
    eddy_program *program = eddy_record_end(bindings);
    cr_assert_not_null(program, "%s", (eddy_error_take(&error), error.message));
    return program;
}

static void expect_text(const eddy_program *program, const char *text) {
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_READING));
    cr_assert_str_eq(printed.text, text);
    eddy_printed_fini(&printed);
}

static double run(eddy_program *program, eddy_list inputs) {
    eddy_error error = {0};
    eddy_tensor *output = NULL;
    eddy_seed(11);
    cr_assert_eq(eddy_program_run(program, inputs, &output), EDDY_OK, "%s",
                 (eddy_error_take(&error), error.message));
    return eddy_item_f64(eddy_sum(output, EDDY_ALL_AXES, NULL), NULL);
}

/* ---- numbers ---- */

Test(text, decimals_give_the_bits_back) {
    const double values[] = {0,         -0.0, 1,        0.1,    1.0 / 3,   1e300,     5e-324,
                             123456789, NAN,  INFINITY, -1e-05, -INFINITY, 0x1p53 + 2};
    uint64_t odd[] = {UINT64_C(0x7ff8000000000001), UINT64_C(0xfff8000000000000), 1};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]) + 3; i++) {
        char text[EDDY_DECIMAL_BYTES];
        double value, back;
        if (i < 3)
            memcpy(&value, &odd[i], sizeof(value));
        else
            value = values[i - 3];
        eddy_decimal_format(value, text);
        cr_assert_eq(eddy_decimal_parse(text, strlen(text), &back), strlen(text), "%s", text);
        cr_assert_arr_eq(&value, &back, sizeof(value), "%s", text);
    }
    const char *none[] = {"", "-", ".5", "1.", "1e", "1e999", "nan:", "nan:0000000000000000", "x"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        double value;
        cr_assert_eq(eddy_decimal_parse(none[i], strlen(none[i]), &value), 0, "%s", none[i]);
    }
}

/* ---- the form ---- */

Test(text, views_names_draws_and_targets_have_a_text) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 3), EDDY_F32, NULL);
    eddy_tensor *w = eddy_ones(EDDY_SHAPE(4, 2), EDDY_F32, NULL);
    eddy_tensor *first = eddy_narrow(w, 0, 0, 1), *last = eddy_narrow(w, 0, 3, 1);
    eddy_tensor *held = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL);
    eddy_generator *own = eddy_generator_create(3);
    begin();
    eddy_tensor *y = eddy_matmul(x, eddy_rand(EDDY_SHAPE(3, 2), EDDY_F32, NULL));
    eddy_tensor *z = eddy_add(y, eddy_t(y));
    (void)eddy_copy_into(z, held);
    (void)eddy_add_into(first, last, first);
    z = eddy_dropout(eddy_cat(EDDY_LIST(z, held), 0), EDDY_S(0.25),
                     EDDY_OPTIONS(dropout, .generator = own));
    eddy_program *program =
        end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w/0", first, EDDY_ROLE_STATE},
                          {"last \"row\"", last, EDDY_ROLE_STATE}, {"y", z, EDDY_ROLE_OUTPUT}));
    expect_text(program, "eddy program, version 1, 7 instructions\n"
                         "input x f32[2, 3]\n"
                         "state \"w/0\" f32[1, 2] in 32 bytes\n"
                         "state \"last \\\"row\\\"\" f32[1, 2] at 6 of \"w/0\"\n"
                         "output y f32[4, 2] of %5\n"
                         "captured %0 16 bytes, written\n"
                         "draw 0\n"
                         "draw 1 of generator 0\n"
                         "%1 f32[3, 2] = rand(shape = [3, 2], dtype = f32, draw = 0)\n"
                         "%2 f32[2, 2] = matmul(x f32[2, 3], %1 f32[3, 2])\n"
                         "%3 f32[2, 2] = add(%2 f32[2, 2], %2 f32[2, 2] strides [1, 2])\n"
                         "copy_into(%3 f32[2, 2], set %0 f32[2, 2])\n"
                         "mut \"w/0\" f32[1, 2] = add(\"w/0\" f32[1, 2], \"w/0\" f32[1, 2] at 6)\n"
                         "%4 f32[4, 2] = cat([%3 f32[2, 2], %0 f32[2, 2]], axis = 0)\n"
                         "%5 f32[4, 2] = dropout(%4 f32[4, 2], p = 0.25, draw = 1)\n");
    eddy_program *copy = reread(program, "views");
    cr_assert_eq(run(program, EDDY_LIST(x)) != 0, run(copy, EDDY_LIST(x)) != 0);
    eddy_program_release(&copy);
    eddy_program_release(&program);
    eddy_generator_release(&own);
    eddy_scope_end(scope);
}

/* A step of training: gradients in one loop, draws that are drawn again, lists that are written, gradients that are kept. */
Test(text, a_step_of_training_is_the_same_program_again) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_seed(5);
    eddy_tensor *x = eddy_rand(EDDY_SHAPE(4, 6), EDDY_F32, NULL);
    eddy_tensor *w = eddy_randn(EDDY_SHAPE(5, 6), EDDY_F32, NULL);
    eddy_tensor *v = eddy_randn(EDDY_SHAPE(5), EDDY_F32, NULL);
    eddy_tensor *m = eddy_zeros_like(w, NULL), *n = eddy_zeros_like(v, NULL);
    eddy_requires_grad_set(w, true);
    eddy_requires_grad_set(v, true);
    begin();
    eddy_tensor *h = eddy_dropout(eddy_gelu(eddy_linear(x, w, v), NULL), EDDY_S(0.5), NULL);
    eddy_tensor *q = eddy_reshape(eddy_silu(h), EDDY_SHAPE(1, 1, 4, 5));
    h = eddy_sdpa(q, q, q, EDDY_NONE, EDDY_OPTIONS(sdpa, .dropout = 0.25));
    eddy_tensor *loss = eddy_mean(eddy_tanh(h), EDDY_ALL_AXES, NULL);
    cr_assert_eq(eddy_backward(loss), EDDY_OK);
    eddy_no_grad_begin();
    cr_assert_eq(eddy_sgd_momentum_step(EDDY_LIST(w, v),
                                        EDDY_LIST(eddy_grad_of(w), eddy_grad_of(v)),
                                        EDDY_LIST(m, n), EDDY_S(0.1), EDDY_S(0.9), NULL),
                 EDDY_OK);
    eddy_no_grad_end();
    eddy_program *program = end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE},
                                              {"loss", loss, EDDY_ROLE_OUTPUT}));
    eddy_tensor *before[] = {eddy_clone(w), eddy_clone(v), eddy_clone(m), eddy_clone(n)};
    eddy_tensor *held[] = {w, v, m, n};
    eddy_program *copy = reread(program, "training");
    double losses[2][3];
    for (int k = 0; k < 2; k++) {
        eddy_no_grad_begin();
        for (int i = 0; i < 4; i++)
            cr_assert_eq(eddy_copy_into(before[i], held[i]), EDDY_OK);
        eddy_no_grad_end();
        for (int i = 0; i < 3; i++)
            losses[k][i] = run(k ? copy : program, EDDY_LIST(x));
    }
    cr_assert_arr_eq(losses[0], losses[1], sizeof(losses[0]));
    cr_assert_neq(losses[0][0], losses[0][2]);
    eddy_program_release(&copy);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* Calls that passes have left out have a number all the same. */
Test(text, what_passes_have_left_keeps_its_numbers) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                *c = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    (void)eddy_exp(x);
    eddy_tensor *y = eddy_mul(eddy_neg(x), c);
    (void)eddy_exp(y);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"c", c, EDDY_ROLE_CONSTANT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_printed printed;
    cr_assert(eddy_printed_make(&printed, program, EDDY_PRINT_CODE));
    cr_assert_str_eq(printed.text, "eddy program, version 1, 2 instructions, 4 recorded\n"
                                   "input x f32[2]\n"
                                   "constant c f32[2]\n"
                                   "output y f32[2] of %1\n"
                                   "1: %0 f32[2] = neg(x f32[2])\n"
                                   "%1 f32[2] = mul(%0 f32[2], c f32[2])\n");
    eddy_printed_fini(&printed);
    eddy_program *copy = reread(program, "ordinals");
    eddy_program_release(&copy);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(text, numbers_of_a_run_have_a_text) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), *outputs[2];
    eddy_origin origin = {"test", NULL};
    eddy_scalar numbers[] = {EDDY_S(0.25), EDDY_S(3.0)};
    eddy_recording *recording = record_numbers(numbers, 2);
    eddy_tensor *y =
        eddy_add_s(eddy_dropout(eddy_mul_s(x, numbers[1]), numbers[0], NULL), EDDY_S(0.5));
    cr_assert_eq(eddy_sgd_step(EDDY_LIST(x), EDDY_LIST(y), numbers[0], NULL), EDDY_OK);
    eddy_program *program = end_numbers(recording, EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}));
    eddy_program *copy = reread(program, "numbers");
    const eddy_scalar given[] = {EDDY_S(0.5), EDDY_S(4)};
    cr_assert_eq(
        eddy_program_run_with(program, EDDY_LIST(x), given, &outputs[0], NULL, NULL, origin),
        EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_list none = {NULL, 0};
    cr_assert_eq(eddy_program_run_with(program, none, given, &outputs[0], NULL, NULL, origin),
                 EDDY_OK);
    cr_assert_eq(eddy_copy_into(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), x), EDDY_OK);
    cr_assert_eq(eddy_program_run_with(copy, none, given, &outputs[1], NULL, NULL, origin),
                 EDDY_OK);
    cr_assert_eq(eddy_program_run(copy, none, &outputs[1]), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_program_release(&copy);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- what is refused ---- */

#define HEAD(count) "eddy program, version 1, " #count " instructions\n"
#define IN "input x f32[2, 3]\n"

typedef struct refusal {
    uint32_t line;
    const char *text, *part;
} refusal;

#define LEFT(count) "eddy program, version 1, " #count " instructions, 3 recorded\n"

static const refusal refusals[] = {
    {1, "", "eddy program"},
    {1, "eddy program, version 2, 0 instructions\n", "version"},
    {1, "eddy program, version 1, 00 instructions\n", "instructions"},
    {1, "eddy program, version 1, 2 instructions, 2 recorded\n",
     "expected another number of recorded calls than of instructions"},
    {1, "eddy program, version 1, 2 instructions, 0 recorded\n", "a number of recorded calls"},
    {3, LEFT(1) IN "3: %0 f32[2, 3] = relu(x f32[2, 3])\n", "the number of a recorded call"},
    {3, LEFT(1) IN "0: %0 f32[2, 3] = relu(x f32[2, 3])\n", "printed"},
    {4, LEFT(2) IN "2: %0 f32[2, 3] = relu(x f32[2, 3])\n%1 f32[2, 3] = relu(x f32[2, 3])\n",
     "no more instructions"},
    {3, HEAD(1) IN "fused {\n%0 f32[2, 3] = relu(x f32[2, 3])\n}\n", "an op"},
    {2, HEAD(0) "constant c f32[2] of c\n", "an input or a state"},
    {3, HEAD(1) "constant c f32[2]\nset c f32[2] = relu(none)\n", "missing"},
    {2, HEAD(1) "constant c f32[2]\nmut c f32[2] = relu(c f32[2])\n", "a constant is written"},
    {2, HEAD(0) "\n", "an op"},
    {2, HEAD(1), "expected 1 instructions"},
    {2, HEAD(0) "input x f32[2, 3]", "the end of the line"},
    {2, HEAD(0) "input  f32[2, 3]\n", "a name"},
    {2, HEAD(0) "input \"\\q\" f32[2, 3]\n", "a name"},
    {2, HEAD(0) "input \"x\" f32[2, 3]\n", "printed"},
    {2, HEAD(0) "input x f33[2, 3]\n", "a dtype"},
    {2, HEAD(0) "input x f32[-2, 3]\n", "a dim"},
    {2, HEAD(0) "input x f32[9223372036854775807, 3]\n", "a shape"},
    {2, HEAD(0) "input x f32[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "16"},
    {2, HEAD(0) "input x f32[2, 3] strides [3]\n", "2 strides"},
    {2, HEAD(0) "input x f32[2, 3] strides [3, -1]\n", "a stride"},
    {2, HEAD(0) "input x f32[2] strides [9223372036854775807]\n", "bytes"},
    {2, HEAD(0) "input x f32[2, 3] at 1\n", "begins at its first"},
    {3, HEAD(0) IN IN, "new"},
    {2, HEAD(0) "output y f32[2] of %0\n", "a line before"},
    {3, HEAD(0) IN "output y f32[2, 4] of x\n", "outside of their storage"},
    {3, HEAD(0) IN "output y i32[2, 3] of x\n", "holds f32"},
    {3, HEAD(0) IN "output y f32[2, 3] of y\n", "an input or a state"},
    {2, HEAD(0) "state s f32[2] in 4 bytes\n", "outside of their storage"},
    {0, HEAD(0) "captured %0 4 bytes\n", "not used"},
    {2, HEAD(0) "captured %1 4 bytes\n", "expected %0"},
    {2, HEAD(0) "draw 1\n", "the next draw"},
    {2, HEAD(0) "draw 0 of generator 1\n", "a generator"},
    {3, HEAD(1) IN "%0 f32[2, 3] = nosuch(x f32[2, 3])\n", "an op"},
    {3, HEAD(1) IN "read_async(x f32[2, 3])\n",
     "read_async calls a function of the process that has recorded it, which no text holds"},
    {3, HEAD(1) IN "%0 i64[0, 2] = nonzero(x f32[2, 3])\n", "the result is i64[0], which"},
    {3, HEAD(1) IN "%0 f32[0] = nonzero(x f32[2, 3])\n", "the result is i64[0], which"},
    {4, HEAD(1) IN "state s i64[0]\nset s i64[0] = nonzero(x f32[2, 3])\n", "the result is i64[0]"},
    {3, HEAD(2) IN "%0 i64[0] = nonzero(x f32[2, 3])\n%1 f32[2, 3] = relu(x f32[2, 3])\n",
     "not at the end"},
    {4, HEAD(2) IN "%0 i64[0] = nonzero(x f32[2, 3])\n%1 i64[0] = nonzero(%0 i64[0])\n",
     "a value without a known shape is used"},
    {4,
     HEAD(1) IN "output a i64[0] of %0\noutput b i64[0] of %0\n%0 i64[0] = nonzero(x f32[2, 3])\n",
     "has two names"},
    {3, HEAD(1) IN "output a i64[0, 2] of %0\n%0 i64[0] = nonzero(x f32[2, 3])\n",
     "as a vector without elements"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(x f32[2, 3]\n", "')'"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(y f32[2, 3])\n", "an input or a state, not y"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(%0 f32[2, 3])\n", "before it is made"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(%1 f32[2, 3])\n", "a line before"},
    {3, HEAD(1) IN "%1 f32[2, 3] = relu(x f32[2, 3])\n", "a line before"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(mut x f32[2, 3])\n", "written"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(x f32[2, 4])\n", "outside of their storage"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(x f32[2, 3] at 1)\n", "outside of their storage"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(x f32[2, 3] strides [4, 1])\n", "outside of their storage"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(x f32[2, 3] at -1)\n", "outside of their storage"},
    {3, HEAD(1) IN "%0 f32[6] = relu(x f32[2, 3])\n", "broadcast"},
    {3, HEAD(1) IN "%0 f64[2, 3] = relu(x f32[2, 3])\n", "the result is f32[2, 3]"},
    {3, HEAD(1) IN "%0 f32[2, 3] strides [1, 1] = relu(x f32[2, 3])\n", "share memory"},
    {3, HEAD(1) IN "%0 f32[2, 3] strides [4, 1] = relu(x f32[2, 3])\n", "not all of its storage"},
    {3, HEAD(1) IN "%0 f32[2, 3], %1 f32[2, 3] = relu(x f32[2, 3])\n", "1 results"},
    {3, HEAD(1) IN "relu(x f32[2, 3])\n", "1 results"},
    {3, HEAD(1) IN "x f32[2, 3] = relu(x f32[2, 3])\n", "an op"},
    {3, HEAD(1) IN "set x f32[2, 3] = relu(x f32[2, 3])\n", "set as a whole"},
    {4, HEAD(1) IN "state s f32[6]\nset s f32[6] = relu(s f32[6])\n", "used by another operand"},
    {4, HEAD(1) IN "state s f32[6]\nmut s f32[5] at 1 = relu(s f32[5])\n", "overlaps"},
    {3, HEAD(1) IN "%0 f32[2, 3] = relu(none)\n", "missing"},
    {3, HEAD(1) IN "%0 f32[2, 3] = cat(x f32[2, 3], axis = 0)\n", "'['"},
    {3, HEAD(1) IN "%0 f32[2, 3] = cat([x f32[2, 3]], axis = 2)\n", "out of range"},
    {3, HEAD(1) IN "%0 f32[2, 3] = cat([x f32[2, 3]], axis = -1)\n", "an axis"},
    {3, HEAD(1) IN "%0 f32[2, 3] = cat([x f32[2, 3]])\n", "', '"},
    {3, HEAD(1) IN "%0 f32[3] = sum(x f32[2, 3], axes = [0, 0], keeps_dims = false)\n",
     "each once"},
    {3, HEAD(1) IN "%0 f32[3] = sum(x f32[2, 3], axes = [0], keeps_dims = 1)\n", "true or false"},
    {3, HEAD(1) IN "%0 f32[] = sum(x f32[2, 3], axes = [], keeps_dims = false)\n", "printed"},
    {3, HEAD(1) IN "%0 f32[2, 3] = add_s(x f32[2, 3], b = 1)\n", "no number of f32"},
    {3, HEAD(1) IN "%0 f32[2, 3] = dropout(x f32[2, 3], p = 0.5)\n", "takes a draw"},
    {3, HEAD(1) IN "%0 f32[2, 3] = dropout(x f32[2, 3], p = 0.5, draw = 0)\n", "a draw"},
    {3, HEAD(1) IN "%0 f32[2, 3] = dropout(x f32[2, 3], p = 1.5)\n", "no probability"},
    {3, HEAD(1) IN "%0 bool[2, 3] = relu(x f32[2, 3])\n", "the result is f32"},
    {3, HEAD(1) IN "%0 f32[2, 3] = where(x f32[2, 3], x f32[2, 3], x f32[2, 3])\n", "bool"},
};

static eddy_status parse(const char *text, size_t length, eddy_parse_error *error) {
    uint32_t generators;
    eddy_runtime *runtime;
    cr_assert_eq(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime), EDDY_OK);
    eddy_program *program = eddy_program_create(runtime);
    eddy_status status = eddy_parse_program(program, text, length, &generators, error);
    eddy_program_destroy(program);
    return status;
}

Test(text, what_is_wrong_is_refused_on_its_line) {
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        const refusal *row = &refusals[i];
        eddy_parse_error error = {0};
        cr_assert_eq(parse(row->text, strlen(row->text), &error), EDDY_INVALID_ARGUMENT, "%s",
                     row->text);
        cr_expect_not_null(strstr(error.reason, row->part), "%s\n%u: %s, not: %s", row->text,
                           error.line, error.reason, row->part);
        cr_expect_eq(error.line, row->line, "%s\n%u: %s", row->text, error.line, error.reason);
    }
    cr_assert_eq(eddy_error_take(NULL), EDDY_OK);
}

/* ---- hostile text ---- */

/* That of docs/program-format.md. */
static const char small[] =
    HEAD(5) IN "state w f32[4, 3] in 64 bytes\noutput y f32[2, 4] of %2\n"
               "captured %0 16 bytes, written\ndraw 0\n"
               "%1 f32[2, 3] = dropout(x f32[2, 3], p = 0.5, draw = 0)\n"
               "%2 f32[2, 4] = linear(%1 f32[2, 3], w f32[4, 3], none)\n"
               "%3 f32[4] = sum(%2 f32[2, 4], axes = [0], keeps_dims = false)\n"
               "mut %0 f32[4] = add(%0 f32[4], %3 f32[4])\n"
               "sgd_step([mut w f32[4, 3]], [w f32[4, 3] strides [0, 0] at 12], lr = 0.1, "
               "weight_decay = 0.0)\n";

Test(text, each_beginning_of_a_text_is_refused) {
    eddy_parse_error error = {0};
    size_t length = sizeof(small) - 1;
    cr_assert_eq(parse(small, length, &error), EDDY_OK, "%u: %s", error.line, error.reason);
    for (size_t i = 0; i < length; i++)
        cr_assert_eq(parse(small, i, &error), EDDY_INVALID_ARGUMENT);
}

Test(text, mutated_texts_are_refused_or_programs) {
    mutator m = {88172645463325252u};
    char text[4 * sizeof(small)];
    size_t from = sizeof(small) - 1;
    int accepted = 0;
    int64_t before = eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes;
    for (int i = 0; i < 10000; i++) {
        eddy_parse_error error = {0};
        memcpy(text, small, from);
        size_t length =
            i % 4 == 0 ? mutator_renumber(&m, text, from) : mutator_change(&m, text, from);
        eddy_status status = parse(text, length, &error);
        cr_assert(status == EDDY_OK || status == EDDY_INVALID_ARGUMENT);
        accepted += status == EDDY_OK;
    }
    cr_assert_eq(eddy_memory_counted(EDDY_MEMORY_PROGRAM).bytes, before);
    cr_assert_lt(eddy_memory_counted(EDDY_MEMORY_PROGRAM).peak_bytes, before + 1000000);
    cr_assert_lt(accepted, 5000);
}

/* ---- how it runs ---- */

Test(text, the_plan_stands_behind_the_instructions) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(80, 64), EDDY_F32, NULL);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *rows = eddy_softmax(eddy_mul(eddy_neg(x), x), 1);
    eddy_tensor *y = eddy_dropout(rows, EDDY_S(0.5), NULL);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    cr_assert_eq(eddy_program_print(program, file, EDDY_OPTIONS(program_print, .shows_plan = true)),
                 EDDY_OK);
    fclose(file);
    static const char *const parts[] = {
        "fused {\n    # 5 tiles of 1 x 1024 elements\n%0 f32[80, 64] = neg(",
        "    # loop neg; x + 0, tile; ",
        "    # loop mul; tile, x + 0, arena + 0; ",
        "}\n",
        "    # kernel softmax; arena + 0, arena + 20480; ",
        "    # patched kernel dropout; arena + 20480, %3 + 0; ",
        "# arena 40960 bytes by ",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *found = strstr(at, parts[i]);
        cr_assert_not_null(found, "%s\n%s", parts[i], text);
        at = found;
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
