/* eddy_scan: what it carries and stacks, and that recordings and the tape see its steps. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <tests/program/outcome.h>

/* (h, x) -> (tanh(w h + x), h + x) */
static eddy_status cell(void *context, eddy_list inputs, eddy_tensor **outputs) {
    eddy_tensor *h = inputs.items[0], *x = inputs.items[1];
    outputs[0] = eddy_tanh(eddy_add(eddy_mul(context, h), x));
    outputs[1] = eddy_add(h, x);
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

/* The same as a loop of C. */
static void loop(eddy_tensor *w, eddy_tensor *h, eddy_tensor *xs, bool is_reversed,
                 eddy_tensor **outputs) {
    eddy_tensor *rows[4];
    for (int i = 0; i < 4; i++) {
        int t = is_reversed ? 3 - i : i;
        eddy_tensor *pair[2];
        must(cell(w, EDDY_LIST(h, eddy_select(xs, 0, t)), pair));
        h = pair[0];
        rows[t] = pair[1];
    }
    outputs[0] = h;
    outputs[1] = eddy_stack((eddy_list){rows, 4}, 0);
}

static void expect_same(eddy_tensor *a, eddy_tensor *b) {
    float first[16], second[16];
    size_t bytes = (size_t)eddy_count_of(a) * sizeof(float);
    cr_assert_eq(eddy_count_of(a), eddy_count_of(b));
    must(eddy_read(a, first, bytes, NULL));
    must(eddy_read(b, second, bytes, NULL));
    cr_assert_arr_eq(first, second, bytes);
}

Test(scan, it_is_the_loop) {
    eddy_scope *scope = eddy_scope_begin();
    for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
        eddy_seed(4);
        eddy_tensor *w = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL);
        eddy_tensor *h = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL);
        eddy_tensor *xs = eddy_randn(EDDY_SHAPE(4, 3), EDDY_F32, NULL), *scanned[2], *looped[2];
        eddy_requires_grad_set(w, true);
        eddy_requires_grad_set(xs, true);
        must(eddy_scan(cell, w, EDDY_LIST(h), EDDY_LIST(xs), 2,
                       EDDY_OPTIONS(scan, .is_reversed = is_reversed), scanned));
        loop(w, h, xs, is_reversed, looped);
        eddy_tensor *grads[2][2];
        for (int i = 0; i < 2; i++) {
            expect_same(scanned[i], looped[i]);
            eddy_tensor **outputs = i ? looped : scanned;
            must(eddy_backward(eddy_add(eddy_sum(outputs[0], EDDY_ALL_AXES, NULL),
                                        eddy_sum(outputs[1], EDDY_ALL_AXES, NULL))));
            grads[i][0] = eddy_grad_of(w);
            grads[i][1] = eddy_grad_of(xs);
            must(eddy_grads_zero(EDDY_LIST(w, xs)));
        }
        expect_same(grads[0][0], grads[1][0]);
        expect_same(grads[0][1], grads[1][1]);
    }
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(scan, a_program_has_its_steps_and_their_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_seed(4);
    eddy_tensor *w = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL);
    eddy_tensor *h = eddy_randn(EDDY_SHAPE(3), EDDY_F32, NULL);
    eddy_tensor *xs = eddy_randn(EDDY_SHAPE(4, 3), EDDY_F32, NULL), *scanned[2], *ran[2],
                *looped[2];
    eddy_requires_grad_set(w, true);
    must(eddy_record_begin(NULL));
    must(eddy_scan(cell, w, EDDY_LIST(h), EDDY_LIST(xs), 2, NULL, scanned));
    eddy_program *program = eddy_record_end_with_grad(
        EDDY_BINDINGS({"xs", xs, EDDY_ROLE_INPUT}, {"h", scanned[0], EDDY_ROLE_OUTPUT},
                      {"all", scanned[1], EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    eddy_tensor *other = eddy_randn(EDDY_SHAPE(4, 3), EDDY_F32, NULL), *grads[2];
    must(eddy_program_run(program, EDDY_LIST(other), ran));
    loop(w, h, other, false, looped);
    for (int i = 0; i < 2; i++) {
        expect_same(ran[i], looped[i]);
        must(eddy_backward(eddy_sum(i ? looped[0] : ran[0], EDDY_ALL_AXES, NULL)));
        grads[i] = eddy_grad_of(w);
        must(eddy_grads_zero(EDDY_LIST(w)));
    }
    expect_same(grads[0], grads[1]);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

static eddy_status doubled(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    eddy_status status = eddy_mul_s_inplace(inputs.items[0], EDDY_S(2));
    outputs[0] = inputs.items[0];
    return status;
}

static eddy_status widening(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_cat(EDDY_LIST(inputs.items[0], inputs.items[0]), 0);
    outputs[1] = inputs.items[0];
    return outputs[0] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

Test(scan, what_is_carried_may_be_written_in_place) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), *y;
    must(eddy_scan(doubled, NULL, EDDY_LIST(x), (eddy_list){0}, 1,
                   EDDY_OPTIONS(scan, .step_count = 5), &y));
    cr_assert_eq(sum_of(y), 64);
    cr_assert_eq(sum_of(x), 2);
    must(eddy_scan(doubled, NULL, EDDY_LIST(x), (eddy_list){0}, 1, NULL, &y));
    must(eddy_mul_s_inplace(y, EDDY_S(3)));
    cr_assert_eq(sum_of(x), 2, "without a step it is a copy");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(scan, arguments_are_checked) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL), *out[2];
    eddy_tensor *none = eddy_ones(EDDY_SHAPE(0, 2), EDDY_F32, NULL);
    eddy_tensor *three = eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL);
#define SCAN(body, xs, count, options)                                                             \
    (void)!eddy_scan(body, x, EDDY_LIST(x), xs, count, options, out)
    SCAN(NULL, EDDY_LIST(x), 1, NULL);
    expect_error(EDDY_INVALID_ARGUMENT, "scan: a function is NULL");
    SCAN(cell, EDDY_LIST(x), 0, NULL);
    expect_error(EDDY_INVALID_ARGUMENT, "scan: 0 outputs, and 1 are carried");
    SCAN(cell, EDDY_LIST(x, three), 1, NULL);
    expect_error(EDDY_SHAPE_MISMATCH, "scan: xs[1] has 3 slices, and xs[0] has 2");
    SCAN(cell, EDDY_LIST(eddy_sum(x, EDDY_ALL_AXES, NULL)), 1, NULL);
    expect_error(EDDY_SHAPE_MISMATCH, "scan: xs[0] has no axis");
    SCAN(cell, EDDY_LIST(none), 2, NULL);
    expect_error(EDDY_INVALID_ARGUMENT,
                 "scan: there is no step, and nothing is known of what would be stacked");
    SCAN(cell, EDDY_LIST(x), 2, EDDY_OPTIONS(scan, .step_count = 2));
    expect_error(EDDY_INVALID_ARGUMENT,
                 "scan: step_count is 2: it counts the steps where there are no xs");
    SCAN(cell, (eddy_list){0}, 2, EDDY_OPTIONS(scan, .step_count = INT64_MAX));
    expect_error(EDDY_OUT_OF_MEMORY, "scan: no memory for the steps");
    SCAN(widening, (eddy_list){0}, 2, EDDY_OPTIONS(scan, .step_count = 2));
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_SHAPE_MISMATCH);
    cr_assert_str_eq(error.op, "stack");
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* (h, x) -> (0.5 h + x, 0.5 h + x): what is carried behind the last step is used by nobody, and adds no zero to the gradient of the row. */
static eddy_status halves(void *context, eddy_list inputs, eddy_tensor **outputs) {
    (void)context;
    outputs[0] = eddy_add(eddy_mul_s(inputs.items[0], EDDY_S(0.5)), inputs.items[1]);
    outputs[1] = eddy_mul_s(outputs[0], EDDY_S(1));
    return outputs[0] && outputs[1] ? EDDY_OK : EDDY_INVALID_ARGUMENT;
}

