/* Passes: what they leave out, group and put into the same memory, and that results stay what they were. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tests/program/outcome.h>

#define ROWS 96
#define COLUMNS 64 /* large enough for groups */
#define COUNT (ROWS * COLUMNS)

static void use(const char *passes) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = passes));
    cr_assert_not_null(runtime);
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
}

static eddy_tensor *matrix(double first) {
    eddy_tensor *all =
        eddy_arange(EDDY_S(first), EDDY_S(first + COUNT), EDDY_S(1.0), EDDY_F32, NULL);
    return eddy_reshape(eddy_sin(all), EDDY_SHAPE(ROWS, COLUMNS));
}

static eddy_program_info info_of(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    must(eddy_program_describe(program, &info));
    return info;
}

static void must_equal(eddy_tensor *a, eddy_tensor *b) {
    static float left[ROWS * ROWS], right[ROWS * ROWS]; /* products are the largest */
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    cr_assert(eddy_count_of(a) == eddy_count_of(b) && bytes <= sizeof(left));
    must(eddy_read(a, left, bytes, NULL));
    must(eddy_read(b, right, bytes, NULL));
    cr_assert_eq(memcmp(left, right, bytes), 0);
}

/* ---- a function of two matrices, recorded and run ---- */

typedef eddy_tensor *formula(eddy_tensor *x, eddy_tensor *y);

