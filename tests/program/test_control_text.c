/* Branches and loops in texts: what is nested and finds its operands there is accepted, all else refused. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <program/parse.h>
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
    expect_refused("eddy program, version 1, 4 instructions\ninput p bool[]\ninput x f32[3]\n"
                   "draw 0\nif(p bool[])\n%0 f32[3] = dropout(x f32[3], p = 0.5, draw = 0)\n"
                   "else()\nend_if()\n",
                   6, "dropout draws random numbers in a branch or a loop");
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
