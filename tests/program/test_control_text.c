/* Branches and loops in texts: what is nested and finds its operands there is accepted, all else refused. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/parse.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

#define HEAD(count)                                                                                \
    "eddy program, version 1, " count " instructions\n"                                            \
    "input p bool[]\n"                                                                             \
    "input x f32[3]\n"

static eddy_status parse(const char *text, eddy_parse_error *error) {
    eddy_runtime *runtime;
    uint32_t generators;
    must(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime));
    eddy_program *program = eddy_program_create(runtime);
    eddy_status status = eddy_parse_program(program, text, strlen(text), &generators, error);
    if (status == EDDY_OK)
        status = eddy_program_build(program, (eddy_origin){"test", NULL});
    eddy_program_release(&program);
    return status;
}

static void expect_refused(const char *text, uint32_t line, const char *reason) {
    eddy_parse_error error = {0};
    cr_assert_eq(parse(text, &error), EDDY_INVALID_ARGUMENT, "%s: %s", text, error.reason);
    cr_assert_str_eq(error.reason, reason);
    cr_assert_eq(error.line, line, "%s: line %u", text, error.line);
}

Test(control_text, texts_are_nested_and_use_what_is_there) {
    static const char nested[] = "branches and loops are not nested, or more than 64 deep";
    eddy_parse_error error = {0};
    expect_refused(HEAD("1") "if(p bool[])\n", 0, nested);
    expect_refused(HEAD("1") "end_if()\n", 4, nested);
    expect_refused(HEAD("2") "if(p bool[])\nend_if()\n", 5, nested);
    expect_refused(HEAD("2") "loop(most_steps = 0)\nend_loop()\n", 5, nested);
    expect_refused(HEAD("3") "loop(most_steps = 0)\nelse()\nend_loop()\n", 5, nested);
    expect_refused(HEAD("1") "if(x f32[3])\n", 4, "if: the predicate has not one element (f32[3])");
    expect_refused(HEAD("1") "loop(most_steps = -1)\n", 4, "loop: most_steps is negative");
    expect_refused(HEAD("1") "if()\n", 4, "expected a name, not ')'");
    /* Made on one way, and used behind both. */
    static const char half_made[] =
        HEAD("5") "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\nend_if()\n%1 f32[3] = neg(%0 "
                  "f32[3])\n";
    expect_refused(half_made, 8, "a value is used before it is made");
    /* Made on one way, and used on the other. */
    expect_refused(HEAD("5") "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\n"
                             "%1 f32[3] = neg(%0 f32[3])\nend_if()\n",
                   7, "a value is used before it is made");
    /* Set on the other way: there behind both. */
    cr_assert_eq(parse(HEAD("6") "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\n"
                                 "copy_into(x f32[3], set %0 f32[3])\nend_if()\n"
                                 "%1 f32[3] = neg(%0 f32[3])\n",
                       &error),
                 EDDY_OK, "%s", error.reason);
    /* A step may not take place. */
    expect_refused(HEAD("5") "loop(most_steps = 0)\nloop_while(p bool[])\n"
                             "%0 f32[3] = neg(x f32[3])\nend_loop()\n%1 f32[3] = neg(%0 f32[3])\n",
                   8, "a value is used before it is made");
    /* The test does. */
    cr_assert_eq(parse(HEAD("5") "loop(most_steps = 0)\n%0 f32[3] = neg(x f32[3])\n"
                                 "loop_while(p bool[])\nend_loop()\n%1 f32[3] = neg(%0 f32[3])\n",
                       &error),
                 EDDY_OK, "%s", error.reason);
    /* The same way of another branch on the same predicate, which nobody writes. */
#define AGAIN(between, end)                                                                        \
    "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\nend_if()\n" between "if(p bool[])\n" end     \
    "end_if()\n"
    cr_assert_eq(parse(HEAD("8") AGAIN("", "%1 f32[3] = neg(%0 f32[3])\nelse()\n"), &error),
                 EDDY_OK, "%s", error.reason);
    expect_refused(HEAD("8") AGAIN("", "else()\n%1 f32[3] = neg(%0 f32[3])\n"), 10,
                   "a value is used before it is made");
    expect_refused(HEAD("9") AGAIN("mut p bool[] = logical_not(p bool[])\n",
                                   "%1 f32[3] = neg(%0 f32[3])\nelse()\n"),
                   10, "a value is used before it is made");
    cr_assert_eq(
        parse(HEAD("9") AGAIN(
                  "",
                  "%1 f32[3] = neg(%0 f32[3])\nelse()\n") "mut p bool[] = logical_not(p bool[])\n",
              &error),
        EDDY_OK, "%s", error.reason);
    /* In a loop the next step may find another predicate. */
    expect_refused(HEAD("12")
                       AGAIN("loop(most_steps = 3)\nloop_while(p bool[])\n",
                             "%1 f32[3] = neg(%0 f32[3])\nelse()\n") "mut p bool[] = logical_not(p "
                                                                     "bool[])\nend_loop()\n",
                   11, "a value is used before it is made");
    /* Both ways of a branch in the other way set it. */
    cr_assert_eq(parse(HEAD("10") "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\nif(p bool[])\n"
                                  "copy_into(x f32[3], set %0 f32[3])\nelse()\n"
                                  "copy_into(x f32[3], set %0 f32[3])\nend_if()\nend_if()\n"
                                  "%1 f32[3] = neg(%0 f32[3])\n",
                       &error),
                 EDDY_OK, "%s", error.reason);
    /* Each draw is taken when its instruction runs, and is nobody's otherwise. */