static eddy_program *record(formula *compute, eddy_tensor *x, eddy_tensor *y,
                            eddy_tensor **result) {
    must(eddy_record_begin(NULL));
    *result = compute(x, y);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT}, {"z", *result, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

/* The program with these passes gives what the calls give, on other inputs too. */
static eddy_program_info expect_equal(const char *passes, formula *compute) {
    use(passes);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *result, *x = matrix(0), *y = matrix(7);
    eddy_program *program = record(compute, x, y, &result);
    eddy_program_info info = info_of(program);
    for (int i = 0; i < 3; i++) {
        must(eddy_program_run(program, EDDY_LIST(x, y), &result));
        must_equal(result, compute(x, y));
        x = matrix(100 + i);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    return info;
}

/* ---- dead ---- */

static eddy_tensor *with_dead_code(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *unused = eddy_exp(eddy_add(x, y));
    (void)eddy_mul_inplace(unused, x); /* written, and never read */
    eddy_tensor *used = eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    (void)eddy_copy_into(y, eddy_narrow(used, 0, 0, ROWS));
    return eddy_sub(x, used);
}

Test(passes, what_nobody_uses_is_left_out) {
    eddy_program_info info = expect_equal("dead", with_dead_code);
    cr_assert_eq(info.recorded_count, 6);
    cr_assert_eq(info.instruction_count, 3); /* zeros, since a copy's target is there before */
    cr_assert_eq(expect_equal("none", with_dead_code).instruction_count, 6);
}

/* A buffer that is made and then written whole begins there: its text says so. */
static eddy_tensor *in_a_buffer(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *buffer = eddy_zeros_like(x, NULL);
    (void)eddy_add_into(x, y, buffer);
    return eddy_neg(eddy_exp(buffer));
}

Test(passes, a_value_begins_where_it_is_first_written_whole) {
    expect_equal("dead", in_a_buffer);
    eddy_tensor *result;
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record(in_a_buffer, matrix(0), matrix(1), &result);
    char text[2048] = "";
    FILE *file = fmemopen(text, sizeof(text), "w");
    must(eddy_program_print(program, file, NULL));
    fclose(file);
    cr_assert_not_null(strstr(text, "\n1: %0 f32[96, 64] = add(x f32[96, 64], y f32[96, 64])\n"),
                       "%s", text);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(passes, what_may_fail_is_never_left_out) {
    use("all");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *rows = eddy_zeros(EDDY_SHAPE(3), EDDY_I64, NULL);
    must(eddy_record_begin(NULL));
    (void)eddy_index_select(x, rows, 0);
    (void)eddy_index_select(x, rows, 0); /* a second failure is a second error */
    eddy_tensor *result = eddy_neg(x);
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"rows", rows, EDDY_ROLE_INPUT},
                                      {"y", result, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    cr_assert_eq(info_of(program).instruction_count, 3);
    must(eddy_sync(EDDY_FOREVER));
    eddy_tensor *beyond = eddy_full(EDDY_SHAPE(3), EDDY_S(ROWS), EDDY_I64, NULL);
    must(eddy_program_run(program, EDDY_LIST(x, beyond), &result));
    must_equal(result, eddy_neg(x));
    eddy_error error = {0};
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(&error);
    cr_assert_eq(error.more, 1);
    cr_assert_str_eq(error.op, "index_select");
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

static eddy_tensor *draws_for_nothing(eddy_tensor *x, eddy_tensor *y) {
    (void)eddy_rand(EDDY_SHAPE(4), EDDY_F32, NULL);
    (void)y;
    return eddy_add(x, eddy_rand(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL));
}

Test(passes, a_draw_that_nobody_uses_still_advances_the_generator) {
    use("all");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *result;
    eddy_program *program = record(draws_for_nothing, x, matrix(1), &result);
    cr_assert_eq(info_of(program).instruction_count, 2);
    must(eddy_seed(3));
    must(eddy_program_run(program, EDDY_LIST(x, x), &result));
    must(eddy_program_run(program, EDDY_LIST(x, x), &result));
    must(eddy_seed(3));
    (void)draws_for_nothing(x, x);
    must_equal(result, draws_for_nothing(x, x));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- same ---- */

static eddy_tensor *twice(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_exp(eddy_add(x, y)), *b = eddy_exp(eddy_add(x, y));
    return eddy_mul(a, eddy_sub_s(b, EDDY_S(1)));
}

static eddy_tensor *changed_in_between(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *target = eddy_clone(x), *a = eddy_exp(target);
    (void)eddy_add_inplace(target, y);
    return eddy_mul(a, eddy_exp(target));
}

static eddy_tensor *result_changes(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_exp(x), *b = eddy_exp(x);
    (void)eddy_add_inplace(a, y);
    return eddy_mul(a, b);
}

static eddy_tensor *other_number(eddy_tensor *x, eddy_tensor *y) {
    return eddy_mul(eddy_add_s(x, EDDY_S(1)), eddy_mul(eddy_add_s(x, EDDY_S(2)), y));
}

static eddy_tensor *other_view(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *top = eddy_narrow(x, 0, 0, ROWS / 2), *low = eddy_narrow(x, 0, ROWS / 2, ROWS / 2);
    return eddy_add(eddy_cat(EDDY_LIST(eddy_exp(top), eddy_exp(low)), 0), y);
}

Test(passes, what_was_computed_before_is_not_computed_again) {
    eddy_program_info info = expect_equal("same", twice);
    cr_assert_eq(info.recorded_count, 6);
    cr_assert_eq(info.instruction_count, 4);
}

Test(passes, what_looks_alike_but_is_not_the_same_is_computed) {
    formula *const alike[] = {changed_in_between, result_changes, other_number, other_view};
    for (size_t i = 0; i < sizeof(alike) / sizeof(*alike); i++) {
        eddy_program_info info = expect_equal("same", alike[i]);
        cr_assert_eq(info.instruction_count, info.recorded_count, "%zu", i);
    }
}

Test(passes, two_outputs_are_two_tensors) {
    use("all");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *outputs[2];
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_exp(x), *b = eddy_exp(x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"a", a, EDDY_ROLE_OUTPUT}, {"b", b, EDDY_ROLE_OUTPUT}));
    must(eddy_program_run(program, EDDY_LIST(x), outputs));
    must(eddy_neg_inplace(outputs[0]));
    must_equal(outputs[1], eddy_exp(x));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- fold ---- */

/* x * exp(c) + c', where c' = exp(c) turned, and what is added to it is made of nothing. */
static eddy_tensor *with_constants(eddy_tensor *x, eddy_tensor *c) {
    eddy_tensor *angles =
        eddy_cos(eddy_arange(EDDY_S(0), EDDY_S(COLUMNS), EDDY_S(1), EDDY_F32, NULL));
    eddy_tensor *table =
        eddy_matmul(eddy_exp(c), eddy_ones(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_F32, NULL));
    return eddy_add(eddy_mul(x, table), eddy_mul(angles, eddy_neg(x)));
}

static eddy_program *record_with_constant(eddy_tensor *x, eddy_tensor *c, eddy_role role) {
    must(eddy_record_begin(NULL));
    eddy_tensor *y = with_constants(x, c);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"c", c, role}, {"y", y, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    return program;
}

Test(passes, what_depends_on_constants_alone_is_computed_once) {
    use("dead,fold");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *c = matrix(3), *y;
    eddy_program *program = record_with_constant(x, c, EDDY_ROLE_CONSTANT);
    eddy_program_info info = info_of(program);
    cr_assert_eq(info.recorded_count, 9);
    cr_assert_eq(info.instruction_count, 4); /* mul, neg, mul, add */
    cr_assert_eq(info.captured_count, 2);    /* the table, and the angles */
    for (int i = 0; i < 2; i++) {
        must(eddy_program_run(program, EDDY_LIST(x), &y));
        must_equal(y, with_constants(x, c));
        x = matrix(100);
    }
    /* A constant that has been written is refused before its folded values are used. */
    must(eddy_neg_inplace(c));
    eddy_error error;
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x), &y), EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(passes, what_is_captured_or_may_change_is_never_folded) {
    use("dead,fold");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *c = matrix(3), *y;
    eddy_program *program = record_with_constant(x, c, EDDY_ROLE_STATE);
    cr_assert_eq(info_of(program).instruction_count, 7); /* without arange and cos */
    must(eddy_neg_inplace(c));
    must(eddy_program_run(program, EDDY_LIST(x), &y));
    must_equal(y, with_constants(x, c));
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* A draw is another at each run, and a sum that is written begins anew; the angles are folded. */
static eddy_tensor *of_nothing(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *sum = eddy_neg(eddy_zeros(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL));
    (void)eddy_add_inplace(sum, x);
    sum =
        eddy_mul(sum, eddy_cos(eddy_arange(EDDY_S(0), EDDY_S(COLUMNS), EDDY_S(1), EDDY_F32, NULL)));
    (void)y;
    return eddy_mul(sum, eddy_exp(eddy_rand(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL)));
}

Test(passes, draws_and_what_is_written_are_never_folded) {
    use("dead,fold");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *first, *result;
    eddy_program *program = record(of_nothing, x, matrix(1), &first);
    cr_assert_eq(info_of(program).instruction_count, info_of(program).recorded_count - 2);
    for (int i = 0; i < 2; i++) {
        must(eddy_seed((uint64_t)i));
        must(eddy_program_run(program, EDDY_LIST(x, matrix(1)), &result));
        must(eddy_seed((uint64_t)i));
        must_equal(result, of_nothing(x, x));
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

/* ---- fuse ---- */

static eddy_tensor *chain(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_relu(eddy_add_s(eddy_mul(x, y), EDDY_S(0.5)));
    return eddy_sub(eddy_square(a), x);
}

static eddy_tensor *rows_and_columns(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *row = eddy_narrow(y, 0, 3, 1), *column = eddy_narrow(y, 1, 5, 1);
    return eddy_mul(eddy_exp(eddy_sub(x, column)), eddy_add_s(row, EDDY_S(1)));
}

static eddy_tensor *of_other_dtypes(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *less = eddy_lt(x, y);
    return eddy_where(eddy_logical_not(less),
                      eddy_cast(eddy_tanh(eddy_cast(x, EDDY_F64)), EDDY_F32), eddy_neg(y));
}

static eddy_tensor *transposed_between(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_exp(x);
    eddy_tensor *turned = eddy_reshape(eddy_contiguous(eddy_t(a)), EDDY_SHAPE(ROWS, COLUMNS));
    return eddy_add(eddy_mul(turned, a), y);
}

static eddy_tensor *turned(eddy_tensor *a) {
    return eddy_t(eddy_reshape(a, EDDY_SHAPE(COLUMNS, ROWS)));
}

/* One elementwise instruction reads what another writes, in another order. */
static eddy_tensor *read_in_another_order(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_exp(x);
    return eddy_add(eddy_cumsum(eddy_mul(turned(a), a), 0), y);
}

static eddy_tensor *written_in_place(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_add(x, y), *b = eddy_mul(a, x);
    (void)eddy_relu_inplace(a);
    (void)eddy_add_inplace(a, b);
    return eddy_mul(a, b);
}

static eddy_tensor *flipped_in_place(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_clone(x);
    (void)eddy_add_inplace(eddy_reshape(a, EDDY_SHAPE(COLUMNS, ROWS)),
                           eddy_reshape(y, EDDY_SHAPE(COLUMNS, ROWS)));
    (void)eddy_mul_into(eddy_t(eddy_reshape(y, EDDY_SHAPE(COLUMNS, ROWS))), a, a);
    return eddy_add_s(a, EDDY_S(1));
}

static eddy_tensor *many(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *kept[6];
    for (int i = 0; i < 6; i++)
        kept[i] = eddy_add_s(x, EDDY_S(i)); /* more values at once than a tile has slots */
    for (int i = 0; i < 40; i++)            /* more than a group has members */
        x = eddy_mul_s(eddy_add(x, y), EDDY_S(0.5));
    for (int i = 0; i < 6; i++)
        x = eddy_add(x, kept[i]);
    return x;
}

static eddy_tensor *something_between(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *gate = eddy_silu(x);
    eddy_tensor *up = eddy_softmax(y, 1);
    return eddy_mul(gate, up);
}

Test(passes, elementwise_calls_run_tile_by_tile) {
    static const struct {
        formula *compute;
        int64_t groups;
    } cases[] = {
        {chain, 1},
        {rows_and_columns, 1},
        {of_other_dtypes, 1},
        {transposed_between, 1},
        {written_in_place, 1},
        {flipped_in_place, 1},
        {something_between, 1},
        {read_in_another_order, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cr_assert_eq(expect_equal("fuse", cases[i].compute).group_count, cases[i].groups, "%zu", i);
        expect_equal("all", cases[i].compute);
    }
    cr_assert_gt(expect_equal("fuse", many).group_count, 2);
}

/* A result of one member may not lie where another reads in another order. */
static eddy_tensor *used_up_in_another_order(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *u = eddy_cumsum(x, 0), *t = turned(eddy_clone(y));
    (void)eddy_add_into(t, u, t);
    return eddy_add(eddy_cumsum(eddy_sigmoid(u), 0), t);
}

Test(passes, members_of_a_group_do_not_take_each_others_memory) {
    expect_equal("fuse,place", used_up_in_another_order);
    expect_equal("all", used_up_in_another_order);
}

Test(passes, values_of_a_group_take_no_memory) {
    cr_assert_eq(expect_equal("fuse", chain).arena_bytes, 0);
    cr_assert_geq(expect_equal("none", chain).arena_bytes, 2 * COUNT * (int64_t)sizeof(float));
}

Test(passes, poison_passes_through_a_group_as_through_calls) {
    use("all");
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0), *y = matrix(1), *state = matrix(2), *outputs[2];
    must(eddy_record_begin(NULL));
    eddy_tensor *a = eddy_relu(x), *b = eddy_add(a, y), *c = eddy_mul_s(a, EDDY_S(2));
    must(eddy_add_inplace(state, b));
    eddy_program *program =
        eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT},
                                      {"b", b, EDDY_ROLE_OUTPUT}, {"c", c, EDDY_ROLE_OUTPUT}));
    cr_assert_eq(info_of(program).group_count, 1);
    must(eddy_sync(EDDY_FOREVER));
    eddy_tensor *before = eddy_clone(state);
    eddy_tensor *poisoned =
        eddy_index_select(y, eddy_full(EDDY_SHAPE(ROWS), EDDY_S(ROWS), EDDY_I64, NULL), 0);
    must(eddy_program_run(program, EDDY_LIST(x, poisoned), outputs));
    must_equal(outputs[1], eddy_mul_s(eddy_relu(x), EDDY_S(2)));
    static float values[COUNT];
    eddy_error error = {0};
    cr_assert_eq(eddy_read(outputs[0], values, sizeof(values), NULL), EDDY_OUT_OF_RANGE);
    eddy_error_take(&error);
    cr_assert_str_eq(error.op, "index_select");
    /* The skipped write has left the bytes as they were. */
    must(eddy_recover(EDDY_LIST(state)));
    must_equal(state, before);
    eddy_program_release(&program);
    (void)eddy_sync(EDDY_FOREVER);
    (void)eddy_error_take(NULL);
    eddy_scope_end(scope);
}

/* ---- place ---- */

static eddy_tensor *uses_up(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_exp(eddy_add(x, y));
    return eddy_matmul(eddy_neg(a), eddy_t(y));
}

static eddy_tensor *still_used(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_cumsum(x, 1), *b = eddy_exp(a);
    return eddy_sub(eddy_cumsum(a, 0), eddy_cumsum(eddy_add(b, y), 0));
}

static eddy_tensor *read_otherwise(eddy_tensor *x, eddy_tensor *y) {
    eddy_tensor *a = eddy_cumsum(x, 1);
    eddy_tensor *first = eddy_narrow(a, 0, 0, 1); /* a row of what is used up */
    return eddy_cumsum(eddy_mul(eddy_sub(a, first), y), 0);
}

Test(passes, results_take_over_the_memory_of_what_is_used_up) {
    int64_t bytes = COUNT * (int64_t)sizeof(float);
    int64_t placed = expect_equal("place", uses_up).arena_bytes,
            apart = expect_equal("none", uses_up).arena_bytes;
    cr_assert_leq(placed, apart - bytes / 2);
    expect_equal("place", still_used);
    expect_equal("place", read_otherwise);
    expect_equal("all", still_used);
    expect_equal("all", read_otherwise);
}

/* ---- the option ---- */

#define LISTED                                                                                     \
    ", not all, none, or some of cast transfer dead same richer fold move fuse place, fast or of " \
    "layout accumulate winograd, or subbatch with commas between them"

static void expect_invalid(const char *message) {
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_str_eq(error.message, message);
}

Test(passes, an_unknown_pass_is_refused_with_a_list) {
    cr_assert_null(eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = "dead,fuze")));
    expect_invalid("passes is dead,fuze" LISTED);
    cr_assert_eq(eddy_record_begin(EDDY_OPTIONS(record, .passes = "fuze")), EDDY_INVALID_ARGUMENT);
    expect_invalid("record_begin: passes is fuze" LISTED);
}

Test(passes, a_variable_with_an_unknown_pass_is_named) {
    setenv("EDDY_PASSES", "bogus", 1);
    cr_assert_null(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL));
    expect_invalid("EDDY_PASSES is bogus" LISTED);
    cr_assert_null(eddy_runtime_create(NULL));
    expect_invalid("EDDY_PASSES is bogus" LISTED);
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = "dead"));
    cr_assert_not_null(runtime, "the struct comes first");
    eddy_runtime_release(&runtime);
}

