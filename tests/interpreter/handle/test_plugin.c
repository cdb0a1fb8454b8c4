/* What is said where a plug-in, or what it needs, is missing. Each test runs in an environment of its own (tests/meson.build), which decides what the loader finds. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <eddy/eddy.h>
#include <stdio.h>
#include <stdlib.h>
#include <streams/plugin.h>
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

Test(plugin, is_no_plugin) {
    expect_none("libeddy-cuda.so is no plug-in of Eddy");
}

/* ---- library and plug-in of two builds ---- */

#define OF_BUILD(version)                                                                          \
    (version) / 1000000, (version) / 10000 % 100, (version) / 100 % 100, (version) % 100

/* Errors name both, and what is to be done. */
static void expect_both_named(int32_t distance) {
    char reason[160];
    snprintf(reason, sizeof(reason),
             "libeddy-cuda.so is of Eddy %d.%d.%d-%d, and this library of %d.%d.%d-%d: install "
             "both from one build",
             OF_BUILD(EDDY_PLUGIN_VERSION + distance), OF_BUILD(EDDY_PLUGIN_VERSION));
    expect_none(reason);
}

Test(plugin, is_older) {
    expect_both_named(-1);
}

Test(plugin, is_newer) {
    expect_both_named(1);
}

Test(plugin, is_of_a_later_release) {
    expect_both_named(1000000);
}

static void expect_it_works(void) {
    eddy_scope *scope = eddy_scope_begin();
    eddy_tensor *there =
        eddy_ones(EDDY_SHAPE(3), EDDY_F32, EDDY_OPTIONS(ones, .device = EDDY_CUDA(0)));
    cr_assert_eq(eddy_item_f64(eddy_sum(eddy_add(there, there), EDDY_ALL_AXES, NULL), NULL), 6);
    eddy_scope_end(scope);
    cr_assert_eq(eddy_sync(EDDY_FOREVER), EDDY_OK);
}

/* The plug-in's side. Of another library's table it calls nothing, nor keeps it: there is nothing in this one. Beside it in the process, the library of its build goes on. */
Test(plugin, finds_an_older_library_and_a_newer_one) {
    static eddy_plugin_host others[2];
    void *library = dlopen("libeddy-cuda.so", RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    eddy_plugin_open_fn *open_plugin;
    *(void **)&open_plugin = dlsym(library, EDDY_PLUGIN_SYMBOL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            others[i].version = EDDY_PLUGIN_VERSION + (i == 0 ? -1u : 1u);
            cr_assert_eq(open_plugin(&others[i])->version, EDDY_PLUGIN_VERSION,
                         "the other library has to tell");
        }
        expect_it_works();
    }
}

/* ---- what a plug-in needs ---- */

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
