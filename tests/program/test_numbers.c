/* Numbers of a recorded function: copies that were changed, numbers that an op does not take, errors that show them. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <string.h>
#include <tests/program/blocks.h>
#include <tests/program/outcome.h>
#include <tests/program/taped.h>

/* ---- a copy with another value is no number of the call ---- */

static eddy_status negates(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_scalar changed = call->scalars[0];
    changed.value.floating = -changed.value.floating;
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], changed));
}

static eddy_status rounds(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_scalar changed = call->scalars[0];
    changed.kind = EDDY_SCALAR_INT;
    changed.value.integer = (int64_t)call->scalars[0].value.floating + 1;
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], changed));
}

/* An attribute that is a double, which the op's function has named. */
static eddy_status drops_the_rest(void *context, eddy_recorded_call *call) {
    (void)context;
    eddy_scalar changed = call->scalars[0];
    changed.value.floating = changed.value.floating > 4 ? 1 : 0;
    return done(call->outputs, eddy_dropout(call->inputs.items[0], changed, NULL));
}

static eddy_tensor *call_alone(eddy_recorded_body *body, eddy_tensor *x, eddy_scalar number) {
    eddy_tensor *y = NULL;
    eddy_recorded_call call = {.size = sizeof(call),
                               .inputs = EDDY_LIST(x),
                               .scalars = &number,
                               .scalar_count = 1,
                               .outputs = &y,
                               .output_count = 1};
    must(body(NULL, &call));
    return y;
}

static void expect_followed(eddy_recorded_body *body, const char *reason) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(body, NULL, 1, NULL);
    for (int i = 0; i < 6; i++) {
        eddy_tensor *x = of(3), *y, *wanted = call_alone(body, x, EDDY_S(2.0 + i));
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(2.0 + i)), &y));
        cr_assert_eq(sum_of(y), sum_of(wanted), "call %d", i);
    }
    expect_explained(recorded, reason);
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

Test(numbers, a_copy_with_another_value_is_noticed) {
    expect_followed(negates, "not replayed: number 0 of the call has another value than was given, "
                             "in a call of mul_s");
    expect_followed(rounds, "number 0 of the call has another value than was given");
    expect_followed(drops_the_rest, "number 0 of the call has another value than was given, in a "
                                    "call of dropout");
}

/* A gradient takes the number over, in the dtype that the op has made of it. */
static eddy_status scales(void *context, eddy_recorded_call *call) {
    eddy_tensor *y = eddy_mul_s(eddy_mul(call->inputs.items[0], context), call->scalars[0]);
    return done(call->outputs, all(y));
}

Test(numbers, integers_beside_floats_go_through_gradients) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *w = leaf(of(2));
    eddy_recorded *recorded = eddy_recorded_create(scales, w, 1, NULL);
    for (int i = 0; i < 5; i++) {
        eddy_tensor *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(of(3)), EDDY_SCALARS(EDDY_S(i + 5)), &y));
        must(eddy_grads_zero(EDDY_LIST(w)));
        must(eddy_backward(y));
        cr_assert_eq(sum_of(eddy_grad_of(w)), 3 * 3 * (i + 5), "call %d", i);
    }
    expect_explained(recorded, "replayed 3 times");
    must(eddy_grads_zero(EDDY_LIST(w)));
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- a number that an op does not take is the function's affair ---- */

static eddy_status helps_itself(void *context, eddy_recorded_call *call) {
    ++*(int *)context;
    eddy_tensor *x = call->inputs.items[0], *y = eddy_maximum_s(x, call->scalars[0]);
    if (!y) {
        eddy_error_take(NULL);
        y = eddy_neg(x);
    }
    return done(call->outputs, y);
}

Test(numbers, one_that_does_not_fit_runs_the_function) {
    eddy_scope *scope = eddy_scope_begin();
    int calls = 0;
    eddy_recorded *recorded = eddy_recorded_create(helps_itself, &calls, 1, NULL);
    eddy_tensor *x = eddy_full(EDDY_SHAPE(1), EDDY_S(7), EDDY_U8, NULL), *y;
    static const int numbers[] = {5, 9, 8, 300, 6, 300}, wanted[] = {7, 9, 8, 249, 7, 249};
    for (int i = 0; i < 6; i++) {
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(numbers[i])), &y));
        cr_assert_eq(eddy_item_i64(y, NULL), wanted[i], "call %d", i);
    }
    cr_assert_eq(calls, 4);
    expect_explained(recorded, "(u8[1]): ran 4 times, replayed 2 times; missed 2 times (a number "
                               "was none that an op takes)\n");
    eddy_recorded_release(&recorded);
    expect_nothing_left(scope);
}

/* ---- errors ---- */

static eddy_status multiplies(void *context, eddy_recorded_call *call) {
    (void)context;
    return done(call->outputs, eddy_mul_s(call->inputs.items[0], call->scalars[0]));
}

Test(numbers, a_late_error_shows_that_of_the_run) {
    eddy_runtime *runtime = eddy_runtime_create(EDDY_OPTIONS(runtime, .checks_finite = true));
    must(eddy_runtime_use(runtime));
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(multiplies, NULL, 1, NULL);
    for (int i = 0; i < 5; i++) {
        char wanted[64];
        eddy_error error;
        eddy_tensor *x = eddy_full(EDDY_SHAPE(3), EDDY_S(3e38), EDDY_F32, NULL), *y;
        must(eddy_recorded_run(recorded, EDDY_LIST(x), EDDY_SCALARS(EDDY_S(7.5 + i)), &y));
        cr_assert_eq(eddy_wait(y, EDDY_FOREVER), EDDY_NOT_FINITE);
        eddy_error_take(&error);
        snprintf(wanted, sizeof(wanted), "(mul_s(f32[3], %g))", 7.5 + i);
        cr_assert_not_null(strstr(error.message, wanted), "call %d: %s", i, error.message);
    }
    expect_explained(recorded, "replayed 3 times");
    eddy_recorded_release(&recorded);
    eddy_scope_end(scope);
    must(eddy_runtime_use(NULL));
    eddy_runtime_release(&runtime);
}

Test(numbers, what_is_no_number_is_refused) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_recorded *recorded = eddy_recorded_create(multiplies, NULL, 1, NULL);
    eddy_tensor *y;
    eddy_scalar number = EDDY_S(2.0);
    number.kind = (eddy_scalar_kind)3;
    cr_assert_eq(eddy_recorded_run(recorded, EDDY_LIST(of(1)), EDDY_SCALARS(number), &y),
                 EDDY_INVALID_ARGUMENT);
    expect_error(EDDY_INVALID_ARGUMENT, "recorded_run: number 0 is of an unknown kind");
    eddy_recorded_release(&recorded);
    cr_assert_null(
        eddy_recorded_create(multiplies, NULL, 1, EDDY_OPTIONS(recorded, .most_bytes = -1)));
    expect_error(EDDY_INVALID_ARGUMENT, "recorded_create: most_bytes is -1");
    expect_nothing_left(scope);
}
