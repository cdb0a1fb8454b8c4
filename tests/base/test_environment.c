#include <base/environment.h>
#include <base/options.h>
#include <criterion/criterion.h>
#include <eddy/status.h>
#include <stdlib.h>
#include <string.h>

Test(environment, words_of_truth_in_any_case) {
    const char *truths[] = {"1", "true", "YES", "On"}, *lies[] = {"0", "False", "no", "OFF"};
    for (int i = 0; i < 4; i++) {
        bool value = false;
        cr_assert(eddy_environment_parse_bool(truths[i], &value) && value, "%s", truths[i]);
        cr_assert(eddy_environment_parse_bool(lies[i], &value) && !value, "%s", lies[i]);
    }
    bool value = true;
    cr_assert_not(eddy_environment_parse_bool("2", &value));
    cr_assert_not(eddy_environment_parse_bool("", &value));
}

Test(environment, numbers_with_units_and_nothing_behind_them) {
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-5", -5},
                {"0x10", 16},
                {"010", 10},
                {"3K", 3072},
                {"2m", 2 << 20},
                {"4G", INT64_C(4) << 30},
                {"9223372036854775807", INT64_MAX}};
    for (int i = 0; i < 8; i++) {
        int64_t value = -99;
        cr_assert(eddy_environment_parse_int(good[i].text, &value), "%s", good[i].text);
        cr_assert_eq(value, good[i].value, "%s", good[i].text);
    }
    const char *bad[] = {"",    "x",  "3 ", "3KB", "3T", "9223372036854775808", "9007199254740993G",
                         "--1", "1.5"};
    for (int i = 0; i < 9; i++) {
        int64_t value = -99;
        cr_assert_not(eddy_environment_parse_int(bad[i], &value), "%s", bad[i]);
        cr_assert_eq(value, -99);
    }
}

Test(environment, empty_variables_count_as_unset) {
    setenv("EDDY_DEVICE", "", 1);
    cr_assert_null(eddy_environment_string("EDDY_DEVICE"));
    setenv("EDDY_DEVICE", "cpu", 1);
    cr_assert_str_eq(eddy_environment_string("EDDY_DEVICE"), "cpu");
}

Test(options, nothing_given_means_the_defaults) {
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_OK);
    cr_assert_eq(options.size, sizeof(options));
    cr_assert_eq(options.threads, 0);
    cr_assert_str_eq(options.device, "cpu");
    cr_assert_gt(options.in_flight_high, 0);
    cr_assert_gt(options.in_flight_bytes_high, 0);
    cr_assert_not(options.uses_one_thread);
    eddy_runtime_options zero = {0};
    cr_assert_eq(eddy_options_resolve(&zero, &options), EDDY_OK);
    cr_assert_str_eq(options.device, "cpu");
}

Test(options, the_struct_goes_before_the_environment) {
    setenv("EDDY_THREADS", "3", 1);
    setenv("EDDY_IN_FLIGHT_HIGH", "2K", 1);
    setenv("EDDY_ONE_THREAD", "yes", 1);
    setenv("EDDY_DEVICE", "cuda:1", 1);
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(EDDY_OPTIONS(runtime, .threads = 5), &options), EDDY_OK);
    cr_assert_eq(options.threads, 5);
    cr_assert_eq(options.in_flight_high, 2048);
    cr_assert(options.uses_one_thread);
    cr_assert_str_eq(options.device, "cuda:1");
    setenv("EDDY_IN_FLIGHT_HIGH", "7", 1);
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_OK);
    cr_assert_eq(options.in_flight_high, 2048, "the environment is read once");
    cr_assert_eq(options.threads, 3);
}

Test(options, an_older_smaller_struct_is_read_no_further_than_it_is) {
    eddy_runtime_options given, options;
    memset(&given, 0xff, sizeof(given));
    given.size = offsetof(eddy_runtime_options, device);
    given.threads = 2;
    cr_assert_eq(eddy_options_resolve(&given, &options), EDDY_OK);
    cr_assert_eq(options.threads, 2);
    cr_assert_str_eq(options.device, "cpu");
}

Test(options, wrong_values_are_refused_by_name) {
    eddy_runtime_options options = {.threads = -99};
    eddy_error error;
    cr_assert_eq(eddy_options_resolve(EDDY_OPTIONS(runtime, .threads = -1), &options),
                 EDDY_INVALID_ARGUMENT);
    cr_assert_eq(options.threads, -99, "written on success only");
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "threads is -1, not a number from 0 to 1024");
    cr_assert_eq(eddy_options_resolve(EDDY_OPTIONS(runtime, .isa = "v9"), &options),
                 EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "isa is v9, not portable, v2, v3 or v4");
}

