/* Bindings by name: their numbers, feeds and fetches, and what is told of a name that is wrong. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <interpreter/handle/tensor.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/outcome.h>

static eddy_tensor *filled(double value) {
    return eddy_full(EDDY_SHAPE(2, 3), EDDY_S(value), EDDY_F32, NULL);
}

/* sum = a + b; product = a b c; rest = the first row of the product; total += a */
typedef struct fixture {
    eddy_program *program;
    eddy_tensor *total;
} fixture;

static fixture make(void) {
    eddy_tensor *a = filled(1), *b = filled(2), *c = filled(3), *total = filled(0);
    must(eddy_record_begin(NULL));
    eddy_tensor *sum = eddy_add(a, b), *product = eddy_mul(eddy_mul(a, b), c);
    must(eddy_add_into(total, a, total));
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"sum", sum, EDDY_ROLE_OUTPUT}, {"total", total, EDDY_ROLE_STATE},
                      {"a", a, EDDY_ROLE_INPUT}, {"c", c, EDDY_ROLE_CONSTANT},
                      {"product", product, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_INPUT},
                      {"rest", eddy_select(product, 0, 0), EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return (fixture){program, total};
}

Test(named, bindings_have_numbers) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    cr_assert_eq(eddy_program_input(f.program, "a"), 0);
    cr_assert_eq(eddy_program_input(f.program, "b"), 1);
    cr_assert_eq(eddy_program_output(f.program, "sum"), 0);
    cr_assert_eq(eddy_program_output(f.program, "rest"), 2);
    must(EDDY_OK);
    cr_assert_eq(eddy_program_input(f.program, "A"), -1);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_input: the program has no input A: there are a, b");
    cr_assert_eq(eddy_program_input(f.program, "total"), -1);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_input: total is a binding of the program, but no input: there are a, b");
    cr_assert_eq(eddy_program_output(f.program, "a"), -1);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_output: a is a binding of the program, but no output: "
                 "there are sum, product, rest");
    cr_assert_eq(eddy_program_output(f.program, NULL), -1);
    expect_error(EDDY_INVALID_ARGUMENT, "program_output: the name of an output is NULL");
    cr_assert_eq(eddy_program_input(NULL, "a"), -1);
    expect_error(EDDY_INVALID_ARGUMENT, "program_input: the program is NULL");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(named, a_message_has_room_for_some_names) {
    eddy_scope *scope = eddy_scope_begin();
    static char names[200][40];
    eddy_binding bindings[200];
    must(eddy_record_begin(NULL));
    eddy_program *none = eddy_record_end(NULL);
    cr_assert_eq(eddy_program_input(none, "x"), -1);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_input: the program has no input x: there are none");
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    for (int i = 0; i < 200; i++) {
        snprintf(names[i], sizeof(names[i]), "an output with a long name, number %d", i);
        bindings[i] = (eddy_binding){names[i], eddy_neg(x), EDDY_ROLE_OUTPUT};
    }
    eddy_program *many = eddy_record_end(&(eddy_bindings){bindings, 200});
    cr_assert_eq(eddy_program_output(many, names[199]), 199);
    cr_assert_eq(eddy_program_output(many, "x"), -1);
    eddy_error error = {0};
    eddy_error_take(&error);
    const char *end = strstr(error.message, "number 5, ...");
    cr_assert(end && strlen(end) == strlen("number 5, ..."), "%s", error.message);
    eddy_program_release(&none);
    eddy_program_release(&many);
    eddy_scope_end(scope);
}