Test(passes, a_recording_may_choose_its_own) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = matrix(0);
    eddy_error error = {0};
    cr_assert_eq(eddy_record_begin(EDDY_OPTIONS(record, .passes = "all,fuze")),
                 EDDY_INVALID_ARGUMENT);
    cr_assert_eq(eddy_error_take(&error), EDDY_INVALID_ARGUMENT);
    cr_assert_str_eq(error.op, "record_begin");
    for (int is_reduced = 0; is_reduced < 2; is_reduced++) {
        must(eddy_record_begin(EDDY_OPTIONS(record, .passes = is_reduced ? "dead" : "none")));
        (void)eddy_exp(x);
        eddy_tensor *y = eddy_neg(x);
        eddy_program *program =
            eddy_record_end(EDDY_BINDINGS({"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}));
        cr_assert_eq(info_of(program).instruction_count, is_reduced ? 1 : 2);
        eddy_program_release(&program);
    }
    eddy_scope_end(scope);
}

Test(passes, who_looks_at_each_result_gets_all_of_them) {
    eddy_runtime *runtime =
        eddy_runtime_create(EDDY_OPTIONS(runtime, .passes = "all", .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_runtime_release(&runtime);
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *result;
    eddy_program *program = record(with_dead_code, matrix(0), matrix(1), &result);
    cr_assert_eq(info_of(program).instruction_count, 6);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
