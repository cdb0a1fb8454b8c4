/* What is said where a plug-in, or what it needs, is missing. Each test runs in an environment of its own (tests/meson.build), which decides what the loader finds. */
#include <criterion/criterion.h>
#include <eddy/eddy.h>
#include <stdlib.h>
#include <string.h>

/* The device does not exist, for the same reason wherever it is named, and the CPU works. */
static void expect_none(const char *reason) {
    cr_assert_eq(eddy_device_count(EDDY_DEVICE_CUDA), 0);
    eddy_error error = {0};
    cr_assert_null(
        eddy_zeros(EDDY_SHAPE(2), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_CUDA(0))));
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, "there is no device cuda:0 here"), "%s",
                       error.message);
    cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
    cr_assert_eq(eddy_device_scope_begin(EDDY_CUDA(0)), EDDY_UNSUPPORTED);
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
    eddy_scope *scope = eddy_scope_begin();
    cr_assert_eq(eddy_item_f64(
                     eddy_sum(eddy_ones(EDDY_SHAPE(3), EDDY_F32, NULL), EDDY_ALL_AXES, NULL), NULL),
                 3);
    eddy_scope_end(scope);
}

Test(plugin, is_not_there) {
    expect_none("libeddy-cuda.so");
}

Test(plugin, is_not_there_for_the_default_device) {
    setenv("EDDY_DEVICE", "cuda", 1);
    cr_assert_null(eddy_zeros(EDDY_SHAPE(2), EDDY_F32, NULL));
    eddy_error error = {0};
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED, "%s", error.message);
    cr_assert_not_null(strstr(error.message, "cuda:0"), "%s", error.message);
}

Test(plugin, is_of_another_version) {
    expect_none("another version");
}

Test(plugin, finds_an_old_driver) {
    expect_none("one of CUDA 12.8, and 13.0 is needed");
}

static void expect_no_start(eddy_status status, const char *reason) {
    eddy_error error = {0};
    cr_assert_null(
        eddy_zeros(EDDY_SHAPE(2), EDDY_F32, EDDY_OPTIONS(zeros, .device = EDDY_CUDA(0))));
    cr_assert_eq(eddy_error_take(&error), status, "%s", error.message);
    cr_assert_not_null(strstr(error.message, "cuda:0 does not start"), "%s", error.message);
    cr_assert_not_null(strstr(error.message, reason), "%s", error.message);
}

Test(plugin, has_a_device_that_lacks_stream_writes) {
    cr_assert_eq(eddy_device_count(EDDY_DEVICE_CUDA), 2);
    expect_no_start(EDDY_UNSUPPORTED, "its streams cannot write to memory");
    expect_no_start(EDDY_UNSUPPORTED, "its streams cannot write to memory");
}

/* A failure is not for good. */
Test(plugin, has_a_device_that_starts_late) {
    expect_no_start(EDDY_OUT_OF_MEMORY, "CUDA's driver says CUDA_ERROR_OUT_OF_MEMORY");
    eddy_tensor *there =
        eddy_empty(EDDY_SHAPE(2), EDDY_F32, EDDY_OPTIONS(empty, .device = EDDY_CUDA(0)));
    cr_assert_not_null(there);
    cr_assert_eq(eddy_wait(there, EDDY_FOREVER), EDDY_OK);
    eddy_release(&there);
}

Test(plugin, finds_no_device) {
    expect_none("finds no device");
}