#define DRAWING(draws)                                                                             \
    "eddy program, version 1, 4 instructions\ninput p bool[]\ninput x f32[3]\n" draws              \
    "if(p bool[])\n%0 f32[3] = dropout(x f32[3], p = 0.5, draw = 0)\nelse()\nend_if()\n"
    cr_assert_eq(parse(DRAWING("draw 0\n"), &error), EDDY_OK, "%s", error.reason);
    expect_refused(DRAWING("draw 0\ndraw 1\n"), 0,
                   "no instruction takes draw 1, and there are draws in branches or loops");
    /* Both ways make it. */
    expect_refused(HEAD("5") "if(p bool[])\n%0 f32[3] = neg(x f32[3])\nelse()\n"
                             "%0 f32[3] = neg(x f32[3])\nend_if()\n",
                   7, "expected a result: a new value, or one that is written to");
}

static const char *nest_text(char *text, size_t size, int depth) {
    int length = snprintf(text, size, "eddy program, version 1, %d instructions\ninput p bool[]\n",
                          3 * depth);
    for (int i = 0; i < depth; i++)
        length += snprintf(text + length, size - (size_t)length, "if(p bool[])\n");
    for (int i = 0; i < depth; i++)
        length += snprintf(text + length, size - (size_t)length, "else()\nend_if()\n");
    return text;
}

Test(control_text, nests_have_a_bound) {
    char text[4096];
    eddy_parse_error error = {0};
    cr_assert_eq(parse(nest_text(text, sizeof(text), 64), &error), EDDY_OK, "%s", error.reason);
    expect_refused(nest_text(text, sizeof(text), 65), 2 + 65,
                   "branches and loops are not nested, or more than 64 deep");
}

/* ---- lists ---- */

#define LIST_HEAD(count, list)                                                                     \
    "eddy program, version 1, " count " instructions\n"                                            \
    "input list " list "\n"                                                                        \
    "input at i64[]\n"                                                                             \
    "output row f32[2] of %0\n"

/* Row `at` of a list, then that row doubled in the row before it. */
static void try_row(const char *text, const eddy_layout *layout, int64_t at,
                    const float *expected_row, const float *expected_list) {
    static const float elements[] = {1, 2, 3, 4, 5, 6};
    eddy_parse_error error = {0};
    eddy_runtime *runtime;
    uint32_t generators;
    float row[2], list[6];
    must(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime));
    eddy_program *program = eddy_program_create(runtime);
    cr_assert_eq(eddy_parse_program(program, text, strlen(text), &generators, &error), EDDY_OK,
                 "%u: %s", error.line, error.reason);
    must(eddy_program_build(program, (eddy_origin){"test", NULL}));
    eddy_tensor *given = eddy_from_data(elements, EDDY_SHAPE(6), EDDY_F32, NULL), *made;
    eddy_tensor *view = eddy_as_strided(given, (eddy_shape){2, {layout->dims[0], layout->dims[1]}},
                                        layout->strides, 0);
    must(eddy_program_run(
        program, EDDY_LIST(view, eddy_full((eddy_shape){0}, EDDY_S(at), EDDY_I64, NULL)), &made));
    must(eddy_read(made, row, sizeof(row), NULL));
    must(eddy_read(given, list, sizeof(list), NULL));
    cr_assert_arr_eq(row, expected_row, sizeof(row), "row %lld", (long long)at);
    cr_assert_arr_eq(list, expected_list, sizeof(list), "list, row %lld", (long long)at);
    eddy_program_release(&program);
}

