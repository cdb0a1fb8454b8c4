/* Programs on other devices than the CPU, and on several. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <string.h>

static eddy_tensor *numbers(eddy_device device, float first) {
    float data[6];
    for (int i = 0; i < 6; i++)
        data[i] = first + (float)i;
    eddy_from_data_options options = {.size = sizeof(options), .device = device};
    return eddy_from_data(data, EDDY_SHAPE(2, 3), EDDY_F32, &options);
}

static double at(eddy_tensor *tensor, int64_t row, int64_t column) {
    return eddy_item_f64(eddy_select(eddy_select(tensor, 0, row), 0, column), NULL);
}

static void print_plan(const eddy_program *program) {
    eddy_program_print_options options = {.size = sizeof(options), .shows_plan = true};
    eddy_program_print(program, stderr, &options);
}

Test(devices, a_program_runs_where_it_was_recorded) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_FAR(0), 0), *w = numbers(EDDY_FAR(0), 1);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *y = eddy_add(eddy_mul(x, w), x);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"w", w, EDDY_ROLE_STATE}, {"y", y, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    print_plan(program);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = numbers(run == 1 ? EDDY_CPU : EDDY_FAR(0), 2 + (float)run), *result;
        cr_assert_eq(eddy_program_run(program, EDDY_LIST(given), &result), EDDY_OK);
        cr_assert_eq(eddy_device_of(result).kind, EDDY_DEVICE_FAR);
        cr_assert_eq(at(result, 1, 2), (7 + run) * 6 + 7 + run);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}

Test(devices, a_program_goes_to_a_device_and_back) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *x = numbers(EDDY_CPU, 0), *w = numbers(EDDY_FAR(0), 1);
    cr_assert_eq(eddy_record_begin(NULL), EDDY_OK);
    eddy_tensor *doubled = eddy_add(x, x);
    eddy_tensor *there = eddy_to_device(doubled, EDDY_FAR(0));
    eddy_tensor *product = eddy_mul(there, w);
    eddy_tensor *back = eddy_to_device(product, EDDY_CPU);
    eddy_tensor *y = eddy_add(back, doubled);
    eddy_program *program = eddy_record_end(EDDY_BINDINGS(
        {"x", x, EDDY_ROLE_INPUT}, {"y", y, EDDY_ROLE_OUTPUT}, {"p", product, EDDY_ROLE_OUTPUT}));
    cr_assert_not_null(program);
    print_plan(program);
    for (int run = 0; run < 3; run++) {
        eddy_tensor *given = numbers(EDDY_CPU, 2 + (float)run), *results[2];
        cr_assert_eq(eddy_program_run(program, EDDY_LIST(given), results), EDDY_OK);
        cr_assert_eq(eddy_device_of(results[0]).kind, EDDY_DEVICE_CPU);
        cr_assert_eq(eddy_device_of(results[1]).kind, EDDY_DEVICE_FAR);
        cr_assert_eq(at(results[0], 1, 2), 2 * (7 + run) * 6 + 2 * (7 + run));
        cr_assert_eq(at(results[1], 1, 2), 2 * (7 + run) * 6);
    }
    eddy_program_release(&program);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_live_count(), 0);
}
