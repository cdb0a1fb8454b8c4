/* Runs over parts of larger inputs. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>

#define ROWS 4
#define COLUMNS 3

typedef struct model {
    eddy_tensor *w, *x, *bias, *count;
    eddy_program *program;
} model;

/* (x[ROWS, COLUMNS], bias[COLUMNS]) -> x w + bias, its sum; counts its runs. */
static void make_model(model *m, bool wants_gradients) {
    eddy_seed(2);
    m->w = eddy_randn(EDDY_SHAPE(COLUMNS, COLUMNS), EDDY_F32, NULL);
    m->x = eddy_randn(EDDY_SHAPE(ROWS, COLUMNS), EDDY_F32, NULL);
    m->bias = eddy_randn(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL);
    m->count = eddy_zeros((eddy_shape){0}, EDDY_I64, NULL);
    eddy_requires_grad_set(m->w, wants_gradients);
    must(eddy_record_begin(NULL));
    must(eddy_add_s_inplace(m->count, EDDY_S(1)));
    eddy_tensor *y = eddy_add(eddy_matmul(m->x, m->w), m->bias);
    eddy_binding items[] = {{"x", m->x, EDDY_ROLE_INPUT},
                            {"bias", m->bias, EDDY_ROLE_INPUT},
                            {"count", m->count, EDDY_ROLE_STATE},
                            {"y", y, EDDY_ROLE_OUTPUT},
                            {"sum", eddy_sum(y, EDDY_ALL_AXES, NULL), EDDY_ROLE_OUTPUT}};
    eddy_bindings bindings = {items, 5};
    m->program = wants_gradients ? eddy_record_end_with_grad(&bindings) : end(&bindings);
    cr_assert_not_null(m->program);
    must(eddy_copy_into(eddy_zeros((eddy_shape){0}, EDDY_I64, NULL), m->count));
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    float first[64], second[64];
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    cr_assert_eq(eddy_rank_of(a), eddy_rank_of(b));
    must(eddy_read(a, first, bytes, NULL));
    must(eddy_read(b, second, bytes, NULL));
    cr_assert_arr_eq(first, second, bytes);
}

Test(batches, each_part_is_a_run) {
    eddy_scope *scope = eddy_scope_begin();
    for (int64_t parts = 1; parts <= 3; parts++) {
        model m;
        make_model(&m, false);
        eddy_tensor *large = eddy_randn(EDDY_SHAPE(parts * ROWS, COLUMNS), EDDY_F32, NULL), *out[2];
        must(eddy_program_run_batches(m.program, EDDY_LIST(large, m.bias), out));
        cr_assert_eq(eddy_item_i64(m.count, NULL), parts);
        eddy_tensor *ys[3], *sums[3];
        for (int64_t i = 0; i < parts; i++) {
            ys[i] = eddy_add(eddy_matmul(eddy_narrow(large, 0, i * ROWS, ROWS), m.w), m.bias);
            sums[i] = eddy_sum(ys[i], EDDY_ALL_AXES, NULL);
        }
        expect_same(out[0], eddy_cat((eddy_list){ys, parts}, 0));
        expect_same(out[1], eddy_stack((eddy_list){sums, parts}, 0));
        eddy_program_release(&m.program);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(batches, gradients_go_back_through_each) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    make_model(&m, true);
    eddy_tensor *large = eddy_randn(EDDY_SHAPE(2 * ROWS, COLUMNS), EDDY_F32, NULL), *out[2];
    eddy_tensor *w = eddy_clone(eddy_detach(m.w)), *other = eddy_clone(large);
    eddy_requires_grad_set(w, true);
    eddy_requires_grad_set(other, true);
    eddy_tensor *halves[2];
    for (int i = 0; i < 2; i++)
        halves[i] = eddy_matmul(eddy_narrow(other, 0, i * ROWS, ROWS), w);
    must(eddy_backward(
        eddy_sum(eddy_square(eddy_cat((eddy_list){halves, 2}, 0)), EDDY_ALL_AXES, NULL)));
    must(eddy_program_run_batches(
        m.program, EDDY_LIST(large, eddy_zeros(EDDY_SHAPE(COLUMNS), EDDY_F32, NULL)), out));
    must(eddy_backward(eddy_sum(eddy_square(out[0]), EDDY_ALL_AXES, NULL)));
    expect_same(eddy_grad_of(m.w), eddy_grad_of(w));
    eddy_program_release(&m.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Without a scope the caller owns what was put together, and nothing else is left. */
Test(batches, outputs_are_the_callers) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    make_model(&m, false);
    eddy_tensor *large = eddy_ones(EDDY_SHAPE(3 * ROWS, COLUMNS), EDDY_F32, NULL), *out[2];
    eddy_tensor *bias = eddy_retain(m.bias);
    eddy_retain(large);
    eddy_scope_end(scope);
    int64_t before = eddy_live_count();
    must(eddy_program_run_batches(m.program, EDDY_LIST(large, bias), out));
    cr_assert_eq(eddy_live_count(), before + 2);
    eddy_release(&out[0]);
    eddy_release(&out[1]);
    eddy_release(&large);
    eddy_release(&bias);
    eddy_program_release(&m.program);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(batches, inputs_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    model m;
    make_model(&m, false);
    eddy_tensor *out[2];
#define RUN(...) (void)!eddy_program_run_batches(m.program, EDDY_LIST(__VA_ARGS__), out)
    RUN(eddy_ones(EDDY_SHAPE(ROWS + 1, COLUMNS), EDDY_F32, NULL), m.bias);
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_batches: input x has 5 rows, which are no parts of 4");
    RUN(eddy_ones(EDDY_SHAPE(0, COLUMNS), EDDY_F32, NULL), m.bias);
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_batches: input x has 0 rows, which are no parts of 4");
    RUN(eddy_ones(EDDY_SHAPE(2 * ROWS, COLUMNS), EDDY_F32, NULL),
        eddy_ones(EDDY_SHAPE(3 * COLUMNS), EDDY_F32, NULL));
    expect_error(EDDY_SHAPE_MISMATCH,
                 "program_run_batches: input bias has 3 parts, and another one has 2");
    RUN(m.x);
    expect_error(EDDY_INVALID_ARGUMENT, "program_run_batches: 1 inputs are given, and there are 2");
    RUN(eddy_ones(EDDY_SHAPE(2 * ROWS, COLUMNS + 1), EDDY_F32, NULL), m.bias);
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_eq(strncmp(error.message, "program_run_batches: ", 21), 0, "%s", error.message);
    cr_assert_eq(eddy_item_i64(m.count, NULL), 0, "no run was made");
    eddy_program_release(&m.program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