Test(control_text, lists_have_rows_and_nothing_beyond) {
    static const char dense[] = LIST_HEAD("4", "f32[3, 2]") //
        "%0 f32[2] = list_get(list f32[3, 2], at i64[])\n"
        "%1 f32[2] = mul_s(%0 f32[2], b = 2.0)\n"
        "%2 i64[] = sub_s(at i64[], b = 1)\n"
        "list_set(%1 f32[2], %2 i64[], mut list f32[3, 2])\n";
    static const char strided[] = LIST_HEAD("4", "f32[3, 2] strides [1, 3]") //
        "%0 f32[2] = list_get(list f32[3, 2] strides [1, 3], at i64[])\n"
        "%1 f32[2] = mul_s(%0 f32[2], b = 2.0)\n"
        "%2 i64[] = sub_s(at i64[], b = 1)\n"
        "list_set(%1 f32[2], %2 i64[], mut list f32[3, 2] strides [1, 3])\n";
    static const eddy_layout rows = {.rank = 2, .dims = {3, 2}, .strides = {2, 1}},
                             columns = {.rank = 2, .dims = {3, 2}, .strides = {1, 3}};
    eddy_scope *scope = eddy_scope_begin();
    try_row(dense, &rows, 2, (float[]){5, 6}, (float[]){1, 2, 10, 12, 5, 6});
    try_row(dense, &rows, 1, (float[]){3, 4}, (float[]){6, 8, 3, 4, 5, 6});
    try_row(dense, &rows, 0, (float[]){1, 2}, (float[]){1, 2, 3, 4, 5, 6});
    try_row(dense, &rows, 3, (float[]){0, 0}, (float[]){1, 2, 3, 4, 0, 0});
    try_row(dense, &rows, INT64_MIN, (float[]){0, 0}, (float[]){1, 2, 3, 4, 5, 6});
    try_row(dense, &rows, INT64_MAX, (float[]){0, 0}, (float[]){1, 2, 3, 4, 5, 6});
    try_row(strided, &columns, 2, (float[]){3, 6}, (float[]){1, 6, 3, 4, 12, 6});
    try_row(strided, &columns, 3, (float[]){0, 0}, (float[]){1, 2, 0, 4, 5, 0});
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(control_text, lists_are_checked) {
    static const struct {
        const char *line, *reason;
    } wrong[] = {
        {"%0 f32[2] = list_get(list f32[3], at i64[])\n", "list_get: a list has rank 2"},
        {"%0 f32[2] = list_get(list f32[3, 2], list f32[3, 2])\n",
         "list_get: the number of a row has rank 0"},
        {"list_set(list f32[3, 2], at i64[], mut list f32[3, 2])\n",
         "list_set: it is no row of the list"},
        {"list_set(list f32[3], at i64[], mut list f32[3, 2])\n",
         "list_set: it is no row of the list"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[400];
        eddy_parse_error error = {0};
        snprintf(text, sizeof(text), "%s%s", LIST_HEAD("1", "f32[3, 2]"), wrong[i].line);
        cr_assert_eq(parse(text, &error), EDDY_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(error.reason, wrong[i].reason), "%s", error.reason);
    }
}

/* ---- products that are added ---- */

#define PRODUCT_HEAD                                                                               \
    "eddy program, version 1, 2 instructions\n"                                                    \
    "input a f32[2, 3]\ninput b f32[3, 3]\ninput wide f64[3, 3]\noutput y f32[3, 3] of %0\n"       \
    "%0 f32[3, 3] = neg(b f32[3, 3])\n"

Test(control_text, products_that_are_added_are_checked) {
    static const struct {
        const char *line, *reason; /* NULL: it is accepted */
    } rows[] = {
        {"add_product(b f32[3, 3], b f32[3, 3], put %0 f32[3, 3])\n", NULL},
        {"add_product(b f32[3, 3], b f32[3, 3], mut %0 f32[3, 3])\n", NULL},
        {"add_product(a f32[2, 3], b f32[3, 3], put %0 f32[3, 3])\n", "[M, K], [K, N], [M, N]"},
        {"add_product(a f32[2, 3], b f32[3, 3], put %0 f32[9])\n", "[M, K], [K, N], [M, N]"},
        {"add_product(wide f64[3, 3], b f32[3, 3], put %0 f32[3, 3])\n", "all f32 or all f64"},
        {"add_product(%0 f32[3, 3], b f32[3, 3], put %0 f32[3, 3])\n", "overlaps another one"},
        {"add_product(b f32[3, 3], b f32[3, 3], %0 f32[3, 3])\n", "written that is read only"},
        {"add_product(a f32[2, 3], b f32[3, 3], put %0 f32[2, 3])\n", "not all of its storage"},
        {"put %0 f32[3, 3] = add(put %0 f32[3, 3], b f32[3, 3])\n", "written that is read only"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[500];
        eddy_parse_error error = {0};
        snprintf(text, sizeof(text), "%s%s", PRODUCT_HEAD, rows[i].line);
        eddy_status status = parse(text, &error);
        if (!rows[i].reason) {
            cr_assert_eq(status, EDDY_OK, "%zu: %s", i, error.reason);
            continue;
        }
        cr_assert_eq(status, EDDY_INVALID_ARGUMENT, "%zu", i);
        cr_assert_not_null(strstr(error.reason, rows[i].reason), "%zu: %s", i, error.reason);
    }
}

/* ---- draws as tensors ---- */

/* Of the same draw, what was drawn and then what was set: neither stands for the other. */
static void try_draws(bool has_passes) {
    static const char text[] =
        "eddy program, version 1, 12 instructions\ninput x f32[64]\ninput other i64[2]\n"
        "output first f32[64] of %0\noutput drawn i64[2] of %2\noutput again f32[64] of %4\n"
        "output changed f32[64] of %6\noutput got i64[2] of %8\noutput back f32[64] of %9\ndraw 0\n"
        "%0 f32[64] = dropout(x f32[64], p = 0.5, draw = 0)\n%1 i64[2] = draw_get(draw = 0)\n"
        "%2 i64[2] = neg(%1 i64[2])\n"
        "%3 f32[64] = dropout_backward(x f32[64], p = 0.5, draw = 0)\n"
        "%4 f32[64] = neg(%3 f32[64])\ndraw_set(other i64[2], draw = 0)\n"
        "%5 f32[64] = dropout_backward(x f32[64], p = 0.5, draw = 0)\n"
        "%6 f32[64] = neg(%5 f32[64])\n%7 i64[2] = draw_get(draw = 0)\n"
        "%8 i64[2] = neg(%7 i64[2])\ndraw_set(%1 i64[2], draw = 0)\n"
        "%9 f32[64] = dropout_backward(x f32[64], p = 0.5, draw = 0)\n";
    static const int64_t other[] = {3, 4};
    static const int64_t minus_other[] = {-3, -4};
    eddy_parse_error error = {0};
    eddy_runtime *runtime;
    uint32_t generators;
    must(eddy_runtime_of_caller(eddy_caller_get(), (eddy_origin){0}, &runtime));
    eddy_program *program = eddy_program_create(runtime);
    program->passes = has_passes ? UINT32_MAX : 0;
    cr_assert_eq(eddy_parse_program(program, text, strlen(text), &generators, &error), EDDY_OK,
                 "%u: %s", error.line, error.reason);
    must(eddy_program_build(program, (eddy_origin){"test", NULL}));
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(64), EDDY_F32, NULL), *made[6],
                *set = eddy_from_data(other, EDDY_SHAPE(2), EDDY_I64, NULL);
    int64_t drawn[2], got[2];
    uint64_t seed, counter;
    must(eddy_generator_state(eddy_generator_default(), &seed, &counter));
    must(eddy_program_run(program, EDDY_LIST(x, set), made));
    must(eddy_read(made[1], drawn, sizeof(drawn), NULL));
    must(eddy_read(made[4], got, sizeof(got), NULL));
    cr_assert(-drawn[0] == (int64_t)seed && -drawn[1] == (int64_t)counter);
    cr_assert_arr_eq(got, minus_other, sizeof(got));
    cr_assert_eq(sum_of(eddy_abs(eddy_add(made[0], made[2]))), 0);
    cr_assert_eq(sum_of(eddy_abs(eddy_sub(made[0], made[5]))), 0);
    eddy_tensor *expected = eddy_dropout_backward(x, EDDY_S(0.5), 3, 4);
    cr_assert_eq(sum_of(eddy_abs(eddy_add(made[3], expected))), 0);
    cr_assert_gt(sum_of(eddy_abs(eddy_sub(made[0], expected))), 0);
    eddy_program_release(&program);
}

Test(control_text, a_draw_can_be_kept_and_set) {
    eddy_scope *scope = eddy_scope_begin();
    try_draws(false);
    try_draws(true);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
#define SETTING(line)                                                                              \
    "eddy program, version 1, 1 instructions\ninput x f32[2]\ninput y i64[3]\ndraw 0\n" line
    expect_refused(SETTING("draw_set(x f32[2], draw = 0)\n"), 5,
                   "draw_set: seed and counter are i64 (f32[2])");
    expect_refused(SETTING("draw_set(y i64[3], draw = 0)\n"), 5,
                   "draw_set: a draw is a seed and a counter (i64[3])");
    expect_refused(SETTING("%0 f32[2] = draw_get(draw = 0)\n"), 5, "the result is i64[2]");
    expect_refused(SETTING("%0 i64[2] = draw_get(draw = 1)\n"), 5,
                   "expected a draw from 0 to 0, not '1)'");
}