Test(options, an_instruction_set_that_is_unknown_or_missing_is_refused) {
    eddy_runtime_options options;
    eddy_error error;
    setenv("EDDY_ISA", "v99", 1);
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_INVALID_ARGUMENT);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "EDDY_ISA is v99, not portable, v2, v3 or v4");
    cr_assert_eq(eddy_options_check_isa("v3", "isa", EDDY_ISA_V2, EDDY_ISA_V3), EDDY_OK);
    cr_assert_eq(eddy_options_check_isa("v2", "isa", EDDY_ISA_V2, EDDY_ISA_V3), EDDY_OK);
    cr_assert_eq(eddy_options_check_isa("v4", "isa", EDDY_ISA_V2, EDDY_ISA_V3), EDDY_UNSUPPORTED);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "isa is v4, but this machine has no more than v3");
    cr_assert_eq(eddy_options_check_isa("portable", "EDDY_ISA", EDDY_ISA_V2, EDDY_ISA_V3),
                 EDDY_UNSUPPORTED);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message,
                     "EDDY_ISA is portable, but this library is built for v2 and higher");
}

Test(options, a_machine_below_what_the_library_is_built_for_is_refused) {
    eddy_error error;
    cr_assert_eq(eddy_options_check_machine(EDDY_ISA_V3, EDDY_ISA_V3), EDDY_OK);
    cr_assert_eq(eddy_options_check_machine(EDDY_ISA_PORTABLE, EDDY_ISA_V4), EDDY_OK);
    cr_assert_eq(eddy_options_check_machine(EDDY_ISA_V4, EDDY_ISA_V3), EDDY_UNSUPPORTED);
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "this library is built for v4 and higher, but "
                                    "this machine has no more than v3");
}

Test(options, the_instruction_set_of_the_machine_is_the_limit) {
    if (eddy_isa_machine() == EDDY_ISA_V4)
        cr_skip_test("this machine has every instruction set");
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(EDDY_OPTIONS(runtime, .isa = "v4"), &options),
                 EDDY_UNSUPPORTED);
    eddy_error_take(NULL);
}

static eddy_isa least_isa(void) {
    return eddy_isa_served_by(EDDY_ISA_PORTABLE);
}

/* The highest level but one; where there is but one, that. */
static const char *lower_isa(void) {
    eddy_isa machine = eddy_isa_machine();
    return eddy_isa_name(machine == least_isa() ? machine : (eddy_isa)(machine - 1));
}

Test(options, the_struct_chooses_the_instruction_set_before_the_variable) {
    setenv("EDDY_ISA", lower_isa(), 1);
    const eddy_runtime_options *given = EDDY_OPTIONS(runtime, .isa = eddy_isa_name(least_isa()));
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(given, &options), EDDY_OK);
    cr_assert_eq(eddy_options_choose_isa(given, &options), EDDY_OK);
    cr_assert_eq(eddy_isa_chosen(), least_isa());
    /* Nobody asked for what the variable says any more. */
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_OK);
    cr_assert_eq(eddy_options_choose_isa(NULL, &options), EDDY_OK);
    cr_assert_eq(eddy_isa_chosen(), least_isa());
}

Test(options, the_variable_chooses_the_instruction_set_of_a_struct_without_one) {
    setenv("EDDY_ISA", lower_isa(), 1);
    const eddy_runtime_options *given = EDDY_OPTIONS(runtime, .threads = 1);
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(given, &options), EDDY_OK);
    cr_assert_eq(eddy_options_choose_isa(given, &options), EDDY_OK);
    cr_assert_str_eq(eddy_isa_name(eddy_isa_chosen()), lower_isa());
}

Test(options, an_empty_instruction_set_is_the_machines) {
    const eddy_runtime_options *given = EDDY_OPTIONS(runtime, .isa = "");
    setenv("EDDY_ISA", eddy_isa_name(least_isa()), 1);
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(given, &options), EDDY_OK);
    cr_assert_eq(eddy_options_choose_isa(given, &options), EDDY_OK);
    cr_assert_eq(eddy_isa_chosen(), eddy_isa_machine());
}

Test(options, a_variable_that_cannot_be_read_is_named) {
    setenv("EDDY_CHECK_FINITE", "perhaps", 1);
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_INVALID_ARGUMENT);
    eddy_error error;
    eddy_error_take(&error);
    cr_assert_str_eq(error.message, "EDDY_CHECK_FINITE is perhaps, not 1, 0 or nan");
}

Test(options, check_finite_has_a_mode_for_nan_alone) {
    setenv("EDDY_CHECK_FINITE", "NaN", 1);
    eddy_runtime_options options;
    cr_assert_eq(eddy_options_resolve(NULL, &options), EDDY_OK);
    cr_assert(options.checks_finite && options.checks_nan == 1);
}

Test(options, every_row_describes_itself) {
    int32_t count;
    const eddy_option *rows = eddy_option_rows(&count);
    cr_assert_gt(count, 10);
    for (int32_t i = 0; i < count; i++) {
        cr_assert_eq(strncmp(rows[i].variable, "EDDY_", 5), 0, "%s", rows[i].name);
        cr_assert_eq(rows[i].sentence[strlen(rows[i].sentence) - 1], '.', "%s", rows[i].name);
        cr_assert_lt(rows[i].offset, sizeof(eddy_runtime_options));
    }
}