static eddy_tensor *rows_gradient(eddy_tensor *h, eddy_tensor *xs, bool is_rolled) {
    eddy_tensor *outputs[2], *gradient;
    must(eddy_scan(halves, NULL, EDDY_LIST(h), EDDY_LIST(xs), 2,
                   EDDY_OPTIONS(scan, .is_rolled = is_rolled), outputs));
    eddy_tensor *loss = eddy_sum(eddy_mul_s(outputs[1], EDDY_S(-0.0)), EDDY_ALL_AXES, NULL);
    must(eddy_backward_to(EDDY_LIST(loss), EDDY_LIST(xs), (eddy_list){0}, NULL, &gradient));
    return gradient;
}

Test(scan, what_nothing_comes_to_is_no_zero) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *h = eddy_ones(EDDY_SHAPE(2), EDDY_F32, NULL),
                *xs = eddy_ones(EDDY_SHAPE(3, 2), EDDY_F32, NULL), *out;
    must(eddy_requires_grad_set(xs, true));
    eddy_tensor *called = rows_gradient(h, xs, false);
    must(eddy_record_begin(NULL));
    eddy_tensor *recorded = rows_gradient(h, xs, true);
    eddy_program *program = eddy_record_end(
        EDDY_BINDINGS({"h", h, EDDY_ROLE_INPUT}, {"gradient", recorded, EDDY_ROLE_OUTPUT}));
    must(program ? EDDY_OK : EDDY_INVALID_ARGUMENT);
    must(eddy_program_run(program, EDDY_LIST(h), &out));
    must_have_same_bits(out, called, "the gradient of xs");
    must_have_same_bits(recorded, called, "the recorded one");
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