Test(named, a_long_name_leaves_room_for_the_others) {
    eddy_scope *scope = eddy_scope_begin();
    char wide[1001], utf8[101] = "";
    memset(wide, 'w', 1000);
    wide[1000] = 0;
    for (int i = 0; i < 33; i++)
        strcat(utf8, "\xe2\x82\xac");
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_binding bindings[] = {{wide, eddy_neg(x), EDDY_ROLE_OUTPUT},
                               {"y", eddy_exp(x), EDDY_ROLE_OUTPUT},
                               {utf8, eddy_abs(x), EDDY_ROLE_OUTPUT},
                               {"z", eddy_square(x), EDDY_ROLE_OUTPUT}};
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, 4});
    cr_assert_eq(eddy_program_output(program, "x"), -1);
    char message[512];
    snprintf(message, sizeof(message),
             "program_output: the program has no output x: there are %.45s..., y, %.45s..., z",
             wide, utf8);
    expect_error(EDDY_INVALID_ARGUMENT, message);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(named, bindings_are_described_in_the_order_of_the_recording) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_full(EDDY_SHAPE(4, 3), EDDY_S(1), EDDY_F64, NULL);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_mean(eddy_t(x), EDDY_AXES(0), NULL);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"y", y, EDDY_ROLE_OUTPUT}, {"x", eddy_t(x), EDDY_ROLE_INPUT}));
    eddy_program_info counts = {.size = sizeof(counts)};
    must(eddy_program_describe(program, &counts));
    cr_assert_eq(counts.binding_count, 2);
    eddy_program_binding_info info = {.size = sizeof(info)};
    must(eddy_program_binding_describe(program, 0, &info));
    cr_assert_str_eq(info.name, "y");
    cr_assert(info.role == EDDY_ROLE_OUTPUT && info.number == 0 && info.shape.rank == 1);
    must(eddy_program_binding_describe(program, 1, &info));
    cr_assert_str_eq(info.name, "x");
    cr_assert(info.role == EDDY_ROLE_INPUT && info.number == 0 && info.dtype == EDDY_F64);
    cr_assert(info.shape.rank == 2 && info.shape.dims[0] == 3 && info.shape.dims[1] == 4);
    cr_assert(info.strides[0] == 1 && info.strides[1] == 3);
    cr_assert(info.device.kind == EDDY_DEVICE_CPU && info.device.index == 0);
    /* An older program's struct ends earlier. */
    info = (eddy_program_binding_info){.size = offsetof(eddy_program_binding_info, role)};
    must(eddy_program_binding_describe(program, 1, &info));
    cr_assert(info.name && info.shape.rank == 0);
    cr_assert_eq(eddy_program_binding_describe(program, 2, &info), EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "program_binding_describe: there is no binding 2: there are 2");
    cr_assert_eq(eddy_program_binding_describe(program, -1, &info), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_program_binding_describe(program, 0, NULL), EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_program_binding_describe(NULL, 0, &info), EDDY_INVALID_ARGUMENT);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- runs ---- */

Test(named, feeds_and_fetches_have_no_order) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *sum = NULL, *product = NULL, *rest = NULL;
    must(eddy_program_run_named(f.program, EDDY_FEEDS({"b", filled(20)}, {"a", filled(10)}),
                                EDDY_FETCHES({"rest", &rest}, {"sum", &sum}, {"product", &product}),
                                NULL));
    cr_assert_eq(sum_of(sum), 6 * 30);
    cr_assert_eq(sum_of(product), 6 * 600);
    cr_assert_eq(sum_of(rest), 3 * 600);
    cr_assert_eq(sum_of(f.total), 6 * 11);
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Without a scope what is handed out is the caller's: what is not fetched leaks nothing. */
Test(named, outputs_that_are_not_fetched_are_not_handed_out) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *total = f.total, *a = filled(10), *b = filled(20);
    eddy_retain(total);
    eddy_retain(a);
    eddy_retain(b);
    eddy_scope_end(scope);
    int64_t before = eddy_live_count();
    must(
        eddy_program_run_named(f.program, EDDY_FEEDS({"a", a}, {"b", b}), (eddy_fetches){0}, NULL));
    cr_assert_eq(eddy_live_count(), before);
    /* A part of a tensor that is not handed out, and a whole one whose part is not. */
    eddy_tensor *rest = NULL, *product = NULL;
    must(eddy_program_run_named(f.program, EDDY_FEEDS({"a", a}, {"b", b}),
                                EDDY_FETCHES({"rest", &rest}), NULL));
    must(eddy_program_run_named(f.program, EDDY_FEEDS({"a", a}, {"b", b}),
                                EDDY_FETCHES({"product", &product}), NULL));
    float values[6];
    must(eddy_read(rest, values, 3 * sizeof(float), NULL));
    cr_assert(values[0] == 600 && values[2] == 600);
    must(eddy_read(product, values, sizeof(values), NULL));
    cr_assert(values[0] == 600 && values[5] == 600);
    must(eddy_read(total, values, sizeof(values), NULL));
    cr_assert_eq(values[5], 31, "each run has run");
    eddy_release(&rest);
    eddy_release(&product);
    cr_assert_eq(eddy_live_count(), before);
    eddy_program_release(&f.program);
    eddy_release(&total);
    eddy_release(&a);
    eddy_release(&b);
    cr_assert_eq(eddy_live_count(), 0);
}

