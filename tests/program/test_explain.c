/* What a recorded function says of itself: lines that tell its signatures apart, and not more of them than somebody reads. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

#define TEXT_BYTES 65536

static eddy_status doubles(void *context, eddy_recorded_call *call) {
    (void)context;
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], EDDY_S(2)));
}

static int count_lines(const char *text) {
    int count = 0;
    for (; *text; text++)
        count += *text == '\n';
    return count;
}

static void call(eddy_recorded *recorded, eddy_list inputs, eddy_scalars scalars) {
    eddy_tensor *y;
    must(eddy_recorded_run(recorded, inputs, scalars, &y));
}

Test(explain, signatures_of_one_text_are_told_apart) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(doubles, NULL, 1, NULL);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL),
                *other = eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL),
                *w = leaf(eddy_ones(EDDY_SHAPE(2, 2), EDDY_F32, NULL));
    call(recorded, EDDY_LIST(x), (eddy_scalars){0});
    expect_explained(recorded, "(f32[2, 2]): ran 1 times");
    call(recorded, EDDY_LIST(w), (eddy_scalars){0});
    expect_explained(recorded, "(f32[2, 2]; a gradient goes back to input0): ran 1 times");
    expect_explained(recorded, "(f32[2, 2]): ran 1 times");
    call(recorded, EDDY_LIST(eddy_t(x)), (eddy_scalars){0});
    expect_explained(recorded, "(f32[2, 2]; input0 has the strides [1, 2]): ran 1 times");
    call(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(1), EDDY_S(0.5)));
    expect_explained(recorded, "; with the numbers int float): ran 1 times");
    eddy_no_grad_begin();
    call(recorded, EDDY_LIST(x, other), (eddy_scalars){0});
    eddy_no_grad_end();
    call(recorded, EDDY_LIST(x, other), (eddy_scalars){0});
    expect_explained(recorded, "(f32[2, 2], f32[2, 2]; no gradients): ran 1 times");
    expect_explained(recorded, "(f32[2, 2], f32[2, 2]): ran 1 times");
    call(recorded, EDDY_LIST(x, x), (eddy_scalars){0});
    expect_explained(recorded, "(f32[2, 2], f32[2, 2]; input1 shares memory with input0): ran 1");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(explain, each_signature_of_one_text_is_told_apart_from_all) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(doubles, NULL, 1, NULL);
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                *w = leaf(eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL));
    for (int i = 0; i < 2; i++) {
        call(recorded, EDDY_LIST(w), (eddy_scalars){0});
        call(recorded, EDDY_LIST(x), (eddy_scalars){0});
        eddy_no_grad_begin();
    }
    eddy_no_grad_end();
    eddy_no_grad_end();
    expect_explained(recorded, "(f32[2]): ran 1 times");
    expect_explained(recorded, "(f32[2]; a gradient goes back to input0): ran 1 times");
    expect_explained(recorded, "(f32[2]; no gradients): ran 1 times");
    expect_explained(recorded, "(f32[2]; no gradients; a gradient goes back to input0): ran 1");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(explain, many_signatures_have_a_line_for_the_rest) {
    static char text[TEXT_BYTES], cut[64];
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(doubles, NULL, 1, NULL);
    for (int64_t i = 1; i <= 100; i++)
        call(recorded, EDDY_LIST(eddy_ones(EDDY_SHAPE(i), EDDY_F32, NULL)), (eddy_scalars){0});
    cr_assert_lt(eddy_recorded_explain(recorded, text, sizeof(text)), TEXT_BYTES);
    cr_assert_eq(count_lines(text), 100);
    for (int64_t i = 101; i <= 104; i++)
        call(recorded, EDDY_LIST(eddy_ones(EDDY_SHAPE(i), EDDY_F32, NULL)), (eddy_scalars){0});
    int length = eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_eq((size_t)length, strlen(text));
    cr_assert_eq(count_lines(text), 101);
    cr_assert_not_null(strstr(text, "\nand 4 more, used less recently\n"), "%s", text);
    cr_assert_eq(eddy_recorded_explain(recorded, cut, sizeof(cut)), length);
    cr_assert(strlen(cut) == sizeof(cut) - 1 && strncmp(cut, text, sizeof(cut) - 1) == 0);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- values ---- */

static eddy_status multiplies_by_value(void *context, eddy_recorded_call *call) {
    ++*(int *)context;
    int64_t value = eddy_item_i64(call->inputs.items[1], NULL);
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], EDDY_S(value)));
}

static void multiply(eddy_recorded *recorded, int value) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *y, *n = eddy_full(EDDY_SHAPE(), EDDY_S(value), EDDY_I64, NULL);
    must(eddy_recorded_run(recorded, EDDY_LIST(of(1), n), (eddy_scalars){0}, &y));
    cr_assert_eq(sum_of(y), 3 * value, "value %d", value);
    eddy_scope_end(scope);
}

Test(explain, values_that_were_used_last_are_kept) {
    static char text[TEXT_BYTES];
    eddy_scope *scope = eddy_scope_begin();
    int calls = 0;
    eddy_recorded *recorded = eddy_recorded_create(multiplies_by_value, &calls, 1, NULL);
    for (int value = 0; value < 100; value++)
        for (int i = 0; i < 3; i++)
            multiply(recorded, value);
    int before = calls;
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_eq(count_lines(text), 64 + 1, "%s", text);
    for (int value = 99; value >= 36; value--)
        multiply(recorded, value);
    cr_assert_eq(calls, before);
    multiply(recorded, 35);
    cr_assert_eq(calls, before + 1);
    eddy_recorded_explain(recorded, text, sizeof(text));
    cr_assert_not_null(strstr(text, "with input1 = 35): ran 1 times, replayed 0 times"));
    cr_assert_null(strstr(text, "with input1 = 99)"));
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}
