/* Inputs on another device than the program. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>
#include <tests/program/placed.h>

static eddy_program *record(void) {
    eddy_tensor *x = numbers_on(EDDY_CPU, 0), *y = numbers_on(EDDY_CPU, 1);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *z = eddy_add(eddy_mul(x, y), x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_INPUT}, {"z", z, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    return program;
}

static int64_t copies(const eddy_program *program) {
    eddy_program_info info = {.size = sizeof(info)};
    cr_assert_eq(eddy_program_describe(program, &info), EDDY_OK);
    return info.feed_count;
}

Test(feeds, are_copied_to_the_program_and_counted) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record();
    for (int run = 0; run < 4; run++) {
        eddy_device device = run % 2 ? EDDY_FAR(0) : EDDY_CPU;
        eddy_tensor *result = NULL, *x = numbers_on(device, 2), *y = numbers_on(EDDY_FAR(1), 3);
        cr_assert_eq(eddy_program_run(program, EDDY_LIST(x, y), &result), EDDY_OK);
        cr_assert_eq(eddy_device_of(result).kind, EDDY_DEVICE_CPU);
        cr_assert_eq(eddy_item_f64(eddy_select(eddy_select(result, 0, 1), 0, 2), NULL), 7 * 8 + 7);
    }
    cr_assert_eq(copies(program), 6);
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

/* Its error is the run's. */
Test(feeds, that_failed_fail_the_run_late) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record();
    int64_t wrong[2] = {0, 9};
    eddy_from_data_options options = {.size = sizeof(options), .device = EDDY_FAR(0)};
    eddy_tensor *index = eddy_from_data(wrong, EDDY_SHAPE(2), EDDY_I64, &options);
    eddy_tensor *bad = eddy_index_select(numbers_on(EDDY_FAR(0), 0), index, 0), *result;
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(bad, numbers_on(EDDY_CPU, 0)), &result),
                 EDDY_OK);
    cr_assert_eq(eddy_wait(result, EDDY_FOREVER), EDDY_OUT_OF_RANGE);
    eddy_error_take(NULL);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}

Test(feeds, with_gradients_are_passed_through_to_device) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_program *program = record();
    eddy_tensor *x = numbers_on(EDDY_FAR(0), 1), *y = numbers_on(EDDY_CPU, 1), *result;
    cr_assert_eq(eddy_requires_grad_set(x, true), EDDY_OK);
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x, y), &result), EDDY_DEVICE_MISMATCH);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_not_null(strstr(error.message, "eddy_to_device"), "%s", error.message);
    cr_assert_eq(copies(program), 0);
    eddy_no_grad_begin();
    cr_assert_eq(eddy_program_run(program, EDDY_LIST(x, y), &result), EDDY_OK);
    eddy_no_grad_end();
    cr_assert_eq(eddy_item_f64(eddy_select(eddy_select(result, 0, 0), 0, 0), NULL), 2);
    eddy_program_release(&program);
    eddy_scope_end(scope);
}