/* A loop keeps its state in one variable. */
Test(named, an_output_may_replace_the_tensor_that_was_fed) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = filled(1);
    must(eddy_record_begin(NULL));
    eddy_tensor *y = eddy_add(x, x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
    for (int i = 0; i < 5; i++)
        must(eddy_program_run_named(program, EDDY_FEEDS({"x", x}), EDDY_FETCHES({"y", &x}), NULL));
    cr_assert_eq(sum_of(x), 6 * 32);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(named, more_names_than_the_stack_holds) {
    enum { COUNT = 50 };
    eddy_scope *scope = eddy_scope_begin();
    char names[2 * COUNT][8];
    eddy_binding bindings[2 * COUNT];
    eddy_feed feeds[COUNT];
    eddy_fetch fetches[COUNT];
    eddy_tensor *results[COUNT] = {0};
    for (int i = 0; i < 2 * COUNT; i++)
        snprintf(names[i], sizeof(names[i]), "t%d", i);
    for (int i = 0; i < COUNT; i++)
        bindings[i] = (eddy_binding){names[i], filled(i), EDDY_ROLE_INPUT};
    must(eddy_record_begin(NULL));
    for (int i = 0; i < COUNT; i++)
        bindings[COUNT + i] =
            (eddy_binding){names[COUNT + i], eddy_neg(bindings[i].tensor), EDDY_ROLE_OUTPUT};
    eddy_program *program = eddy_record_end(&(eddy_bindings){bindings, 2 * COUNT});
    for (int i = 0; i < COUNT; i++) {
        feeds[i] = (eddy_feed){names[i], filled(100 + i)};
        fetches[i] = (eddy_fetch){names[2 * COUNT - 1 - i], &results[i]};
    }
    must(eddy_program_run_named(program, (eddy_feeds){feeds, COUNT}, (eddy_fetches){fetches, COUNT},
                                NULL));
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(sum_of(results[i]), -6 * (100 + COUNT - 1 - i));
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* ---- bad input ---- */

static void expect_fails(const fixture *f, eddy_feeds feeds, eddy_status status,
                         const char *sentence) {
    eddy_tensor *sum = NULL;
    double before = sum_of(f->total);
    char message[512];
    snprintf(message, sizeof(message), "program_run_named: %s", sentence);
    cr_assert_eq(eddy_program_run_named(f->program, feeds, EDDY_FETCHES({"sum", &sum}), NULL),
                 status, "%s", sentence);
    expect_error(status, message);
    cr_assert_null(sum);
    cr_assert_eq(sum_of(f->total), before, "nothing has changed");
}

static void expect_fetch_fails(const fixture *f, eddy_fetches fetches, const char *sentence) {
    char message[512];
    double before = sum_of(f->total);
    snprintf(message, sizeof(message), "program_run_named: %s", sentence);
    cr_assert_eq(eddy_program_run_named(f->program, EDDY_FEEDS({"a", filled(1)}, {"b", filled(1)}),
                                        fetches, NULL),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, message);
    cr_assert_eq(sum_of(f->total), before, "nothing has changed");
}

Test(named, wrong_names_are_told) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *a = filled(1), *b = filled(2), *y = NULL;
    eddy_status bad = EDDY_INVALID_ARGUMENT;
    expect_fails(&f, EDDY_FEEDS({"a", a}), bad, "input b is not given");
    expect_fails(&f, (eddy_feeds){0}, bad, "input a is not given");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", b}, {"z", a}), bad,
                 "the program has no input z: there are a, b");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", b}, {"a", b}), bad, "input a is given twice");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", b}, {"total", a}), bad,
                 "state total shares its memory with a, and the program writes it");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", b}, {"c", a}), bad,
                 "c is a binding of the program, but no input: there are a, b");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {NULL, b}), bad, "the name of an input is NULL");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", NULL}), bad, "b is NULL");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", EDDY_NONE}), bad,
                 "b is EDDY_NONE, which stands for absent optional operands only");
    expect_fails(&f, EDDY_FEEDS({"a", a}, {"b", b}, {"total", EDDY_NONE}), bad,
                 "total is EDDY_NONE, which stands for absent optional operands only");
    expect_fails(&f, (eddy_feeds){NULL, 2}, bad,
                 "the list of feeds has count 2, but its items are NULL");
    expect_fails(&f, (eddy_feeds){NULL, -1}, bad, "the list of feeds has count -1");
    expect_fetch_fails(&f, EDDY_FETCHES({"sum", &y}, {"z", &y}),
                       "the program has no output z: there are sum, product, rest");
    expect_fetch_fails(&f, EDDY_FETCHES({"total", &y}),
                       "total is a binding of the program, but no output: "
                       "there are sum, product, rest");
    expect_fetch_fails(&f, EDDY_FETCHES({"sum", &y}, {"sum", &y}), "output sum is fetched twice");
    expect_fetch_fails(&f, EDDY_FETCHES({"sum", &y}, {"rest", NULL}),
                       "there is no room for output rest");
    expect_fetch_fails(&f, EDDY_FETCHES({NULL, &y}), "the name of an output is NULL");
    expect_fetch_fails(&f, (eddy_fetches){NULL, 3},
                       "the list of fetches has count 3, but its items are NULL");
    cr_assert_null(y);
    cr_assert_eq(eddy_program_run_named(NULL, (eddy_feeds){0}, (eddy_fetches){0}, NULL), bad);
    expect_error(bad, "program_run_named: the program is NULL");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(named, what_does_not_fit_names_its_binding) {
    eddy_scope *scope = eddy_scope_begin();
    fixture f = make();
    eddy_tensor *a = filled(1);
#define B(b) EDDY_FEEDS({"a", a}, {"b", b})
    expect_fails(&f, B(eddy_cast(a, EDDY_F64)), EDDY_DTYPE_MISMATCH,
                 "input b is f64[2, 3], the program was recorded with f32[2, 3]");
    expect_fails(&f, B(eddy_select(a, 0, 0)), EDDY_SHAPE_MISMATCH,
                 "input b is f32[3], the program was recorded with f32[2, 3]");
    expect_fails(&f, B(eddy_narrow(a, 0, 0, 1)), EDDY_SHAPE_MISMATCH,
                 "input b is f32[1, 3], the program was recorded with f32[2, 3]");
    expect_fails(&f, B(eddy_expand(eddy_select(a, 0, 0), EDDY_SHAPE(2, 3))), EDDY_SHAPE_MISMATCH,
                 "input b has the strides [0, 1], the program was recorded with [3, 1]");
    expect_fails(&f, B(f.total), EDDY_INVALID_ARGUMENT,
                 "input b shares its memory with total, and the program writes it");
    eddy_tensor *far = filled(1);
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 1}); /* there is none so far */
    expect_fails(&f, B(far), EDDY_DEVICE_MISMATCH, "input b lives on another device");
    eddy_tensor_set_device(far, (eddy_device){EDDY_DEVICE_CPU, 0});
    eddy_runtime *other = eddy_runtime_create(NULL);
    must(eddy_runtime_use(other));
    eddy_tensor *foreign = filled(1);
    must(eddy_runtime_use(NULL));
    expect_fails(&f, B(foreign), EDDY_RUNTIME_MISMATCH,
                 "input b belongs to another runtime than the program");
    eddy_program_release(&f.program);
    eddy_scope_end(scope);
    eddy_runtime_release(&other);
    cr_assert_eq(eddy_live_count(), 0);
}
