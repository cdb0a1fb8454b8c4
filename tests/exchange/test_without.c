/* What a library says that was built without a format: the functions of this program come before the library's. */
#include <base/call_site.h>

/* What it reads is hidden in the library. */
#undef EDDY_CALL_ADDRESS
#define EDDY_CALL_ADDRESS() NULL

#include <exchange/without_npz.c>
#include <exchange/without_safetensors.c>

#include "../interpreter/calls.h"

#define CASE(name) Test(without, name, .timeout = 60)

static void assert_refused(const char *message) {
    eddy_error error;
    cr_assert_eq(eddy_error_take(&error), EDDY_UNSUPPORTED);
    cr_assert_str_eq(error.message, message);
}

CASE(npz_files_are_refused) {
    cr_assert_eq(eddy_npz_save((eddy_list){0}, NULL, "a.npz", NULL), EDDY_UNSUPPORTED);
    assert_refused("npz_save: this library was built without npz files (its option npz)");
    cr_assert_null(eddy_npz_load("a.npz"));
    assert_refused("npz_load: this library was built without npz files (its option npz)");
    cr_assert_null(eddy_npz_load_one("a.npz", "a"));
    assert_refused("npz_load_one: this library was built without npz files (its option npz)");
}

CASE(safetensors_files_are_refused) {
    cr_assert_eq(eddy_safetensors_save((eddy_list){0}, NULL, "a.safetensors", NULL),
                 EDDY_UNSUPPORTED);
    assert_refused("safetensors_save: this library was built without safetensors files (its option "
                   "safetensors)");
    cr_assert_null(eddy_safetensors_load("a.safetensors"));
    assert_refused("safetensors_load: this library was built without safetensors files (its option "
                   "safetensors)");
    cr_assert_null(eddy_safetensors_load_one("a.safetensors", "a"));
    assert_refused("safetensors_load_one: this library was built without safetensors files (its "
                   "option safetensors)");
}
