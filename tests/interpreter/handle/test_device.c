#include "../calls.h"
#include <eddy/device.h>

Test(device, is_parsed_from_text) {
    const struct {
        const char *text;
        eddy_device_kind kind;
        int32_t index;
    } good[] = {{"cpu", EDDY_DEVICE_CPU, 0},
                {"cpu:0", EDDY_DEVICE_CPU, 0},
                {"cuda", EDDY_DEVICE_CUDA, 0},
                {"cuda:1", EDDY_DEVICE_CUDA, 1},
                {"cuda:12", EDDY_DEVICE_CUDA, 12}};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        eddy_device device;
        cr_assert_eq(eddy_device_parse(good[i].text, &device), EDDY_OK);
        cr_assert(device.kind == good[i].kind && device.index == good[i].index, "%s", good[i].text);
    }
    const char *bad[] = {"",        "gpu",     "cpu:",    "cuda:x",
                         "cuda:-1", "cuda:1 ", "default", "cuda:99999999999",
                         "cpux",    "CPU"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        eddy_device device = {EDDY_DEVICE_CPU, 7};
        cr_assert_eq(eddy_device_parse(bad[i], &device), EDDY_INVALID_ARGUMENT, "%s", bad[i]);
        cr_assert_eq(device.index, 7, "untouched");
        eddy_error_take(NULL);
    }
    cr_assert_eq(eddy_device_parse(NULL, NULL), EDDY_INVALID_ARGUMENT);
}

Test(device, is_formatted) {
    char text[16];
    cr_assert_eq(eddy_device_format(eddy_device_make(EDDY_DEVICE_CUDA, 3), text, sizeof(text)), 6);
    cr_assert_str_eq(text, "cuda:3");
    eddy_device_format(EDDY_CPU, text, sizeof(text));
    cr_assert_str_eq(text, "cpu");
    eddy_device_format(eddy_device_make(EDDY_DEVICE_CPU, 1), text, sizeof(text));
    cr_assert_str_eq(text, "cpu:1", "which there is not");
}

Test(device, scopes_nest_and_absent_devices_are_refused) {
    cr_assert_eq(eddy_device_current().kind, EDDY_DEVICE_CPU);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(eddy_device_scope_begin(EDDY_CPU), EDDY_OK);
    cr_assert_eq(eddy_device_scope_begin(EDDY_CUDA(99)), EDDY_UNSUPPORTED);
    ASSERT_ERROR(EDDY_UNSUPPORTED, "no device cuda:99");
    for (int i = 0; i < 30; i++)
        eddy_device_scope_end();
    cr_assert_not_null(counting(EDDY_SHAPE(1)));
}

Test(device, the_environments_device_is_taken) {
    setenv("EDDY_DEVICE", "cuda:99", 1);
    float one = 1;
    cr_assert_null(eddy_from_data(&one, EDDY_SHAPE(1), EDDY_F32, NULL));
    ASSERT_ERROR(EDDY_UNSUPPORTED, "cuda:99");
    eddy_from_data_options cpu = {sizeof(cpu), EDDY_CPU};
    cr_assert_not_null(eddy_from_data(&one, EDDY_SHAPE(1), EDDY_F32, &cpu),
                       "the call's own option wins");
    eddy_device_scope_begin(EDDY_CPU);
    cr_assert_not_null(eddy_from_data(&one, EDDY_SHAPE(1), EDDY_F32, NULL), "the scope wins");
    eddy_device_scope_end();
}
